"""`constrained_sim recover`: completes a recording that was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from constrained_sim.cli.texts import Json, write_json


def recover_command(
    bag: Annotated[Path, typer.Argument(help="Directory of the recording (rosbag2).", exists=True, file_okay=False)],
    as_json: Json = False,
) -> None:
    """Finish a recording of the node that was cut off, so that every tool opens it.

    Needs ROS 2.

    Examples:
        $ constrained_sim recover recordings/leg_bag
    """
    from constrained_sim.optional import ros_module

    count = ros_module("constrained_sim.ros.recover", "recover").recover(bag)
    if as_json:
        write_json({"bag": str(bag), "messages": count})
    else:
        print(f"{bag}: {count} messages")
