"""Measures studies: throughput, overhead, start, memory, killed processes, ROS, and MuJoCo's rollout beside it.

    make bench-campaign                  # everything, about half an hour
    make bench-campaign ARGS=kills       # measurements whose name contains "kills"

What competes for the processor shows in the results: measure on an idle machine.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import distributed
import mujoco
import numpy as np
import pinocchio as pin
import psutil
from mujoco import rollout

from constrained_sim.campaign import Study, do_run, read_study
from constrained_sim.campaign.cluster import dask_cluster
from constrained_sim.campaign.execution import run_study
from constrained_sim.campaign.table import table_of
from constrained_sim.config import load_config
from constrained_sim.ros.discovery import loopback_settings
from constrained_sim.shipped import shipped_robots
from constrained_sim.testing.ros import package_executable

HERE = Path(__file__).parent
CORES = len(os.sched_getaffinity(0))
KILL_STUDIES, KILL_RUNS, KILL_EVERY = 20, 1000, 0.3
MANY = 100_000
OVER_ROS = 200
ROLLOUTS = 1000
STIFFNESS, DAMPING = 60.0, 1.5
"""Of the leg's joints [N m/rad, N m s/rad]."""

POSTURE = {"use": "posture", "stiffness": STIFFNESS, "damping": DAMPING}
FRICTION = {"uniform": [0.3, 1.0]}

Row = tuple[str, str]


def leg(**changes: Any) -> Study:
    """Return a study of the leg that stands."""
    common = {"robot": "leg", "duration": 1.0, "controller": POSTURE, "runs": 100, "seed": 1}
    varied = {"variations": {"contacts.foot.friction": FRICTION, "initial.positions.slider": {"uniform": [0.28, 0.34]}}}
    return read_study({**common, **varied, "measures": {"effort": None, "impacts": None}, **changes}, HERE)


def solo12(runs: int) -> Study:
    """Return a study of solo12 that stands for 1 s."""
    varied = {"contacts.FL_FOOT.friction": FRICTION, "robot.payloads.base_link": {"uniform": [0.0, 1.0]}}
    controller = {"use": "posture", "stiffness": 12.0, "damping": 0.2}
    return read_study(
        {"robot": "quadruped", "duration": 1.0, "controller": controller, "variations": varied, "runs": runs}, HERE
    )


def empty(runs: int) -> Study:
    """Return a study whose runs do next to nothing: one step of the leg in the air."""
    return leg(runs=runs, duration=1e-3, controller="none", measures={}, variations={"dt": {"choice": [0.001]}})


def seconds(study: Study, workers: int) -> float:
    """Return the wall-clock time of a study on an embedded cluster that is warm."""
    with dask_cluster(workers=workers) as cluster:
        run_study(study.with_runs(4 * workers), cluster.executor, workers=workers)
        begin = time.perf_counter()
        run_study(study, cluster.executor, workers=workers)
        return time.perf_counter() - begin


def throughput() -> Iterator[Row]:
    """Runs of 1 s of solo12 per second, on one core and on all, in turns."""
    study = solo12(200)
    times = [[seconds(study, workers) for workers in (1, CORES)] for _ in range(3)]
    one, all_cores = np.median(times, axis=0)
    yield "solo12 for 1 s, 1 process", f"{study.runs / one:.1f} runs/s"
    yield f"solo12 for 1 s, {CORES} processes", f"{study.runs / all_cores:.1f} runs/s"
    yield "ratio", f"{np.median([a / b for a, b in times]):.2f}"


def overhead() -> Iterator[Row]:
    """What a run costs that does nothing, beyond the same in a loop of Python."""
    study = empty(2000)
    do_run(study, 0)
    begin = time.perf_counter()
    for run in range(study.runs):
        do_run(study, run)
    bare = (time.perf_counter() - begin) / study.runs
    whole = seconds(study, 1) / study.runs
    yield "an empty run in a loop of Python", f"{1e3 * bare:.2f} ms"
    yield "by Dask, one process", f"{1e3 * whole:.2f} ms"
    yield "overhead of a run", f"{1e3 * (whole - bare):.2f} ms"


