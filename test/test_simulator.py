"""What a user of Simulator may rely on: adding, removing, applying, resetting, refusing, recording, repeating."""

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    BLOCK_HALF,
    GRAVITY,
    ball,
    block,
    corners,
    double_pendulum,
    every_solver,
    kinetic_energy,
    leg,
    leg_config,
    point_of,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
)

from constrained_sim import (
    STEPPERS,
    Baumgarte,
    CustomConstraint,
    JointLimit,
    JointVelocity,
    PointAnchor,
    PointContact,
    Simulator,
    Trajectory,
    Wrench,
    constrained_acceleration,
    resolve_impact,
)
from constrained_sim.exceptions import (
    DuplicateName,
    FastJoints,
    InvalidValue,
    NonFiniteMotion,
    NonFiniteState,
    UnknownName,
    ViolatedConstraint,
)

FREE_HAND = PointAnchor("hand", "tip", (0, 0, 0))
FREE_KNEE = JointVelocity("knee", "knee", 0.0)


def snapshot(sim):
    """Return everything that a failing change must leave alone."""
    here = sim.state
    return (
        here.t,
        here.q.tobytes(),
        here.v.tobytes(),
        sim.steps,
        sim.constraints,
        sim.energy,
        sim.solver,
        sim.contact_method,
    )


def moving_pendulum():
    """Return a double pendulum in motion."""
    sim = simulator(double_pendulum(), [0.4, -0.9], [1.0, 2.0])
    for _ in range(5):
        sim.step([0.1, -0.2])
    return sim


# -- adding and removing


def test_adding_an_anchor_to_a_moving_robot_is_an_impact():
    """The velocity jumps onto the constraint as resolve_impact says, and the loss is booked; the place stays."""
    sim = moving_pendulum()
    before, anchor = sim.state, PointAnchor("hand", "tip", (0, 0, 0), normals=[(1, 0, 0)])
    impact = sim.add(anchor)
    expected = resolve_impact(double_pendulum(), before.q, before.v, [anchor])
    assert np.abs(impact.v_plus - expected.v_plus).max() < 1e-14
    assert np.array_equal(sim.state.v, impact.v_plus)
    assert np.array_equal(sim.state.q, before.q)
    assert sim.state.t == before.t
    lost = kinetic_energy(sim.robot, before.q, before.v) - kinetic_energy(sim.robot, before.q, sim.state.v)
    assert impact.energy_lost == pytest.approx(lost, rel=1e-11)
    assert sim.energy.impact_losses == pytest.approx(lost, rel=1e-11)
    assert sim.largest_violation()[1] < 1e-13


@pytest.mark.parametrize("assemble", [False, True])
def test_an_impact_of_a_constraint_leaves_alone_what_does_not_touch(assemble):
    """However large the violation is that is allowed; what touches bounces, as with any impact."""
    foot, still = (
        PointContact("foot", "ball", (0, 0, 0), restitution=0.5),
        PointAnchor("a", "ball", normals=[[1, 0, 0]]),
    )
    for height, after in ((0.04, -1.0), (0.0, 0.5)):
        q, v = [0, 0, height, 0, 0, 0, 1], [2.0, 0, -1.0, 0, 0, 0]
        if assemble:
            sim = Simulator(ball(), [foot, still], position_tolerance=0.05)
            sim.reset(q, v, assemble=True)
        else:
            sim = simulator(ball(), q, v, [foot, still], position_tolerance=0.05)
        np.testing.assert_allclose(sim.state.v, [0, 0, after, 0, 0, 0], atol=1e-15)


def test_a_simulation_that_has_not_begun_has_counted_nothing():
    sim = Simulator(ball())
    assert (sim.steps, sim.early_impacts, sim.state.t) == (0, 0, 0.0)


def test_adding_a_contact_leaves_the_velocity():
    """A contact acts from the next step on: in the air not at all, on approach by an impact then."""
    sim = simulator(ball(), ball().configuration({}, [0, 0, 0.1, 0, 0, 0, 1]), [0, 0, -1.0, 0, 0, 0])
    before = sim.state
    assert sim.add(PointContact("c", "ball", (0, 0, 0), radius=0.1)) is None
    assert np.array_equal(sim.state.v, before.v)
    result = sim.step()
    assert result.impacts[0].t == 0.0
    assert np.abs(sim.state.v).max() < 1e-14


def test_an_anchor_that_is_added_stays_where_it_was_grabbed():
    """point_b None: where the point is when the constraint becomes active, not where reset put it."""
    sim = moving_pendulum()
    tip = point_of(sim.robot, sim.state.q, "tip")
    sim.add(PointAnchor("hand", "tip", (0, 0, 0), normals=[(1, 0, 0)]))
    sim.run(0.05)
    assert point_of(sim.robot, sim.state.q, "tip")[0] == pytest.approx(tip[0], abs=1e-8)


def test_a_violated_constraint_is_refused_with_the_distance():
    """Beyond the tolerance nothing is added, and the refusal says how far it was."""
    sim = moving_pendulum()
    tip, before = point_of(sim.robot, sim.state.q, "tip"), snapshot(sim)
    with pytest.raises(ViolatedConstraint) as refusal:
        sim.add(PointAnchor("far", "tip", (0, 0, 0), point_b=tip + np.array([0, 0, 0.02])))
    assert refusal.value.violation == pytest.approx(0.02, rel=1e-10)
    assert refusal.value.name == "far"
    assert "0.02" in str(refusal.value)
    assert "assemble=True" in str(refusal.value)
    assert snapshot(sim) == before
    sim.add(PointAnchor("near", "tip", (0, 0, 0), point_b=tip + np.array([0, 0, 5e-5])))


def test_a_contact_that_starts_too_deep_is_refused():
    """Beyond the tolerance under ground, not above; the tolerance is a choice."""
    q = ball().configuration({}, [0, 0, 0.09, 0, 0, 0, 1])
    deep = PointContact("c", "ball", (0, 0, 0), radius=0.1)
    sim = simulator(ball(), q)
    with pytest.raises(ViolatedConstraint) as refusal:
        sim.add(deep)
    assert refusal.value.violation == pytest.approx(0.01, rel=1e-12)
    assert sim.constraints == ()
    simulator(ball(), q, position_tolerance=0.02).add(deep)
    simulator(ball(), q).add(PointContact("c", "ball", (0, 0, 0.2), radius=0.1))


