"""Measures the same scenes in MuJoCo, Drake, DART, PyBullet and here, whichever can be imported, at steps of 1 ms.

    scripts/run python benchmarks/comparison.py       # constrained_sim
    python3 -m venv peers && peers/bin/pip install mujoco drake dartpy pybullet
    peers/bin/python benchmarks/comparison.py         # the others

Gazebo has no package on PyPI; DART is the engine that it uses by default, here with the collision detector that Gazebo
chooses. Gravity is tilted in place of the ground. The expected values are
closed forms: a block on a slope below the angle of friction stays, above it slides by g (sin a - mu cos a) t^2 / 2, and
a pendulum without friction keeps its energy. Times are processor times.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

DT, GRAVITY, FRICTION = 1e-3, 9.81, 0.5
EDGE, HEIGHT, MASS = 0.2, 0.1, 1.0
"""Of the block [m, m, kg]."""

RADIUS = 1e-3
"""Of the spheres at the lower corners on which it stands [m]: a shape that every simulator represents exactly."""

CORNERS = [(x * EDGE / 2, y * EDGE / 2, RADIUS - HEIGHT / 2) for x in (-1, 1) for y in (-1, 1)]

FOOT = '<collision><origin xyz="{} {} {}"/><geometry><sphere radius="{}"/></geometry></collision>'

BLOCK = f"""<robot name="block"><link name="block"><inertial><mass value="{MASS}"/>
  <inertia ixx="{MASS * (EDGE**2 + HEIGHT**2) / 12}" iyy="{MASS * (EDGE**2 + HEIGHT**2) / 12}"
    izz="{MASS * EDGE**2 / 6}" ixy="0" ixz="0" iyz="0"/></inertial>
  {{feet}}</link></robot>"""

BLOCK_ON_FEET = BLOCK.format(feet="".join(FOOT.format(*corner, RADIUS) for corner in CORNERS))

ROD = """<link name="{name}"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
  <inertia ixx="0.08333333333333333" iyy="0.08333333333333333" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}_joint" type="continuous"><parent link="{parent}"/><child link="{name}"/>
  <origin xyz="0 0 {z}"/><axis xyz="0 1 0"/></joint>"""

PENDULUM = f"""<robot name="pendulum"><link name="base"/>
  {ROD.format(name="upper", parent="base", z=0)}{ROD.format(name="lower", parent="upper", z=-1)}</robot>"""

START = (2.0, 0.5)
"""Angles of the pendulum at the beginning, from hanging and from the upper rod [rad]."""


class Slide(NamedTuple):
    """Where a block is after each step, (n, 3) [m], and the time that a step takes [s]."""

    positions: np.ndarray
    seconds: float


class Engine(NamedTuple):
    """How a simulator does the two scenes.

    Attributes:
        name: for the table.
        module: that has to be there.
        block: of an angle [rad] and a duration [s]: the slide.
        pendulum: of a duration [s]: angles and rates at the end.
    """

    name: str
    module: str
    block: Callable[[float, float], Slide]
    pendulum: Callable[[float], tuple[np.ndarray, np.ndarray]]


def tilted(angle: float) -> list[float]:
    """Return gravity on a slope that falls along x."""
    return [GRAVITY * math.sin(angle), 0.0, -GRAVITY * math.cos(angle)]


def slide(step: Callable[[], object], position: Callable[[], np.ndarray], seconds: float) -> Slide:
    """Do so many steps, and note where the block is after each."""
    step()  # the first may load code
    positions, begin = [], time.process_time()
    for _ in range(round(seconds / DT) - 1):
        step()
        positions.append(np.array(position()))
    return Slide(np.array(positions), (time.process_time() - begin) / len(positions))


def energy(q: np.ndarray, v: np.ndarray) -> float:
    """Return the energy of the pendulum [J], from its angles and rates."""
    angles, rates, tip, tip_velocity, total = np.cumsum(q), np.cumsum(v), np.zeros(2), np.zeros(2), 0.0
    for angle, rate in zip(angles, rates, strict=True):
        along, across = np.array([-math.sin(angle), -math.cos(angle)]), np.array([-math.cos(angle), math.sin(angle)])
        center, velocity = tip + 0.5 * along, tip_velocity + 0.5 * rate * across
        total += 0.5 * velocity @ velocity + rate**2 / 24 + GRAVITY * center[1]
        tip, tip_velocity = tip + along, tip_velocity + rate * across
    return total


# -- constrained_sim


def ours_block(angle: float, seconds: float) -> Slide:
    """Slide by the collision geometry."""
    from constrained_sim import Collisions, Plane, Robot, Simulator

    robot = Robot.from_urdf(BLOCK_ON_FEET, floating_base=True, gravity=tilted(angle))
    sim = Simulator(robot, collisions=Collisions({"ground": Plane()}, friction=FRICTION), dt=DT)
    sim.reset(robot.configuration({}, (0, 0, HEIGHT / 2, 0, 0, 0, 1)))
    return slide(sim.step, lambda: sim.state.q[:3], seconds)


def ours_pendulum(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Swing with the default stepper."""
    from constrained_sim import Robot, Simulator

    robot = Robot.from_urdf(PENDULUM, actuated_joints=[])
    sim = Simulator(robot, dt=DT)
    sim.reset(robot.configuration({"upper_joint": START[0], "lower_joint": START[1]}))
    sim.run(seconds)
    q = sim.state.q
    return np.array([math.atan2(q[1], q[0]), math.atan2(q[3], q[2])]), sim.state.v


