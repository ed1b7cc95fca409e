"""Runs under joint feedback: the law itself, and that many steps in one kernel are those steps one by one."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from mechanisms import (
    BLOCK_HALF,
    LIMIT,
    ROOT,
    ball,
    bias_of,
    block,
    corners,
    double_pendulum,
    joint,
    leg,
    leg_config,
    link,
    random_tree,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    urdf,
)

from constrained_sim import (
    Compliant,
    FrameAnchor,
    HuntCrossley,
    JointCoupling,
    JointLimit,
    JointVelocity,
    Plane,
    PointAnchor,
    PointContact,
    PointDistance,
    Posture,
    Robot,
    Simulator,
    Trajectory,
    Wrench,
    load_config,
    project_velocity,
)
from constrained_sim.contact_solvers import METHODS
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue, NonFiniteState, UnknownName


def one_by_one(posture):
    """Return `posture` as a function that no kernel knows."""
    return lambda t, q, v: posture.efforts(q, v)


# -- the law


def test_feedback_is_that_of_springs_and_dampers():
    """tau = feed_forward + stiffness (q_0 - q) - damping v, joint by joint, gains one for all or one for each."""
    robot, v = double_pendulum(), np.array([0.5, -2.0])
    posture = Posture(robot, [0.3, -0.2], [10.0, 20.0], 0.5, [1.0, 2.0])
    expected = [1.0 + 10.0 * (0.3 - 0.1) - 0.5 * 0.5, 2.0 + 20.0 * (-0.2 - 0.4) + 0.5 * 2.0]
    np.testing.assert_allclose(posture(0.0, np.array([0.1, 0.4]), v), expected, rtol=1e-15)
    moved = posture.about([1.3, 0.8])
    np.testing.assert_allclose(moved(0.0, np.array([1.1, 1.4]), v), expected, rtol=1e-14)
    np.testing.assert_allclose(posture(0.0, np.array([0.1, 0.4]), v), expected, rtol=1e-15)


@pytest.mark.parametrize(("goal", "angle", "way"), [(3.0, -3.0, 6.0 - 2.0 * np.pi), (0.5, 0.2, 0.3)])
def test_continuous_joints_go_the_shorter_way(goal, angle, way):
    """They have no first turn: from -3 rad to 3 rad it is 0.28 rad backwards."""
    robot = Robot.from_urdf(
        urdf('<link name="base"/>', link("wheel", 1.0), joint("axle", "continuous", "base", "wheel"))
    )
    posture = Posture(robot, robot.configuration({"axle": goal}), 1.0, 0.0)
    effort = posture.efforts(robot.configuration({"axle": angle}), np.zeros(1))
    assert effort[0] == pytest.approx(way, rel=1e-14)


def test_springs_carry_the_weight_at_rest():
    """A pendulum that has come to rest is where stiffness times sag is the moment of its weight."""
    robot, goal = double_pendulum(), np.array([0.6, -0.4])
    end = simulator(robot, goal).run(5.0, Posture(robot, goal, 200.0, 20.0))
    weight = bias_of(robot, end.q[-1], np.zeros(2))
    np.testing.assert_allclose(200.0 * (goal - end.q[-1]), weight, rtol=1e-9)
    np.testing.assert_allclose(end.tau[-1], weight, rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.3], 1.0, 1.0), InvalidValue, "q"),
        (([0.3, np.nan], 1.0, 1.0), InvalidValue, "q"),
        (([0.3, 0.2], [1.0, 2.0, 3.0], 1.0), InvalidValue, "stiffness"),
        (([0.3, 0.2], 1.0, np.inf), InvalidValue, "damping"),
        (([0.3, 0.2], 1.0, 1.0, "much"), InvalidValue, "feed_forward"),
        (([0.3, 0.2], [[1.0], [1.0, 2.0]], 1.0), InvalidValue, "stiffness"),
    ],
)
def test_bad_postures_are_refused(arguments, error, message):
    """With the name of what is wrong."""
    with pytest.raises(error, match=message):
        Posture(double_pendulum(), *arguments)
    with pytest.raises(InvalidValue, match=r"^q: got"):
        Posture(double_pendulum(), [0.3, 0.2], 1.0, 1.0).efforts(np.zeros(1), np.zeros(2))


def test_a_joint_with_several_degrees_of_freedom_has_no_posture():
    """Its name is in the message."""
    parts = ['<link name="base"/>', link("body", 1.0), joint("free", "floating", "base", "body")]
    robot = Robot.from_urdf(urdf(*parts), actuated_joints=["free"])
    with pytest.raises(UnknownName, match="free"):
        Posture(robot, robot.neutral(), 1.0, 1.0)
    assert simulator(robot, robot.neutral()).run(0.01).q[-1, 2] < 0.0


def test_a_posture_of_another_robot_is_refused():
    """Its indices would be those of other joints; that of an equal robot, as from a pickle, is taken."""
    sim = leg_config().simulator()
    with pytest.raises(InvalidValue, match="another robot"):
        sim.run(0.01, Posture(solo12(), standing_solo(), 1.0, 1.0))
    assert sim.steps == 0
    links = ['<link name="base"/>', link("one", 1.0), link("two", 1.0)]
    ends, robots = (("base", "one"), ("one", "two")), []
    for names in (("a", "b"), ("b", "c")):  # the same joint is the second here, and the first there
        joints = [joint(name, "revolute", *pair, more=LIMIT) for name, pair in zip(names, ends, strict=True)]
        robots.append(Robot.from_urdf(urdf(*links, *joints), actuated_joints=["b"]))
    one, other = robots
    with pytest.raises(InvalidValue, match="another robot"):
        simulator(one, [0.0, 0.0]).run(0.01, Posture(other, [0.0, 0.0], 1.0, 1.0))
    posture = pickle.loads(pickle.dumps(Posture(sim.robot, leg_config().q, 60.0, 1.5)))
    assert len(sim.run(0.01, posture).t) == 10


# -- many steps at once


def falling_leg():
    """Return the leg above the ground, and its posture."""
    config = leg_config()
    return config.simulator(), Posture(config.robot, config.q, 60.0, 1.5)


def limp_leg():
    """Return the leg above the ground without efforts: it folds up and falls over its foot."""
    return leg_config().simulator(), None


def overcharged_leg():
    """Return the leg with springs whose efforts are beyond its limits all the time."""
    config = leg_config()
    return config.simulator(), Posture(config.robot, config.q, 60.0, 1.5, 1e4)


def sliding_solo():
    """Return solo12 that lands on slippery feet, tilted and with a run."""
    v = np.zeros(solo12().nv)
    v[0] = 1.0
    sim = simulator(solo12(), standing_solo(0.01, 0.1), v, solo_contacts(friction=0.1))
    return sim, Posture(solo12(), standing_solo(), 10.0, 0.2)


def rubbing_pendulum():
    """Return a double pendulum with dry friction and damping that comes to its joint limits."""
    robot = double_pendulum().with_joints({"joint0": {"friction": 0.2, "damping": 0.05}})
    limits = [JointLimit("down", "joint1", -0.3, 0.4), JointLimit("up", "joint0", -2.0, 0.9)]
    return simulator(robot, [0.5, 0.0], [3.0, -4.0], limits), Posture(robot, [0.0, 0.0], 0.5, 0.0)


def sliding_block():
    """Return a block without joints that is thrown onto the ground, turning."""
    q = np.array([0.0, 0.0, BLOCK_HALF[2] + 0.02, 0.0, 0.0, 0.0, 1.0])
    return simulator(block(), q, [2.0, 0.3, 0.0, 0.1, 0.2, 2.0], corners(friction=0.3)), None


def springy_block():
    """Return a block that is thrown onto springs and dampers, turning: it lands, slides, rocks and takes off again."""
    q = np.array([0.0, 0.0, BLOCK_HALF[2] + 0.002, 0.0, 0.0, 0.0, 1.0])
    law = Compliant(stiffness=5e3, damping=5.0, tangential_stiffness=2e3)
    return simulator(block(), q, [1.0, 0.3, -0.5, 0.1, 0.2, 2.0], corners(friction=0.3, law=law)), None


def block_on_own_law():
    """Return the same block, where the normal force is a function of the user's."""
    sim, _ = springy_block()
    law = Compliant(law=lambda depth, rate: 5e3 * depth * (1.0 + 0.1 * rate), tangential_stiffness=2e3)
    return simulator(block(), sim.state.q, sim.state.v, corners(friction=0.3, law=law)), None


