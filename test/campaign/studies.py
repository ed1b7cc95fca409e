"""Studies that several test files use."""

from pathlib import Path

from constrained_sim.campaign import read_study

FOLDER = Path(__file__).parent

LEG = {
    "robot": "leg",
    "duration": 0.12,
    "controller": {"use": "laws.py:Hold", "damping": 1.0},
    "seed": 7,
    "runs": 12,
    "variations": {
        "contacts.foot.friction": {"uniform": [0.2, 1.0]},
        "robot.payloads.carriage": {"normal": [0.0, 0.2]},
        "command_delay": {"choice": [0.0, 0.002, 0.004]},
        "controller.stiffness": {"log_uniform": [30.0, 90.0]},
        "pushes.shove.force.2": {"uniform": [-30.0, 0.0]},
        "noise.velocity": {"uniform": [0.0, 0.1]},
    },
    "pushes": {"shove": {"link": "carriage", "at": 0.05, "duration": 0.02}},
    "measures": {"fell": {"link": "carriage"}, "effort": None, "impacts": None, "lowest": "laws.py:lowest"},
    "passed": "not fell and lowest > 0.2485",
}
"""A leg that is dropped and pushed."""


def leg_study(**changes):
    """Return the study of the leg with some keys changed."""
    return read_study({**LEG, **changes}, FOLDER)
