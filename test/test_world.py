"""The world that the node drives, without ROS: what a reset keeps, and what changes of options do."""

import numpy as np
import pytest
from mechanisms import ROOT

from constrained_sim import Baumgarte, JointCoupling, PointAnchor, PointContact, Projection, Wrench
from constrained_sim.config import read_config
from constrained_sim.parameter_file import load_parameters
from constrained_sim.ros.world import World


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
