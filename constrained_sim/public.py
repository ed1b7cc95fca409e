"""The public names of the package and where they live; loaded at the first use of one of them."""

# ruff: noqa: F401

from constrained_sim.assembly import assemble
from constrained_sim.bringup import propose_contacts, propose_posture, set_on_ground, standing_efforts, suggest_gains
from constrained_sim.collision.detector import Collisions
from constrained_sim.collision.scene import Box, Mesh, Sphere
from constrained_sim.config import load_config
from constrained_sim.constraint_system import constraint_system
from constrained_sim.constraints import (
    CONSTRAINTS,
    CustomConstraint,
    FrameAnchor,
    JointCoupling,
    JointLimit,
    JointVelocity,
    PointAnchor,
    PointContact,
    PointDistance,
)
from constrained_sim.constraints.check import ConstraintCheck, check_constraint
from constrained_sim.contact import LAWS, Compliant, Frictionless, HuntCrossley, Plane, Rigid, Sticking
from constrained_sim.force_laws import SpringDamper, point_force
from constrained_sim.forward_dynamics import constrained_acceleration
from constrained_sim.impact import resolve_impact
from constrained_sim.integrators import INTEGRATORS
from constrained_sim.inverse_dynamics import inverse_dynamics, minimal_acceleration
from constrained_sim.objects import WorldObject
from constrained_sim.posture import Posture
from constrained_sim.precompile import load_kernels
from constrained_sim.robot import Robot
from constrained_sim.sensors import (
    SENSORS,
    Barometer,
    ContactSwitch,
    Encoder,
    ForceTorque,
    Imu,
    Lidar,
    Magnetometer,
    NavSat,
    RangeFinder,
    SensorSet,
    Twist,
)
from constrained_sim.servo import Servo
from constrained_sim.simulator import Simulator
from constrained_sim.solvers import SOLVERS, ContactConsistentDynamics, kkt_inverse, solve_kkt
from constrained_sim.stabilization import Baumgarte, Projection, project_position, project_velocity
from constrained_sim.state import State
from constrained_sim.step_result import StepResult
from constrained_sim.steppers import STEPPERS
from constrained_sim.trajectory import Trajectory
from constrained_sim.wrench import Wrench
