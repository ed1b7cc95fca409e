"""The stepper ``smooth``: order of every integrator, drift, projection, and closed loops over many seconds."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    block,
    chain,
    double_pendulum,
    leg,
    mechanical_energy,
    point_of,
    random_state,
    random_tree,
    simulator,
)
from scipy.integrate import solve_ivp

from constrained_sim import (
    INTEGRATORS,
    Baumgarte,
    JointVelocity,
    PointAnchor,
    PointContact,
    Projection,
    Robot,
    Wrench,
    constrained_acceleration,
)
from constrained_sim.exceptions import InvalidValue, NonFiniteState, NotSupported

FREE = Baumgarte(kp=0.0, kd=0.0)
"""No stabilization at all."""

FIXED_STEP = {name: kind.order for name, kind in INTEGRATORS.items() if name != "adaptive"}


def regressed_order(steps, errors):
    """Return the slope of log(error) over log(step)."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def end_of(robot, q, v, constraints, integrator, dt, duration, **options):
    """Return the simulator after `duration` [s]."""
    sim = simulator(
        robot, q, v, constraints, stepper="smooth", integrator=integrator, dt=dt, stabilization=FREE, **options
    )
    sim.run(duration)
    return sim


@cache
def ball_joint_arm():
    """Return a tree with free-flyer, spherical, continuous and revolute joints."""
    model = pin.Model()
    parent = 0
    rng = np.random.default_rng(4)
    kinds = (pin.JointModelFreeFlyer(), pin.JointModelSpherical(), pin.JointModelRUBY(), pin.JointModelRX())
    for i, kind in enumerate(kinds):
        parent = model.addJoint(parent, kind, pin.SE3(np.eye(3), rng.uniform(-0.3, 0.3, 3)), f"joint{i}")
        at = pin.SE3(pin.exp3(rng.normal(size=3)), rng.uniform(-0.2, 0.2, 3))
        model.appendBodyToJoint(parent, pin.Inertia.FromBox(1.0 + i, 0.3, 0.5, 0.2), at)
    return Robot(model, tuple(model.names)[2:], floating_base=True)


def reference(robot, q, v, constraints, duration):
    """Return (q, v) by SciPy at 1e-13, in coordinates about q, whatever the joints."""
    nv = robot.nv

    def slope(t, y):
        here = pin.integrate(robot.model, q, y[:nv])
        rate = np.linalg.solve(pin.dIntegrate(robot.model, q, y[:nv], pin.ArgumentPosition.ARG1), y[nv:])
        a = constrained_acceleration(robot, here, y[nv:], np.zeros(robot.nu), constraints, t=t).a
        return np.concatenate([rate, a])

    end = solve_ivp(slope, (0, duration), np.concatenate([np.zeros(nv), v]), method="DOP853", rtol=1e-13, atol=1e-13)
    return pin.integrate(robot.model, q, end.y[:nv, -1]), end.y[nv:, -1]


@pytest.mark.parametrize("integrator", FIXED_STEP)
@pytest.mark.parametrize("mechanism", ["pendulum", "floating"])
def test_order_of_motion(integrator, mechanism):
    """The error at the end falls with the power of the step that the integrator states, on manifolds too."""
    if mechanism == "pendulum":
        robot, q, v, duration = double_pendulum(), np.array([1.2, -0.7]), np.array([0.5, 2.0]), 0.4
    else:
        robot, duration = ball_joint_arm(), 0.2
        q, v = random_state(robot, np.random.default_rng(2))
    q_exact, v_exact = reference(robot, q, v, [], duration)
    order = FIXED_STEP[integrator]
    steps = np.array([1e-2, 5e-3, 2.5e-3] if order > 2 else [2e-3, 1e-3, 5e-4])
    errors = []
    for dt in steps:
        state = end_of(robot, q, v, [], integrator, dt, duration).state
        q_error = pin.difference(robot.model, q_exact, state.q)
        errors.append(max(np.abs(q_error).max(), np.abs(state.v - v_exact).max()))
    assert regressed_order(steps, errors) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("mechanism", ["pendulum", "floating"])
