"""Measures speed: medians over repeated blocks of calls, and ratios to pinocchio.aba of the same robot in the same run.

    make bench            # everything
    make bench ARGS=step  # groups whose name contains "step"
    make bench ARGS=setup # a fresh clone, stage by stage: minutes, and only when it is named

The processor's state changes from run to run: compare the ratios, not the microseconds. MuJoCo is measured beside it
where it is installed (`scripts/run pip install -r requirements/benchmark.lock`).
"""

from __future__ import annotations

import copy
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

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
    Posture,
    Simulator,
    WorldObject,
    constrained_acceleration,
    load_config,
    resolve_impact,
)
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.robot import Robot
from constrained_sim.solvers import SOLVERS, RobotSystem, make_solver
from constrained_sim.solvers.direct import FACTORIZATIONS

sys.path.append(str(Path(__file__).parent))  # scripts/run leaves it out

import fresh_clone

ROOT = Path(__file__).resolve().parents[1]
BLOCKS, CALLS = 15, 200
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")

BENT = (("3", -0.4), ("4", 0.8), ("5", -0.4))
"""Hip, knee and ankle of a leg of talos [rad]."""

RUN = 1000
"""Steps of one run, whose time is shared among them."""


class Row(NamedTuple):
    """What is measured, the call that does it, and how often that does it."""

    what: str
    call: Callable[[], object]
    times: int = 1


Point = tuple[str, tuple[float, float, float]]
"""Link and offset [m]."""

SOLO_POINTS: list[Point] = [(foot, (0.0, 0.0, 0.0)) for foot in FEET]

Standing = tuple[Robot, np.ndarray, list[Point], tuple[float, float]]


ROBOTS = (
    Path(sys.prefix) / f"lib/python3.{sys.version_info[1]}/site-packages/cmeel.prefix/share/example-robot-data/robots"
)


def solo12() -> tuple[Robot, np.ndarray]:
    """Return solo12 standing on its feet."""
    robot = Robot.from_urdf(ROBOTS / "solo_description/robots/solo12.urdf", floating_base=True)
    posture = {f"{leg}_{joint}": q for leg in ("FL", "FR", "HL", "HR") for joint, q in (("HFE", 0.8), ("KFE", -1.6))}
    q = robot.configuration(posture, (0, 0, 0, 0, 0, 0, 1))
    lower(robot, q, SOLO_POINTS)
    return robot, q


def lower(robot: Robot, q: np.ndarray, points: list[Point]) -> None:
    """Move the base in `q` so that the lowest of `points` is on the ground."""
    bound = ConstraintSet.bind(robot, q, [PointContact(f"{link} {at}", link, at) for link, at in points])
    q[2] -= bound.contacts.rows(Dynamics.at(robot, q, np.zeros(robot.nv)), np.zeros(robot.nv)).gaps.min()


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


def running(sim: Simulator, q: np.ndarray, kp: float, kd: float) -> Callable[[], object]:
    """Return a run of `sim` under the same feedback, a posture, after it has settled."""
    posture = Posture(sim.robot, q, kp, kd)
    sim.run(1.5, posture)
    return lambda: sim.run(RUN * sim.dt, posture)


def steps() -> Iterator[tuple[Robot, np.ndarray, list[Row]]]:
    """Time steps of 1 ms, standing and moving."""
    config = load_config(ROOT / "config" / "leg.yaml")
    leg, run = config.simulator(), config.simulator()
    tumbling = config.simulator(constraints=())
    yield (
        config.robot,
        config.q,
        [
            Row("leg, standing", holding(leg, config.q, 60.0, 1.5)),
            Row("leg, standing, a step of a run", running(run, config.q, 60.0, 1.5), RUN),
            Row("leg, falling", lambda: tumbling.step() if tumbling.steps < 150 else tumbling.reset(config.q)),
        ],
    )
    for name, (robot, q, points, gains) in standing().items():
        sim = Simulator(robot)
        sim.reset(q)
        for link, offset in points:
            sim.add(PointContact(f"{link} {offset}", link, offset, friction=0.7))
        rows = [
            Row(f"{name}, standing on points", holding(sim, q, *gains)),
            Row(f"{name}, standing on points, a step of a run", running(copy.deepcopy(sim), q, *gains), RUN),
        ]
        yield robot, q, rows + mujoco_standing(f"MuJoCo mj_step, the same {name}", robot, q, points, gains)
    talos = Robot.from_urdf(ROBOTS / "talos_data/robots/talos_reduced.urdf", floating_base=True)
    ground = Collisions({"ground": Plane(offset=-1.1)}, friction=0.7)
    lying = Simulator(talos, collisions=ground, contact_tolerance=1e-7)
    lying.reset(talos.neutral())
    lying.run(1.5)
    yield (
        talos,
        talos.neutral(),
        [Row("talos, collision meshes, on the ground, contact tolerance 1e-7 N s", lying.step)],
    )


def stacks() -> Iterator[tuple[Robot, np.ndarray, list[Row]]]:
    """Boxes on top of each other, which have come to rest: one is the robot, the others objects."""
    size = 0.2
    box = f"""<robot name="box"><link name="box"><inertial><mass value="1"/>
        <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
        <collision><geometry><box size="{size} {size} {size}"/></geometry></collision></link></robot>"""
    lowest = Robot.from_urdf(box, floating_base=True)
    for count in (4, 8):
        above = [
            WorldObject.box(f"box_{i}", (size,) * 3, 1.0, 0.5, (0, 0, (i + 0.5) * size, 0, 0, 0, 1))
            for i in range(1, count)
        ]
        robot = lowest.with_objects(above)
        sim = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=0.5))
        q = robot.neutral()
        q[2] = 0.5 * size
        sim.reset(q)
        sim.run(0.05)
        rows = [Row(f"stack of {count} boxes", sim.step)]
        yield robot, q, rows + mujoco_stack(count, size)


