"""Assembly: loops close from rough guesses, within limits, and failure is measured."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from mechanisms import (
    ROOT,
    SOLO_FEET,
    chain,
    double_pendulum,
    inertia_of,
    joint,
    link,
    point_of,
    property_test,
    random_state,
    random_tree,
    seeds,
    simulator,
    solo12,
    standing_solo,
    urdf,
)

from constrained_sim import (
    FrameAnchor,
    JointCoupling,
    JointVelocity,
    PointAnchor,
    PointContact,
    Robot,
    Simulator,
    assemble,
    load_config,
)
from constrained_sim.exceptions import InvalidValue, UnknownName, ViolatedConstraint

BASE = (0.6, 0.0, -0.1)


def four_bar():
    """Return three unequal rods and the anchor that pins their tip to a second bearing."""
    return chain((0.3, 0.7, 0.5)), PointAnchor("pin", "tip", (0, 0, 0), point_b=BASE)


@property_test(25)
@given(seed=seeds)
def test_four_bar_from_anywhere(seed):
    """A linkage that can close does so from guesses far from closed; a zero row (out of plane) is no obstacle."""
    robot, pinned = four_bar()
    guess = np.random.default_rng(seed).uniform(-1.0, 1.0, 3)
    found = assemble(robot, guess, [pinned])
    assert found.closed
    assert found.residual < 1e-14
    assert found.violations == {"pin": found.residual}
    assert np.abs(point_of(robot, found.q, "tip") - BASE).max() == pytest.approx(found.residual, abs=1e-15)


def test_rounded_configuration_stays_where_it_is():
    """Digits cut off by a file are put back, however far the linkage could move: Cassie, which has 18 freedoms left."""
    config = load_config(ROOT / "config" / "cassie.yaml")
    found = assemble(config.robot, config.q, [])
    assert found.residual < 1e-12
    assert 1e-9 < np.abs(found.q - config.q).max() < 1e-6


def test_held_joints_stay():
    """With the crank held, the closed form of the triangle: the elbow that is nearer to the guess."""
    robot, pinned = four_bar()
    found = assemble(robot, np.array([0.4, -0.9, -1.0]), [pinned], held=["joint0"])
    assert found.q[0] == 0.4
    elbow = point_of(robot, found.q, "rod1")
    distance = np.linalg.norm(np.array(BASE) - elbow)
    inner = np.arccos((0.7**2 + 0.5**2 - distance**2) / (2 * 0.7 * 0.5))
    assert abs(found.q[2]) == pytest.approx(np.pi - inner, abs=1e-12)
    assert found.closed


def limited_arm():
    """Return two rods of 0.5 m whose elbow bends one way only."""
    limits = [f'<limit lower="{a}" upper="{b}" effort="9" velocity="9"/>' for a, b in ((-3.0, 3.0), (0.1, 2.5))]
    return Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("upper", 1.0, (0, 0, -0.25)),
            joint("shoulder", "revolute", "base", "upper", more=limits[0]),
            link("lower", 1.0, (0, 0, -0.25)),
            joint("elbow", "revolute", "upper", "lower", origin=(0, 0, -0.5), more=limits[1]),
            '<link name="hand"/>',
            joint("wrist", "fixed", "lower", "hand", origin=(0, 0, -0.5)),
        )
    )


def test_limits_choose_the_branch():
    """From a guess on the forbidden branch, and beyond it, the solution within the limits is found."""
    robot = limited_arm()
    target = point_of(robot, np.array([0.3, 0.9]), "hand")
    reach = PointAnchor("reach", "hand", (0, 0, 0), point_b=target)
    for guess in ([1.4, -0.9], [0.0, -2.0], [1.2, 0.2]):
        found = assemble(robot, np.array(guess), [reach])
        assert found.closed
        np.testing.assert_allclose(found.q, [0.3, 0.9], atol=1e-12)


def test_far_limits_change_nothing():
    """From wherever a four-bar begins it closes within a turn, the same way whether its hinges have (far) limits."""
    robot, pinned = four_bar()
    far = robot.with_joints({name: {"lower": -1e6, "upper": 1e6} for name in robot.joint_names})
    rng = np.random.default_rng(0)
    for _ in range(40):
        guess = rng.uniform(-np.pi, np.pi, 3)
        found = assemble(robot, guess, [pinned])
        assert found.closed
        assert np.abs(found.q - guess).max() < 2.0 * np.pi
        np.testing.assert_allclose(assemble(far, guess, [pinned]).q, found.q, atol=1e-9)


def test_what_cannot_be_reached_is_measured():
    """The nearest configuration within the limits, and how far off it is."""
    robot = limited_arm()
    found = assemble(robot, np.array([0.2, 0.5]), [PointAnchor("reach", "hand", (0, 0, 0), point_b=(0.0, 0.0, -1.5))])
    straightest = np.sqrt(0.5 + 0.5 * np.cos(0.1))
    assert not found.closed
    assert found.q[1] == pytest.approx(0.1, abs=1e-6)
    assert found.residual == pytest.approx(1.5 - straightest, abs=1e-6)


@property_test(15)
@given(seed=seeds)
def test_trees_with_loops_of_every_kind(seed):
    """Anchors, couplings and redundant copies of them; floating bases keep their unit quaternions."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 8, floating_base=bool(seed % 2))
    q, _ = random_state(robot, rng)
    moving = [name for name in robot.joint_names if robot.model.joints[robot.model.getJointId(name)].nq == 1]
    wanted = [
        PointAnchor("point", "link8", (0.1, 0.0, 0.2), point_b=point_of(robot, q, "link8", (0.1, 0.0, 0.2))),
        PointAnchor("again", "link8", (0.1, 0.0, 0.2), point_b=point_of(robot, q, "link8", (0.1, 0.0, 0.2))),
        FrameAnchor("frame", "link8", pin.SE3.Identity(), "link8", pin.SE3.Identity()),
    ]
    if len(moving) > 1:
        at = {name: q[robot.model.joints[robot.model.getJointId(name)].idx_q] for name in moving[:2]}
        wanted.append(JointCoupling("gear", *moving[:2], 2.0, at[moving[0]] - 2.0 * at[moving[1]]))
    guess = pin.integrate(robot.model, q, rng.uniform(-0.15, 0.15, robot.nv))
    found = assemble(robot, guess, wanted)
    assert found.residual < 1e-12
    assert pin.isNormalized(robot.model, found.q, 1e-12)


