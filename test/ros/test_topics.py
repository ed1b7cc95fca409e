"""What the node publishes: names, values, stamps, order."""

import math

import numpy as np
import pytest
from ros.bags import Mechanics, phases
from ros.live import CONFIG, NODE, PERIOD, START_TIME, URDF, nanoseconds, stamp
from std_msgs.msg import Float64MultiArray, String

from constrained_sim import load_config
from constrained_sim.msg import Contact, ContactForce, SimulationStatus
from constrained_sim.srv import AddContact, RemoveContact

START = round(START_TIME * 1e9)


@pytest.fixture(scope="module")
def mechanics():
    return Mechanics(URDF.read_text())


def test_states_name_every_joint_and_hold_the_configured_start(stepped):
    """joint_states lists the passive slider too; the first state is the configured one, at rest, nothing applied."""
    state = stepped.reset()
    assert list(state.name) == ["slider", "hip", "knee"]
    assert list(state.position) == [0.32, 0.60, -1.20]
    assert list(state.velocity) == [0.0, 0.0, 0.0]
    assert list(state.effort) == [0.0, 0.0, 0.0]
    assert state.header.frame_id == "world"
    assert stamp(state) == START


def test_command_acts_in_the_next_period_as_clamped(stepped):
    """Efforts beyond the URDF's limit of 12 N m are clamped; joint_states reports what was applied, and it moved."""
    stepped.command(["hip", "knee"], [2.0, -100.0])
    stepped.wait_for(lambda: stepped.step()[0].effort[1] != 0.0, "effect of the command")
    state, _ = stepped.step()
    assert list(state.effort) == [0.0, 2.0, -12.0]
    assert state.velocity[2] < -1.0


def test_joint_that_is_not_named_keeps_its_last_command(stepped):
    """Two controllers may command one joint each, and ~/commands follows the order of parameter joints."""
    stepped.command(["hip", "knee"], [0.25, -0.5])
    stepped.wait_for(lambda: stepped.step()[0].effort[1] == 0.25, "effect of the first command")
    stepped.command(["knee"], [0.125])
    stepped.wait_for(lambda: stepped.step()[0].effort[2] == 0.125, "effect of the second command")
    assert list(stepped.step()[0].effort) == [0.0, 0.25, 0.125]
    stepped.publish(f"{NODE}/commands", Float64MultiArray(data=[-0.75, 0.375]))
    stepped.wait_for(lambda: stepped.step()[0].effort[1] == -0.75, "effect of ~/commands")
    assert list(stepped.step()[0].effort) == [0.0, -0.75, 0.375]


def test_efforts_move_the_robot_as_the_core_says(stepped):
    """The node adds nothing to the simulator: a commanded period is bit for bit a step of the core."""
    sim = load_config(CONFIG).simulator()
    stepped.command(["hip", "knee"], [1.0, -2.0])
    stepped.wait_for(lambda: stepped.step()[0].effort[1] == 1.0, "effect of the command")
    for state in stepped.states:
        sim.step(list(state.effort)[1:])
        assert list(state.position) == sim.state.q.tolist()
        assert list(state.velocity) == sim.state.v.tolist()


def test_every_period_has_states_forces_and_clock(stepped):
    """Each control period, also an airborne one, gives one of each, with the exact stamp start_time + k period."""
    stepped.step(250)
    ends = [START + k * PERIOD for k in range(1, 251)]
    assert [stamp(message) for message in stepped.states] == ends
    assert [stamp(message) for message in stepped.forces] == ends
    assert [stamp(message) for message in stepped.clock] == ends
    assert all(nanoseconds(message.period) == PERIOD for message in stepped.forces)
    touching = [message.contacts[0].normal_force > 0.0 for message in stepped.forces]
    assert not any(touching[:90])  # falls 5 cm in 0.1 s
    assert any(touching[90:])


def test_contact_forces_describe_the_contact(stepped, mechanics):
    """Position, gap, normal and status of the only contact agree with the joints; the force is inside the cone."""
    stepped.step(250)
    for state, message in zip(stepped.states, stepped.forces, strict=True):
        (contact,) = message.contacts
        assert (contact.name, contact.link, contact.friction) == ("foot", "foot", 0.8)
        assert (contact.normal.x, contact.normal.y, contact.normal.z) == (0.0, 0.0, 1.0)
        height = mechanics.foot_height(state)
        assert contact.gap == pytest.approx(height, abs=1e-12)
        assert contact.position.z == pytest.approx(height, abs=1e-12)
        assert contact.gap > -1e-8
        force = contact.wrench.force
        assert contact.normal_force == force.z >= 0.0
        assert math.hypot(force.x, force.y) <= 0.8 * force.z * (1.0 + 1e-9)
        assert math.hypot(contact.wrench.torque.x, contact.wrench.torque.y, contact.wrench.torque.z) == 0.0
        assert (contact.status == ContactForce.OPEN) == (force.z == 0.0)
        if contact.status == ContactForce.STICKING:
            assert math.hypot(contact.slip.x, contact.slip.y) < 1e-9


