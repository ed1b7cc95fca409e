"""Copies of robots and simulations go on as the original does, and neither knows of the other."""

import copy
import pickle

import numpy as np
import pytest
from mechanisms import (
    ROOT,
    block,
    corners,
    double_pendulum,
    leg_config,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
)

from constrained_sim import Box, Collisions, Plane, PointAnchor, Wrench, load_config
from constrained_sim.robot import Robot
from constrained_sim.solvers import SOLVERS
from constrained_sim.steppers import substep_runner

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda original: pickle.loads(pickle.dumps(original))}
every_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)

FALLING = """<robot name="stone"><link name="stone">
<inertial><mass value="2"/><inertia ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.3 0.2 0.4"/></geometry></collision></link></robot>"""


def tumbling_block(**options):
    """Return a block that hits the ground with a corner within 0.1 s, pushed while it falls."""
    q, v = [0.0, 0.0, 0.27, 0.18, 0.25, 0.1, 0.9465], [0.3, 0.1, -1.0, 2.0, -1.0, 0.5]
    q[3:] = (np.array(q[3:]) / np.linalg.norm(q[3:])).tolist()
    sim = simulator(block(), q, v, corners(friction=0.4, restitution=0.3), **options)
    sim.apply(Wrench("block", force=(3.0, 0.0, 1.0)), 0.08)
    return sim


def stone_on_a_step(**options):
    """Return a box that falls onto a box and the ground, touching with its collision geometry."""
    scene = {"ground": Plane(), "step": Box((0.4, 0.4, 0.1), (0.2, 0.0, 0.05))}
    robot = Robot.from_urdf(FALLING, floating_base=True)
    q = [0.0, 0.0, 0.38, *(np.array([0.1, 0.2, 0.05, 0.9]) / np.linalg.norm([0.1, 0.2, 0.05, 0.9]))]
    return simulator(robot, q, [0.0, 0.0, -0.5, 0.0, 0.0, 0.0], collisions=Collisions(scene, friction=0.5), **options)


def hanging_solo(**options):
    """Return solo12 on three feet, one of them held by an anchor."""
    contacts = [contact for contact in solo_contacts(friction=0.7) if "FL" not in contact.link]
    anchor = PointAnchor("held", "FL_FOOT", (0.0, 0.0, 0.0))
    return simulator(solo12(), standing_solo(), None, [*contacts, anchor], **options)


def cassie(**options):
    """Return the biped with its closed loops, at the beginning of its run."""
    return load_config(ROOT / "config" / "cassie.yaml").simulator()


def led_pendulum(**options):
    """Return a double pendulum whose tip is led along a line."""
    rail = PointAnchor("rail", "tip", (0, 0, 0), normals=[(1, 0, 0)])
    return simulator(double_pendulum(), [0.4, -0.9], constraints=[rail], **options)


def same(one, other):
    """Return whether two simulations are in the same state, bit by bit, with the same energy audit."""
    states = zip(one.state, other.state, strict=True)
    return all(np.array_equal(a, b) for a, b in states) and one.energy == other.energy


@every_copy
@pytest.mark.parametrize(
    ("make", "options", "before", "after"),
    [
        (tumbling_block, {}, 0.04, 0.2),
        (tumbling_block, {"stepper": "event_driven", "dt": 0.01}, 0.04, 0.1),
        (tumbling_block, {"command_delay": 0.003, "contact_method": "gauss_seidel"}, 0.04, 0.05),
        (stone_on_a_step, {}, 0.15, 0.15),
        *((hanging_solo, {"solver": name}, 0.02, 0.03) for name in SOLVERS if name not in ("gauss", "proximal")),
        (led_pendulum, {"solver": "gauss"}, 0.02, 0.03),
        (cassie, {}, 0.02, 0.03),
    ],
)
def test_copy_of_a_simulation_goes_on_bit_by_bit(copied, make, options, before, after):
    """As the original does, amidst of a fall, a push, a delay; and what it does leaves the original alone."""
    sim = make(**options)
    sim.run(before)
    other, third = copied(sim), copied(sim)
    begin = sim.state
    mine = sim.run(after)
    theirs = other.run(after)
    assert same(sim, other)
    for name, multipliers in mine.multipliers.items():
        assert np.array_equal(multipliers, theirs.multipliers[name], equal_nan=True)
    assert third.state.t == begin.t
    assert np.array_equal(third.state.q, begin.q)
    third.run(after)
    assert same(sim, third)


@every_copy
def test_copy_is_a_simulation_of_its_own(copied):
    """What is added to a copy, and its solver, are its own."""
    sim = leg_config().simulator()
    other = copied(sim)
    other.add(PointAnchor("held", "foot", (0.0, 0.0, 0.0)))
    other.set_solver("null_space")
    other.step([0.1, 0.2])
    assert [constraint.name for constraint in other.constraints] == ["foot", "held"]
    assert [constraint.name for constraint in sim.constraints] == ["foot"]
    assert (sim.solver.name, other.solver.name) == ("range_space", "null_space")
    assert (sim.steps, other.steps) == (0, 1)


def test_robot_comes_back_from_a_pickle_as_it_was():
    """With what with_joints changed; and a robot needs no second self in this process."""
    robot = leg_config().robot.with_joints({"knee": {"armature": 0.01, "stiffness": 3.0, "friction": 0.2}})
    other = pickle.loads(pickle.dumps(robot))
    assert other.model == robot.model
    assert (other.urdf, other.springs, other.actuated_joints) == (robot.urdf, robot.springs, robot.actuated_joints)
    for name in ("dry_friction", "damping", "stiffness", "effort_limits", "velocity_limits"):
        assert np.array_equal(getattr(other, name), getattr(robot, name))
    assert copy.deepcopy(robot) is robot


@every_copy
def test_first_step_of_a_copy_compiles_nothing(copied):
    """The kernel of a step is the one that the original has compiled, also where a tolerance is a whole number."""
    sim = simulator(solo12(), standing_solo(), None, solo_contacts(friction=0.7))
    sim.step()
    known = list(substep_runner.run_substep.signatures)
    twin = copied(sim)
    twin.step()
    twin.set_contact_method("newton", 0)
    twin.step()
    assert list(substep_runner.run_substep.signatures) == known