def mujoco_stack(count: int, size: float) -> list[Row]:
    """Return a row for the same stack in MuJoCo; nothing without it."""
    try:
        import mujoco
    except ImportError:
        return []
    geom = f'<geom type="box" size="{" ".join([repr(0.5 * size)] * 3)}" mass="1" friction="0.5"/>'
    boxes = "".join(f'<body pos="0 0 {(i + 0.5) * size}"><freejoint/>{geom}</body>' for i in range(count))
    ground = '<geom type="plane" size="1 1 1" friction="0.5"/>'
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="0.001"/><worldbody>{ground}{boxes}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    for _ in range(1500):
        mujoco.mj_step(model, data)
    return [Row(f"MuJoCo mj_step, the same stack ({data.ncon} contacts)", lambda: mujoco.mj_step(model, data))]


def standing() -> dict[str, Standing]:
    """Return robots on their feet: configuration with the lowest point on the ground, points, gains of the posture.

    The rotors of talos, which its description leaves out, are there so that one gain suits all its joints.
    """
    soles = [
        (f"{side}_sole_link", (x, y, 0.0)) for side in ("left", "right") for x in (-0.1, 0.1) for y in (-0.06, 0.06)
    ]
    talos = Robot.from_urdf(ROBOTS / "talos_data/robots/talos_reduced.urdf", floating_base=True)
    talos = talos.with_joints({name: {"armature": 0.1} for name in talos.actuated_joints})
    knees = {f"leg_{side}_{joint}_joint": angle for side in ("left", "right") for joint, angle in BENT}
    q = talos.configuration(knees, (0, 0, 0, 0, 0, 0, 1))
    lower(talos, q, soles)
    return {"solo12": (*solo12(), SOLO_POINTS, (10.0, 0.2)), "talos": (talos, q, soles, (3000.0, 60.0))}


def mujoco_standing(
    what: str, robot: Robot, q: np.ndarray, points: list[Point], gains: tuple[float, float]
) -> list[Row]:
    """Return a row for the same robot, points, gains and step in MuJoCo, after it has settled; nothing without it."""
    try:
        import mujoco
    except ImportError:
        return []
    description = ElementTree.fromstring(robot.urdf)
    for link in description.iter("link"):
        for element in [e for e in link if e.tag in ("visual", "collision")]:
            link.remove(element)
    root = robot.root_link
    description.append(ElementTree.fromstring('<link name="world"/>'))
    floating = f'<joint name="root" type="floating"><parent link="world"/><child link="{root}"/></joint>'
    description.append(ElementTree.fromstring(floating))
    description.insert(0, ElementTree.fromstring('<mujoco><compiler fusestatic="false"/></mujoco>'))
    spec = mujoco.MjSpec.from_string(ElementTree.tostring(description, encoding="unicode"))
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[0.7, 0.005, 1e-4])
    for link, offset in points:
        spec.body(link).add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[1e-3, 0, 0], pos=offset, friction=[0.7, 0, 0])
    model = spec.compile()
    model.opt.timestep = 1e-3
    model.dof_armature[:] = 0.0
    data = mujoco.MjData(model)
    data.qpos[:7] = [*q[:3], q[6], *q[3:6]]
    places = {}
    for name in robot.actuated_joints:
        joint = model.joint(name)
        places[int(joint.qposadr[0])] = int(joint.dofadr[0])
        data.qpos[joint.qposadr] = q[robot.joint_models[name].idx_q]
        model.dof_armature[joint.dofadr] = robot.model.armature[robot.joint_models[name].idx_v]
    at_q, at_v = np.array(list(places)), np.array(list(places.values()))
    wanted = data.qpos[at_q].copy()

    def step() -> None:
        data.qfrc_applied[at_v] = gains[0] * (wanted - data.qpos[at_q]) - gains[1] * data.qvel[at_v]
        mujoco.mj_step(model, data)

    for _ in range(1500):
        step()
    return [Row(f"{what} ({data.ncon} contacts)", step)]


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
                Row(f"solve: {label}", lambda s=solver: s.factor(RobotSystem(dynamics, J, bound.members)).solve(f, b))
            )
    rows += [
        Row(
            f"{call.__name__}: {name}",
            lambda call=call, extra=extra, name=name: call(robot, q, v, *extra, anchors, name),
        )
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
    yield config.robot, config.q, [Row("MuJoCo mj_step, leg without ground", lambda: mujoco.mj_step(model, data))]


def median_microseconds(call: Callable[[], object], times: int = 1) -> float:
    """Return the median over blocks of the mean time of one call, or of what a call does so many `times`."""
    call()
    durations, calls = [], max(1, CALLS // times)
    for _ in range(BLOCKS):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        durations.append((time.perf_counter() - begin) / (calls * times))
    return 1e6 * float(np.median(durations))


def main() -> None:
    """Measure the groups that the command line names, or all that take seconds."""
    if "setup" in sys.argv[1:]:
        fresh_clone.main()
        return
    table = Table("group", "what", "us per call", "pin.aba [us]", "ratio")
    for group in (steps, stacks, solvers, peers):
        if not any(word in group.__name__ for word in sys.argv[1:] or [""]):
            continue
        for robot, q, rows in group():
            data, zero = robot.model.createData(), np.zeros(robot.nv)
            aba = median_microseconds(lambda: pin.aba(robot.model, data, q, zero, zero))  # noqa: B023
            for what, call, times in rows:
                duration = median_microseconds(call, times)
                table.add_row(group.__name__, what, f"{duration:.1f}", f"{aba:.2f}", f"{duration / aba:.1f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
