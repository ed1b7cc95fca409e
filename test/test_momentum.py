"""Time stepping keeps momenta that are known exactly, and follows the equation of motion however light the links."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import LIMIT, inertia_of, joint, link, random_state, random_tree, urdf
from scipy.integrate import solve_ivp

from constrained_sim import Robot, Simulator, load_config
from constrained_sim.dynamics.momentum import cyclic_rows

SOLVER = {True: "range_space", False: "kokkevis"}
"""With the first a step is compiled as a whole, with the second it is interpreted."""


def names_of(robot: Robot) -> list[str]:
    """Return the names of the joints whose momentum is known."""
    rows, model = cyclic_rows(robot.model), robot.model
    return [model.names[joint] for joint in range(1, model.njoints) if model.idx_vs[joint] in rows]


def gantry() -> Robot:
    """Return three slides, and a pendulum in two planes that hangs on the last."""
    axes = {"x": (1, 0, 0), "y": (0, 1, 0), "z": (0, 0, 1)}
    parts, parent = ['<link name="base"/>'], "base"
    for name, axis in axes.items():
        parts += [link(f"cart_{name}", 1.0), joint(name, "prismatic", parent, f"cart_{name}", axis, more=LIMIT)]
        parent = f"cart_{name}"
    parts += [link("bob", 0.1), joint("swing", "continuous", parent, "bob", (0, 1, 0))]
    parts += [link("rod", 0.7, centre=(0.02, 0.0, -0.4)), joint("roll", "continuous", "bob", "rod", (1, 0, 0))]
    return Robot.from_urdf(urdf(*parts))


def scara() -> Robot:
    """Return a slide along a vertical axis that turns too, and a tilted link with a round wheel on it."""
    return Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("column", 1.0),
            joint("lift", "prismatic", "base", "column", (0, 0, 1), more=LIMIT),
            link("table", 2.0, centre=(0.1, 0.0, 0.0)),
            joint("turn", "continuous", "column", "table", (0, 0, 1), (0.3, 0.2, 0.0)),
            link("arm", 0.8, centre=(0.0, 0.1, -0.3)),
            joint("elbow", "continuous", "table", "arm", (1, 0, 0), (0.4, 0.0, 0.0)),
            link("wheel", 0.5),
            joint("spin", "continuous", "arm", "wheel", (0, 1, 0), (0.0, 0.1, -0.5)),
        )
    )


@pytest.mark.parametrize(
    ("robot", "expected"), [(gantry(), ["x", "y", "z"]), (scara(), ["lift", "turn", "spin"])], ids=["gantry", "scara"]
)
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
def test_momentum_of_a_coordinate_that_inertia_does_not_depend_on(robot, expected, compiled):
    """It changes by gravity only, to rounding, in steps that are coarse for the rest."""
    assert names_of(robot) == expected
    sim, rows = Simulator(robot, dt=0.01, solver=SOLVER[compiled]), cyclic_rows(robot.model)
    sim.reset(*random_state(robot, np.random.default_rng(3), 5.0))
    M = inertia_of(robot, sim.state.q)
    begin = (M @ sim.state.v)[rows]
    pulled = np.array([-9.81 * M[row, row] * (name in ("z", "lift")) for row, name in zip(rows, expected, strict=True)])
    for k in range(1, 101):
        sim.step()
        now = (inertia_of(robot, sim.state.q) @ sim.state.v)[rows]
        assert now == pytest.approx(begin + 0.01 * k * pulled, abs=1e-13 * np.abs(begin).max() * k)


def satellite() -> Robot:
    """Return a free body with a round wheel, whose angle M does not depend on, and an arm."""
    return Robot.from_urdf(
        urdf(
            link("body", 2.0, (0.02, 0.0, 0.01), (0.02, 0.03, 0.04)),
            link("wheel", 0.5, (0.0, 0.0, 0.0), (0.001, 0.002, 0.001)),
            joint("spin", "continuous", "body", "wheel", (0, 1, 0), (0.1, 0.05, 0.0)),
            link("arm", 0.8, (0.0, 0.1, -0.3), (0.01, 0.02, 0.03)),
            joint("elbow", "continuous", "body", "arm", (1, 0, 0), (-0.2, 0.0, 0.0)),
        ),
        True,
        (0.0, 0.0, 0.0),
    )


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "interpreted"])
def test_momentum_of_a_free_body_with_a_wheel(compiled):
    """Linear and angular momentum about the centre of mass, and that of the wheel, stay together."""
    robot = satellite()
    assert names_of(robot) == ["spin"]
    sim, rng = Simulator(robot, dt=0.005, solver=SOLVER[compiled]), np.random.default_rng(2)
    sim.reset(robot.neutral(), rng.normal(size=robot.nv) * [1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 40.0, 5.0])
    model, data, wheel = robot.model, robot.model.createData(), cyclic_rows(robot.model)
    kept = []
    for _ in range(200):
        q, v = sim.state.q, sim.state.v
        kept.append([*pin.computeCentroidalMomentum(model, data, q, v).vector, *(inertia_of(robot, q) @ v)[wheel]])
        sim.step()
    assert np.abs(np.array(kept) - kept[0]).max() < 1e-12 * np.abs(kept[0]).max()


def rope(links: int, length: float, mass: float) -> Robot:
    """Return a rope of thin rods on universal joints."""
    model, parent = pin.Model(), 0
    inertia = pin.Inertia(mass, np.array([0.0, 0.0, -length / 2]), np.diag([1.0, 1.0, 0.05]) * mass * length**2 / 12)
    for i in range(links):
        place = pin.SE3(np.eye(3), np.array([0.0, 0.0, -length if i else 0.0]))
        first = model.addJoint(parent, pin.JointModelRY(), place, f"pitch{i}")
        parent = model.addJoint(first, pin.JointModelRX(), pin.SE3.Identity(), f"roll{i}")
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return Robot(model, ())


@pytest.mark.parametrize("dt", [4e-3, 2e-3])
def test_a_rope_that_lashes_stays_whole(dt):
    """Twenty light rods of 5 cm, let go from the side: its energy stays, and it hangs about its anchor."""
    robot = rope(20, 0.05, 0.02)
    q = np.zeros(robot.nq)
    q[:6] = 1.2, 0.3, 0.0, 0.2, 0.0, -0.3
    sim = Simulator(robot, dt=dt)
    sim.reset(q)
    energy, most = sim.mechanical_energy(), 9.81 * robot.mass
    for _ in range(round(3.0 / dt)):
        sim.step()
        assert abs(sim.mechanical_energy() - energy) < 0.1 * most


@pytest.mark.parametrize(("links", "ratio", "dt"), [(9, 0.3, 4e-3), (9, 0.2, 1e-3), (6, 0.1, 3e-3)])
def test_a_tapered_whip_gains_no_energy(links, ratio, dt):
    """Each link has a fraction of the mass before it: its tip turns by radians within a step."""
    model, parent, length = pin.Model(), 0, 0.1
    for i in range(links):
        place = pin.SE3(np.eye(3), np.array([0.0, 0.0, -length if i else 0.0]))
        parent = model.addJoint(parent, (pin.JointModelRY, pin.JointModelRX)[i % 2](), place, f"joint{i}")
        moments = np.diag([1.0, 1.0, 0.05]) * ratio**i * length**2 / 12
        model.appendBodyToJoint(
            parent, pin.Inertia(ratio**i, np.array([0.0, 0.0, -length / 2]), moments), pin.SE3.Identity()
        )
    robot = Robot(model, ())
    sim = Simulator(robot, dt=dt)
    sim.reset(np.append(1.2, np.full(links - 1, 0.3)))
    energy, most = sim.mechanical_energy(), robot.mass * 9.81 * length
    for _ in range(round(3.0 / dt)):
        sim.step()
        assert sim.mechanical_energy() - energy < 0.25 * most


def reference(robot: Robot, q: np.ndarray, duration: float) -> np.ndarray:
    """Return where a robot from rest comes to, to twelve digits, by the articulated-body algorithm."""
    model, data = robot.model, robot.model.createData()

    def rate(_t, y):
        v = y[robot.nv :]
        return np.concatenate([v, pin.aba(model, data, pin.integrate(model, q, y[: robot.nv]), v, np.zeros(robot.nv))])

    path = solve_ivp(rate, (0.0, duration), np.zeros(2 * robot.nv), method="DOP853", rtol=1e-12, atol=1e-13)
    return path.y[:, -1]


@pytest.mark.parametrize(("joints", "error"), [(4, 3e-6), (7, 8e-5), (12, 1.5e-4)])
def test_motion_of_arms_in_space(joints, error):
    """Chains with joints of any axis: of second order, and the error at 1 ms is small."""
    robot = random_tree(np.random.default_rng(joints), joints)
    q = pin.integrate(robot.model, robot.neutral(), np.random.default_rng(1).uniform(-1.0, 1.0, robot.nv))
    expected, errors = reference(robot, q, 0.5), []
    for dt in (2e-3, 1e-3):
        sim = Simulator(robot, dt=dt)
        sim.reset(q)
        sim.run(0.5)
        moved = pin.difference(robot.model, q, sim.state.q)
        errors.append(np.abs(np.concatenate([moved, sim.state.v]) - expected).max())
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] < error


@pytest.mark.parametrize("name", ["leg", "quadruped"])
def test_joints_that_race_stay_finite(name):
    """At full effort for a second, joints turn by a radian within a step: the energy stays below the work done."""
    config = load_config(f"package://constrained_sim/config/{name}.yaml")
    sim, work = config.simulator(), 0.0
    efforts = sim.robot.effort_limits * (-1.0) ** np.arange(sim.robot.nu)
    energy = sim.mechanical_energy()
    for _ in range(1000):
        before = sim.state.v
        sim.step(efforts)
        mean = 0.5 * (before + sim.state.v)[sim.robot.actuation]
        work += sim.dt * np.abs(efforts * mean).sum()
    assert sim.mechanical_energy() - energy < work
    assert np.abs(sim.state.v).max() > 200.0
