"""Picture of the contact forces: normal and tangential force of each contact; stick, slip and flight are shaded.

A contact that is absent has no force.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from constrained_sim.palette import COLOURS
from constrained_sim.plots.handles import (
    draw_line,
    impact_handle,
    line_handle,
    mark_impacts,
    shade_handles,
    shade_status,
)
from constrained_sim.plots.page import Panel, Sheet, leave_room
from constrained_sim.plots.recording import Recording

NORMAL, TANGENTIAL = COLOURS[0], COLOURS[1]
AXES = {"x": COLOURS[1], "y": COLOURS[2], "z": COLOURS[0]}
WIDE = 6
"""Contacts of which each gets a whole row; of more, two share one."""


def contact_forces(recording: Recording) -> Sheet | None:
    """Return the panels, one for each contact; None: there are no contacts."""
    if not recording.contacts:
        return None
    names = by_limb(recording)
    shown = [name for name in names if _has_force(recording, name)] if len(names) > WIDE else names
    panels = [_panel(recording, name) for name in shown or names[:1]]
    legend = [*shade_handles(), impact_handle()]
    if any(contact.has_normal for contact in recording.contacts.values()):
        legend[:0] = [line_handle("normal", NORMAL), line_handle("tangential", TANGENTIAL)]
    if any(not contact.has_normal for contact in recording.contacts.values()):
        legend[:0] = [line_handle(f"along {axis}", colour) for axis, colour in AXES.items()]
    rest = left_out(len(names) - len(panels), "contacts without force")
    title = f"{recording.title}: contact forces, impulses of impacts excluded{rest}"
    return Sheet(title, panels, columns_for(len(panels)), unit="force on the robot [N]", legend=legend)


def left_out(count: int, what: str) -> str:
    """Return the end of a title that says what has no panel."""
    return f"; {count} {what} left out" if count else ""


def columns_for(count: int) -> int:
    """Return how many panels of contacts share a row."""
    return 1 if count <= WIDE else 2


def by_limb(recording: Recording) -> list[str]:
    """Return the names of the contacts, those of one limb one after the other."""
    order = list(dict.fromkeys(contact.limb for contact in recording.contacts.values()))
    return sorted(recording.contacts, key=lambda name: order.index(recording.contacts[name].limb))


def impacts_of(recording: Recording, contact: str) -> Any:
    """Return the instants [s] of the impacts in which `contact` took part; of all where nobody recorded that."""
    impacts = recording.impacts
    if not impacts.impulses:
        return impacts.t
    impulses = impacts.impulses.get(contact, np.zeros(len(impacts.t)))
    return impacts.t[np.nan_to_num(impulses) > 0.0]


def _has_force(recording: Recording, name: str) -> bool:
    return bool(np.nan_to_num(recording.contacts[name].force).any()) or len(impacts_of(recording, name)) > 0


def _panel(recording: Recording, name: str) -> Panel:
    contact, t = recording.contacts[name], recording.contact_times

    def draw(axes: Any) -> None:
        shade_status(axes, t, contact)
        if contact.has_normal:
            draw_line(axes, t, np.nan_to_num(contact.normal), NORMAL)
            draw_line(axes, t, np.nan_to_num(contact.tangential), TANGENTIAL)
        else:
            for values, colour in zip(np.nan_to_num(contact.force).T, AXES.values(), strict=True):
                draw_line(axes, t, values, colour)
        leave_room(axes)
        mark_impacts(axes, impacts_of(recording, name))

    return Panel(name, contact.limb, draw)
