"""Joints: limits, dry friction, and one-sided constraints of the user's own, against closed forms."""

import numpy as np
import pytest
from mechanisms import (
    GRAVITY,
    LIMIT,
    bias_of,
    chain,
    every_solver,
    inertia_of,
    joint,
    leg,
    link,
    point_of,
    relative,
    simulator,
    solo12,
    standing_solo,
    urdf,
)

from constrained_sim import (
    CustomConstraint,
    JointLimit,
    PointAnchor,
    PointContact,
    Robot,
    Simulator,
    constrained_acceleration,
    inverse_dynamics,
    resolve_impact,
)
from constrained_sim.contact_solvers import METHODS
from constrained_sim.exceptions import InvalidValue, ModelError, NotSupported, UnknownName, ViolatedConstraint

MASS, BREAKAWAY = 2.0, 3.0


def slider(friction=BREAKAWAY, axis=(1, 0, 0)):
    """Return a mass on a rail with dry friction."""
    dynamics = LIMIT + f'<dynamics damping="0" friction="{friction}"/>'
    parts = (
        '<link name="rail"/>',
        link("mass", MASS),
        joint("slide", "prismatic", "rail", "mass", axis, more=dynamics),
    )
    return Robot.from_urdf(urdf(*parts))


def pendulum_at_a_stop(restitution=0.0, upper=0.3):
    """Return a rod that falls to its upper stop, as a simulator, and the stop."""
    robot = chain((0.5,), (MASS,))
    stop = JointLimit("stop", "joint0", -1.0, upper, restitution)
    return simulator(robot, [-0.4], [3.0], [stop])


# -- dry friction


@pytest.mark.parametrize("force", [0.0, 1.0, -2.999999, BREAKAWAY])
def test_below_breakaway_nothing_moves(force):
    """Not by a rounding: friction is what is needed to stay at rest."""
    sim = simulator(slider(), [0.1])
    for _ in range(500):
        result = sim.step([force])
    assert sim.state.q[0] == 0.1
    assert sim.state.v[0] == 0.0
    assert result.dry_friction[0] == pytest.approx(-force, abs=1e-12)


def test_above_breakaway_the_rest_accelerates():
    """a = (F - tau_f) / m, and friction takes tau_f times the distance."""
    sim = simulator(slider(), [0.0])
    for _ in range(1000):
        result = sim.step([5.0])
    assert sim.state.v[0] == pytest.approx(1.0, rel=1e-12)
    assert sim.state.q[0] == pytest.approx(0.5, rel=1e-12)
    assert result.dry_friction[0] == pytest.approx(-BREAKAWAY, rel=1e-12)
    assert sim.energy.damping == pytest.approx(-BREAKAWAY * 0.5, rel=1e-12)
    assert sim.energy.kinetic == pytest.approx(0.5 * MASS, rel=1e-12)


def test_friction_stops_and_holds():
    """A thrown mass stops at v^2 m / (2 tau_f), to the order of the step, and stays there; no energy is left over."""
    for dt in (1e-3, 1e-4):
        sim = simulator(slider(), [0.0], [1.2345], dt=dt)
        sim.run(1.0)
        rest = sim.state.q[0]
        assert rest == pytest.approx(0.5 * MASS * 1.2345**2 / BREAKAWAY, abs=1.2345 * dt)
        sim.run(0.2)
        assert sim.state.q[0] == rest
        assert sim.energy.damping == pytest.approx(-0.5 * MASS * 1.2345**2, rel=1e-12)


def test_friction_on_a_vertical_rail():
    """Gravity counts: the mass hangs by friction, or falls with what friction leaves."""
    for breakaway in (25.0, 10.0):
        sim = simulator(slider(breakaway, (0, 0, 1)), [0.0])
        sim.run(0.5)
        assert sim.state.v[0] == pytest.approx(0.5 * min(0.0, breakaway / MASS - GRAVITY), abs=1e-12)


