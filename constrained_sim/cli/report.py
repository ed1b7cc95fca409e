"""`constrained_sim report`: one HTML file about a recording."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from constrained_sim.cli.texts import Json, write_json


def report_command(
    bag: Annotated[Path, typer.Argument(help="Directory of a recording (rosbag2).", exists=True, file_okay=False)],
    output: Annotated[Optional[Path], typer.Option(help="HTML file (default: beside the recording, .html).")] = None,
    robot: Annotated[str, typer.Option(help="Parameter file or shipped robot that a foreign recording is of.")] = "",
    as_json: Json = False,
) -> None:
    """Write a report of a recording: summary, warnings, interactive plots, parameters, versions, how to replay it.

    It is one file of about 5 MB, and opens without a network.

    Examples:
        $ constrained_sim report recordings/leg_bag

        $ constrained_sim report recordings/leg_bag --output leg.html
    """
    from constrained_sim.cli.outputs import beside, check_output
    from constrained_sim.cli.parameters import find_robot
    from constrained_sim.optional import optional
    from constrained_sim.report.document import write_report
    from constrained_sim.testing.simulated_robot import read_parameters

    page = output or beside(bag, ".html")
    check_output("--output", page, (".html",))
    optional("plotly", "a report")
    write_report(bag, page, read_parameters(find_robot(robot), {}) if robot else None)
    if as_json:
        write_json({"bag": str(bag), "report": str(page)})
    else:
        print(page)
