"""Pose and velocity of an object beside the robot, read from the tree that both are simulated in."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.dynamics.kinematics import velocity_at
from constrained_sim.joints import SingleJoint, single_joints
from constrained_sim.objects.world_object import WorldObject
from constrained_sim.robot import Robot
from constrained_sim.validation import Array


def object_joints(robot: Robot, entry: WorldObject) -> dict[str, SingleJoint]:
    """Return the joints with one degree of freedom of an object, by their names within it."""
    return single_joints({name: robot.joint_models[entry.prefix + name] for name in entry.body.joint_models})


def base_motion(dynamics: Dynamics, entry: WorldObject) -> tuple[pin.SE3, Array]:
    """Return where the base link of an object is, and its velocity (6,) [m/s, rad/s] at its origin, world axes."""
    joint, in_joint = dynamics.robot.link_placement(entry.base_link)
    body = dynamics.body(joint)
    placement = pin.SE3(body.rotation, body.position) * in_joint
    return placement, np.concatenate([velocity_at(body, placement.translation), body.angular_velocity])