# -- MuJoCo


def mujoco_model(xml: str, tuned: bool):
    """Return a model, with the most accurate settings that we found if `tuned`."""
    import mujoco

    spec = mujoco.MjSpec.from_string(xml)
    spec.option.timestep = DT
    if tuned:
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio, spec.option.noslip_iterations = 100.0, 20
    model = spec.compile()
    if tuned:
        model.geom_solref[:], model.geom_solimp[:] = (0.002, 1.0), (0.99, 0.9999, 0.001, 0.5, 2.0)
    return model


def mujoco_block(tuned: bool, angle: float, seconds: float) -> Slide:
    """Slide on a plane."""
    import mujoco

    gravity, inertia = " ".join(map(repr, tilted(angle))), MASS * (EDGE**2 + HEIGHT**2) / 12
    feet = "".join(
        f'<geom pos="{x} {y} {z}" size="{RADIUS}" friction="{FRICTION} 0.005 0.0001"/>' for x, y, z in CORNERS
    )
    model = mujoco_model(
        f"""<mujoco><option gravity="{gravity}"/><worldbody>
        <geom type="plane" size="0 0 1" friction="{FRICTION} 0.005 0.0001"/>
        <body pos="0 0 {HEIGHT / 2}"><freejoint/>{feet}
        <inertial pos="0 0 0" mass="{MASS}" diaginertia="{inertia} {inertia} {MASS * EDGE**2 / 6}"/></body>
        </worldbody></mujoco>""",
        tuned,
    )
    data = mujoco.MjData(model)
    return slide(lambda: mujoco.mj_step(model, data), lambda: data.qpos[:3], seconds)


def mujoco_pendulum(tuned: bool, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Swing."""
    import mujoco

    model = mujoco_model(PENDULUM, tuned)
    data = mujoco.MjData(model)
    data.qpos[:] = START
    mujoco.mj_step(model, data, round(seconds / DT))
    return data.qpos.copy(), data.qvel.copy()


# -- Drake


def drake_plant(urdf: str, gravity: list[float]):
    """Return a builder and the plant of a URDF, discrete, as by default, not finished yet."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
    from pydrake.systems.framework import DiagramBuilder

    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, DT)
    Parser(plant).AddModelsFromString(urdf, "urdf")
    plant.mutable_gravity_field().set_gravity_vector(gravity)
    return builder, plant