def start() -> Iterator[Row]:
    """From the command to the first result, all kernels being compiled."""
    program = (
        "import sys, time; from constrained_sim.campaign import load_study\n"
        "from constrained_sim.campaign.cluster import dask_cluster\n"
        "from constrained_sim.campaign.execution import run_study\n"
        "def tell(progress): print(time.time(), flush=True)\n"
        "study = load_study(sys.argv[1]).with_runs(4)\n"
        "with dask_cluster() as cluster: run_study(study, cluster.executor, progress=tell, workers=cluster.workers)"
    )
    times = []
    for _ in range(3):
        begin = time.time()
        file = HERE.parent / "examples" / "studies" / "leg_friction.yaml"
        out = subprocess.run([sys.executable, "-c", program, str(file)], capture_output=True, text=True, check=True)
        times.append(float(out.stdout.split()[0]) - begin)
    yield "from the start of Python to the first result", f"{np.median(times):.1f} s"


def many() -> Iterator[Row]:
    """Memory of scheduler and client over very many runs, and how fast they are."""
    study = empty(MANY)
    with scheduler_with_workers() as (address, scheduler), dask_cluster(address) as cluster:
        held = {"scheduler": psutil.Process(scheduler), "client": psutil.Process()}
        seen: list[dict[str, float]] = []

        def look(_: object) -> None:
            seen.append({name: process.memory_info().rss / 1e6 for name, process in held.items()})

        begin = time.perf_counter()
        results = run_study(study, cluster.executor, progress=look, workers=cluster.workers)
        took = time.perf_counter() - begin
        assert results.runs == MANY
    yield f"{MANY} empty runs, {cluster.workers} workers", f"{MANY / took:.0f} runs/s"
    tenth = len(seen) // 10
    for name in held:
        yield f"memory of the {name} after a tenth", f"{seen[tenth][name]:.0f} MB"
        yield f"memory of the {name}, largest", f"{max(now[name] for now in seen):.0f} MB"
    parts = [file.stat().st_size for file in results.directory.glob("*.parquet")]
    yield "table on disk", f"{sum(parts) / 1e6:.1f} MB in {len(parts)} files"


@contextlib.contextmanager
def scheduler_with_workers() -> Iterator[tuple[str, int]]:
    """Yield the address and the process of a scheduler with a worker for each core."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        file = str(Path(folder) / "scheduler.json")

        def start_process(name: str, *words: str) -> int:
            command = [sys.executable, "-m", f"distributed.cli.{name}", "--no-dashboard", "--host", "127.0.0.1"]
            command += ["--scheduler-file", file, *words]
            process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process.pid

        scheduler = start_process("dask_scheduler", "--port", "0")
        for _ in range(CORES):
            start_process("dask_worker", "--nthreads", "1")
        with distributed.Client(scheduler_file=file, timeout=60) as client:
            client.wait_for_workers(CORES, timeout=60)
            address = client.scheduler.address
        yield address, scheduler


def kills() -> Iterator[Row]:
    """Studies whose processes are killed at random give the rows that undisturbed ones give."""
    study = leg(runs=KILL_RUNS, duration=0.1)
    expected = table_of(study, (do_run(study, run).row for run in range(study.runs)))
    killed, equal, chance = 0, 0, random.Random(1)
    for _ in range(KILL_STUDIES):
        ended = threading.Event()

        def kill(ended: threading.Event = ended) -> None:
            nonlocal killed
            while not ended.wait(chance.expovariate(1.0 / KILL_EVERY)):
                processes = [p for template in psutil.Process().children() for p in template.children()]
                if processes:
                    with contextlib.suppress(psutil.NoSuchProcess):
                        chance.choice(processes).kill()
                        killed += 1

        killer = threading.Thread(target=kill)
        with ThreadPoolExecutor(CORES) as executor:
            killer.start()
            try:
                equal += study.run(executor).table.equals(expected)
            finally:
                ended.set()
                killer.join()
    yield f"studies of {KILL_RUNS} runs with the right table", f"{equal} of {KILL_STUDIES}"
    yield "processes killed on the way", f"{killed}"


def over_ros() -> Iterator[Row]:
    """Runs whose controller is a node, beside the same law without ROS."""
    os.environ.update(loopback_settings())
    push = {"pushes": {"shove": {"link": "carriage", "at": 0.5, "duration": 0.1}}}
    # What the node's own configuration tells its law does not vary.
    varied = {"contacts.foot.friction": FRICTION, "pushes.shove.force.2": {"uniform": [-20.0, 0.0]}}
    common = {"runs": OVER_ROS, "variations": varied, **push}
    node = leg(controller={"use": [str(package_executable("leg_controller"))], "mode": "stand"}, **common)
    law = leg(controller="stamped_leg.py:StampedLeg", **common)
    with ThreadPoolExecutor(CORES) as executor:
        begin = time.perf_counter()
        found = node.run(executor).table
        took = time.perf_counter() - begin
        expected = law.run(executor).table
    rows = list(zip(found.to_pylist(), expected.to_pylist(), strict=True))
    yield "runs of 1 s over ROS with the numbers of the law", f"{sum(a == b for a, b in rows)} of {OVER_ROS}"
    for reason, count in Counter(f"{a['status']}: {a['reason']}" for a, b in rows if a != b).items():
        yield f"else, {reason}", str(count)
    yield f"rate, {CORES} at once", f"{OVER_ROS / took:.2f} runs/s"


def beside_rollout() -> Iterator[Row]:
    """The leg that is dropped and stands for 1 s: here, and by MuJoCo's rollout with as many threads."""
    study = leg(runs=ROLLOUTS)
    ours = study.runs / seconds(study, CORES)
    model, state = mujoco_leg()
    states = np.repeat(state[None], ROLLOUTS, axis=0)
    states[:, 1] = [study.values(run)["initial.positions.slider"] for run in range(ROLLOUTS)]
    data = [mujoco.MjData(model) for _ in range(CORES)]
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        found, _sensors = rollout.rollout(model, data, states, nstep=1000)
        times.append(time.perf_counter() - begin)
    theirs = ROLLOUTS / np.median(times)
    sunk = float(np.max(-foot_heights(model, found[:, -1])))
    yield "constrained_sim: a row of a study for each run", f"{ours:.0f} runs/s"
    yield "MuJoCo: rollout, states in one array", f"{theirs:.0f} runs/s"
    yield "ratio", f"{theirs / ours:.1f}"
    yield "the foot at the end, below the ground: here", f"{max(0.0, -lowest_foot(study)):.1e} m"
    yield "the foot at the end, below the ground: MuJoCo", f"{sunk:.1e} m"


