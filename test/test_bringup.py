"""A robot that is new: contacts, posture, gains and efforts that are proposed hold what they promise."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import LIMIT, joint, link, solo12, urdf

from constrained_sim import (
    Plane,
    PointContact,
    Posture,
    Robot,
    Simulator,
    Sticking,
    propose_contacts,
    propose_posture,
    set_on_ground,
    standing_efforts,
    suggest_gains,
)
from constrained_sim.bringup import contact_gaps, is_legged
from constrained_sim.bringup.files import parameter_text
from constrained_sim.bringup.plan import plan_for, read_description
from constrained_sim.bringup.sole import Points, sole_of
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
    assert is_legged(robot, contacts)
    arm = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf")
    assert not is_legged(arm, propose_contacts(arm, arm.neutral()))


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


def test_sticking_feet_carry_what_would_slide():
    """On a slope the efforts are those of rigid feet that do not slip."""
    box, normal = Robot.from_urdf(BLOCK, floating_base=True), np.array([0.3, 0.0, 1.0])
    surface = Plane(normal=normal / np.linalg.norm(normal))
    corners = [(x, y, -0.3 * x) for x in (-0.2, 0.2) for y in (-0.2, 0.2)]
    found = [
        standing_efforts(
            box,
            box.neutral(),
            [PointContact(f"{i}", "box", corner, surface=surface, **kind) for i, corner in enumerate(corners)],
        )
        for kind in ({"friction": 0.8}, {"law": Sticking()})
    ]
    assert np.abs(found[1].residual).max() < 1e-12
    np.testing.assert_allclose(found[1].forces, found[0].forces, atol=1e-12)


def test_friction_cones_are_round():
    """On a slope of 0.8 times the friction, down between the two axes of the contacts, a block stands."""
    friction, height = 0.5, 0.1
    slope, down = np.arctan(0.8 * friction), np.array([1.0, 1.0, 0.0]) / np.sqrt(2.0)
    normal = np.cos(slope) * np.array([0, 0, 1.0]) + np.sin(slope) * down
    turn = pin.Quaternion.FromTwoVectors(np.array([0, 0, 1.0]), normal)
    box, sides = Robot.from_urdf(BLOCK, floating_base=True), (-0.1, 0.1)
    contacts = [
        PointContact(f"{x} {y}", "box", (x, y, -height), Plane(normal), friction=friction) for x in sides for y in sides
    ]
    q = box.configuration({}, (*(height * normal), *turn.coeffs()))
    found = standing_efforts(box, q, contacts)
    assert np.abs(found.residual).max() < 1e-6
    along = found.forces @ normal
    assert (np.linalg.norm(found.forces - np.outer(along, normal), axis=1) <= friction * along * (1.0 + 1e-9)).all()
    steeper = [replace(contact, friction=0.79 * friction) for contact in contacts]
    assert np.abs(standing_efforts(box, q, steeper).residual).max() > 0.01


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


ROBOTS = "package://example-robot-data/robots/"


@pytest.mark.parametrize(
    ("path", "contacts"),
    [
        ("talos_data/robots/talos_reduced.urdf", 8),
        ("simple_humanoid_description/urdf/simple_humanoid.urdf", 8),
    ],
)
def test_humanoids_stand(path, contacts):
    """One whose soles are tilted at the neutral configuration; one without any, with knees that hardly bend."""
    plan = plan_for(read_description(ROBOTS + path))
    assert plan.robot.floating_base
    assert len(plan.contacts) == contacts
    assert contact_gaps(plan.robot, plan.q, plan.contacts).max() < 1e-3
    assert np.abs(plan.standing.residual).max() < 1e-9
    hold = Posture(plan.robot, plan.q, plan.gains.stiffness, plan.gains.damping, plan.standing.tau)
    run = Simulator(plan.robot, plan.contacts, dt=1e-3, q=plan.q).run(1.0, hold)
    assert np.abs(run.q[-1] - plan.q).max() < 2e-3


def test_feet_without_geometry_get_a_sole_and_are_named():
    """Where they would be on a line; of a robot whose feet really are balls on a line it is said that it tips over."""
    humanoid = plan_for(read_description(ROBOTS + "simple_humanoid_description/urdf/simple_humanoid.urdf"))
    assert ["l_ankle, r_ankle: no collision geometry" in note for note in humanoid.notes] == [True]
    bolt = plan_for(read_description(ROBOTS + "bolt_description/robots/bolt.urdf"))
    assert len(bolt.contacts) == 2
    assert ["on a line" in note for note in bolt.notes] == [True, False]
    assert humanoid.stays and not bolt.stays


def legs(*places):
    """Return the URDF of a body with a leg of two links below each of `places`, and no collision geometry."""
    parts = [link("trunk", 5.0)]
    for i, place in enumerate(places):
        parts += [link(f"thigh{i}", 0.5), link(f"shank{i}", 0.5)]
        parts.append(joint(f"hip{i}", "revolute", "trunk", f"thigh{i}", origin=place, more=LIMIT))
        parts.append(joint(f"knee{i}", "revolute", f"thigh{i}", f"shank{i}", origin=(0, 0, -0.3), more=LIMIT))
    return urdf(*parts)


def test_feet_at_origins_of_links_are_told_in_the_file_too(tmp_path):
    """As those with an assumed sole; not what the user has named, nor what has geometry."""
    four = legs((0.2, 0.1, 0), (0.2, -0.1, 0), (-0.2, 0.1, 0), (-0.2, -0.1, 0))
    (tmp_path / "four.urdf").write_text(four)
    description = read_description(str(tmp_path / "four.urdf"))
    plan = plan_for(description)
    (note,) = (note for note in plan.notes if "no collision geometry" in note)
    assert note.startswith("shank0, shank1, shank2, shank3: ") and "at the origin of the link" in note
    lines = parameter_text(plan, "four.urdf").splitlines()
    assert sum("point guessed" in line and "shank" in line for line in lines) == 4
    named = plan_for(description, [f"shank{i}" for i in range(4)])
    assert "guessed" not in parameter_text(named, "four.urdf")
    assert not [note for note in named.notes if "geometry" in note]
    (tmp_path / "two.urdf").write_text(legs((0, 0.1, 0), (0, -0.1, 0)))
    assert "point guessed" in parameter_text(plan_for(read_description(str(tmp_path / "two.urdf"))), "two.urdf")
    solo = plan_for(read_description(ROBOTS + "solo_description/robots/solo12.urdf"))
    assert "guessed" not in parameter_text(solo, "solo12.urdf")


def places(contacts):
    """Return name, link, point and radius of contacts."""
    return [(contact.name, contact.link, tuple(contact.point), contact.radius) for contact in contacts]


@pytest.mark.parametrize("path", ["talos_data/robots/talos_reduced.urdf", "solo_description/robots/solo12.urdf"])
def test_named_feet_have_the_soles_that_are_proposed(path):
    """All of them, and one alone: corners of a sole, a ball with its radius."""
    description = read_description(ROBOTS + path)
    proposed = plan_for(description).contacts
    links = list(dict.fromkeys(contact.link for contact in proposed))
    assert places(plan_for(description, links).contacts) == places(proposed)
    alone = [contact for contact in proposed if contact.link == links[-1]]
    assert places(plan_for(description, links[-1:]).contacts) == places(alone)


def test_named_feet_without_geometry_are_points():
    """A link and a frame: their origins; what is at rest is no foot."""
    description = read_description(ROBOTS + "talos_data/robots/talos_reduced.urdf")
    feet = ["left_sole_link", "right_sole_link"]
    assert places(plan_for(description, feet).contacts) == [(foot, foot, (0.0, 0.0, 0.0), 0.0) for foot in feet]
    with pytest.raises(InvalidValue, match="foot: got 'world', allowed: a link or frame that moves"):
        plan_for(description, ["world"])


HOPPER = """<mujoco><default><geom friction="0.6 0.005 0.0001"/></default><worldbody><body name="trunk" pos="0 0 0.5">
<freejoint/><geom type="box" size="0.1 0.1 0.05" mass="3"/><body name="leg"><joint name="hip" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.02" mass="0.5" friction="0.3 0.005 0.0001"/>
<geom type="sphere" pos="0 0 -0.4" size="0.03" mass="0.1"/></body></body></worldbody></mujoco>"""


def test_contacts_have_the_friction_of_their_geometry():
    """Of the geom that touches, not of its link; a number that is given is for all."""
    robot = Robot.from_mjcf(HOPPER)
    (contact,) = propose_contacts(robot, robot.neutral())
    assert (contact.radius, contact.friction) == (0.03, 0.6)
    (contact,) = propose_contacts(robot, robot.neutral(), friction=0.2)
    assert contact.friction == 0.2
    solo = solo12()
    assert {contact.friction for contact in propose_contacts(solo, solo.neutral())} == {0.8}


ROLLER = """<mujoco><worldbody><body name="roller" pos="0 0 0.5"><freejoint/><inertial pos="0 0 {height}" mass="1"
diaginertia="0.1 0.1 0.1"/><geom type="capsule" fromto="-0.2 0 0 0.2 0 0" size="0.1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize(("height", "stays"), [(-0.02, True), (0.02, False)])
def test_a_line_of_balls_tips_where_the_centre_of_mass_is_above_their_centres(tmp_path, height, stays):
    """A lying capsule with its mass off the axis: what is said of it is what it does when it is pushed."""
    path = tmp_path / "roller.xml"
    path.write_text(ROLLER.format(height=height))
    plan = plan_for(read_description(str(path)))
    assert len(plan.contacts) == 2
    assert plan.stays == stays
    push = np.array([0, 0, 0, 0.01, 0, 0])
    run = Simulator(plan.robot, plan.contacts, dt=1e-3, q=plan.q, v=push).run(4.0)
    assert (np.abs(run.q - plan.q).max() < 0.05) == stays


