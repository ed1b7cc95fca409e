"""The check of users' constraints: what fits together passes, every single slip is found and named."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from mechanisms import (
    chain,
    double_pendulum,
    leg,
    leg_config,
    property_test,
    random_state,
    random_tree,
    seeds,
    simulator,
)
from test_constraints import SpeedLimit, circling, make, radius_constraint

from constrained_sim import (
    CustomConstraint,
    FrameAnchor,
    JointLimit,
    JointVelocity,
    PointAnchor,
    PointContact,
    Simulator,
    check_constraint,
)
from constrained_sim.constraints.check import STEP
from constrained_sim.exceptions import InvalidValue, WrongDerivative

KINDS = (
    "point_anchor",
    "moving_anchor",
    "frame_anchor",
    "part_of_a_frame",
    "point_distance",
    "joint_coupling",
    "joint_velocity",
)


def tip_height(wrong=None, by=1.2):
    """Return the constraint that the tip of a double pendulum stays at its height, with one function wrong."""
    lengths = np.array([0.5, 0.3])

    def angles(q):
        return np.cumsum(q)

    functions = {
        "phi": lambda q, v, t: [lengths @ np.cos(angles(q)) - lengths @ np.cos(angles([0.4, -0.9]))],
        "jacobian": lambda q, v, t: [-np.cumsum((lengths * np.sin(angles(q)))[::-1])[::-1]],
        "gamma": lambda q, v, t: [-(lengths * np.cos(angles(q))) @ angles(v) ** 2],
        "velocity": lambda q, v, t: [-(lengths * np.sin(angles(q))) @ angles(v)],
    }
    if wrong is not None:
        right = functions[wrong]
        functions[wrong] = lambda q, v, t: by * np.asarray(right(q, v, t))
    return CustomConstraint("height", 1, **functions)


@property_test(15)
@given(seed=seeds)
@pytest.mark.parametrize("kind", KINDS)
def test_our_own_kinds_fit(kind, seed):
    """On random trees, at random states: the check finds nothing where there is nothing."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    check = check_constraint(robot, make(kind, robot, rng), q, v, t=0.3)
    assert check.consistent, check.wrong


@pytest.mark.parametrize("beyond", [0.5, 1.5, -0.5, -1.5])
def test_half_a_turn_is_no_slip(beyond):
    """There log6 jumps by a whole turn: differences across the jump say nothing against the constraint."""
    wheel = chain((0.5,))
    anchor = FrameAnchor("weld", "rod0", np.eye(4), placement_b=np.eye(4))
    check = check_constraint(wheel, anchor, [np.pi + beyond * STEP], [0.8])
    assert check.consistent, check.wrong


@pytest.mark.parametrize(
    "constraint", [lambda robot: radius_constraint("radius", robot), lambda robot: SpeedLimit("speed")]
)
def test_users_constraints_that_are_right_fit(constraint):
    """With rows that depend on time, and rows that are not linear in v."""
    robot = chain((0.5, 0.3, 0.4))
    check = check_constraint(robot, constraint(robot), [0.3, 0.5, -0.2], [0.4, -0.3, 0.8], t=0.2)
    assert check.consistent
    assert check.jacobian.given.shape == check.jacobian.found.shape == (1, 3)
    np.testing.assert_allclose(check.jacobian.found, check.jacobian.given, atol=1e-9)


@pytest.mark.parametrize("wrong", ["jacobian", "gamma", "velocity"])
@pytest.mark.parametrize("by", [-1.0, 0.0, 1.01, 2.0])
def test_each_slip_is_found(wrong, by):
    """A sign, a factor, a function that returns nothing: named, with the value and what differences give."""
    check = check_constraint(double_pendulum(), tip_height(wrong, by), [0.4, -0.9], [0.7, -0.2])
    assert not check.consistent
    assert wrong in check.wrong
    if wrong != "velocity":  # of which gamma is the derivative
        assert set(check.wrong) == {wrong}
    given, found, error = check.wrong[wrong]
    np.testing.assert_allclose(found * by, given, rtol=1e-6, atol=1e-9)
    assert error > 0.005
    assert check_constraint(double_pendulum(), tip_height(), [0.4, -0.9], [0.7, -0.2]).consistent


def test_motions_of_the_users_that_contradict_their_derivatives_are_found():
    """A moving anchor, a prescribed velocity: the derivatives that come with them are functions of the user too."""
    robot, q, v = chain((0.5, 0.3, 0.4)), [0.3, 0.5, -0.2], [0.4, -0.3, 0.8]
    wrong = PointAnchor("hand", "tip", (0, 0, 0), point_b=lambda t: (circling(t)[0], circling(t)[1], circling(t)[1]))
    assert set(check_constraint(robot, wrong, q, v, 0.1).wrong) == {"gamma"}
    motor = JointVelocity("motor", "joint1", lambda t: (np.sin(5 * t), np.cos(5 * t)))
    assert set(check_constraint(robot, motor, q, v, 0.1).wrong) == {"gamma"}
    assert check_constraint(robot, JointVelocity("ramp", "joint1", lambda t: (max(t, 0), t >= 0)), q, v).consistent


def test_what_has_no_rows_of_its_own_is_refused():
    """A contact's rows are the package's; a limit has rows."""
    robot, q = leg(), leg_config().q
    with pytest.raises(InvalidValue, match="constraint"):
        check_constraint(robot, PointContact("floor", "foot", (0, 0, 0)), q, np.zeros(3))
    assert check_constraint(robot, JointLimit("stop", "hip", -1.0, 1.0), q, np.ones(3)).consistent


@pytest.mark.parametrize("wrong", ["jacobian", "gamma"])
def test_a_simulation_warns_once(wrong):
    """At the first step from rest, with name, function and values; then never again, not even after a reset."""
    sim = simulator(double_pendulum(), [0.4, -0.9], constraints=[tip_height(wrong)])
    with pytest.warns(WrongDerivative, match=f"'height': its {wrong}") as caught:
        sim.step()
    assert len(caught) == 1
    assert (caught[0].message.constraint, caught[0].message.function) == ("height", wrong)
    assert caught[0].message.given == pytest.approx(1.2 * caught[0].message.found, rel=1e-6)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()
        sim.reset([0.4, -0.9])
        sim.step()


def test_a_simulation_checks_what_is_added_and_run():
    """A constraint that joins later is checked at the next step, by run too."""
    sim = simulator(double_pendulum(), [0.4, -0.9])
    sim.run(0.01)
    sim.reset([0.4, -0.9])
    sim.add(tip_height("jacobian"))
    with pytest.warns(WrongDerivative, match="height"):
        sim.run(0.003)


def test_the_check_leaves_the_motion_alone():
    """Bit for bit that of functions that fail when they are asked about another state."""
    q0 = np.array([0.4, -0.9])
    right = tip_height()

    def only_here(function):
        def guarded(q, v, t):
            if np.abs(q - q0).max() > 5e-5 and t < 4e-4:
                raise ZeroDivisionError
            return function(q, v, t)

        return guarded

    methods = {name: only_here(getattr(right, name)) for name in ("phi", "jacobian", "gamma", "velocity")}
    guarded = CustomConstraint("height", 1, **methods)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ends = [Simulator(double_pendulum(), [own], q=q0).step([0.1, 0.2]).state for own in (right, guarded)]
    assert np.array_equal(ends[0].v, ends[1].v)
    assert np.array_equal(ends[0].q, ends[1].q)
