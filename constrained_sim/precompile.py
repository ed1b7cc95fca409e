"""Compiles kernels beforehand, by simulating a little of everything; loads those of contact before they are needed."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np

from constrained_sim.collision.detector import Collisions
from constrained_sim.collision.scene import Box, SceneBody
from constrained_sim.compilation.background import BACKGROUND, no_other
from constrained_sim.compilation.machine_code import folders, writable_folder
from constrained_sim.compilation.progress import PROGRESS, Report
from constrained_sim.compilation.second_process import SECOND
from constrained_sim.constrained_dynamics import ContactRows, solve_constrained_dynamics
from constrained_sim.constraints import (
    FrameAnchor,
    JointCoupling,
    JointLimit,
    JointVelocity,
    PointAnchor,
    PointContact,
    PointDistance,
)
from constrained_sim.constraints.constraint import Constraint
from constrained_sim.contact import Plane
from constrained_sim.contact_solvers import compile_methods
from constrained_sim.contact_solvers.scaled_problem import ContactLaws
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.objects import WorldObject
from constrained_sim.posture import Posture
from constrained_sim.robot import Robot
from constrained_sim.sensors import ForceTorque, Imu, SensorSet, Twist
from constrained_sim.simulator import Simulator
from constrained_sim.solvers import SOLVERS, make_solver
from constrained_sim.solvers.solver import System
from constrained_sim.stabilization import Projection
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array, lookup

COMPLETE = "complete"
"""File in a folder of machine code that holds all kernels."""

STEPS = 4
BODY = """
  <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>"""
BOX = f"""
<robot name="box"><link name="box">{BODY}
  <collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision>
  <collision><geometry><cylinder radius="0.1" length="0.1"/></geometry></collision>
</link></robot>"""
LEG = f"""
<robot name="leg">
  <link name="rail"/><link name="hip">{BODY}</link><link name="thigh">{BODY}</link><link name="shank">{BODY}</link>
  <joint name="slider" type="prismatic"><parent link="rail"/><child link="hip"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" effort="100" velocity="10"/></joint>
  <joint name="hip" type="continuous"><parent link="hip"/><child link="thigh"/><axis xyz="0 1 0"/></joint>
  <joint name="knee" type="revolute"><parent link="thigh"/><child link="shank"/><origin xyz="0 0 -0.2"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="0" effort="100" velocity="10"/></joint>
