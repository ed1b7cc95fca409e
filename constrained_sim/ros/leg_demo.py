"""`make leg`: starts what leg.launch.py starts, without the launch system; shows it, records it, plots it."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ament_index_python.packages import get_package_prefix, get_package_share_directory

from constrained_sim.plotting import plot, read_bag

PACKAGE = "constrained_sim"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration."""
    options = parse(arguments)
    bag = options.output / f"leg_bag_{datetime.now():%Y%m%d_%H%M%S}"
    simulator = executable(
        "simulator",
        "--params-file", str(options.config),
        "-p", f"clock_mode:={options.clock_mode}",
        "-p", f"solver:={options.solver}",
        "-p", f"duration:={float(options.duration)}",
        "-p", f"record:={bag}",
        "-p", f"wait_for_first_command:={options.controller != 'none'}",
    )  # fmt: skip
    companions = [executable("monitor")]
    if options.controller != "none":
        companions.append(executable("leg_controller", "-p", f"mode:={options.controller}"))
    try:
        code = simulator.wait()
    except KeyboardInterrupt:
        code = simulator.wait()
    finally:
        for process in companions:
            process.send_signal(signal.SIGINT)
        for process in companions:
            process.wait()
    if code != 0:
        print(f"leg_demo: the simulator ended with exit code {code}", file=sys.stderr)
        return code
    image = bag.with_suffix(".png")
    plot(read_bag(bag), image, f"leg: {options.controller}, {options.clock_mode}, {options.solver}")
    print(f"\nrecorded  {bag}\nplotted   {image}\nplot any bag with  scripts/run plot_bag DIRECTORY")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="make leg", description=__doc__)
    parser.add_argument("--duration", type=float, default=10.0, help="simulated seconds (default: %(default)s)")
    parser.add_argument("--controller", choices=("stand", "hop", "none"), default="hop")
    parser.add_argument("--clock-mode", choices=("realtime", "fast", "lockstep"), default="realtime")
    parser.add_argument("--solver", default="direct", help="direct, range_space or null_space")
    parser.add_argument(
        "--config", type=Path, default=Path(get_package_share_directory(PACKAGE)) / "config" / "leg.yaml"
    )
    parser.add_argument("--output", type=Path, default=Path("recordings"), help="folder of bags and plots")
    return parser.parse_args(arguments)


def executable(name: str, *ros_arguments: str) -> subprocess.Popen[bytes]:
    """Start an executable of this package as a process of its own, as `ros2 run` would."""
    path = Path(get_package_prefix(PACKAGE)) / "lib" / PACKAGE / name
    return subprocess.Popen([str(path), *(("--ros-args", *ros_arguments) if ros_arguments else ())])


if __name__ == "__main__":
    sys.exit(main())
