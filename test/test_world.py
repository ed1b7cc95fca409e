"""The world that the node drives, without ROS: what a reset keeps, and what changes of options do."""

import numpy as np
import pytest
from mechanisms import ROOT, joint, link, urdf
from test_objects import DOOR

from constrained_sim import (
    Baumgarte,
    Box,
    Collisions,
    JointCoupling,
    PointAnchor,
    PointContact,
    Projection,
    Robot,
    Simulator,
    WorldObject,
    Wrench,
)
from constrained_sim.config import read_config
from constrained_sim.exceptions import InvalidValue
from constrained_sim.parameter_file import load_parameters
from constrained_sim.ros.world import Period, World


def world_of(name="leg", **parameters):
    """Return the world of one of the configurations, with other top-level parameters."""
    return World(read_config(load_parameters(ROOT / "config" / f"{name}.yaml") | parameters, ROOT / "config"))


def reset(world, **options):
    """Reset to the configured state."""
    options = {"keep_time": False, "keep_constraints": False} | options
    world.reset(world.config.q, world.config.v, **options)


def names(constraints):
    return [constraint.name for constraint in constraints]


def test_reset_starts_with_what_is_in_effect():
    """Configured for another stepper, which could not do the contact that was added since: the reset is not refused."""
    world = world_of(stepper="smooth", contacts={})
    world.sim.set_stepper("time_stepping")
    world.sim.set_solver("null_space")
    world.sim.set_contact_method("admm")
    world.sim.add(PointContact("foot", "foot", (0.0, 0.0, 0.0), friction=0.5))
    reset(world, keep_constraints=True)
    assert names(world.sim.constraints) == ["foot"]
    sim = world.sim
    assert (sim.stepper_name, sim.solver.name, sim.contact_method) == ("time_stepping", "null_space", "admm")
    assert world.advance() is not None


def test_reset_keeps_what_is_switched_off_and_what_was_removed():
    """What was declared switched off stays so; a coupling of the robot itself that was removed stays away."""
    world = world_of()
    world.sim.add(JointCoupling("gear", "knee", "hip", -2.0), enabled=False)
    reset(world, keep_constraints=True)
    assert names(world.sim.constraints) == ["foot"]
    assert names(world.sim.disabled) == ["gear"]
    reset(world)
    assert names(world.sim.disabled) == []

    cassie = world_of("cassie")
    own = cassie.config.robot.constraints
    assert own
    cassie.sim.remove(own[0].name)
    cassie.sim.enable(own[1].name, False)
    kept = names(cassie.sim.constraints)
    reset(cassie, keep_constraints=True)
    assert names(cassie.sim.constraints) == kept
    assert names(cassie.sim.disabled) == [own[1].name]
    reset(cassie)
    assert names(own) == names(cassie.sim.constraints)[: len(own)]


def test_drift_is_removed_as_configured():
    """The metric counts with every stepper, feedback with those that can do it."""
    options = world_of(projection_metric="euclidean").config.simulation
    for stepper in ("smooth", "time_stepping", "event_driven"):
        assert options.make_stabilization(stepper) == Projection("euclidean")
    options = world_of(stepper="smooth", time_constant=0.1, contacts={}).config.simulation
    feedback = options.make_stabilization("smooth")
    assert isinstance(feedback, Baumgarte)
    assert (feedback.kp, feedback.kd) == pytest.approx((100.0, 20.0))
    assert options.make_stabilization("time_stepping") == Projection()


def test_motion_to_infinity_freezes():
    """Whatever the force that does it, the world is frozen, keeps its state, and goes on after a reset."""
    for force in (1e12, 1e20, 1e160):
        world = world_of()
        world.sim.add(PointAnchor("rail", "carriage", (0.0, 0.0, 0.0), normals=[(1, 0, 0)]))
        world.sim.apply(Wrench("foot", force=(force, force, force)), 1.0)
        with np.errstate(all="ignore"):
            for _ in range(20):
                if world.advance() is None:
                    break
        assert world.frozen
        assert np.isfinite(world.sim.state.v).all()
        reset(world)
        assert world.advance() is not None


LEAF = urdf(
    '<link name="frame"/>',
    link("leaf", 1.0, (0.2, 0.0, 0.0), (0.01, 0.1, 0.1)),
    joint(
        "hinge", "revolute", "frame", "leaf", (0, 0, 1), more='<limit lower="-1" upper="0.5" effort="1" velocity="9"/>'
    ),
)


