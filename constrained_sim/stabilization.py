"""Constraint stabilization: Baumgarte's feedback, and projection of positions and velocities."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints import BoundConstraint, Constraint, ConstraintStack
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.contact.contact_set import TOUCHING
from constrained_sim.contact_solvers.delassus import delassus_system, drop_held
from constrained_sim.contact_solvers.smallest_motion import smallest_motion
from constrained_sim.contact_solvers.sticking import solve_sticking
from constrained_sim.dynamics.dynamics import Dynamics, difference, integrate
from constrained_sim.exceptions import InvalidValue, ViolatedConstraint
from constrained_sim.linalg.rank import least_squares
from constrained_sim.robot import Robot, checked_robot, checked_state
from constrained_sim.solvers import DEFAULT, RobotSystem, Solver, System, as_solver
from constrained_sim.validation import Array, check_result, instance, number

PROJECTION_STEPS = 50
"""Largest number of Newton steps of a projection; they converge quadratically, so that more would not help."""

TIME_CONSTANTS = 1e-100, 1e100
"""[s] Of Baumgarte's feedback: the gain ``1 / eps^2`` is a number that is neither zero nor infinite."""

ACCEPTABLE_VIOLATION = 1e-9
"""Violation [m, rad] up to which a projected configuration counts as one that satisfies its constraints."""


class Baumgarte:
    """Baumgarte stabilization: feedback of the violation phi and of the row velocity s.

    ``J a = -gamma - kd s - kp phi`` for rows of position level, ``J a = -gamma - kv s`` for rows of velocity level.
    With one time constant eps [s], ``kd = 2 / eps``, ``kp = 1 / eps^2`` (critical damping), and ``kv = 1 / eps``.

    Source: Tedrake, sec. 1 and 2. (The multiplier of sec. 2 lacks a transpose: with ``J = dpsi/dqdot`` the matrix is
    ``J H^-1 J^T``.)

    Attributes:
        kp: gain on phi [1/s^2].
        kd: gain on s at position level [1/s].
        kv: gain on s at velocity level [1/s].
        each: feedback on single constraints and contacts, by name.
    """

    kp: Any
    kd: Any
    kv: Any

    def __init__(
        self,
        time_constant: float | None = None,
        *,
        kp: float | None = None,
        kd: float | None = None,
        kv: float = 0.0,
        each: Mapping[str, float | Baumgarte] | None = None,
    ) -> None:
        """Set one time constant [s], or separate gains, of all constraints that are not in `each`.

        Args:
            time_constant: eps [s].
            kp: gain on phi [1/s^2]; None: 0.
            kd: gain on s at position level [1/s]; None: 0.
            kv: gain on s at velocity level [1/s].
            each: time constants [s] or feedbacks of single constraints and contacts, by name; in a simulation also of
                such as are added later.

        Raises:
            InvalidValue: a time constant that is not positive, a negative gain, or both kinds at once.
        """
        what = "of Baumgarte's feedback"
        if time_constant is not None:
            if kp is not None or kd is not None or kv:
                raise InvalidValue(f"gains {what}", (kp, kd, kv), "none beside a time constant")
            eps = number(f"time_constant {what}", time_constant, *TIME_CONSTANTS)
            kp, kd, kv = 1.0 / eps**2, 2.0 / eps, 1.0 / eps
        self.kp = number(f"kp {what}", 0.0 if kp is None else kp, 0.0)
        self.kd = number(f"kd {what}", 0.0 if kd is None else kd, 0.0)
        self.kv = number(f"kv {what}", kv, 0.0)
        by_name = instance(f"each {what}", {} if each is None else each, Mapping, "time constants by name")
        self.each = {name: one if isinstance(one, Baumgarte) else Baumgarte(one) for name, one in by_name.items()}

    def for_rows(self, names: Iterable[str]) -> Baumgarte:
        """Return the feedback on the rows of several constraints: itself, or one with (rows,) gains.

        Args:
            names: (rows,) of the constraint that each row belongs to.
        """
        if not self.each:
            return self
        gains = [self.each.get(name, self) for name in names]
        rows = copy.copy(self)
        rows.kp, rows.kd, rows.kv = np.array([(one.kp, one.kd, one.kv) for one in gains]).reshape(-1, 3).T
        return rows

    def feedback(self, phi: Array, s: Array, is_position_level: npt.NDArray[np.bool_] | bool = True) -> Array:
        """Return (rows,) ``kd s + kp phi``, or ``kv s``: what is taken from ``J a`` [m/s^2, rad/s^2].

        Args:
            phi: (rows,) violations [m, rad].
            s: (rows,) row velocities [m/s, rad/s].
            is_position_level: (rows,) which rows have a phi; or whether all have one.
        """
        return np.where(is_position_level, self.kd * s + self.kp * phi, self.kv * s)

    def holds(self, phi: Array, s: Array) -> npt.NDArray[np.bool_]:
        """Return (rows,) which unilateral rows act: closed or violated, and not opening fast enough by themselves.

        ``phi <= 0`` and ``s <= -phi / eps`` with ``1 / eps = sqrt(kp)``, both up to rounding (Tedrake, sec. 3.1).
        """
        return (phi <= TOUCHING) & (s <= np.sqrt(self.kp) * (TOUCHING - phi) + RETURNING)


