"""Joint commands from their bytes."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import nan as NAN
from typing import NamedTuple, cast

from sensor_msgs.msg import JointState

from constrained_sim.exceptions import InvalidValue
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.ros.cdr import Form, deserialise, serialise
from constrained_sim.ros.conversions import JointNames, to_nanoseconds
from constrained_sim.servo import JointCommand

STAMP = 2
"""Numbers of the stamp, before those of the joints."""

KEPT = 8
"""Number of forms of commands that are kept: of as many controllers."""


class _Known(NamedTuple):
    """Commands of a form: the index into tau of joints that are actuated, by place, and where their numbers begin.

    These are of effort, position and velocity; None: a command of this form has none.
    """

    form: Form
    drives: dict[int, int]
    begins: tuple[int | None, ...]

    def commands(self, numbers: list[float]) -> dict[int, JointCommand]:
        """Return the commands by index into tau, of the joints that are told something.

        Where there are no targets at all, an effort that is NaN is returned as it is: it is an error.
        """
        effort, position, velocity = self.begins
        if position is None and velocity is None:
            return {index: JointCommand(numbers[(effort or 0) + place]) for place, index in self.drives.items()}
        told = {}
        for place, index in self.drives.items():
            command = JointCommand(
                NAN if effort is None else numbers[effort + place],
                NAN if position is None else numbers[position + place],
                NAN if velocity is None else numbers[velocity + place],
            )
            if not all(map(math.isnan, command)):
                told[index] = command._replace(effort=0.0) if math.isnan(command.effort) else command
        return told


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

    def read(self, data: bytes) -> tuple[int, dict[int, JointCommand]]:
        """Return the stamp [ns] of a serialised sensor_msgs/JointState, and its commands by index into tau.

        In a message with positions or velocities, NaN gives nothing, and neither does a field that is left out; a joint
        that is given nothing keeps its last command.

        Raises:
            UnknownName: a joint that the robot does not have, or, if strict, does not actuate.
            InvalidValue: no such message, neither nothing nor one number for each name, a name twice, infinity, efforts
                alone of which one is NaN.
        """
        for known in self._known:
            numbers = known.form.numbers(data)
            if numbers is None:
                continue
            taken = known.commands(numbers)
            if all(map(_is_allowed, taken.values())):
                return int(numbers[0]) * NANOSECONDS + int(numbers[1]), taken
        return self._read_unknown(deserialise("joint command", data, JointState))

    def _read_unknown(self, message: JointState) -> tuple[int, dict[int, JointCommand]]:
        """Read a command of a form that is not known yet, or one with something wrong in it."""
        names = list(message.name)
        drives = self._joints.drives(names, self._strict)
        begins, begin = {}, STAMP
        for what in ("position", "velocity", "effort"):
            values = list(getattr(message, what))
            if values and not names:
                raise InvalidValue("name of a joint command", names, f"one for each {what}: {len(values)}")
            if values and len(values) != len(names):
                raise InvalidValue(f"{what} of a joint command", values, f"none, or one for each name: {len(names)}")
            is_alone = what == "effort" and not (message.position or message.velocity)
            _check_numbers(what, {names[place]: values[place] for place in drives if values}, not is_alone)
            begins[what], begin = begin if values else None, begin + len(values)
        if names and not any(value is not None for value in begins.values()):
            raise InvalidValue("joint command", "names alone", "efforts, positions or velocities, one a name")
        if len(drives) < len(names):
            self._ignored([name for place, name in enumerate(names) if place not in drives])
        known = _Known(Form(message), drives, (begins["effort"], begins["position"], begins["velocity"]))
        self._known.insert(0, known)
        del self._known[KEPT:]
        numbers = cast("list[float]", known.form.numbers(serialise(message)))  # a form knows its own message
        return to_nanoseconds(message.header.stamp), known.commands(numbers)


def _check_numbers(what: str, values: dict[str, float], may_be_nan: bool) -> None:
    """Check the numbers of a command by joint.

    Raises:
        InvalidValue: one is infinite, or NaN where it may not be.
    """
    is_wrong = math.isinf if may_be_nan else lambda value: not math.isfinite(value)
    wrong = {name: value for name, value in values.items() if is_wrong(value)}
    if wrong:
        raise InvalidValue(f"{what} of a joint command", wrong, "finite numbers" + ", or NaN" * may_be_nan)


def _is_allowed(command: JointCommand) -> bool:
    """Return whether no number of a command is infinite, nor its effort NaN."""
    return math.isfinite(command.effort) and not (math.isinf(command.position) or math.isinf(command.velocity))