def test_what_starts_within_tolerance_is_not_shot_out():
    """A contact 50 um under ground that is at rest stays at rest, and takes the weight."""
    q = ball().configuration({}, [0, 0, 0.1 - 5e-5, 0, 0, 0, 1])
    sim = simulator(ball(), q, constraints=[PointContact("c", "ball", (0, 0, 0), radius=0.1)])
    for _ in range(20):
        result = sim.step()
    assert np.abs(sim.state.v).max() < 1e-12
    assert result.contact_forces["c"].normal_force == pytest.approx(0.5 * GRAVITY, rel=1e-11)


def test_removing_never_moves_the_state():
    """Not one bit of q or v changes, and the next step is free."""
    sim = moving_pendulum()
    sim.add(FREE_HAND)
    before = sim.state
    sim.remove("hand")
    assert (sim.state.q.tobytes(), sim.state.v.tobytes()) == (before.q.tobytes(), before.v.tobytes())
    assert sim.constraints == ()
    assert sim.step().lam.shape == (0,)


def test_names_are_unique_and_known():
    """Duplicates, unknown names and things that are no constraints are refused; nothing has changed."""
    sim = moving_pendulum()
    sim.add(FREE_HAND)
    before = snapshot(sim)
    with pytest.raises(DuplicateName, match="hand"):
        sim.add(PointAnchor("hand", "rod0", (0, 0, 0)))
    with pytest.raises(UnknownName, match="hand"):
        sim.remove("foot")
    with pytest.raises(UnknownName, match="rod0"):
        sim.add(PointAnchor("other", "nowhere", (0, 0, 0)))
    with pytest.raises(InvalidValue):
        sim.add("hand")
    assert snapshot(sim) == before
    sim.remove("hand")
    sim.add(FREE_HAND)


def test_a_removed_constraint_does_not_come_back_with_reset():
    """Reset keeps what is declared: what was removed is gone, what was added is there."""
    sim = simulator(double_pendulum(), [0.4, -0.9], constraints=[FREE_HAND, PointAnchor("middle", "rod1", (0, 0, 0))])
    sim.remove("middle")
    sim.reset([0.1, 0.2])
    assert [constraint.name for constraint in sim.constraints] == ["hand"]


def test_multipliers_follow_names_not_order():
    """After a removal the rows of the others are found by their name."""
    robot = block()
    names = ["a", "b"]
    sim = simulator(
        robot,
        robot.neutral(),
        constraints=[
            PointAnchor(n, "block", (x, 0, 0), normals=[(0, 0, 1)]) for n, x in zip(names, (-0.1, 0.1), strict=True)
        ],
    )
    sim.add(PointAnchor("c", "block", (0, 0.1, 0), normals=[(1, 0, 0)]))
    assert sim.step().multipliers("b") == pytest.approx([GRAVITY], rel=1e-10)
    sim.remove("a")
    result = sim.step()
    assert result.multipliers("c").shape == (1,)
    with pytest.raises(UnknownName):
        result.multipliers("a")


# -- resetting


def test_a_simulation_begins_where_it_is_told_to():
    """As one that was reset there before its contacts came; what does not hold there is refused."""
    q, v = standing_solo(0.05), np.linspace(-0.1, 0.1, solo12().nv)
    feet = solo_contacts()
    sim, twin = Simulator(solo12(), feet, q=q, v=v), simulator(solo12(), q, v, feet)
    assert (sim.state.q.tobytes(), sim.state.v.tobytes()) == (twin.state.q.tobytes(), v.tobytes())
    assert sim.run(0.1).q.tobytes() == twin.run(0.1).q.tobytes()
    with pytest.raises(ViolatedConstraint, match=r"FL_FOOT.* set_on_ground lifts"):
        Simulator(solo12(), feet, q=standing_solo(-0.01))
    with pytest.raises(InvalidValue, match="q"):
        Simulator(solo12(), feet, q=q[:-1])
    closed = double_pendulum()
    hand = PointAnchor("hand", "tip", (0, 0, 0), point_b=point_of(closed, np.array([0.4, -0.9]), "tip"))
    assert Simulator(closed, [hand], q=[0.4, -0.9]).largest_violation()[0] < 1e-15


def test_reset_starts_anew():
    """Time, steps, energies, wrenches and history are gone: the same run follows, bit for bit."""
    sim = simulator(double_pendulum(), [0.4, -0.9])
    first = sim.run(0.05)
    sim.apply(Wrench("tip", (100, 0, 0)), 1.0)
    sim.run(0.03)
    sim.reset([0.4, -0.9])
    assert (sim.state.t, sim.steps) == (0.0, 0)
    assert not sim.energy.as_array().any()
    again = sim.run(0.05)
    assert first.q.tobytes() == again.q.tobytes()


def test_reset_takes_targets_anew():
    """An anchor without point_b holds the tip where reset puts it."""
    sim = simulator(double_pendulum(), [0.4, -0.9], constraints=[FREE_HAND])
    sim.reset([0.1, 0.2])
    assert sim.largest_violation()[0] < 1e-14
    sim.run(0.05)
    assert np.abs(sim.state.q - [0.1, 0.2]).max() < 1e-7


def test_reset_at_another_time():
    """Time goes on from there, in exact multiples of dt."""
    sim = simulator(double_pendulum(), [0.4, -0.9])
    sim.reset([0, 0], t=5.0)
    for _ in range(7):
        sim.step()
    assert sim.state.t == 5.0 + 7 * 1e-3


@pytest.mark.parametrize(
    "wrong", [{"q": [0.0]}, {"q": [np.nan, 0]}, {"v": [1.0, np.inf]}, {"v": "fast"}, {"t": np.nan}], ids=str
)
def test_reset_refuses_bad_states(wrong):
    """Wrong lengths and values that are not finite: the old state stays."""
    sim = moving_pendulum()
    before = snapshot(sim)
    with pytest.raises(InvalidValue):
        sim.reset(**wrong)
    assert snapshot(sim) == before


