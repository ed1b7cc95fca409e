"""Objects beside the robot: one world of several trees, whose bodies touch, come and go."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import GRAVITY

from constrained_sim import (
    Collisions,
    CustomConstraint,
    FrameAnchor,
    JointVelocity,
    Plane,
    PointAnchor,
    PointContact,
    Posture,
    Robot,
    Servo,
    Simulator,
    WorldObject,
    Wrench,
    load_config,
)
from constrained_sim.exceptions import (
    ConstrainedSimError,
    DuplicateName,
    InvalidValue,
    ModelError,
    NothingCollides,
    UnknownName,
    ViolatedConstraint,
    WrongDerivative,
)
from constrained_sim.objects.combined_robot import carried_over
from constrained_sim.shipped import shipped_robots

FLOOR = {"floor": Plane()}
PUSH = Wrench("carriage", (0.0, 0.0, 5.0))
MASS, EDGE, FRICTION = 3.0, 0.2, 0.4

PUSHER = """
<robot name="pusher">
  <link name="rail"/>
  <link name="finger">
    <inertial><mass value="1.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <joint name="slide" type="prismatic">
    <parent link="rail"/><child link="finger"/><origin xyz="0 0 0.1"/><axis xyz="1 0 0"/>
    <limit lower="-5" upper="5" effort="1000" velocity="10"/>
  </joint>
</robot>
"""

DOOR = """
<robot name="door">
  <link name="frame"/>
  <link name="leaf">
    <inertial><origin xyz="0.4 0 0"/><mass value="5"/>
      <inertia ixx="0.1" iyy="0.3" izz="0.3" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0.4 0 0"/><geometry><box size="0.8 0.04 1"/></geometry></collision>
  </link>
  <link name="knob">
    <inertial><mass value="0.2"/><inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="frame"/><child link="leaf"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" effort="1" velocity="10"/><dynamics damping="0.5"/>
  </joint>
  <joint name="latch" type="revolute">
    <parent link="leaf"/><child link="knob"/><origin xyz="0.7 0.05 0"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="1" velocity="10"/><mimic joint="hinge" multiplier="2"/>
  </joint>
</robot>
"""


@pytest.fixture(scope="module")
def pusher():
    return Robot.from_urdf(PUSHER)


def box(x=0.5, z=EDGE / 2, name="box", mass=MASS, friction=FRICTION):
    return WorldObject.box(name, (EDGE,) * 3, mass, friction, (x, 0.0, z, 0.0, 0.0, 0.0, 1.0))


def place(robot, link, q):
    """Return the placement of a link in the world."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, q)
    return data.oMf[robot.links[link]]


def velocity(sim, name):
    """Return where the velocity of a free body begins, and that velocity (6,), body axes."""
    at = sim.robot.joint_models[f"{name}/root_joint"].idx_v
    return sim.state.v[at : at + 6]


def momentum(robot, q, v):
    """Return the linear and angular momentum (6,) of all bodies about the origin of the world."""
    data = robot.model.createData()
    pin.computeCentroidalMomentum(robot.model, data, q, v)
    return np.concatenate([data.hg.linear, data.hg.angular + np.cross(data.com[0], data.hg.linear)])


# -- what the world is


def test_objects_follow_the_robot_in_the_state_and_take_no_efforts(pusher):
    robot = pusher.with_objects([box(), WorldObject("door", Robot.from_urdf(DOOR), (0, 2, 1, 0, 0, 0, 1))])
    assert robot.joint_names == ("slide", "box/root_joint", "door/hinge", "door/latch")
    assert (robot.nq, robot.nv, robot.nu) == (10, 9, 1)
    assert robot.actuated_joints == pusher.actuated_joints and list(robot.own_joint_models) == ["slide"]
    assert robot.without_objects is pusher and pusher.with_objects([]) is pusher
    assert robot.with_objects([]) is pusher
    assert robot.damping.tolist() == [*pusher.damping, *[0.0] * 6, 0.5, 0.0]
    assert [one.name for one in robot.constraints] == ["door/latch mimic"]
    assert place(robot, "door/leaf", robot.neutral()).translation == pytest.approx([0, 2, 1])
    assert place(robot, "box/body", robot.neutral()).translation == pytest.approx([0.5, 0, EDGE / 2])
    assert [robot.owner_of(name) for name in ("slide", "box/body", "door/leaf_0", "box", "no/body")] == [
        "", "box", "door", "", ""
    ]  # fmt: skip