def test_impact_at_touchdown(stepped, mechanics):
    """One impact, with its stamp inside the period of the touchdown; impulse, velocities and losses agree."""
    initial = stepped.reset()
    stepped.step(110)
    impact = stepped.wait_for(lambda: stepped.impacts, "impact")[0]
    after = next(k for k, message in enumerate(stepped.forces) if stamp(message) >= stamp(impact))
    before = stepped.states[after] if after else initial  # states begin with the one of the reset
    assert stamp(before) < stamp(impact) <= stamp(stepped.forces[after])
    assert stepped.forces[after].contacts[0].gap < 1e-8
    assert mechanics.foot_height(before) > 0.0

    assert list(impact.velocity_names) == ["slider", "hip", "knee"]
    minus, plus = np.array(impact.velocity_minus), np.array(impact.velocity_plus)
    (impulse,) = impact.impulses
    rows, s_minus, s_plus = map(np.array, (impulse.rows, impulse.row_velocity_minus, impulse.row_velocity_plus))
    assert (impulse.name, impulse.link) == ("foot", "foot")
    assert [impulse.linear.x, impulse.linear.y, impulse.linear.z] == rows.tolist()
    assert rows[2] > 0.0
    assert s_minus[2] < -0.9  # 5 cm of free fall: 0.99 m/s
    assert abs(s_plus[2]) < 1e-9  # restitution 0
    assert impulse.position.z == pytest.approx(0.0, abs=1e-5)

    # The work of the impulse is the energy lost, and the momentum balance gives the jump of the slider.
    assert impact.energy_lost == pytest.approx(-0.5 * rows @ (s_minus + s_plus), rel=1e-9)
    assert impact.energy_lost > 0.0
    assert impact.restitution_scale == 1.0
    q = mechanics.qv(before)[0] + (stamp(impact) - stamp(before)) * 1e-9 * minus
    lost = mechanics.kinetic_energy(q, minus) - mechanics.kinetic_energy(q, plus)
    assert impact.energy_lost == pytest.approx(lost, rel=1e-3)


def test_restitution_shows_in_the_impact(stepped):
    """A contact added with restitution 0.5 returns half of the normal velocity."""
    contact = Contact(name="knee", link="lower_leg", restitution=0.5)
    contact.normal.z, contact.offset = 1.0, 0.10
    answer = stepped.call(AddContact, "add_contact", contact=contact)
    assert answer.success, answer.message
    stepped.step(200)
    bounce = stepped.wait_for(
        lambda: [i for m in stepped.impacts for i in m.impulses if i.name == "knee" and i.row_velocity_minus[2] < -0.2],
        "impact of the knee",
    )[0]
    assert bounce.row_velocity_plus[2] == pytest.approx(-0.5 * bounce.row_velocity_minus[2], rel=1e-9)


def test_resistance_to_rolling_shows_as_torque(stepped):
    """The shank that folds over the foot is braked about y by mu_r f_n, in the impact by mu_r of the impulse."""
    rolling = 0.004
    assert stepped.call(RemoveContact, "remove_contact", name="foot").success
    contact = Contact(name="toe", link="foot", friction=0.8, rolling_friction=rolling)
    contact.normal.z = 1.0
    answer = stepped.call(AddContact, "add_contact", contact=contact)
    assert answer.success, answer.message
    stepped.step(160)
    pressed = [m.contacts[0] for m in stepped.forces if m.contacts[0].normal_force > 1.0]
    assert len(pressed) > 10
    for toe in pressed:
        assert toe.name == "toe"
        assert abs(toe.wrench.torque.y) <= rolling * toe.normal_force * (1 + 1e-9)
        assert (toe.wrench.torque.x, toe.wrench.torque.z) == (0.0, 0.0)
    assert max(abs(toe.wrench.torque.y) / toe.normal_force for toe in pressed) == pytest.approx(rolling, rel=1e-9)
    impulse = stepped.wait_for(lambda: [i for m in stepped.impacts for i in m.impulses], "impact of the toe")[0]
    assert abs(impulse.angular.y) == pytest.approx(rolling * impulse.linear.z, rel=1e-9)