@pytest.mark.parametrize("length", [0.5, 2.0])
def test_reset_makes_of_a_quaternion_a_rotation_or_refuses_it(length):
    """A quaternion that is not of unit length is no rotation: inertia and gravity would be scaled by it."""
    q = block().configuration({}, [0, 0, 1.0, *tilted(0.4)])
    stretched = q.copy()
    stretched[3:] *= length
    expected = simulator(block(), q, [0, 0, 0, 1.0, 2.0, 0]).step()
    try:
        result = simulator(block(), stretched, [0, 0, 0, 1.0, 2.0, 0]).step()
    except InvalidValue:
        return
    assert np.abs(result.state.q - expected.state.q).max() < 1e-12
    assert np.abs(result.state.v - expected.state.v).max() < 1e-12


def test_reset_refuses_what_violates_the_constraints():
    """A contact under ground, an anchor elsewhere: the old state stays."""
    q = ball().configuration({}, [0, 0, 0.2, 0, 0, 0, 1])
    sim = simulator(ball(), q, constraints=[PointContact("c", "ball", (0, 0, 0), radius=0.1)])
    sim.step()
    before = snapshot(sim)
    with pytest.raises(ViolatedConstraint, match="c"):
        sim.reset(ball().configuration({}, [0, 0, 0.05, 0, 0, 0, 1]))
    assert snapshot(sim) == before


def test_a_simulation_that_is_told_later_where_to_begin_needs_nothing_of_neutral():
    """The loop does not hold at neutral, the ball is in the ground there: what holds is asked at the first use."""
    target = point_of(double_pendulum(), np.array([0.4, -0.9]), "tip")
    far = PointAnchor("far", "tip", (0, 0, 0), point_b=target)
    sim = Simulator(double_pendulum(), [far])
    assert sim.constraints == (far,)
    sim.reset([0.4, -0.9])
    assert sim.step().state.t == pytest.approx(1e-3)
    deep = Simulator(ball(), [PointContact("c", "ball", (0, 0, 0), radius=0.1)])
    deep.reset(ball().configuration({}, [0, 0, 0.1, 0, 0, 0, 1]))
    assert deep.run(0.01).contact_forces["c"][-1, 2] == pytest.approx(GRAVITY * ball().mass, rel=1e-9)