def test_an_object_without_a_link_of_the_world_has_its_base_there(pusher):
    """An MJCF on the world has none: its base is where the object is mounted."""
    text = '<mujoco><worldbody><body name="flap"><joint/><geom size="0.1" pos="1 0 0"/></body></worldbody></mujoco>'
    flap = WorldObject("flap", Robot.from_mjcf(text), (1, 2, 3, 0, 0, 0.6, 0.8))
    robot = pusher.with_objects([flap, box()])
    found = pin.SE3ToXYZQUAT(place(robot, flap.base_link, robot.neutral()))
    assert flap.base_link == "flap/world" and found == pytest.approx([1, 2, 3, 0, 0, 0.6, 0.8])


@pytest.mark.parametrize(
    ("shape", "size", "moments"),
    [
        (WorldObject.box, {"size": (0.1, 0.2, 0.3)}, (0.13 / 12, 0.1 / 12, 0.05 / 12)),
        (WorldObject.sphere, {"radius": 0.2}, (0.4 * 0.04,) * 3),
        (WorldObject.cylinder, {"radius": 0.2, "length": 0.3}, (0.0175, 0.0175, 0.02)),
    ],
)
def test_shapes_have_the_inertia_of_homogeneous_bodies(shape, size, moments):
    inertia = shape("one", mass=3.0, **size).body.model.inertias[1]
    assert inertia.mass == 3.0 and inertia.lever == pytest.approx(np.zeros(3))
    assert inertia.inertia == pytest.approx(3.0 * np.diag(moments), rel=1e-12)


def test_properties_of_the_robot_s_joints_and_links_may_change_beside_objects(pusher):
    robot = pusher.with_objects([box()]).with_joints({"slide": {"damping": 2.0}}).with_payloads({"finger": 0.5})
    assert robot.damping[0] == 2.0 and robot.objects[0].name == "box"
    assert robot.mass == pytest.approx(1.5 + 0.5 + MASS)


@pytest.mark.parametrize(
    ("objects", "error"),
    [
        ([box(), box()], DuplicateName),
        ([box(name="pusher")], DuplicateName),
        ([box(name="world")], DuplicateName),
        (["box"], InvalidValue),
        (None, InvalidValue),
    ],
)
def test_names_that_clash_are_refused(pusher, objects, error):
    with pytest.raises(error):
        pusher.with_objects(objects)


@pytest.mark.parametrize(
    "make",
    [
        lambda: box(name="a box"),
        lambda: box(name=""),
        lambda: box(mass=0.0),
        lambda: box(friction=-1.0),
        lambda: box(x=np.nan),
        lambda: WorldObject.sphere("ball", -1.0, 1.0),
        lambda: WorldObject.box("box", (1.0, 1.0), 1.0),
        lambda: WorldObject("one", "two"),
        lambda: WorldObject("one", Robot.from_urdf(PUSHER), (0, 0, 0, 0, 0, 0, 0)),
        lambda: WorldObject("one", Robot.from_urdf(PUSHER).with_objects([box()])),
    ],
)
def test_what_is_no_object_is_refused(make):
    with pytest.raises(InvalidValue):
        make()


def test_a_constraint_of_an_object_to_the_world_is_refused(pusher):
    body = Robot(Robot.from_urdf(DOOR).model, (), constraints=(PointAnchor("held", "leaf", (0.8, 0, 0)),))
    with pytest.raises(ModelError):
        pusher.with_objects([WorldObject("door", body)])


