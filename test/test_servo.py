"""Joint feedback within the simulation: exact at rest, stable at any gain, within the limits, on the books."""

import numpy as np
import pytest
from mechanisms import LIMIT, double_pendulum, joint, link, urdf
from scipy.integrate import solve_ivp

from constrained_sim import PointContact, Robot, Servo, Simulator, Trajectory, Wrench, load_config
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.servo import JointTargets

WHEEL = """<robot name="wheel"><link name="base"/><link name="disc"><inertial><mass value="2"/>
  <inertia ixx="{I}" iyy="{I}" izz="{I}" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="axle" type="{kind}"><parent link="base"/><child link="disc"/><axis xyz="0 0 1"/>
  <limit lower="-9" upper="9" effort="{effort}" velocity="{velocity}"/></joint></robot>"""

INERTIA = 0.5


def wheel(kind="revolute", effort=1e9, velocity=1e9):
    """A disc on an axle: one degree of freedom of inertia 0.5 kg m^2."""
    return Robot.from_urdf(WHEEL.format(I=INERTIA, kind=kind, effort=effort, velocity=velocity))


def unlimited():
    """A double pendulum whose motors have no limits."""
    robot = double_pendulum()
    return robot.with_joints({name: {"effort": np.inf} for name in robot.actuated_joints})


@pytest.mark.parametrize("integrator", ["midpoint", "semi_implicit_euler"])
@pytest.mark.parametrize(("stiffness", "damping"), [(3.0, 0.0), (40.0, 2.0), (1e7, 1e2)])
def test_a_step_is_the_one_that_was_derived(integrator, stiffness, damping):
    """``m (v' - v) = h (K (r - q - h v') + D (w - v') + f)``; positions move by the mean velocity, or the new one."""
    robot, h = wheel(), 1e-3
    servo, q, v = Servo(robot, stiffness, damping), 0.3, -0.2
    sim = Simulator(robot, q=[q], v=[v], dt=h, integrator=integrator)
    for _ in range(5):
        result = sim.step(servo.targets([1.1], [0.4] if damping else None, [0.7]))
        given = stiffness * (1.1 - q) + damping * 0.4 + 0.7
        new = (INERTIA * v + h * given) / (INERTIA + h * (damping + h * stiffness))
        q += h * (0.5 * (v + new) if integrator == "midpoint" else new)
        assert result.tau_applied[0] == pytest.approx(INERTIA * (new - v) / h, rel=1e-9)
        v = new
        assert sim.state.v[0] == pytest.approx(v, rel=1e-11)
        assert sim.state.q[0] == pytest.approx(q, rel=1e-11)


@pytest.mark.parametrize(
    ("stepper", "stiffness", "damping"),
    [(name, 10.0**k, d) for name in ("smooth", "time_stepping") for k in (2, 6, 10) for d in (0.0, 1.0, 1e5)],
)
def test_stable_at_any_gain_and_exact_at_rest(stepper, stiffness, damping):
    """Gravity bends the joints by effort / stiffness, which is that of a statics problem."""
    robot = unlimited()
    servo, goal = Servo(robot, stiffness, damping), np.array([0.5, -0.2])
    sim = Simulator(robot, q=goal + np.array([1e-3, 2e-3]), stepper=stepper)
    begin = 0.5 * stiffness * 5e-6 + abs(sim.mechanical_energy())
    for _ in range(3000):
        result = sim.step(servo.targets(goal))
        assert np.abs(sim.state.q - goal).max() < 0.2
    assert 0.5 * sim.state.v @ sim.state.v < begin
    if stiffness > 1e2:
        assert np.abs(sim.state.v).max() < 1e-9
        assert result.tau_applied == pytest.approx(stiffness * (goal - sim.state.q), rel=1e-4)
        assert result.tau_applied == pytest.approx(robot_gravity(robot, sim.state.q), rel=1e-8)


def robot_gravity(robot, q):
    """Return the efforts that hold a robot at rest, from its potential energy by differences."""
    from constrained_sim.dynamics.dynamics import potential_energy

    shifts = 1e-6 * np.eye(robot.nv)
    return np.array([(potential_energy(robot, q + d) - potential_energy(robot, q - d)) / 2e-6 for d in shifts])


@pytest.mark.parametrize("gain", [1e2, 1e5, 1e9])
def test_a_leg_on_the_ground_stays_at_any_gain(gain):
    """The foot is held by contact while the joints are held by feedback; the weight is carried."""
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf", actuated_joints=["hip", "knee"])
    leg = leg.with_joints({name: {"effort": np.inf} for name in leg.actuated_joints})
    q = leg.configuration({"slider": 0.26411, "hip": 0.6, "knee": -1.2})
    sim = Simulator(leg, [PointContact("foot", "foot", (0, 0, 0), friction=0.8)])
    sim.reset(q)
    servo = Servo(leg, gain, 0.01 * gain)
    for _ in range(1000):
        result = sim.step(servo.targets(q[1:]))
    weight = 9.81 * sum(inertia.mass for inertia in leg.model.inertias)
    assert result.contact_forces["foot"].normal_force == pytest.approx(weight, rel=1e-6)
    assert np.abs(sim.state.v).max() < 1e-7
    assert result.tau_applied == pytest.approx(gain * (q[1:] - sim.state.q[1:]), rel=1e-4)


