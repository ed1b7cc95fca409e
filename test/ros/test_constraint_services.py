"""Bilateral constraints at run time: added, listed, removed, and what they carry on constraint_forces."""

import contextlib
import math

import numpy as np
import pytest
from ros.live import PERIOD, Client, nanoseconds, stamp
from sensor_msgs.msg import JointState

from constrained_sim.msg import Constraint, ConstraintForces
from constrained_sim.srv import AddConstraint, ListConstraints, RemoveConstraint

WEIGHT = 2.5 * 9.81


@pytest.fixture
def leg(stepped):
    """A paused leg in the air, and what it publishes on constraint_forces."""
    if "/constraint_forces" not in stepped.client.got:
        stepped.client.subscribe(ConstraintForces, "/constraint_forces")
        stepped.client.wait_for(
            lambda: stepped.client.node.count_publishers("/constraint_forces"), "publisher of constraint_forces"
        )
        stepped.client.spin(0.5)
    stepped.carried = stepped.client.got["/constraint_forces"]
    return stepped


def add(sim, constraint, **options):
    return sim.call(AddConstraint, "add_constraint", constraint=constraint, **options)


def carried_at(sim, when):
    """Return the constraint forces with this stamp [ns]."""
    return sim.wait_for(lambda: [m for m in sim.carried if stamp(m) == when], "constraint forces")[0]


@contextlib.contextmanager
def listening(domain):
    """Return a client that begins to listen to joint_states."""
    client = Client(domain)
    try:
        client.subscribe(JointState, "/joint_states")
        yield client
    finally:
        client.close()


def test_anchor_carries_the_weight_until_it_is_removed(leg):
    """Held by a point the leg does not fall; the anchor carries it; listed as declared; falls when it is removed."""
    answer = add(leg, Constraint(name="crane", kind="point_anchor", link_a="carriage"))
    assert answer.success, answer.message
    assert answer.energy_lost == 0.0
    (listed,) = leg.call(ListConstraints, "list_constraints").constraints
    assert (listed.name, listed.kind, listed.enabled, listed.link_b) == ("crane", "point_anchor", True, "world")
    state, _ = leg.step(3)
    carried = carried_at(leg, stamp(state))
    (force,) = carried.constraints
    assert nanoseconds(carried.period) == PERIOD and carried.header.frame_id == "world"
    assert force.name == "crane" and len(force.multipliers) == 3 and max(map(abs, force.position_error)) < 1e-12
    wrench = force.wrench.force
    assert np.allclose([wrench.x, wrench.z], [force.multipliers[0], force.multipliers[2]], atol=1e-12)
    assert 0.0 < wrench.z < 2 * WEIGHT
    assert state.velocity[0] == pytest.approx(0.0, abs=1e-12)
    assert leg.call(RemoveConstraint, "remove_constraint", name="crane").success
    assert leg.call(ListConstraints, "list_constraints").constraints == []
    state, _ = leg.step()
    assert carried_at(leg, stamp(state)).constraints == []
    leg.carried.clear()
    leg.step(2)
    assert leg.carried == []
    assert leg.states[-1].velocity[0] < -1e-3


def test_locked_joint_stops_at_once(leg):
    """A velocity that is prescribed on a moving leg is an impact: energy is lost, and the joint stands still."""
    leg.command(["hip", "knee"], [2.0, 2.0])
    leg.step(50)
    leg.impacts.clear()
    lock = Constraint(name="lock", kind="joint_velocity", joint="knee")
    leg.states.clear()
    answer = add(leg, lock)
    assert answer.success and answer.energy_lost > 1e-3
    stopped = leg.wait_for(lambda: leg.states, "state after the impact")[-1]
    assert stamp(stopped) == nanoseconds(answer.stamp)
    assert abs(stopped.velocity[stopped.name.index("knee")]) < 1e-12
    (impact,) = leg.wait_for(lambda: leg.impacts, "impact")
    assert impact.energy_lost == answer.energy_lost and stamp(impact) == nanoseconds(answer.stamp)
    (impulse,) = impact.impulses
    assert impulse.name == "lock"
    knee = list(impact.velocity_names).index("knee")
    assert abs(impact.velocity_minus[knee]) > 0.1 and abs(impact.velocity_plus[knee]) < 1e-12
    state, _ = leg.step(5)
    assert abs(state.velocity[state.name.index("knee")]) < 1e-12
    (force,) = carried_at(leg, stamp(state)).constraints
    assert force.link_a == "" and list(force.position_error) == []
    leg.command(["hip", "knee"], [0.0, 0.0])


