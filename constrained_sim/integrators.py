"""Where a time step evaluates the dynamics, and how it moves the configuration."""

from __future__ import annotations

from abc import ABC, abstractmethod

from constrained_sim.dynamics import integrate
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


class Integrator(ABC):
    """One fixed step of the velocity-level time stepping.

    Attributes:
        name: in the registry.
        order: of the global error of smooth motion.
    """

    name: str
    order: int

    @abstractmethod
    def evaluation_point(self, robot: Robot, q: Array, v: Array, a: Array, h: float) -> tuple[Array, Array]:
        """Return the configuration and the velocity at which M, h and J are taken.

        Args:
            robot: the robot.
            q: (nq,) at the beginning.
            v: (nv,) at the beginning.
            a: (nv,) acceleration of the previous step, zero after a jump.
            h: length of the step [s].
        """

    @abstractmethod
    def advance(self, robot: Robot, q: Array, q_evaluated: Array, v_plus: Array, h: float) -> Array:
        """Return the configuration at the end, for the velocity `v_plus` (nv,) at the end."""


class Midpoint(Integrator):
    """Half a step with the old velocity, half a step with the new; forces in between. Second order.

    Coriolis forces take the velocity extrapolated to the middle by the previous acceleration, which keeps the step
    explicit without losing the order.
    """

    name = "midpoint"
    order = 2

    def evaluation_point(self, robot: Robot, q: Array, v: Array, a: Array, h: float) -> tuple[Array, Array]:
        """Return ``q + h/2 v`` and ``v + h/2 a``."""
        return integrate(robot, q, 0.5 * h * v), v + 0.5 * h * a

    def advance(self, robot: Robot, q: Array, q_evaluated: Array, v_plus: Array, h: float) -> Array:
        """Return the second half of the step."""
        return integrate(robot, q_evaluated, 0.5 * h * v_plus)


class SemiImplicitEuler(Integrator):
    """Forces at the beginning, the whole step with the new velocity. First order."""

    name = "semi_implicit_euler"
    order = 1

    def evaluation_point(self, robot: Robot, q: Array, v: Array, a: Array, h: float) -> tuple[Array, Array]:
        """Return q and v themselves."""
        return q, v

    def advance(self, robot: Robot, q: Array, q_evaluated: Array, v_plus: Array, h: float) -> Array:
        """Return ``q + h v_plus``."""
        return integrate(robot, q, h * v_plus)


INTEGRATORS: dict[str, type[Integrator]] = {kind.name: kind for kind in (Midpoint, SemiImplicitEuler)}