def drake_block(angle: float, seconds: float) -> Slide:
    """Slide on a half space."""
    from pydrake.geometry import HalfSpace, Sphere
    from pydrake.math import RigidTransform
    from pydrake.multibody.plant import CoulombFriction
    from pydrake.systems.analysis import Simulator

    builder, plant = drake_plant(BLOCK.format(feet=""), tilted(angle))
    block, friction = plant.GetBodyByName("block"), CoulombFriction(FRICTION, FRICTION)
    plant.RegisterCollisionGeometry(plant.world_body(), RigidTransform(), HalfSpace(), "ground", friction)
    for number, corner in enumerate(CORNERS):
        plant.RegisterCollisionGeometry(block, RigidTransform(corner), Sphere(RADIUS), f"foot {number}", friction)
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyContextFromRoot(simulator.get_mutable_context())
    plant.SetFreeBodyPose(context, block, RigidTransform([0, 0, HEIGHT / 2]))
    count = iter(range(1, 10**9))
    return slide(
        lambda: simulator.AdvanceTo(next(count) * DT), lambda: plant.GetPositions(context)[-3:].copy(), seconds
    )


def drake_pendulum(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Swing."""
    from pydrake.systems.analysis import Simulator

    builder, plant = drake_plant(PENDULUM, tilted(0.0))
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("base"))
    plant.Finalize()
    simulator = Simulator(builder.Build())
    context = plant.GetMyContextFromRoot(simulator.get_mutable_context())
    plant.SetPositions(context, START)
    simulator.AdvanceTo(seconds)
    return plant.GetPositions(context), plant.GetVelocities(context)


# -- DART


def dart_world(urdf: str, gravity: list[float], root_joint: str):
    """Return a world with a URDF in it, its ``root_joint`` FLOATING or FIXED, and that skeleton.

    Bodies at rest are not put to sleep: the releases of DART that Gazebo uses cannot.
    """
    import dartpy as dart

    loader = dart.utils.DartLoader()
    options = dart.utils.DartLoaderOptions()
    options.mDefaultRootJointType = getattr(dart.utils.DartLoaderRootJointType, root_joint)
    loader.setOptions(options)
    skeleton = loader.parseSkeletonString(urdf, "file:///robot.urdf")
    world = dart.simulation.World()
    world.setTimeStep(DT)
    world.setGravity(gravity)
    if hasattr(world, "getDeactivationOptions"):
        resting = world.getDeactivationOptions()
        resting.mEnabled = False
        world.setDeactivationOptions(resting)
    world.getConstraintSolver().setCollisionDetector(dart.collision.OdeCollisionDetector())
    world.addSkeleton(skeleton)
    return world, skeleton


def dart_block(angle: float, seconds: float) -> Slide:
    """Slide on a plane."""
    import dartpy as dart

    world, block = dart_world(BLOCK_ON_FEET, tilted(angle), "FLOATING")
    ground = dart.dynamics.Skeleton("ground")
    _, body = ground.createWeldJointAndBodyNodePair()
    body.createShapeNode(dart.dynamics.PlaneShape([0.0, 0.0, 1.0], 0.0))
    world.addSkeleton(ground)
    for owner in (body, block.getBodyNode(0)):
        for shape in owner.getShapeNodes():
            shape.createCollisionAspect()
            shape.createDynamicsAspect()
            shape.getDynamicsAspect().setFrictionCoeff(FRICTION)
    positions = np.zeros(6)
    positions[5] = HEIGHT / 2
    block.setPositions(positions)
    return slide(world.step, lambda: block.getPositions()[3:], seconds)


def dart_pendulum(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Swing."""
    world, skeleton = dart_world(PENDULUM, tilted(0.0), "FIXED")
    skeleton.setPositions(np.array(START))
    for _ in range(round(seconds / DT)):
        world.step()
    return skeleton.getPositions(), skeleton.getVelocities()


# -- PyBullet


def bullet_body(urdf: str, gravity: list[float], **options) -> int:
    """Return a body without artificial damping, in a fresh world."""
    import pybullet as bullet

    if not bullet.isConnected():
        bullet.connect(bullet.DIRECT)
    bullet.resetSimulation()
    bullet.setGravity(*gravity)
    bullet.setTimeStep(DT)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "body.urdf").write_text(urdf)
        body = bullet.loadURDF(str(Path(folder) / "body.urdf"), flags=bullet.URDF_USE_INERTIA_FROM_FILE, **options)
    for link in range(-1, bullet.getNumJoints(body)):
        bullet.changeDynamics(body, link, linearDamping=0, angularDamping=0, jointDamping=0, lateralFriction=FRICTION)
    return body