FIRST_USES = {
    "state": lambda sim: sim.state,
    "step": lambda sim: sim.step(),
    "run": lambda sim: sim.run(0.01),
    "energy": lambda sim: sim.mechanical_energy(),
    "add": lambda sim: sim.add(JointVelocity("motor", "joint1", 0.0)),
    "apply": lambda sim: sim.apply(Wrench("tip", (1, 0, 0)), 0.1),
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_the_first_use_of_a_state_that_does_not_hold_is_refused(use):
    """Again and again, until it is told where to begin, or what does not hold is gone."""
    sim = Simulator(double_pendulum(), [PointAnchor("far", "tip", (0, 0, 0), point_b=(1, 1, 1))])
    for _ in range(2):
        with pytest.raises(ViolatedConstraint, match="far"):
            FIRST_USES[use](sim)
    sim.remove("far")
    FIRST_USES[use](sim)
    assert sim.state.q.shape == (2,)


def test_settings_before_the_first_use_are_kept():
    """Another stepper and solver, and a constraint switched off, of a simulation that has not begun."""
    sim = Simulator(double_pendulum(), [PointAnchor("far", "tip", (0, 0, 0), point_b=(1, 1, 1))])
    sim.set_stepper("smooth", "rk4")
    sim.set_solver("null_space")
    sim.enable("far", False)
    twin = Simulator(double_pendulum(), [], "smooth", "null_space", q=[0.0, 0.0])
    assert np.array_equal(sim.step([0.3, 0.1]).state.v, twin.step([0.3, 0.1]).state.v)
    assert (sim.constraints, len(sim.disabled)) == ((), 1)


@pytest.mark.parametrize(
    "error", [ValueError, ZeroDivisionError, FloatingPointError, np.linalg.LinAlgError, NonFiniteMotion]
)
@pytest.mark.parametrize("stepper", STEPPERS)
def test_what_a_function_of_the_user_raises_comes_out_with_its_traceback(stepper, error):
    """Whatever its class: not as a step that failed; the state is that of before."""
    failing = []

    def jacobian(q, v, t):
        if failing:
            raise error("a slip of the pen")
        return [[0.0, 1.0]]

    own = CustomConstraint("own", 1, jacobian=jacobian, gamma=lambda *_: [0.0], phi=lambda q, v, t: [q[1] + 0.9])
    sim = simulator(double_pendulum(), [0.4, -0.9], constraints=[own], stepper=stepper)
    sim.step()
    before = snapshot(sim)
    failing.append(True)
    with pytest.raises(error, match="slip of the pen") as raised:
        sim.step()
    assert raised.traceback[-1].name == "jacobian"
    assert snapshot(sim) == before
    with pytest.raises(error, match="slip of the pen"):
        sim.run(0.01)


def test_functions_of_the_user_cannot_write_into_the_state():
    """Constraints, laws and controllers get views that are read-only."""
    written = []

    def touch(*arguments):
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    argument[0] = 7.0
                written.append(argument.shape)

    def rows(q, v, t):
        touch(q, v)
        return [[0.0, 1.0]]

    def controller(t, q, v):
        touch(q, v)
        return np.zeros(2)

    own = CustomConstraint("own", 1, jacobian=rows, gamma=lambda *_: [0.0], phi=lambda q, v, t: [touch(q, v) or 0.0])
    q, v = np.array([0.4, -0.9]), np.zeros(2)
    constrained_acceleration(double_pendulum(), q, v, [0.0, 0.0], [own])
    resolve_impact(double_pendulum(), q, v, [own])
    Simulator(double_pendulum(), [own], q=q).run(0.003, controller)
    assert len(written) > 10


# -- efforts and wrenches


@pytest.mark.parametrize("tau", [[np.nan, 0], [np.inf, 0], [0.0], [0.0, 0, 0], "push", [[0.0, 0.0]]], ids=str)
def test_bad_efforts_are_refused(tau):
    """The state before the step is kept, and the simulation goes on."""
    sim = moving_pendulum()
    before = snapshot(sim)
    with pytest.raises(InvalidValue):
        sim.step(tau)
    assert snapshot(sim) == before
    twin = moving_pendulum()
    assert sim.step([0.1, 0.1]).state.q.tobytes() == twin.step([0.1, 0.1]).state.q.tobytes()


def test_efforts_are_limited():
    """tau_applied is what the limits leave, and what acts."""
    config = leg_config()
    strong, limited = config.simulator(), config.simulator()
    result = strong.step([100.0, -100.0])
    assert result.tau_applied.tolist() == [12.0, -12.0]
    assert limited.step([12.0, -12.0]).state.v.tobytes() == result.state.v.tobytes()


def test_a_wrench_acts_for_its_duration():
    """A push of F for T seconds gives a free ball the momentum F T; then it is over."""
    sim = simulator(ball(), ball().neutral())
    sim.apply(Wrench("ball", (2.0, 0, 0)), 0.01)
    sim.run(0.01)
    assert 0.5 * sim.state.v[0] == pytest.approx(2.0 * 0.01, rel=1e-12)
    assert sim.energy.external == pytest.approx(0.5 * 0.5 * sim.state.v[0] ** 2, rel=1e-12)
    sim.run(0.01)
    assert 0.5 * sim.state.v[0] == pytest.approx(2.0 * 0.01, rel=1e-12)


def test_wrenches_add_up():
    """Several at once, applied and passed, act together; one of no duration acts for one step."""
    sim = simulator(ball(), ball().neutral())
    sim.apply(Wrench("ball", (1.0, 0, 0)), 0.0)
    sim.apply(Wrench("ball", (0, 2.0, 0)), 0.002)
    a = sim.step(wrenches=[Wrench("ball", (0, 0, 0.5 * GRAVITY)), Wrench("ball", (1.0, 0, 0))]).a
    assert a[:3] == pytest.approx([4.0, 4.0, 0.0], abs=1e-12)
    assert sim.step().a[:3] == pytest.approx([0.0, 4.0, -GRAVITY], abs=1e-11)


def test_a_wrench_off_centre_turns():
    """Force times arm: the angular acceleration of a ball pushed at its rim."""
    sim = simulator(ball(), ball().neutral())
    result = sim.step(wrenches=[Wrench("ball", (1.0, 0, 0), (0, 0, 0.3), (0, 0, 0.1))])
    inertia = 0.4 * 0.5 * 0.1**2
    assert result.a[3:] == pytest.approx([0, 0.1 / inertia, 0.3 / inertia], abs=1e-3)


@pytest.mark.parametrize("wrong", [{"force": (np.nan, 0, 0)}, {"torque": (0, 0)}, {"point": (0, 0, np.inf)}], ids=str)
def test_wrenches_check_their_values(wrong):
    """Forces are three finite numbers."""
    with pytest.raises(InvalidValue):
        Wrench("ball", **wrong)


def test_bad_wrenches_change_nothing():
    """Unknown links and durations that are none: refused, and nothing is kept of them."""
    sim = moving_pendulum()
    before = snapshot(sim)
    for wrench in (Wrench("nowhere", (1, 0, 0)), Wrench("tip", (1, 0, 0), axes="nowhere")):
        with pytest.raises(UnknownName, match="nowhere"):
            sim.apply(wrench, 1.0)
        with pytest.raises(UnknownName, match="nowhere"):
            sim.step(wrenches=[wrench])
    for duration in (-1.0, np.nan, np.inf):
        with pytest.raises(InvalidValue):
            sim.apply(Wrench("tip", (1, 0, 0)), duration)
    assert snapshot(sim) == before
    assert sim.step().state.v.tobytes() == moving_pendulum().step().state.v.tobytes()


# -- construction and settings


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"dt": 0.0}, InvalidValue),
        ({"dt": -1e-3}, InvalidValue),
        ({"dt": np.nan}, InvalidValue),
        ({"dt": "fast"}, InvalidValue),
        ({"solver": "magic"}, UnknownName),
        ({"solver": 7}, InvalidValue),
        ({"stepper": "magic"}, UnknownName),
        ({"integrator": "magic"}, UnknownName),
        ({"contact_method": "magic"}, UnknownName),
        ({"stabilization": Baumgarte(0.1)}, InvalidValue),
        ({"position_tolerance": -1.0}, InvalidValue),
        ({"constraints": [FREE_HAND, FREE_HAND]}, DuplicateName),
        ({"constraints": ["hand"]}, InvalidValue),
        (
            {"constraints": [PointAnchor("far", "tip", (0, 0, 0), point_b=(1, 1, 1))], "q": [0.0, 0.0]},
            ViolatedConstraint,
        ),
    ],
)
def test_bad_settings_are_refused(options, error):
    """Every setting is checked where it enters."""
    with pytest.raises(error):
        Simulator(double_pendulum(), **options)


def test_settings_can_be_read_and_changed():
    """The names in use; a change that fails leaves the old one."""
    sim = moving_pendulum()
    assert (sim.solver.name, sim.contact_method, sim.integrator_name) == ("range_space", "newton", "midpoint")
    assert sim.stepper_name in STEPPERS
    sim.set_solver("null_space")
    sim.set_contact_method("gauss_seidel")
    for change in (sim.set_solver, sim.set_contact_method, sim.set_stepper):
        with pytest.raises(UnknownName):
            change("magic")
    with pytest.raises(InvalidValue):
        sim.set_solver("range_space", factorization="lu")
    assert (sim.solver.name, sim.contact_method) == ("null_space", "gauss_seidel")


def test_setting_the_stepper_keeps_the_state():
    """The state, the time and the constraints stay."""
    sim = moving_pendulum()
    sim.add(FREE_HAND)
    before = snapshot(sim)
    sim.set_stepper(sim.stepper_name)
    assert snapshot(sim) == before


def test_solvers_may_be_passed_configured():
    """A solver object is as good as its name."""
    for solver in every_solver([FREE_HAND]):
        sim = simulator(double_pendulum(), [0.4, -0.9], constraints=[FREE_HAND], solver=solver)
        assert sim.solver is solver
        assert sim.step().constraint_residual < 1e-6


