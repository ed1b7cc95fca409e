"""A robot that is new: contacts, posture, gains and efforts that are proposed hold what they promise."""

import numpy as np
import pytest
from mechanisms import solo12

from constrained_sim import (
    Plane,
    PointContact,
    Posture,
    Robot,
    Simulator,
    propose_contacts,
    propose_posture,
    set_on_ground,
    standing_efforts,
    suggest_gains,
)
from constrained_sim.bringup import contact_gaps, is_legged
from constrained_sim.exceptions import InvalidValue

ROTOR = """<robot name="rotor"><link name="base"/><link name="arm"><inertial><mass value="2"/><origin xyz="0 0 0"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" effort="1e6" velocity="1e6"/></joint></robot>"""

BLOCK = """<robot name="block"><link name="box"><inertial><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""


@pytest.fixture(scope="module")
def standing():
    """Return solo12, its proposed feet and posture."""
    robot = solo12()
    contacts = propose_contacts(robot, robot.neutral(), friction=0.7)
    return robot, contacts, propose_posture(robot, contacts)


def test_feet_are_the_lowest_links(standing):
    """Solo12 stands on its four feet, with a floating base; an arm does not."""
    robot, contacts, _ = standing
    assert [contact.link for contact in contacts] == ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
    assert is_legged(robot)
    assert not is_legged(Robot.from_urdf("package://constrained_sim/urdf/leg.urdf"))


def test_the_posture_is_level_balanced_and_bent(standing):
    """All feet touch the ground, the joints are within their limits, the knees are bent."""
    robot, contacts, q = standing
    gaps = contact_gaps(robot, q, contacts)
    assert gaps.min() == pytest.approx(0.0, abs=1e-14)
    assert gaps.max() < 2e-3
    assert np.array_equal(robot.within_limits(q), q)
    knees = [q[robot.joint_models[f"{leg}_KFE"].idx_q] for leg in ("FL", "FR", "HL", "HR")]
    assert np.abs(knees).min() > 0.3


def test_efforts_are_in_equilibrium_within_cones(standing):
    """The equations of motion hold, the ground carries the weight, and forces obey Coulomb's law."""
    robot, contacts, q = standing
    found = standing_efforts(robot, q, contacts)
    assert np.abs(found.residual).max() < 1e-12 * robot.mass * 9.81 * 100
    assert found.forces.sum(axis=0) == pytest.approx([0, 0, 9.81 * robot.mass], abs=1e-11)
    assert np.all(np.linalg.norm(found.forces[:, :2], axis=1) <= 0.7 * found.forces[:, 2])


def test_limits_and_cones_hold_where_the_least_norm_breaks_them(standing):
    """With little friction and weak motors the bounded problem finds forces that keep both."""
    robot, contacts, q = standing
    free = standing_efforts(robot, q, contacts)
    limit = 0.98 * float(np.abs(free.tau).max())
    weak = robot.with_joints({name: {"effort": limit} for name in robot.actuated_joints})
    found = standing_efforts(weak, q, contacts)
    assert np.abs(found.tau).max() <= limit * (1 + 1e-12)
    assert found.forces[:, 2].min() >= 0.0
    assert np.all(np.linalg.norm(found.forces[:, :2], axis=1) <= 0.7 * found.forces[:, 2] + 1e-12)
    assert np.abs(found.residual).max() < 1e-6


def test_what_cannot_stand_says_what_is_missing():
    """A free box without contacts: its weight is the residual."""
    box = Robot.from_urdf(BLOCK, floating_base=True)
    found = standing_efforts(box, box.neutral(), ())
    assert found.residual[:3] == pytest.approx([0, 0, -2 * 9.81])