def test_adaptive_integrator_is_exact_to_its_tolerance(mechanism):
    """However long the step."""
    robot = double_pendulum() if mechanism == "pendulum" else ball_joint_arm()
    q, v = random_state(robot, np.random.default_rng(2))
    q_exact, v_exact = reference(robot, q, v, [], 0.2)
    for dt in (0.2, 0.02):
        state = end_of(robot, q, v, [], "adaptive", dt, 0.2).state
        assert np.abs(pin.difference(robot.model, q_exact, state.q)).max() < 1e-10
        assert np.abs(state.v - v_exact).max() < 1e-9


@pytest.mark.parametrize("integrator", FIXED_STEP)
def test_drift_falls_as_the_integrator_says(integrator):
    """Without stabilization a closed loop drifts apart; half the step halves that, or leaves a sixteenth of it."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    tip, order = point_of(robot, q, "tip"), FIXED_STEP[integrator]
    pinned = PointAnchor("pin", "tip", (0, 0, 0), normals=[(1, 0, 0), (0, 0, 1)])
    steps = {1: [1e-3, 5e-4], 2: [5e-4, 2.5e-4], 4: [1e-2, 5e-3]}[order]
    drifts = [
        np.linalg.norm(point_of(robot, end_of(robot, q, None, [pinned], integrator, dt, 0.6).state.q, "tip") - tip)
        for dt in steps
    ]
    assert drifts[0] / drifts[1] == pytest.approx(2.0**order, rel=0.1)


@pytest.mark.parametrize("metric", ["mass", "euclidean"])
def test_projection_holds_position_and_velocity(metric):
    """With projection, closure stays within its tolerance however coarse the integrator."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    pinned = PointAnchor("pin", "tip", (0, 0, 0), normals=[(1, 0, 0), (0, 0, 1)])
    sim = simulator(
        robot,
        q,
        None,
        [pinned],
        stepper="smooth",
        integrator="explicit_euler",
        dt=2e-3,
        stabilization=Projection(metric, 1e-11, 1e-12),
    )
    for _ in range(300):
        result = sim.step()
        position, velocity = sim.largest_violation()
        assert position <= 1e-11
        assert velocity <= 1e-12
        assert abs(result.energy.residual) < 1e-12
    assert np.abs(sim.state.v).max() > 0.3


def test_velocity_projection_in_the_metric_of_the_mass_only_takes_energy():
    """The kinetic energy is never raised by it."""
    robot = random_tree(np.random.default_rng(3), 5)
    q, v = random_state(robot, np.random.default_rng(4))
    sim = simulator(
        robot, q, 0.0 * v, [PointAnchor("hand", "link5", (0.1, 0, 0))], stepper="smooth", integrator="explicit_euler"
    )
    for _ in range(200):
        assert sim.step(np.sin(7.0 * sim.state.t + np.arange(robot.nu))).energy.projection < 1e-4
    assert sim.largest_violation()[0] < 1e-8


def test_baumgarte_time_constant():
    """A violation decays as (1 + t / eps) e^(-t / eps) of its beginning; a velocity-level one as e^(-t / eps)."""
    robot, eps = leg(), 0.05
    q = robot.configuration({"hip": 0.4, "knee": -0.8})
    sim = simulator(robot, q, None, [], stepper="smooth", stabilization=Baumgarte(eps), dt=1e-3, position_tolerance=1.0)
    target = point_of(robot, q, "foot") + np.array([0.0, 0.0, 1e-3])
    sim.add(PointAnchor("hand", "foot", (0, 0, 0), point_b=target, normals=[(0, 0, 1)]))
    sim.run(0.1)
    expected = -1e-3 * (1.0 + 0.1 / eps) * np.exp(-0.1 / eps)
    assert point_of(robot, sim.state.q, "foot")[2] - target[2] == pytest.approx(expected, rel=1e-6)
    sim = simulator(robot, q, None, [], stepper="smooth", stabilization=Baumgarte(eps), dt=1e-3)
    wanted = 0.7
    sim.add(JointVelocity("motor", "hip", lambda t: (wanted, 0.0)))
    wanted = 0.5
    sim.run(0.1)
    assert sim.state.v[1] - 0.5 == pytest.approx(0.2 * np.exp(-0.1 / eps), rel=1e-6)