RETURNING = 1e-12
"""[m/s, rad/s] Up to which a row velocity is rounding."""

METRICS = ("mass", "euclidean")


@dataclass(frozen=True)
class Projection:
    """Projection of the state onto the constraints, where they are violated by more than a tolerance.

    The velocity changes by the least, in the metric, that makes the row velocities vanish. In the mass metric, that of
    the kinetic energy, this never raises the energy if the rows do not depend on time. The configuration moves by
    tangent steps, the least in the same metric, until phi vanishes.

    Attributes:
        metric: ``"mass"``, the norm ``x^T M x``, or ``"euclidean"``, ``x^T x``.
        position_tolerance: largest violation that is left as it is [m, rad].
        velocity_tolerance: largest row velocity that is left as it is [m/s, rad/s]. ``time_stepping`` needs none: its
            velocities obey the rows at the end of each step.

    Raises:
        InvalidValue: another metric, or a negative tolerance.
    """

    metric: str = "mass"
    position_tolerance: float = 1e-11
    velocity_tolerance: float = 1e-12

    def __post_init__(self) -> None:
        """Check the settings."""
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            raise InvalidValue("metric of a projection", self.metric, " or ".join(METRICS))
        for tolerance in ("position_tolerance", "velocity_tolerance"):
            object.__setattr__(self, tolerance, number(f"{tolerance} of a projection", getattr(self, tolerance), 0.0))

    def tangent_step(self, solver: Solver, system: System, phi: Array, held: Array, gaps: Array) -> Array:
        """Return the smallest step x (nv,) with ``J x = -phi`` and ``J_h x = -gaps``; least squares where they clash.

        In the mass metric this is the linear problem of all other jobs, ``M x - J^T lam = 0``; the rows `held` are
        added to it by superposition, or are all that there is. In the Euclidean one it is ``-J^+ phi``, by one
        singular value decomposition.

        Args:
            solver: of the linear problem.
            system: M and the (m, nv) bilateral rows J.
            phi: (m,) their violations [m, rad].
            held: J_h (k, nv), rows of contacts whose position is to stay.
            gaps: (k,) [m].
        """
        if self.metric == "euclidean":
            return -least_squares(np.vstack([system.J, held]), np.concatenate([phi, gaps]))
        if not len(phi):
            return smallest_motion(system.M, system.parents, held, gaps)
        factorization = solver.factor(system)
        x = factorization.solve(np.zeros(system.J.shape[1]), -phi)[0]
        if not len(gaps):
            return x
        response = factorization.solve(held, np.zeros((len(held), len(phi))))[0]
        delassus, error = delassus_system(held, response, x, gaps)
        drop_held(delassus, error, held, np.abs(x), system.free_diagonal(held))
        return x + solve_sticking(delassus, error) @ response

    def velocity(self, solver: Solver, system: System, v: Array, s: Array) -> Array:
        """Return the velocity (nv,) nearest to `v` in the metric for which the row velocities vanish.

        Args:
            solver: of the linear problem in the mass metric.
            system: M and the (m, nv) rows J.
            v: (nv,) velocity.
            s: (m,) its row velocities [m/s, rad/s].
        """
        return v + self.tangent_step(solver, system, s, *no_rows(len(v)))


