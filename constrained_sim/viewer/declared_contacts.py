"""Declared contacts of a recording that holds their forces alone: where they are follows from kinematics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from constrained_sim.constraints import Constraint, PointContact, point_contacts
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.plots.contact_status import status_of
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.frame import ShownContact


class DeclaredContacts:
    """Shows the contacts of a robot at which forces were recorded."""

    def __init__(self, robot: Robot, constraints: Iterable[Constraint], names: Iterable[str]) -> None:
        """Show those of `constraints` that are contacts of the robot and among `names`."""
        recorded = set(names)
        self._robot = robot
        contacts = point_contacts(constraints).values()
        self._contacts = [c for c in contacts if c.link in robot.links and c.name in recorded]

    def shown(self, dynamics: Dynamics, forces: Mapping[str, Array]) -> tuple[ShownContact, ...]:
        """Return all contacts.

        Args:
            dynamics: of the robot, with its kinematics.
            forces: (3,) on the robot [N], world axes, by contact; NaN, or none: there is none.
        """
        return tuple(self._shown(contact, dynamics, forces.get(contact.name)) for contact in self._contacts)

    def _shown(self, contact: PointContact, dynamics: Dynamics, force: Array | None) -> ShownContact:
        joint, offset = self._robot.link_point(contact.link, contact.point)
        normal = contact.surface.normal
        position = dynamics.placement(joint).act(offset) - contact.radius * normal
        acting = np.zeros(3) if force is None else np.nan_to_num(force)
        status = ContactStatus(int(status_of(acting[None], normal, contact.coefficient)[0]))
        return ShownContact(contact.name, status, position, normal, acting, contact.friction, contact.link)