def test_standing_on_four_anchored_feet():
    """Twelve rows of solo12, from a guess that is centimetres off."""
    robot, q = solo12(), standing_solo()
    feet = [PointAnchor(foot, foot, (0, 0, 0), point_b=point_of(robot, q, foot)) for foot in SOLO_FEET]
    guess = pin.integrate(robot.model, q, np.random.default_rng(0).uniform(-0.2, 0.2, robot.nv))
    found = assemble(robot, guess, feet)
    assert found.residual < 1e-13
    lower, upper = robot.tangent_limits(found.q)
    assert (lower <= 0.0).all()
    assert (upper >= 0.0).all()


def test_refusals():
    """Contacts and unknown joints are refused; velocity-level constraints have no position."""
    robot = double_pendulum()
    with pytest.raises(InvalidValue, match="bilateral"):
        assemble(robot, np.zeros(2), [PointContact("ground", "tip", (0, 0, 0))])
    with pytest.raises(UnknownName, match="joint0"):
        assemble(robot, np.zeros(2), [], held=["elbow"])
    found = assemble(robot, np.array([0.1, 0.2]), [JointVelocity("motor", "joint0", 1.0)])
    np.testing.assert_array_equal(found.q, [0.1, 0.2])
    assert found.closed


# -- in a simulator