def test_rows_of_the_user_s_are_no_constraint_of_an_object(pusher):
    """They are for the joints of the object alone, which have others before them beside a robot."""
    functions = {"velocity": lambda q, v, t: v[:1], "jacobian": lambda q, v, t: [[1.0, 0.0]]}
    rows = CustomConstraint("rows", 1, gamma=lambda q, v, t: [0.0], **functions)
    body = Robot(Robot.from_urdf(DOOR).model, (), constraints=(rows,))
    with pytest.raises(ModelError, match=r"object 'door': got the custom constraint 'rows'"):
        pusher.with_objects([WorldObject("door", body)])


def test_functions_that_come_with_an_object_are_checked(pusher):
    """Like those of the constraints of a robot: at the next step, once."""
    drive = JointVelocity("drive", "hinge", lambda t: (np.sin(t), -np.cos(t)))
    body = Robot(Robot.from_urdf(DOOR).model, (), constraints=(drive,))
    sim = Simulator(pusher, q=[0.0]).with_objects([WorldObject("door", body, (0.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0))])
    with pytest.warns(WrongDerivative, match="'door/drive'") as caught:
        sim.step()
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.step()


# -- physics


def test_a_ball_falls_by_gravity_and_rests_with_a_force_equal_to_its_weight(pusher):
    ball = WorldObject.sphere("ball", 0.1, 2.0, pose=(0, 1, 0.3, 0, 0, 0, 1))
    sim = Simulator(pusher.with_objects([ball]), collisions=Collisions(FLOOR, friction=0.5))
    at = sim.robot.joint_models["ball/root_joint"].idx_q
    for _ in range(150):
        sim.step()
    t = sim.state.t
    assert sim.state.q[at + 2] == pytest.approx(0.3 - 0.5 * GRAVITY * t * t, abs=1e-12)
    for _ in range(300):
        result = sim.step()
    assert sim.state.q[at + 2] == pytest.approx(0.1, abs=1e-9)
    assert velocity(sim, "ball") == pytest.approx(np.zeros(6), abs=1e-9)
    assert result.contact_forces["ball/body_0/floor#0"].force == pytest.approx([0, 0, 2.0 * GRAVITY], rel=1e-9)


def test_a_box_slides_and_stops_by_coulomb_s_law(pusher):
    sim = Simulator(pusher.with_objects([box()]), collisions=Collisions(FLOOR))
    q, v, speed = sim.robot.neutral(), np.zeros(sim.robot.nv), 1.0
    v[sim.robot.joint_models["box/root_joint"].idx_v] = speed
    sim.reset(q, v)
    while sim.state.t < 0.1 - 1e-9:
        result = sim.step()
    assert velocity(sim, "box")[0] == pytest.approx(speed - FRICTION * GRAVITY * sim.state.t, rel=1e-9)
    force = sum(contact.force for contact in result.contact_forces.values())
    assert force == pytest.approx([-FRICTION * MASS * GRAVITY, 0.0, MASS * GRAVITY], rel=1e-9)
    for _ in range(300):
        sim.step()
    way = sim.state.q[sim.robot.joint_models["box/root_joint"].idx_q] - q[1]
    assert way == pytest.approx(speed**2 / (2 * FRICTION * GRAVITY), rel=1e-3)  # the last step ends at rest
    assert velocity(sim, "box") == pytest.approx(np.zeros(6), abs=1e-9)


