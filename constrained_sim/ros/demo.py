"""`make leg`, ...: starts what a launch file starts, without the launch system; shows it, records it, plots it."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from ament_index_python.packages import get_package_prefix, get_package_share_directory

from constrained_sim.cli import INTERRUPTED
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.ros.discovery import loopback_settings
from constrained_sim.shipped import PACKAGE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; Ctrl-C ends it without ado, also while Python still imports what it needs."""
    try:
        return _demonstrate(parse(arguments))
    except ConstrainedSimError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _demonstrate(options: argparse.Namespace) -> int:
    """Simulate, and plot what was recorded; return an exit code."""
    from constrained_sim.bag_reader import METADATA

    os.environ.update(loopback_settings())
    bag = options.output / f"{options.robot}_bag_{datetime.now():%Y%m%d_%H%M%S}"
    code = _simulate(options, bag)
    if code != 0:
        print(f"demo: the simulator ended with exit code {code}", file=sys.stderr)
        return code
    if not (bag / METADATA).is_file():
        print("demo: interrupted before anything was recorded", file=sys.stderr)
        return INTERRUPTED
    pages = _plot(bag, f"{options.robot}: {options.controller}, {options.clock_mode}, {options.solver}")
    print(f"\nrecorded  {bag}\nplotted   {pages}\nplot any bag with  scripts/run constrained_sim plot DIRECTORY")
    print("look at it with   scripts/run constrained_sim view DIRECTORY")
    return 0


def _simulate(options: argparse.Namespace, bag: Path) -> int:
    """Run the simulator, and beside it what shows and controls it, until it ends; return its exit code."""
    simulator = executable(
        "simulator",
        "--params-file", str(options.config),
        "-p", f"clock_mode:={options.clock_mode}",
        "-p", f"solver:={options.solver}",
        "-p", f"duration:={float(options.duration)}",
        "-p", f"record:={bag}",
        "-p", f"wait_for_first_command:={options.controller != 'none'}",
    )  # fmt: skip
    companions: list[subprocess.Popen[bytes]] = []
    try:
        for words in _beside(options):
            companions.append(executable(*words))
        return simulator.wait()
    except KeyboardInterrupt:  # it has heard of it as well
        return simulator.wait()
    finally:
        for process in companions:
            process.send_signal(signal.SIGINT)
        for process in companions:
            process.wait()


def _beside(options: argparse.Namespace) -> list[tuple[str, ...]]:
    """Return the executables beside the simulator, with their arguments."""
    words: list[tuple[str, ...]] = [("monitor",), *([("viewer",)] if options.view else [])]
    if options.controller != "none":
        config = () if options.robot == "leg" else ("-p", f"config:={options.config.resolve()}")
        words.append((f"{options.robot}_controller", "-p", f"mode:={options.controller}", *config))
    return words


def _plot(bag: Path, title: str) -> Path:
    """Plot a recording into a file beside it, and return that."""
    from constrained_sim.plots.figures import write_figures
    from constrained_sim.plots.from_bag import read_bag

    (pages,) = write_figures(replace(read_bag(bag), title=title), bag.with_suffix(".pdf"))
    return pages


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    from constrained_sim.ros.demos import MODES

    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("robot", choices=MODES)
    parser.add_argument("--duration", type=float, default=10.0, help="simulated seconds (default: %(default)s)")
    parser.add_argument(
        "--controller", default="", help="what the controller does, or none (default: the first it can)"
    )
    parser.add_argument("--clock-mode", choices=("realtime", "fast", "lockstep"), default="realtime")
    parser.add_argument("--solver", default="range_space", help="range_space, direct, null_space, ...")
    parser.add_argument("--config", type=Path, help="parameter file (default: the robot's)")
    parser.add_argument("--output", type=Path, default=Path("recordings"), help="folder of bags and plots")
    parser.add_argument("--view", action="store_true", help="show it in the browser too")
    options = parser.parse_args(arguments)
    modes = MODES[options.robot]
    options.controller = options.controller or modes[0]
    if options.controller not in (*modes, "none"):
        parser.error(f"--controller: got {options.controller!r}, allowed: {', '.join(modes)}, none")
    share = Path(get_package_share_directory(PACKAGE))
    options.config = options.config or share / "config" / f"{options.robot}.yaml"
    return options


def executable(name: str, *ros_arguments: str) -> subprocess.Popen[bytes]:
    """Start an executable of this package as a process of its own, as `ros2 run` would."""
    path = Path(get_package_prefix(PACKAGE)) / "lib" / PACKAGE / name
    return subprocess.Popen([str(path), *(("--ros-args", *ros_arguments) if ros_arguments else ())])


if __name__ == "__main__":
    sys.exit(main())