def test_friction_does_no_positive_work():
    """Whatever the efforts do: reversals, sticking, slipping, of joints whose inertias are coupled."""
    dynamics = LIMIT + '<dynamics damping="0.01" friction="0.4"/>'
    parts = ['<link name="base"/>']
    for i in range(3):
        parent = f"rod{i - 1}" if i else "base"
        parts.append(link(f"rod{i}", 1.0, (0, 0, -0.15), (8e-3, 8e-3, 1e-4)))
        parts.append(joint(f"joint{i}", "revolute", parent, f"rod{i}", origin=(0, 0, -0.3 * (i > 0)), more=dynamics))
    robot, stuck = Robot.from_urdf(urdf(*parts)), 0
    sim = simulator(robot, [0.3, -0.5, 0.2])
    for step in range(1500):
        result = sim.step(2.0 * np.sin(0.03 * step * np.array([1.0, 1.7, 2.3])))
        assert result.energy.damping <= 1e-12
        assert np.abs(result.dry_friction).max() <= 0.4 * (1.0 + 1e-12)
        assert abs(result.energy.residual) < 1e-13
        stuck += bool((np.abs(sim.state.v) < 1e-14).any())
    assert 10 < stuck < 1400


def test_friction_agrees_with_every_solver():
    """With a closed loop beside it: the law is physics, the solver linear algebra."""
    dynamics = LIMIT + '<dynamics damping="0" friction="0.1"/>'
    parts = ['<link name="base"/>']
    for i, length in enumerate((0.3, 0.7, 0.5)):
        parent, origin = (f"rod{i - 1}", (0.3, 0.7, 0.5)[i - 1]) if i else ("base", 0.0)
        parts.append(link(f"rod{i}", 1.0, (0, 0, -length / 2), (1e-2, 1e-2, 1e-4)))
        parts.append(joint(f"joint{i}", "revolute", parent, f"rod{i}", origin=(0, 0, -origin), more=dynamics))
    robot = Robot.from_urdf(
        urdf(*parts, '<link name="tip"/>', joint("end", "fixed", "rod2", "tip", origin=(0, 0, -0.5)))
    )
    pin = PointAnchor("pin", "tip", (0, 0, 0))
    outcomes = []
    for solver in every_solver([pin]):
        if not solver.does_dry_friction:
            continue
        sim = simulator(robot, [0.5, 1.1, -0.4], None, [pin])
        sim.run(0.2)
        sim.set_solver(solver)
        result = sim.step()
        outcomes.append((result.state.v, result.lam, result.dry_friction))
    assert np.abs(outcomes[0][2]).min() > 0.05
    for outcome in outcomes[1:]:
        for value, expected in zip(outcome, outcomes[0], strict=True):
            np.testing.assert_allclose(value, expected, atol=1e-10)


def coupled_legs_in_flight():
    """Return a free body with two legs, whose joints have dry friction and whose knees a gear couples."""
    legs = "".join(
        f'''<body name="thigh{i}" pos="{0.1 * i} 0 0"><joint name="hip{i}" axis="0 1 0" frictionloss="0.01"/>
        <inertial pos="0 0 -0.08" mass="0.2" diaginertia="4e-4 4e-4 5e-5"/>
        <body name="shank{i}" pos="0 0 -0.16"><joint name="knee{i}" axis="0 1 0" frictionloss="0.01"/>
        <inertial pos="0 0 -0.08" mass="0.1" diaginertia="2e-4 2e-4 2e-5"/></body></body>'''
        for i in range(2)
    )
    return Robot.from_mjcf(
        f"""<mujoco><worldbody><body name="trunk"><freejoint name="root"/>
        <inertial pos="0 0 0" mass="2" diaginertia="0.01 0.012 0.014"/>{legs}</body></worldbody>
        <equality><joint joint1="knee0" joint2="knee1"/></equality></mujoco>"""
    )


@pytest.mark.parametrize("contact_method", METHODS)
def test_dry_friction_has_nothing_to_do_in_free_fall(contact_method):
    """With a gear between joints that fall together, all impulses are rounding, and no scale of their own judges it."""
    robot = coupled_legs_in_flight()
    q = robot.configuration({"root": (0, 0, 1, 0.1, 0.2, 0.3, 0.9), "hip0": 0.6, "knee0": -1.2, "knee1": -1.2})
    for solver in every_solver(robot.constraints):
        if not solver.does_dry_friction:
            continue
        sim = Simulator(robot, solver=solver, contact_method=contact_method, q=q)
        for _ in range(20):
            result = sim.step()
        np.testing.assert_allclose(sim.state.v[6:], 0.0, atol=1e-12)
        np.testing.assert_allclose(result.dry_friction, 0.0, atol=1e-10)
        np.testing.assert_allclose(sim.state.q[:3] - q[:3], [0, 0, -0.5 * GRAVITY * sim.state.t**2], atol=1e-12)