def test_a_robot_that_pushes_a_box_gives_the_force_that_friction_takes(pusher):
    robot = pusher.with_objects([box(x=0.16)])
    sim = Simulator(robot, collisions=Collisions(FLOOR))
    servo, speed = Servo(robot, 0.0, 1e5), 0.2
    for _ in range(400):
        before = sim.state
        result = sim.step(servo.targets(velocity=[speed]))
    assert velocity(sim, "box")[0] == pytest.approx(speed - result.tau_applied[0] / 1e5, rel=1e-9)
    contacts = result.contact_forces
    on_finger = sum(c.force for name, c in contacts.items() if name.startswith("finger"))
    on_floor = sum(c.force for name, c in contacts.items() if name.startswith("box") and "floor" in name)
    # Newton's second law of the box, on which the finger acts with the opposite of what acts on the finger; and of the
    # finger: so the two forces are opposite.
    along = (velocity(sim, "box")[0] - before.v[1]) / sim.dt
    assert MASS * along == pytest.approx(on_floor[0] - on_finger[0], abs=1e-7)
    assert result.tau_applied[0] + on_finger[0] == pytest.approx(
        1.5 * (sim.state.v[0] - before.v[0]) / sim.dt, abs=1e-7
    )
    assert on_floor[0] == pytest.approx(-FRICTION * on_floor[2], rel=1e-9)  # it slides
    assert on_floor[2] == pytest.approx(MASS * GRAVITY + on_finger[2], rel=1e-9)


def test_bodies_that_hit_each_other_keep_the_momentum_of_the_world():
    robot = load_config(shipped_robots()["quadruped"]).robot
    assert robot.floating_base
    robot = replace(robot, model=robot.weightless_model())
    ball = WorldObject.sphere("ball", 0.1, 5.0, 0.3, (0.8, 0.05, 0.05, 0, 0, 0, 1))
    sim = Simulator(robot.with_objects([ball, box(x=1.05, z=0.02)]), collisions=Collisions())
    q, v = sim.robot.neutral(), np.zeros(sim.robot.nv)
    v[sim.robot.joint_models["ball/root_joint"].idx_v] = -2.0
    v[sim.robot.joint_models["box/root_joint"].idx_v] = -4.0
    sim.reset(q, v)
    start, before = momentum(sim.robot, q, v), velocity(sim, "box").copy()
    for _ in range(300):
        sim.step()
    assert np.abs(sim.state.v[:3]).max() > 0.1  # the robot was hit
    assert np.abs(velocity(sim, "box") - before).max() > 0.1  # and the box, by the ball
    end = momentum(sim.robot, sim.state.q, sim.state.v)
    assert end[:3] == pytest.approx(start[:3], abs=1e-10)
    assert end[3:] == pytest.approx(start[3:], abs=1e-5)  # the middle of a step is not quite on the way


def test_equal_balls_exchange_their_velocities(pusher):
    balls = [
        WorldObject.sphere(name, 0.1, 2.0, pose=(x, 0, 3, 0, 0, 0, 1)) for name, x in (("one", 0.0), ("two", 0.35))
    ]
    sim = Simulator(pusher.with_objects(balls), collisions=Collisions(restitution=1.0))
    v = np.zeros(sim.robot.nv)
    v[1] = 1.0
    sim.reset(None, v)
    for _ in range(300):
        sim.step()
    fall = -GRAVITY * sim.state.t
    assert velocity(sim, "one")[:3] == pytest.approx([0, 0, fall], abs=1e-9)
    assert velocity(sim, "two")[:3] == pytest.approx([1, 0, fall], abs=1e-9)


def test_an_object_moves_as_it_would_as_the_only_robot(pusher):
    door = Robot.from_urdf(DOOR)
    alone = Simulator(door)
    beside = Simulator(pusher.with_objects([WorldObject("door", door, (0, 2, 1, 0, 0, 0, 1))]))
    alone.reset(None, [1.0, 2.0])
    beside.reset(None, [0.0, 1.0, 2.0])
    for _ in range(200):
        alone.step()
        beside.step()
    assert beside.state.q[1:] == pytest.approx(alone.state.q, abs=1e-12)
    assert beside.state.v[1:] == pytest.approx(alone.state.v, abs=1e-12)


