"""Assembly: a configuration that closes all loops, found from a rough guess."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from constrained_sim.constraints import BoundConstraint, Constraint, ConstraintStack
from constrained_sim.dynamics.dynamics import Dynamics, integrate, tangent_derivative
from constrained_sim.linalg.rank import TINY, least_squares
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.stabilization import ACCEPTABLE_VIOLATION, bilateral_members
from constrained_sim.validation import Array, lookup, names, number, read_only

EVALUATIONS = 500
"""Largest number of evaluations of a method, far above the dozens of a search that succeeds."""

ROUNDING = 1e-15
"""Relative step, and gradient, with which the trust-region method ends: it goes on to rounding."""

NEAR = 1.0
"""Longest step [rad, m] of Gauss-Newton's method that is taken: a longer one says nothing of where it leads."""

STRIDE = 0.2
"""Longest step [rad, m] from a guess that is not nearly closed: longer ones let rounding choose between solutions."""

SHORTEST = 2.0**-10
"""Least part of a step that is tried."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """Result of :func:`assemble`.

    Attributes:
        q: (nq,) configuration, within the position limits.
        residual: largest violation there [m, rad].
        violations: the largest of each constraint, by name [m, rad].
    """

    q: Array
    residual: float
    violations: dict[str, float]

    @property
    def closed(self) -> bool:
        """Whether all constraints hold."""
        return self.residual <= ACCEPTABLE_VIOLATION


def assemble(
    robot: Robot, q: Any, constraints: Iterable[Constraint], held: Sequence[str] = (), t: float = 0.0
) -> Assembly:
    """Find a configuration near `q` that satisfies all `constraints`, within the robot's position limits.

    Three methods take turns until the constraints hold. The first is Gauss-Newton with steps of least norm, which stays
    near a guess that is nearly closed. The second takes steps so short that they follow the path ``q' = -J^+ phi(q)``
    (Davidenko, 1953); each reduces ``|phi|``. The third is least squares on ``|phi|^2`` over the tangent space at q, by
    SciPy's trust-region-reflective method, whose steps are safe where the Jacobian loses rank; it leaves out the limits
    first, which bend its path however far away they are. Each ends with Gauss-Newton steps to rounding. The search is
    local: if no method closes the loops, the residual says so, and another guess may help.

    Args:
        robot: the robot.
        q: (nq,) guess; a joint beyond its limits starts at the limit.
        constraints: bilateral constraints, in any number and rank; those of velocity level are left out.
        held: names of joints that stay where they are.
        t: time, for constraints that depend on it [s].

    Returns:
        q (nq,) and what is left of the violations: an :class:`~constrained_sim.assembly.Assembly`.

    Raises:
        InvalidValue: wrong length, NaN, infinity, or a contact among the constraints.
        UnknownName: a joint or link that does not exist.
    """
    q = checked_robot(robot).checked_configuration(q)
    return assemble_members(robot, q, bilateral_members(robot, q, constraints), names("held", held), number("t", t))


def assemble_members(
    robot: Robot, q: Array, members: Iterable[BoundConstraint], held: Sequence[str] = (), t: float = 0.0
) -> Assembly:
    """Do what :func:`assemble` does for constraints that are bound."""
    q = robot.within_limits(q)
    free = _free_velocities(robot, held)
    search = _Search(robot, tuple(member for member in members if member.is_position_level), q, t, free)
    if not search.bound.dim or not free.size:
        return search.result(q)
    guess = search.result(q)
    found = search.refine(guess)
    if not found.closed:
        found = search.refine(search.follow(guess))
    return found if found.closed else search.refine(search.run())


class _Search:
    """The least-squares problem in tangent coordinates x about q."""

    def __init__(
        self, robot: Robot, members: tuple[BoundConstraint, ...], q: Array, t: float, free: npt.NDArray[np.intp]
    ) -> None:
        self.bound = ConstraintStack(members, robot.nv)
        self._robot, self._q, self._t, self._free = robot, q, t, free
        self._dynamics = Dynamics(robot)

    def run(self) -> Assembly:
        """Return what the trust-region method finds: within the limits by itself, or kept there."""
        lower, upper = (limit[self._free] for limit in self._robot.tangent_limits(self._q))
        x = self._least_squares(-np.inf, np.inf)
        if (x < lower).any() or (x > upper).any():
            x = self._least_squares(lower, upper)
        return self.result(self._at(x))

    def _least_squares(self, lower: Array | float, upper: Array | float) -> Array:
        found = scipy.optimize.least_squares(
            self._violation,
            np.zeros(len(self._free)),
            self._derivative,
            bounds=(lower, upper),
            ftol=None,
            xtol=ROUNDING,
            gtol=ROUNDING,
            max_nfev=EVALUATIONS,
        )
        return np.asarray(found.x)

    def refine(self, assembly: Assembly) -> Assembly:
        """Take Gauss-Newton steps within the limits, as long as each is short and leaves less than half of phi."""
        while True:
            x = self._step(assembly.q, np.inf)
            if np.abs(x).max() > NEAR:
                return assembly
            better = self.result(self._within(assembly.q, x))
            if not better.residual < 0.5 * assembly.residual:
                return assembly
            assembly = better

    def follow(self, assembly: Assembly) -> Assembly:
        """Follow the path of Gauss-Newton's method in short steps, to where the last one would begin or it ends."""
        for _ in range(EVALUATIONS):
            x = self._step(assembly.q, STRIDE)
            if np.abs(x).max() < 0.25 * STRIDE:
                break
            violation, part = float(np.linalg.norm(self._phi(assembly.q))), 1.0
            while part > SHORTEST:
                q = self._within(assembly.q, part * x)
                if np.linalg.norm(self._phi(q)) < (1.0 - 0.1 * part) * violation:
                    break
                part *= 0.5
            else:
                break
            assembly = self.result(q)
        return assembly

    def _step(self, q: Array, longest: float) -> Array:
        """Return the Gauss-Newton step of least norm at q within the limits, no entry of it beyond `longest`."""
        self._dynamics.update_kinematics(q, self._t)
        J, phi = self.bound.jacobian(self._dynamics)[:, self._free], self.bound.phi(self._dynamics)
        lower, upper = (limit[self._free] for limit in self._robot.tangent_limits(q))
        x = -least_squares(J, phi)
        x *= min(1.0, longest / max(float(np.abs(x).max()), TINY))
        if (x < lower).any() or (x > upper).any():
            bounds = np.clip(lower, -longest, 0.0), np.clip(upper, 0.0, longest)
            x = scipy.optimize.lsq_linear(J, -phi, bounds, method="bvls").x
        return np.asarray(x)

    def _within(self, q: Array, x: Array) -> Array:
        """Return the configuration that the step x (free velocities) leads to from q, within the limits."""
        step = np.zeros(self._robot.nv)
        step[self._free] = x
        return self._robot.within_limits(integrate(self._robot, q, step))

    def _phi(self, q: Array) -> Array:
        self._dynamics.update_kinematics(q, self._t)
        return self.bound.phi(self._dynamics)

    def result(self, q: Array) -> Assembly:
        """Judge the configuration `q` (nq,)."""
        self._dynamics.update_kinematics(q, self._t)
        phi = np.abs(self.bound.phi(self._dynamics))
        violations = {name: float(phi[rows].max()) for name, rows in self.bound.slices.items()}
        return Assembly(read_only(q), max(violations.values(), default=0.0), violations)

    def _at(self, x: Array) -> Array:
        step = np.zeros(self._robot.nv)
        step[self._free] = x
        return integrate(self._robot, self._q, step)

    def _violation(self, x: Array) -> Array:
        return self._phi(self._at(x))

    def _derivative(self, x: Array) -> Array:
        self._dynamics.update_kinematics(self._at(x), self._t)
        step = np.zeros(self._robot.nv)
        step[self._free] = x
        J = self.bound.jacobian(self._dynamics) @ tangent_derivative(self._robot, self._q, step)
        return np.asarray(J[:, self._free])


def _free_velocities(robot: Robot, held: Sequence[str]) -> npt.NDArray[np.intp]:
    """Return the velocity indices of all joints but those `held`."""
    free = np.ones(robot.nv, dtype=bool)
    for name in held:
        joint = lookup("joint", name, robot.joint_models)
        free[joint.idx_v : joint.idx_v + joint.nv] = False
    return np.flatnonzero(free)
