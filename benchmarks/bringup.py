"""Brings robots of example-robot-data by the command line, `check`, `new`, `run`, and tells which of them stand.

    scripts/run python benchmarks/bringup.py            # all of ROBOTS
    scripts/run python benchmarks/bringup.py go2 g1     # some
    scripts/run python benchmarks/bringup.py --picture docs/images/brought_robots.jpg      # and draws how they stand

Nothing is edited between the commands. A robot stands where after two seconds no coordinate is 0.05 (m, rad) from its
start, and the mean force of the ground over the last tenth of a second is its weight to 1 %. Exit code 1 if one fails.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import Trajectory, load_config
from constrained_sim.cli.view import source_of
from constrained_sim.exceptions import UnphysicalInertia
from constrained_sim.viewer.film import FilmOptions, pictures

ROBOTS = {
    "solo12": "solo_description/robots/solo12.urdf",
    "anymal": "anymal_c_simple_description/urdf/anymal.urdf",
    "hyq": "hyq_description/robots/hyq_no_sensors.urdf",
    "a1": "a1_description/urdf/a1.urdf",
    "go2": "go2_description/urdf/go2.urdf",
    "b1": "b1_description/urdf/b1.urdf",
    "laikago": "laikago_description/urdf/laikago.urdf",
    "g1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "romeo": "romeo_description/urdf/romeo_small.urdf",
    "icub": "icub_description/robots/icub_reduced.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "simple_humanoid": "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "panda": "panda_description/urdf/panda.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
}
"""Files in the folder ``robots`` of the package, by the name of what is written for them."""

PIXELS, COLUMNS = (220, 240), 5
"""Size of the picture of a robot, and how many are beside each other."""

SETTLING = 0.4
"""[s] At the end of the run, of which pictures are taken: the first come before the browser has all it needs."""

DURATION = 2.0
DRIFT = 0.05
WEIGHT = 0.01


class Result(NamedTuple):
    """How a robot stood.

    Attributes:
        contacts: how many there are.
        drift: largest change of a coordinate [m, rad].
        height: change of the base's height [m]; 0 with a fixed base.
        carried: force of the ground as a share of the weight; NaN with a fixed base.
    """

    contacts: int
    drift: float
    height: float
    carried: float

    @property
    def stands(self) -> bool:
        """Whether it neither fell nor drifted, and the ground carries it."""
        return self.drift < DRIFT and not abs(self.carried - 1.0) > WEIGHT


def bring(name: str, path: str, folder: Path) -> Result:
    """Return how the robot of a description stands after `check`, `new` and `run`."""
    robot = f"package://example-robot-data/robots/{path}"
    command(folder, "check", robot, "--json")
    command(folder, "new", robot, "--name", name, "--json")
    law = f"{name}_controller.py:efforts"
    command(
        folder, "run", f"{name}.yaml", "--controller", law, "--duration", DURATION, "--output", f"{name}.npz", "--json"
    )
    config, run = load_config(folder / f"{name}.yaml"), Trajectory.load(folder / f"{name}.npz")
    change = run.q[-1] - config.q
    last = round(0.1 / config.simulation.dt)
    force = sum(forces[-last:, 2].mean() for forces in run.contact_forces.values())
    free = config.robot.floating_base
    weight = config.robot.mass * np.linalg.norm(config.robot.gravity)
    return Result(
        len(run.contact_forces),
        float(np.abs(change).max()),
        float(change[2]) if free else 0.0,
        float(force / weight) if free else float("nan"),
    )


def picture(name: str, folder: Path) -> np.ndarray:
    """Return (height, width, 3) how a robot that was brought stands at the end, as the viewer draws it."""
    shown = source_of(str(folder / f"{name}.npz"), str(folder / f"{name}.yaml"))
    options = FilmOptions(*PIXELS, begin=DURATION - SETTLING)
    return list(pictures(shown, options))[-1]


def sheet(drawn: dict[str, np.ndarray], path: Path) -> None:
    """Write pictures by the names of their robots into one."""
    rows = -(-len(drawn) // COLUMNS)
    width, height = COLUMNS * PIXELS[0] / 100, rows * (PIXELS[1] + 20) / 100
    figure, axes = plt.subplots(rows, COLUMNS, figsize=(width, height), dpi=100, squeeze=False)
    for place in axes.flat:
        place.set_axis_off()
    for place, (name, image) in zip(axes.flat, drawn.items(), strict=False):
        place.imshow(image)
        place.set_title(name, fontsize=8, pad=2)
    figure.subplots_adjust(0.0, 0.0, 1.0, 1.0 - 0.18 / height, wspace=0.0, hspace=0.1)
    figure.savefig(path)


def command(folder: Path, *words: object) -> dict[str, object]:
    """Return what a command of constrained_sim writes as JSON."""
    call = [sys.executable, "-m", "constrained_sim", *map(str, words)]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(call)}: {done.stderr}")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def main() -> int:
    """Print a table; return 1 if a robot does not stand."""
    warnings.simplefilter("ignore", UnphysicalInertia)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", choices=[*ROBOTS, []], default=[], help="which (default: all)")
    parser.add_argument("--picture", type=Path, help="file for a picture of all of them (needs Chromium)")
    options = parser.parse_args()
    wanted = options.robots or list(ROBOTS)
    drawn = {}
    print(f"{'robot':16} {'contacts':>8} {'drift':>10} {'height':>10} {'force/weight':>13}  stands", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            result = bring(name, ROBOTS[name], Path(folder))
            failed += not result.stands
            if options.picture:
                drawn[name] = picture(name, Path(folder))
            print(
                f"{name:16} {result.contacts:8d} {result.drift:10.2e} {result.height:+10.2e} {result.carried:13.6f}  "
                f"{'yes' if result.stands else 'NO'}",
                flush=True,
            )
    if options.picture:
        sheet(drawn, options.picture)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