def test_who_cannot_do_dry_friction_says_so():
    """Gauss' program has no box rows, smooth motion no set-valued force."""
    sim = simulator(slider(), [0.0])
    with pytest.raises(NotSupported, match="dry joint friction"):
        sim.set_solver("gauss")
    with pytest.raises(NotSupported, match="dry joint friction"):
        sim.set_stepper("smooth")
    assert (sim.solver.name, sim.stepper_name) == ("range_space", "time_stepping")


# -- joint limits


def test_inelastic_stop():
    """The rod stops at its limit, never beyond, and the stop carries gravity's moment: 0.5 m g l sin q."""
    sim = pendulum_at_a_stop()
    impacts = []
    for _ in range(600):
        result = sim.step([3.0])
        impacts += result.impacts
        assert sim.state.q[0] <= 0.3 + 1e-8
    assert len(impacts) == 1
    inertia = inertia_of(sim.robot, np.array([0.3]))[0, 0]
    moment = 0.5 * MASS * GRAVITY * 0.5 * np.sin(0.3)
    assert result.multipliers("stop") == pytest.approx([0.0, 3.0 - moment], abs=1e-8)
    assert sim.state.v[0] == pytest.approx(0.0, abs=1e-12)
    assert impacts[0].energy_lost == pytest.approx(0.5 * inertia * impacts[0].v_minus[0] ** 2)
    assert impacts[0].multipliers("stop")[0] == 0.0


@pytest.mark.parametrize("restitution", [0.5, 1.0])
def test_elastic_stop(restitution):
    """The velocity turns round by Newton's law at the instant of closing, and the impulse is that of the jump."""
    sim = pendulum_at_a_stop(restitution)
    impacts = [impact for _ in range(300) for impact in sim.step().impacts]
    first = impacts[0]
    assert first.v_plus[0] == pytest.approx(-restitution * first.v_minus[0], rel=1e-12)
    assert first.q[0] == pytest.approx(0.3, abs=1e-8)
    jump = inertia_of(sim.robot, first.q)[0, 0] * (first.v_minus[0] - first.v_plus[0])
    assert first.multipliers("stop") == pytest.approx([0.0, jump], rel=1e-12)
    assert first.energy_lost >= -1e-15


def test_time_of_the_stop():
    """A sliding mass reaches its limit when it must, to rounding, whatever the step."""
    robot = slider(0.0)
    for dt in (1e-3, 7e-3):
        sim = simulator(robot, [0.0], [0.7], [JointLimit("stop", "slide", -1.0, 0.05, 1.0)], dt=dt)
        impacts = [impact for _ in range(round(0.2 / dt)) for impact in sim.step().impacts]
        assert impacts[0].t == pytest.approx(0.05 / 0.7, abs=1e-13)


def test_limit_contact_and_anchor_together():
    """The leg on the ground, one joint at its limit: forces of both, equal for every solver."""
    robot = leg()
    q = robot.configuration({"hip": 0.4, "knee": -0.8})
    q[0] -= point_of(robot, q, "foot")[2]
    limit = JointLimit("bend", "knee", -0.8, 2.0)
    contact = PointContact("ground", "foot", (0, 0, 0), friction=0.9)
    expected = None
    for solver in every_solver([limit, contact]):
        sim = simulator(robot, q, None, [contact, limit], solver=solver)
        for _ in range(100):
            result = sim.step()
        assert result.multipliers("bend")[0] > 0.1
        assert result.multipliers("ground")[2] > 0.1
        assert sim.state.q[2] >= -0.8 - 1e-8
        expected = result.lam if expected is None else expected
        np.testing.assert_allclose(result.lam, expected, atol=1e-10)