def test_it_comes_to_the_motion_of_the_equations_as_steps_get_short():
    """With first order, to what an integrator of ordinary differential equations finds."""
    robot, stiffness, damping, goal = unlimited(), 30.0, 1.5, np.array([1.0, -0.5])
    servo, q, v = Servo(robot, stiffness, damping), np.array([0.3, -0.4]), np.array([0.5, 0.2])
    reference = solve_ivp(slopes(robot, goal, stiffness, damping), (0.0, 0.1), np.r_[q, v], rtol=1e-10, atol=1e-12).y[
        :2, -1
    ]
    errors = []
    for dt in (1e-3, 5e-4, 2.5e-4):
        sim = Simulator(robot, q=q, v=v, dt=dt)
        for _ in range(round(0.1 / dt)):
            sim.step(servo.targets(goal))
        errors.append(np.abs(sim.state.q - reference).max())
    assert 1e-6 < errors[0] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)
    assert errors[1] / errors[2] == pytest.approx(2.0, rel=0.1)


def slopes(robot, goal, stiffness, damping):
    """Return the derivative of (q, v) under the feedback, by Pinocchio alone."""
    import pinocchio as pin

    data = robot.model.createData()

    def derivative(t, y):
        q, v = y[:2], y[2:]
        tau = stiffness * (goal - q) - damping * v - robot.damping * v
        return np.r_[v, pin.aba(robot.model, data, q, v, tau)]

    return derivative


def test_efforts_stay_within_the_limits_and_reach_them():
    """A wheel is driven by its limit, constantly, until the feedback asks for less; it comes to rest at the goal."""
    limit, goal = 2.0, 1.5
    robot = wheel(effort=limit)
    sim, servo = Simulator(robot, q=[0.0]), Servo(robot, 50.0, 12.0)
    given = [sim.step(servo.targets([goal])).tau_applied[0] for _ in range(4000)]
    assert max(map(abs, given)) == limit
    begin = given.index(next(tau for tau in given if tau != limit))
    assert begin > 300 and sim.state.q[0] == pytest.approx(goal, abs=1e-4)
    again = Simulator(robot, q=[0.0])
    for _ in range(begin):
        again.step([limit])
    assert again.state.q[0] == pytest.approx(0.5 * limit / INERTIA * (begin * 1e-3) ** 2, rel=1e-9)


@pytest.mark.parametrize("goal", [{"position": 1e6}, {"position": -1e12}, {"velocity": 1e6}])
def test_a_target_far_away_takes_the_largest_effort_only(goal):
    """Both joints of a leg are told what they cannot reach: they get their limits, as efforts at the limits give."""
    config = load_config("package://constrained_sim/config/leg.yaml")
    servo, pushed = config.simulator(), config.simulator()
    targets = Servo(config.robot, 60.0, 1.5).targets(**{what: [value] * 2 for what, value in goal.items()})
    limits = config.robot.effort_limits * np.sign(next(iter(goal.values())))
    for _ in range(200):
        assert servo.step(targets).tau_applied == pytest.approx(limits)
        pushed.step(limits)
    assert np.array_equal(servo.state.q, pushed.state.q)
    assert np.array_equal(servo.state.v, pushed.state.v)


def test_velocities_are_followed_and_limits_of_velocity_hold():
    """Without a target of position; where the joint is at its velocity limit nothing drives it on."""
    robot = wheel(velocity=1.0)
    for limited in (False, True):
        sim, servo = Simulator(robot, q=[0.0], velocity_limits=limited), Servo(robot, 0.0, 40.0)
        for _ in range(1000):
            sim.step(servo.targets(velocity=[3.0]))
        if limited:  # but for what a step adds that begins below the limit
            assert 1.0 <= sim.state.v[0] < 1.0 + 1e-3 * 40.0 * (3.0 - 1.0) / INERTIA
        else:
            assert sim.state.v[0] == pytest.approx(3.0, rel=1e-9)


def test_a_continuous_joint_goes_the_shorter_way():
    """From 3 rad to -3 rad through the half turn."""
    robot = wheel(kind="continuous")
    sim, servo = Simulator(robot, q=[np.cos(3.0), np.sin(3.0)]), Servo(robot, 20.0, 6.0)
    cosines = []
    for _ in range(4000):
        sim.step(servo.targets([-3.0]))
        cosines.append(sim.state.q[0])
    assert max(cosines) < -0.9
    assert np.arctan2(sim.state.q[1], sim.state.q[0]) == pytest.approx(-3.0, abs=1e-4)


