"""`constrained_sim plot`: pictures of a result or of a recording."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from constrained_sim.cli.texts import Json, say, write_json, wrong_use


def plot_command(
    source: Annotated[Path, typer.Argument(help="Result of `run --output`, or directory of a recording.", exists=True)],
    output: Annotated[
        Optional[Path],
        typer.Option(help="All pages (.pdf), or a file for each (.png, .svg). Default: beside the source, .pdf."),
    ] = None,
    kind: Annotated[
        Optional[list[str]],
        typer.Option(
            help="contact_forces, joints, friction_cones, residuals, energy or impacts; may be repeated. Default: all "
            "for which there are data."
        ),
    ] = None,
    robot: Annotated[
        str, typer.Option(help="Parameter file or shipped robot that a result (.npz), or a foreign recording, is of.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Plot a result (.npz) or a recording (rosbag2 directory).

    Limits of joints, limbs, and friction cones of a result need --robot; a recording of the node tells them itself.

    Examples:
        $ constrained_sim plot hop.npz --robot leg

        $ constrained_sim plot recordings/leg_bag --kind contact_forces --output forces.png
    """
    from constrained_sim.cli.outputs import beside, check_picture
    from constrained_sim.cli.parameters import find_robot
    from constrained_sim.exceptions import ConfigError
    from constrained_sim.plots.figures import KINDS, write_figures
    from constrained_sim.plots.reading import read
    from constrained_sim.testing.simulated_robot import read_parameters

    pictures = output or beside(source, ".pdf")
    check_picture("--output", pictures)
    if unknown := [name for name in kind or () if name not in KINDS]:
        raise wrong_use("--kind", f"got {unknown[0]!r}, allowed: {', '.join(KINDS)}")
    if "friction_cones" in (kind or ()) and source.is_file() and not robot:
        raise ConfigError("--kind friction_cones: a result does not tell of its contacts, allowed: with --robot")
    recording = read(source, read_parameters(find_robot(robot), {}) if robot else None)
    for note in recording.notes:
        say(note)
    files = [str(file) for file in write_figures(recording, pictures, dict.fromkeys(kind or KINDS))]
    if as_json:
        write_json({"source": str(source), "pictures": files})
    else:
        print("\n".join(files))