def test_stateless_calls_count_what_is_reached():
    """At its bound a limit holds as an anchor of the joint would; away from it, it does nothing."""
    robot, stop = chain((0.5, 0.3)), JointLimit("stop", "joint0", -1.0, 0.4)
    v, tau = np.zeros(2), np.array([5.0, 0.0])
    held = constrained_acceleration(robot, [0.4, 0.2], v, tau, [stop])
    locked = PointAnchor("lock", "rod1", (0, 0, 0), normals=[(np.cos(0.4), 0, np.sin(0.4))])
    expected = constrained_acceleration(robot, [0.4, 0.2], v, tau, [locked])
    assert relative(held.a, expected.a) < 1e-11
    assert held.lam[0] == 0.0
    assert held.lam[1] > 0.0
    free = constrained_acceleration(robot, [0.4, 0.2], v, -tau, [stop])
    assert not free.lam.any()
    away = constrained_acceleration(robot, [0.3, 0.2], v, tau, [stop])
    assert relative(away.a, constrained_acceleration(robot, [0.3, 0.2], v, tau, []).a) < 1e-14
    impact = resolve_impact(robot, [0.4, 0.2], [2.0, 1.0], [stop], restitution=0.5)
    assert impact.v_plus[0] == pytest.approx(-1.0, rel=1e-13)
    assert impact.energy_lost == pytest.approx(
        -0.5 * (impact.row_velocity_minus + impact.row_velocity_plus) @ impact.impulse, rel=1e-12
    )
    with pytest.raises(InvalidValue, match="bilateral"):
        inverse_dynamics(robot, [0.4, 0.2], v, v, [stop])


def test_limits_that_cannot_be():
    """Bounds in the wrong order, none at all, a joint that does not exist, a robot beyond its limit."""
    for lower, upper in ((1.0, 0.0), (-np.inf, np.inf), (np.nan, 1.0), ("a", 1.0)):
        with pytest.raises(InvalidValue, match="bounds"):
            JointLimit("stop", "slide", lower, upper)
    sim = simulator(slider(), [0.5])
    with pytest.raises(UnknownName, match="slide"):
        sim.add(JointLimit("stop", "hip", 0.0, 1.0))
    with pytest.raises(ViolatedConstraint, match="stop"):
        sim.add(JointLimit("stop", "slide", 0.0, 0.4))
    sim.add(JointLimit("stop", "slide", -np.inf, 0.6))
    assert sim.step().multipliers("stop").shape == (1,)
    with pytest.raises(ViolatedConstraint, match=r"'stop' is violated by 0\.4 .* too: 'fence'"):
        Simulator(slider(), [JointLimit("stop", "slide", 1, 2), JointLimit("fence", "slide", 3, 4)], q=[0.6])


# -- one-sided constraints of the user's own


def rope(robot, length):
    """Return the constraint that the foot stays within `length` of the origin: phi = (length^2 - |p|^2) / 2."""

    def position(q):
        return point_of(robot, q, "mass")

    return CustomConstraint(
        "rope",
        1,
        phi=lambda q, v, t: [0.5 * (length**2 - position(q) @ position(q))],
        jacobian=lambda q, v, t: [-position(q)],
        gamma=lambda q, v, t: [-v @ v],
        unilateral=True,
        restitution=0.0,
    )


def test_rope():
    """A thrown mass flies free until the rope is taut; then it swings on it, with the tension of a pendulum."""
    axes = np.eye(3)
    parts = ['<link name="base"/>', '<link name="a"/>', '<link name="b"/>', link("mass", MASS)]
    parts += [
        joint(f"slide{i}", "prismatic", parent, child, axes[i], more=LIMIT)
        for i, (parent, child) in enumerate((("base", "a"), ("a", "b"), ("b", "mass")))
    ]
    robot = Robot.from_urdf(urdf(*parts))

    def tension(state):
        return MASS * (state.v @ state.v - GRAVITY * state.q[2]) / 0.5

    sim = simulator(robot, [0.3, 0.0, 0.0], None, [rope(robot, 0.5)])
    taut, before = None, 0.0
    for _ in range(1500):
        before = tension(sim.state)
        result = sim.step()
        if result.impacts:
            taut = result.impacts[0]
        assert np.linalg.norm(sim.state.q) <= 0.5 + 1e-7
    fall = np.sqrt(0.5**2 - 0.3**2)
    assert taut.t == pytest.approx(np.sqrt(2 * fall / GRAVITY), abs=1e-9)
    mean = 0.5 * (before + tension(sim.state))
    assert 0.5 * result.multipliers("rope")[0] == pytest.approx(mean, rel=1e-5)
    with pytest.raises(InvalidValue, match="unilateral"):
        CustomConstraint("rope", 1, jacobian=lambda *_: 0, gamma=lambda *_: 0, velocity=lambda *_: 0, unilateral=True)


