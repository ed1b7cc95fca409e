"""The colours of pictures, pages and markers; colour-blind people can tell them apart.

Source: Okabe and Ito, Color universal design, 2008.
"""

from __future__ import annotations

from constrained_sim.contact_solvers.status import ContactStatus

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY_BLUE, YELLOW, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#000000"
GREY = "#8C8C8C"

COLOURS = BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY_BLUE, BLACK
"""Of lines, one after the other; yellow ones are hard to see on white."""

STATUS_COLOURS = {ContactStatus.OPEN: GREY, ContactStatus.STICKING: BLUE, ContactStatus.SLIDING: VERMILION}
"""Of contacts and their forces."""


def rgb(colour: str) -> tuple[int, int, int]:
    """Return red, green and blue of a colour, 0 to 255."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue
