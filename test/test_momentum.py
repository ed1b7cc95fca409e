"""Momenta that are known exactly are kept, and time stepping follows the motion however light the links."""

from __future__ import annotations

import warnings

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import LIMIT, block, inertia_of, joint, link, random_state, random_tree, urdf
from scipy.integrate import solve_ivp

from constrained_sim import (
    Baumgarte,
    JointVelocity,
    Plane,
    PointAnchor,
    PointContact,
    Projection,
    Robot,
    Simulator,
    constrained_acceleration,
    load_config,
    resolve_impact,
)
from constrained_sim.dynamics.momentum import cyclic_rows
from constrained_sim.exceptions import FastJoints

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
def test_a_tapered_whip_keeps_its_energy(links, ratio, dt):
    """Each link has a fraction of the mass before it: its tip turns by radians within a step, done in parts."""
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
        assert abs(sim.mechanical_energy() - energy) < 0.15 * most


def chain_of_rods(radius: float, bend: float) -> Robot:
    """Return four round steel rods of 0.1 m in ball joints, bent by an angle [deg] to and fro, that fly free."""
    body = ""
    for i in reversed(range(4)):
        joint = '<freejoint name="free"/>' if i == 0 else f'<joint name="ball_{i}" type="ball"/>'
        place = "" if i == 0 else f'pos="0 0 -0.1" euler="0 {bend * (-1) ** i} 0"'
        rod = f'<geom type="capsule" fromto="0 0 0 0 0 -0.1" size="{radius}" density="7850"/>'
        body = f'<body name="rod_{i}" {place}>{joint}{rod}{body}</body>'
    world = f'<mujoco><option gravity="0 0 0"/><worldbody>{body}</worldbody></mujoco>'
    return Robot.from_mjcf(world, actuated_joints=[])


@pytest.mark.parametrize("radius", [0.005, 0.0005])
@pytest.mark.parametrize(
    ("bend", "speed_error", "spin_error", "energy_error"),
    [(0.0, 5e-5, 2e-4, 1e-8), (40.0, 0.04, 0.12, 1e-4)],
    ids=["straight", "bent"],
)
def test_thin_links_of_a_free_chain_keep_their_spin(bend, speed_error, spin_error, energy_error, radius):
    """However thin they are: a ball joint exerts no moment about the axis of a round link, whose spin is constant.

    What about their axes is least of the momentum of all is no matter of rounding in the motion of the others. Speeds
    are compared with those of event to event, and the error falls with the square of the step.
    """
    robot, v, found = chain_of_rods(radius, bend), np.zeros(15), []
    v[3:8] = 5.0, 20.0, 5.0, 0.0, 1.0
    data = robot.model.createData()
    exact = Simulator(robot, dt=0.01, q=robot.neutral(), v=v, stepper="event_driven").run(0.1).v[-1]
    for dt in (1e-3, 5e-4):
        sim = Simulator(robot, dt=dt, q=robot.neutral(), v=v)
        energy, spins = sim.mechanical_energy(), []
        for state in (sim.state, sim.run(0.1) and sim.state):
            pin.forwardKinematics(robot.model, data, state.q, state.v)
            spins.append([data.v[joint].angular[2] for joint in range(1, robot.model.njoints)])
        error = np.abs(sim.state.v - exact).max() / np.abs(exact).max(), np.abs(np.diff(spins, axis=0)).max()
        found.append((*error, abs(sim.mechanical_energy() / energy - 1.0)))
    assert found[0][0] < speed_error
    assert found[0][1] < spin_error
    assert found[0][2] < energy_error
    if bend:
        assert found[0][1] / found[1][1] == pytest.approx(4.0, rel=0.1)


@pytest.mark.parametrize(("dt", "error"), [(5e-4, 3e-4), (1e-3, 3e-3), (2e-3, 0.03)])
def test_limbs_that_lash_keep_their_energy(dt, error):
    """A free tree whose joints turn by up to a radian within a step; its energy errs by the square of the step."""
    rng = np.random.default_rng(1)
    robot = random_tree(rng, 8, True)
    sim = Simulator(robot, dt=dt)
    sim.reset(*random_state(robot, rng, 15.0))
    energy, most = sim.mechanical_energy(), sim.kinetic_energy()
    for _ in range(round(0.6 / dt)):
        sim.step()
        assert abs(sim.mechanical_energy() - energy) < error * most


def test_joints_that_turn_too_far_are_told_of():
    """Once: a double pendulum whose lower link turns by thirty radians within a step."""
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("arm", 1.0, centre=(0.0, 0.0, -0.2)),
            joint("shoulder", "continuous", "base", "arm", (0, 1, 0)),
            link("tip", 0.1, centre=(0.0, 0.0, -0.1)),
            joint("wrist", "continuous", "arm", "tip", (0, 1, 0), (0.0, 0.0, -0.4)),
        )
    )
    sim = Simulator(robot, dt=0.01)
    sim.reset(v=[0.0, 3000.0])
    with pytest.warns(FastJoints, match=r"0\.01 s") as caught:
        sim.run(0.5)
    assert len([warning for warning in caught if warning.category is FastJoints]) == 1


def test_a_whip_that_hits_the_ground_keeps_its_energy():
    """But for what its impacts take: the way to a touchdown is done in parts too."""
    model, parent, length = pin.Model(), 0, 0.1
    for i in range(7):
        place = pin.SE3(np.eye(3), np.array([0.0, 0.0, -length if i else 0.0]))
        parent = model.addJoint(parent, (pin.JointModelRY, pin.JointModelRX)[i % 2](), place, f"joint{i}")
        moments = np.diag([1.0, 1.0, 0.05]) * 0.3**i * length**2 / 12
        center = np.array([0.0, 0.0, -length / 2])
        model.appendBodyToJoint(parent, pin.Inertia(0.3**i, center, moments), pin.SE3.Identity())
        model.addFrame(pin.Frame(f"link{i}", parent, pin.SE3.Identity(), pin.FrameType.BODY))
    robot = Robot(model, ())
    ground = PointContact(
        "tip", "link6", (0.0, 0.0, -length), surface=Plane(offset=-0.5), friction=0.3, restitution=0.5
    )
    sim = Simulator(robot, [ground], dt=2e-3)
    sim.reset(np.append(1.2, np.full(6, 0.3)))
    most, impacts = robot.mass * 9.81 * length, 0
    for _ in range(1500):
        impacts += len(sim.step().impacts)
        assert abs(sim.integration_energy()) < 0.2 * most
    assert impacts > 3


@pytest.mark.parametrize(("seed", "fastest"), [(200, 800.0), (220, 5000.0), (256, 5000.0)])
def test_fast_joints_that_may_reach_their_stops_gain_no_energy(seed, fastest):
    """What is only tried on the way to a touchdown must not lead astray: joints turn by radians in a step."""
    limit = '<limit lower="-10" upper="10" effort="0" velocity="1e4"/>'
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("arm", 0.15, (0.0, 0.0, -0.1), (1e-4, 1e-4, 1e-4)),
            joint("shoulder", "revolute", "base", "arm", (0, 1, 0), more=limit),
            link("tip", 0.03, (0.0, 0.0, -0.05), (1e-5, 1e-5, 1e-5)),
            joint("wrist", "revolute", "arm", "tip", (0, 1, 0), (0.0, 0.0, -0.2), more=limit),
        )
    )
    rng = np.random.default_rng(seed)
    q, v = rng.uniform(-1.4, 1.4, 2), rng.uniform(-fastest, fastest, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FastJoints)
        sim = Simulator(robot, robot.joint_limits(), q=q, v=v)
        energy, impacts = sim.kinetic_energy(), 0
        for _ in range(30):
            impacts += len(sim.step().impacts)
            assert sim.integration_energy() < 0.02 * energy
            assert np.abs(sim.state.q).max() < 10.0 + 1e-3
    assert impacts


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


# -- a velocity that bilateral constraints forbid at the beginning of a step


