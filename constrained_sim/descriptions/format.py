"""Format of a description, and whether the world holds what it describes, before it is read."""

from __future__ import annotations

import os

from constrained_sim.descriptions.document import Tag, errors_in, parse_xml, read_text
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD

FORMATS = {"robot": "urdf", "sdf": "sdf", "mujoco": "mjcf"}
"""Format of a description by its outermost element."""


def format_of(path_or_xml: str | os.PathLike[str]) -> str:
    """Return the format of a description: ``urdf`` (xacro too), ``sdf`` or ``mjcf``.

    Raises:
        ModelError: no such file, or no XML.
        InvalidValue: XML of another kind.
    """
    tag = _root(path_or_xml).tag
    if tag not in FORMATS:
        raise InvalidValue("robot description", f"<{tag}>", f"one of {', '.join(f'<{name}>' for name in FORMATS)}")
    return FORMATS[tag]


def is_held_by_world(path_or_xml: str | os.PathLike[str]) -> bool:
    """Return whether a URDF or an SDF has a link, or a joint a parent, that is called world.

    Raises:
        ModelError: no such file, or no XML.
    """
    root = _root(path_or_xml)
    links = {link.get("name") for link in root.iter("link")}
    return WORLD in links or any((parent.text or "").strip() == WORLD for parent in root.iter("parent"))


def _root(path_or_xml: str | os.PathLike[str]) -> Tag:
    text = read_text(path_or_xml)
    with errors_in(path_or_xml):
        return parse_xml(text, "robot description")