Stabilization = Baumgarte | Projection


def project_position(
    robot: Robot,
    q: Any,
    constraints: Iterable[Constraint],
    metric: str = "mass",
    about: Any = None,
    solver: str | Solver = DEFAULT,
    t: float = 0.0,
) -> Array:
    """Return the configuration (nq,) near `q` that satisfies the position-level `constraints`.

    They are linearised at q0 (`about`): the tangent step x from q0 with ``g0 + J x = 0`` that ends nearest to q. With
    N an orthonormal basis of the null space of J, in the Euclidean metric ``x = -J^+ g0 + N N^+ (q - q0)``, so that
    ``q0 + x = (I - N N^+)(q0 - J^+ g0) + N N^+ q``. Sums and differences are those of the manifold of configurations:
    a quaternion stays one. The step is repeated about its result until phi vanishes to rounding. These are full Newton
    steps, for a q close by; :func:`~constrained_sim.assembly.assemble` gets there from farther away.

    Args:
        robot: the robot.
        q: (nq,) estimate of the configuration.
        constraints: bilateral constraints; those of velocity level are left out.
        metric: ``"mass"`` or ``"euclidean"``.
        about: (nq,) q0; None: q.
        solver: of the linear problem in the mass metric.
        t: time [s].

    Raises:
        InvalidValue: wrong length, NaN, infinity, an unknown metric, or a contact among the constraints.
        ViolatedConstraint: no configuration nearby satisfies them all.

    Source: Savin, Contact-aware Control, lecture 5, eq. 15 to 20.
    """
    search = _PositionSearch(robot, q, constraints, Projection(metric), as_solver(solver), t)
    goal = search.goal
    here, before = goal if about is None else robot.checked_configuration(about), np.inf
    for _ in range(PROJECTION_STEPS):
        violation, is_start = search.look(here), np.array_equal(here, goal)
        if is_start and (violation == 0.0 or violation > 0.5 * before):
            break
        here = goal = search.step(here, goal)
        before = violation if is_start else np.inf
    search.check(here)
    return here


def position_step(
    robot: Robot,
    q: Any,
    constraints: Iterable[Constraint],
    about: Any = None,
    metric: str = "euclidean",
    t: float = 0.0,
) -> Array:
    """Return the configuration (nq,) after one step of :func:`project_position`; curved rows leave a violation.

    In the Euclidean metric, on coordinates that add up, this is the text's
    ``q = (I - N N^+)(q0 - F^+ g0) + N N^+ q_e``, with F and g0 at q0 (`about`) and q_e the estimate `q`.

    Args:
        robot: the robot.
        q: (nq,) estimate of the configuration.
        constraints: bilateral constraints; those of velocity level are left out.
        about: (nq,) q0; None: q.
        metric: ``"mass"`` or ``"euclidean"``.
        t: time [s].

    Raises:
        InvalidValue: wrong length, NaN, infinity, an unknown metric, or a contact among the constraints.

    Source: Savin, Contact-aware Control, lecture 5, eq. 20.
    """
    search = _PositionSearch(robot, q, constraints, Projection(metric), as_solver(DEFAULT), t)
    here = search.goal if about is None else robot.checked_configuration(about)
    search.look(here)
    return search.step(here, search.goal)