def kicking_leg():
    """Return the leg whose hip is moved to and fro while it is dropped, and then hops on its foot."""
    sim = leg_config().simulator()
    sim.add(JointVelocity("motor", "hip", lambda t: (2.0 * np.sin(20.0 * t), 40.0 * np.cos(20.0 * t))))
    return sim, None


def springy_solo():
    """Return solo12 that stands up on elastic feet and is pushed."""
    law = HuntCrossley(2e5, 0.5, tangential_stiffness=5e3, tangential_damping=10.0)
    sim = simulator(solo12(), standing_solo(0.0), constraints=solo_contacts(friction=0.6, law=law))
    sim.apply(Wrench("base_link", (0.0, 5.0, 0.0), point=(0.1, 0.0, 0.0)), 0.15)
    return sim, Posture(solo12(), standing_solo(), 10.0, 0.2)


def tree_in_flight():
    """Return a random tree with continuous joints on a free-flyer, which no contact disturbs."""
    robot = random_tree(np.random.default_rng(3), 6, floating_base=True)
    rng = np.random.default_rng(4)
    return simulator(robot, robot.neutral(), rng.normal(size=robot.nv)), Posture(robot, robot.neutral(), 1.0, 0.1)


def driven_linkage():
    """Return the shipped four-bar linkage, whose crank a spring drives."""
    config = load_config(ROOT / "config" / "four_bar.yaml")
    return config.simulator(), Posture(config.robot, config.q, 0.5, 0.01, 0.2)