TWO_BOXES = """<mujoco><option gravity="0 0 0"/><worldbody>
  <body name="a"><freejoint name="a"/><geom type="box" size=".1 .08 .06" mass="1"/></body>
  <body name="b" pos=".35 0 0"><freejoint name="b"/><geom type="box" size=".1 .08 .06" mass="2"/></body>
</worldbody></mujoco>"""

HINGE = PointAnchor("hinge", "a", (0.175, 0, 0), "b", (-0.175, 0, 0))


def torn_apart(constraints=(HINGE,), **options) -> Simulator:
    """Return two free bodies, one anchored to the other, with a velocity of each that the anchor forbids."""
    robot = Robot.from_mjcf(TWO_BOXES)
    q = robot.configuration({"a": (0, 0, 0, 0, 0, 0, 1), "b": (0.35, 0, 0, 0, 0, 0, 1)})
    v = np.random.default_rng(5).normal(size=12) * [1, 1, 1, 3, 3, 3, 1, 1, 1, 3, 3, 3]
    return Simulator(robot, constraints, q=q, v=v, **options)


def momentum(sim: Simulator) -> np.ndarray:
    """Return (6,) the momentum, linear and angular about the centre of mass."""
    model = sim.robot.model
    return pin.computeCentroidalMomentum(model, model.createData(), sim.state.q, sim.state.v).vector


@pytest.mark.parametrize("solver", ["range_space", "direct", "null_space"])
@pytest.mark.parametrize(
    ("stepper", "dt", "error"), [("event_driven", 2e-2, 1e-14), ("event_driven", 5e-3, 1e-14), ("smooth", 1e-3, 1e-11)]
)
def test_a_forbidden_velocity_is_an_impact_at_the_beginning_of_a_step(stepper, dt, error, solver):
    """Bodies that are anchored to each other keep their momentum; the loss is that of the impact, which comes once."""
    sim = torn_apart(stepper=stepper, dt=dt, solver=solver)
    before, at_first = sim.state, momentum(sim)
    first = sim.step()
    np.testing.assert_allclose(momentum(sim), at_first, rtol=0, atol=error)
    (impact,) = first.impacts
    expected = resolve_impact(sim.robot, before.q, before.v, [HINGE])
    np.testing.assert_allclose(impact.v_plus, expected.v_plus, atol=1e-13)
    np.testing.assert_allclose(impact.multipliers("hinge"), expected.multipliers("hinge"), atol=1e-13)
    assert impact.t == 0.0
    assert sim.energy.impact_losses == pytest.approx(expected.energy_lost, rel=1e-12)
    after = constrained_acceleration(sim.robot, before.q, impact.v_plus, np.zeros(0), [HINGE])
    assert np.abs(impact.impulse).max() / dt > 8.0
    np.testing.assert_allclose(first.lam, after.lam, atol=0.5)  # [N] forces do not contain impulses
    assert not any(sim.step().impacts for _ in range(50))
    assert abs(sim.energy.projection) < 1e-9
    assert abs(sim.integration_energy()) < 1e-9


@pytest.mark.parametrize("stepper", ["event_driven", "smooth"])
def test_a_forbidden_velocity_is_an_impact_whenever_it_is_set(stepper):
    """At a restart, and where another stepper goes on that finds the forbidden velocity unspent."""
    sim = torn_apart(stepper=stepper, dt=1e-3)
    begin = sim.state
    assert len(sim.step().impacts) == 1
    sim.reset(begin.q, begin.v)
    assert len(sim.step().impacts) == 1
    sim = torn_apart(dt=1e-3)
    sim.set_stepper(stepper)
    assert len(sim.step().impacts) == 1
    sim.set_stepper("time_stepping")
    sim.run(0.01)
    sim.set_stepper(stepper)
    assert not sim.step().impacts


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "rk4"])
@pytest.mark.parametrize(
    "stabilization", [Projection(velocity_tolerance=1e-3), Projection("euclidean"), Baumgarte(0.05)]
)
def test_drift_is_no_impact(stabilization, integrator):
    """Neither what a coarse integrator leaves, nor what a projection tolerates, nor what feedback takes away."""
    sim = torn_apart(stepper="smooth", integrator=integrator, stabilization=stabilization, dt=5e-3)
    sim.reset(sim.state.q, resolve_impact(sim.robot, sim.state.q, sim.state.v, [HINGE]).v_plus)
    assert not any(sim.step().impacts for _ in range(100))
    assert np.abs(sim.state.v).max() > 0.1


@pytest.mark.parametrize("stepper", ["event_driven", "smooth"])
def test_feedback_takes_a_forbidden_velocity_away_in_its_own_time(stepper):
    """By forces between the bodies, which change no momentum."""
    sim = torn_apart(stepper=stepper, stabilization=Baumgarte(0.02), dt=1e-3)
    at_first = momentum(sim)
    assert not sim.step().impacts
    sim.run(0.5)
    assert sim.largest_violation()[1] < 1e-6
    np.testing.assert_allclose(momentum(sim)[:3], at_first[:3], rtol=0, atol=1e-3)


@pytest.mark.parametrize("stepper", ["event_driven", "smooth"])
def test_rows_that_contradict_each_other_are_no_impact_in_every_step(stepper):
    """Two motors that want different speeds: the first step goes to the mean, by least squares, and it stays there."""
    motors = [JointVelocity("slow", "wheel", 1.0), JointVelocity("fast", "wheel", 2.0)]
    robot = Robot.from_urdf(
        urdf('<link name="base"/>', link("rim", 1.0), joint("wheel", "continuous", "base", "rim", (0, 0, 1)))
    )
    sim = Simulator(robot, motors, stepper=stepper, dt=1e-2)
    assert len(sim.step().impacts) == 1
    assert not any(sim.step().impacts for _ in range(10))
    assert sim.state.v[0] == pytest.approx(1.5, rel=1e-12)


@pytest.mark.parametrize("stepper", ["event_driven", "smooth"])
def test_a_hand_that_moves_on_takes_what_it_holds_along(stepper):
    """An anchor that moves from the first instant on, and a body at rest: the hand gives m u, and m u^2 of energy."""
    speed, robot = np.array([0.3, 0.0, -0.4]), Robot.from_mjcf(TWO_BOXES)
    hand = PointAnchor("hand", "a", (0, 0, 0), point_b=lambda t: (speed * t, speed, np.zeros(3)))
    q = robot.configuration({"a": (0, 0, 0, 0, 0, 0, 1), "b": (1, 0, 0, 0, 0, 0, 1)})
    sim = Simulator(robot, [hand], stepper=stepper, dt=1e-2, q=q)
    (impact,) = sim.step().impacts
    np.testing.assert_allclose(impact.multipliers("hand"), speed, rtol=1e-13)
    assert impact.driven == pytest.approx(speed @ speed, rel=1e-13)
    assert impact.energy_lost == pytest.approx(-0.5 * speed @ speed, rel=1e-13)
    np.testing.assert_allclose(sim.state.q[:3], 0.01 * speed, rtol=1e-12)
    assert not sim.step().impacts
    assert abs(sim.integration_energy()) < 1e-14


def test_a_closed_contact_takes_part_in_what_constraints_forbid():
    """A body in a slanted guide that is driven into the floor stops; off the floor it would follow the guide."""
    robot = block(gravity=(0, 0, 0))
    guide = PointAnchor("guide", "block", (0, 0, 0), normals=[(np.sqrt(0.5), 0, np.sqrt(0.5)), (0, 1, 0)])
    for height, expected in ((0.0, (0, 0, 0)), (1.0, (0.5, 0, -0.5))):
        floor = PointContact("floor", "block", (0, 0, 0), surface=Plane((0, 0, 1), -height), friction=0.0)
        sim = Simulator(robot, [guide, floor], stepper="event_driven", q=robot.neutral(), v=[1, 0, 0, 0, 0, 0], dt=1e-2)
        (impact,) = sim.step().impacts
        np.testing.assert_allclose(sim.state.v[:3], expected, atol=1e-14)
        assert impact.energy_lost == pytest.approx(1.0 - np.square(expected).sum(), rel=1e-13)
        assert ("floor" in impact.contact_impulses) == (height == 0.0)
        assert abs(sim.integration_energy()) < 1e-14