def test_neutral_at_rest_is_where_it_begins():
    """Without reset: the neutral configuration, no velocity, t = 0."""
    sim = Simulator(double_pendulum())
    assert (sim.state.t, sim.state.q.tolist(), sim.state.v.tolist()) == (0.0, [0.0, 0.0], [0.0, 0.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_step_beyond_all_numbers_is_refused():
    """A state that turns non-finite freezes at the last good one, with the step and the time."""
    sim = simulator(double_pendulum(), [0.4, -0.9], [1e200, -1e200])
    before = snapshot(sim)
    with pytest.raises(NonFiniteState) as refusal:
        sim.step()
    assert (refusal.value.step, refusal.value.t) == (0, 0.0)
    assert f"1e+200 of {sim.robot.velocity_names[0]!r}" in str(refusal.value)
    assert snapshot(sim) == before


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_a_drive_past_a_limit_is_named(stepper):
    """What drives, what stops it, and what is fast but not to blame: the state before is kept."""
    robot = double_pendulum()
    first, _ = robot.joint_names
    drive, stop = JointVelocity("drive", first, 1.0), JointLimit("stop", first, -0.05, 0.05)
    sim = Simulator(robot, [drive, stop], stepper, q=[0.0, 0.3], v=[1.0, 5.0])
    with pytest.raises(
        NonFiniteState, match=r"a joint past its limit.*limits there: stop; bilateral.*: drive; "
    ) as error:
        sim.run(0.1)
    assert error.value.t == pytest.approx(0.05, abs=2e-3)
    assert sim.state.q[0] == pytest.approx(error.value.t, abs=1e-9)


def test_names_of_detected_contacts_are_kept_for_them():
    """Else the same name would come a second time once the bodies are near each other."""
    robot, taken = double_pendulum(), PointContact("link_0/floor#0", "tip", (0, 0, 0))
    with pytest.raises(InvalidValue, match="ELEMENT/BODY#NUMBER"):
        Simulator(robot, [taken])
    sim = simulator(robot, [0.4, -0.9])
    before = snapshot(sim)
    with pytest.raises(InvalidValue, match="ELEMENT/BODY#NUMBER"):
        sim.add(taken)
    assert snapshot(sim) == before


def test_states_and_results_cannot_be_written():
    """Results own read-only arrays: nobody changes a simulation through them."""
    config = leg_config()
    sim = config.simulator()
    result = sim.step([0.1, 0.2])
    for array in (
        sim.state.q,
        sim.state.v,
        result.state.q,
        result.a,
        result.lam,
        result.tau_applied,
        result.contact_forces["foot"].force,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_the_caller_keeps_its_arrays():
    """What was passed stays writable, is not changed, and changing it later changes nothing."""
    q, v, tau = np.array([0.4, -0.9]), np.array([1.0, 2.0]), np.array([0.1, 0.2])
    sim = simulator(double_pendulum(), q, v)
    sim.step(tau)
    assert (q.tolist(), v.tolist(), tau.tolist()) == ([0.4, -0.9], [1.0, 2.0], [0.1, 0.2])
    before = snapshot(sim)
    q[:], v[:], tau[:] = 9.0, 9.0, 9.0
    assert snapshot(sim) == before


# -- what a step tells


def test_first_step_from_rest_has_the_acceleration_of_forward_dynamics():
    """Contacts included: a standing leg that is pushed down accelerates as constrained_acceleration says, to O(dt)."""
    config = leg_config()
    q = config.q.copy()
    q[0] -= point_of(config.robot, q, "foot")[2]
    expected = constrained_acceleration(config.robot, q, config.v, [0.5, -1.0], config.constraints)
    errors, dts = [], (1e-4, 5e-5)
    for dt in dts:
        result = simulator(config.robot, q, constraints=config.constraints, dt=dt).step([0.5, -1.0])
        errors.append(np.abs(result.a - expected.a).max())
        assert result.multipliers("foot") == pytest.approx(expected.multipliers("foot"), rel=0.05)
    assert errors[1] < 0.6 * errors[0] < 1.0


def standing_block():
    """Return a block on level ground."""
    q = block().configuration({}, [0, 0, BLOCK_HALF[2], 0, 0, 0, 1])
    return simulator(block(), q, constraints=corners(friction=0.2))


def test_contact_report():
    """Position, normal, gap, force and slip of every contact, open ones too, in world axes."""
    sim = simulator(
        block(), block().configuration({}, [0, 0, BLOCK_HALF[2], 0, 0, 0, 1]), constraints=corners(friction=0.2)
    )
    sim.add(PointContact("top", "block", (0, 0, BLOCK_HALF[2])))
    report = sim.step(wrenches=[Wrench("block", (0.8 * 0.2 * 2.0 * GRAVITY, 0, 0))]).contact_forces
    assert list(report) == ["corner0", "corner1", "corner2", "corner3", "top"]
    total = sum(contact.force for contact in report.values())
    assert total == pytest.approx([-0.16 * 2.0 * GRAVITY, 0, 2.0 * GRAVITY], abs=1e-9)
    assert report["corner1"].position == pytest.approx([0.15, -0.10, 0], abs=1e-12)
    assert report["top"].gap == pytest.approx(0.1, abs=1e-12)
    assert not report["top"].force.any()
    assert (report["corner0"].link, report["corner0"].friction) == ("block", 0.2)
    assert report["corner0"].normal.tolist() == [0, 0, 1]


def test_rows_that_depend_on_each_other_are_counted():
    """A resting block: twelve contact rows, six of them independent."""
    sim = simulator(
        block(), block().configuration({}, [0, 0, BLOCK_HALF[2], 0, 0, 0, 1]), constraints=corners(friction=0.2)
    )
    assert sim.active_rows() == (12, 6)
    sim.add(PointAnchor("held", "block", (0, 0, 0)))
    assert sim.active_rows() == (15, 6)


# -- running and recording


def test_run_records_every_step():
    """One row a step, taken at its end: the same numbers as stepping by hand."""
    sim, twin = moving_pendulum(), moving_pendulum()
    trajectory = sim.run(0.02, lambda t, q, v: [-q[0], 0.5 * v[1]])
    for i in range(20):
        here = twin.state
        result = twin.step([-here.q[0], 0.5 * here.v[1]])
        assert trajectory.t[i] == result.state.t
        assert trajectory.q[i].tobytes() == result.state.q.tobytes()
        assert trajectory.v[i].tobytes() == result.state.v.tobytes()
        assert trajectory.tau[i].tobytes() == result.tau_applied.tobytes()
    assert trajectory.t.shape == (20,)


def test_controller_is_asked_every_sample_period():
    """In between its last answer holds."""
    asked = []

    def controller(t, q, v):
        asked.append(t)
        return [len(asked), 0.0]

    trajectory = simulator(double_pendulum(), [0.4, -0.9]).run(0.02, controller, sample_period=0.005)
    assert asked == pytest.approx([0.0, 0.005, 0.01, 0.015], abs=1e-15)
    assert trajectory.tau[:, 0].tolist() == [1.0] * 5 + [2.0] * 5 + [3.0] * 5 + [4.0] * 5


@pytest.mark.parametrize("period", [0.0015, 0.0, -0.001, np.nan, 1e-4])
def test_sample_period_must_be_a_multiple_of_dt(period):
    """Otherwise it could not be kept."""
    sim = moving_pendulum()
    before = snapshot(sim)
    with pytest.raises(InvalidValue):
        sim.run(0.01, lambda t, q, v: np.zeros(2), sample_period=period)
    assert snapshot(sim) == before


def test_controller_that_returns_nonsense_stops_the_run():
    """The steps before it stay; the state is that before the bad command."""
    sim = simulator(double_pendulum(), [0.4, -0.9])
    with pytest.raises(InvalidValue, match="tau"):
        sim.run(0.02, lambda t, q, v: [np.nan if t > 0.0095 else 0.0, 0.0])
    assert sim.steps == 10


def test_run_without_actuators_and_without_steps():
    """Robots that take no efforts run too, and a run of no duration is empty."""
    trajectory = simulator(ball(), ball().neutral()).run(0.003)
    assert trajectory.tau.shape == (3, 0)
    assert trajectory.q.shape == (3, 7)
    empty = moving_pendulum().run(0.0)
    assert (empty.q.shape, empty.v.shape, empty.tau.shape) == ((0, 2), (0, 2), (0, 2))
    assert repr(empty) == "Trajectory(0 steps, empty, 0 impacts, multipliers of [])"
    assert repr(trajectory) == "Trajectory(3 steps, 0.001 to 0.003 s, 0 impacts, multipliers of [])"


def test_the_result_of_a_step_prints_on_a_line():
    """At a prompt one sees what acted, not the arrays of the stepper."""
    sim = Simulator(leg(), [PointContact("foot", "foot", (0, 0, 0), friction=0.8), FREE_KNEE], q=[0.5, 0.6, -1.2])
    assert repr(sim.step()) == "StepResult(t=0.001 s, 0 impacts, contacts that touch: [], constraints: [knee])"


def test_run_refuses_less_than_a_step():
    """A time that would round to no step at all is no time to simulate; more rounds to the nearest step."""
    sim = moving_pendulum()
    before = snapshot(sim)
    with pytest.raises(InvalidValue, match="more than half a step"):
        sim.run(4e-4)
    assert snapshot(sim) == before
    assert len(sim.run(2.6e-3).t) == 3


def landing_leg():
    """Return a run of the leg that falls and lands, foot held by an anchor at last."""
    config = leg_config()
    sim = config.simulator()
    return sim.run(0.15, lambda t, q, v: 60.0 * (config.q[1:] - q[1:]) - v[1:])


def test_trajectories_are_saved_and_loaded(tmp_path):
    """All that was recorded comes back, bit for bit, impacts and their energies included."""
    trajectory = landing_leg()
    assert trajectory.impacts
    trajectory.save(tmp_path / "run.npz")
    loaded = Trajectory.load(tmp_path / "run.npz")
    for name in ("t", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trajectory, name))
    for name in ("contact_forces", "multipliers", "energy"):
        one, other = getattr(trajectory, name), getattr(loaded, name)
        assert set(one) == set(other)
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])
    for one, other in zip(trajectory.impacts, loaded.impacts, strict=True):
        assert (one.t, one.energy_lost) == (other.t, other.energy_lost)
        assert (one.v_minus.tobytes(), one.v_plus.tobytes()) == (other.v_minus.tobytes(), other.v_plus.tobytes())
        assert one.impulses.keys() == other.impulses.keys() == {"foot"}
        assert one.impulses["foot"].tobytes() == other.impulses["foot"].tobytes()