def falling_cassie():
    """Return Cassie, with its closed loops and its springs, that falls onto its feet with limp motors."""
    config = load_config(ROOT / "config" / "cassie.yaml")
    q = config.q.copy()
    q[2] += 0.02
    return simulator(config.robot, q, constraints=config.constraints), Posture(config.robot, config.q, 100.0, 5.0)


def tied_tree():
    """Return a tree on a free-flyer with dry friction, tied by a rod, an anchor, a gear, a motor and a locked joint."""
    robot = random_tree(np.random.default_rng(5), 7, floating_base=True).with_joints({"joint6": {"friction": 0.05}})
    constraints = [
        PointDistance("rod", "link3", (0.1, 0.0, 0.0), "world", (0.0, 0.0, 1.0)),
        PointAnchor("slide", "link5", (0.0, 0.1, 0.0), "link0", None, [(1.0, 0.0, 0.0)]),
        JointCoupling("gear", "joint1", "joint2", 2.0),
        JointVelocity("motor", "joint4", 0.3),
        JointLimit("locked", "joint7", 0.0, 0.0),
    ]
    q = robot.neutral()
    v = project_velocity(robot, q, np.random.default_rng(6).normal(size=robot.nv), constraints)
    return simulator(robot, q, v, constraints), Posture(robot, q, 1.0, 0.1)


def welded_tree():
    """Return a tree that hangs on a hinge made of a frame, with two links held together in part, and a push."""
    robot = random_tree(np.random.default_rng(7), 7, floating_base=True)
    constraints = [
        FrameAnchor("hinge", "link1", (0.1, 0.0, 0.2, 0.1, -0.3, 0.2, 0.9), axes=np.eye(6)[:5]),
        FrameAnchor("loop", "link6", np.eye(4), "link3", axes=[(0.0, 1.0, 0.0, 0.0, 0.3, 0.0)]),
    ]
    q = robot.neutral()
    v = project_velocity(robot, q, np.random.default_rng(8).normal(size=robot.nv), constraints)
    sim = simulator(robot, q, v, constraints)
    sim.apply(Wrench("link4", (0.5, -0.2, 0.3), (0.1, 0.0, 0.2), (0.0, 0.1, 0.0), axes="link2"), 0.2)
    return sim, Posture(robot, q, 1.0, 0.1)


