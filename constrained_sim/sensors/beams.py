"""Beams: thin straight lines from a sensor, and how far it is along them to the next surface."""

from __future__ import annotations

import numpy as np

from constrained_sim.collision.ray import surroundings_of
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, number


class BeamSensor(Sensor):
    """What sensors with beams have in common; a :class:`~constrained_sim.sensors.range_finder.RangeFinder` says more.

    Attributes:
        min_range: distance below which a beam reads minus infinity [m] (REP 117).
        max_range: distance above which it reads infinity [m].
        range_noise: standard deviation [m].
    """

    min_range: float
    max_range: float
    range_noise: float

    def _check_beams(self) -> None:
        """Check what measures distances.

        Raises:
            InvalidValue: distances that are none, or whose order is wrong, or a negative standard deviation.
        """
        of = f"of sensor {self.name!r}"
        lower = number(f"min_range {of}", self.min_range, 0.0)
        if number(f"max_range {of}", self.max_range, 0.0) <= lower:
            raise InvalidValue(f"max_range {of}", self.max_range, f"more than min_range, {lower:g} m")
        self._check_errors("range")

    def _distances(self, robot: Robot, result: StepResult, origin: Array, directions: Array) -> Array:
        """Return how far it is [m] from the `origin` (3,) along unit `directions` (n, 3), both in the link."""
        here, (joint, _) = kinematics_at(robot, result.state.q, result.state.t), robot.link_placement(self.link)
        frame, surroundings = self._frame(here), surroundings_of(robot, result.collisions)
        start, beams = frame.act(origin), directions @ frame.rotation.T
        return np.array([surroundings.distance(here.placements, start, beam, joint) for beam in beams])

    def _within_reach(self, distances: Array) -> Array:
        """Return the `distances` [m] that can be measured; infinity and minus infinity for others."""
        near = np.where(distances >= self.min_range, distances, -np.inf)
        return np.where(distances > self.max_range, np.inf, near)
