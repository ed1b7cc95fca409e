"""Robots, states and oracles that the tests share."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from importlib.metadata import files
from pathlib import Path

import numpy as np
import pinocchio as pin
from hypothesis import settings
from hypothesis import strategies as st

from constrained_sim import SOLVERS, PointContact, Robot, Simulator, load_config
from constrained_sim.config import Config
from constrained_sim.constraints import Constraint
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.solvers import Solver, make_solver
from constrained_sim.solvers.direct import FACTORIZATIONS

ROOT = Path(__file__).resolve().parents[1]
GRAVITY = 9.81

PROBE = """
<robot name="probe"><link name="body">
  <inertial><mass value="1"/><inertia ixx="0.01" iyy="0.02" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial>
  <collision><geometry><box size="0.2 0.2 0.2"/></geometry></collision></link>
  <link name="mast"/>
  <joint name="mount" type="fixed"><parent link="body"/><child link="mast"/>
    <origin xyz="0.1 -0.2 0.3" rpy="0.3 0.5 -0.2"/></joint>
</robot>
"""
"""A body that carries sensors, with a frame that is turned."""

SOLO_FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
SOLO_POSTURE = {
    f"{leg}_{joint}": value for leg in ("FL", "FR", "HL", "HR") for joint, value in (("HFE", 0.8), ("KFE", -1.6))
}

METHODS: list[tuple[str, dict[str, str]]] = [
    (name, options)
    for name in SOLVERS
    for options in ([{"factorization": kind} for kind in FACTORIZATIONS] if name == "direct" else [{}])
]
"""Every solver with every factorisation it has."""

MATRIX_METHODS = [(name, options) for name, options in METHODS if not SOLVERS[name].needs_robot]
"""Those that need no more than the matrices."""

METHOD_NAMES = ["-".join([name, *options.values()]) for name, options in METHODS]
MATRIX_METHOD_NAMES = ["-".join([name, *options.values()]) for name, options in MATRIX_METHODS]


def property_test(examples: int) -> settings:
    """Return settings under which hypothesis draws the same examples every time."""
    return settings(max_examples=examples, deadline=None, derandomize=True, database=None)


seeds = st.integers(0, 2**32 - 1)


def every_solver(constraints: Iterable[Constraint] = ()) -> list[Solver]:
    """Return one of each that can do all of `constraints`."""
    constraints = list(constraints)
    solvers = [make_solver(name, **options) for name, options in METHODS]
    return [solver for solver in solvers if all(solver.supports(constraint) for constraint in constraints)]


# -- robots


@cache
def leg() -> Robot:
    """Return the shipped leg; its slider is passive."""
    return Robot.from_urdf(ROOT / "urdf" / "leg.urdf", actuated_joints=("hip", "knee"))


@cache
def leg_config() -> Config:
    """Return the shipped configuration of the leg."""
    return load_config(ROOT / "config" / "leg.yaml")


@cache
def solo12() -> Robot:
    """Return the quadruped solo12 on a free-flyer."""
    (urdf,) = (file for file in files("example-robot-data") or [] if file.name == "solo12.urdf")
    return Robot.from_urdf(Path(str(urdf.locate())), floating_base=True)


def standing_solo(height: float = 0.0, tilt: float = 0.0) -> np.ndarray:
    """Return solo12 with bent knees, its lowest foot `height` [m] above ground, the base turned by `tilt` about x."""
    robot = solo12()
    quaternion = [np.sin(0.5 * tilt), 0.0, 0.0, np.cos(0.5 * tilt)]
    q = robot.configuration(SOLO_POSTURE, base=[0.0, 0.0, 0.0, *quaternion])
    q[2] = height - min(point_of(robot, q, foot)[2] for foot in SOLO_FEET)
    return q


def solo_contacts(**options: object) -> list[PointContact]:
    """Return a contact at each foot of solo12."""
    return [PointContact(foot, foot, (0.0, 0.0, 0.0), **options) for foot in SOLO_FEET]  # type: ignore[arg-type]


def link(
    name: str,
    mass: float,
    centre: object = (0, 0, 0),
    inertia: object = (1e-3, 1e-3, 1e-3),
    shape: str = "",
    origin: str = "",
) -> str:
    """Return the URDF of a link.

    Args:
        name: of the link.
        mass: [kg].
        centre: of mass [m].
        inertia: the diagonal, or ixx, iyy, izz, ixy, ixz, iyz [kg m^2].
        shape: of its collision element, as in ``<geometry>``; empty: none.
        origin: of that element, an ``<origin>``.
    """
    values = [*np.asarray(inertia, float), 0.0, 0.0, 0.0][:6]
    moments = " ".join(
        f'{k}="{x!r}"' for k, x in zip(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), map(float, values), strict=True)
    )
    frame = f'<origin xyz="{_text(centre)}"/>'
    solid = f"<collision>{origin}<geometry>{shape}</geometry></collision>" if shape else ""
    return f'<link name="{name}"><inertial>{frame}<mass value="{mass!r}"/><inertia {moments}/></inertial>{solid}</link>'


def joint(
    name: str, kind: str, parent: str, child: str, axis: object = (0, 1, 0), origin: object = (0, 0, 0), more: str = ""
) -> str:
    """Return the URDF of a joint."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{_text(origin)}"/><axis xyz="{_text(axis)}"/>{more}</joint>'
    )


