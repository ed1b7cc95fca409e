"""Projection of positions and velocities: the textbook's formulas, nearest points, both metrics."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import assume, given
from mechanisms import (
    chain,
    every_solver,
    inertia_of,
    kinetic_energy,
    point_of,
    property_test,
    random_state,
    random_tree,
    relative,
    seeds,
)
from scipy.linalg import null_space
from scipy.optimize import minimize

from constrained_sim import JointVelocity, PointAnchor, PointContact, project_position, project_velocity
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue, UnknownName, ViolatedConstraint

METRICS = ("mass", "euclidean")


def rows_of(robot, q, constraints):
    """Return phi and J."""
    dynamics = Dynamics.at(robot, q, np.zeros(robot.nv))
    bound = ConstraintSet.bind(robot, q, constraints).bilateral
    return bound.phi(dynamics), bound.jacobian(dynamics)


def closed_tree(seed):
    """Return a tree, a configuration off its constraint by centimetres, and the constraint, with redundant rows."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    target = point_of(robot, q, "link6", (0.1, 0, 0)) + rng.uniform(-0.01, 0.01, 3)
    anchors = [PointAnchor(name, "link6", (0.1, 0, 0), point_b=target) for name in ("hand", "again")]
    singular = np.linalg.svd(rows_of(robot, q, anchors[:1])[1], compute_uv=False)
    assume(singular[-1] > 0.1)
    return robot, q, v, anchors


@property_test(20)
@given(seed=seeds)
def test_velocity_by_one_svd(seed):
    """The Euclidean projection is N N^+ v with N from the singular value decomposition of J."""
    robot, q, v, anchors = closed_tree(seed)
    _, J = rows_of(robot, q, anchors)
    N = null_space(J)
    projected = project_velocity(robot, q, v, anchors, "euclidean")
    assert relative(projected, N @ N.T @ v) < 1e-12
    assert np.abs(J @ projected).max() < 1e-12


@property_test(20)
@given(seed=seeds)
def test_velocity_in_the_metric_of_the_mass(seed):
    """It is M^-1-orthogonal, never raises kinetic energy, and is the velocity after an inelastic impact."""
    robot, q, v, anchors = closed_tree(seed)
    _, J = rows_of(robot, q, anchors)
    M, N = inertia_of(robot, q), null_space(J)
    projected = project_velocity(robot, q, v, anchors)
    assert np.abs(J @ projected).max() < 1e-11
    assert np.abs(N.T @ M @ (projected - v)).max() < 1e-10 * np.abs(M @ v).max()
    assert kinetic_energy(robot, q, projected) <= kinetic_energy(robot, q, v)
    for solver in every_solver(anchors):
        assert relative(project_velocity(robot, q, v, anchors, solver=solver), projected) < 1e-9


