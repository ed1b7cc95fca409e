"""Compiles every kernel when the package is built, loads those of contact before a simulation needs them, says so."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import logging
from pathlib import Path

from numba.core.event import Event, Listener, register

from constrained_sim.constraints import FrameAnchor, JointCoupling, JointLimit, JointVelocity, PointAnchor, PointContact
from constrained_sim.constraints.constraint import Constraint
from constrained_sim.contact import Plane, compile_methods
from constrained_sim.contact.collision import Collisions
from constrained_sim.contact.scene import Box, SceneBody
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.posture import Posture
from constrained_sim.robot import Robot
from constrained_sim.simulator import Simulator
from constrained_sim.solvers import SOLVERS
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array, lookup
from constrained_sim.wrench import Wrench

STEPS = 4
BOX = """
<robot name="box"><link name="box">
  <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision>
</link></robot>"""


def compile_kernels(urdf: Path) -> None:
    """Run a few steps of everything with a leg: each solver and stepper, each kind of constraint.

    Args:
        urdf: of the leg.
    """
    compile_methods()
    leg = Robot.from_urdf(urdf)
    q = leg.configuration({"slider": 0.2641, "hip": 0.6, "knee": -1.2})  # the foot is on the ground
    foot = PointContact("ground", "foot", (0.0, 0.0, 0.0), friction=0.1)
    kinds: list[tuple[Constraint, ...]] = [
        (foot,),
        (foot, JointLimit("limit", "hip", -1.0, 0.6), JointCoupling("gear", "knee", "hip", -2.0)),
        (PointAnchor("point", "foot", (0.0, 0.0, 0.0), normals=[(0, 0, 1)]), JointVelocity("drive", "hip", 1.0)),
        (FrameAnchor("weld", "lower_leg", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),),
    ]
    for solver in SOLVERS:
        for stepper in STEPPERS:
            for constraints in kinds:
                _try(leg, q, stepper, solver, constraints)
    _collide()
    body = Robot.from_urdf(BOX, floating_base=True)
    _try(body, body.neutral(), "time_stepping", "direct", (PointAnchor("corner", "box", (0.1, 0.1, 0.05)),))
    rubbing = leg.with_joints({"hip": {"friction": 0.1}})
    _try(rubbing, q, "time_stepping", "direct", (foot,))


def load_kernels(stepper: str = "time_stepping", solver: str = "direct") -> None:
    """Load what :meth:`Simulator.step` needs of contacts that come and go: at the first touchdown it would stop time.

    It takes a second. What only :meth:`Simulator.run`, bilateral constraints or collision geometry need is loaded when
    it is first used.

    Args:
        stepper: of the simulation that is to come, in ``STEPPERS``.
        solver: of the same, in ``SOLVERS``.

    Raises:
        UnknownName: no such stepper or solver.
    """
    lookup("stepper", stepper, STEPPERS)
    lookup("solver", solver, SOLVERS)
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
        for pushes in ((), (Wrench("box", (0.0, 0.0, -1.0)),)):  # what acts from outside is not compiled whole
            _throw(sim, floor.offset, pushes)


class _Announcement(Listener):
    """Says, once per process, that there is a wait: kernels are compiled that no process has left in the cache."""

    def __init__(self) -> None:
        self._is_made = False

    def on_start(self, event: Event) -> None:
        """Say it, if it is the first kernel of ours."""
        if not self._is_made and str(event.data["dispatcher"].__module__).startswith(__package__):
            self._is_made = True
            logging.getLogger(__package__).warning(
                "%s compiles kernels that are used for the first time on this machine: some minutes where none was",
                __package__,
            )

    def on_end(self, event: Event) -> None:
        """Say nothing."""


register("numba:compile", _Announcement())


def _collide() -> None:
    """Drop a box onto a plane and another box."""
    scene: dict[str, SceneBody] = {"ground": Plane(), "step": Box((1.0, 1.0, 0.1), (0.0, 0.0, 0.05))}
    _throw(Simulator(Robot.from_urdf(BOX, floating_base=True), collisions=Collisions(scene, friction=0.1)), 0.1)


def _throw(sim: Simulator, floor: float, pushes: tuple[Wrench, ...] = ()) -> None:
    """Let a box fall onto a floor of this height [m], turning and sliding."""
    pose = (0.45, 0.0, floor + 0.1, 0.1, 0.1, 0.0, 1.0)
    sim.reset(sim.robot.configuration({}, pose), [1.0, 0.0, -1.0, 0.0, 1.0, 0.0])
    _step(sim, 60, pushes)


def _step(sim: Simulator, count: int, pushes: tuple[Wrench, ...] = ()) -> None:
    """Do `count` single steps, as a node does."""
    for _ in range(count):
        sim.step(wrenches=pushes)


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