def test_gauss_does_limits():
    """The stop of a joint is an inequality of the program; the motion is that of the other solvers."""
    robot, q = solo12(), standing_solo()
    limits = [JointLimit(f"{leg}", f"{leg}_KFE", -1.6, 3.0) for leg in ("FL", "FR", "HL", "HR")]
    feet = [PointContact(f"{leg} foot", f"{leg}_FOOT", (0, 0, 0)) for leg in ("FL", "FR", "HL", "HR")]
    tau = np.random.default_rng(0).normal(size=12)
    state, constraints = (robot, q, np.zeros(18), tau), [*limits, *feet]
    motions = [constrained_acceleration(*state, constraints, solver) for solver in ("direct", "gauss")]
    assert relative(motions[1].a, motions[0].a) < 1e-10
    assert relative(motions[1].lam, motions[0].lam) < 1e-10
    assert min(motions[0].multipliers(name).min() for name in ("FL", "FR", "HL", "HR")) >= 0.0
    assert max(motions[0].multipliers(name).max() for name in ("FL", "FR", "HL", "HR")) > 0.1


# -- what a joint carries: mimics, armature, limits of efforts and velocities, delays


def gripper(multiplier=-0.5, offset=0.1, kind="revolute"):
    """Return two fingers, the second of which mimics the first."""
    mimic = LIMIT + f'<mimic joint="first" multiplier="{multiplier}" offset="{offset}"/>'
    return Robot.from_urdf(
        urdf(
            '<link name="palm"/>',
            link("finger1", 0.3, (0, 0, 0.1)),
            joint("first", kind, "palm", "finger1", more=LIMIT),
            link("finger2", 0.3, (0, 0, 0.1)),
            joint("second", "revolute", "palm", "finger2", origin=(0.1, 0, 0), more=mimic),
        )
    )


def test_mimicking_joint():
    """It is no actuator, follows in every function, and its constraint is there by name."""
    robot = gripper()
    assert robot.actuated_joints == ("first",)
    assert [constraint.name for constraint in robot.constraints] == ["second mimic"]
    q = robot.configuration({"first": 0.6})
    assert q == pytest.approx([0.6, -0.2])
    motion = constrained_acceleration(robot, q, np.array([1.0, -0.5]), [0.2], [])
    assert motion.a[1] == pytest.approx(-0.5 * motion.a[0], rel=1e-13)
    assert motion.multipliers("second mimic").shape == (1,)
    result = inverse_dynamics(robot, q, np.array([1.0, -0.5]), [2.0], [], independent=["first"])
    assert constrained_acceleration(robot, q, np.array([1.0, -0.5]), result.tau, []).a[0] == pytest.approx(2.0)
    assert resolve_impact(robot, q, np.array([1.0, 1.0]), []).v_plus @ [0.5, 1.0] == pytest.approx(0.0, abs=1e-14)
    sim = simulator(robot, q)
    for _ in range(200):
        sim.step([0.3])
    assert sim.state.q[1] == pytest.approx(0.1 - 0.5 * sim.state.q[0], abs=1e-8)
    assert abs(sim.state.q[0] - 0.6) > 0.05


def test_mimics_that_cannot_be():
    """A joint that does not exist, and turns that cannot be told from each other."""
    with pytest.raises(ModelError, match="mimics 'third'"):
        Robot.from_urdf(
            urdf(
                '<link name="a"/>',
                link("b", 1.0),
                joint("first", "revolute", "a", "b", more=LIMIT + '<mimic joint="third"/>'),
            )
        )
    with pytest.raises(InvalidValue, match="whole number"):
        simulator(gripper(kind="continuous"), None)


