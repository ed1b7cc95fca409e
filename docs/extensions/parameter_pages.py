"""The pages of the node's parameters and of the parameter file, from the dataclasses and the readers themselves."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, NamedTuple

from constrained_sim import SENSORS, Collisions, PointContact, Robot, config_sections
from constrained_sim.collision.scene import Box, Mesh, Sphere
from constrained_sim.config_sections import DECLARABLE, DESCRIPTIONS, Section
from constrained_sim.contact import LAWS
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.objects import PRIMITIVES
from constrained_sim.options import CHANGEABLE, NodeOptions, SimulationOptions
from constrained_sim.ros.attribute_docs import attribute_docs
from constrained_sim.shipped import share_folder

NODE = """# Parameters

Every parameter of the node, and the key of the same name at the top of a parameter file. `ros2 param describe` tells
the same. Those marked with a star can be changed while the node runs; the service `~/set_solver` takes the same path.

"""

FILE = """# Parameter file

A parameter file has the layout of ROS 2: `/**: ros__parameters:` stands above everything; without ROS it may be left
out. Every key is read or refused. The keys at the top are the [parameters](node.md); the sections follow here.
`config/leg.yaml` is a complete example with comments.

"""

PLACEHOLDERS: dict[type, Any] = {str: "x", float: 1.0, int: 1, bool: False, tuple: (1.0, 0.0, 0.0)}
SCENE = {"plane": None, "box": Box, "sphere": Sphere, "mesh": Mesh}


class Key(NamedTuple):
    """A key that a reader asks for: its kind and its default, MISSING where it has to be given."""

    name: str
    kind: type
    default: Any


class Probe(Section):
    """A section that gives readers a placeholder for every key, and notes what they ask for."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        """Give readers the values of `given`, and placeholders else."""
        super().__init__("probe", {})
        self.name, self.given, self.keys = "name", dict(given or {}), []

    def take(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """Note the key, and return a value that lets the reader go on."""
        self.keys.append(Key(key, kind, default))
        return self.given.get(key, PLACEHOLDERS[kind] if default is MISSING else default)

    def section(self, key: str) -> Section:
        """Note what is asked for in a section as if it were asked for here."""
        return self

    def named_sections(self, key: str) -> Iterator[Section]:
        """Yield none: what stands under a name has a page of its own."""
        return iter(())


def keys_of(read: Callable[..., object], given: Mapping[str, Any], *more: Any) -> list[Key]:
    """Return the keys that a reader asks for, but those that `given` decides."""
    probe = Probe(given)
    with suppress(ConstrainedSimError):  # placeholders need not make sense; the keys are known by then
        read(probe, *more)
    return [key for key in probe.keys if key.name not in given]


def default_of(value: Any) -> str:
    """Return a default as a file would say it."""
    if value is MISSING:
        return "required"
    if value is None or value in ("", ()):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else list(value) if isinstance(value, tuple) else value}`"


def table(rows: Iterator[tuple[str, str, str]]) -> str:
    """Return a table of keys, defaults and meanings."""
    lines = [f"| {name} | {default} | {text.replace('|', chr(92) + '|')} |" for name, default, text in rows]
    return "\n".join(["| key | default | meaning |", "|---|---|---|", *lines]) + "\n\n"


def keys_table(keys: list[Key], docs: Mapping[str, str]) -> str:
    """Return the table of what a reader asks for, described by the attributes of what it makes."""
    return table((f"`{key.name}`", default_of(key.default), sentence(docs.get(key.name, ""))) for key in keys)


def allowed(option: Field[Any], text: str) -> str:
    """Return what values an option takes, as far as its field says, and its `text` does not."""
    limits = option.metadata
    if names := limits.get("allowed"):
        is_told = all(f"``{name}``" in text for name in names)
        return "" if is_told else f" One of {', '.join(f'`{name}`' for name in names)}."
    if "lower" not in limits:
        return ""
    upper = f", at most {limits['upper']:g}" if "upper" in limits else ""
    return f" {'Above' if limits['open'] else 'At least'} {limits['lower']:g}{upper}."


def sentence(text: str) -> str:
    """Return `text` of a docstring as a sentence in Markdown."""
    text = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"`\1`", text).replace("``", "`").strip()
    return text and text[:1].upper() + text[1:].rstrip(".") + "."


def options(kind: type) -> str:
    """Return the table of a dataclass of options."""
    docs = attribute_docs(kind)
    return table(
        (
            f"`{option.name}`{'*' if option.name in CHANGEABLE else ''}",
            default_of(option.default),
            sentence(docs[option.name]) + allowed(option, docs[option.name]),
        )
        for option in fields(kind)
    )


def node() -> str:
    """Return the page of the node's parameters."""
    return f"{NODE}## Simulation\n\n{options(SimulationOptions)}## Node\n\n{options(NodeOptions)}"


def parameter_file() -> str:
    """Return the page of the sections of a parameter file."""
    sections = (_robot, _servo, _initial, _contacts, _constraints, _scene, _objects, _collisions, _sensors)
    return FILE + "".join(section() for section in sections)