def test_set_on_ground_touches_and_no_more():
    """A ball on a slope, a point on level ground: one gap is zero, none is negative."""
    box = Robot.from_urdf(BLOCK, floating_base=True)
    slope = Plane((0.6, 0.0, 0.8), 0.1)
    contacts = [PointContact("ball", "box", (0.1, 0, -0.2), slope, radius=0.05), PointContact("p", "box", (0, 0, -0.3))]
    q = set_on_ground(box, box.neutral(), contacts)
    gaps = contact_gaps(box, q, contacts)
    assert gaps.min() == pytest.approx(0.0, abs=1e-15)
    assert np.array_equal(q[:2], np.zeros(2))
    with pytest.raises(InvalidValue, match="at least one"):
        set_on_ground(box, q, [])
    with pytest.raises(InvalidValue, match="floating base"):
        set_on_ground(Robot.from_urdf(ROTOR), [0.0], contacts[1:])
    with pytest.raises(InvalidValue, match="vertical part"):
        set_on_ground(box, q, [PointContact("wall", "box", (0, 0, 0), Plane((1, 0, 0)))])


def test_bounds_of_one_joint_are_sharp():
    """Inertia 0.1: damping is stable below 2 m / dt, stiffness below 2 D / dt; just above, the motion grows."""
    robot, dt = Robot.from_urdf(ROTOR, gravity=(0, 0, 0)), 1e-3
    gains = suggest_gains(robot, [0.0], dt)
    assert gains.apparent_inertia == pytest.approx([0.1])
    assert gains.damping_bound == pytest.approx([2 * 0.1 / dt])
    assert gains.stiffness_bound == pytest.approx(2 * gains.damping / dt)

    def growth(stiffness, damping):
        """Return the largest speed of the last tenth of a second over that of the first."""
        speed = np.abs(
            Simulator(robot, [], dt=dt, q=[1e-6]).run(0.4, Posture(robot, [0.0], stiffness, damping)).v[:, 0]
        )
        return speed[-100:].max() / speed[:100].max()

    assert (
        growth(0.99 * gains.stiffness_bound, gains.damping) < 1.0 < growth(1.01 * gains.stiffness_bound, gains.damping)
    )
    assert growth(1.0, 0.99 * gains.damping_bound) < 1.0 < growth(1.0, 1.01 * gains.damping_bound)


def test_gains_of_many_joints_satisfy_the_condition(standing):
    """dt lambda_max(D^1/2 A D^1/2) is the share of 2 that is promised, in the air and with feet on the ground."""
    robot, contacts, q = standing
    gains = suggest_gains(robot, q, 1e-3, contacts)
    assert np.all(gains.standing_inertia >= gains.apparent_inertia * (1 - 1e-12))
    assert np.all(gains.damping <= 0.4 * gains.damping_bound * (1 + 1e-12))
    assert np.all(gains.stiffness <= 0.1 * gains.stiffness_bound * (1 + 1e-12))


def test_it_stands(standing):
    """What is proposed, together, holds solo12 for two seconds: no drift, and the ground carries the weight."""
    robot, contacts, q = standing
    gains, tau = suggest_gains(robot, q, 1e-3, contacts), standing_efforts(robot, q, contacts).tau
    run = Simulator(robot, contacts, dt=1e-3, q=q).run(2.0, Posture(robot, q, gains.stiffness, gains.damping, tau))
    assert np.abs(run.q[-1] - q).max() < 5e-3
    carried = sum(forces[-1, 2] for forces in run.contact_forces.values())
    assert carried == pytest.approx(9.81 * robot.mass, rel=1e-6)


def test_summary_has_everything(standing):
    """Links, joints, what is not used and advice; as text within 100 columns."""
    summary = standing[0].summary()
    assert sum(link.mass for link in summary.links) == pytest.approx(standing[0].mass)
    assert len(summary.joints) == 13
    assert any("joint_limits" in text for text in summary.advice)
    text = str(summary)
    assert max(map(len, text.splitlines())) <= 100
    assert "FL_KFE" in text
    light = Robot.from_urdf(ROTOR.replace("0.1", "0.00001")).summary()
    assert any("armature" in text for text in light.advice)
