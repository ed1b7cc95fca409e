"""Descriptions of the parameters in groups, whose names the user gives: robot, initial, contacts and the like."""

from __future__ import annotations

from fnmatch import fnmatchcase

from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node

from constrained_sim.constraints import CONSTRAINTS, PointContact
from constrained_sim.contact import LAWS
from constrained_sim.objects import PRIMITIVES
from constrained_sim.ros.attribute_docs import attribute_docs
from constrained_sim.sensors import SENSORS

DESCRIPTIONS = {
    "robot.urdf": "URDF of the robot: package://, an absolute path, or one relative to where the node runs.",
    "robot.sdf": "SDF of the robot, in place of a URDF.",
    "robot.mjcf": "MJCF of the robot, in place of a URDF.",
    "robot.floating_base": "Whether a free-flyer is between the world and the root link.",
    "robot.gravity": "(3,) [m/s^2], world axes.",
    "robot.actuated_joints": "Joints that take commands, in the order of tau; absent: all.",
    "robot.joints.*.armature": "Inertia of the rotor as seen at the joint [kg m^2, kg].",
    "robot.joints.*.damping": "[N m s/rad, N s/m].",
    "robot.joints.*.friction": "Dry friction [N m, N].",
    "robot.joints.*.effort": "Limit of the effort [N m, N].",
    "robot.joints.*.velocity": "Limit of the velocity [rad/s, m/s].",
    "robot.joints.*.lower": "Lower position limit [rad, m].",
    "robot.joints.*.upper": "Upper position limit [rad, m].",
    "robot.joints.*": "What the description of the joint says differently, or not at all.",
    "robot.payloads.*": "Point mass at the origin of the link [kg].",
    "servo.*.stiffness": "By which the joint follows positions [N m/rad, N/m].",
    "servo.*.damping": "By which the joint follows velocities, and comes to rest at positions [N m s/rad, N s/m].",
    "initial.positions.*": "Initial position of the joint [rad, m].",
    "initial.velocities.*": "Initial velocity of the joint [rad/s, m/s].",
    "initial.base_pose": "(7,) of the floating base: position [m] and quaternion x y z w.",
    "initial.base_twist": "(6,) of the floating base: linear [m/s] and angular [rad/s] velocity, its own axes.",
    "contacts.*.law": f"What the contact may do: {', '.join(LAWS)}.",
    "contacts.*.normal": "(3,) of the ground plane, normal . x = offset; from the ground to the robot.",
    "contacts.*.offset": "[m] of the ground plane.",
    "contacts.*": "A number of the contact's law.",
    "constraints.*.kind": f"One of {', '.join(CONSTRAINTS)}.",
    "sensors.*.kind": f"One of {', '.join(SENSORS)}.",
    "scene.*": "A body that collision geometry touches: its kind, its size and where it is [m].",
    "objects.*.shape": f"In place of a description: one of {', '.join(PRIMITIVES)}, of homogeneous density.",
    "objects.*.pose": "(7,) where it begins: position [m] and quaternion x y z w.",
    "objects.*": "What is beside the robot: a shape with its sizes [m], mass [kg] and friction, or a description.",
    "collisions.*": "How the collision geometry of the robot touches the scene and itself.",
}
"""By pattern; the first one that fits a name describes it, after the fields of contacts, constraints and sensors."""

FAMILIES = {"contacts": [PointContact], "constraints": CONSTRAINTS.values(), "sensors": SENSORS.values()}
"""Classes whose documented attributes are keys, by group."""


def describe_groups(node: Node) -> None:
    """Describe every parameter of a group, and make it read-only: what it says is built into the world."""
    for name in list(node.get_parameters_by_prefix("")):
        if (text := group_description(name)) is not None:
            parameter = node.get_parameter(name)
            descriptor = ParameterDescriptor(name=name, type=parameter.type_.value, description=text, read_only=True)
            node.set_descriptor(name, descriptor)


def group_description(name: str) -> str | None:
    """Return what the parameter `name` means; None if it is in no group."""
    group, _, rest = name.partition(".")
    for family in FAMILIES.get(group, ()):
        docs = attribute_docs(family)
        if (key := rest.rpartition(".")[2]) in docs:
            return docs[key]
    return next((text for pattern, text in DESCRIPTIONS.items() if fnmatchcase(name, pattern)), None)
