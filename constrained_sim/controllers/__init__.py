"""Control laws of the shipped robots: plain functions of time and state, for simulations with and without ROS."""

from constrained_sim.controllers.cassie import CassieController
from constrained_sim.controllers.control_law import ControlLaw
from constrained_sim.controllers.four_bar import FourBarController
from constrained_sim.controllers.leg import LegController
from constrained_sim.controllers.quadruped import QuadrupedController
from constrained_sim.controllers.statics import standing_efforts
from constrained_sim.posture import Posture

CONTROLLERS: dict[str, type[ControlLaw]] = {
    "leg": LegController,
    "quadruped": QuadrupedController,
    "four_bar": FourBarController,
    "cassie": CassieController,
}
"""Control laws of the shipped robots, by the name of the robot."""

__all__ = [
    "CONTROLLERS",
    "CassieController",
    "ControlLaw",
    "FourBarController",
    "LegController",
    "Posture",
    "QuadrupedController",
    "standing_efforts",
]