def test_armature_and_other_properties():
    """Armature is inertia of the joint alone; all properties are where Pinocchio has them, and the original is kept."""
    robot = chain((0.5, 0.3))
    q, v = np.array([0.3, -0.4]), np.array([1.0, 2.0])
    geared = robot.with_joints(
        {"joint1": {"armature": 0.7, "damping": 0.2, "friction": 0.1, "effort": 3, "upper": 1.5}}
    )
    np.testing.assert_allclose(inertia_of(geared, q) - inertia_of(robot, q), np.diag([0.0, 0.7]), atol=1e-15)
    expected = np.linalg.solve(inertia_of(geared, q), -bias_of(robot, q, v))
    np.testing.assert_allclose(constrained_acceleration(geared, q, v, [0, 0], []).a, expected, rtol=1e-12)
    assert (geared.damping[1], geared.dry_friction[1], geared.effort_limits[1]) == (0.2, 0.1, 3.0)
    assert geared.position_limits[1][1] == 1.5
    for limits in ({"lower": 15.0, "upper": 16.0}, {"upper": np.float32(16.0), "lower": np.int64(15)}):
        assert [limit[1] for limit in robot.with_joints({"joint1": limits}).position_limits] == [15.0, 16.0]
    assert not robot.damping.any()
    assert not robot.friction_dofs.size
    assert geared.clamp([9.0, -9.0]) == pytest.approx([9.0, -3.0])
    for name, values, refusal in (
        ("elbow", {}, UnknownName),
        ("joint0", {"elasticity": 1.0}, UnknownName),
        ("joint0", {"stiffness": -1.0}, InvalidValue),
        ("joint0", {"stiffness": np.inf}, InvalidValue),
        ("joint0", {"spring_reference": True}, InvalidValue),
        ("joint0", {"armature": -1.0}, InvalidValue),
        ("joint0", {"lower": 9.5}, InvalidValue),
        ("joint0", {"lower": 1.0, "upper": 0.9}, InvalidValue),
        ("joint0", {"effort": 0.0}, InvalidValue),
        ("joint0", {"velocity": 0}, InvalidValue),
        ("joint0", {"damping": np.nan}, InvalidValue),
        ("joint0", 3.0, InvalidValue),
    ):
        with pytest.raises(refusal):
            robot.with_joints({name: values})


def test_spring_in_any_joint():
    """A mass on a spring: ``x = r + (x0 - r) cos(sqrt(k / m) t)``; set again it goes; none in a continuous joint."""
    robot = slider(0.0).with_joints({"slide": {"stiffness": 50.0, "spring_reference": 0.2}})
    mass = inertia_of(robot, robot.neutral())[0, 0]
    sim = simulator(robot, robot.neutral(), dt=1e-4)
    sim.run(0.3)
    assert sim.state.q == pytest.approx([0.2 - 0.2 * np.cos(np.sqrt(50.0 / mass) * 0.3)], abs=1e-6)
    assert sim.integration_energy() == pytest.approx(0.0, abs=1e-9)
    assert robot.with_joints({"slide": {"stiffness": 80.0}}).springs == {"slide": (80.0, 0.2)}
    assert not robot.with_joints({"slide": {"stiffness": 0.0}}).springs
    with pytest.raises(InvalidValue, match="no single position"):
        gripper(kind="continuous").with_joints({"first": {"stiffness": 1.0}})


def test_limits_of_the_description_on_request():
    """Every limited joint gets its stops; the leg's knee stops where the URDF says."""
    robot = leg()
    limits = robot.joint_limits(restitution=0.2)
    assert [(limit.joint, limit.lower, limit.upper) for limit in limits] == [
        ("slider", 0.0, 1.0),
        ("hip", -2.0, 2.0),
        ("knee", -2.7, 2.7),
    ]
    sim = simulator(robot, robot.configuration({"slider": 0.9, "hip": 1.0, "knee": 2.5}), [0, 0, 3.0], limits)
    assert any(sim.step().impacts for _ in range(200))
    assert sim.state.q[2] <= 2.7 + 1e-8


def test_command_delay():
    """An effort acts so much later; before the first one there is none, and a reset forgets those under way."""
    sim = simulator(slider(0.0), [0.0], command_delay=3e-3)
    applied = [sim.step([float(k)]).tau_applied[0] for k in range(1, 7)]
    assert applied == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]
    sim.reset([0.0])
    assert sim.step([5.0]).tau_applied[0] == 0.0
    assert sim.state.v[0] == 0.0
    with pytest.raises(InvalidValue, match="command_delay"):
        simulator(slider(), [0.0], command_delay=2.5e-3)


def test_velocity_limits():
    """At its velocity limit a joint gets no effort that speeds it up, and every one that slows it down."""
    robot = slider(0.0).with_joints({"slide": {"velocity": 0.5}})
    sim = simulator(robot, [0.0], velocity_limits=True)
    for _ in range(500):
        result = sim.step([4.0])
    assert 0.5 <= sim.state.v[0] <= 0.5 + 4.0 / MASS * 1e-3
    assert result.tau_applied[0] == 0.0
    assert sim.step([-4.0]).tau_applied[0] == -4.0
    free = simulator(robot, [0.0])
    for _ in range(500):
        free.step([4.0])
    assert free.state.v[0] == pytest.approx(1.0)
