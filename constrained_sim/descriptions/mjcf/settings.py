"""Settings of MJCF that hold for a whole file: <compiler>, <option><flag>, and <default> classes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.document import Tag, where
from constrained_sim.descriptions.mjcf.vocabulary import ACTUATORS
from constrained_sim.descriptions.vocabulary import numbers
from constrained_sim.exceptions import ModelError
from constrained_sim.validation import Array

ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")

MAIN = "main"
"""Class of what has none."""

KINDS = {"connect": "equality", "weld": "equality", "fixed": "tendon", "spatial": "tendon"} | dict.fromkeys(
    ACTUATORS, "actuator"
)
"""Elements that share their defaults with others."""


@dataclass(frozen=True)
class Compiler:
    """How numbers and files in the file are meant.

    Attributes:
        settings: attributes of all <compiler>, later ones over earlier ones.
    """

    settings: Tag

    @classmethod
    def of(cls, root: Element) -> Compiler:
        """Return the settings of a file.

        Raises:
            ModelError: a word that is not allowed.
        """
        merged = Tag("compiler")
        for element in root.findall("compiler"):
            merged.attrib.update(element.attrib)
            merged.place_like(element)
        for key, allowed in (
            ("angle", ("degree", "radian")),
            ("autolimits", ("true", "false")),
            ("balanceinertia", ("true", "false")),
            ("strippath", ("true", "false")),
            ("inertiafromgeom", ("true", "false", "auto")),
        ):
            word_of(merged, key, allowed)
        sequence = merged.get("eulerseq", "xyz")
        if len(sequence) != 3 or set(sequence) - set("xyzXYZ"):
            raise ModelError(f"'eulerseq' of {where(merged)}: got {sequence!r}, allowed: three letters of xyzXYZ")
        return cls(merged)

    @property
    def angle(self) -> float:
        """Unit of angles [rad]."""
        return 1.0 if self.settings.get("angle") == "radian" else float(np.pi / 180.0)

    def is_limited(self, element: Element, key: str, range_key: str) -> bool:
        """Return whether a range holds.

        Raises:
            ModelError: the file does not say so, where it must; or a range in the wrong order.
        """
        limited = word_of(element, key, ("true", "false", "auto"))
        given = any(numbers(element, range_key))  # MuJoCo takes zeros for none
        if limited == "auto":
            if given and self.settings.get("autolimits") == "false":
                raise ModelError(
                    f"{where(element)}: got {range_key} without {key}, allowed: both (autolimits is false)"
                )
            limited = "true" if given else "false"
        if limited != "true":
            return False
        lower, upper = numbers(element, range_key, (0.0, 0.0))
        if not lower <= upper or not given:
            raise ModelError(f"{range_key!r} of {where(element)}: got {lower:g} {upper:g}, allowed: lower <= upper")
        return True

    def pose(self, element: Element) -> pin.SE3:
        """Return the placement that an element has in its parent."""
        return pin.SE3(self.rotation(element), np.array(numbers(element, "pos", (0.0, 0.0, 0.0))))

    def rotation(self, element: Element) -> Array:
        """Return the rotation (3, 3) that an element states in one of five ways.

        Raises:
            ModelError: in several, or a direction of no length.
        """
        given = [key for key in ORIENTATIONS if element.get(key) is not None]
        if len(given) > 1:
            raise ModelError(f"{where(element)}: got {' and '.join(given)}, allowed: one orientation")
        if not given:
            return np.eye(3)
        (key,) = given
        values = np.array(numbers(element, key))
        if key != "euler" and np.linalg.norm(values[: 3 if key != "quat" else 4]) < 1e-10:
            raise ModelError(
                f"{key!r} of {where(element)}: got {element.get(key)!r}, allowed: a direction of some length"
            )
        if key == "quat":
            return np.asarray(pin.Quaternion(*values).normalized().matrix())
        if key == "axisangle":
            return np.asarray(pin.exp3(values[:3] / np.linalg.norm(values[:3]) * values[3] * self.angle))
        if key == "zaxis":
            return turn_z_to(values)
        return self._from_axes(values) if key == "xyaxes" else self._from_euler(values * self.angle)

    def _from_axes(self, values: Array) -> Array:
        x = values[:3] / np.linalg.norm(values[:3])
        y = values[3:] - x * (x @ values[3:])
        if np.linalg.norm(y) < 1e-10:
            raise ModelError(f"'xyaxes': got {values.tolist()}, allowed: two directions that differ")
        y /= np.linalg.norm(y)
        return np.column_stack([x, y, np.cross(x, y)])

    def _from_euler(self, angles: Array) -> Array:
        rotation = np.eye(3)
        for letter, angle in zip(self.settings.get("eulerseq", "xyz"), angles, strict=True):
            turned = pin.exp3(angle * np.eye(3)["xyz".index(letter.lower())])
            rotation = rotation @ turned if letter.islower() else turned @ rotation  # moving axes, or fixed ones
        return rotation

    def file(self, name: str) -> str:
        """Return where an asset of this name is, relative to the folder of the file."""
        if self.settings.get("strippath") == "true":
            name = PurePosixPath(name.replace("\\", "/")).name
        folder = self.settings.get("meshdir", self.settings.get("assetdir", ""))
        return str(PurePosixPath(folder) / name)


def turn_z_to(direction: Array) -> Array:
    """Return the least rotation (3, 3) that turns z to a direction (3,)."""
    z = direction / np.linalg.norm(direction)
    axis = np.cross([0.0, 0.0, 1.0], z)
    sine = np.linalg.norm(axis)
    axis = axis / sine if sine > 1e-10 else np.array([1.0, 0.0, 0.0])
    return np.asarray(pin.exp3(axis * np.arctan2(sine, z[2])))


def word_of(element: Element, key: str, allowed: tuple[str, ...]) -> str:
    """Return a word among several; the last one where there is none.

    Raises:
        ModelError: another word.
    """
    word = element.get(key, allowed[-1])
    if word not in allowed:
        raise ModelError(f"{key!r} of {where(element)}: got {word!r}, allowed: {', '.join(allowed)}")
    return word


PARTS = {"constraint": {"equality", "limit", "frictionloss"}, "passive": {"spring", "damper"}}
"""Flags that disable several things."""


def flags_of(root: Element) -> frozenset[str]:
    """Return what <flag> disables."""
    flags = [flag for option in root.findall("option") for flag in option.findall("flag")]
    disabled = {key for flag in flags for key, value in flag.items() if value == "disable"}
    return frozenset(disabled.union(*(PARTS.get(key, set()) for key in disabled)))


@dataclass(frozen=True)
class Defaults:
    """Attributes of elements that say nothing themselves, by class and kind of element.

    Attributes:
        classes: attributes by kind of element, by class.
    """

    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {MAIN: {}})

    @classmethod
    def of(cls, root: Element) -> Defaults:
        """Return the defaults of a file."""
        found = cls()
        for element in root.findall("default"):
            found._read(element, element.get("class", MAIN), found.classes[MAIN])
            found.classes[MAIN] = found.classes[element.get("class", MAIN)]
        return found

    def _read(self, element: Element, name: str, inherited: dict[str, dict[str, str]]) -> None:
        own = {kind: dict(values) for kind, values in inherited.items()}
        self.classes[name] = own
        for child in element:
            if child.tag != "default":
                kind = KINDS.get(child.tag, child.tag)
                own[kind] = _over(own.get(kind, {}), child) | _gain_of(child.tag)
        for child in element.findall("default"):
            if child.get("class") is None:
                raise ModelError(f"{where(child)} in <default>: the attribute 'class' is missing")
            self._read(child, child.get("class", ""), own)

    def applied(self, element: Element, childclass: str | None = None, kind: str = "") -> Tag:
        """Return an element with the attributes of its class, or else of the `childclass` of its body.

        Raises:
            ModelError: no such class.
        """
        name = element.get("class") or childclass or MAIN
        if name not in self.classes:
            allowed = ", ".join(self.classes)
            raise ModelError(f"{where(element)}: got class {name!r}, allowed: {allowed}")
        inherited = self.classes[name].get(kind or KINDS.get(element.tag, element.tag), {})
        merged = Tag(element.tag, _over(inherited, element))
        merged.place_like(element)
        merged.extend(element)
        return merged


def _gain_of(tag: str) -> dict[str, str]:
    """Return what a kind of actuator in <default> says of the gains of a <general> that inherits from it."""
    if tag not in ACTUATORS or tag == "general":
        return {}
    return {"gaintype": "fixed", "gainprm": "1", "biastype": "none" if tag == "motor" else "affine"}


def _over(inherited: dict[str, str], element: Element) -> dict[str, str]:
    """Return the attributes of an element over inherited ones; one orientation takes the place of another."""
    own = {key: value for key, value in element.items() if key != "class"}
    if any(key in own for key in ORIENTATIONS):
        inherited = {key: value for key, value in inherited.items() if key not in ORIENTATIONS}
    return inherited | own