# -- what a change keeps


@pytest.fixture
def config():
    return load_config(shipped_robots()["leg"])


@pytest.fixture
def leg(config):
    """A leg in motion, 0.2 s after a reset."""
    sim = config.simulator()
    sim.apply(PUSH, 1.0)
    for _ in range(200):
        sim.step([0.5, -1.0])
    return sim


def follow(sim, steps=100):
    """Return all states of some more steps."""
    states = []
    for _ in range(steps):
        sim.step([0.5, -1.0])
        states.append((sim.state.t, *sim.state.q[: len(sim.robot.without_objects.neutral())], *sim.state.v[:3]))
    return np.array(states)


def test_a_simulation_without_its_objects_again_goes_on_as_if_there_had_been_none(config, leg):
    never = leg.with_objects([])
    again = leg.with_objects([box(x=3.0)]).with_objects([])
    assert again.robot is leg.robot and again.state.t == leg.state.t and again.steps == leg.steps
    assert again.energy == leg.energy and again.constraints == leg.constraints
    fresh = config.simulator(leg.state.q, leg.state.v)
    fresh.apply(PUSH, 0.8)
    assert np.array_equal(follow(never), follow(again))
    assert np.array_equal(follow(fresh)[:, 1:], follow(leg.with_objects([box(x=3.0)]).with_objects([]))[:, 1:])


def test_a_robot_without_geometry_is_told_that_only_declared_contacts_act(config):
    """Where there is a scene for it; not while or because objects come and go, nor where nothing is asked for."""
    told = "no collision geometry: of all contacts only the declared ones act"
    robot = config.robot
    assert not robot.collision_elements and config.constraints
    for collisions in (Collisions(FLOOR), Collisions(self_collision=True)):
        with pytest.warns(NothingCollides, match=told):
            replace(config, collisions=collisions).simulator()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        replace(config, collisions=Collisions()).simulator()
        beside, scene = robot.with_objects([box(x=3.0)]), Collisions(FLOOR)
        q = carried_over(robot, beside, config.q, config.v)[0]
        sim = Simulator(beside, config.constraints, collisions=scene, q=q)
        sim.step()
        sim = sim.with_objects([])
        sim.step()
        sim.with_objects([box(x=3.0)]).with_objects([]).step()


def test_a_far_object_changes_nothing_of_the_robot(leg):
    beside = leg.with_objects([box(x=3.0)])
    assert follow(beside) == pytest.approx(follow(leg.with_objects([])), abs=1e-9)
    assert beside.integration_energy() == pytest.approx(leg.with_objects([]).integration_energy(), abs=0.1)


def test_an_object_that_stays_keeps_its_state(pusher):
    sim = Simulator(pusher.with_objects([box(z=1.0)]), collisions=Collisions(FLOOR))
    for _ in range(50):
        sim.step()
    first, second = sim.robot.objects[0], box(x=2.0, name="other")
    more = sim.with_objects([second, first])
    assert np.array_equal(velocity(more, "box"), velocity(sim, "box"))
    assert np.array_equal(velocity(more, "other"), np.zeros(6))
    assert np.array_equal(more.with_objects([first]).state.q, sim.state.q)
    assert np.array_equal(more.with_objects([box(z=1.0)]).state.q, sim.robot.neutral())  # another box of that name


def test_targets_and_switches_of_constraints_stay(pusher):
    body = box(x=1.0, z=2.0)
    sim = Simulator(pusher.with_objects([body]))
    sim.add(PointAnchor("string", "box/body", (0.0, 0.0, 0.1)))
    sim.add(FrameAnchor("glue", "box/body"), enabled=False)
    for _ in range(100):
        sim.step(wrenches=[Wrench("box/body", (0.0, 3.0, 0.0))])
    more = sim.with_objects([body, box(x=4.0, name="other")])
    assert [one.name for one in more.constraints] == ["string"] and [one.name for one in more.disabled] == ["glue"]
    more.step()
    top = place(more.robot, "box/body", more.state.q).act(np.array([0.0, 0.0, 0.1]))
    assert top == pytest.approx([1.0, 0.0, 2.1], abs=1e-6)  # where it was when the anchor was declared
    with pytest.raises(InvalidValue, match="string"):
        more.with_objects([])


