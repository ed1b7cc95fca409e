"""Efforts with which a robot stands still."""

from __future__ import annotations

from dataclasses import replace

from constrained_sim.bringup import statics as bringup
from constrained_sim.config import Config
from constrained_sim.constraints import point_contacts
from constrained_sim.validation import Array


def standing_efforts(config: Config) -> Array:
    """Return (nu,) the efforts [N m, N] that hold a robot where its configuration begins, at rest on level ground.

    Those of :func:`constrained_sim.bringup.statics.standing_efforts`, with normal forces alone: standing takes no force
    along the ground. Where the configuration is not in equilibrium, no efforts make it so, and these come nearest
    to it.
    """
    standing = [replace(contact, friction=0.0) for contact in point_contacts(config.constraints).values()]
    anchors = [c for c in config.constraints if not c.is_unilateral]
    robot = replace(config.robot, constraints=(*anchors, *config.robot.constraints))
    return bringup.standing_efforts(robot, config.q, standing).tau
