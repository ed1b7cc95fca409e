"""All contacts of a robot as one table of arrays, evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim import kinematics
from constrained_sim.dynamics import Dynamics
from constrained_sim.validation import Array

if TYPE_CHECKING:
    from constrained_sim.constraints.point_contact import BoundContact


TOUCHING = 1e-8
"""Gap [m] up to which a contact counts as closed."""


class ContactGeometry(NamedTuple):
    """Where k contacts are, and how their rows move.

    Attributes:
        points: (k, 3) contact points [m], world frame.
        gaps: (k,) [m], negative where they penetrate.
        J: (3 k, nv) rows [t1, t2, n] of each contact.
        s: (3 k,) velocities of the rows [m/s].
    """

    points: Array
    gaps: Array
    J: Array
    s: Array

    @property
    def s_normal(self) -> Array:
        """(k,) velocities of the normal rows [m/s], positive where the contact opens."""
        return self.s[2::3]


class ContactTable:
    """Gaps, contact points and rows [t1, t2, n] of k contacts with planes.

    A sphere touches at ``centre - radius n``, a point that moves over the body: its rows are the velocity of the
    body point that is there now, and their derivative follows the centre.

    Attributes:
        members: the bound contacts, in the order of all rows.
        friction: (k,) coefficients in effect.
        restitution: (k,).
        axes: (k, 3, 3) rows t1, t2, n of each contact, world axes.
    """

    def __init__(self, members: Sequence[BoundContact]) -> None:
        """Take the contacts in their order."""
        self.members = tuple(members)
        contacts = [member.declaration for member in members]
        self.friction = np.array([contact.coefficient for contact in contacts])
        self.restitution = np.array([contact.restitution for contact in contacts])
        self.axes = np.array([contact.surface.axes for contact in contacts]).reshape(-1, 3, 3)
        self._levels = np.array([contact.surface.offset for contact in contacts])
        self._radii = np.array([contact.radius for contact in contacts])
        self._joints = np.array([member.joint for member in members], dtype=np.int64)
        self._points = np.array([member.offset for member in members]).reshape(-1, 3)

    def __len__(self) -> int:
        """Return the number of contacts."""
        return len(self.members)

    @property
    def normals(self) -> Array:
        """(k, 3) from the ground to the robot, world axes."""
        return self.axes[:, 2]

    def rows(self, dynamics: Dynamics, v: Array) -> ContactGeometry:
        """Return points, gaps, Jacobian and row velocities at the configuration of `dynamics` and at `v` (nv,)."""
        return ContactGeometry(
            *kinematics.contact_rows(
                self._joints,
                self._points,
                self._radii,
                self.axes,
                self._levels,
                dynamics.placements,
                dynamics.joint_axes,
                dynamics.robot.support,
                v,
            )
        )

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (3 k,) the velocity-dependent part of the rows' acceleration [m/s^2].

        ``[t1, t2, n] . (a_centre + alpha x (-r n))``: the normal of a plane does not turn, hence no ``omega x (omega x
        r n)``.
        """
        gamma = np.empty((len(self), 3))
        for i, (joint, point) in enumerate(zip(self._joints, self._points, strict=True)):
            body = dynamics.body(int(joint))
            centre = body.position + body.rotation @ point
            arm = -self._radii[i] * self.normals[i]
            gamma[i] = self.axes[i] @ (body.bias_at(centre) + kinematics.cross(body.angular_bias, arm))
        return gamma.ravel()


def rows_of(contacts: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return the indices of the three rows of each of `contacts` (k,)."""
    return (3 * np.asarray(contacts)[:, None] + np.arange(3)).ravel()