def test_contacts_are_ordered_by_name(stepped):
    """contact_forces lists all contacts, open ones too, ordered by name."""
    for name in ("zehe", "ankle"):
        contact = Contact(name=name, link="foot")
        contact.normal.z, contact.offset = 1.0, -1.0
        assert stepped.call(AddContact, "add_contact", contact=contact).success
    _, message = stepped.step()
    assert [contact.name for contact in message.contacts] == ["ankle", "foot", "zehe"]


def test_description_is_latched(stepped):
    """Who comes late gets the URDF all the same."""
    messages = stepped.client.subscribe(String, "/robot_description", latched=True)
    assert stepped.wait_for(lambda: messages, "description")[0].data == URDF.read_text()


def test_status_tells_what_is_in_effect(stepped, mechanics):
    """Solver, clock mode, steps, energies and residuals of the status."""
    state, _ = stepped.step(200)
    status = stepped.fresh_status()
    assert status.state == SimulationStatus.PAUSED
    assert (status.clock_mode, status.solver, status.stepper) == ("fast", "range_space", "time_stepping")
    assert (status.integrator, bool(status.contact_method)) == ("midpoint", True)
    assert (status.step, status.dt) == (200, 0.001)
    assert status.time == pytest.approx(0.2, abs=1e-12)
    assert stamp(status) == START + 200 * PERIOD
    assert status.kinetic_energy == pytest.approx(mechanics.kinetic_energy(*mechanics.qv(state)), rel=1e-9)
    energies = [value for name, value in _floats(status) if "energy" in name or "work" in name or "losses" in name]
    assert len(energies) == 11
    assert np.isfinite(energies).all()
    assert status.impact_losses > 0.0
    assert status.work_damping < 0.0
    assert abs(status.energy_residual) < 1e-9
    assert status.position_error < 1e-6
    assert 1 <= status.rank <= status.rows == 3
    assert status.records_lost == 0


def _floats(message):
    return [
        (name, getattr(message, name))
        for name, kind in message.get_fields_and_field_types().items()
        if kind == "double"
    ]


def test_residuals_are_rounding_errors(dropped, standing, hopping):
    """In every status of a fall, of standing and of hopping all residuals stay below 1e-9."""
    for bag in (dropped, standing, hopping):
        messages = bag.messages(f"{NODE}/status")
        assert len(messages) > 3
        for name in ("dynamics_residual", "constraint_residual", "complementarity_residual"):
            worst = max(getattr(message, name) for message in messages)
            assert 0.0 <= worst < 1e-9, name
        assert all(math.isfinite(value) for message in messages for _, value in _floats(message))


def test_status_comes_at_its_rate(standing):
    """Ten statuses per simulated second, besides those that announce a change."""
    stamps = sorted({stamp(message) for message in standing.messages(f"{NODE}/status")})
    assert stamps[0] == START
    assert np.diff(stamps).max() <= 100_000_000 + PERIOD
    assert 10 <= len(stamps) <= 15


def test_clock_comes_first_and_last(dropped):
    """One clock at start_time precedes everything; in every period states and forces come before the clock."""
    order = [topic for topic in dropped.topics_in_order() if topic in ("/clock", "/joint_states", "/contact_forces")]
    assert dropped.topics_in_order()[0] == "/clock"
    assert stamp(dropped.messages("/clock")[0]) == START
    assert order[:3] == ["/clock", "/joint_states", "/clock"]
    assert order[3:] == ["/joint_states", "/contact_forces", "/clock"] * 400


def test_clock_never_goes_back(hopping_in_real_time):
    """The clock of a run without resets rises strictly after its first, doubled, stamp."""
    stamps = [stamp(message) for message in hopping_in_real_time.messages("/clock")]
    assert stamps[0] == stamps[1] == START
    assert (np.diff(stamps[1:]) == PERIOD).all()


def test_fall_is_free_until_touchdown(dropped, mechanics):
    """Airborne the vertical momentum changes by weight times time, to rounding, and the contact carries nothing."""
    (airborne, count), *_ = phases(dropped.normal_forces() > 0.0)
    assert not airborne
    states = dropped.messages("/joint_states")
    seconds = (count - 1) * 1e-3
    change = mechanics.momentum(states[count - 1]) - mechanics.momentum(states[0])
    assert change == pytest.approx(-mechanics.weight * seconds, abs=1e-12)