def test_what_is_in_another_body_is_refused(pusher):
    sim = Simulator(pusher.with_objects([box()]), collisions=Collisions(FLOOR))
    for inside in (box(name="other"), box(x=2.0, z=0.05, name="other"), box(x=0.0, z=0.1, name="other")):
        with pytest.raises(ViolatedConstraint):
            sim.with_objects([*sim.robot.objects, inside])


def test_delayed_commands_still_act(pusher):
    sim, plain = (Simulator(pusher, command_delay=0.01, q=[0.0]) for _ in range(2))
    for one in (sim, plain):
        for _ in range(5):
            one.step([2.0])
    sim = sim.with_objects([box(x=3.0)])
    for one in (sim, plain):
        for _ in range(20):
            one.step([0.0])
    assert sim.state.v[0] == pytest.approx(plain.state.v[0], abs=1e-12)
    assert plain.state.v[0] == pytest.approx(5 * 2.0 * 1e-3 / 1.5)


def test_a_contact_may_be_declared_on_an_object(pusher):
    robot = pusher.with_objects([WorldObject.sphere("ball", 0.1, 2.0, pose=(0, 1, 0.1, 0, 0, 0, 1))])
    sim = Simulator(robot, [PointContact("ground", "ball/body", (0, 0, 0), radius=0.1)])
    assert sim.step().contact_forces["ground"].normal_force == pytest.approx(2.0 * GRAVITY)
    with pytest.raises(UnknownName):
        Simulator(pusher, [PointContact("ground", "ball/body", (0, 0, 0), radius=0.1)])


def test_the_world_can_be_copied_and_saved(pusher, tmp_path):
    sim = Simulator(pusher.with_objects([box()]), collisions=Collisions(FLOOR))
    other = pickle.loads(pickle.dumps(sim))
    sim.step([1.0])
    other.step([1.0])
    assert np.array_equal(sim.state.q, other.state.q)
    assert issubclass(DuplicateName, ConstrainedSimError)


def test_a_robot_whose_links_are_called_like_its_joints_has_objects_beside_it(pusher):
    """As many descriptions have it: each name means what it meant."""
    text = PUSHER.replace('"slide"', '"finger"')
    robot = Robot.from_urdf(text).with_objects(
        [WorldObject("other", Robot.from_urdf(text), (0, 1, 0, 0, 0, 0, 1)), box()]
    )
    assert robot.joint_names == ("finger", "other/finger", "box/root_joint")
    for link, expected in (("finger", (0.3, 0, 0.1)), ("other/finger", (0.4, 1, 0.1))):
        placed = place(robot, link, robot.configuration({"finger": 0.3, "other/finger": 0.4}))
        np.testing.assert_allclose(placed.translation, expected, atol=1e-15)


MASS_OF_A_LEAF = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'

GATE = f"""
<robot name="gate">
  <link name="frame"/>
  <link name="left">{MASS_OF_A_LEAF}</link>
  <link name="right">{MASS_OF_A_LEAF}</link>
  <joint name="a" type="revolute"><parent link="frame"/><child link="left"/><axis xyz="0 0 1"/>
    <limit lower="-0.2" upper="0.5" effort="1" velocity="10"/></joint>
  <joint name="b" type="continuous"><parent link="frame"/><child link="right"/><axis xyz="0 0 1"/>
    <limit effort="1" velocity="10"/><mimic joint="a" multiplier="-1" offset="0.3"/></joint>
</robot>
"""


