"""`constrained_sim campaign`: studies of thousands of runs, and any run of one again."""

import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from constrained_sim.cli.progress_bar import progress_bar
from constrained_sim.cli.texts import EXIT_CODES, FAILED, Json, say, write_json, wrong_use

if TYPE_CHECKING:
    from constrained_sim.campaign.execution import Progress
    from constrained_sim.campaign.results import Results
    from constrained_sim.campaign.study import Study

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="Study (YAML).", exists=True, dir_okay=False)]
Directory = Annotated[
    Optional[Path], typer.Option("--directory", help="Of the results (default: beside the study, STUDY_results).")
]
RunCount = Annotated[
    Optional[int], typer.Option("-n", "--runs", help="How many runs the study has (default: as it says).", min=1)
]


MOST_REASONS = 3
"""Reasons why runs failed that are told, the most frequent first."""


class StudyFirst(typer.core.TyperGroup):
    """A group whose command `run` need not be named."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Put `run` before what is no command, nor asks for help."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(context, args)


NAMES = {"--output": "run_{run}.npz", "--plot": "run_{run}.png", "--bag": "run_{run}", "--film": "run_{run}.mp4"}
"""What `replay` writes where an option has no name of its own; {run} is the number of the run."""


class NamesByRun(typer.core.TyperCommand):
    """A command whose options in :data:`NAMES` need no name after them."""

    def parse_args(self, context: Any, args: list[str]) -> list[str]:
        """Put the name behind an option that is the last word, or is followed by another option."""
        words: list[str] = []
        for word, following in itertools.zip_longest(args, args[1:], fillvalue="-"):
            words.append(word)
            if word in NAMES and following.startswith("-"):
                words.append(NAMES[word])
        return super().parse_args(context, words)


campaign = typer.Typer(
    cls=StudyFirst,
    no_args_is_help=True,
    help="Simulate one thing thousands of times, with other values each time; `campaign STUDY` means `campaign run`.",
)


def run_study_command(
    study: StudyFile,
    runs: RunCount = None,
    directory: Directory = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what is done already, up to as many runs as were begun, or -n.")
    ] = False,
    scheduler: Annotated[
        str, typer.Option(help="Address of a Dask scheduler (default: a cluster of this machine).")
    ] = "",
    workers: Annotated[
        Optional[int], typer.Option(help="Processes on this machine (default: one a processor).", min=1)
    ] = None,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Serve Dask's page, on this machine only.")] = False,
    report: Annotated[bool, typer.Option(help="Write a report, report.html, beside the results.")] = True,
    as_json: Json = False,
) -> None:
    """Do the runs of a study, and keep their table (Parquet).

    What is done is kept, whatever happens; `--resume` does the rest.

    Examples:
        $ constrained_sim campaign leg_friction.yaml -n 1000

        $ constrained_sim campaign leg_friction.yaml -n 10000 --resume --scheduler tcp://192.168.0.1:8786
    """
    from constrained_sim.campaign.cluster import dask_cluster
    from constrained_sim.campaign.execution import run_study
    from constrained_sim.campaign.one_run import DONE

    place = directory or default_directory(study)
    read = _study(study, _as_begun(place) if resume and runs is None else runs)
    if runs is None and (told := _study(study, None).runs) != read.runs:
        say(
            f"the results in {str(place)!r} were begun as {read.runs} runs, the study says {told}: -n {told} does those"
        )
    done = 0
    try:
        with dask_cluster(scheduler, workers, dashboard) as cluster:
            if cluster.dashboard:
                say(f"Dask's page: {cluster.dashboard}")
            with progress_bar("runs", shown=not as_json) as report_progress:

                def show(state: "Progress") -> None:
                    nonlocal done
                    done = state.done
                    report_progress(done, read.runs, _text_of(state))

                report_progress(0, read.runs, "starting (a new host first compiles)")
                results = run_study(read, cluster.executor, place, resume, show, cluster.workers)
    except KeyboardInterrupt:
        say(f"{done} of {read.runs} runs are in {str(place)!r} (--resume does the rest)")
        raise
    if report:
        results.report(place / "report.html")
    summary = _summary(results, place / "report.html" if report else None)
    write_json(summary) if as_json else _print(summary, results)
    if DONE not in summary["statuses"]:
        say("no run came to its end")
        raise typer.Exit(FAILED)


def replay_run_command(
    study: StudyFile,
    run: Annotated[int, typer.Argument(help="Number of the run.", min=0)],
    runs: RunCount = None,
    directory: Directory = None,
    output: Annotated[
        Optional[Path], typer.Option(help="Result for Trajectory.load (.npz; default: run_RUN.npz).")
    ] = None,
    plot: Annotated[Optional[Path], typer.Option(help="Picture (.png, .pdf, .svg; default: run_RUN.png).")] = None,
    bag: Annotated[Optional[Path], typer.Option(help="New directory of a rosbag2 bag (default: run_RUN).")] = None,
    view: Annotated[bool, typer.Option("--view", help="Show the run in the browser, until Ctrl-C.")] = False,
    film: Annotated[Optional[Path], typer.Option(help="Film of the run (.mp4, .gif; default: run_RUN.mp4).")] = None,
    as_json: Json = False,
) -> None:
    """Do one run of a study again, the same bit by bit, without limits of time and memory.

    Examples:
        $ constrained_sim campaign replay leg_friction.yaml 4711 --bag --view

        $ constrained_sim campaign replay leg_friction.yaml 4711 --output worst.npz --film worst.mp4
    """
    from constrained_sim.campaign.one_run import do_run
    from constrained_sim.cli.outputs import checked_outputs
    from constrained_sim.exceptions import ConfigError

    read = _study(study, runs)
    if runs is None:
        read = _as_it_was(read, directory or default_directory(study))
    if run >= read.runs:
        raise wrong_use("RUN", f"got {run}, allowed: 0 to {read.runs - 1}, the runs of the study; -n says of how many")
    files = (path and Path(str(path).replace("{run}", str(run))) for path in (output, plot, bag, film))
    outputs = checked_outputs(*files)
    outcome = do_run(read, run)
    row, trajectory, config = outcome.row, outcome.trajectory, outcome.config
    written: list[str] = []
    if trajectory is not None and config is not None:
        written = [str(path) for write in outputs for path in write(trajectory, config)]
    summary = {name: getattr(row, name) for name in ("run", "status", "passed", "reason", "values", "measures")}
    write_json({**summary, "files": written}) if as_json else _print_run(summary, row.traceback, written)
    if trajectory is None and (outputs or view):
        raise ConfigError(f"run {run} has no trajectory to show or to write: {row.reason}")
    if view and trajectory is not None:
        from constrained_sim.viewer.open_page import show
        from constrained_sim.viewer.trajectory_source import TrajectorySource

        show(TrajectorySource(trajectory), say)


def report_command(
    study: StudyFile,
    directory: Directory = None,
    output: Annotated[Optional[Path], typer.Option(help="Page (default: report.html in the directory).")] = None,
) -> None:
    """Write the report of results that are there, also while a study goes on.

    Examples:
        $ constrained_sim campaign report leg_friction.yaml --output leg.html
    """
    from constrained_sim.campaign.results import Results
    from constrained_sim.cli.outputs import check_output

    place = directory or default_directory(study)
    page = output or place / "report.html"
    check_output("--output", page, (".html",))
    Results(_as_it_was(_study(study, None), place), place).report(page)
    print(page)


campaign.command("run", epilog=EXIT_CODES)(run_study_command)
campaign.command("replay", cls=NamesByRun, epilog=EXIT_CODES)(replay_run_command)
campaign.command("report", epilog=EXIT_CODES)(report_command)


def default_directory(study: Path) -> Path:
    """Return where the results of a study's file go."""
    return study.with_name(f"{study.stem}_results")