def test_a_fixed_caster_is_proposed_beside_the_wheels(tmp_path):
    """Geometry of the base that touches as low as the limbs, and no other; not of a robot with legs."""
    wheels = "".join(
        f"<body name='{name}' pos='0 {y} 0'><joint axis='0 1 0'/><geom type='sphere' size='0.08'/></body>"
        for name, y in (("left", 0.15), ("right", -0.15))
    )
    base = "<freejoint/><geom type='box' size='.2 .1 .03' pos='0 0 .05'/>"
    for radius, links in ((0.04, ["left", "right", "cart"]), (0.03, ["left", "right"])):
        caster = f"<geom type='sphere' size='{radius}' pos='-.15 0 -.04'/>"
        path = tmp_path / f"cart_{len(links)}.xml"
        path.write_text(
            f"<mujoco><worldbody><body name='cart' pos='0 0 .08'>{base}{caster}{wheels}</body></worldbody></mujoco>"
        )
        plan = plan_for(read_description(str(path)))
        assert [contact.link for contact in plan.contacts] == links
        assert plan.stays == (len(links) == 3)


def rotation(angle):
    """Return a rotation about y by `angle` [rad]."""
    return pin.utils.rotate("y", angle)


@pytest.mark.parametrize("angle", [0.0, 0.05, -0.2])
def test_the_sole_of_a_tilted_foot_is_its_lower_face(angle):
    """The four lower corners, in one plane, of a box with a rough sole."""
    corners = np.array([[x, y, z] for x in (-0.1, 0.15) for y in (-0.04, 0.04) for z in (0.0, 0.1)])
    corners[0, 2] += 0.002
    foot = Points(corners @ rotation(angle).T, np.zeros(8))
    sole = sole_of(foot)
    assert sorted(sole.owners) == [0, 2, 4, 6]
    level = sole.places @ rotation(angle)
    assert np.ptp(level[:, 2]) < 2.1e-3
    across = sole.places - sole.places.mean(axis=0)
    assert np.linalg.svd(across)[1][2] < 1e-12


