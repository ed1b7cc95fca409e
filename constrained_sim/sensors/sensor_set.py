"""The sensors of a robot as a whole: when each reads, and what noise it has."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import numpy as np

from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, instance, items, number, whole_number

MOST_OFF = 1e-6
"""Relative error of a rate that is a whole part of the control rate: 333.3333 Hz at 1 kHz is every third period."""

MOST_LATE = 10_000
"""[control periods] Largest delay of a reading: their results are kept in memory."""


class SensorSet:
    """Sensors that are read once per control period, each at its rate.

    A sensor that reads every n control periods does so at the end of the n-th, the 2 n-th, ... since the reset. A
    delayed sensor shows the state of that much earlier, and gives no reading until there is one. The noise of each
    sensor depends only on the seed, its name and the number of its readings since the reset. So another sensor changes
    no noise, and a run after a reset equals a fresh one bit by bit.

    Attributes:
        robot: that carries them.
        members: the sensors, in the order of declaration.
        late: number of control periods by which the state that each shows is older than its reading.
    """

    def __init__(self, robot: Robot, sensors: Iterable[Sensor], period: float, seed: int = 0) -> None:
        """Put `sensors` on `robot`.

        Args:
            robot: that carries them.
            sensors: of any kind.
            period: control period, between two calls of :meth:`measure` [s].
            seed: of the noise, >= 0.

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidValue: a name twice, a link that a sensor cannot be on, a rate that is no whole part of the control
                rate, a delay that is no multiple of the control period, or a seed that is negative or no whole number.
        """
        self.robot = checked_robot(robot)
        self.members: tuple[Sensor, ...] = items("sensors", sensors, Sensor, "instances of classes in SENSORS")
        number("period of sensors", period, 0.0, open_lower=True)
        names = [sensor.name for sensor in self.members]
        for sensor in self.members:
            if names.count(sensor.name) > 1:
                raise InvalidValue("name of a sensor", sensor.name, "a name that no other sensor has")
            sensor.check(robot)
        self._seed = whole_number("seed of sensors", seed, 0)
        self._every = {sensor.name: _periods(sensor, period) for sensor in self.members}
        self.late = {sensor.name: _periods_late(sensor, period) for sensor in self.members}
        self.reset()

    def reset(self) -> None:
        """Begin anew: the count of periods, delayed states, and the noise of every sensor."""
        self._count = 0
        self._past: deque[StepResult] = deque(maxlen=1 + max(self.late.values(), default=0))
        self._generators = {sensor.name: _generator(self._seed, sensor.name) for sensor in self.members}

    def measure(self, result: StepResult) -> dict[str, tuple[Array, ...]]:
        """Return the readings at the end of a control period, by name of the sensors that read then.

        Args:
            result: of the last step of the period.

        Raises:
            InvalidValue: no result of a step.
        """
        instance("result", result, StepResult, "a StepResult")
        self._count += 1
        self._past.append(result)
        readings = {}
        for sensor in self.members:
            late = self.late[sensor.name]
            if self._count % self._every[sensor.name] == 0 and late < len(self._past):
                then = self._past[-1 - late]  # the robot may have had other objects beside it
                readings[sensor.name] = sensor.measure(then.robot, then, self._generators[sensor.name])
        return readings


def _generator(seed: int, name: str) -> np.random.Generator:
    """Return the source of noise of the sensor `name`."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=tuple(name.encode())))


def _periods_late(sensor: Sensor, period: float) -> int:
    """Return the number of control periods of `period` [s] in the delay.

    Raises:
        InvalidValue: not a whole number.
    """
    count = round(sensor.delay / period)
    if abs(sensor.delay - count * period) > MOST_OFF * period or count > MOST_LATE:
        allowed = f"a multiple of {period:g} s, at most {MOST_LATE} of them"
        raise InvalidValue(f"delay of sensor {sensor.name!r}", sensor.delay, allowed)
    return count


def _periods(sensor: Sensor, period: float) -> int:
    """Return the number of control periods of `period` [s] between two readings.

    Raises:
        InvalidValue: not a whole number.
    """
    if not sensor.rate:
        return 1
    wanted = 1.0 / (sensor.rate * period)
    count = max(1, round(wanted))
    if abs(wanted - count) > MOST_OFF * count:
        allowed = f"0 (every control period), or {1.0 / period:g} Hz divided by a whole number"
        raise InvalidValue(f"rate of sensor {sensor.name!r}", sensor.rate, allowed)
    return count