def _study(path: Path, runs: int | None) -> "Study":
    """Read a study, with another number of runs if one is given."""
    from constrained_sim.campaign.reader import load_study

    study = load_study(path)
    return study if runs is None else study.with_runs(runs)


def _as_begun(directory: Path) -> int | None:
    """Return as how many runs the results in a `directory` were begun; None where there are none."""
    from constrained_sim.campaign.table import ABOUT, read_about

    return int(read_about(directory)["runs"]) if (directory / ABOUT).is_file() else None


def _as_it_was(study: "Study", directory: Path) -> "Study":
    """Return a study with as many runs as its results were made for, which a Latin hypercube depends on.

    Raises:
        ConfigError: the results are those of another study.
    """
    from constrained_sim.campaign.table import ABOUT, read_about
    from constrained_sim.exceptions import ConfigError

    if not (directory / ABOUT).is_file():
        return study
    about = read_about(directory)
    study = study.with_runs(about["runs"])
    if study.fingerprint != about["fingerprint"]:
        raise ConfigError(f"the results in {str(directory)!r} are those of another study, allowed: the study as it was")
    return study


def _text_of(state: "Progress") -> str:
    """Return how far a study is: passed, failed, runs per second and time left."""
    minutes, seconds = divmod(round(min(state.seconds_left, 1e9)), 60)
    return f"{state.passed} passed, {state.failed} failed, {state.rate:.1f} runs/s, {minutes}:{seconds:02d} left"


def _print_run(summary: dict[str, Any], traceback: str, files: list[str]) -> None:
    """Write what one run came to, and where it is, for people."""
    for name, value in summary.items():
        entries = value if isinstance(value, dict) else {}
        print(f"{name}:" if entries else f"{name}: {'none' if value in ('', {}) else value}")
        for key, entry in entries.items():
            print(f"  {key}: {entry}")
    print(traceback, end="")
    for path in files:
        print(f"wrote {path}")


def _summary(results: "Results", report: Path | None) -> dict[str, Any]:
    """Return what a study came to."""
    interval = results.interval()
    statuses = results.column("status").tolist()
    return {
        "runs": results.runs,
        "passed": results.passed,
        "share_passed": results.share_passed,
        "confidence_95": [interval.lower, interval.upper],
        "statuses": {status: statuses.count(status) for status in sorted(set(statuses))},
        "worst": results.worst(),
        "directory": str(results.directory),
        "report": None if report is None else str(report),
    }


def _print(summary: dict[str, Any], results: "Results") -> None:
    """Write a summary for people."""
    lower, upper = summary["confidence_95"]
    print(f"{summary['passed']} of {summary['runs']} runs passed: {summary['share_passed']:.4g}", end="")
    print(f" (95 % confidence: {lower:.4g} to {upper:.4g})")
    for status, count in summary["statuses"].items():
        print(f"{count:9d}  {status}")
    for reason, count in Counter(filter(None, results.column("reason").tolist())).most_common(MOST_REASONS):
        print(f"{count:9d}  {reason}")
    if results.failures:
        print(f"first failures: {', '.join(map(str, results.failures[:10]))}")
        print(results.study.replay_command(results.failures[0]))
    print("\n".join(path for path in (summary["directory"], summary["report"]) if path))