def test_the_sole_of_a_lying_capsule_is_its_line():
    """Both ends with their radius, also where it is tilted; of a standing one the lower end alone."""
    ends = np.array([[-0.1, 0.0, 0.0], [0.1, 0.0, 0.0]])
    tilted = sole_of(Points(ends @ rotation(0.1).T, np.full(2, 0.02)))
    assert sorted(tilted.owners) == [0, 1]
    assert tilted.radii == pytest.approx([0.02, 0.02])
    assert len(sole_of(Points(ends @ rotation(1.2).T, np.full(2, 0.02))).owners) == 1


def test_a_small_foot_is_a_point():
    """A ball of corners: its lowest."""
    angles = np.linspace(0.0, 2 * np.pi, 12, endpoint=False)
    ring = 0.01 * np.column_stack([np.cos(angles), np.sin(angles), 0 * angles])
    foot = Points(np.vstack([ring, [[0, 0, -0.01], [0, 0, 0.01]]]), np.zeros(14))
    assert sole_of(foot).owners.tolist() == [12]


def test_summary_tells_what_mimics_and_how():
    """The second finger of a hand: its axis, and the joint that it follows; a wheel has no limits."""
    panda = Robot.from_urdf(ROBOTS + "panda_description/urdf/panda.urdf").summary()
    finger = panda.joints[-1]
    assert (finger.kind, finger.axis, finger.actuated) == ("prismatic", (0.0, -1.0, 0.0), False)
    assert finger.mimics == "1 x panda_finger_joint1"
    wheel = Robot.from_urdf(ROTOR.replace("revolute", "continuous")).summary()
    assert wheel.joints[0].kind == "continuous"
    assert "none" in str(wheel)


