"""The sections of a configuration: each becomes an object, and every key in it is read or refused."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from constrained_sim.collision.detector import Collisions
from constrained_sim.collision.scene import Box, Mesh, SceneBody, Sphere
from constrained_sim.constraints import CONSTRAINTS, Constraint, CustomConstraint, PointContact
from constrained_sim.contact import LAWS, Law, Plane, make_law
from constrained_sim.descriptions.format import is_held_by_world
from constrained_sim.exceptions import ConfigError, InvalidValue, UnknownName, shown
from constrained_sim.objects.world_object import HERE, PRIMITIVES, WorldObject, primitive
from constrained_sim.package_paths import resolve_path
from constrained_sim.robot import Robot
from constrained_sim.sensors import SENSORS, Sensor
from constrained_sim.servo import Servo
from constrained_sim.validation import Array, finite_array, lookup, number

T = TypeVar("T")

MakeRobot = Callable[[str, str | Path, tuple[tuple[str, Any], ...]], Robot]
"""Reads the description of a robot: its kind, the file or text, and options of the reader."""


WORDS = {str: "a text", float: "a number", int: "a whole number", bool: "true or false", tuple: "a list"}
"""What a value has to be, as a parameter file says it."""


class Section:
    """A mapping of which every key must be taken.

    Attributes:
        where: keys that lead to it, for messages.
        name: its own, where names lead to sections.
    """

    name: str = ""

    def __init__(self, where: str, values: Any) -> None:
        """Take over `values`.

        Raises:
            ConfigError: no mapping.
        """
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where}: got {shown(values)}, allowed: a mapping of keys to values")
        self.where = where
        self._values = dict(values)
        self._known: list[str] = []

    def take(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """Return the value of `key` as `kind` (float accepts whole numbers, tuple any list)."""
        self._known.append(key)
        if key not in self._values:
            if default is MISSING:
                raise ConfigError(f"{self.where}: the key {key!r} is missing")
            return default
        value = self._values.pop(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return number(f"{self.where}.{key}", value)
        if kind is tuple and isinstance(value, (list, tuple, np.ndarray)):
            return tuple(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{self.where}.{key}: got {shown(value)}, allowed: {WORDS.get(kind, kind.__name__)}")
        return value

    def take_fields(self, options: type) -> dict[str, Any]:
        """Return the values of all fields of the dataclass `options`."""
        return {f.name: self.take(f.name, type(f.default), f.default) for f in fields(options)}

    def take_declaration(self, kind: type[T]) -> T:
        """Return a `kind`, a dataclass, of this name: the keys are its fields, without more keys beside them."""
        values = self.take_attributes(kind, "name")
        self.finish()
        make: Callable[..., T] = kind
        return make(self.name, **values)

    def take_attributes(self, kind: type, *left_out: str) -> dict[str, Any]:
        """Return the values of the fields of the dataclass `kind` but those `left_out`, by the types of the fields."""
        hints, taken = get_type_hints(kind), [f for f in fields(kind) if f.name not in left_out]
        return {f.name: self.take(f.name, _kind_of(hints[f.name], f.default), f.default) for f in taken}

    def section(self, key: str) -> Section:
        """Return the mapping under `key`, empty if there is none."""
        self._known.append(key)
        return Section(f"{self.where}.{key}", self._values.pop(key, {}))

    def named_sections(self, key: str) -> Iterator[Section]:
        """Yield the mappings under `key`, one for each name in it; their `name` is that name."""
        group = self.section(key)
        for name, values in group._values.items():
            section = Section(f"{group.where}.{name}", values)
            section.name = str(name)
            yield section

    def remaining(self) -> dict[str, Any]:
        """Return what is left: a mapping whose keys are names."""
        values, self._values = self._values, {}
        return values

    def finish(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._values:
            near = difflib.get_close_matches(str(key), self._known, 1)
            meant = f" ({near[0]}?)" if near else ""
            raise ConfigError(f"{self.where}: unknown key {shown(key)}{meant}, allowed: {', '.join(self._known)}")


def _kind_of(hint: Any, default: Any) -> type:
    """Return as what a file has a field: text, a number, or a list; that is the first of the types it may have."""
    first = next(iter(get_args(hint)), hint) if get_origin(hint) in (Union, UnionType) else hint
    if first in (str, float, int, bool):
        return first
    return tuple if default is MISSING or default is None else type(default)


def make_robot(kind: str, path_or_xml: str | Path, options: tuple[tuple[str, Any], ...]) -> Robot:
    """Return the robot of a description of this `kind`, a name in :data:`DESCRIPTIONS`."""
    return DESCRIPTIONS[kind](path_or_xml, **dict(options))


def read_robot(section: Section, base: Path, make: MakeRobot = make_robot) -> Robot:
    """Read a robot by the format of its description; relative paths start at `base`.

    Args:
        section: of the robot.
        base: that relative paths start at.
        make: what reads descriptions; who reads one thousands of times keeps what he has read.
    """
    (kind, text), options = _description(section), {}
    if kind != "mjcf":
        options["floating_base"] = section.take("floating_base", bool, False)
    for option in ("gravity", "actuated_joints"):
        value = section.take(option, tuple, None)
        options |= {option: value} if value is not None else {}
    joints = {part.name: part.remaining() for part in section.named_sections("joints")}
    payloads = section.section("payloads").remaining()
    section.finish()
    robot = make(kind, resolve_path(text, base), tuple(options.items()))
    return robot.with_joints(joints).with_payloads(payloads)


def read_objects(top: Section, base: Path, make: MakeRobot = make_robot) -> list[WorldObject]:
    """Read what is beside the robot; relative paths start at `base`, and `make` reads descriptions."""
    return [read_object(section, base, make) for section in top.named_sections("objects")]


def read_object(section: Section, base: Path, make: MakeRobot = make_robot) -> WorldObject:
    """Read what is beside the robot: a shape with its mass, or a description; arguments as of :func:`read_robot`."""
    pose = section.take("pose", tuple, HERE)
    shape = section.take("shape", str, "")
    if shape:
        sizes = lookup("shape of an object", shape, PRIMITIVES).sizes
        lengths: list[Any] = []
        for key, count in sizes.items():
            lengths += section.take(key, tuple) if count > 1 else [section.take(key, float)]
        body = primitive(shape, lengths, section.take("mass", float), section.take("friction", float, None))
    else:
        kind, text = _description(section)
        path = resolve_path(text, base)
        free = section.take("floating_base", bool, None) if kind != "mjcf" else None
        body = read_body(kind, path, free, make)
    section.finish()
    return WorldObject(section.name, body, pose)


def read_body(kind: str, path_or_xml: str | Path, floating_base: bool | None, make: MakeRobot = make_robot) -> Robot:
    """Return the body of an object from a description of this `kind`.

    Args:
        kind: a name in :data:`DESCRIPTIONS`.
        path_or_xml: file or text.
        floating_base: whether it moves freely; None: unless the description has a link or a parent called ``world``,
            which is what holds it then. An MJCF says so itself.
        make: what reads descriptions.

    Raises:
        ModelError: it cannot be read.
    """
    options: dict[str, Any] = {"actuated_joints": ()}
    if kind != "mjcf":
        options["floating_base"] = not is_held_by_world(path_or_xml) if floating_base is None else floating_base
    return make(kind, path_or_xml, tuple(options.items()))


def _description(section: Section) -> tuple[str, str]:
    """Return the kind and the file of the one description in `section`."""
    given = [(kind, text) for kind in DESCRIPTIONS if (text := section.take(kind, str, ""))]
    if len(given) != 1:
        raise ConfigError(f"{section.where}: got {len(given)} descriptions, allowed: one of {', '.join(DESCRIPTIONS)}")
    return given[0]


def read_servo(top: Section, robot: Robot) -> Servo | None:
    """Read the gains of the joints that follow positions and velocities; None where there are none."""
    stiffness, damping = {}, {}
    for section in top.named_sections("servo"):
        stiffness[section.name], damping[section.name] = read_gains(section)
    return Servo(robot, stiffness, damping) if stiffness else None


def read_gains(section: Section) -> tuple[float, float]:
    """Read stiffness [N m/rad, N/m] and damping [N m s/rad, N s/m] of a joint."""
    gains = section.take("stiffness", float, 0.0), section.take("damping", float, 0.0)
    section.finish()
    return gains


DESCRIPTIONS: dict[str, Callable[..., Robot]] = {
    "urdf": Robot.from_urdf,
    "sdf": Robot.from_sdf,
    "mjcf": Robot.from_mjcf,
}


def read_collisions(top: Section, base: Path, always: bool = False) -> Collisions | None:
    """Read the scene and how collision geometry touches it; None where there is neither, unless it is `always` used."""
    scene = {section.name: _read_body(section, base) for section in top.named_sections("scene")}
    section = top.section("collisions")
    values = section.take_attributes(Collisions, "scene", "law", "srdf", "excluded")
    law, srdf = section.take("law", str, "rigid"), section.take("srdf", str, "")
    section.finish()
    if not (scene or values["self_collision"] or always):
        return None
    return Collisions(scene, law=make_law(law, {}), srdf=resolve_path(srdf, base) if srdf else "", **values)


def _read_body(section: Section, base: Path) -> SceneBody:
    """Read a body of the scene by its kind."""
    kind = section.take("kind", str)
    pose = {"position": section.take("position", tuple, (0.0, 0.0, 0.0))} if kind != "plane" else {}
    if kind in ("box", "mesh"):
        pose["rpy"] = section.take("rpy", tuple, (0.0, 0.0, 0.0))
    body: SceneBody
    if kind == "plane":
        body = Plane(section.take("normal", tuple, (0.0, 0.0, 1.0)), section.take("offset", float, 0.0))
    elif kind == "box":
        body = Box(section.take("size", tuple), **pose)
    elif kind == "sphere":
        body = Sphere(section.take("radius", float), **pose)
    elif kind == "mesh":
        body = Mesh(resolve_path(section.take("file", str), base), **pose)
    else:
        raise UnknownName("kind of scene body", kind, ("plane", "box", "sphere", "mesh"))
    section.finish()
    return body


def read_contact(section: Section) -> PointContact:
    """Read a PointContact; the keys are those of constrained_sim/msg/Contact."""
    values = section.take_attributes(PointContact, "name", "point", "surface", "law")
    values["point"] = section.take("point", tuple, (0.0, 0.0, 0.0))
    values["surface"] = Plane(section.take("normal", tuple, (0.0, 0.0, 1.0)), section.take("offset", float, 0.0))
    values["law"] = _read_law(section)
    section.finish()
    return PointContact(section.name, **values)


def _read_law(section: Section) -> Law:
    """Read the law of a contact; the keys of soft laws are their attributes."""
    parameters = {key: section.take(key, float, None) for key in LAW_PARAMETERS}
    name = section.take("law", str, "rigid")
    return make_law(name, {key: value for key, value in parameters.items() if value is not None})


LAW_PARAMETERS = tuple(
    dict.fromkeys(f.name for law in LAWS.values() for f in fields(law) if f.name != "law")  # type: ignore[arg-type]
)


def read_constraint(section: Section) -> Constraint:
    """Read a constraint by its kind; the keys are its attributes."""
    kind = lookup("kind of constraint", section.take("kind", str), DECLARABLE)
    return section.take_declaration(kind)


DECLARABLE: dict[str, type[Constraint]] = {
    name: kind for name, kind in CONSTRAINTS.items() if kind not in (PointContact, CustomConstraint)
}
"""Constraints that a file can declare, by kind: contacts have a section of their own, functions stand in no file."""


def read_sensor(section: Section) -> Sensor:
    """Read a sensor by its kind; the keys are its attributes."""
    return section.take_declaration(lookup("kind of sensor", section.take("kind", str), SENSORS))


def read_initial(section: Section, robot: Robot) -> tuple[Array, Array]:
    """Read a configuration (nq,) and a velocity (nv,) of `robot`."""
    positions = section.section("positions").remaining()
    velocities = section.section("velocities").remaining()
    base = section.take("base_pose", tuple, None)
    twist = section.take("base_twist", tuple, None)
    section.finish()
    v = np.zeros(robot.nv)
    for name, value in velocities.items():
        if name not in robot.velocity_names:
            raise UnknownName("joint velocity", name, robot.velocity_names)
        v[robot.velocity_names.index(name)] = number(f"velocity of {name!r}", value)
    if twist is not None:
        if not robot.floating_base:
            raise InvalidValue("base_twist", list(twist), "none: this robot has no floating base")
        v[:6] = finite_array("base_twist", twist, (6,))
    return robot.configuration(positions, base), v