@pytest.mark.parametrize("options", [{}, {"integrator": "semi_implicit_euler"}], ids=str)
def test_energy_of_the_feedback_is_work_of_the_actuators(options):
    """And the equation of motion holds with the efforts that are reported: compiled, and in Python beside a wrench."""
    robot = unlimited()
    servo = Servo(robot, 80.0, 3.0)
    runs = []
    for wrenches in ((), (Wrench("tip", force=(0.0, 0.0, 0.0)),)):
        sim, work = Simulator(robot, q=[0.4, -0.9], **options), 0.0
        for _ in range(200):
            before = sim.state.v.copy()
            result = sim.step(servo.targets([0.0, 0.3], effort=[0.2, -0.1]), wrenches)
            assert result.dynamics_residual < 1e-13
            work += sim.dt * float(result.tau_applied @ (0.5 * (before + result.outcome.damped_velocity)))
        assert sim.energy.actuators == pytest.approx(work, rel=1e-11)
        runs.append(np.r_[sim.state.q, sim.state.v, result.tau_applied])
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-12)


def test_joints_have_modes_of_their_own_and_delayed_commands_act_later():
    """One follows a position, the other gets an effort, which is limited."""
    robot = double_pendulum()
    servo = Servo(robot, {robot.actuated_joints[0]: 60.0}, {robot.actuated_joints[0]: 2.0})
    targets = servo.targets([0.2, np.nan], effort=[0.0, 1e6])
    sim = Simulator(robot, q=[0.4, -0.9])
    assert sim.step(targets).tau_applied[1] == robot.effort_limits[1]
    late = Simulator(robot, q=[0.4, -0.9], command_delay=0.003)
    given = [late.step(targets).tau_applied for _ in range(4)]
    assert not np.any(given[:3]) and given[3][1] == robot.effort_limits[1] and given[3][0]


def test_what_it_cannot_follow_is_refused():
    """With the name of the joint, and before anything has changed."""
    robot = double_pendulum()
    first, second = robot.actuated_joints
    servo = Servo(robot, {first: 60.0}, 1.0)
    with pytest.raises(InvalidValue, match=f"position of joint '{second}'.*stiffness"):
        servo.targets([0.1, 0.2])
    with pytest.raises(InvalidValue, match="velocity of joint"):
        Servo(robot, 1.0, 0.0).targets(velocity=[1.0, np.nan])
    with pytest.raises(InvalidValue, match="position"):
        servo.targets([0.1])
    with pytest.raises(InvalidValue, match="position"):
        servo.targets([np.inf, np.nan])
    for targets in ({"position": [1e308, np.nan]}, {"velocity": [1.7e308, np.nan], "effort": 1.7e308}):
        with pytest.raises(InvalidValue, match=f"velocity and effort for joint '{first}'.*finite effort"):
            servo.targets(**targets)
    with pytest.raises(InvalidValue, match="stiffness of joint"):
        Servo(robot, {first: -1.0}, 0.0)
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf", actuated_joints=["hip", "knee"])
    for name in ("no_such", "slider"):
        with pytest.raises(UnknownName, match=f"actuated joint.*{name}.*hip, knee"):
            Servo(leg, {name: 1.0}, 0.0)
    sim = Simulator(wheel(), q=[0.4])
    with pytest.raises(InvalidValue, match="another robot"):
        sim.step(servo.targets())
    assert sim.steps == 0


def test_trajectories_hold_what_was_given():
    """A result of a step goes into a trajectory as ever."""
    robot = unlimited()
    servo, sim = Servo(robot, 80.0, 3.0), Simulator(robot, q=[0.4, -0.9])
    results = [sim.step(servo.targets([0.0, 0.0])) for _ in range(3)]
    assert np.array_equal(Trajectory.from_results(results, 2, 2, 2).tau, [result.tau_applied for result in results])


