"""The commands together, and what they do about errors."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated

import typer

from constrained_sim.cli.campaign import campaign
from constrained_sim.cli.check import check_command
from constrained_sim.cli.compile import compile_command
from constrained_sim.cli.film import film_command
from constrained_sim.cli.layouts import layouts_command
from constrained_sim.cli.listing import list_command
from constrained_sim.cli.new import new_command
from constrained_sim.cli.plot import plot_command
from constrained_sim.cli.recover import recover_command
from constrained_sim.cli.replay import replay_command
from constrained_sim.cli.report import report_command
from constrained_sim.cli.run import run_command
from constrained_sim.cli.texts import EXIT_CODES, FAILED, SAID, say, say_once
from constrained_sim.cli.version import installed_versions, version_command
from constrained_sim.cli.view import view_command
from constrained_sim.cli.why import why_command
from constrained_sim.exceptions import ConstrainedSimError

app = typer.Typer(
    name="constrained_sim",
    help="Simulates robots under constraints and contact, with and without ROS.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"constrained_sim {installed_versions()['constrained_sim']}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version, and exit.")
    ] = False,
) -> None:
    pass


app.command("run", epilog=EXIT_CODES)(run_command)
app.command("check", epilog=EXIT_CODES)(check_command)
app.command("new", epilog=EXIT_CODES)(new_command)
app.command("view", epilog=EXIT_CODES)(view_command)
app.command("film", epilog=EXIT_CODES)(film_command)
app.command("layouts", epilog=EXIT_CODES)(layouts_command)
app.command("plot", epilog=EXIT_CODES)(plot_command)
app.command("report", epilog=EXIT_CODES)(report_command)
app.command("replay", epilog=EXIT_CODES)(replay_command)
app.command("recover", epilog=EXIT_CODES)(recover_command)
app.command("compile", epilog=EXIT_CODES)(compile_command)
app.command("list", epilog=EXIT_CODES)(list_command)
app.add_typer(campaign, name="campaign", epilog=EXIT_CODES)
app.command("why", epilog=EXIT_CODES)(why_command)
app.command("version", epilog=EXIT_CODES)(version_command)


def main() -> None:
    """Run the command line; what this package refuses or warns of is one line on the standard error stream."""
    SAID.clear()
    warnings.showwarning = lambda message, *_: say_once(message)
    try:
        app(prog_name="constrained_sim")
    except ConstrainedSimError as error:
        say(str(error))
        sys.exit(FAILED)
