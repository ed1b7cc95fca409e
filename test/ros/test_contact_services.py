"""add_contact, remove_contact, list_contacts: what they accept, what they refuse, and when they act."""

import math

import pytest
from ros.bags import Mechanics
from ros.live import PERIOD, START_TIME, URDF, nanoseconds, stamp

from constrained_sim.msg import Contact
from constrained_sim.srv import AddContact, ListContacts, RemoveContact

NAN = math.nan
GROUNDED = {"slider": 0.32 * math.cos(0.6), "hip": 0.6, "knee": -1.2}
"""The foot on the ground."""


def contact(name="toe", link="foot", normal=(0.0, 0.0, 1.0), point=(0.0, 0.0, 0.0), **fields):
    """Return a declaration."""
    message = Contact(name=name, link=link, **fields)
    message.normal.x, message.normal.y, message.normal.z = normal
    message.point.x, message.point.y, message.point.z = point
    return message


def contacts(sim):
    """Return what list_contacts says, by name."""
    answer = sim.call(ListContacts, "list_contacts")
    assert answer.success, answer.message
    return {message.name: message for message in answer.contacts}


def test_list_shows_the_configured_contact(stepped):
    """list_contacts returns the foot of leg.yaml with all its values."""
    (foot,) = contacts(stepped).values()
    assert foot == contact("foot", friction=0.8)
    assert foot.law == "rigid"


def test_added_contact_is_listed_as_in_effect(stepped):
    """A normal of any length is accepted and listed normalised; everything else as it was given."""
    given = contact(
        normal=(0.0, 3.0, 4.0), point=(0.01, 0.02, 0.03), friction=0.3, restitution=0.25, radius=0.01, offset=-0.5
    )
    given.restitution_law, given.torsional_friction, given.rolling_friction = "poisson", 0.002, 0.001
    answer = stepped.call(AddContact, "add_contact", contact=given)
    assert answer.success, answer.message
    assert nanoseconds(answer.stamp) == START_TIME * 1e9
    toe = contacts(stepped)["toe"]
    assert (toe.normal.x, toe.normal.y, toe.normal.z) == pytest.approx((0.0, 0.6, 0.8), abs=1e-15)
    toe.normal = given.normal
    assert toe == given


@pytest.mark.parametrize("law", ["rigid", "frictionless", "sticking"])
def test_every_law_is_accepted(stepped, law):
    """Each law of Contact.msg that is offered comes back from list_contacts."""
    assert stepped.call(AddContact, "add_contact", contact=contact(law=law)).success
    assert contacts(stepped)["toe"].law == law


REFUSED = {
    "unknown link": (contact(link="paw"), ["paw", "foot", "lower_leg"]),
    "duplicate name": (contact("foot"), ["foot"]),
    "empty name": (contact(""), ["name"]),
    "zero normal": (contact(normal=(0.0, 0.0, 0.0)), ["normal"]),
    "normal with NaN": (contact(normal=(0.0, NAN, 1.0)), ["normal", "nan"]),
    "negative friction": (contact(friction=-0.1), ["friction", "-0.1"]),
    "infinite friction": (contact(friction=math.inf), ["friction", "inf"]),
    "restitution above 1": (contact(restitution=1.5), ["restitution", "1.5"]),
    "negative restitution": (contact(restitution=-0.5), ["restitution", "-0.5"]),
    "negative radius": (contact(radius=-0.01), ["radius", "-0.01"]),
    "point with NaN": (contact(point=(NAN, 0.0, 0.0)), ["point", "nan"]),
    "offset with NaN": (contact(offset=NAN), ["offset", "nan"]),
    "unknown law": (contact(law="magnetic"), ["magnetic", "rigid", "frictionless", "sticking"]),
    "surface": (contact(surface="table"), ["surface", "table"]),
    "too deep": (contact(offset=0.2), ["toe", "0.14", "0.0001"]),  # foot at 0.0559 m
}


@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_bad_contact_is_refused_and_nothing_changes(stepped, given):
    """The answer names what was given and what is allowed; contacts and motion stay as they were."""
    message, expected = REFUSED[given]
    before = contacts(stepped)
    answer = stepped.call(AddContact, "add_contact", contact=message)
    assert not answer.success
    for text in expected:
        assert text in answer.message
    assert contacts(stepped) == before
    _, forces = stepped.step()
    assert [force.name for force in forces.contacts] == ["foot"]


def test_depth_within_the_tolerance_is_accepted(stepped):
    """A contact that is 0.05 mm deep is added (position_tolerance is 0.1 mm), one that is 0.2 mm deep is not."""
    stepped.reset(**GROUNDED)
    assert stepped.call(AddContact, "add_contact", contact=contact("near", offset=5e-5)).success
    answer = stepped.call(AddContact, "add_contact", contact=contact("deep", offset=2e-4))
    assert not answer.success
    assert "0.0002" in answer.message


def test_removing_an_unknown_contact_is_refused(stepped):
    """The answer lists the contacts that exist."""
    answer = stepped.call(RemoveContact, "remove_contact", name="paw")
    assert not answer.success
    assert "paw" in answer.message
    assert "foot" in answer.message
    assert list(contacts(stepped)) == ["foot"]


def test_removed_contact_stops_pushing_at_the_next_period(stepped):
    """The leg stands on its foot; without it the very next period is one of free fall."""
    mechanics = Mechanics(URDF.read_text())
    stepped.reset(**GROUNDED)
    before, forces = stepped.step(5)
    assert forces.contacts[0].normal_force > 1.0
    answer = stepped.call(RemoveContact, "remove_contact", name="foot")
    assert answer.success, answer.message
    assert nanoseconds(answer.stamp) == stamp(before)
    after, forces = stepped.step()
    assert stamp(after) == stamp(before) + PERIOD
    assert list(forces.contacts) == []
    change = mechanics.momentum(after) - mechanics.momentum(before)
    assert change == pytest.approx(-mechanics.weight * 1e-3, abs=1e-12)
    below, _ = stepped.step(100)
    assert mechanics.foot_height(below) < -0.01


def test_contact_is_added_back_in_the_air_only(stepped):
    """Below the ground the foot is refused with its depth; after a reset that lifts the leg it is added, and lands."""
    stepped.reset(**GROUNDED)
    assert stepped.call(RemoveContact, "remove_contact", name="foot").success
    stepped.step(150)
    foot = contact("foot", friction=0.8)
    answer = stepped.call(AddContact, "add_contact", contact=foot)
    assert not answer.success
    assert "violated" in answer.message
    stepped.reset(keep_constraints=True)
    assert contacts(stepped) == {}
    assert stepped.call(AddContact, "add_contact", contact=foot).success
    stepped.step(150)
    assert stepped.wait_for(lambda: stepped.impacts, "impact")
    assert any(message.contacts[0].normal_force > 0.0 for message in stepped.forces)


def test_second_contact_carries_force(stepped):
    """A contact under the knee, added while the foot touches, is in contact_forces at once and takes load."""
    stepped.reset(**GROUNDED)
    stepped.step(5)
    knee = contact("knee", link="lower_leg", offset=0.05)
    assert stepped.call(AddContact, "add_contact", contact=knee).success
    _, forces = stepped.step()
    assert [force.name for force in forces.contacts] == ["foot", "knee"]
    stepped.step(200)
    assert max(message.contacts[1].normal_force for message in stepped.forces if len(message.contacts) == 2) > 1.0
