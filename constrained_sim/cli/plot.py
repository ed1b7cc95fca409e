"""`constrained_sim plot`: a picture of a result or of a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from constrained_sim.cli.texts import Json, write_json


def plot_command(
    source: Annotated[Path, typer.Argument(help="Result of `run --output`, or directory of a recording.", exists=True)],
    output: Annotated[Path | None, typer.Option(help="Picture (default: beside the source, .png).")] = None,
    as_json: Json = False,
) -> None:
    """Plot contact forces and joint positions of a result (.npz) or a recording (rosbag2 directory) into a picture.

    Examples:
        $ constrained_sim plot hop.npz

        $ constrained_sim plot recordings/leg_bag --output leg.pdf
    """
    from constrained_sim.cli.outputs import check_picture
    from constrained_sim.plotting import plot, read

    picture = output or source.with_suffix(".png")
    check_picture("output", picture)
    plot(read(source), picture, source.resolve().name)
    if as_json:
        write_json({"source": str(source), "picture": str(picture)})
    else:
        print(picture)