def pushed_solo():
    """Return solo12 that stands up and is pushed, from the side and then along its own axis, both at once meanwhile."""
    sim = simulator(solo12(), standing_solo(0.0), constraints=solo_contacts(friction=0.6))
    sim.apply(Wrench("base_link", (0.0, 5.0, 0.0), point=(0.1, 0.0, 0.0)), 0.15)
    sim.apply(Wrench("base_link", (4.0, 0.0, 0.0), (0.0, 0.1, 0.2), axes="base_link"), 0.3)
    return sim, Posture(solo12(), standing_solo(), 10.0, 0.2)


def driven_tree():
    """Return a tree on a free-flyer, one point of which is led along a circle while a joint turns to and fro."""
    robot = random_tree(np.random.default_rng(11), 6, floating_base=True)

    def path(t):
        cos, sin = np.cos(3.0 * t), np.sin(3.0 * t)
        circle = np.array([[cos, sin, 0.0], [-3.0 * sin, 3.0 * cos, 0.0], [-9.0 * cos, -9.0 * sin, 0.0]])
        return 0.1 * circle + [start, np.zeros(3), np.zeros(3)]

    q = robot.neutral()
    start = np.zeros(3)
    anchored = PointAnchor("led", "link2", (0.0, 0.1, 0.0), "world", path)
    start = anchored.bind(robot, q).phi(Dynamics.at(robot, q, np.zeros(robot.nv)))  # so that it is there at first
    constraints = [anchored, JointVelocity("motor", "joint4", lambda t: (np.sin(5.0 * t), 5.0 * np.cos(5.0 * t)))]
    v = project_velocity(robot, q, np.random.default_rng(12).normal(size=robot.nv), constraints)
    return simulator(robot, q, v, constraints), Posture(robot, q, 1.0, 0.1)


def braked_ball():
    """Return a ball that rolls and spins until resistance to both has stopped it."""
    resistance = {"friction": 0.5, "rolling_friction": 5e-3, "torsional_friction": 1e-3}
    contact = PointContact("ground", "ball", (0, 0, 0), Plane(), radius=0.1, **resistance)
    return simulator(ball(0.1), [0, 0, 0.1, 0, 0, 0, 1], [0.05, 0, 0, 0, 0.5, 1.0], [contact]), None


SCENES = [
    falling_leg,
    limp_leg,
    overcharged_leg,
    sliding_solo,
    rubbing_pendulum,
    sliding_block,
    springy_block,
    block_on_own_law,
    kicking_leg,
    springy_solo,
    tree_in_flight,
    driven_linkage,
    falling_cassie,
    tied_tree,
    welded_tree,
    pushed_solo,
    driven_tree,
    braked_ball,
]


