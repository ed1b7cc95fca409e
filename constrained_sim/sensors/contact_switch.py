"""ContactSwitch: whether a link is pressed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from constrained_sim.robot import Robot
from constrained_sim.sensors.sensor import Sensor
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array, number


class ContactSwitchReading(NamedTuple):
    """One reading of a :class:`ContactSwitch`.

    Attributes:
        is_pressed: (1,) 1 if it is, else 0.
    """

    is_pressed: Array


@dataclass(frozen=True)
class ContactSwitch(Sensor):
    """A switch under a link, such as the sole of a foot.

    It is on while the normal forces of all contacts of the link add up to at least its threshold. These are mean forces
    over the step, without the impulses of impacts.

    Attributes:
        name: unique among the sensors of the robot.
        link: link whose contacts count: declared ones, and those of its collision geometry, whichever body is first.
        rate: readings per simulated second [Hz]; 0: one every control period.
        threshold: sum of normal forces at which it turns on [N], above 0.
    """

    name: str
    link: str
    rate: float = 0.0
    threshold: float = 1.0

    kind = "contact_switch"

    def __post_init__(self) -> None:
        """Check the values, see :meth:`Sensor.__post_init__`."""
        super().__post_init__()
        number(f"threshold of sensor {self.name!r}", self.threshold, 0.0, open_lower=True)

    def exact(self, robot: Robot, result: StepResult) -> ContactSwitchReading:
        """Return whether it is on for `robot` after the step `result`, see :meth:`Sensor.exact`."""
        members, forces = result.outcome.end.bound.contacts.members, result.contact_forces
        touching = [member.name for member in members if self.link in (member.link, member.other_link)]
        force = sum(forces[name].normal_force for name in touching)
        return ContactSwitchReading(np.array([float(force >= self.threshold)]))