def limited(first: float, second: float) -> Robot:
    """Return an arm of two joints without gravity whose links push each other; with effort limits."""
    links = [link(name, 1.0, (0.3, 0, 0), (0.01, 0.02, 0.02)) for name in ("upper", "lower")]
    limits = [LIMIT.replace('effort="100"', f'effort="{effort}"') for effort in (first, second)]
    joints = (
        joint("shoulder", "revolute", "base", "upper", more=limits[0]),
        joint("elbow", "revolute", "upper", "lower", origin=(0.6, 0, 0), more=limits[1]),
    )
    return Robot.from_urdf(urdf('<link name="base"/>', *links, *joints), gravity=(0, 0, 0))


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven", "smooth"])
@pytest.mark.parametrize(("stiffness", "damping"), [(1e4, 300.0), (1e3, 60.0), (100.0, 5.0)])
def test_limits_of_coupled_joints(stepper: str, stiffness: float, damping: float) -> None:
    """Each effort is what the law asks for at the end of the step, cut off at the limit: not what others made it ask.

    Of event_driven, within the step at its mean velocity; of smooth, at the velocity to first order.
    In a first try without limits the strong joint throws the weak one far ahead, so that its law asks to pull back.
    """
    limits, goal, h = np.array([80.0, 20.0]), np.array([1.0, -1.0]), 1e-3
    robot = limited(*limits)
    servo, sim, at_limit = Servo(robot, stiffness, damping), Simulator(robot, dt=h, stepper=stepper), 0
    for step in range(60 if stepper == "event_driven" else 300):
        q = sim.state.q
        tau = sim.step(servo.targets(goal)).tau_applied
        assert step or tau == pytest.approx([80.0, -20.0])
        v = (sim.state.q - q) / h if stepper == "event_driven" else sim.state.v
        expected = np.clip(stiffness * (goal - q - h * v) - damping * v, -limits, limits)
        accuracy = {"time_stepping": 0.01, "event_driven": 0.01, "smooth": 0.2}[stepper]  # of the velocity [rad/s]
        assert np.abs(tau - expected).max() < accuracy * (damping + h * stiffness)
        at_limit += np.abs(tau).max() == limits.max()
    assert stiffness < 1e3 or at_limit > 20


@pytest.mark.parametrize(("stiffness", "damping"), [(200.0, 5.0), (1e3, 10.0), (50.0, 1.0)])
def test_many_joints_at_their_limits(stiffness: float, damping: float) -> None:
    """Each effort is the law's at the end of the step, cut off: which are at a limit, and at which, is always found."""
    count, most, h = 6, 5.0, 1e-3
    links = [link(f"l{i}", 1.0, (0.15, 0, 0), (0.01, 0.01, 0.01)) for i in range(count)]
    limit = LIMIT.replace('effort="100"', f'effort="{most}"')
    joints = [
        joint(f"j{i}", "revolute", f"l{i - 1}" if i else "base", f"l{i}", origin=(0.3 if i else 0.0, 0, 0), more=limit)
        for i in range(count)
    ]
    robot = Robot.from_urdf(urdf('<link name="base"/>', *links, *joints))
    servo, sim, rng = Servo(robot, stiffness, damping), Simulator(robot, dt=h), np.random.default_rng(3)
    goal, free, limited = rng.uniform(-1.0, 1.0, count), 0, 0
    for _ in range(400):
        q = sim.state.q
        result = sim.step(servo.targets(goal))
        v = result.outcome.damped_velocity
        expected = np.clip(stiffness * (goal - q - h * v) - damping * v, -most, most)
        assert result.tau_applied == pytest.approx(expected, abs=1e-9 * most)
        free, limited = free + np.sum(np.abs(expected) < most), limited + np.sum(np.abs(expected) == most)
    assert min(free, limited) > 100


def test_a_limited_servo_of_the_smooth_stepper() -> None:
    """Far from its goal a joint gives its limit all the time: q = tau t^2 / 2 I."""
    robot, t = wheel(effort=2.0), 0.5
    servo = Servo(robot, 3000.0, 500.0)
    for integrator in ("rk4", "midpoint"):
        sim = Simulator(robot, stepper="smooth", integrator=integrator, dt=0.01)
        for _ in range(50):
            assert sim.step(servo.targets([9.0])).tau_applied == pytest.approx([2.0])
        assert sim.state.q[0] == pytest.approx(2.0 * t**2 / (2.0 * INERTIA), rel=1e-12)


def test_a_controller_may_return_targets() -> None:
    """In `run` as in a loop of `step`, bit by bit, also where it is asked seldom."""
    robot, goal = unlimited(), np.array([0.4, -0.3])
    servo = Servo(robot, 300.0, 20.0)

    def follow(t: float, q: np.ndarray, v: np.ndarray) -> JointTargets:
        return servo.targets(goal * np.cos(t))

    run = Simulator(robot).run(0.2, follow, sample_period=0.004)
    sim = Simulator(robot)
    for k, q in enumerate(run.q):
        if k % 4 == 0:
            targets = follow(sim.state.t, sim.state.q, sim.state.v)
        result = sim.step(targets)
        assert np.array_equal(result.state.q, q)
        assert np.array_equal(result.tau_applied, run.tau[k])


def test_what_a_controller_returns_is_refused_with_its_time() -> None:
    """NaN, after some steps that are right."""
    with pytest.raises(InvalidValue, match=r"tau of axle.* at t = 0\.003 s.*nan"):
        Simulator(wheel(), dt=1e-3).run(0.01, lambda t, q, v: [np.nan if t > 0.0025 else 1.0])
