"""Joint commands from their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from sensor_msgs.msg import JointState

from constrained_sim.exceptions import InvalidValue
from constrained_sim.ros.cdr import Form, deserialise
from constrained_sim.ros.conversions import NANOSECONDS, JointNames, to_nanoseconds
from constrained_sim.validation import finite_array

KEPT = 8
"""Number of forms of commands that are kept: of as many controllers."""


class _Known(NamedTuple):
    """Commands of a form: how many joints they name, and the index into tau of those that are actuated, by place."""

    form: Form
    count: int
    drives: dict[int, int]


class CommandReader:
    """Reads joint commands; a controller names the same joints again and again, which is checked once.

    Only commands that are in order make a form, so that what is kept stays small.
    """

    def __init__(
        self, joints: JointNames, strict: bool = True, ignored: Callable[[list[str]], None] = lambda names: None
    ) -> None:
        """Take commands of the actuated `joints`.

        Args:
            joints: of the robot.
            strict: refuse commands that name other joints of the robot.
            ignored: told the other joints that a command names, at least at the first one.
        """
        self._joints, self._strict, self._ignored = joints, strict, ignored
        self._known: list[_Known] = []

    def read(self, data: bytes) -> tuple[int, dict[int, float]]:
        """Return the stamp [ns] of a serialised sensor_msgs/JointState, and its efforts by index into tau.

        Raises:
            UnknownName: a joint that the robot does not have, or, if strict, does not actuate.
            InvalidValue: no such message, not one effort for each name, a name twice, NaN or infinity.
        """
        for form, count, drives in self._known:
            numbers = form.numbers(data)
            if numbers is None:
                continue
            efforts = numbers[len(numbers) - count :]  # the last field of the message
            taken = {index: efforts[place] for place, index in drives.items()}
            if all(map(math.isfinite, taken.values())):
                return int(numbers[0]) * NANOSECONDS + int(numbers[1]), taken
        return self._read_unknown(deserialise("joint command", data, JointState))

    def _read_unknown(self, message: JointState) -> tuple[int, dict[int, float]]:
        """Read a command of a form that is not known yet, or one with something wrong in it."""
        names = list(message.name)
        drives = self._joints.drives(names, self._strict)
        if len(message.effort) != len(names):
            raise InvalidValue("effort of a joint command", list(message.effort), f"{len(names)} numbers, one a name")
        efforts = finite_array("effort of a joint command", [message.effort[place] for place in drives], (len(drives),))
        if len(drives) < len(names):
            self._ignored([name for place, name in enumerate(names) if place not in drives])
        self._known.insert(0, _Known(Form(message), len(names), drives))
        del self._known[KEPT:]
        return to_nanoseconds(message.header.stamp), dict(zip(drives.values(), efforts.tolist(), strict=True))
