"""Joint commands from their bytes."""

from __future__ import annotations

import math

from sensor_msgs.msg import JointState

from constrained_sim.ros.cdr import Form, deserialise
from constrained_sim.ros.conversions import NANOSECONDS, JointNames, efforts_by_name, to_nanoseconds

KEPT = 8
"""Number of forms of commands that are kept: of as many controllers."""


class CommandReader:
    """Reads joint commands; a controller names the same joints again and again, which is checked once.

    Only commands that are in order make a form, so that what is kept stays small.
    """

    def __init__(self, joints: JointNames) -> None:
        """Take commands of the actuated `joints`."""
        self._joints = joints
        self._known: list[tuple[Form, list[int]]] = []

    def read(self, data: bytes) -> tuple[int, dict[int, float]]:
        """Return the stamp [ns] of a serialised sensor_msgs/JointState, and its efforts by index into tau.

        Raises:
            UnknownName: a joint that takes no commands.
            InvalidValue: no such message, not one effort for each name, a name twice, NaN or infinity.
        """
        for form, indices in self._known:
            numbers = form.numbers(data)
            if numbers is None:
                continue
            efforts = numbers[len(numbers) - len(indices) :]  # the last field of the message
            if all(map(math.isfinite, efforts)):
                return int(numbers[0]) * NANOSECONDS + int(numbers[1]), dict(zip(indices, efforts, strict=True))
        message = deserialise("joint command", data, JointState)
        by_index = efforts_by_name(message, self._joints)
        self._known.insert(0, (Form(message), list(by_index)))
        del self._known[KEPT:]
        return to_nanoseconds(message.header.stamp), by_index
