"""PointDistance: two points keep their distance, as the ends of a rod with ball joints do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from constrained_sim.constraints.bilateral_rows import LEAST_LENGTH, BilateralRows, distance_line, distance_row
from constrained_sim.constraints.constraint import BetweenLinks, BoundConstraint, checked_links, checked_name, sign_on
from constrained_sim.dynamics import kinematics
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, finite_array, number, read_only


@dataclass(frozen=True, eq=False)
class PointDistance(BetweenLinks):
    """``|p_a - p_b| = distance``: a rod without mass between a point of one link and a point of another.

    ``phi = |p_a - p_b| - distance`` [m], ``J = n^T (J_a - J_b)`` with n from p_b to p_a,
    ``gamma = n^T (a_a - a_b) + (|u|^2 - (n^T u)^2) / |p_a - p_b|`` with u the relative velocity. The multiplier is the
    thrust in the rod [N], negative where it pulls.

    Attributes:
        name: unique name.
        link_a: link or frame.
        point_a: (3,) [m], in link_a.
        link_b: link or frame, or ``"world"``.
        point_b: (3,) [m], in link_b.
        distance: [m], more than 0; None: what it is when the constraint is bound.

    Raises:
        InvalidValue: a point that is not finite, or a distance that is not positive.
    """

    name: str
    link_a: str
    point_a: Sequence[float] = (0.0, 0.0, 0.0)
    link_b: str = WORLD
    point_b: Sequence[float] = (0.0, 0.0, 0.0)
    distance: float | None = None

    kind = "point_distance"
    lasts = True
    targets = ("distance",)

    def __post_init__(self) -> None:
        """Check the values."""
        checked_name(self.name)
        what = f"of point distance {self.name!r}"
        checked_links(what, self.link_a, self.link_b)
        for point in ("point_a", "point_b"):
            object.__setattr__(self, point, read_only(finite_array(f"{point} {what}", getattr(self, point), (3,))))
        if self.distance is not None:
            object.__setattr__(self, "distance", number(f"distance {what}", self.distance, 0.0, open_lower=True))

    def bind(self, robot: Robot, q: Array) -> BoundPointDistance:
        """Return its row on `robot`; a distance that is None is the one at `q` (nq,).

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidValue: the distance is None, and the points are in one place.
        """
        return BoundPointDistance(self, robot, q)


class BoundPointDistance(BoundConstraint):
    """A :class:`PointDistance` on one robot."""

    dim = 1

    def __init__(self, declaration: PointDistance, robot: Robot, q: Array) -> None:
        """Resolve the links of `declaration`."""
        self.declaration: PointDistance = declaration
        ends = (declaration.link_a, declaration.point_a), (declaration.link_b, declaration.point_b)
        joints, offsets = zip(*(robot.link_point(link, point) for link, point in ends), strict=True)
        self._joints, self._offsets = np.array(joints), np.array(offsets)
        wanted, self._nv = declaration.distance, robot.nv
        self._distance = self._line(kinematics_at(robot, q))[1] if wanted is None else wanted

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (1,) [m]."""
        _, length, _ = self._line(dynamics)
        return np.array([length - self._distance])

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (1, nv): along the line, p_a moves apart from p_b as from the point of link_b that is at p_a now."""
        line, where = (self._joints, self._offsets, self._line(dynamics)[2]), (dynamics.placements, dynamics.joint_axes)
        return np.asarray(distance_row(*line, *where, dynamics.robot.support))

    def arrays(self) -> BilateralRows:
        """Return the row as kernels know it."""
        return BilateralRows.without_function(1, self._nv)._replace(
            distances=np.zeros(1, dtype=np.int64),
            distance_joints=self._joints[None],
            distance_offsets=self._offsets[None],
            lengths=np.array([self._distance]),
        )

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (1,) [m/s^2]: accelerations of the points along the line, and the centripetal one of its turning."""
        points, length, direction = self._line(dynamics)
        bodies = [dynamics.body(int(joint)) for joint in self._joints]
        (v_a, a_a), (v_b, a_b) = (
            (kinematics.velocity_at(body, point), kinematics.bias_at(body, point))
            for body, point in zip(bodies, points, strict=True)
        )
        u = v_a - v_b
        return np.array([direction @ (a_a - a_b) + (u @ u - (direction @ u) ** 2) / length])

    def wrench(self, dynamics: Dynamics, multipliers: Array, link: str) -> Array:
        """Return (6,) force on `link` at p_a, no moment there, world axes: the line goes through p_a."""
        return np.concatenate([sign_on(self, link) * multipliers[0] * self._line(dynamics)[2], np.zeros(3)])

    def wrench_point(self, dynamics: Dynamics) -> Array:
        """Return (3,) p_a [m], world frame."""
        return dynamics.point_positions(self._joints[:1], self._offsets[:1])[0]

    def _line(self, dynamics: Dynamics) -> tuple[Array, float, Array]:
        """Return (2, 3) the points [m], their distance [m] and (3,) the direction from the second to the first.

        Raises:
            InvalidValue: they are in one place: the line between them has no direction.
        """
        points, length, direction = distance_line(self._joints, self._offsets, dynamics.placements)
        if not length > LEAST_LENGTH:
            raise InvalidValue(f"distance of {self.name!r}", length, "more than 0: else it has no direction")
        return points, length, direction
