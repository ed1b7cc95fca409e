"""WorldObject: a body, or several in joints, beside the robot."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
import pinocchio as pin

from constrained_sim.exceptions import InvalidValue
from constrained_sim.late_imports import call_late
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array, finite_array, lookup, number, read_only, unit_pose

LEAST_MOMENT = 1e-11
"""[kg m^2] Least moment of inertia of a shape, that of a ball of 1 mg and 5 mm: lighter ones sink into rounding."""

HERE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class WorldObject:
    """A body, or several in joints, beside the robot: a box to push, a ball, a door.

    Attributes:
        name: unique; letters, digits and underscores, no digit first. Its links and joints are called ``name/...``.
        body: what it is, as a description says: with a floating base it moves freely, else it is mounted on the world.
            Its own gravity does not count, the robot's does.
        pose: (7,) position [m] and quaternion xyzw where it begins, world frame: of the base link of what moves freely;
            of what is mounted, the frame that its description calls the world. Normalised on creation.

    Raises:
        InvalidValue: another name, no robot, or a pose that is not one.
    """

    name: str
    body: Robot
    pose: Sequence[float] = HERE
    _mark: str = field(default_factory=lambda: uuid4().hex, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check all values."""
        if not isinstance(self.name, str) or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", self.name):
            raise InvalidValue("name of an object", self.name, "letters, digits and underscores, no digit first")
        checked_robot(self.body)
        if self.body.objects:
            raise InvalidValue(f"body of object {self.name!r}", self.body, "a robot without objects beside it")
        object.__setattr__(self, "pose", read_only(unit_pose(f"pose of object {self.name!r}", self.pose)))

    @classmethod
    def box(
        cls, name: str, size: Sequence[float], mass: float, friction: float | None = None, pose: Any = HERE
    ) -> WorldObject:
        """Return a box of homogeneous density that moves freely.

        Args:
            name: see :class:`WorldObject`.
            size: (3,) edge lengths [m].
            mass: [kg].
            friction: Coulomb coefficient; None: none of its own.
            pose: (7,) of its middle.

        Raises:
            InvalidValue: a length or a mass that is not positive, or a negative friction.
        """
        return cls(name, primitive("box", size, mass, friction), pose)

    @classmethod
    def sphere(
        cls, name: str, radius: float, mass: float, friction: float | None = None, pose: Any = HERE
    ) -> WorldObject:
        """Return a ball of homogeneous density that moves freely.

        Args:
            name: see :class:`WorldObject`.
            radius: [m].
            mass: [kg].
            friction: Coulomb coefficient; None: none of its own.
            pose: (7,) of its middle.

        Raises:
            InvalidValue: a length or a mass that is not positive, or a negative friction.
        """
        return cls(name, primitive("sphere", (radius,), mass, friction), pose)

    @classmethod
    def cylinder(
        cls, name: str, radius: float, length: float, mass: float, friction: float | None = None, pose: Any = HERE
    ) -> WorldObject:
        """Return a cylinder of homogeneous density about its z axis that moves freely.

        Args:
            name: see :class:`WorldObject`.
            radius: [m].
            length: along z [m].
            mass: [kg].
            friction: Coulomb coefficient; None: none of its own.
            pose: (7,) of its middle.

        Raises:
            InvalidValue: a length or a mass that is not positive, or a negative friction.
        """
        return cls(name, primitive("cylinder", (radius, length), mass, friction), pose)

    @property
    def prefix(self) -> str:
        """What the names of its links and joints begin with."""
        return f"{self.name}/"

    @property
    def base_link(self) -> str:
        """Name of the link that carries all others, among the names of all links."""
        return self.prefix + self.body.root_link

    def placed(self, pose: Any) -> WorldObject:
        """Return this object with another `pose` (7,), see :class:`WorldObject`.

        Raises:
            InvalidValue: no pose.
        """
        return replace(self, pose=pose)

    def is_same(self, other: WorldObject) -> bool:
        """Return whether the `other` is this object, or a copy of it, as one that was pickled; not one like it."""
        return self._mark == other._mark

    @cached_property
    def _assembled(self) -> Array:
        """(nq,) a configuration within position limits near the neutral one, in which its own constraints hold."""
        q = self.body.within_limits(self.body.configuration({}))
        if not self.body.constraints:
            return q
        assembled: Array = call_late("assemble", self.body, q, ()).q
        return assembled

    def configuration(self) -> Array:
        """Return (nq,) the configuration in which it begins: joints at zero, or as limits and own constraints need."""
        q = self._assembled.copy()
        if self.body.floating_base:
            q[:7] = self.pose
        return q

    def rotation(self) -> Array:
        """Return (3, 3) the rotation from its axes to the world's, where it begins."""
        return np.array(pin.XYZQUATToSE3(np.asarray(self.pose)).rotation)

    def mount(self) -> pin.SE3:
        """Return the placement of its description's world in the world of the simulation."""
        return pin.SE3.Identity() if self.body.floating_base else pin.XYZQUATToSE3(np.asarray(self.pose))


