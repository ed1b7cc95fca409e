"""`constrained_sim film`: a film of a recording or a result, without a display."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from constrained_sim.cli.progress_bar import progress_bar
from constrained_sim.cli.texts import Json, finite, write_json
from constrained_sim.cli.view import Robot


def film_command(
    source: Annotated[Path, typer.Argument(help="Directory of a recording, or result of `run --output`.", exists=True)],
    output: Annotated[Path, typer.Argument(help="Film to be written (.mp4, .gif).")],
    robot: Robot = "",
    width: Annotated[int, typer.Option(help="Pixels.", min=16, max=3840)] = 480,
    height: Annotated[int, typer.Option(help="Pixels.", min=16, max=2160)] = 360,
    rate: Annotated[float, typer.Option(help="Pictures per second.", min=1.0, max=120.0)] = 25.0,
    speed: Annotated[float, typer.Option(help="Simulated seconds per second of the film.", min=1e-3, max=1e3)] = 1.0,
    begin: Annotated[
        float, typer.Option(help="First instant, in seconds since the beginning.", min=0.0, callback=finite)
    ] = 0.0,
    duration: Annotated[float, typer.Option(help="Simulated seconds; 0: to the end.", min=0.0, callback=finite)] = 0.0,
    cones: Annotated[bool, typer.Option(help="Show friction cones.")] = False,
    follow: Annotated[bool, typer.Option(help="Let the camera move with the robot.")] = True,
    azimuth: Annotated[
        Optional[float],
        typer.Option(help="Of the camera about the vertical, in degrees from x.", callback=finite),
    ] = None,
    elevation: Annotated[Optional[float], typer.Option(help="Of the camera, in degrees.", min=-89.0, max=89.0)] = None,
    zoom: Annotated[float, typer.Option(help="How many times larger the robot is.", min=0.01, max=100.0)] = 1.0,
    as_json: Json = False,
) -> None:
    """Draw a recording into a film; a Chromium without a window draws it.

    Examples:
        $ constrained_sim film recordings/leg_bag hop.gif --speed 0.5

        $ constrained_sim film walk.npz walk.mp4 --robot cassie --width 1280 --height 720
    """
    from constrained_sim.cli.outputs import check_film
    from constrained_sim.cli.view import source_of
    from constrained_sim.exceptions import ConfigError
    from constrained_sim.viewer.film import FilmOptions, film
    from constrained_sim.viewer.recording_panel import Recording

    check_film("OUTPUT", output)
    shown = source_of(str(source), robot)
    if not isinstance(shown, Recording):
        raise ConfigError(
            f"{str(source)!r} is no recording, allowed: a rosbag2 directory, or a result of `run --output`"
        )
    angles = {"azimuth": azimuth, "elevation": elevation}
    camera = {name: angle for name, angle in angles.items() if angle is not None}
    options = FilmOptions(width, height, rate, speed, begin, duration, follow, cones, zoom=zoom, **camera)
    with progress_bar("drawing", shown=not as_json) as report:
        count = film(shown, output, options, report)
    if as_json:
        write_json({"film": str(output), "pictures": count})
    else:
        print(output)
