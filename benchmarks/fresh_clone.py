"""Measures what a newcomer waits for: a fresh clone of what is committed, stage by stage, and a first simulation.

make bench ARGS=setup
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
OURS = (
    "CONSTRAINED_SIM_ENV",
    "AMENT_PREFIX_PATH",
    "CMAKE_PREFIX_PATH",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "NUMBA_CACHE_DIR",
    "MAKEFLAGS",
    "MAKEOVERRIDES",
    "MAKELEVEL",
    "MFLAGS",
    "ARGS",
)
"""Variables of our own environment, and of the `make` that runs this, which a newcomer's shell does not have."""

FIRST = """
import time
begin = time.monotonic()
import constrained_sim as cs
from constrained_sim.precompile import BOX
sim = cs.Simulator(cs.Robot.from_urdf(BOX, floating_base=True),
                   [cs.PointContact("corner", "box", (0.1, 0.1, -0.05), friction=0.5)], q=[0, 0, 0.05, 0, 0, 0, 1])
sim.step()
sim.run(0.01)
"""


WAIT = 'exec flock "$1"/*/*/background.lock true'
"""Command that ends when no process compiles any more, for one that locks this file meanwhile."""


class Stage(NamedTuple):
    """What took how long: seconds by the clock, and of the processor."""

    what: str
    clock: float
    processor: float


def stages() -> Iterator[Stage]:
    """Clone, set up, and run the leg; then what is done once more, and a first simulation without machine code."""
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    environment["PATH"] = os.pathsep.join(
        folder for folder in os.environ["PATH"].split(os.pathsep) if not folder.startswith(str(ROOT))
    )
    with tempfile.TemporaryDirectory() as folder:
        clone, kernels = Path(folder, "constrained_sim"), Path(folder, "kernels")
        environment.pop("ROS_DISTRO", None)
        yield timed("git clone", ["git", "clone", "--quiet", str(ROOT), str(clone)], ROOT, environment)
        yield timed("scripts/setup: libraries, messages, kernels of the leg", ["scripts/setup"], clone, environment)
        leg = ["make", "leg", "DURATION=5", "CLOCK_MODE=realtime"]
        yield timed("make leg DURATION=5, to its picture", leg, clone, environment)
        rest = ["scripts/run", "python", "-m", "constrained_sim", "compile"]
        yield timed("the kernels that the leg does not need, if no other work waits for them", rest, clone, environment)
        yield timed("scripts/setup, nothing to do", ["scripts/setup"], clone, environment)
        first = ["scripts/run", "python", "-c", FIRST]
        bare = environment | {"NUMBA_CACHE_DIR": str(kernels)}
        yield timed("first simulation in Python, no kernel compiled", first, clone, bare)
        yield timed("its kernels, compiled in the background", ["sh", "-c", WAIT, "wait", str(kernels)], clone, bare)
        yield timed("the same simulation again", first, clone, bare)


def timed(what: str, command: list[str], folder: Path, environment: dict[str, str]) -> Stage:
    """Run a command and measure it; what it writes is shown."""
    before, begin = processor_time(), time.monotonic()
    subprocess.run(command, cwd=folder, env=environment, check=True)
    return Stage(what, time.monotonic() - begin, processor_time() - before)


def processor_time() -> float:
    """Return the processor time of all children that have ended [s]."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def main() -> None:
    """Measure and print."""
    table = Table("stage", "clock [s]", "processor [s]")
    for stage in stages():
        table.add_row(stage.what, f"{stage.clock:.1f}", f"{stage.processor:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    sys.exit(main())