</robot>"""
FOOT = (0.0, 0.0, -0.2)


def compile_kernels(report: Report | None = None, kinds: Sequence[str] = ()) -> None:
    """Compile what has no machine code yet; this process runs no kernel's source from now on.

    Args:
        report: is told how many kernels have been compiled, of how many, and which one is next; None: the user is told.
        kinds: names in :data:`KINDS`; none: all of them.

    Raises:
        UnknownName: no such kind.
    """
    scenes = [lookup("kind of kernels", kind, KINDS) for kind in kinds or KINDS]
    BACKGROUND.compile_here()
    before, folder = PROGRESS.report, writable_folder()
    PROGRESS.report = report or before
    try:
        with no_other(folder):
            for scene in scenes:
                scene()
    finally:
        PROGRESS.report = before
    if not kinds and folder is not None:
        with contextlib.suppress(OSError):
            (folder / COMPLETE).touch()


def compile_missing() -> None:
    """Compile all kernels, unless this host has them already, which costs no more than a look."""
    if not any((folder / COMPLETE).exists() for folder in folders()):
        compile_kernels()


def compile_from_the_end() -> None:
    """Compile what a leg needs, what its step needs last first: the equations of motion with contacts.

    Another process that begins at the beginning finds that compiled when it comes to it.
    """
    SECOND.is_wanted = False
    sliding = ContactRows(np.eye(3), np.array([1.0, 0.0, -1.0]), ContactLaws.of_contacts(np.array([0.1])))
    free = System(np.eye(3), np.zeros((0, 3)))
    solve_constrained_dynamics(make_solver("range_space"), free, np.zeros(3), np.zeros(0), sliding)
    compile_kernels(kinds=["leg"])


def load_kernels(stepper: str = "time_stepping", solver: str = "range_space") -> None:
    """Load the compiled code that :meth:`Simulator.step` needs for contacts, which otherwise the first touchdown loads.

    It takes a second: call it before a loop in real time. Where kernels are not compiled yet it compiles them, and from
    then on this process compiles each when it is called. What only :meth:`Simulator.run`, bilateral constraints or
    collision geometry need is loaded when it is first used.

    Args:
        stepper: of the simulation that is to come, in ``STEPPERS``.
        solver: of the same, in ``SOLVERS``.

    Raises:
        UnknownName: no such stepper or solver.
    """
    lookup("stepper", stepper, STEPPERS)
    lookup("solver", solver, SOLVERS)
    BACKGROUND.compile_here()
    compile_methods()
    importlib.import_module("scipy.optimize")  # SciPy loads it at its first use: the first impact with restitution
    body = Robot.from_urdf(BOX, floating_base=True)
    corners = itertools.product((-0.1, 0.1), (-0.1, 0.1), (-0.05,))
    floor = Plane(offset=-0.05)  # on which the box stands where its joint is at zero
    feet = [PointContact(f"corner{k}", "box", corner, surface=floor, friction=0.1) for k, corner in enumerate(corners)]
    with contextlib.suppress(ConstrainedSimError):  # what cannot be done needs no kernels
        sim = Simulator(body, feet, stepper, solver)
        _step(sim, STEPS)
        sim.active_rows()
        sim.largest_violation()
        _throw(sim, floor.offset)
        interpreted = Projection(metric="euclidean")  # with which no step is compiled whole
        _throw(Simulator(body, feet, stepper, solver, stabilization=interpreted), floor.offset)


def _stand() -> None:
    """Let a leg stand and slip, and load what a node loads."""
    leg, q = _leg()
    _try(leg, q, "time_stepping", "range_space", (_foot(),))
    load_kernels()


def _constrain() -> None:
    """Try each stepper with each kind of constraint, and each solver."""
    leg, q = _leg()
    kinds: list[tuple[Constraint, ...]] = [
        (_foot(),),
        (_foot(), JointLimit("limit", "knee", -1.2, 0.0), JointCoupling("gear", "knee", "hip", -2.0)),
        (PointContact("ice", "shank", FOOT),),
        (*_rails("x", "z"), JointVelocity("drive", "knee", 1.0)),
        (FrameAnchor("weld", "shank", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),),
    ]
    for solver, stepper, constraints in itertools.product(SOLVERS, STEPPERS, kinds):
        _try(leg, q, stepper, solver, constraints)
    body = Robot.from_urdf(BOX, floating_base=True)
    _try(body, body.neutral(), "time_stepping", "range_space", (PointAnchor("corner", "box", (0.1, 0.1, 0.05)),))
    with_friction = leg.with_joints({"hip": {"friction": 0.1}})
    _try(with_friction, q, "time_stepping", "range_space", (_foot(),))


def _leg() -> tuple[Robot, Array]:
    """Return a leg, and where its foot is on the ground."""
    leg = Robot.from_urdf(LEG)
    return leg, leg.configuration({"slider": 0.4 * math.cos(0.6), "hip": 0.6, "knee": -1.2})


def _rails(*axes: str) -> list[PointAnchor]:
    """Return anchors of the foot, one along each of the `axes`."""
    return [PointAnchor(axis, "shank", FOOT, normals=np.eye(3)[["xyz".index(axis)]]) for axis in axes]


def _foot() -> PointContact:
    return PointContact("ground", "shank", FOOT, friction=0.1)


def _collide() -> None:
    """Drop a box onto a plane and another box."""
    scene: dict[str, SceneBody] = {"ground": Plane(), "step": Box((1.0, 1.0, 0.1), (0.0, 0.0, 0.05))}
    _throw(Simulator(Robot.from_urdf(BOX, floating_base=True), collisions=Collisions(scene, friction=0.1)), 0.1)


def _measure() -> None:
    """Read sensors of a leg on a rod; put a box beside it; take out drift of contacts beside bilateral constraints."""
    leg, q = _leg()
    rod = PointDistance("rod", "shank", FOOT, point_b=(1.0, 0.0, 0.0))
    sensors = SensorSet(leg, [Imu("imu", "shank"), Twist("twist", "shank"), ForceTorque("knee", "shank")], period=1e-3)
    for solver, stepper in itertools.product(("range_space", "kokkevis"), ("time_stepping", "event_driven")):
        sim = Simulator(leg, [rod], stepper, solver, q=q, dt=1e-3)
        sensors.measure(sim.step())
    sim.with_objects([WorldObject.box("box", (0.1, 0.1, 0.1), 1.0)]).step()
    held = System(np.eye(3), np.eye(3)[:1])
    Projection().tangent_step(make_solver("range_space"), held, np.ones(1), np.eye(3)[1:], np.ones(2))


def _throw(sim: Simulator, floor: float) -> None:
    """Let a box fall onto a floor of this height [m], turning and sliding."""
    pose = (0.45, 0.0, floor + 0.1, 0.1, 0.1, 0.0, 1.0)
    sim.reset(sim.robot.configuration({}, pose), [1.0, 0.0, -1.0, 0.0, 1.0, 0.0])
    _step(sim, 60)


def _step(sim: Simulator, count: int) -> None:
    """Do `count` single steps, as a node does."""
    for _ in range(count):
        sim.step()


def _try(robot: Robot, q: Array, stepper: str, solver: str, constraints: tuple[Constraint, ...]) -> None:
    """Simulate a few steps, unless the solver or the stepper cannot do the constraints."""
    try:
        sim = Simulator(robot, (), stepper, solver, position_tolerance=1.0)
        sim.reset(q)
        for constraint in constraints:
            sim.add(constraint, assemble=not constraint.is_unilateral)
        _step(sim, STEPS)
        sim.largest_violation()
        posture = Posture(robot, q, 1.0, 1.0)
        posture.efforts(q, sim.state.v)
        posture.efforts(sim.state.q, sim.state.v)
        sim.run(STEPS * sim.dt, posture)
    except ConstrainedSimError:
        return


KINDS: dict[str, Callable[[], None]] = {
    "leg": _stand,
    "collisions": _collide,
    "constraints": _constrain,
    "sensors": _measure,
}
"""What kernels are for: a robot on points or joint limits, what ``make leg`` shows; bodies that collide; other
constraints; sensors, and what changes while a simulation runs."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile kernels of the kinds that the command line names."""
    parser = argparse.ArgumentParser(description="Compiles kernels beforehand, into the first folder that is writable.")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)} (default: all)")
    compile_kernels(kinds=parser.parse_args(arguments).kinds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