def test_simulator_assembles_on_request():
    """A violated constraint is refused, or closed; on a moving robot the closing is an impact."""
    robot, pinned = four_bar()
    sim = Simulator(robot)
    sim.reset([0.5, 1.0, -0.3], [1.0, -1.0, 2.0])
    before = sim.state
    with pytest.raises(ViolatedConstraint):
        sim.add(pinned)
    assert sim.state == before
    assert sim.constraints == ()
    impact = sim.add(pinned, assemble=True)
    assert np.abs(point_of(robot, sim.state.q, "tip") - BASE).max() < 1e-13
    assert impact.energy_lost > 0.0
    assert sim.largest_violation()[1] < 1e-13
    sim.reset([0.5, 1.0, -0.3], [1.0, -1.0, 2.0], assemble=True)
    assert max(sim.largest_violation()) < 1e-13
    assert np.abs(sim.state.v).max() > 0.1
    with pytest.raises(ViolatedConstraint, match="far"):
        sim.add(PointAnchor("far", "rod0", (0, 0, 0), point_b=(5.0, 0, 0)), assemble=True)
    assert [constraint.name for constraint in sim.constraints] == ["pin"]


def test_enable_and_disable():
    """Off, a constraint keeps its name and place, and holds nothing; on again, it holds where it is then."""
    robot = double_pendulum()
    hand, elbow = PointAnchor("hand", "tip", (0, 0, 0)), PointAnchor("elbow", "rod1", (0, 0, 0), normals=[(0, 0, 1)])
    sim = simulator(robot, [0.5, -1.0], None, [hand, elbow])
    held = sim.state.q
    sim.run(0.05)
    np.testing.assert_allclose(sim.state.q, held, atol=1e-8)
    assert sim.enable("hand", False) is None
    assert sim.enable("elbow", False) is None
    assert (sim.constraints, sim.disabled) == ((), (hand, elbow))
    sim.run(0.05)
    assert np.abs(sim.state.q - held).max() > 1e-3
    moving = sim.state.v
    impact = sim.enable("hand")
    assert impact.energy_lost == pytest.approx(0.5 * moving @ inertia_of(robot, sim.state.q) @ moving, rel=1e-9)
    assert sim.constraints == (hand,)
    sim.enable("elbow")
    assert sim.constraints == (hand, elbow)
    assert sim.enable("elbow") is None
    held = point_of(robot, sim.state.q, "tip")
    sim.run(0.05)
    np.testing.assert_allclose(point_of(robot, sim.state.q, "tip"), held, atol=1e-8)
    sim.enable("elbow", False)
    sim.reset([0.1, 0.2])
    assert sim.constraints == (hand,)
    sim.remove("elbow")
    assert sim.disabled == ()
    with pytest.raises(UnknownName, match="hand"):
        sim.enable("elbow")


def test_wrench_of_a_step():
    """The anchor of a hanging pendulum carries its weight, on both bodies and in the axes of either."""
    robot = chain((0.5, 0.35), (2.0, 1.0))
    sim = simulator(
        robot,
        [0.3, -0.3],
        None,
        [PointAnchor("weld", "rod1", (0, 0, 0), "rod0"), PointAnchor("hand", "tip", (0, 0, 0))],
    )
    for _ in range(20):
        result = sim.step()
    world = result.wrench("hand", "tip")
    np.testing.assert_allclose(world[:3], result.multipliers("hand"), atol=1e-12)
    turned = result.wrench("hand", "tip", axes="rod0")
    np.testing.assert_allclose(turned[:3], pin.exp3(np.array([0, -0.3, 0])) @ world[:3], atol=1e-6)
    np.testing.assert_allclose(result.wrench("weld", "rod1"), -result.wrench("weld", "rod0"), atol=1e-12)
    with pytest.raises(UnknownName, match="rod0"):
        result.wrench("weld", "tip")
