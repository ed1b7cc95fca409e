"""Inverse dynamics of robots with holonomic constraints, through independent coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy
from scipy.linalg import qr

from constrained_sim.actuation import actuation_matrix
from constrained_sim.constraints import Constraint, ConstraintStack
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue, NotFollowed
from constrained_sim.linalg.rank import ROW_TOLERANCE, least_squares, unit_columns, without_rounding
from constrained_sim.linalg.row_space import RowSpace
from constrained_sim.robot import Robot, checked_state
from constrained_sim.solvers import RobotSystem, row_residual
from constrained_sim.stabilization import bilateral_members
from constrained_sim.validation import Array, check_result, finite_array, flag, known, names, number, read_only
from constrained_sim.wrench import Wrench, checked_wrenches, generalised_force

FOLLOWED = 1e-9
"""Relative residual up to which the actuators are taken to produce the wanted motion."""

FOLLOWED_WITHIN_LIMITS = 1e-7
"""The same of efforts within limits: non-negative least squares leaves more of the motion than rounding does."""


@dataclass(frozen=True, eq=False)
class InverseDynamics:
    """Result of :func:`inverse_dynamics`.

    Attributes:
        tau: (nu,) efforts [N m, N].
        lam: (rows,) constraint forces [N, N m], of least norm.
        a: (nv,) acceleration of all coordinates.
        independent: names of the independent velocities.
        velocity_map: Gamma (nv, n - rank): ``a = Gamma a_ind + a_bias``, and ``v = Gamma v_ind`` where no row depends
            on time.
        uncontrolled: names of the independent velocities that some combination without an actuator moves.
        residual: ``|M a + h - S^T tau - J_ext^T w - J^T lam|``, relative to its largest term.
        constraint_residual: ``|J a + gamma|``, relative as that of :func:`constrained_acceleration`: not small where no
            acceleration keeps all constraints, as where the robot moves through a singular configuration.
    """

    tau: Array
    lam: Array
    a: Array
    independent: tuple[str, ...]
    velocity_map: Array
    uncontrolled: tuple[str, ...]
    residual: float
    constraint_residual: float


@dataclass(frozen=True, eq=False)
class MinimalCoordinates:
    """The motions that constraints leave: ``v = Gamma v_ind``, ``a = Gamma a_ind + a_bias``.

    From ``J v = 0`` with the columns of J split into independent and dependent ones, ``Gamma`` is the identity on the
    independent rows and ``-J_dep^-1 J_ind`` on the others; ``a_bias`` follows from ``J a + gamma = 0``. Only
    the null space of J matters, so a rank-deficient J is replaced by independent rows that span the same. (The text
    adds ``Gamma^T v = v_ind``. That is not so: ``v_ind`` are the independent entries of v, ``Gamma^+ v``, and
    ``Gamma^T Gamma`` is not the identity.)

    Attributes:
        independent: (n - rank,) indices of velocities.
        velocity_map: Gamma (nv, n - rank).
        a_bias: (nv,).
        row_space: of J.
    """

    independent: npt.NDArray[np.int64]
    velocity_map: Array
    a_bias: Array
    row_space: RowSpace

    @classmethod
    def of(
        cls, J: Array, gamma: Array, row_space: RowSpace, wanted: npt.NDArray[np.int64] | None, names: Sequence[str]
    ) -> MinimalCoordinates:
        """Split the coordinates.

        Args:
            J: (m, nv) of any rank.
            gamma: (m,).
            row_space: of J.
            wanted: indices of the independent velocities; None: the columns that pivoting leaves over.
            names: of the velocities, for messages.

        Raises:
            InvalidValue: not as many wanted as there are freedoms, or velocities that do not determine the others.
        """
        rows = J[row_space.independent]
        nv, rank = J.shape[1], row_space.rank
        if wanted is None:
            wanted = np.sort(qr(rows, mode="r", pivoting=True)[1][rank:]) if rank else np.arange(nv)
        if not len(np.unique(wanted)) == len(wanted) == nv - rank:
            given = [names[i] for i in wanted]
            raise InvalidValue(
                "independent", given, f"{nv - rank} different velocities: {nv} with {rank} independent constraints"
            )
        dependent = np.setdiff1d(np.arange(nv), wanted)
        scaled = rows / row_space.scale[row_space.independent, None]
        pivots, lengths = unit_columns(scaled[:, dependent])
        condition = np.linalg.cond(pivots) if rank else 1.0
        if not condition <= 1.0 / ROW_TOLERANCE:
            given = [names[i] for i in wanted]
            raise InvalidValue("independent", given, "velocities that determine all others here")
        share: Array = -np.linalg.solve(pivots, scaled[:, wanted]).astype(np.float64)
        share = without_rounding(share, float(condition) * np.abs(share).max(axis=0, initial=0.0))
        velocity_map, a_bias = np.zeros((nv, nv - rank)), np.zeros(nv)
        velocity_map[wanted, np.arange(nv - rank)] = 1.0
        velocity_map[dependent] = share / lengths[:, None]
        bias = row_space.reduce(gamma[None])[0] / row_space.scale[row_space.independent]
        a_bias[dependent] = -np.linalg.solve(pivots, bias) / lengths
        return cls(wanted, velocity_map, a_bias, row_space)


def inverse_dynamics(
    robot: Robot,
    q: Any,
    v: Any,
    a_independent: Any,
    constraints: Iterable[Constraint],
    independent: Sequence[str] | None = None,
    wrenches: Iterable[Wrench] = (),
    limited: bool = False,
    t: float = 0.0,
    actuation: Any = None,
) -> InverseDynamics:
    """Return the efforts that give the independent coordinates the accelerations `a_independent` (computed torque).

    The constraint forces drop out of ``(Gamma^T S^T) tau = Gamma^T (M a + h - J_ext^T w)``. With as many actuators as
    freedoms this is solved; with more, the efforts of least norm are taken, within the effort limits on request; with
    fewer, the motion must be one that the actuators can give.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity, consistent with the constraints.
        a_independent: accelerations of the independent velocities, in their order [rad/s^2, m/s^2].
        constraints: bilateral constraints, in any number and rank.
        independent: names of the independent velocities (``robot.velocity_names``); None: chosen by pivoting.
        wrenches: external forces.
        limited: keep the efforts within ``robot.effort_limits`` where there are more actuators than freedoms.
        t: time, for constraints that depend on it [s].
        actuation: B (nv, k), with ``B tau`` in place of ``S^T tau``, tau (k,); None: ``S^T``. A matrix has no limits.

    Returns:
        tau (nu,) and the constraint forces: an :class:`~constrained_sim.inverse_dynamics.InverseDynamics`.

    Raises:
        InvalidValue: wrong lengths, NaN, infinity, limits of a matrix, a contact among the constraints, or independent
            velocities that do not determine the others.
        UnknownName: a velocity that does not exist.
        NonFiniteMotion: values so large that the result is not finite.
        NotFollowed: the actuators cannot give this motion; names the directions.

    Source: Inverse dynamics with holonomic constraints. It prints ``u = gamma^T B^-1 [M a + C v - J_ext^T w]``, but B
    is not square, and ``C v`` has no gravity. The line above it gives
    ``u = (gamma^T B)^-1 gamma^T [M a + h - J_ext^T w]``, in which ``gamma^T B`` is the identity where B selects the
    independent velocities.
    """
    model = _Model(robot, q, v, constraints, independent, t)
    coordinates, M, h = model.coordinates, model.dynamics.M, model.dynamics.h
    names = [robot.velocity_names[i] for i in coordinates.independent]
    wanted = finite_array(f"a_independent of {', '.join(names) or 'nothing'}", a_independent, (len(names),))
    a = coordinates.velocity_map @ wanted + coordinates.a_bias
    external = generalised_force(robot, model.dynamics, checked_wrenches(wrenches))
    needed = M @ a + h - external
    B = actuation_matrix(robot, actuation)
    if flag("limited", limited) and actuation is not None:
        raise InvalidValue("limited", limited, "False, where the actuation is a matrix")
    inputs = without_rounding(coordinates.velocity_map.T @ B, np.abs(coordinates.velocity_map).T @ np.abs(B))
    goal = coordinates.velocity_map.T @ needed
    tau = least_squares(inputs, goal)
    terms = np.abs(M) @ np.abs(a) + np.abs(h) + np.abs(external)  # they may balance each other
    scale = (np.abs(coordinates.velocity_map.T) @ terms).max(initial=0.0)
    missed = inputs @ tau - goal
    if np.abs(missed).max(initial=0.0) > FOLLOWED * scale:
        raise NotFollowed([name for name, part in zip(names, missed, strict=True) if abs(part) > FOLLOWED * scale])
    limits = robot.least_efforts, robot.effort_limits
    if limited and ((tau < limits[0]) | (tau > limits[1])).any():
        tau = _within_limits(inputs, goal, tau, limits, names)
    largest = float(max(terms.max(initial=0.0), np.abs(tau).max(initial=0.0)))
    lam, residual = _constraint_forces(model, needed - B @ tau, largest)
    check_result("inverse dynamics", tau, lam, a)
    force = M @ a - needed + B @ tau
    return InverseDynamics(
        read_only(tau),
        read_only(lam),
        read_only(a),
        tuple(names),
        read_only(coordinates.velocity_map),
        _without_actuator(inputs, names),
        residual,
        row_residual(model.system, force, -model.gamma, a),
    )


def minimal_acceleration(
    robot: Robot,
    q: Any,
    v: Any,
    tau: Any,
    constraints: Iterable[Constraint],
    independent: Sequence[str] | None = None,
    wrenches: Iterable[Wrench] = (),
    t: float = 0.0,
    actuation: Any = None,
) -> Array:
    """Return (nv,) the acceleration from the dynamics in minimal coordinates, without any constraint force.

    ``(Gamma^T M Gamma) a_ind = Gamma^T (S^T tau + J_ext^T w - h - M a_bias)``. Errors are those of
    :func:`inverse_dynamics`.

    Args:
        robot: the robot.
        q: (nq,) configuration.
        v: (nv,) velocity, consistent with the constraints.
        tau: (nu,) efforts of the actuated joints [N m, N].
        constraints: bilateral constraints.
        independent: names of the independent velocities (``robot.velocity_names``); None: chosen by pivoting.
        wrenches: external forces.
        t: time, for constraints that depend on it [s].
        actuation: B (nv, k), with ``B tau`` in place of ``S^T tau``, tau (k,); None: ``S^T``.
    """
    model = _Model(robot, q, v, constraints, independent, t)
    velocity_map, a_bias = model.coordinates.velocity_map, model.coordinates.a_bias
    force = generalised_force(robot, model.dynamics, checked_wrenches(wrenches))
    force -= model.dynamics.h + model.dynamics.M @ a_bias
    B = actuation_matrix(robot, actuation)
    force += B @ finite_array("tau", tau, (B.shape[1],))
    inertia = velocity_map.T @ model.dynamics.M @ velocity_map
    try:
        a = velocity_map @ np.linalg.solve(inertia, velocity_map.T @ force) + a_bias
    except np.linalg.LinAlgError:
        a = np.full(robot.nv, np.nan)
    check_result("minimal acceleration", a)
    return a


class _Model:
    """The robot with its constraints at one state."""

    def __init__(
        self,
        robot: Robot,
        q: Any,
        v: Any,
        constraints: Iterable[Constraint],
        independent: Sequence[str] | None,
        t: float,
    ) -> None:
        q, v = checked_state(robot, q, v)
        bound = ConstraintStack(bilateral_members(robot, q, constraints), robot.nv)
        self.robot, self.dynamics = robot, Dynamics.at(robot, q, v, number("t", t))
        self.system, self.gamma = RobotSystem(self.dynamics, bound.jacobian(self.dynamics)), bound.gamma(self.dynamics)
        self.coordinates = MinimalCoordinates.of(
            self.system.J, self.gamma, self.system.row_space, _indices(robot, independent), robot.velocity_names
        )


def _indices(robot: Robot, independent: Sequence[str] | None) -> npt.NDArray[np.int64] | None:
    """Return the indices of velocities by name; None where none are named."""
    if independent is None:
        return None
    every = robot.velocity_names
    wanted = names("independent", independent)
    return np.array([every.index(known("velocity", name, every)) for name in wanted], dtype=np.int64)


def _constraint_forces(model: _Model, rest: Array, scale: float) -> tuple[Array, float]:
    """Return the multipliers of least norm that make up for the `rest` that efforts leave, and the relative residual.

    That is relative to `scale`, the largest term of the equation of motion [N m, N].
    """
    space = model.coordinates.row_space
    reduced = least_squares(space.scaled(model.system.J).T, rest) / space.independent_scale
    lam = space.expand(reduced[None])[0]
    return lam, float(np.abs(rest - model.system.J.T @ lam).max() / scale) if scale > 0.0 else 0.0


def _without_actuator(actuation: Array, names: Sequence[str]) -> tuple[str, ...]:
    """Return the independent velocities that take part in motions on which no actuator works."""
    left, singular, _ = np.linalg.svd(unit_columns(actuation)[0])
    rank = int(np.sum(singular > ROW_TOLERANCE * singular.max(initial=0.0)))
    free = np.abs(left[:, rank:]).max(axis=1, initial=0.0)
    return tuple(name for name, part in zip(names, free, strict=True) if part > ROW_TOLERANCE)


def _within_limits(
    actuation: Array, goal: Array, start: Array, limits: tuple[Array, Array], names: Sequence[str]
) -> Array:
    """Return the efforts of least norm within `limits` that give the same motion as those of least norm, `start`.

    They differ by ``N z``, N an orthonormal basis of the null space of the actuation, and ``|tau|^2 = |start|^2 +
    |z|^2``: the z of least norm under ``G z >= h`` comes of non-negative least squares (Lawson and Hanson, Solving
    Least Squares Problems, section 23.4).

    Raises:
        NotFollowed: there are none.
    """
    lower, upper = limits
    free = scipy.linalg.null_space(actuation, rcond=ROW_TOLERANCE)
    least = np.concatenate((lower - start, start - upper))
    bounded = np.isfinite(least)
    scale = np.abs(least[bounded]).max()
    rows = np.vstack((np.concatenate((free, -free))[bounded].T, least[bounded] / scale))
    target = np.eye(1, len(rows), len(rows) - 1)[0]
    weights, _ = scipy.optimize.nnls(rows, target)
    rest = rows @ weights - target
    tau = start - scale * free @ (rest[:-1] / rest[-1]) if rest[-1] else start
    tau = np.clip(tau, lower, upper)
    allowed = FOLLOWED_WITHIN_LIMITS * max(np.abs(goal).max(), np.abs(tau).max())
    missed = np.abs(actuation @ tau - goal) > allowed
    if missed.any():
        raise NotFollowed([name for name, part in zip(names, missed, strict=True) if part], "within the limits")
    return tau