def _robot() -> str:
    properties = (Robot.with_joints.__doc__ or "").partition("by joint:")[2].partition("Raises:")[0]
    docs = {
        "floating_base": "put a free-flyer between the world and the root link (not of an MJCF)",
        "gravity": "[m/s^2], world axes; else that of the file, or `[0.0, 0.0, -9.81]` where it has none",
        "actuated_joints": "joints that take efforts, in this order; else all",
    }
    keys = keys_of(config_sections.read_robot, {next(iter(DESCRIPTIONS)): "x"}, Path())
    described = table((f"`{kind}`", "one of three", f"A description in {kind.upper()}.") for kind in DESCRIPTIONS)
    others = keys_table([key for key in keys if key.name not in DESCRIPTIONS], docs)
    about = (
        "One of the first three says which description is read: an absolute path, one relative to the file (of the "
        "node: to the folder where it starts), or "
    )
    joints = f"Under `joints.NAME`, properties of a joint: {sentence(' '.join(properties.split()))}"
    payloads = "Under `payloads`, point masses by link, at its origin [kg]; negative: lighter."
    return f"## robot\n\n{about}`package://NAME/PATH`.\n\n{described}{others}{joints}\n\n{payloads}\n\n"


def _servo() -> str:
    docs = {
        "stiffness": "by which positions are followed [N m/rad, N/m]",
        "damping": "of velocities [N m s/rad, N s/m]",
    }
    about = "Joints that follow positions and velocities which are commanded; the others take efforts alone."
    return f"## servo.NAME\n\n{about}\n\n{keys_table(keys_of(config_sections.read_gains, {}), docs)}"


def _initial() -> str:
    docs = {
        "base_pose": "of a floating base: position [m], then quaternion x y z w; else the origin",
        "base_twist": "of a floating base, in its axes: linear [m/s], then angular [rad/s]; else 0",
    }
    leg = Robot.from_urdf(share_folder() / "urdf" / "leg.urdf")
    about = "`positions` by joint [rad, m], what is left out is neutral; `velocities` by joint [rad/s, m/s], else 0."
    return f"## initial\n\n{about}\n\n{keys_table(keys_of(config_sections.read_initial, {}, leg), docs)}"


def _contacts() -> str:
    docs = {**attribute_docs(PointContact), "law": f"one of {', '.join(f'`{name}`' for name in LAWS)}"}
    docs |= {"normal": "(3,) of the plane, from ground to robot", "offset": "[m] of the plane `normal . x = offset`"}
    docs |= {key: "of a soft law" for key in config_sections.LAW_PARAMETERS}
    text = keys_table(keys_of(config_sections.read_contact, {}), docs)
    return f"## contacts.NAME\n\nA `PointContact`, as in Python.\n\n{text}"


def _constraints() -> str:
    text = "## constraints.NAME\n\nThe key `kind` says which constraint it is; a list of directions is flat.\n\n"
    for kind, made in DECLARABLE.items():
        keys = keys_of(config_sections.read_constraint, {"kind": kind})
        text += f"### {kind}\n\n{keys_table(keys, attribute_docs(made))}"
    return text


def _scene() -> str:
    text = "## scene.NAME\n\nBodies that the collision geometry of the robot touches; `kind` says which.\n\n"
    plane = {"normal": "(3,) from ground to robot", "offset": "[m], `normal . x = offset`"}
    for kind, made in SCENE.items():
        docs = plane if made is None else attribute_docs(made) | {"file": "of the mesh: STL, OBJ or DAE"}
        text += f"### {kind}\n\n{keys_table(keys_of(config_sections._read_body, {'kind': kind}, Path()), docs)}"
    return text


def _objects() -> str:
    docs = {
        "size": "(3,) edge lengths [m]",
        "radius": "[m]",
        "length": "along z [m]",
        "mass": "[kg], of homogeneous density",
        "friction": "Coulomb coefficient; else none of its own",
        "pose": "where it begins: position [m] and quaternion x y z w; of its middle, or its base link",
        "floating_base": "whether it moves freely; else unless the description has a link or a parent called world",
    }
    text = "## objects.NAME\n\nWhat is beside the robot: a shape, or a description.\n\n"
    for shape in PRIMITIVES:
        keys = keys_of(config_sections.read_object, {"shape": shape}, Path())
        text += f"### {shape}\n\n{keys_table(keys, docs)}"
    keys = keys_of(config_sections.read_object, {"shape": "", "urdf": "x"}, Path())
    described = table((f"`{kind}`", "one of three", f"A description in {kind.upper()}.") for kind in DESCRIPTIONS)
    return f"{text}### description\n\n{described}{keys_table([k for k in keys if k.name not in DESCRIPTIONS], docs)}"


def _collisions() -> str:
    text = keys_table(keys_of(config_sections.read_collisions, {}, Path()), attribute_docs(Collisions))
    return f"## collisions\n\nHow contacts of collision geometry behave.\n\n{text}"


def _sensors() -> str:
    text = "## sensors.NAME\n\nThe key `kind` says which sensor it is.\n\n"
    for kind, made in SENSORS.items():
        keys = keys_of(config_sections.read_sensor, {"kind": kind})
        text += f"### {kind}\n\n{keys_table(keys, attribute_docs(made))}"
    return text