def test_moving_joint_of_prescribed_velocity():
    """A motor turns as prescribed, with the effort of inverse dynamics."""
    robot, q = double_pendulum(), np.array([0.3, -0.5])
    motor = JointVelocity("motor", "joint0", lambda t: (np.sin(3.0 * t), 3.0 * np.cos(3.0 * t)))
    sim = simulator(robot, q, None, [motor], stepper="smooth", dt=1e-3)
    trajectory = sim.run(1.0)
    assert sim.state.q[0] == pytest.approx(0.3 + (1.0 - np.cos(3.0)) / 3.0, abs=1e-11)
    motion = constrained_acceleration(robot, sim.state.q, sim.state.v, np.zeros(2), [motor], t=1.0)
    assert trajectory.multipliers["motor"][-1, 0] == pytest.approx(motion.lam[0], rel=2e-3)
    assert sim.energy.constraints == pytest.approx(
        sim.mechanical_energy() - mechanical_energy(robot, q, np.zeros(2)), abs=1e-9
    )


def test_energy_of_a_floating_chain_with_forces():
    """Every cause is accounted for; the integrator's own error is that of RK4."""
    robot = random_tree(np.random.default_rng(1), 4, floating_base=True)
    q, v = random_state(robot, np.random.default_rng(5))
    sim = simulator(robot, q, v, [], stepper="smooth", dt=1e-3)
    for step in range(300):
        result = sim.step(
            np.sin(0.05 * step + np.arange(robot.nu)), [Wrench("link3", (1.0, -2.0, 3.0), (0.1, 0.0, 0.2))]
        )
        assert abs(result.energy.residual) < 1e-12
    assert abs(sim.integration_energy()) < 1e-8
    assert abs(sim.energy.external) > 0.1
    assert abs(sim.energy.actuators) > 0.01


# -- refusals


def test_what_smooth_cannot_do_is_refused_by_name():
    """Contacts need another stepper, and time stepping other integrators; a refusal changes nothing."""
    robot, contact = leg(), PointContact("ground", "foot", (0, 0, 0))
    q = robot.configuration({"slider": 1.0})
    sim = simulator(robot, q, None, [contact])
    with pytest.raises(NotSupported, match="ground"):
        sim.set_stepper("smooth")
    assert sim.stepper_name == "time_stepping"
    sim.remove("ground")
    sim.set_stepper("smooth")
    assert sim.integrator_name == "rk4"
    with pytest.raises(NotSupported, match="ground"):
        sim.add(contact)
    with pytest.raises(InvalidValue, match="midpoint"):
        sim.set_stepper("time_stepping", integrator="rk4")
    with pytest.raises(InvalidValue, match="Projection"):
        sim.set_stepper("time_stepping", stabilization=Baumgarte(0.1))
    with pytest.raises(InvalidValue):
        sim.set_stepper("smooth", stabilization=3.0)
    assert sim.stepper_name == "smooth"
    sim.set_stepper("smooth", integrator="taylor")
    assert sim.integrator_name == "taylor"


def test_motion_to_infinity_is_reported():
    """A state that the adaptive integrator cannot follow freezes, with its step; nothing is lost."""
    robot = block(gravity=(0, 0, 0))
    sim = simulator(robot, robot.neutral(), None, [], stepper="smooth", integrator="adaptive", dt=1e-2)
    before = sim.state
    with pytest.raises(NonFiniteState, match="step 0"):
        sim.step(wrenches=[Wrench("block", (1e308, 0, 0), point=(0, 1.0, 0))])
    assert sim.state.q is before.q
