"""Objects beside the robot, from the messages that tell what they are and where: only their fields are looked at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.config_sections import read_body
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.joints import SingleJoint
from constrained_sim.objects import WorldObject
from constrained_sim.robot import Robot
from constrained_sim.viewer.frame import ShownObject


class DescribedObjects:
    """Keeps what was described: it is read once, and the same body is in all frames."""

    def __init__(self, configured: Iterable[WorldObject] = ()) -> None:
        """Know the objects that are `configured`, for where no message describes any."""
        self._configured = {entry.name: (entry.body, entry.body.root_link) for entry in configured}
        self._read: dict[tuple[str, str, str], Robot | None] = {}

    def shown(self, states: Any, descriptions: Any) -> tuple[ShownObject, ...]:
        """Return the objects of which both are known: what they are, and where.

        Args:
            states: an ObjectStates; None: there is none.
            descriptions: an ObjectDescriptions; None: there is none.
        """
        known: dict[str, tuple[Robot | None, str]] = dict(self._configured)
        if descriptions is not None:
            known = {one.name: (self._body(one), one.base_link) for one in descriptions.objects}
        found = []
        for state in () if states is None else states.objects:
            body, base_link = known.get(state.name, (None, ""))
            if body is not None:
                found.append(_placed(state, body, base_link))
        return tuple(found)

    def _body(self, message: Any) -> Robot | None:
        """Return what an ObjectDescription describes; None: it cannot be read here."""
        key = message.name, message.description, message.folder
        if key not in self._read:
            try:
                body = read_body("urdf", message.description, None)
                self._read[key] = replace(body, folder=Path(message.folder)) if message.folder else body
            except ConstrainedSimError:
                self._read[key] = None
        return self._read[key]


def _placed(state: Any, body: Robot, base_link: str) -> ShownObject:
    """Return `body` where an ObjectState tells that its `base_link` is, its joints where that tells they are."""
    q = body.neutral()
    for name, position in zip(state.joint_names, state.position, strict=True):
        SingleJoint.of(body, name).place(q, float(position))
    joint, inside = body.link_placement(base_link)
    at, turn = state.pose.position, state.pose.orientation
    pose = pin.XYZQUATToSE3(np.array([at.x, at.y, at.z, turn.x, turn.y, turn.z, turn.w]))
    base = kinematics_at(body, q).placement(joint) * inside
    return ShownObject(state.name, body, q, pose * base.inverse())
