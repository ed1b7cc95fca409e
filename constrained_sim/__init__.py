"""Exact rigid-body simulation of robots under constraints and contact; this package runs without ROS."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from constrained_sim.public import *

__all__ = [
    "CONSTRAINTS",
    "INTEGRATORS",
    "LAWS",
    "SENSORS",
    "SOLVERS",
    "STEPPERS",
    "Barometer",
    "Baumgarte",
    "Box",
    "Collisions",
    "Compliant",
    "ConstraintCheck",
    "ContactConsistentDynamics",
    "ContactSwitch",
    "CustomConstraint",
    "Encoder",
    "ForceTorque",
    "FrameAnchor",
    "Frictionless",
    "HuntCrossley",
    "Imu",
    "JointCoupling",
    "JointLimit",
    "JointVelocity",
    "Lidar",
    "Magnetometer",
    "Mesh",
    "NavSat",
    "Plane",
    "PointAnchor",
    "PointContact",
    "PointDistance",
    "Posture",
    "Projection",
    "RangeFinder",
    "Rigid",
    "Robot",
    "SensorSet",
    "Servo",
    "Simulator",
    "Sphere",
    "SpringDamper",
    "State",
    "StepResult",
    "Sticking",
    "Trajectory",
    "Twist",
    "WorldObject",
    "Wrench",
    "assemble",
    "check_constraint",
    "constrained_acceleration",
    "constraint_system",
    "inverse_dynamics",
    "kkt_inverse",
    "load_config",
    "load_kernels",
    "minimal_acceleration",
    "point_force",
    "project_position",
    "project_velocity",
    "propose_contacts",
    "propose_posture",
    "resolve_impact",
    "set_on_ground",
    "solve_kkt",
    "standing_efforts",
    "suggest_gains",
]


def __getattr__(name: str) -> Any:
    """Load the simulator at the first use of a public name: who only wants messages waits for no library (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    globals().update({public: getattr(importlib.import_module(f"{__name__}.public"), public) for public in __all__})
    return globals()[name]


def __dir__() -> list[str]:
    """Return the public names, loaded or not, and those that every module has."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
