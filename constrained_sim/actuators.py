"""From what is commanded to what the actuators give: limits, delay, and joint feedback within a step."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.posture import JointFeedback, feedback_efforts
from constrained_sim.robot import Robot
from constrained_sim.servo import JointTargets
from constrained_sim.validation import Array

QUICK_TRIES, MOST_TRIES = 10, 60
"""Steps tried to find which joint feedback is at its limit: before joints are looked at one by one, and in all."""

Command = Array | JointFeedback
"""(nu,) efforts [N m, N], or the feedback that finds them."""


class Efforts(NamedTuple):
    """Efforts ``constant - damping v`` of actuated joints, v their velocities at the end of a step.

    Attributes:
        constant: (nu,) [N m, N].
        damping: (nu,) [N m s/rad, N s/m], not negative.
    """

    constant: Array
    damping: Array

    def at(self, v: Array) -> Array:
        """Return (nu,) the efforts [N m, N] at the velocities `v` (nu,)."""
        return self.constant - self.damping * v


class Actuators:
    """The actuators of a robot.

    Joint feedback asks for ``tau = effort + K (position - q') + D (velocity - v')`` with the velocity v' at the end of
    a step of h seconds and ``q' = q + h v'``: that is ``constant - damping v'`` with ``damping = D + h K``, which joins
    the inertia of the step. So it is stable at any gain: of one joint of inertia m, free or held by whatever, with
    ``a = h damping / (m + h damping)`` and ``b = h^2 K / (m + h damping)``, positions from the goal and velocities are
    multiplied in each step by a matrix with determinant ``1 - a + b/2`` and trace ``2 - a - b/2`` (``midpoint``), and
    ``0 < b <= a <= 1`` is all that its eigenvalues need to stay within the unit circle.

    Attributes:
        velocity_limits: whether no effort drives a joint on beyond its velocity limit.
        delay: steps after which a command acts.
        is_direct: whether a command acts at once, whatever the velocity.
    """

    def __init__(self, robot: Robot, velocity_limits: bool, delay: int) -> None:
        """Let commands act so many steps later."""
        self._robot, self.velocity_limits, self.delay = robot, velocity_limits, delay
        self._delayed: deque[Command] = deque()
        self.is_direct = not (delay or velocity_limits)
        self._nothing = np.zeros(robot.nu)

    def reset(self) -> None:
        """Forget commands; until the first one acts there is no effort."""
        self._delayed = deque(np.zeros((self.delay, self._robot.nu)))

    def take_over(self, other: Actuators) -> None:
        """Let the commands act that `other`, of the same joints, has not let act yet."""
        self._delayed = other._delayed.copy()

    def checked(self, tau: Any) -> Command:
        """Return a command that may act, efforts within their limits.

        Raises:
            InvalidValue: efforts of wrong length, or that are not finite; targets of another robot.
        """
        if tau is None:
            return np.zeros(self._robot.nu)
        return tau.of(self._robot) if isinstance(tau, JointTargets) else self._robot.clamp(tau)

    def after_delay(self, commanded: Command) -> Command:
        """Return the command that acts in the next step."""
        return self._delayed[0] if self._delayed else commanded

    def advance(self, commanded: Command) -> None:
        """Count a step as done."""
        if self._delayed:
            self._delayed.append(commanded)
            self._delayed.popleft()

    def efforts(self, command: Command, q: Array, v: Array, h: float) -> Efforts:
        """Return the efforts over a step of `h` [s] from `q` (nq,) and `v` (nv,) on, if no feedback meets a limit."""
        if not isinstance(command, JointFeedback):
            return Efforts(self._slowed(command, v), self._nothing)
        constant = feedback_efforts(command._replace(damping=self._nothing), q, v)
        damping = command.damping + h * command.stiffness
        return Efforts(np.where(damping > 0.0, constant, self._allowed(constant, v)), damping)

    def first_try(self, law: Efforts, v: Array) -> Efforts:
        """Return what to try first of the efforts of a step: joints are limited that are at its beginning.

        A target far away asks for efforts that no number of a step could hold.

        Args:
            law: what the feedback asks for.
            v: (nv,) velocity at the beginning.
        """
        wanted = law.at(v[self._robot.actuation])
        allowed = self._allowed(wanted, v)
        return self._limited(law, (law.damping > 0.0) & (wanted != allowed), allowed)

    def within_limits(self, law: Efforts, tried: Efforts, rates: Array, v: Array, tries: int) -> Efforts | None:
        """Return what to try in place of the efforts of a step; None: it was the step of feedback within its limits.

        That is the one with ``tau = clip(constant - damping v'(tau))``: a linear complementarity problem with one
        solution, where contacts stay as they are. Each joint follows its law, or gives what its limit allows,
        constantly, while its law asks for more; where that is wrong the next try has the other of the two. Changing all
        joints at once takes few tries; changing the first one only always comes to an end (Murty, Note on a Bard-type
        scheme for solving the complementarity problem, 1974). Where contacts prevent that too, all efforts are
        constant.

        Args:
            law: what the feedback asks for.
            tried: efforts of the step that was tried.
            rates: (nu,) velocities of the joints at which they acted [rad/s, m/s].
            v: (nv,) velocity at the beginning.
            tries: how many steps were tried before this one.
        """
        wanted = law.at(rates)
        allowed = self._allowed(wanted, v)
        follows = (law.damping == 0.0) | (tried.damping > 0.0)
        is_wrong = (law.damping > 0.0) & np.where(follows, wanted != allowed, tried.constant != allowed)
        if not is_wrong.any() or tries > MOST_TRIES:
            return None
        if tries == MOST_TRIES:
            return Efforts(np.where(law.damping > 0.0, allowed, law.constant), self._nothing)
        if tries >= QUICK_TRIES:
            is_wrong &= np.arange(len(is_wrong)) == np.argmax(is_wrong)
        return self._limited(law, np.where(is_wrong, follows, ~follows), np.where(is_wrong, allowed, tried.constant))

    @staticmethod
    def _limited(law: Efforts, is_limited: npt.NDArray[np.bool_], allowed: Array) -> Efforts:
        """Return the efforts (nu,) with those that are limited constantly what is `allowed`."""
        return Efforts(np.where(is_limited, allowed, law.constant), np.where(is_limited, 0.0, law.damping))

    def _allowed(self, tau: Array, v: Array) -> Array:
        """Return what the limits of effort and velocity leave of the efforts `tau` (nu,)."""
        return self._slowed(self._robot.clamp(tau), v)

    def _slowed(self, tau: Array, v: Array) -> Array:
        """Return what is left of the efforts `tau` (nu,) where none may drive a joint beyond its velocity limit."""
        if not self.velocity_limits:
            return tau
        rates, limits = v[self._robot.actuation], self._robot.velocity_limits[self._robot.actuation]
        return np.where((np.abs(rates) >= limits) & (tau * rates > 0.0), 0.0, tau)
