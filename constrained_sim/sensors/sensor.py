"""Sensor: a declaration by name, which reads the result of a step."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, finite_array, instance, number


class Sensor(ABC):
    """Declaration of a sensor: immutable, knows names only, belongs to no robot.

    A reading is what an ideal sensor would read, plus a constant bias, plus white Gaussian noise of the given standard
    deviation in every component, drawn anew for every reading.

    Attributes:
        kind: name in configuration files.
        name: unique among the sensors of a robot; letters, digits and underscores, no digit first (it is part of the
            name of a topic).
        link: link or frame that carries the sensor, whose axes the reading is in; empty for a sensor of a joint.
        rate: readings per simulated second [Hz]; 0: one every control period.
        delay: age of the state that a reading shows [s], a multiple of the control period.
    """

    kind: str
    name: str
    link: str
    rate: float
    delay: float = 0.0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: a name that no topic can have, a negative rate, delay or standard deviation, or a bias that is
                not three finite numbers.
        """
        if not isinstance(self.name, str) or not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", self.name):
            raise InvalidValue("name of a sensor", self.name, "letters, digits and underscores, no digit first")
        instance(f"link of sensor {self.name!r}", self.link, str, "the name of a link")
        number(f"rate of sensor {self.name!r}", self.rate, 0.0)
        number(f"delay of sensor {self.name!r}", self.delay, 0.0)

    def _frame(self, dynamics: Dynamics) -> pin.SE3:
        """Return where the link is in the world, at the configuration of `dynamics`."""
        joint, inside = dynamics.robot.link_placement(self.link)
        return dynamics.placement(joint) * inside

    def _check_errors(self, *quantities: str) -> None:
        """Check ``<quantity>_noise`` and, where there is one, ``<quantity>_bias`` of all `quantities`."""
        for quantity in quantities:
            number(f"{quantity}_noise of sensor {self.name!r}", getattr(self, f"{quantity}_noise"), 0.0)
            bias = f"{quantity}_bias"
            if hasattr(self, bias):
                what = f"{bias} of sensor {self.name!r}"
                object.__setattr__(self, bias, tuple(finite_array(what, getattr(self, bias), (3,)).tolist()))

    def check(self, robot: Robot) -> None:
        """Refuse a robot that this sensor cannot be on.

        Raises:
            UnknownName: the robot has no such link, or joint.
            InvalidValue: a link that the sensor cannot be on.
        """
        robot.link_placement(self.link)

    @abstractmethod
    def exact(self, robot: Robot, result: StepResult) -> tuple[Array, ...]:
        """Return what an ideal sensor reads at the end of a step: arrays, as the sensor's reading class lists them.

        Args:
            robot: that carries the sensor.
            result: of the step.

        Raises:
            UnknownName: the robot has no such link.
            InvalidValue: a link that the sensor cannot be on.
        """

    def measure(self, robot: Robot, result: StepResult, generator: np.random.Generator) -> tuple[Array, ...]:
        """Return what this sensor reads at the end of a step: :meth:`exact`, with bias and noise.

        Args:
            robot: that carries the sensor.
            result: of the step.
            generator: source of the noise; each reading draws the same number of values, whatever the deviations.

        Raises:
            UnknownName: the robot has no such link.
            InvalidValue: a link that the sensor cannot be on.
        """
        return self.exact(robot, result)


def with_errors(exact: Array, bias: Sequence[float], noise: float, generator: np.random.Generator) -> Array:
    """Return `exact` (3,) plus `bias` (3,) plus noise of the standard deviation `noise`."""
    return exact + bias + noise * generator.standard_normal(3)