def assert_same_bits(one, other):
    """Assert that two trajectories are equal bit by bit."""
    for name in ("t", "q", "v", "tau"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("contact_forces", "contact_moments", "multipliers", "energy"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert list(mine) == list(theirs)
        for key in mine:
            assert mine[key].tobytes() == theirs[key].tobytes(), f"{name} of {key}"
    assert len(one.impacts) == len(other.impacts)
    for mine, theirs in zip(one.impacts, other.impacts, strict=True):
        assert (mine.t, mine.energy_lost) == (theirs.t, theirs.energy_lost)
        assert (mine.v_minus.tobytes(), mine.v_plus.tobytes()) == (theirs.v_minus.tobytes(), theirs.v_plus.tobytes())


@pytest.mark.parametrize("period", [None, 0.007])
@pytest.mark.parametrize("scene", SCENES)
def test_many_steps_at_once_are_those_steps(scene, period):
    """Flight, touchdown, sticking, sliding, limits: each bit as from steps one by one."""
    sim, posture = scene()
    twin = copy.deepcopy(sim)
    law = one_by_one(posture) if posture is not None else (lambda t, q, v: np.zeros(sim.robot.nu))
    expected = twin.run(0.5, law, period)
    found = sim.run(0.5, posture, period)
    assert len(found.t) == 500
    assert_same_bits(found, expected)
    assert (sim.steps, sim.energy, sim.state.t) == (twin.steps, twin.energy, twin.state.t)
    assert sim.largest_violation() == twin.largest_violation()
    assert sim.active_rows() == twin.active_rows()
    assert_same_bits(sim.run(0.05, posture, period), twin.run(0.05, law, period))


@pytest.mark.parametrize(
    "scene",
    [
        driven_linkage,
        falling_cassie,
        tied_tree,
        rubbing_pendulum,
        welded_tree,
        pushed_solo,
        falling_leg,
        driven_tree,
        springy_block,
        block_on_own_law,
        springy_solo,
    ],
)
@pytest.mark.parametrize("solver", ["kokkevis", "projected"])
def test_a_solver_without_kernels_changes_rounding_only(solver, scene):
    """A step that is compiled whole and one that is not solve the same problem: motion, forces and energies."""
    sim, _ = scene()
    for _ in range(30):
        twin = copy.deepcopy(sim)
        twin.set_solver(solver)
        one, other = sim.step(), twin.step()
        largest = max(np.abs(one.lam).max(), 1.0)
        assert np.abs(one.state.q - other.state.q).max() < 1e-12
        assert np.abs(one.state.v - other.state.v).max() < 1e-10
        assert np.abs(one.lam - other.lam).max() < 1e-8 * largest
        assert sim.energy.as_array() == pytest.approx(twin.energy.as_array(), abs=1e-9)


@pytest.mark.parametrize("solver", ["kokkevis", "projected"])
def test_in_fast_motion_a_solver_changes_rounding_only(solver):
    """Where legs turn by half a radian in a step, and take their feet back onto the ground in several steps."""
    sim, _ = pushed_solo()
    for _ in range(5):
        twin = copy.deepcopy(sim)
        twin.set_solver(solver)
        one, other = (which.step(np.full(sim.robot.nu, 100.0)) for which in (sim, twin))
        assert np.abs(one.state.q - other.state.q).max() < 1e-13
        assert np.abs(one.state.v - other.state.v).max() < 1e-13 * np.abs(one.state.v).max()
    assert np.abs(sim.state.v).max() > 500.0


@pytest.mark.parametrize("scene", [driven_linkage, tied_tree, welded_tree, pushed_solo])
def test_a_wrench_of_nothing_changes_nothing(scene):
    """No bit."""
    sim, posture = scene()
    twin = copy.deepcopy(sim)
    twin.apply(Wrench(next(name for name in sim.robot.links if name not in ("universe", "world"))), 0.02)
    assert_same_bits(sim.run(0.03, posture), twin.run(0.03, posture))


UNCOMPILED = """
import sys
sys.path[:0] = sys.argv[1:2]
import numpy as np
import test_posture
runs = {}
for name in sys.argv[3:]:
    sim, posture = getattr(test_posture, name)()
    run = sim.run(0.02, posture)
    runs |= {name + key: getattr(run, key) for key in ("q", "v", "tau")}
np.savez(sys.argv[2], **runs)
"""


TO_COMPARE = falling_leg, tied_tree, welded_tree, driven_tree, pushed_solo, rubbing_pendulum, springy_block


def assert_as_uncompiled(file):
    """Assert that scenes move as another process, which ran `UNCOMPILED`, has written."""
    uncompiled = np.load(file)
    for scene in TO_COMPARE:
        sim, posture = scene()
        run = sim.run(0.02, posture)
        for key in ("q", "v", "tau"):
            expected = getattr(run, key)
            bound = 1e-10 * np.abs(expected).max(initial=1.0)
            np.testing.assert_allclose(uncompiled[scene.__name__ + key], expected, rtol=0, atol=bound)


def test_steps_need_no_compiler(tmp_path):
    """The same source is plain Python with ``NUMBA_DISABLE_JIT=1``, and gives the same motion to rounding."""
    folder, file = str(Path(__file__).parent), str(tmp_path / "runs.npz")
    command = [sys.executable, "-c", UNCOMPILED, folder, file, *(scene.__name__ for scene in TO_COMPARE)]
    subprocess.run(command, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, check=True, timeout=300)
    assert_as_uncompiled(file)


def test_runs_in_parts_are_one_run():
    """Where one ends and the next begins shows nowhere, not even in the parts' own first steps."""
    (sim, posture), (twin, _) = falling_leg(), falling_leg()
    parts = [sim.run(0.013 * (k % 3), posture) for k in range(20)]
    assert_same_bits(Trajectory.joined(parts), twin.run(sim.steps * sim.dt, posture))


def test_parts_that_are_no_run_are_refused():
    """None at all, those of two robots, or forces of other constraints under one name."""
    leg, quadruped = (sim.run(0.002, posture) for sim, posture in (falling_leg(), sliding_solo()))
    for parts in ([], [leg, quadruped]):
        with pytest.raises(InvalidValue, match="of the same robot"):
            Trajectory.joined(parts)
    one, other = (dataclasses.replace(leg, multipliers={"held": np.zeros((2, rows))}) for rows in (1, 3))
    with pytest.raises(InvalidValue, match="rows of 'held'"):
        Trajectory.joined([one, other])


@pytest.mark.parametrize("period", [None, 0.005])
def test_where_one_call_of_the_kernel_ends_shows_nowhere(period, monkeypatch):
    """A few steps in each, which no sample period divides."""
    (sim, posture), (twin, _) = sliding_solo(), sliding_solo()
    expected = twin.run(0.3, one_by_one(posture), period)
    monkeypatch.setattr("constrained_sim.simulator.MOST_AT_ONCE", 7)
    assert_same_bits(sim.run(0.3, posture, period), expected)


@pytest.mark.parametrize(
    "options",
    [
        *({"contact_method": name} for name in METHODS),
        {"contact_tolerance": 1e-6},
        {"integrator": "semi_implicit_euler"},
        {"solver": "range_space"},
        {"dt": 0.0005},
    ],
    ids=str,
)
def test_options_show_in_both(options):
    """Whatever the contact method, tolerance, integrator and step: bouncing, sliding feet, one of them switched off."""
    posture, runs = Posture(solo12(), standing_solo(), 10.0, 0.2), []
    for controller in (posture, one_by_one(posture)):
        contacts = solo_contacts(friction=0.2, restitution=0.4)
        sim = Simulator(solo12(), contacts, q=standing_solo(0.01, 0.1), **options)
        first = sim.run(0.08, controller)
        sim.enable("HR_FOOT", False)
        runs.append(Trajectory.joined([first, sim.run(0.04, controller)]))
    assert runs[0].impacts
    assert_same_bits(*runs)


def test_what_a_subclass_changes_counts():
    """Its own efforts are asked for, step by step."""

    class Raised(Posture):
        def efforts(self, q, v):
            return super().efforts(q, v) + 1.0

    robot = double_pendulum()
    (plain, raised) = (kind(robot, [0.0, 0.0], 5.0, 0.1) for kind in (Posture, Raised))
    first = [simulator(robot, [0.4, -0.9]).run(0.001, posture).tau[0] for posture in (plain, raised)]
    np.testing.assert_allclose(first[1], first[0] + 1.0, rtol=1e-15)


def test_threads_run_copies_side_by_side():
    """Each is what it would be alone."""
    sim, posture = sliding_solo()
    sims = [copy.deepcopy(sim) for _ in range(6)]
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda each: each.run(0.3, posture), sims))
    alone = sim.run(0.3, posture)
    for run in runs:
        assert_same_bits(run, alone)