def test_impulses_of_a_run_explain_its_jumps():
    """Momentum gained in an impact is what recorded impulses pass to it; contacts that pass none are not named."""
    robot, attitude = block(), tilted(0.1)
    q = np.concatenate([(0.0, 0.0, 0.3), attitude])
    first, *_ = Simulator(robot, corners(friction=0.5), q=q, v=[0.5, 0, 0, 0, 0, 0]).run(0.4).impacts
    assert set(first.impulses) == {"corner1", "corner3"}  # the lower edge
    gained = robot.mass * pin.Quaternion(attitude).matrix() @ (first.v_plus - first.v_minus)[:3]
    np.testing.assert_allclose(sum(first.impulses.values()), gained, atol=1e-13 * np.abs(gained).max())


def test_trajectories_without_impacts_are_saved_too(tmp_path):
    """An empty list of impacts comes back empty; names with odd characters survive."""
    sim = simulator(double_pendulum(), [0.4, -0.9], constraints=[PointAnchor("left/hand 1", "tip", (0, 0, 0))])
    trajectory = sim.run(0.005)
    trajectory.save(tmp_path / "run.npz")
    loaded = Trajectory.load(str(tmp_path / "run.npz"))
    assert loaded.impacts == ()
    np.testing.assert_array_equal(loaded.multipliers["left/hand 1"], trajectory.multipliers["left/hand 1"])


