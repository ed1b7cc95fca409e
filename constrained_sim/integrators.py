"""Fixed steps of ``dq/dt = v, dv/dt = a(t, q, v)`` on the manifold of configurations, and their order.

A configuration moves by tangent steps, ``q' = q + x``, which Pinocchio integrates: quaternions stay unit quaternions.
Schemes with several stages work in the coordinates x about the beginning of the step, where ``dx/dt = D(x)^-1 v`` with
D the derivative of the tangent step (Munthe-Kaas, High order Runge-Kutta methods on manifolds, 1999); D is the identity
for all joints but free-flyers and spherical ones. Beside the motion, a scheme integrates rates that depend on it, such
as forces and powers, with the same weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
import scipy

from constrained_sim.dynamics.dynamics import integrate, tangent_rate
from constrained_sim.exceptions import NonFiniteMotion
from constrained_sim.robot import Robot
from constrained_sim.validation import Array

MOST_EVALUATIONS = 100_000
"""Of the equations of motion in one step of the simulation, by an adaptive scheme."""

Field = Callable[[float, Array, Array], tuple[Array, Array]]
"""From t [s], q (nq,), v (nv,) to the acceleration (nv,) and the rates (r,) that are integrated beside it."""


class Integrator(ABC):
    """One fixed step of smooth motion.

    Attributes:
        name: in the registry.
        order: of the global error.
    """

    name: str
    order: int

    @abstractmethod
    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return q (nq,) and v (nv,) after `h` [s], and the integrals (r,) of the rates over the step."""


class SteppingScheme(Integrator):
    """A scheme that velocity-level time stepping can use too: forces at one point of the step.

    With its share theta of the new velocity, a step moves by ``(1 - theta) h v`` to where M, h and J are taken, then
    on by ``theta h v'``. Forces that depend on the velocity are predicted at the one extrapolated to there by the
    previous acceleration, which keeps the step explicit without losing the order, and corrected to the one found.

    Attributes:
        theta: of the velocity at the end in the mean velocity with which positions move.
    """

    theta: float


class ExplicitEuler(Integrator):
    """``v' = v + h a``, ``q' = q + h v``. First order."""

    name = "explicit_euler"
    order = 1

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`."""
        a, rates = field(t, q, v)
        return integrate(robot, q, h * v), v + h * a, h * rates


class Taylor(Integrator):
    """``v' = v + h a``, ``q' = q + h v + h^2 a / 2`` (Savin, Contact-aware Control, lecture 5, eq. 4). First order.

    Exact for a constant acceleration; otherwise the velocity is of first order, and so is all that follows from it.
    """

    name = "taylor"
    order = 1

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`."""
        a, rates = field(t, q, v)
        return integrate(robot, q, h * v + 0.5 * h**2 * a), v + h * a, h * rates


class Lecture(Integrator):
    """``v' = v + h a``, ``q' = q + h v' + h^2 a / 2``: the step of the lecture on legged robots. First order.

    As printed, with the new velocity. For a constant acceleration ``h v + h^2 a / 2`` would be exact
    (:class:`Taylor`), so each step goes too far by ``h^2 a``.

    Source: lecture "Building a simulator", forward Euler integration.
    """

    name = "lecture"
    order = 1

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`."""
        a, rates = field(t, q, v)
        v_plus = v + h * a
        return integrate(robot, q, h * v_plus + 0.5 * h**2 * a), v_plus, h * rates


class BackwardEuler(Integrator):
    """``v' = v + h a(t + h, q', v')``, ``q' = q + h v'``: implicit, stable for stiff forces, dissipative. First order.

    The equations for v' are solved by a quasi-Newton method (MINPACK's hybrid method, with the Jacobian by differences)
    to rounding; nv + 10 evaluations of the equations of motion or so.

    Source: Savin, Contact-aware Control, lecture 5, "backward (implicit) scheme" after eq. 2.
    """

    name = "backward_euler"
    order = 1

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`.

        Raises:
            NonFiniteMotion: no solution was found.
        """

        def error(v_plus: Array) -> Array:
            a, _ = field(t + h, integrate(robot, q, h * v_plus), v_plus)
            return v_plus - v - h * a

        found = scipy.optimize.root(error, v + h * field(t, q, v)[0], method="hybr", tol=SOLVED)
        size = max(1.0, float(np.abs(found.x).max()))
        if not np.abs(found.fun).max() <= ACCEPTABLE * size:
            raise NonFiniteMotion(f"the equations of a step of {self.name!r} were not solved: take a shorter step")
        end = integrate(robot, q, h * found.x)
        return end, found.x, h * field(t + h, end, found.x)[1]


SOLVED, ACCEPTABLE = 1e-13, 1e-9
"""Relative change of the velocity [rad/s, m/s] at which an implicit step is solved, and the error that is let pass."""


class SemiImplicitEuler(SteppingScheme):
    """Forces at the beginning, the whole step with the new velocity. First order."""

    name = "semi_implicit_euler"
    order = 1
    theta = 1.0

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`."""
        a, rates = field(t, q, v)
        v_plus = v + h * a
        return integrate(robot, q, h * v_plus), v_plus, h * rates


class Midpoint(SteppingScheme):
    """Forces in the middle of the step: half of it with the old velocity, half with the new. Second order."""

    name = "midpoint"
    order = 2
    theta = 0.5

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step of the two-stage Runge-Kutta scheme, see :meth:`Integrator.step`."""
        v_mid = v + 0.5 * h * field(t, q, v)[0]
        a, rates = field(t + 0.5 * h, integrate(robot, q, 0.5 * h * v), v_mid)
        return integrate(robot, q, h * v_mid), v + h * a, h * rates