class _PositionSearch:
    """Tangent steps towards a configuration that satisfies position-level constraints."""

    def __init__(
        self,
        robot: Robot,
        q: Any,
        constraints: Iterable[Constraint],
        projection: Projection,
        solver: Solver,
        t: float,
    ) -> None:
        self.goal = checked_robot(robot).checked_configuration(q)
        members = bilateral_members(robot, self.goal, constraints, solver)
        self._bound = ConstraintStack(tuple(member for member in members if member.is_position_level), robot.nv)
        self._dynamics, self._projection, self._solver, self._t = Dynamics(robot), projection, solver, number("t", t)

    def look(self, here: Array) -> float:
        """Evaluate the constraints at `here` (nq,); return the largest violation [m, rad]."""
        self._dynamics.update_inertia(here, self._t)
        self._phi = self._bound.phi(self._dynamics)
        return float(np.abs(self._phi).max(initial=0.0))

    def step(self, here: Array, goal: Array) -> Array:
        """Return what satisfies the rows as linearised at `here`, where one has looked last, nearest to `goal`."""
        robot, J = self._dynamics.robot, self._bound.jacobian(self._dynamics)
        offset, system = difference(robot, here, goal), RobotSystem(self._dynamics, J, self._bound.members)
        x = self._projection.tangent_step(self._solver, system, self._phi + J @ offset, *no_rows(robot.nv))
        return integrate(robot, here, offset + x)

    def check(self, here: Array) -> None:
        """Refuse the violation at `here`.

        Raises:
            ViolatedConstraint: it is more than rounding.
        """
        violation = self.look(here)
        if not violation <= ACCEPTABLE_VIOLATION:  # NaN too
            name = self._bound.row_names[int(np.abs(self._phi).argmax())]
            where = "after the last step of the projection; assemble() searches farther"
            raise ViolatedConstraint(name, violation, ACCEPTABLE_VIOLATION, where)


def project_velocity(
    robot: Robot,
    q: Any,
    v: Any,
    constraints: Iterable[Constraint],
    metric: str = "mass",
    solver: str | Solver = DEFAULT,
    t: float = 0.0,
) -> Array:
    """Return the velocity (nv,) nearest to `v` for which the row velocities of `constraints` vanish at q.

    In the Euclidean metric ``v - J^+ s``, which is ``N N^+ v`` where rows do not depend on time; in the metric of the
    kinetic energy, which this then never raises, the velocity after an inelastic impact of the rows. Rows of the user's
    own that are not linear in v are linearised at `v`: repeated, this leads to where they vanish, as Newton's method.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) estimate of the velocity.
        constraints: bilateral constraints at either level.
        metric: ``"mass"`` or ``"euclidean"``.
        solver: of the linear problem in the mass metric.
        t: time [s].

    Raises:
        InvalidValue: wrong length, NaN, infinity, an unknown metric, or a contact among the constraints.

    Source: Savin, Contact-aware Control, lecture 5, eq. 12 to 14.
    """
    projection, solver = Projection(metric), as_solver(solver)
    q, v = checked_state(robot, q, v)
    bound = ConstraintStack(bilateral_members(robot, q, constraints, solver), robot.nv)
    dynamics = Dynamics.at(robot, q, v, number("t", t))
    system = RobotSystem(dynamics, bound.jacobian(dynamics), bound.members)
    projected = projection.velocity(solver, system, v, bound.velocity(dynamics, v, t))
    check_result("projected velocity", projected)
    return projected


def bilateral_members(
    robot: Robot, q: Array, constraints: Iterable[Constraint], solver: Solver | None = None
) -> tuple[BoundConstraint, ...]:
    """Bind `constraints` at `q` (nq,), all of which must be bilateral, and ones that `solver` can do.

    Raises:
        InvalidValue: a contact among them.
        NotSupported: one that the solver cannot do.
    """
    bound = ConstraintSet.bind(robot, q, constraints)
    if len(bound.contacts):
        raise InvalidValue(
            "constraints",
            list(bound.contacts.slices),
            "bilateral ones: a PointAnchor or JointVelocity holds what only pushes",
        )
    if solver is not None:
        solver.check(bound.declarations)
    return bound.bilateral.members


def no_rows(nv: int) -> tuple[Array, Array]:
    """Return no rows (0, nv) with no violations (0,)."""
    return np.zeros((0, nv)), np.zeros(0)