def test_multipliers_are_nan_while_absent():
    """A constraint that comes later has no force before."""
    sim = moving_pendulum()

    def grab(t, q, v):
        if sim.steps == 10:
            sim.add(PointAnchor("hand", "tip", (0, 0, 0), normals=[(1, 0, 0)]))
        return [0.0, 0.0]

    hand = sim.run(0.01, grab).multipliers["hand"]
    assert np.isnan(hand[:5]).all()
    assert np.isfinite(hand[5:]).all()


def test_energy_of_a_run_is_the_sum_of_its_steps():
    """The simulator's sums are those of the trajectory."""
    sim = leg_config().simulator()
    trajectory = sim.run(0.15, lambda t, q, v: -v[1:])
    for name, values in trajectory.energy.items():
        assert values.sum() == pytest.approx(getattr(sim.energy, name), abs=1e-12)


# -- determinism


def test_same_inputs_same_bits():
    """Two runs of a quadruped that lands, slides and is pushed agree in every bit."""

    def run():
        sim = simulator(solo12(), standing_solo(0.01, 0.05), [0.3, 0, -0.5, *np.zeros(15)], solo_contacts(friction=0.4))
        sim.apply(Wrench("base_link", (3.0, 1.0, 0)), 0.02)
        return sim.run(0.1, lambda t, q, v: 3.0 * (standing_solo()[7:] - q[7:]) - 0.1 * v[6:])

    one, other = run(), run()
    assert one.q.tobytes() == other.q.tobytes()
    assert one.v.tobytes() == other.v.tobytes()
    for name in one.contact_forces:
        assert one.contact_forces[name].tobytes() == other.contact_forces[name].tobytes()
    assert [impact.t for impact in one.impacts] == [impact.t for impact in other.impacts]


def test_a_failed_change_leaves_no_trace_in_the_motion():
    """Refused additions, commands and settings between the steps: the run is the same, bit for bit."""

    def run(disturbed):
        sim = simulator(leg(), leg_config().q, constraints=leg_config().constraints)
        for _ in range(130):
            if disturbed:
                for attempt in (
                    lambda: sim.add(PointAnchor("far", "foot", (0, 0, 0), point_b=(9, 9, 9))),
                    lambda: sim.step([np.nan, 0]),
                    lambda: sim.set_solver("magic"),
                    lambda: sim.reset([0.0]),
                    lambda: sim.step(wrenches=[Wrench("nowhere")]),
                ):
                    with pytest.raises((InvalidValue, UnknownName, ViolatedConstraint)):
                        attempt()
            sim.step([0.2, -0.3])
        return sim.state.q.tobytes(), sim.state.v.tobytes()

    assert run(False) == run(True)


# -- what fails leaves no trace


def pushed_leg(**options):
    """Return the leg on the ground, pushed about for a while."""
    config = leg_config()
    sim = simulator(config.robot, config.q, constraints=config.constraints, **options)
    for _ in range(30):
        sim.step([1.0, -2.0])
    return sim


@pytest.mark.parametrize(
    ("stepper", "force"),
    [
        *(("time_stepping", force) for force in (1e8, 1e20, 1e160, 1e308)),
        *(("event_driven", force) for force in (1e6, 1e308)),  # between them, all evaluations are used up: 40 s
    ],
)
def test_forces_beyond_all_numbers_fail_the_step_and_nothing_else(stepper, force):
    """Whatever a library makes of the overflow, the step fails; the next one is that of a twin who was spared it."""
    sim, twin = pushed_leg(stepper=stepper), pushed_leg(stepper=stepper)
    before = snapshot(sim)
    with np.errstate(all="ignore"):
        try:
            sim.step([1.0, -2.0], [Wrench("foot", force=(force, force, -force))])
        except NonFiniteState:
            assert snapshot(sim) == before
            assert np.array_equal(sim.step([1.0, -2.0]).state.v, twin.step([1.0, -2.0]).state.v)
        else:
            assert force < 1e100
            assert np.isfinite(sim.state.v).all()


@pytest.mark.parametrize("stepper", STEPPERS)
def test_error_in_a_function_of_the_user_leaves_no_trace(stepper):
    """It comes out as it is, and the step after it is that of a twin without the error."""
    now = {"fails": False}

    def gamma(q, v, t):
        if now["fails"] and t > 0.0301:
            raise TypeError("a slip of the pen")
        return [-0.1]

    functions = {"jacobian": lambda q, v, t: [[1.0, 0, 0]], "velocity": lambda q, v, t: [v[0] - 0.1 * t]}
    sims = []
    for own in (gamma, lambda q, v, t: [-0.1]):
        sim = simulator(leg(), leg_config().q, stepper=stepper)
        sim.add(CustomConstraint("drive", 1, gamma=own, **functions))
        sim.run(0.03)
        sims.append(sim)
    now["fails"] = True
    if stepper != "time_stepping":  # which needs no gamma
        with pytest.raises(TypeError, match="slip of the pen"):
            sims[0].step([0.1, 0.2])
            sims[0].step([0.1, 0.2])
        sims[1].run(sims[0].state.t - sims[1].state.t, lambda t, q, v: [0.1, 0.2])
    now["fails"] = False
    assert np.array_equal(*(sim.step([0.1, 0.2]).state.v for sim in sims))


@pytest.mark.parametrize("stepper", STEPPERS)
def test_a_state_or_a_stepper_that_cannot_be_leaves_no_trace(stepper):
    """A function of the user's raises an error while the new state is evaluated: the old one goes on as ever."""
    now = {"fails": False}

    def velocity(q, v, t):
        if now["fails"]:
            raise TypeError("a slip of the pen")
        return [v[0] - 0.1 * t]

    sims = []
    for _ in range(2):
        sim = simulator(leg(), leg_config().q, stepper=stepper)
        rows = {"jacobian": lambda q, v, t: [[1.0, 0, 0]], "gamma": lambda q, v, t: [-0.1], "velocity": velocity}
        sim.add(CustomConstraint("drive", 1, **rows))
        sim.run(0.03, lambda t, q, v: [0.1, 0.2])
        sims.append(sim)
    sim, twin = sims
    before, other = snapshot(sim), "smooth" if stepper == "time_stepping" else "time_stepping"
    now["fails"] = True
    for attempt in (lambda: sim.reset(leg_config().q), lambda: sim.set_stepper(other)):
        with pytest.raises(TypeError, match="slip of the pen"):
            attempt()
    now["fails"] = False
    assert snapshot(sim) == before
    assert sim.stepper_name == stepper
    for _ in range(3):
        assert np.array_equal(sim.step([0.1, 0.2]).state.v, twin.step([0.1, 0.2]).state.v)


