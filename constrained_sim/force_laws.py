"""Forces at points by laws of position and velocity, as wrenches for every call that takes some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from constrained_sim.dynamics.dynamics import dynamics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD, Robot, checked_state
from constrained_sim.user_functions import ask_user
from constrained_sim.validation import SHORTEST, Array, finite_array, function, instance, number, read_only
from constrained_sim.wrench import Wrench

PointLaw = Callable[[Array, Array], Any]
"""From position (3,) [m] and velocity (3,) [m/s] to a force (3,) [N], all in world axes."""


def point_force(robot: Robot, q: Any, v: Any, link: str, point: Any, law: PointLaw) -> Wrench:
    """Return the force that a law gives at a point of a link, ``f = Law(p, dp/dt)``, in all directions.

    With ``law = lambda p, s: K * (p0 - p) - D * s`` this is the lecture's soft contact, with K, D (3,) by direction;
    any other function is its generic law, along the surface too. A law that pushes only says so itself.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity.
        link: link or frame.
        point: (3,) [m], in the link.
        law: from p (3,) [m] and dp/dt (3,) [m/s] to the force (3,) on the link [N], world axes.

    Raises:
        InvalidValue: wrong lengths, NaN or infinity, no function, or what it returned.
        UnknownName: no such link.

    Source: lecture "Building a simulator", soft contact model.
    """
    q, v = checked_state(robot, q, v)
    position, velocity = _motion(robot, q, v, link, finite_array("point", point, (3,)))
    force = ask_user(function("law", law, "law(position, velocity) -> force"), position, velocity)
    return Wrench(link, finite_array("force of a law", force, (3,)), point=point)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class SpringDamper:
    """A linear spring and damper between a point of one link and a point of another, or of the world.

    ``f = stiffness (length - rest_length) + damping dlength/dt``, a pull along the line between the points.

    Attributes:
        link_a: link or frame.
        point_a: (3,) [m], in link_a.
        link_b: link or frame, or ``"world"``.
        point_b: (3,) [m], in link_b.
        stiffness: [N/m].
        damping: [N s/m].
        rest_length: [m].

    Raises:
        InvalidValue: a negative or infinite value, or something that is no point.
    """

    link_a: str
    point_a: Sequence[float]
    link_b: str = WORLD
    point_b: Sequence[float] = (0.0, 0.0, 0.0)
    stiffness: float = 0.0
    damping: float = 0.0
    rest_length: float = 0.0

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("a", "b"):
            instance(f"link_{name}", getattr(self, f"link_{name}"), str, "the name of a link")
            point = finite_array(f"point_{name} of a spring", getattr(self, f"point_{name}"), (3,))
            object.__setattr__(self, f"point_{name}", read_only(point))
        for value in ("stiffness", "damping", "rest_length"):
            object.__setattr__(self, value, number(f"{value} of a spring", getattr(self, value), 0.0))

    def wrenches(self, robot: Robot, q: Any, v: Any) -> tuple[Wrench, Wrench]:
        """Return its pull on link_a and the opposite on link_b [N], for ``constrained_acceleration`` or ``step``.

        Args:
            robot: to which it is fastened.
            q: (nq,) configuration.
            v: (nv,) velocity.

        Raises:
            InvalidValue: wrong lengths, NaN or infinity, or two points in one place, where a pull has no direction.
            UnknownName: no such link.
        """
        line, speed = self._line(robot, *checked_state(robot, q, v))
        length = float(np.linalg.norm(line))
        if not length > SHORTEST:
            raise InvalidValue("length of a spring", length, "more than 0: else it has no direction")
        direction = line / length
        pull = self.stiffness * (length - self.rest_length) + self.damping * float(direction @ speed)
        return (
            Wrench(self.link_a, pull * direction, point=self.point_a),  # type: ignore[arg-type]
            Wrench(self.link_b, -pull * direction, point=self.point_b),  # type: ignore[arg-type]
        )

    def energy(self, robot: Robot, q: Any) -> float:
        """Return ``stiffness (length - rest_length)^2 / 2`` [J] for `robot` at q (nq,)."""
        line, _ = self._line(robot, *checked_state(robot, q, np.zeros(robot.nv)))
        return 0.5 * self.stiffness * (float(np.linalg.norm(line)) - self.rest_length) ** 2

    def _line(self, robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
        """Return (3,) the way from the first point to the second [m], and its rate [m/s], world axes."""
        first, second = (
            _motion(robot, q, v, link, np.asarray(point))
            for link, point in ((self.link_a, self.point_a), (self.link_b, self.point_b))
        )
        return second[0] - first[0], second[1] - first[1]


def _motion(robot: Robot, q: Array, v: Array, link: str, point: Array) -> tuple[Array, Array]:
    """Return position (3,) [m] and velocity (3,) [m/s] of a point [m, link frame], world axes."""
    joint, offset = robot.link_point(link, point)
    dynamics, joints = dynamics_at(robot, q, v), np.array([joint])
    position = dynamics.point_positions(joints, offset[None])
    return position[0], dynamics.row_jacobian(joints, position, np.eye(3)[None]) @ v
