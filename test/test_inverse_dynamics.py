"""Inverse dynamics with holonomic constraints: the torques do what was asked, and are the textbook's."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from mechanisms import chain, double_pendulum, inertia_of, leg, property_test, random_state, random_tree, seeds, solo12
from scipy.linalg import null_space

from constrained_sim import (
    JointCoupling,
    JointVelocity,
    PointAnchor,
    PointContact,
    Robot,
    constrained_acceleration,
    inverse_dynamics,
    minimal_acceleration,
)
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue, NotFollowed, UnknownName
from constrained_sim.joint_properties import set_property_of


def four_bar() -> tuple[Robot, np.ndarray, PointAnchor]:
    """Return a chain of three unequal links whose tip is pinned in the plane, at a configuration, with the pin."""
    robot = chain((0.3, 0.5, 0.4))
    q = np.array([0.7, 0.9, 0.6])
    tip = robot.model.frames[robot.model.nframes - 1].name
    return robot, q, PointAnchor("pin", tip, (0.0, 0.0, 0.0))


def consistent(robot: Robot, q: np.ndarray, constraints: list, rng: np.random.Generator) -> np.ndarray:  # type: ignore[type-arg]
    """Return a random velocity that satisfies the constraints."""
    dynamics = Dynamics.at(robot, q, np.zeros(robot.nv))
    basis = null_space(np.vstack([c.bind(robot, q).jacobian(dynamics) for c in constraints]), rcond=1e-10)
    return basis @ rng.normal(size=basis.shape[1])


def held(robot: Robot, q: np.ndarray, constraints: list) -> int:  # type: ignore[type-arg]
    """Return the number of independent rows."""
    return constrained_acceleration(robot, q, np.zeros(robot.nv), np.zeros(robot.nu), constraints).rank


@property_test(25)
@given(seed=seeds)
def test_forward_dynamics_of_the_torques_is_the_motion_asked_for(seed: int) -> None:
    """inverse then forward is the identity, on random trees with anchors of any rank, repeated rows included."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6)
    q, _ = random_state(robot, rng)
    anchor = PointAnchor("a", "link6", rng.normal(size=3) * 0.1)
    constraints = [anchor, PointAnchor("again", "link6", anchor.point_a, normals=[(1, 0, 0)])]
    v = consistent(robot, q, constraints, rng)
    wanted = rng.normal(size=robot.nv - held(robot, q, constraints))
    result = inverse_dynamics(robot, q, v, wanted, constraints)
    forward = constrained_acceleration(robot, q, v, result.tau, constraints)
    assert np.abs(forward.a - result.a).max() < 1e-8 * max(1.0, np.abs(result.a).max())
    assert np.abs(forward.lam - result.lam).max() < 1e-7 * max(1.0, np.abs(result.lam).max())
    assert result.residual < 1e-9
    chosen = [robot.velocity_names.index(name) for name in result.independent]
    assert np.abs(result.a[chosen] - wanted).max() < 1e-12 * max(1.0, np.abs(wanted).max())