def test_impulse_of_an_anchor_says_where_it_acts(leg):
    """Grabbed in its fall the foot gets an impulse along the world's axes, at the point that is held."""
    leg.step(50)
    leg.impacts.clear()
    assert add(leg, Constraint(name="grip", kind="point_anchor", link_a="foot")).success
    (impact,) = leg.wait_for(lambda: leg.impacts, "impact")
    (impulse,) = impact.impulses
    assert (impulse.name, impulse.link) == ("grip", "foot")
    linear = [impulse.linear.x, impulse.linear.y, impulse.linear.z]
    assert np.allclose(linear, impulse.rows, atol=1e-12)
    assert linear[2] > 0.01
    state, _ = leg.step()
    (force,) = carried_at(leg, stamp(state)).constraints
    for axis in "xyz":
        assert getattr(impulse.position, axis) == pytest.approx(getattr(force.position, axis), abs=1e-6)
    assert impulse.angular.x == impulse.angular.y == impulse.angular.z == 0.0


def test_constraint_is_assembled_on_request(leg):
    """A coupling that does not hold is refused with its violation, and with `assemble` the leg moves to it."""
    coupling = Constraint(name="gear", kind="joint_coupling", joint="knee", reference_joint="hip", ratio=-1.5)
    answer = add(leg, coupling)
    assert not answer.success and "gear" in answer.message
    assert leg.call(ListConstraints, "list_constraints").constraints == []
    assert add(leg, coupling, assemble=True).success
    moved = leg.wait_for(lambda: leg.states, "state of the leg that has moved")[-1]
    assert moved.position[2] == pytest.approx(-1.5 * moved.position[1], abs=1e-10)
    assert leg.clock == []
    with listening(leg.domain) as newcomer:
        assert newcomer.wait_for(lambda: newcomer.got["/joint_states"], "state")[-1] == moved
    state, _ = leg.step(20)
    hip, knee = (state.position[state.name.index(name)] for name in ("hip", "knee"))
    assert knee == pytest.approx(-1.5 * hip, abs=1e-10)


def test_disabled_constraint_is_listed_and_does_nothing(leg):
    """A constraint that is added switched off keeps its name, and the motion is that without it."""
    state, _ = leg.step(30)
    free = list(state.position)
    leg.reset()
    assert add(leg, Constraint(name="lock", kind="joint_velocity", joint="hip", enabled=False)).success
    (listed,) = leg.call(ListConstraints, "list_constraints").constraints
    assert not listed.enabled
    state, _ = leg.step(30)
    assert list(state.position) == free
    assert not add(leg, Constraint(name="lock", kind="joint_velocity", joint="hip")).success
    assert leg.call(RemoveConstraint, "remove_constraint", name="lock").success


def test_anchor_of_some_axes_is_listed_and_holds_these(leg):
    """One linear direction, which carries the weight, and one angular one, on a carriage that moves along z only."""
    axes = np.eye(6)[[2, 4]]
    answer = add(leg, Constraint(name="rail", kind="frame_anchor", link_a="carriage", axes=axes.ravel()))
    assert answer.success, answer.message
    (listed,) = leg.call(ListConstraints, "list_constraints").constraints
    assert list(listed.axes) == axes.ravel().tolist()
    state, _ = leg.step(3)
    (force,) = carried_at(leg, stamp(state)).constraints
    assert len(force.multipliers) == 2
    assert force.wrench.force.z == pytest.approx(force.multipliers[0], abs=1e-12)
    assert 0.0 < force.wrench.force.z < 2 * WEIGHT
    assert state.velocity[0] == pytest.approx(0.0, abs=1e-12)
    assert leg.call(RemoveConstraint, "remove_constraint", name="rail").success


REFUSED = {
    "kind": (Constraint(name="c", kind="rope"), ("kind of constraint", "rope", "point_anchor")),
    "link": (Constraint(name="c", kind="frame_anchor", link_a="tail"), ("link", "tail", "foot")),
    "axes": (Constraint(name="c", kind="frame_anchor", link_a="foot", axes=[1.0] * 7), ("axes", "six numbers")),
    "joint": (Constraint(name="c", kind="joint_velocity", joint="tail"), ("joint", "tail", "knee")),
    "name": (Constraint(name="", kind="joint_velocity", joint="hip"), ("name", "non-empty")),
    "NaN": (Constraint(name="c", kind="joint_velocity", joint="hip", velocity=math.nan), ("velocity", "nan")),
    "taken": (Constraint(name="foot", kind="joint_velocity", joint="hip"), ("foot", "taken")),
}


@pytest.mark.parametrize("given", REFUSED)
def test_bad_constraint_is_refused_and_nothing_changes(leg, given):
    """The answer says what was given and what is allowed."""
    constraint, texts = REFUSED[given]
    answer = add(leg, constraint)
    assert not answer.success
    for text in texts:
        assert text in answer.message
    assert leg.call(ListConstraints, "list_constraints").constraints == []
    assert not leg.call(RemoveConstraint, "remove_constraint", name="foot").success  # a contact is no constraint