class Primitive(NamedTuple):
    """A shape of homogeneous density.

    Attributes:
        sizes: names of its lengths in a URDF, with the number of values of each.
        moments: principal moments (3,) of inertia per mass [m^2], of its lengths.
    """

    sizes: dict[str, int]
    moments: Callable[..., tuple[float, float, float]]


def _cylinder_moments(radius: float, length: float) -> tuple[float, float, float]:
    across = radius * radius / 4.0 + length * length / 12.0
    return across, across, radius * radius / 2.0


PRIMITIVES: dict[str, Primitive] = {
    "box": Primitive({"size": 3}, lambda x, y, z: ((y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12)),
    "sphere": Primitive({"radius": 1}, lambda radius: (0.4 * radius * radius,) * 3),
    "cylinder": Primitive({"radius": 1, "length": 1}, _cylinder_moments),
}
"""Shapes that an object may be, by name."""


def primitive(shape: str, size: Sequence[float], mass: float, friction: float | None = None) -> Robot:
    """Return a body of homogeneous density that moves freely, its one link called ``body``.

    Args:
        shape: a name in :data:`PRIMITIVES`.
        size: its lengths [m], in the order of a URDF.
        mass: [kg].
        friction: Coulomb coefficient; None: none of its own.

    Raises:
        UnknownName: no such shape.
        InvalidValue: a length or a mass that is not positive, another number of lengths, or a negative friction.
    """
    kind = lookup("shape of an object", shape, PRIMITIVES)
    what = f"{' and '.join(kind.sizes)} of a {shape}"
    lengths = finite_array(what, size, (sum(kind.sizes.values()),)).tolist()
    if min(lengths) <= 0.0:
        raise InvalidValue(what, lengths, "positive lengths")
    mass = number(f"mass of a {shape}", mass, 0.0, open_lower=True)
    moments = [mass * moment for moment in kind.moments(*lengths)]
    if not (min(moments) >= LEAST_MOMENT and np.isfinite(moments).all()):
        allowed = f"with this mass, {mass:g} kg, moments of inertia from {LEAST_MOMENT:g} kg m^2 on"
        raise InvalidValue(what, lengths, allowed)
    inertia = " ".join(f'{key}="{value!r}"' for key, value in zip(("ixx", "iyy", "izz"), moments, strict=True))
    values = iter(lengths)
    sizes = " ".join(
        f'{key}="{" ".join(repr(next(values)) for _ in range(count))}"' for key, count in kind.sizes.items()
    )
    geometry = f"<geometry><{shape} {sizes}/></geometry>"
    rough = ""
    if friction is not None:
        rough = f'<gazebo reference="body"><mu1>{number(f"friction of a {shape}", friction, 0.0)!r}</mu1></gazebo>'
    return Robot.from_urdf(
        f'<robot name="{shape}"><link name="body"><inertial><mass value="{mass!r}"/>'
        f'<inertia {inertia} ixy="0" ixz="0" iyz="0"/></inertial>'
        f"<visual>{geometry}</visual><collision>{geometry}</collision></link>{rough}</robot>",
        floating_base=True,
        actuated_joints=(),
    )
