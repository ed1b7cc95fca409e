"""Measures speed: medians over repeated blocks of calls, and ratios to pinocchio.aba of the same robot in the same run.

    make bench            # everything
    make bench ARGS=step  # groups whose name contains "step"

The processor's state changes from run to run: compare the ratios, not the microseconds. MuJoCo is measured beside it
where it is installed (`scripts/run pip install -r requirements/benchmark.lock`).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pinocchio as pin
from rich.console import Console
from rich.table import Table

from constrained_sim import (
    Collisions,
    Plane,
    PointAnchor,
    PointContact,
    Simulator,
    constrained_acceleration,
    load_config,
    resolve_impact,
)
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics import Dynamics
from constrained_sim.robot import Robot
from constrained_sim.solvers import SOLVERS, RobotSystem, make_solver
from constrained_sim.solvers.direct import FACTORIZATIONS

ROOT = Path(__file__).resolve().parents[1]
BLOCKS, CALLS = 15, 200
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")

Row = tuple[str, Callable[[], object]]


ROBOTS = (
    Path(sys.prefix) / f"lib/python3.{sys.version_info[1]}/site-packages/cmeel.prefix/share/example-robot-data/robots"
)


def solo12() -> tuple[Robot, np.ndarray]:
    """Return solo12 standing on its feet."""
    robot = Robot.from_urdf(ROBOTS / "solo_description/robots/solo12.urdf", floating_base=True)
    posture = {f"{leg}_{joint}": q for leg in ("FL", "FR", "HL", "HR") for joint, q in (("HFE", 0.8), ("KFE", -1.6))}
    q = robot.configuration(posture, (0, 0, 0, 0, 0, 0, 1))
    bound = ConstraintSet.bind(robot, q, [PointContact(foot, foot, (0, 0, 0)) for foot in FEET])
    q[2] -= bound.contacts.rows(Dynamics.at(robot, q, np.zeros(robot.nv)), np.zeros(robot.nv)).gaps.min()
    return robot, q


def holding(sim: Simulator, q: np.ndarray, kp: float, kd: float) -> Callable[[], object]:
    """Return one step of `sim` under joint feedback that holds the posture of `q`, after it has settled."""
    robot = sim.robot
    first = robot.nq - robot.nu
    wanted = q[first:].copy()

    def step() -> object:
        state = sim.state
        return sim.step(kp * (wanted - state.q[first:]) - kd * state.v[robot.actuation])

    for _ in range(1500):
        step()
    return step


def steps() -> Iterator[tuple[Robot, np.ndarray, list[Row]]]:
    """Time steps of 1 ms, standing and moving."""
    config = load_config(ROOT / "config" / "leg.yaml")
    leg = config.simulator()
    tumbling = config.simulator(constraints=())
    yield (
        config.robot,
        config.q,
        [
            ("leg, standing", holding(leg, config.q, 60.0, 1.5)),
            ("leg, falling", lambda: tumbling.step() if tumbling.steps < 150 else tumbling.reset(config.q)),
        ],
    )
    robot, q = solo12()
    sim = Simulator(robot)
    sim.reset(q)
    for foot in FEET:
        sim.add(PointContact(foot, foot, (0, 0, 0), friction=0.7))
    yield robot, q, [("solo12, standing", holding(sim, q, 10.0, 0.2))]
    talos = Robot.from_urdf(ROBOTS / "talos_data/robots/talos_reduced.urdf", floating_base=True)
    lying = Simulator(talos, collisions=Collisions({"ground": Plane(offset=-1.1)}, friction=0.7))
    lying.reset(talos.neutral())
    lying.run(1.5)
    yield talos, talos.neutral(), [("talos, collision meshes, on the ground", lying.step)]


def solvers() -> Iterator[tuple[Robot, np.ndarray, list[Row]]]:
    """Every solver on solo12 with four feet anchored, 12 rows: factor and solve, and the whole public call."""
    robot, q = solo12()
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nu)
    anchors = [PointAnchor(foot, foot, (0, 0, 0)) for foot in FEET]
    dynamics = Dynamics.at(robot, q, v)
    bound = ConstraintSet.bind(robot, q, anchors).bilateral
    J, b, f = bound.jacobian(dynamics), -bound.gamma(dynamics), -dynamics.h
    rows: list[Row] = []
    for name in SOLVERS:
        for options in [{"factorization": kind} for kind in FACTORIZATIONS] if name == "direct" else [{}]:
            solver = make_solver(name, **options)
            label = " ".join([name, *options.values()])
            rows.append(
                (f"solve: {label}", lambda s=solver: s.factor(RobotSystem(dynamics, J, bound.members)).solve(f, b))
            )
    rows += [
        (f"{call.__name__}: {name}", lambda call=call, extra=extra, name=name: call(robot, q, v, *extra, anchors, name))
        for call, extra in ((constrained_acceleration, (tau,)), (resolve_impact, ()))
        for name in SOLVERS
    ]
    yield robot, q, rows


def peers() -> Iterator[tuple[Robot, np.ndarray, list[Row]]]:
    """MuJoCo on the leg, for comparison."""
    try:
        import mujoco
    except ImportError:
        return
    config = load_config(ROOT / "config" / "leg.yaml")
    model = mujoco.MjModel.from_xml_string(config.robot.urdf)
    model.opt.timestep = 1e-3
    data = mujoco.MjData(model)
    yield config.robot, config.q, [("MuJoCo mj_step, leg without ground", lambda: mujoco.mj_step(model, data))]


def median_microseconds(call: Callable[[], object]) -> float:
    """Return the median over blocks of the mean time of one call."""
    call()
    times = []
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - begin) / CALLS)
    return 1e6 * float(np.median(times))


def main() -> None:
    """Measure the groups that the command line names, or all."""
    table = Table("group", "what", "us per call", "pin.aba [us]", "ratio")
    for group in (steps, solvers, peers):
        if not any(word in group.__name__ for word in sys.argv[1:] or [""]):
            continue
        for robot, q, rows in group():
            data, zero = robot.model.createData(), np.zeros(robot.nv)
            aba = median_microseconds(lambda: pin.aba(robot.model, data, q, zero, zero))  # noqa: B023
            for what, call in rows:
                duration = median_microseconds(call)
                table.add_row(group.__name__, what, f"{duration:.1f}", f"{aba:.2f}", f"{duration / aba:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