def mujoco_leg() -> tuple[Any, np.ndarray]:
    """Return MuJoCo's model of the leg on the ground, with feedback of its joints, and its state at the beginning."""
    config = load_config(shipped_robots()["leg"])
    spec = mujoco.MjSpec.from_file(str(HERE.parent / "urdf" / "leg.urdf"))
    spec.compiler.fusestatic = False
    spec.option.timestep = config.simulation.dt
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1])
    for geom in spec.geoms:
        if geom.type != mujoco.mjtGeom.mjGEOM_PLANE:
            geom.contype = geom.conaffinity = 0
    foot = spec.body("foot")
    foot.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1e-3, 0, 0], pos=[0, 0, 1e-3], mass=0.0, name="toe")
    pose = {"slider": 0.32, "hip": 0.60, "knee": -1.20}
    for joint in ("hip", "knee"):
        actuator = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=STIFFNESS, kv=DAMPING)
    model = spec.compile()
    data = mujoco.MjData(model)
    for joint, value in pose.items():
        data.joint(joint).qpos[0] = value
    mujoco.mj_forward(model, data)
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return model, state


def foot_heights(model: Any, states: np.ndarray) -> np.ndarray:
    """Return (n,) how high the lowest point of the foot is in each of `states` [m]."""
    data, heights = mujoco.MjData(model), []
    for state in states:
        mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        mujoco.mj_forward(model, data)
        heights.append(data.geom("toe").xpos[2] - 1e-3)
    return np.array(heights)


def lowest_foot(study: Study) -> float:
    """Return the height of the foot at the end of the first run [m]."""
    outcome = do_run(study, 0)
    model = outcome.config.robot.model
    data = model.createData()
    pin.framesForwardKinematics(model, data, outcome.trajectory.q[-1])
    return float(data.oMf[model.getFrameId("foot")].translation[2])


def main() -> None:
    """Measure what the command line names, or everything."""
    for group in (throughput, overhead, start, many, kills, over_ros, beside_rollout):
        if any(word in group.__name__ for word in sys.argv[1:] or [""]):
            for what, value in group():
                print(f"{group.__name__:15} {what:50} {value:>24}", flush=True)


if __name__ == "__main__":
    main()
