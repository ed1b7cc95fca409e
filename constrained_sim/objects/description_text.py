"""What kind of description a text is, and whether it says that the world holds what it describes."""

from __future__ import annotations

import os

from constrained_sim.descriptions.document import parse_xml, read_text
from constrained_sim.robot import WORLD
from constrained_sim.validation import lookup

ROOTS = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf"}
"""Kinds of descriptions, by the root of their documents."""


def kind_of(path_or_xml: str | os.PathLike[str]) -> str:
    """Return the kind of a description: ``urdf``, ``sdf`` or ``mjcf``.

    Raises:
        ModelError: no such file, or no XML.
        UnknownName: another document.
    """
    return lookup("root of a description", parse_xml(read_text(path_or_xml, "description"), "description").tag, ROOTS)


def is_held_by_world(path_or_xml: str | os.PathLike[str]) -> bool:
    """Return whether a URDF or an SDF has a link, or a joint a parent, that is called world.

    Raises:
        ModelError: no such file, or no XML.
    """
    root = parse_xml(read_text(path_or_xml, "description"), "description")
    links = {link.get("name") for link in root.iter("link")}
    return WORLD in links or any((parent.text or "").strip() == WORLD for parent in root.iter("parent"))