def bullet_block(angle: float, seconds: float) -> Slide:
    """Slide on a plane; friction coefficients multiply."""
    import pybullet as bullet

    body = bullet_body(BLOCK_ON_FEET, tilted(angle), basePosition=(0, 0, HEIGHT / 2))
    plane = bullet.createMultiBody(0, bullet.createCollisionShape(bullet.GEOM_PLANE))
    bullet.changeDynamics(plane, -1, lateralFriction=1.0)
    return slide(bullet.stepSimulation, lambda: bullet.getBasePositionAndOrientation(body)[0], seconds)


def bullet_pendulum(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Swing, the joints' velocity motors off."""
    import pybullet as bullet

    body = bullet_body(PENDULUM, tilted(0.0), useFixedBase=True)
    for joint, angle in enumerate(START):
        bullet.setJointMotorControl2(body, joint, bullet.VELOCITY_CONTROL, force=0)
        bullet.resetJointState(body, joint, angle)
    for _ in range(round(seconds / DT)):
        bullet.stepSimulation()
    states = bullet.getJointStates(body, [0, 1])
    return np.array([state[0] for state in states]), np.array([state[1] for state in states])


ENGINES = (
    Engine("constrained_sim", "constrained_sim", ours_block, ours_pendulum),
    Engine("MuJoCo, default", "mujoco", lambda *a: mujoco_block(False, *a), lambda t: mujoco_pendulum(False, t)),
    Engine("MuJoCo, tuned", "mujoco", lambda *a: mujoco_block(True, *a), lambda t: mujoco_pendulum(True, t)),
    Engine("Drake, default", "pydrake", drake_block, drake_pendulum),
    Engine("DART, default (Gazebo's engine)", "dartpy", dart_block, dart_pendulum),
    Engine("PyBullet, default", "pybullet", bullet_block, bullet_pendulum),
)


def row(engine: Engine) -> list[str]:
    """Return what an engine comes to: creep, depth, error of a slide, energy error, time of a step."""
    resting, sliding = engine.block(math.radians(20), 5.0), engine.block(math.radians(30), 1.0)
    moved = np.linalg.norm(resting.positions[-1] - resting.positions[round(1.0 / DT)])
    depth = HEIGHT / 2 - resting.positions[-1, 2]
    expected = 0.5 * GRAVITY * (math.sin(math.radians(30)) - FRICTION * math.cos(math.radians(30)))
    error = abs(sliding.positions[-1, 0] - expected)
    change = abs(energy(*engine.pendulum(5.0)) - energy(np.array(START), np.zeros(2)))
    lengths = [f"{1e3 * value:.2g}" for value in (moved, depth, error)]
    return [engine.name, *lengths, f"{change:.2g}", f"{1e6 * resting.seconds:.0f}"]


def main() -> None:
    """Print a table of those that are there."""
    head = ["", "creep in 4 s [mm]", "depth at rest [mm]", "slide, error [mm]", "pendulum [J]", "step [us]"]
    lines = [head, ["---"] * len(head)]
    lines += [row(engine) for engine in ENGINES if importlib.util.find_spec(engine.module)]
    print("\n".join("| " + " | ".join(line) + " |" for line in lines))


if __name__ == "__main__":
    main()