def urdf(*parts: str) -> str:
    """Return a URDF of links and joints."""
    return '<robot name="robot">' + "".join(parts) + "</robot>"


LIMIT = '<limit lower="-9" upper="9" effort="100" velocity="100"/>'


def chain(lengths: tuple[float, ...], masses: tuple[float, ...] | None = None) -> Robot:
    """Return a pendulum of slender rods that turn about y and hang along -z at q = 0; its end is the link ``tip``."""
    masses = masses or tuple(1.0 + 0.3 * i for i in range(len(lengths)))
    parts, parent, origin = ['<link name="base"/>'], "base", 0.0
    for i, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        slender = mass * length**2 / 12.0
        parts.append(link(f"rod{i}", mass, (0, 0, -length / 2), (slender, slender, 1e-4 * mass)))
        parts.append(joint(f"joint{i}", "revolute", parent, f"rod{i}", origin=(0, 0, -origin), more=LIMIT))
        parent, origin = f"rod{i}", length
    parts += ['<link name="tip"/>', joint("end", "fixed", parent, "tip", origin=(0, 0, -origin))]
    return Robot.from_urdf(urdf(*parts))


@cache
def double_pendulum() -> Robot:
    """Return two unequal rods."""
    return chain((0.5, 0.35))


BLOCK_HALF = (0.15, 0.10, 0.05)


@cache
def block(
    half: tuple[float, float, float] = BLOCK_HALF, mass: float = 2.0, gravity: object = (0, 0, -GRAVITY)
) -> Robot:
    """Return a homogeneous box of half lengths `half` [m] on a free-flyer, link ``block``."""
    x, y, z = np.square(half) * mass / 3.0
    return Robot.from_urdf(urdf(link("block", mass, inertia=(y + z, x + z, x + y))), True, gravity)  # type: ignore[arg-type]


def corners(half: tuple[float, float, float] = BLOCK_HALF, **options: object) -> list[PointContact]:
    """Return contacts at the four bottom corners of :func:`block`."""
    x, y, z = half
    signs = [(-1, -1), (1, -1), (-1, 1), (1, 1)]
    return [PointContact(f"corner{i}", "block", (a * x, b * y, -z), **options) for i, (a, b) in enumerate(signs)]  # type: ignore[arg-type]


@cache
def rod(length: float = 1.0, mass: float = 1.0) -> Robot:
    """Return a slender rod along z on a free-flyer, link ``rod``."""
    slender = mass * length**2 / 12.0
    return Robot.from_urdf(urdf(link("rod", mass, inertia=(slender, slender, 1e-4 * slender))), True)


@cache
def ball(radius: float = 0.1, mass: float = 0.5) -> Robot:
    """Return a homogeneous sphere on a free-flyer, link ``ball``."""
    return Robot.from_urdf(urdf(link("ball", mass, inertia=[0.4 * mass * radius**2] * 3)), True)


def random_tree(rng: np.random.Generator, joints: int, floating_base: bool = False) -> Robot:
    """Return a random tree: revolute, prismatic and continuous joints, axes, inertias and placements at random.

    Its links are ``link0`` (the root) to ``link<joints>``.
    """
    parts = [random_link(rng, "link0")]
    for i in range(1, joints + 1):
        kind = str(rng.choice(["revolute", "revolute", "prismatic", "continuous"]))
        axis = rng.normal(size=3)
        parent = f"link{rng.integers(max(0, i - 3), i)}"
        parts.append(random_link(rng, f"link{i}"))
        parts.append(
            joint(f"joint{i}", kind, parent, f"link{i}", axis / np.linalg.norm(axis), rng.uniform(-0.4, 0.4, 3), LIMIT)
        )
    return Robot.from_urdf(urdf(*parts), floating_base)


