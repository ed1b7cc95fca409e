"""A robot that is new here: what its description holds, where it touches the ground, how it stands, its gains."""

from constrained_sim.bringup.contact_proposal import is_legged, propose_contacts
from constrained_sim.bringup.gains import JointGains, suggest_gains
from constrained_sim.bringup.ground import contact_gaps, set_on_ground
from constrained_sim.bringup.posture_proposal import propose_posture
from constrained_sim.bringup.statics import Standing, standing_efforts
from constrained_sim.bringup.summary import RobotSummary, summarize

__all__ = [
    "JointGains",
    "RobotSummary",
    "Standing",
    "contact_gaps",
    "is_legged",
    "propose_contacts",
    "propose_posture",
    "set_on_ground",
    "standing_efforts",
    "suggest_gains",
    "summarize",
]