@property_test(25)
@given(seed=seeds)
def test_minimal_coordinates_give_the_same_acceleration(seed: int) -> None:
    """The dynamics projected onto independent coordinates agree with the constrained ones."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 6, floating_base=bool(seed % 2))
    q, _ = random_state(robot, rng)
    constraints = [PointAnchor("a", "link5", rng.normal(size=3) * 0.1), PointAnchor("b", "link2", (0, 0, 0), "link6")]
    v = consistent(robot, q, constraints, rng)
    tau = rng.normal(size=robot.nu)
    expected = constrained_acceleration(robot, q, v, tau, constraints, "range_space").a
    found = minimal_acceleration(robot, q, v, tau, constraints)
    assert np.abs(found - expected).max() < 1e-8 * max(1.0, np.abs(expected).max())


def test_velocity_map_is_the_textbooks() -> None:
    """Gamma is the identity on the independent velocities and -J_dep^-1 J_ind on the others: J Gamma = 0."""
    robot, q, pin_ = four_bar()
    result = inverse_dynamics(robot, q, np.zeros(3), [0.0], [pin_], independent=[robot.velocity_names[0]])
    J = np.array([result.velocity_map[:, 0]])
    assert J[0, 0] == 1.0
    motion = constrained_acceleration(robot, q, result.velocity_map[:, 0], np.zeros(3), [pin_])
    assert motion.constraint_residual < 1e-12
    tip_rows = pin_.bind(robot, q)
    assert np.abs(tip_rows.jacobian(Dynamics.at(robot, q, np.zeros(3))) @ result.velocity_map).max() < 1e-13


def test_efforts_of_a_redundantly_driven_loop_are_of_least_norm() -> None:
    """With three motors on one freedom any torque along the map does; the shortest is proportional to Gamma."""
    robot, q, pin_ = four_bar()
    result = inverse_dynamics(robot, q, np.zeros(3), [2.0], [pin_])
    gamma = result.velocity_map[:, 0]
    assert np.abs(result.tau - gamma * (gamma @ result.tau) / (gamma @ gamma)).max() < 1e-10 * np.abs(result.tau).max()


def shortest_within(A: np.ndarray, b: np.ndarray, limits: np.ndarray) -> np.ndarray | None:
    """Return the shortest x with ``A x = b`` and ``|x| <= limits``, by trying every active set; None: there is none."""
    best = None
    for active in product((0.0, -1.0, 1.0), repeat=len(limits)):
        held = np.array(active) != 0.0
        x = np.where(held, np.array(active) * np.where(held, limits, 0.0), 0.0)
        x[~held] = np.linalg.lstsq(A[:, ~held], b - A @ x, rcond=None)[0]
        if np.abs(A @ x - b).max() < 1e-9 * np.abs(b).max() and (np.abs(x) <= limits * (1.0 + 1e-9)).all():
            best = x if best is None or x @ x < best @ best else best
    return best


@property_test(60)
@given(seeds)
def test_limited_efforts_are_the_shortest_ones(seed: int) -> None:
    """Of arms whose tips are held, with motors that differ by orders of magnitude, against all active sets."""
    rng = np.random.default_rng(seed)
    joints = int(rng.integers(3, 6))
    free = chain(tuple(rng.uniform(0.2, 0.5, joints)))
    q, rest = rng.normal(size=joints), np.zeros(joints)
    held, wanted = (
        [PointAnchor("tip", "tip", (0.0, 0.0, 0.0))],
        rng.normal(size=joints - 2) * 10.0 ** rng.uniform(-3, 4),
    )
    unlimited = inverse_dynamics(free, q, rest, wanted, held)
    limits = np.abs(unlimited.tau).max() * np.exp(rng.normal(scale=3.0, size=joints))
    robot = free.with_joints(
        {name: {"effort": x} for name, x in zip(free.actuated_joints, limits.tolist(), strict=True)}
    )
    A = unlimited.velocity_map.T
    best = shortest_within(A, A @ unlimited.tau, limits)
    given_too = {"independent": unlimited.independent, "limited": True}
    if best is None:
        with pytest.raises(NotFollowed, match="within the limits"):
            inverse_dynamics(robot, q, rest, wanted, held, **given_too)  # type: ignore[arg-type]
    else:
        found = inverse_dynamics(robot, q, rest, wanted, held, **given_too).tau  # type: ignore[arg-type]
        assert found == pytest.approx(best, abs=1e-7 * np.abs(best).max())


def test_limits_move_effort_to_the_other_motors() -> None:
    """Where the shortest solution exceeds a limit, the rest takes over and the motion is the same."""
    free = chain((0.3, 0.5, 0.4))
    robot, q, pin_ = four_bar()
    unlimited = inverse_dynamics(robot, q, np.zeros(3), [2.0], [pin_])
    limit = 0.9 * np.abs(unlimited.tau).max()
    model = free.model.copy()
    set_property_of(model, "effort", np.full(3, limit))
    tight = Robot(model, free.actuated_joints)
    result = inverse_dynamics(tight, q, np.zeros(3), [2.0], [pin_], limited=True)
    assert np.abs(result.tau).max() <= limit
    forward = constrained_acceleration(tight, q, np.zeros(3), result.tau, [pin_])
    assert np.abs(forward.a - unlimited.a).max() < 1e-5 * np.abs(unlimited.a).max()
    set_property_of(model, "effort", np.full(3, 1e-3 * limit))
    with pytest.raises(NotFollowed):
        inverse_dynamics(Robot(model, free.actuated_joints), q, np.zeros(3), [2.0], [pin_], limited=True)


def test_what_cannot_be_followed_is_named() -> None:
    """A pendulum driven at its first joint only cannot be given any acceleration of the second."""
    robot = Robot.from_urdf(double_pendulum().urdf, actuated_joints=[double_pendulum().joint_names[0]])
    q, v = np.array([0.3, 0.4]), np.array([1.0, -1.0])
    with pytest.raises(NotFollowed) as caught:
        inverse_dynamics(robot, q, v, [1.0, 2.0], [])
    assert caught.value.directions == (robot.joint_names[1],)
    passive = constrained_acceleration(robot, q, v, [0.7], []).a
    result = inverse_dynamics(robot, q, v, passive, [])
    assert result.tau[0] == pytest.approx(0.7, rel=1e-10)
    assert result.uncontrolled == (robot.joint_names[1],)


@pytest.mark.parametrize("seed", range(10))
def test_motion_that_needs_no_effort(seed: int) -> None:
    """Free flight of a floating base: inertial forces and weight balance, and what is left is rounding."""
    robot = solo12()
    rng = np.random.default_rng(seed)
    q, v = random_state(robot, rng)
    free = constrained_acceleration(robot, q, v, np.zeros(robot.nu), []).a
    result = inverse_dynamics(robot, q, v, free, [])
    assert np.abs(result.tau).max() < 1e-9
    assert result.residual < 1e-12
    with pytest.raises(NotFollowed):
        inverse_dynamics(robot, q, v, free + np.eye(robot.nv)[0], [])


def test_leg_on_the_ground_supports_itself() -> None:
    """Statics: the efforts that keep the standing leg at rest are J^T of its weight, and the foot carries it."""
    q = leg().configuration({"slider": 0.264, "hip": 0.6, "knee": -1.2})
    foot = PointAnchor("foot", "foot", (0, 0, 0))
    result = inverse_dynamics(leg(), q, np.zeros(3), [0.0], [foot])
    assert result.lam[2] == pytest.approx(2.5 * 9.81, rel=1e-9)
    forward = constrained_acceleration(leg(), q, np.zeros(3), result.tau, [foot])
    assert np.abs(forward.a).max() < 1e-9


def test_gear_needs_the_reflected_torque() -> None:
    """Through a gear, one motor moves both joints: tau = (M11 + 2 r M12 + r^2 M22) a + bias."""
    joints = double_pendulum().joint_names
    robot, ratio = Robot.from_urdf(double_pendulum().urdf, actuated_joints=[joints[0]], gravity=(0, 0, 0)), -0.6
    q = np.array([0.5, 0.5 * ratio])
    gear = JointCoupling("gear", joints[1], joints[0], ratio)
    result = inverse_dynamics(robot, q, np.zeros(2), [3.0], [gear], independent=[joints[0]])
    along = np.array([1.0, ratio])
    assert result.tau[0] == pytest.approx(3.0 * along @ inertia_of(robot, q) @ along, rel=1e-12)


def test_bad_input_is_refused() -> None:
    """Contacts, wrong numbers of independent velocities and unknown names are refused with our own exceptions."""
    robot, q, pin_ = four_bar()
    zero = np.zeros(3)
    with pytest.raises(InvalidValue, match="PointAnchor"):
        inverse_dynamics(leg(), leg().neutral(), zero, [], [PointContact("c", "foot", (0, 0, 0))])
    with pytest.raises(InvalidValue, match="independent"):
        inverse_dynamics(robot, q, zero, [0.0, 0.0], [pin_], independent=robot.velocity_names[:2])
    with pytest.raises(UnknownName):
        inverse_dynamics(robot, q, zero, [0.0], [pin_], independent=["nothing"])
    with pytest.raises(ConstrainedSimError):
        inverse_dynamics(robot, q, zero, [np.nan], [pin_])


def test_rows_that_no_acceleration_keeps_are_reported() -> None:
    """A straight leg cannot both swing and keep its foot's height: the rows' residual says so, as forward dynamics."""
    rows = [PointAnchor("foot", "foot", (0, 0, 0), normals=[(0, 0, 1)]), JointVelocity("still", "slider", 0.0)]
    q, v = np.array([0.5, 0.0, 0.0]), np.array([0.0, 3.0, -2.0])
    result = inverse_dynamics(leg(), q, v, [1.0, 1.0], rows, independent=["hip", "knee"])
    assert result.residual < 1e-14
    assert result.constraint_residual > 1e-2
    assert constrained_acceleration(leg(), q, v, result.tau, rows).constraint_residual > 1e-2
    bent = inverse_dynamics(leg(), [0.3, 0.6, -1.0], np.zeros(3), [1.0], rows, independent=["knee"])
    assert bent.constraint_residual < 1e-14


def test_every_independent_velocity_is_named_once() -> None:
    """Twice the same is refused like a wrong number of them."""
    drive = JointVelocity("drive", "hip", 0.0)
    with pytest.raises(InvalidValue, match="2 different velocities"):
        inverse_dynamics(leg(), [0.3, 0.6, -1.2], np.zeros(3), [1.0, 1.0], [drive], independent=["slider", "slider"])


@pytest.mark.parametrize(("least", "largest"), [(1.0, 2.0), (1.0, 1.0)])
def test_limits_that_no_effort_of_zero_keeps(least: float, largest: float) -> None:
    """A motor that cannot rest, and a joint that is to: refused by its name."""
    motor = f'<motor joint="j" ctrlrange="{least} {largest}"/>'
    robot = Robot.from_mjcf(
        '<mujoco><option gravity="0 0 0"/><worldbody><body name="l"><joint name="j" type="hinge"/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody><actuator>{motor}</actuator></mujoco>'
    )
    with pytest.raises(NotFollowed, match="j"):
        inverse_dynamics(robot, [0.0], [0.0], [0.0], [], limited=True)
