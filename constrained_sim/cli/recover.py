"""`constrained_sim recover`: completes a recording that was cut off."""

from pathlib import Path
from typing import Annotated

import typer

from constrained_sim.cli.texts import DIFFERS, Json, say, write_json


def recover_command(
    bag: Annotated[Path, typer.Argument(help="Directory of the recording (rosbag2).", exists=True, file_okay=False)],
    delete_original: Annotated[
        bool, typer.Option("--delete-original", help="Delete the file that was cut off, where all of it was copied.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Finish a recording of the node that was cut off, so that every tool opens it; the original is kept.

    Needs ROS 2. Exit code 3: parts of it could not be read.

    Examples:
        $ constrained_sim recover recordings/leg_bag
    """
    from constrained_sim.optional import ros_module

    recovery = ros_module("constrained_sim.ros.recover", "recover").recover(bag, delete_original)
    for line in recovery.damage:
        say(line)
    originals = [str(path) for path in recovery.originals]
    if as_json:
        found = {"messages": recovery.count, "is_whole": recovery.is_whole, "damage": list(recovery.damage)}
        write_json({"bag": str(bag), **found, "originals": originals})
    else:
        whole = "; it was complete, and stays as it is" * recovery.was_complete
        print("; the original is ".join([f"{bag}: {recovery.count} messages", *originals]) + whole)
    if not recovery.is_whole:
        raise typer.Exit(DIFFERS)