@pytest.mark.parametrize("stepper", STEPPERS)
def test_functions_of_time_are_asked_at_the_times_of_the_states(stepper):
    """A sum of steps would drift from their product."""
    asked = []

    def speed(t):
        asked.append(t)
        return np.sin(3.0 * t), 3.0 * np.cos(3.0 * t)

    sim = simulator(double_pendulum(), [0.4, -0.9], stepper=stepper, dt=1e-3)
    sim.add(JointVelocity("motor", "joint0", speed))
    for _ in range(40):
        asked.clear()
        begin = sim.state.t
        sim.step()
        assert begin in asked
    asked.clear()
    times = [sim.state.t, *sim.run(0.2).t]
    assert times == [1e-3 * step for step in range(40, 241)]
    assert set(times[:-1]) <= set(asked)


def test_constraint_that_cannot_be_added_leaves_no_trace():
    """Its impact fails: the next step is that of a twin who was not asked."""
    sim, twin = pushed_leg(), pushed_leg()
    wrong = CustomConstraint(
        "wrong",
        1,
        jacobian=lambda q, v, t: [[1.0, 0, 0]],
        gamma=lambda q, v, t: [0.0],
        velocity=lambda q, v, t: [np.nan],
    )
    with pytest.raises(InvalidValue, match="wrong"):
        sim.add(wrong)
    assert np.array_equal(sim.step([1.0, -2.0]).state.v, twin.step([1.0, -2.0]).state.v)


def test_switching_off_twice_leaves_no_trace():
    """What is off already stays off, and the motion what it is."""
    sims = pushed_leg(), pushed_leg()
    for sim in sims:
        sim.enable("foot", False)
        sim.step([1.0, -2.0])
    sims[0].enable("foot", False)
    assert np.array_equal(*(sim.step([1.0, -2.0]).state.v for sim in sims))


def test_functions_may_ask_about_the_same_robot():
    """A custom constraint that computes accelerations of its robot elsewhere meanwhile disturbs nothing."""
    robot, q, v = leg(), leg_config().q, np.array([0.1, 0.2, 0.3])

    def found(asks):
        def gamma(q_, v_, t):
            if asks:
                constrained_acceleration(robot, robot.neutral(), np.zeros(3), np.zeros(2), [])
            return [0.0]

        rail = CustomConstraint("rail", 1, jacobian=lambda q_, v_, t: [[1.0, 0, 0]], gamma=gamma, phi=lambda *_: [0.0])
        return constrained_acceleration(robot, q, v, [0.0, 0.0], [rail]).a

    assert np.array_equal(found(True), found(False))


def test_assembling_is_work_of_the_projection():
    """The energy that moving the robot onto a new constraint brings in is no error of the integrator."""
    sim = pushed_leg()
    before = sim.integration_energy()
    height = point_of(sim.robot, sim.state.q, "foot")[2] + 0.05
    energy = sim.mechanical_energy()
    impact = sim.add(PointAnchor("lift", "foot", (0, 0, 0), point_b=(0, 0, height), normals=[(0, 0, 1)]), assemble=True)
    assert abs(sim.mechanical_energy() - energy) > 0.1
    assert sim.integration_energy() == pytest.approx(before, abs=1e-12)
    assert sim.energy.projection == pytest.approx(sim.mechanical_energy() + impact.energy_lost - energy, abs=1e-9)


def test_two_threads_may_share_a_robot():
    """Simulators with different steps, each in a thread of its own: the same motion as one after the other."""
    config = leg_config()
    robot = config.robot.with_joints({"hip": {"damping": 0.3}})
    steps = (1e-3, 5e-3)

    def motion(dt):
        sim = simulator(robot, config.q, dt=dt, solver="kokkevis")
        sim.add(PointAnchor("rail", "foot", (0, 0, 0), normals=[(0, 0, 1)]))
        return np.array([sim.step([1.0, -2.0]).state.v for _ in range(200)])

    expected, interval = [motion(dt) for dt in steps], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            found = list(threads.map(motion, steps))
    finally:
        sys.setswitchinterval(interval)
    for ours, theirs in zip(found, expected, strict=True):
        assert np.array_equal(ours, theirs)


def test_the_step_of_a_simulation_stays():
    """Another dt would change the clock only: it is refused."""
    sim = Simulator(double_pendulum(), dt=1e-3)
    with pytest.raises(AttributeError):
        sim.dt = 5e-3
    assert sim.dt == 1e-3


@pytest.mark.parametrize("wrenches", [Wrench("tip", force=(1, 0, 0)), 3.0, ["tip"], [[1.0] * 6]])
def test_what_is_no_sequence_of_wrenches_is_refused(wrenches):
    """The message says what is allowed; the simulation is where it was."""
    sim = Simulator(double_pendulum())
    with pytest.raises(InvalidValue, match="of Wrench"):
        sim.step(None, wrenches)
    with pytest.raises(InvalidValue, match="of Wrench"):
        sim.apply(wrenches if isinstance(wrenches, float) else [wrenches], 0.1)
    assert sim.steps == 0


@pytest.mark.parametrize("name", ["q", "v", "contact_metod", "state"])
def test_what_a_simulator_does_not_take_is_refused(name):
    """What it does not have, or does not let be set, would be assigned in vain; subclasses may have their own."""
    sim = Simulator(block())
    with pytest.raises(AttributeError, match=name):
        setattr(sim, name, np.zeros(7))

    class Noting(Simulator):
        """Keeps notes."""

    noting = Noting(block())
    noting.notes = ["begun"]
    assert noting.notes == ["begun"]


def test_warnings_point_at_the_line_of_the_user():
    """Not at one of this package, whatever led there; and once for each line, not in each simulation."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            Simulator(double_pendulum(), dt=0.01, q=[0.3, 0.4], v=[0.0, 3000.0]).run(0.03)
    assert [type(warning.message) for warning in told] == [FastJoints]
    assert told[0].filename == __file__