def test_scenes_are_what_they_say():
    """The legs and the block land, limits are hit, contacts stick and slide, efforts come to their limits."""
    for scene in (falling_leg, limp_leg, sliding_solo, rubbing_pendulum, sliding_block):
        sim, posture = scene()
        assert sim.run(0.5, posture).impacts, scene.__name__
    sim, posture = overcharged_leg()
    np.testing.assert_array_equal(sim.run(0.1, posture).tau, np.tile(leg().effort_limits, (100, 1)))


@pytest.mark.parametrize(
    "options",
    [
        {"command_delay": 0.003},
        {"velocity_limits": True},
        {"stepper": "event_driven"},
        {"stepper": "smooth"},
        {"solver": "gauss"},
        {"constraints": [PointAnchor("hand", "tip", (0, 0, 0), normals=[(1, 0, 0)])]},
        {"constraints": [PointAnchor("hand", "tip", (0, 0, 0), normals=[(1, 0, 0)])], "solver": "null_space"},
    ],
    ids=str,
)
def test_what_no_kernel_does_whole_comes_out_the_same(options):
    """Then the posture is asked step by step."""
    robot = double_pendulum()
    posture = Posture(robot, [0.0, 0.0], 5.0, 0.1)
    runs = [
        simulator(robot, [0.4, -0.9], **options).run(0.05, controller) for controller in (posture, one_by_one(posture))
    ]
    assert_same_bits(*runs)
    assert np.abs(runs[0].tau[4:]).min() > 0.0


