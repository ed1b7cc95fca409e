"""Robots as they are published, dropped in any attitude on their collision geometry."""

from __future__ import annotations

from importlib.metadata import files

import numpy as np
import pytest
from mechanisms import linear_momentum

from constrained_sim import Collisions, Plane, Robot, Simulator
from constrained_sim.dynamics.dynamics import kinematics_at

FALL = 0.02
"""Height [m] of the lowest point at the beginning."""

STILL = 1e-10
"""Largest velocity [m/s, rad/s] of what lies still, to rounding."""

STILL_STEPS = 50
"""So many steps in a row without motion are rest."""

DESCRIPTIONS = {
    file.name.removesuffix(".urdf"): file.locate()
    for file in files("example-robot-data") or []
    if file.name
    in {
        "a1.urdf",
        "alex_nub_hands.urdf",
        "b1.urdf",
        "bolt.urdf",
        "borinot_flying_arm_2.urdf",
        "centauro.urdf",
        "g1_29dof_rev_1_0.urdf",
        "go2.urdf",
        "hyq_no_sensors.urdf",
        "icub_reduced.urdf",
        "iris.urdf",
        "quadruped.urdf",
        "romeo_small.urdf",
        "simple_humanoid.urdf",
        "solo.urdf",
        "talos_reduced.urdf",
        "talos_reduced_box.urdf",
        "tiago_no_hand.urdf",
    }
}


def published(name: str) -> Robot:
    """Return a robot of example-robot-data."""
    return Robot.from_urdf(str(DESCRIPTIONS[name]), floating_base=True)


def falling(robot: Robot, seed: int) -> Simulator:
    """Return a robot in a random attitude, its joints within their limits, spinning :data:`FALL` above the ground."""
    rng = np.random.default_rng(seed)
    q, v = robot.within_limits(robot.neutral()), np.zeros(robot.nv)
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    v[3:6] = rng.normal(size=3)
    everything = Collisions({"ground": Plane()}, margin=100.0).bind(robot)
    q[2] += FALL - everything.contacts(kinematics_at(robot, q))[1].min()
    ground = Collisions({"ground": Plane()}, friction=0.7)
    return Simulator(robot, robot.joint_limits(), q=q, v=v, collisions=ground, contact_tolerance=1e-7)


def dropped(sim: Simulator, steps: int, deepest: float, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Simulate, and return the momentum gained, and what forces, impulses and weight gave [N s], both per kilogram.

    Args:
        sim: the robot.
        steps: how many; fewer where it lies still for :data:`STILL_STEPS`.
        deepest: penetration that no step may exceed [m].
        gain: energy that contacts may give in no step [J/kg].
    """
    robot, before = sim.robot, linear_momentum(sim.robot, sim.state.q, sim.state.v)
    received, touched = np.zeros(3), 0
    still = 0
    for _ in range(steps):
        result = sim.step()
        received += sim.dt * sum((contact.force for contact in result.contact_forces.values()), np.zeros(3))
        for impact in result.impacts:
            received += sum(impact.contact_impulses.values(), np.zeros(3))
        touched += any(contact.normal_force > 0.0 for contact in result.contact_forces.values())
        assert sim.largest_violation()[0] < deepest
        assert result.energy.contacts < gain * robot.mass
        still = still + 1 if np.abs(sim.state.v).max() < STILL else 0
        if still == STILL_STEPS:
            break
    assert touched > 20
    gained = linear_momentum(robot, sim.state.q, sim.state.v) - before
    return gained / robot.mass, received / robot.mass + robot.gravity * sim.state.t


@pytest.mark.parametrize("name", sorted(set(DESCRIPTIONS) - {"talos_reduced"}))
def test_published_robots_fall(name: str) -> None:
    """Contact forces, impulses and weight are the change of momentum; contacts only take energy, nothing sinks in."""
    sim = falling(published(name), seed=1)
    gained, received = dropped(sim, 250, deepest=1e-6, gain=1e-9)
    assert gained == pytest.approx(received, abs=1e-12)
    assert abs(sim.integration_energy()) < 1e-4 * sim.robot.mass


@pytest.mark.parametrize("name", ["a1", "bolt", "hyq_no_sensors", "iris"])
def test_published_robots_fall_from_event_to_event(name: str) -> None:
    """The same, to the accuracy of the adaptive integration of forces and motion."""
    sim = falling(published(name), seed=1)
    sim.set_stepper("event_driven")
    gained, received = dropped(sim, 150, deepest=1e-11, gain=1e-11)
    assert gained == pytest.approx(received, abs=1e-8)
    assert abs(sim.integration_energy()) < 1e-10 * sim.robot.mass


@pytest.mark.parametrize("seed", [1, 2])
def test_humanoid_comes_to_rest_on_its_meshes(seed: int) -> None:
    """With friction in the joints of its legs too, of which the description has none, it lies still within 1.2 s."""
    robot = published("talos_reduced")
    rubbing = {"friction": 3.0, "damping": 1.0}  # N m, N m s/rad: little for the gears of legs that carry 90 kg
    robot = robot.with_joints({name: rubbing for name in robot.actuated_joints if name.startswith("leg_")})
    sim = falling(robot, seed)
    gained, received = dropped(sim, 1200, deepest=1e-5, gain=1e-9)
    assert np.abs(sim.state.v).max() < STILL
    assert gained == pytest.approx(received, abs=1e-12)