@pytest.mark.parametrize("metric", METRICS)
def test_velocity_level_rows_are_projected_too(metric):
    """A joint of prescribed velocity gets it at the time that is asked for."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.3, 0.5, -0.2])
    motor = JointVelocity("motor", "joint1", lambda t: (np.sin(t), np.cos(t)))
    v = project_velocity(robot, q, np.array([1.0, 2.0, 3.0]), [motor], metric, t=0.7)
    assert v[1] == pytest.approx(np.sin(0.7), rel=1e-13)
    if metric == "euclidean":
        np.testing.assert_allclose(v[[0, 2]], [1.0, 3.0], rtol=1e-13)


@pytest.mark.parametrize("metric", METRICS)
@property_test(10)
@given(seed=seeds)
def test_position_to_rounding(metric, seed):
    """The result satisfies the constraints to rounding, and lies near."""
    robot, q, _, anchors = closed_tree(seed)
    projected = project_position(robot, q, anchors, metric)
    assert np.abs(rows_of(robot, projected, anchors)[0]).max() < 1e-13
    assert np.abs(pin.difference(robot.model, q, projected)).max() < 0.2
    assert pin.isNormalized(robot.model, projected, 1e-13)


@property_test(10)
@given(seed=seeds)
def test_first_step_is_the_formula_of_the_text(seed):
    """For rows that are linear in q: q = (I - N N^+)(q0 - F^+ g0) + N N^+ qe, exactly, for any q0."""
    rng = np.random.default_rng(seed)
    robot = chain((0.5, 0.3, 0.4, 0.2))
    F, offset = rng.normal(size=(2, 4)), rng.normal(size=2)
    rows = linear_rows(F, offset)
    estimate, q0 = rng.normal(size=(2, 4))
    N = null_space(F)
    expected = (np.eye(4) - N @ N.T) @ (q0 - np.linalg.pinv(F) @ (F @ q0 - offset)) + N @ N.T @ estimate
    np.testing.assert_allclose(project_position(robot, estimate, [rows], "euclidean", about=q0), expected, atol=1e-13)
    np.testing.assert_allclose(project_position(robot, estimate, [rows], "euclidean"), expected, atol=1e-13)


def linear_rows(F, offset):
    """Return the constraint F q = offset."""
    from constrained_sim import CustomConstraint

    return CustomConstraint(
        "linear",
        len(F),
        phi=lambda q, v, t: F @ q - offset,
        jacobian=lambda q, v, t: F,
        gamma=lambda q, v, t: np.zeros(len(F)),
    )


@pytest.mark.parametrize("metric", METRICS)
def test_the_point_of_linearisation_changes_the_result_of_curved_rows_only_to_second_order(metric):
    """About another q0, the result still closes, and differs by the curvature."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    target = point_of(robot, q, "tip") + np.array([0.005, 0.0, -0.004])
    pinned = PointAnchor("pin", "tip", (0, 0, 0), point_b=target)
    plain = project_position(robot, q, [pinned], metric)
    other = project_position(robot, q, [pinned], metric, about=q + np.array([0.01, -0.02, 0.01]))
    assert np.abs(point_of(robot, other, "tip") - target).max() < 1e-14
    assert 0.0 < np.abs(other - plain).max() < 1e-3


@pytest.mark.parametrize("metric", METRICS)
def test_positions_are_linearised_about_one_that_holds(metric):
    """The natural choice of q0, the last configuration that satisfied the constraints: the estimate moves onto them."""
    robot, q0 = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    pinned = PointAnchor("pin", "tip", (0, 0, 0), point_b=point_of(robot, q0, "tip"))
    estimate = q0 + np.array([0.01, -0.02, 0.015])
    assert np.abs(rows_of(robot, q0, [pinned])[0]).max() == 0.0
    about = project_position(robot, estimate, [pinned], metric, about=q0)
    assert np.abs(rows_of(robot, about, [pinned])[0]).max() < 1e-13
    plain = project_position(robot, estimate, [pinned], metric)
    assert np.abs(about - plain).max() < 0.1 * np.abs(estimate - plain).max()
    np.testing.assert_allclose(project_position(robot, q0, [pinned], metric, about=q0), q0, atol=1e-14)


@pytest.mark.parametrize("metric", METRICS)
def test_position_is_nearly_the_nearest(metric):
    """SciPy's constrained minimiser finds the nearest configuration; ours is it up to the curvature of the rows."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    target = point_of(robot, q, "tip") + np.array([0.002, 0.0, -0.001])
    pinned = PointAnchor("pin", "tip", (0, 0, 0), point_b=target)
    M = inertia_of(robot, q) if metric == "mass" else np.eye(3)
    nearest = minimize(
        lambda x: 1e6 * (x - q) @ M @ (x - q),
        q,
        constraints={"type": "eq", "fun": lambda x: 1e3 * (point_of(robot, x, "tip") - target)[[0, 2]]},
        method="SLSQP",
        options={"ftol": 1e-14},
    ).x
    moved = np.linalg.norm(nearest - q)
    assert np.linalg.norm(project_position(robot, q, [pinned], metric) - nearest) < 0.02 * moved


def test_refusals():
    """What cannot be closed, or projected, is refused by name."""
    robot, q = chain((0.5, 0.3, 0.4)), np.array([0.5, 1.1, -0.4])
    far = PointAnchor("far", "tip", (0, 0, 0), point_b=(3.0, 0, 0))
    with pytest.raises(ViolatedConstraint, match="far"):
        project_position(robot, q, [far])
    with pytest.raises(InvalidValue, match="euclidean"):
        project_velocity(robot, q, q, [], "manhattan")
    with pytest.raises(InvalidValue, match="bilateral"):
        project_velocity(robot, q, q, [PointContact("ground", "tip", (0, 0, 0))])
    with pytest.raises(UnknownName):
        project_position(robot, q, [far], solver="magic")