class RK4(Integrator):
    """The classical Runge-Kutta scheme with four stages, in tangent coordinates about the beginning. Fourth order."""

    name = "rk4"
    order = 4

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`."""
        y = np.concatenate([np.zeros_like(v), v])
        slopes: list[Array] = []
        for part in (0.0, 0.5, 0.5, 1.0):
            at = y if not slopes else y + part * h * slopes[-1][: len(y)]
            slopes.append(_slope(field, robot, q, t + part * h, at))
        mean = (slopes[0] + 2.0 * slopes[1] + 2.0 * slopes[2] + slopes[3]) / 6.0
        end, integrals = y + h * mean[: len(y)], h * mean[len(y) :]
        return integrate(robot, q, end[: len(v)]), end[len(v) :], integrals


class Adaptive(Integrator):
    """Runge-Kutta of order 8 by Dormand and Prince with steps chosen for a relative error of 1e-12 (SciPy's DOP853).

    One step of the simulation is at least one step of the scheme.
    """

    name = "adaptive"
    order = 8
    tolerance = 1e-12

    def step(self, field: Field, robot: Robot, t: float, q: Array, v: Array, h: float) -> tuple[Array, Array, Array]:
        """Return the state after one step, see :meth:`Integrator.step`.

        Raises:
            NonFiniteMotion: see :func:`advance`.
        """
        nv, rates = len(v), len(field(t, q, v)[1])
        start = np.concatenate([np.zeros(nv), v, np.zeros(rates)])

        def slope(since: float, y: Array) -> Array:
            return _slope(field, robot, q, t + since, y[: 2 * nv])

        solver = adaptive_solver(slope, start, h, self.tolerance)
        while solver.status == "running":
            advance(solver)
        end = solver.y
        return integrate(robot, q, end[:nv]), end[nv : 2 * nv], end[2 * nv :]


def adaptive_solver(
    slope: Callable[[float, Array], Array],
    start: Array,
    duration: float,
    tolerance: float,
    longest: float = np.inf,
    first: float = np.inf,
) -> scipy.integrate.DOP853:
    """Return SciPy's DOP853 at the beginning of `duration` [s], which it tries in one step.

    Of at most `longest` [s], the first of at most `first` [s].
    """
    first_step = min(duration, longest, first)
    return scipy.integrate.DOP853(slope, 0.0, start, duration, longest, tolerance, tolerance, first_step=first_step)


def advance(solver: scipy.integrate.DOP853) -> None:
    """Do one step of an adaptive scheme.

    Raises:
        NonFiniteMotion: the step size went to zero, or steps have become so short that the motion does not go on, as
            where a mechanism moves into a singular position and forces grow without bound.
    """
    message = solver.step()
    if solver.status == "failed":
        raise NonFiniteMotion(f"the adaptive integrator stopped: {message}")
    if solver.nfev > MOST_EVALUATIONS:
        raise NonFiniteMotion(
            f"the adaptive integrator came {solver.t:.3g} s far with {MOST_EVALUATIONS} evaluations: forces grow "
            "without bound, as in a singular position, or change too fast"
        )


def _slope(field: Field, robot: Robot, q: Array, t: float, y: Array) -> Array:
    """Return the derivative of tangent coordinates, velocity and rates at ``y = [x, v]``."""
    x, v = y[: robot.nv], y[robot.nv :]
    a, rates = field(t, integrate(robot, q, x), v)
    return np.concatenate([tangent_rate(robot, q, x, v), a, rates])


INTEGRATORS: dict[str, type[Integrator]] = {
    kind.name: kind
    for kind in (Midpoint, SemiImplicitEuler, ExplicitEuler, Taylor, Lecture, BackwardEuler, RK4, Adaptive)
}