def random_link(rng: np.random.Generator, name: str) -> str:
    """Return a link whose inertia is that of a random cloud of points."""
    mass, points = rng.uniform(0.3, 3.0), rng.normal(scale=0.12, size=(6, 3))
    second = mass * points.T @ points / 6.0
    inertia = np.trace(second) * np.eye(3) - second
    six = [inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return link(name, mass, rng.uniform(-0.2, 0.2, 3), six)


def random_state(robot: Robot, rng: np.random.Generator, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return a random configuration and velocity."""
    q = pin.integrate(robot.model, robot.neutral(), rng.uniform(-1.0, 1.0, robot.nv))
    return q, speed * rng.normal(size=robot.nv)


def tilted(angle: float, axis: int = 1) -> np.ndarray:
    """Return the quaternion xyzw of a turn by `angle` [rad] about a world axis."""
    quaternion = np.zeros(4)
    quaternion[axis], quaternion[3] = np.sin(0.5 * angle), np.cos(0.5 * angle)
    return quaternion


def simulator(robot: Robot, q: object, v: object = None, constraints: object = (), **options: object) -> Simulator:
    """Return a simulator at (q, v) with `constraints`, which need not hold at the neutral configuration."""
    sim = Simulator(robot, **options)  # type: ignore[arg-type]
    sim.reset(q, v)
    for constraint in constraints:  # type: ignore[attr-defined]
        sim.add(constraint)
    return sim


# -- oracles


def placement(robot: Robot, q: np.ndarray, frame: str) -> pin.SE3:
    """Return the placement of a link or frame in the world, by Pinocchio alone."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    return pin.SE3.Identity() if frame == "world" else data.oMf[robot.model.getFrameId(frame)].copy()


def point_of(robot: Robot, q: np.ndarray, frame: str, point: object = (0.0, 0.0, 0.0)) -> np.ndarray:
    """Return the world position of a point of a link, by Pinocchio alone."""
    return placement(robot, q, frame).act(np.asarray(point, float))


def inertia_of(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return M, by Pinocchio alone."""
    data = robot.model.createData()
    M = np.triu(pin.crba(robot.model, data, q))
    return M + np.triu(M, 1).T


def bias_of(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return h, by Pinocchio alone."""
    return pin.nonLinearEffects(robot.model, robot.model.createData(), q, v).copy()


def kinetic_energy(robot: Robot, q: np.ndarray, v: np.ndarray) -> float:
    """Return the kinetic energy [J], by Pinocchio alone."""
    return float(pin.computeKineticEnergy(robot.model, robot.model.createData(), q, v))


def mechanical_energy(robot: Robot, q: np.ndarray, v: np.ndarray) -> float:
    """Return kinetic plus potential energy [J], by Pinocchio alone."""
    return kinetic_energy(robot, q, v) + float(pin.computePotentialEnergy(robot.model, robot.model.createData(), q))


def linear_momentum(robot: Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the momentum [N s] of all bodies, world axes, by Pinocchio alone."""
    data = robot.model.createData()
    pin.centerOfMass(robot.model, data, q, v)
    return data.mass[0] * data.vcom[0]


def rows_at(robot: Robot, bound: ConstraintSet, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return J and J v of the rows of `bound`, in the order of declaration (bilateral only, or contacts only)."""
    dynamics = Dynamics.at(robot, q, v)
    J = np.vstack([bound.bilateral.jacobian(dynamics), bound.contacts.rows(dynamics, v).J])
    return J, J @ v


def derivative(function, step: float = 1e-3) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Return the derivative of ``function(t)`` at 0 by central differences of sixth order."""
    weights = (45.0, -9.0, 1.0)
    return sum(w * (function(k * step) - function(-k * step)) for k, w in enumerate(weights, 1)) / (60.0 * step)


def exact_kkt(M: np.ndarray, J: np.ndarray, f: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve ``M x - J^T lam = f, J x = b`` for independent rows in rational arithmetic."""
    n, m = len(f), len(b)
    rows = [
        [Fraction(float(x)) for x in row]
        for row in np.block([[M, -J.T, f[:, None]], [J, np.zeros((m, m)), b[:, None]]])
    ]
    for k in range(n + m):
        pivot = next(i for i in range(k, n + m) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(n + m):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    unknowns = np.array([float(rows[k][-1] / rows[k][k]) for k in range(n + m)])
    return unknowns[:n], unknowns[n:]


def pseudo_kkt(M: np.ndarray, J: np.ndarray, f: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Solve ``M x - J^T lam = f, J x = b`` for rows of any rank through the pseudo-inverse of the Delassus matrix."""
    free, response = np.linalg.solve(M, f), np.linalg.solve(M, J.T)
    lam = np.linalg.pinv(J @ response, rcond=1e-11, hermitian=True) @ (b - J @ free)
    return free + response @ lam, lam


def relative(actual: np.ndarray, expected: np.ndarray, floor: float = 1e-300) -> float:
    """Return the largest difference relative to the largest entry of `expected` (at least `floor`)."""
    difference = np.abs(np.asarray(actual) - expected).max(initial=0.0)
    return float(difference / max(np.abs(expected).max(initial=0.0), floor))


def _text(vector: object) -> str:
    return " ".join(repr(float(x)) for x in np.asarray(vector, float))
