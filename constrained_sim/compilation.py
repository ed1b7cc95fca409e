"""Compiles every kernel, so that no simulation waits for it: called when the package is built."""

from __future__ import annotations

from pathlib import Path

from constrained_sim.constraints import FrameAnchor, JointCoupling, JointLimit, JointVelocity, PointAnchor, PointContact
from constrained_sim.constraints.constraint import Constraint
from constrained_sim.contact import Plane, compile_methods
from constrained_sim.contact.collision import Collisions
from constrained_sim.contact.scene import Box, SceneBody
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.robot import Robot
from constrained_sim.simulator import Simulator
from constrained_sim.solvers import SOLVERS
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array

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
    rubbing = leg.with_joints({"hip": {"friction": 0.1}})
    _try(rubbing, q, "time_stepping", "direct", (foot,))


def _collide() -> None:
    """Drop a box, turning and sliding, onto a plane and another box."""
    scene: dict[str, SceneBody] = {"ground": Plane(), "step": Box((1.0, 1.0, 0.1), (0.0, 0.0, 0.05))}
    body = Robot.from_urdf(BOX, floating_base=True)
    sim = Simulator(body, collisions=Collisions(scene, friction=0.1))
    sim.reset(body.configuration({}, (0.4, 0.0, 0.22, 0.1, 0.1, 0.0, 1.0)), [1.0, 0.0, -1.0, 0.0, 1.0, 0.0])
    sim.run(0.15)


def _try(robot: Robot, q: Array, stepper: str, solver: str, constraints: tuple[Constraint, ...]) -> None:
    """Simulate a few steps, unless the solver or the stepper cannot do the constraints."""
    try:
        sim = Simulator(robot, (), stepper, solver, position_tolerance=1.0)
        sim.reset(q)
        for constraint in constraints:
            sim.add(constraint, assemble=not constraint.is_unilateral)
        sim.run(STEPS * sim.dt)
    except ConstrainedSimError:
        return
