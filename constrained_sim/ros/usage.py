"""Command lines of the nodes: ``--help``, and what is not meant for ROS is refused."""

from __future__ import annotations

import argparse
import contextlib
import json
from collections.abc import Sequence
from dataclasses import fields

from rclpy.utilities import remove_ros_args

from constrained_sim.options import NodeOptions, SimulationOptions
from constrained_sim.ros.attribute_docs import attribute_docs
from constrained_sim.ros.process import REFUSED_BY_ROS

EXIT_CODES = "exit codes: 0 ended as told, also by SIGINT or SIGTERM; 1 refused, with the reason; 2 wrong command line"


def check_command_line(arguments: Sequence[str], program: str, does: str, *details: str) -> None:
    """End the process with the help that ``--help`` asks for, or where there are arguments that nobody reads.

    Args:
        arguments: the whole command line, its first word included.
        program: as `ros2 run` calls it.
        does: what it does, in a sentence.
        details: paragraphs of the help, beside the exit codes.
    """
    parser = argparse.ArgumentParser(
        prog=program,
        usage=f"{program} [-h] [--ros-args ARGUMENT ...]",
        description=does,
        epilog="\n\n".join((*details, EXIT_CODES)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    with contextlib.suppress(*REFUSED_BY_ROS):  # what ROS refuses is told when ROS begins
        parser.parse_args(remove_ros_args(list(arguments))[1:])


def simulator_parameters() -> str:
    """Return the parameters of the simulation node, their defaults, and what they mean."""
    lines = [
        "parameters (default); robot, initial, servo, contacts, constraints, scene, objects, collisions, sensors: "
        "see config/leg.yaml"
    ]
    for options in (SimulationOptions, NodeOptions):
        meanings = attribute_docs(options)
        for option in fields(options):
            names = option.metadata.get("allowed", ())
            told = all(f"``{name}``" in meanings[option.name] for name in names)
            lines.append(f"  {option.name} ({json.dumps(option.default)}): {meanings[option.name].replace('``', '')}")
            if not told:
                lines.append(f"    one of {', '.join(names)}")
    return "\n".join(lines)
