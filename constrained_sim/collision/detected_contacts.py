"""The contacts that collision geometry has at the beginning of a step, and those that come into being within it."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace

import numpy as np

from constrained_sim.collision.detector import Collisions
from constrained_sim.constraints import ConstraintStack
from constrained_sim.contact.bound_contact import BoundContact
from constrained_sim.contact.contact_set import TOUCHING, ContactSet
from constrained_sim.dynamics.dynamics import dynamics_at, kinematics_at
from constrained_sim.robot import Robot
from constrained_sim.state import State
from constrained_sim.validation import Array

MISSED_DEPTH = 1e-6
"""Depth [m] beyond which a contact that shows at the end of a step only was missed: ten times the depth to which those
of its beginning may come within it."""


class DetectedContacts:
    """Detects the contacts of a simulated robot; what is found at the end of a step counts for the next one too."""

    def __init__(self, robot: Robot, collisions: Collisions) -> None:
        """Load the geometry of `robot`.

        Raises:
            ModelError: a robot without a description, or a mesh that cannot be loaded.
            UnknownName: an excluded link that does not exist.
        """
        self._robot, self._detector = robot, collisions.bind(robot)
        self._known: tuple[object, ...] = ()
        self._found: tuple[list[BoundContact], Array] = [], np.zeros(0)

    @property
    def collisions(self) -> Collisions:
        """What may touch, and how."""
        return self._detector.collisions

    def at(self, state: State, horizon: float) -> list[BoundContact]:
        """Return what is near at a `state`, or may be hit within a `horizon` [s]."""
        key = (horizon, state.t, state.q.tobytes(), state.v.tobytes())
        if key != self._known:
            here = dynamics_at(self._robot, state.q, state.v, state.t)
            self._known, self._found = key, self._detector.contacts(here, horizon)
        return self._found[0]

    def deepest(self, q: Array, t: float, owners: Collection[str] | None = None) -> tuple[str, float]:
        """Return the name of the contact with the least gap at `q` (nq,), and this gap [m]; infinity without any.

        Where `owners` are given, one of the two bodies belongs to one of these objects.
        """
        found, gaps = self._detector.contacts(kinematics_at(self._robot, q, t))
        pairs = zip(found, gaps.tolist(), strict=True)
        named = [(contact.name, gap) for contact, gap in pairs if owners is None or self._is_of(contact, owners)]
        return min(named, key=lambda pair: pair[1], default=("", np.inf))

    def _is_of(self, contact: BoundContact, owners: Collection[str]) -> bool:
        owner = self._robot.owner_of
        return owner(contact.link) in owners or owner(contact.other_link) in owners

    def missed(self, begin: State, end: State, horizon: float, taken: Collection[str]) -> list[BoundContact]:
        """Return the contacts that show at the `end` of a step only, though their bodies were apart at its beginning.

        Such are corners that come round an edge. What is found at the end for the first time is a contact of the same
        features of both bodies at the beginning too, with its gap there: one that closes within the step.

        Args:
            begin: of the step.
            end: of the step, where these contacts are deeper than :data:`MISSED_DEPTH`.
            horizon: [s] for which to look from there on.
            taken: names of the step's contacts; another one gets another name.
        """
        found, gaps = self.at(end, horizon), self._found[1]
        deep = [found[i] for i in np.flatnonzero(gaps < -MISSED_DEPTH)]
        if not deep:
            return []
        table = ContactSet(deep, ConstraintStack((), self._robot.nv))
        before = table.rows(kinematics_at(self._robot, begin.q, begin.t), np.zeros(self._robot.nv)).gaps
        missed: list[BoundContact] = []
        for i in np.flatnonzero(before >= -TOUCHING):
            missed.append(_renamed(deep[i], {*taken, *(contact.name for contact in missed)}))
        return missed


def _renamed(contact: BoundContact, taken: Collection[str]) -> BoundContact:
    """Return a `contact` with the first number of its pair that is not `taken`."""
    pair, _ = contact.name.rsplit("#", 1)
    return replace(contact, name=next(n for i in itertools.count() if (n := f"{pair}#{i}") not in taken))