def test_what_is_switched_off_does_not_count():
    """A target that is a function of time takes no part, and is not asked, while its constraint is disabled."""
    asked = []

    def speed(t):
        asked.append(t)
        return 0.0, 0.0

    sim, _ = kicking_leg()
    sim.remove("motor")
    twin = copy.deepcopy(sim)
    sim.add(JointVelocity("off", "hip", speed))
    sim.enable("off", False)
    asked.clear()
    assert_same_bits(sim.run(0.3), twin.run(0.3))
    assert not asked


@pytest.mark.parametrize("last", [0.0, 0.0305, 0.1995])
def test_a_target_that_fails_ends_a_run_where_it_does(last):
    """The error comes out at the step that needs the target; the steps before it are done, and are kept."""

    def speed(t):
        if t > last:
            raise RuntimeError("no more data")
        return np.sin(5.0 * t), 5.0 * np.cos(5.0 * t)

    robot = double_pendulum()
    sims = [
        simulator(robot, robot.neutral(), None, [JointVelocity("motor", robot.joint_names[0], speed)]) for _ in range(2)
    ]
    for sim, law in zip(sims, [None, lambda t, q, v: np.zeros(robot.nu)], strict=True):
        with pytest.raises(RuntimeError, match="no more data"):
            sim.run(0.5, law)
    one, other = sims
    assert one.steps == other.steps == int(last / one.dt)
    assert one.state.q.tobytes() == other.state.q.tobytes() and one.state.v.tobytes() == other.state.v.tobytes()


def test_a_push_ends_within_a_run():
    """A wrench that was applied acts for its time, and not a step longer."""
    sim, posture = falling_leg()
    twin = copy.deepcopy(sim)
    for each in (sim, twin):
        each.apply(Wrench("foot", force=(0.0, 0.0, 3.0)), 0.02)
    assert_same_bits(sim.run(0.1, posture), twin.run(0.1, one_by_one(posture)))


def test_efforts_beyond_all_numbers_end_a_run_where_they_end_a_step():
    """The state before it is kept, and the step is named."""
    robot = double_pendulum().with_joints({name: {"effort": np.inf} for name in double_pendulum().actuated_joints})
    for bounded in (robot, double_pendulum()):  # infinite efforts are refused, and not limited
        with pytest.raises(InvalidValue, match="tau"):
            simulator(bounded, [4.0, -9.0]).run(0.01, Posture(bounded, [0.0, 0.0], 1e308, 0.0))
    posture = Posture(robot, [0.0, 0.0], -1e5, 0.0)
    ends = []
    for controller in (posture, one_by_one(posture)):
        sim = simulator(robot, [0.4, -0.9])
        with pytest.raises(NonFiniteState) as caught:
            sim.run(10.0, controller)
        ends.append((str(caught.value), sim.steps, sim.state.q.tobytes(), sim.state.v.tobytes()))
    assert ends[0] == ends[1]
    assert 2 < ends[0][1] < 10_000


def test_a_run_leaves_what_it_returned_alone():
    """Rows that were recorded stay as they are when the simulation goes on, and its state cannot be written."""
    sim, posture = falling_leg()
    first = sim.run(0.05, posture)
    before = first.q.tobytes(), first.contact_forces["foot"].tobytes()
    sim.run(0.05, posture)
    assert (first.q.tobytes(), first.contact_forces["foot"].tobytes()) == before
    with pytest.raises(ValueError, match="read-only"):
        sim.state.q[0] = 1.0