def gate(name="gate", y=3.0):
    return WorldObject(name, Robot.from_urdf(GATE, actuated_joints=()), (0.0, y, 1.0, 0.0, 0.0, 0.0, 1.0))


def test_an_object_begins_as_its_own_constraints_need(pusher):
    """Its second leaf follows the first with an offset; it comes so, and a reset without a state brings it back so."""
    sim = Simulator(pusher, q=[0.0]).with_objects([gate()])
    leaf = sim.robot.joint_models["gate/b"]
    for _ in range(2):
        assert np.arctan2(sim.state.q[leaf.idx_q + 1], sim.state.q[leaf.idx_q]) == pytest.approx(0.3, abs=1e-9)
        sim.step(wrenches=[Wrench("gate/left", torque=(0.0, 0.0, 1.0))])
        first, second = (sim.state.v[sim.robot.joint_models[name].idx_v] for name in ("gate/a", "gate/b"))
        assert first > 0.0 and second == pytest.approx(-first, abs=1e-12)
        sim.reset()


def test_what_is_called_like_an_object_goes_with_it(pusher):
    """Its joint limits, say; what is called otherwise keeps it."""
    sim = Simulator(pusher.with_objects([gate()]), q=pusher.with_objects([gate()]).neutral())
    for limit in sim.robot.joint_limits():
        sim.add(limit)
    assert [one.name for one in sim.with_objects([]).constraints] == ["slide limit"]
    sim.add(PointAnchor("string", "gate/left", (0.0, 0.0, 0.0)))
    with pytest.raises(InvalidValue, match="string"):
        sim.with_objects([])


def test_excluded_pairs_of_objects(pusher):
    """A box in the gripper; it may be named before it comes and after it has gone, but a link it lacks may not."""
    inside = box(x=0.0, z=0.1)
    held = Collisions(FLOOR, excluded=[("finger", "box/body"), ("other/body", "box/body")])
    sim = Simulator(pusher, collisions=held, q=[0.0]).with_objects([inside])
    trajectory = sim.run(0.05)
    assert {name for name in trajectory.contact_forces if "finger" in name} == set()
    assert sim.with_objects([]).step().state.q.size == 1
    with pytest.raises(UnknownName, match="box/lid"):
        Simulator(pusher.with_objects([box()]), collisions=Collisions(FLOOR, excluded=[("finger", "box/lid")]))


def test_a_posture_and_a_servo_serve_copies_of_the_robot_and_what_is_beside_it(config):
    """Bit by bit as without the object, which is far away; as a copy that was pickled; and not another robot."""
    robot = config.robot
    posture = Posture(robot, config.q, 60.0, 1.5)
    alone = config.simulator()
    beside = alone.with_objects([box(x=3.0)])
    copied = pickle.loads(pickle.dumps(alone))
    expected = alone.run(0.1, posture)
    assert np.array_equal(copied.run(0.1, posture).q, expected.q)
    assert beside.run(0.1, posture).q[:, : robot.nq] == pytest.approx(expected.q, abs=1e-9)
    targets = Servo(robot, 60.0, 1.5).targets([0.5, -1.0])
    assert np.array_equal(copied.step(targets).state.q, alone.step(targets).state.q)
    with pytest.raises(InvalidValue, match="posture of another robot"):
        Simulator(Robot.from_urdf(PUSHER)).run(0.01, posture)


def test_an_object_is_the_same_after_it_was_pickled(pusher):
    """It stays as it is, also where the caller's own object is named; one like it is another."""
    body = box(z=1.0)
    sim = Simulator(pusher.with_objects([body]), collisions=Collisions(FLOOR))
    sim.run(0.05)
    copied = pickle.loads(pickle.dumps(sim))
    assert np.array_equal(copied.with_objects([body]).state.q, sim.state.q)
    assert np.array_equal(copied.with_objects([box(z=1.0)]).state.q, sim.robot.neutral())
