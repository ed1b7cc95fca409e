"""`constrained_sim replay`: simulates a recording again and compares it bit by bit."""

from pathlib import Path
from typing import Annotated, Any

import typer

from constrained_sim.cli.texts import DIFFERS, Json, say, write_json


def replay_command(
    bag: Annotated[Path, typer.Argument(help="Directory of the recording (rosbag2).", exists=True, file_okay=False)],
    as_json: Json = False,
) -> None:
    """Simulate a recording of the node again, and compare every message bit by bit.

    Needs ROS 2.

    Examples:
        $ constrained_sim replay recordings/leg_bag
    """
    from constrained_sim.optional import ros_module

    comparison = ros_module("constrained_sim.ros.replay", "replay").replay(bag)
    counts = dict(sorted(comparison.counts.items()))
    for warning in comparison.warnings:
        say(warning)
    if as_json:
        told: dict[str, Any] = {"difference": comparison.difference, "is_whole": comparison.is_whole}
        told |= {"steps": comparison.steps, "until": comparison.until}
        write_json({"identical": counts, **told, "warnings": list(comparison.warnings)})
    else:
        for topic, count in counts.items():
            print(f"{count:9d}  {topic}: identical")
        print(comparison.extent)
        print(comparison.summary)
    if not comparison.is_proven:
        raise typer.Exit(DIFFERS)