def test_summary_has_everything(standing):
    """Links, joints, what is not used and advice; as text within 100 columns."""
    summary = standing[0].summary()
    assert sum(link.mass for link in summary.links) == pytest.approx(standing[0].mass)
    assert len(summary.joints) == 13
    assert any("joint_limits" in text for text in summary.advice)
    text = str(summary)
    assert max(map(len, text.splitlines())) <= 100
    assert "FL_KFE" in text
    knee = next(joint for joint in summary.joints if joint.name == "FL_KFE")
    assert (knee.kind, knee.axis, knee.mimics) == ("revolute", (0.0, 1.0, 0.0), "")
    for line in text.splitlines():
        if line.startswith("FL_KFE "):
            assert line.split()[1:3] == ["revolute", "y"]
    light = Robot.from_urdf(ROTOR.replace("0.1", "0.00001")).summary()
    assert any("armature" in text for text in light.advice)


def test_meshes_of_a_package_in_a_folder_of_another_name(tmp_path):
    """As in a clone: its package.xml says what it is called."""
    mesh = '<collision><geometry><mesh filename="package://my_arm/hand.stl"/></geometry></collision><inertial>'
    (tmp_path / "package.xml").write_text("<package><name>my_arm</name></package>")
    (tmp_path / "hand.stl").touch()
    (tmp_path / "urdf").mkdir()
    (tmp_path / "urdf" / "arm.urdf").write_text(ROTOR.replace("<inertial>", mesh))
    advice = Robot.from_urdf(tmp_path / "urdf" / "arm.urdf").summary().advice
    assert not [text for text in advice if "mesh" in text]


def test_summary_tells_of_meshes_that_are_not_there():
    """Only a simulation with collisions needs them."""
    mesh = '<collision><geometry><mesh filename="package://none/hand.stl"/></geometry></collision><inertial>'
    (advice,) = [text for text in Robot.from_urdf(ROTOR.replace("<inertial>", mesh)).summary().advice if "mesh" in text]
    assert "link 'arm' cannot collide" in advice and "AMENT_PREFIX_PATH" in advice


def test_summary_tells_of_looks_that_are_not_there(tmp_path):
    """Each file once, as what needs it most; those that are there are not told of."""
    shape = '<{0}><geometry><mesh filename="{1}"/></geometry></{0}>'
    shapes = ("visual", "look.stl"), ("visual", "look.stl"), ("visual", "both.stl"), ("collision", "both.stl")
    more = "".join(shape.format(*one) for one in (*shapes, ("visual", "there.stl"), ("visual", "")))
    (tmp_path / "arm.urdf").write_text(ROTOR.replace("<inertial>", f"{more}<inertial>"))
    (tmp_path / "there.stl").touch()
    robot = Robot.from_urdf(tmp_path / "arm.urdf")
    advice = [text.partition(";")[0] for text in robot.summary().advice if "mesh" in text]
    assert set(advice) == {
        "link 'arm' is not shown as it looks: mesh file 'look.stl' does not exist",
        "link 'arm' cannot collide: mesh file 'both.stl' does not exist",
        "link 'arm' is not shown as it looks: mesh file '' does not exist",
    }
    geom = '<geom type="mesh" mesh="look" contype="0" conaffinity="0" mass="0"/>'
    (tmp_path / "arm.xml").write_text(
        '<mujoco><asset><mesh name="look" file="look.stl"/></asset><worldbody><body><joint name="j"/>'
        f'<geom size="0.1"/>{geom}</body></worldbody></mujoco>'
    )
    assert [text for text in Robot.from_mjcf(tmp_path / "arm.xml").summary().advice if "look.stl" in text]
