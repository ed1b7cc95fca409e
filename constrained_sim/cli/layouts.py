"""`constrained_sim layouts`: what RViz 2, Foxglove and PlotJuggler show of a robot."""

from pathlib import Path
from typing import Annotated

import typer

from constrained_sim.cli.texts import Json, write_json


def layouts_command(
    robot: Annotated[str, typer.Argument(help="Parameter file (also package://NAME/PATH), or a robot of the package.")],
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path(),
    as_json: Json = False,
) -> None:
    """Write NAME.rviz, NAME.foxglove.json and NAME.plotjuggler.xml for a robot; refuses to overwrite.

    Those of the robots of the package come with it, beside their parameter files.

    Examples:
        $ constrained_sim layouts my_robot.yaml

        $ rviz2 -d my_robot.rviz
    """
    from constrained_sim.cli.parameters import find_robot
    from constrained_sim.config import load_config
    from constrained_sim.layouts import write_layouts

    file = find_robot(robot)
    files = [str(path) for path in write_layouts(load_config(file), file.stem, folder)]
    if as_json:
        write_json({"files": files})
        return
    for path in files:
        print(f"wrote {path}")