def hinged(name):
    """Return a leaf with a position limit of 0.5 rad, which no constraint of its own keeps."""
    return WorldObject(name, Robot.from_urdf(LEAF, actuated_joints=()), (0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0))


def test_a_wrench_on_an_object_that_goes_is_gone():
    """It was sent for the next period; the object is deleted before that begins."""
    world = world_of()
    world.change_objects([hinged("door")])
    world.push(Wrench("door/leaf", (0.0, 1.0, 0.0)))
    world.change_objects([])
    assert world.advance() is not None and not world.frozen


def test_joint_limits_come_and_go_with_objects():
    """Where joints stop at their limits, those of an object that comes do; a reset brings back none that has gone."""
    world = world_of(joint_limits=True)
    before = names(world.sim.constraints)
    world.change_objects([hinged("door")])
    assert names(world.sim.constraints) == [*before, "door/hinge limit"]
    hinge = world.sim.robot.joint_models["door/hinge"]
    for _ in range(600):
        world.push(Wrench("door/leaf", (0.0, 4.0, 0.0), point=(0.3, 0.0, 0.0)))
        world.advance()
    assert world.sim.state.q[hinge.idx_q] == pytest.approx(0.5, abs=1e-6)
    reset(world, keep_constraints=True, keep_objects=True)
    assert names(world.sim.constraints) == [*before, "door/hinge limit"]
    world.change_objects([])
    for keep in (True, False):
        reset(world, keep_constraints=keep)
        assert names(world.sim.constraints) == before
    assert world.advance() is not None


@pytest.mark.parametrize("keep", [True, False])
def test_an_object_that_a_reset_brings_back_has_its_constraints(keep, tmp_path):
    """Its limits, as those of the configuration; what was removed of the robot stays away if it is to."""
    (tmp_path / "door.urdf").write_text(DOOR.replace('"frame"', '"world"'))
    door = {"urdf": str(tmp_path / "door.urdf"), "pose": [0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0]}
    world = world_of(joint_limits=True, objects={"door": door})
    configured = names(world.sim.constraints)
    assert any(name.startswith("door/") for name in configured)
    world.change_objects([])
    world.sim.remove("foot")
    q, v = world.configured.q, world.configured.v
    world.reset(q, v, keep_time=False, keep_constraints=keep, keep_objects=False)
    wanted = set(configured) - {"foot"} if keep else set(configured)
    assert set(names(world.sim.constraints)) == wanted


@pytest.mark.parametrize("enabled", [True, False])
def test_constraint_on_what_a_reset_takes_away_is_named(enabled):
    """It cannot be kept without the object: the refusal says so, and that keeping both, or removing it, is the way."""
    world = world_of()
    world.change_objects([hinged("door")])
    world.sim.add(PointAnchor("latch", "door/leaf", (0.3, 0.0, 0.0)), enabled=enabled)
    q, v = world.configured.q, world.configured.v
    with pytest.raises(InvalidValue, match=r"keep_constraints, with 'latch' .* keep_objects: true, or once 'latch'"):
        world.reset(q, v, keep_time=False, keep_constraints=True, keep_objects=False)
    reset(world, keep_constraints=True)
    world.sim.remove("latch")
    world.reset(q, v, keep_time=False, keep_constraints=True, keep_objects=False)
    assert world.config.robot.objects == ()


def test_wrenches_of_a_period_have_the_moments_of_its_steps():
    """A box that spins and slides on another: its corners change their numbers, the mean of the moments stays."""
    scene = Collisions({"table": Box((6.0, 6.0, 0.2), position=(0.0, 0.0, -0.1))}, friction=0.3)
    robot = Robot.from_urdf(urdf(link("box", 2.0, shape='<box size="0.4 0.3 0.2"/>')), floating_base=True)
    q = robot.configuration({}, (0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0))
    sim, changes = Simulator(robot, collisions=scene, q=q, v=[1.0, 0.0, 0.0, 0.0, 0.0, 6.0]), 0
    for _ in range(100):
        period = Period(0, tuple(sim.step() for _ in range(4)), 0, False)
        steps = [result.contact_forces.values() for result in period.results]
        expected = np.mean([sum(np.cross(c.position, c.force) + c.moment for c in each) for each in steps], axis=0)
        reported = sum(
            np.cross(contact.position, period.mean_forces[name]) + period.mean_moments[name]
            for name, contact in period.contacts.items()
        )
        assert reported == pytest.approx(expected, abs=1e-12)
        first, last = (period.results[i].contact_forces["box_0/table#0"].position for i in (0, -1))
        changes += np.linalg.norm(first - last) > 0.1
    assert changes
