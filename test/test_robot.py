"""Robot descriptions: what is read, what is refused, what is where."""

import warnings

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import ROOT, block, chain, double_pendulum, joint, leg, link, point_of, simulator, solo12, urdf

from constrained_sim import PointAnchor, Robot, Simulator, constrained_acceleration, minimal_acceleration
from constrained_sim.exceptions import InvalidValue, LightJoint, ModelError, NonFiniteMotion, UnknownName

LEG = ROOT / "urdf" / "leg.urdf"


def test_from_a_file_and_from_its_text():
    """A path, its text and its XML are the same robot."""
    robots = [Robot.from_urdf(LEG), Robot.from_urdf(str(LEG)), Robot.from_urdf(LEG.read_text())]
    for robot in robots:
        assert robot.joint_names == ("slider", "hip", "knee")
        assert (robot.nq, robot.nv, robot.nu) == (3, 3, 3)
        assert robot.urdf == LEG.read_text()
        assert robot.mass == pytest.approx(2.5, rel=1e-12)


def test_xml_may_begin_with_blank_lines():
    """Text is told from a path by its first character that is not blank."""
    assert Robot.from_urdf("\n  " + LEG.read_text().split("?>", 1)[1]).nv == 3


def test_actuated_joints_give_tau_its_order():
    """tau follows the order that was asked for: the last joint first."""
    robot = Robot.from_urdf(LEG, actuated_joints=["knee", "hip"])
    assert (robot.nu, robot.actuated_joints) == (2, ("knee", "hip"))
    assert robot.actuation.tolist() == [2, 1]
    ordered = simulator(leg(), [0.9, 0.3, -0.5]).step([1.0, -2.0])
    swapped = simulator(robot, [0.9, 0.3, -0.5]).step([-2.0, 1.0])
    assert ordered.state.v.tobytes() == swapped.state.v.tobytes()


def test_no_actuated_joints():
    """A robot that takes no efforts at all."""
    robot = Robot.from_urdf(LEG, actuated_joints=[])
    assert robot.nu == 0
    assert robot.clamp([]).shape == (0,)
    simulator(robot, [0.9, 0, 0]).step([])


def test_the_free_flyer_is_not_actuated():
    """Every joint but the free-flyer takes an effort."""
    robot = solo12()
    assert (robot.nq, robot.nv, robot.nu) == (19, 18, 12)
    assert robot.actuated_joints == robot.joint_names[1:]
    assert robot.actuation.tolist() == list(range(6, 18))
    with pytest.raises(UnknownName):
        Robot.from_urdf(urdf(link("body", 1.0)), floating_base=True, actuated_joints=["root_joint"])


def test_effort_limits():
    """From the URDF, in the order of tau; none or zero means no limit."""
    assert leg().effort_limits.tolist() == [12.0, 12.0]
    assert leg().clamp([50.0, -3.0]).tolist() == [12.0, -3.0]
    free = '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>'
    robot = Robot.from_urdf(urdf('<link name="a"/>', link("b", 1.0, (0, 0, -0.1)), free))
    assert robot.effort_limits.tolist() == [np.inf]
    assert robot.clamp([1e6]).tolist() == [1e6]


@pytest.mark.parametrize("tau", [[np.nan, 0], [np.inf, 0], [1.0], "strong", None], ids=str)
def test_clamp_refuses_what_is_no_effort(tau):
    """Infinity is not limited but refused; the message names the joints."""
    with pytest.raises(InvalidValue, match="tau of hip, knee"):
        leg().clamp(tau)


def test_joint_damping_is_read():
    """From the URDF, by velocity entry."""
    assert leg().damping.tolist() == [0.0, 0.01, 0.01]
    assert leg().damping.any()
    assert not block().damping.any()


def test_one_degree_of_freedom():
    """The smallest robot falls and swings like any other: a = -1.5 g sin(angle) / length."""
    robot = chain((1.0,), (1.0,))
    result = simulator(robot, [0.5], dt=1e-6).step([0.0])
    assert result.a[0] == pytest.approx(-1.5 * 9.81 * np.sin(0.5), rel=1e-6)


# -- configurations


def test_neutral_configuration():
    """Zeros, and the unit quaternion of a free-flyer."""
    assert leg().neutral().tolist() == [0, 0, 0]
    assert block().neutral().tolist() == [0, 0, 0, 0, 0, 0, 1]


def test_configuration_by_name():
    """Joints by name, in any order; those not named stay neutral."""
    assert leg().configuration({"knee": -1.0, "slider": 0.3}).tolist() == [0.3, 0.0, -1.0]
    assert solo12().configuration({"HR_KFE": 0.5})[-1] in (0.0, 0.5)
    q = solo12().configuration({"FL_HFE": 0.7})
    joint_of = solo12().model.joints[solo12().model.getJointId("FL_HFE")]
    assert q[joint_of.idx_q] == 0.7
    assert np.count_nonzero(q) == 2


def test_base_placement_is_normalised():
    """Position and quaternion xyzw; any length of the quaternion."""
    q = block().configuration({}, [1, 2, 3, 0, 0, 2.0, 2.0])
    assert q == pytest.approx([1, 2, 3, 0, 0, np.sqrt(0.5), np.sqrt(0.5)], rel=1e-15)
    assert point_of(block(), q, "block", (1, 0, 0)) == pytest.approx([1, 3, 3], abs=1e-15)


def test_continuous_joint_takes_an_angle():
    """Two numbers in q, one for the user."""
    wheel = urdf('<link name="a"/>', link("b", 1.0, (0.1, 0, 0)), joint("wheel", "continuous", "a", "b", (0, 0, 1)))
    robot = Robot.from_urdf(wheel)
    assert (robot.nq, robot.nv) == (2, 1)
    for angle in (0.7, 4.0, -9.0):
        q = robot.configuration({"wheel": angle})
        assert point_of(robot, q, "b", (1, 0, 0)) == pytest.approx([np.cos(angle), np.sin(angle), 0], abs=1e-14)


def test_configuration_of_joints_with_several_coordinates():
    """Quaternions and (cos, sin) are normalised where they are, in planar, spherical and composite joints."""
    pin.seed(1)
    model, inertia = pin.Model(), pin.Inertia.Random()
    turns = pin.JointModelComposite(pin.JointModelRUBZ())
    turns.addJoint(pin.JointModelPX())
    kinds = {"planar": pin.JointModelPlanar(), "ball": pin.JointModelSpherical(), "turns": turns}
    for name, kind in kinds.items():
        model.addJoint(0, kind, pin.SE3.Identity(), name)
        model.appendBodyToJoint(model.getJointId(name), inertia, pin.SE3.Identity())
        model.addFrame(pin.Frame(name, model.getJointId(name), pin.SE3.Identity(), pin.FrameType.BODY))
    robot = Robot(model, ())
    q = robot.configuration({"planar": [1.0, 2.0, 0.6, 0.8], "ball": [0, 3.0, 0, 4.0], "turns": [0.0, 2.0, 5.0]})
    assert q == pytest.approx([1.0, 2.0, 0.6, 0.8, 0, 0.6, 0, 0.8, 0.0, 1.0, 5.0], rel=1e-15)
    for name, value in {"planar": [1.0, 2.0, 0.0, 0.0], "ball": [0.0] * 4, "turns": [0.0, 0.0, 1.0]}.items():
        with pytest.raises(InvalidValue, match="not zero"):
            robot.configuration({name: value})


@pytest.mark.parametrize(
    ("joints", "base", "error"),
    [
        ({"ankle": 0.0}, None, UnknownName),
        ({"nothing": 0.0}, None, UnknownName),
        ({"knee": np.nan}, None, InvalidValue),
        ({"knee": [0.1, 0.2]}, None, InvalidValue),
        ({"knee": "bent"}, None, InvalidValue),
        ({}, [0, 0, 0, 0, 0, 0, 1], InvalidValue),
    ],
    ids=str,
)
def test_bad_configurations_are_refused(joints, base, error):
    """Names and values are checked; a fixed base has no placement."""
    with pytest.raises(error):
        leg().configuration(joints, base)


@pytest.mark.parametrize("base", [[0] * 7, [0, 0, 0, 1], [0, 0, np.nan, 0, 0, 0, 1]], ids=str)
def test_bad_bases_are_refused(base):
    """Seven finite numbers with a quaternion of some length."""
    with pytest.raises(InvalidValue):
        block().configuration({}, base)


# -- names


def test_links_are_links_and_fixed_frames():
    """Every link of the URDF, and the world."""
    assert set(leg().links) == {"rail", "carriage", "upper_leg", "lower_leg", "ankle", "foot", "world"}
    joint_id, offset = leg().link_point("foot", (0, 0, 0))
    assert leg().model.names[joint_id] == "knee"
    assert offset == pytest.approx([0, 0, -0.16], abs=1e-15)
    with pytest.raises(UnknownName, match="carriage"):
        leg().link_point("toe", (0, 0, 0))
    with pytest.raises(InvalidValue):
        leg().link_point("foot", (0, 0))


def test_velocity_names():
    """One name per velocity entry: the joint's, numbered where it has several."""
    assert leg().velocity_names == ("slider", "hip", "knee")
    assert len(solo12().velocity_names) == 18
    assert solo12().velocity_names[:6] == tuple(f"root_joint.{i}" for i in range(6))


def test_support_tells_what_moves_what():
    """A joint's frame is moved by itself and those before it in the tree, as the Jacobians say."""
    robot = solo12()
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, robot.neutral())
    for index in range(1, robot.model.njoints):
        J = pin.getJointJacobian(robot.model, data, index, pin.WORLD)
        assert (np.abs(J).max(axis=0) > 0).tolist() == robot.support[index].tolist()


# -- refusals


@pytest.mark.parametrize("text", ["<robot", "<notarobot/>", '<robot name="r"/>', "<robot name='r'><link/></robot>"])
def test_what_is_no_urdf_is_refused(text):
    """Broken XML, other XML, and robots without links."""
    with pytest.raises(ModelError):
        Robot.from_urdf(text)


def test_missing_files_are_refused(tmp_path):
    """With the path that was given; folders and binary files too."""
    with pytest.raises(ModelError, match=r"no_such\.urdf"):
        Robot.from_urdf(tmp_path / "no_such.urdf")
    with pytest.raises(ModelError):
        Robot.from_urdf(tmp_path)
    (tmp_path / "binary.urdf").write_bytes(bytes(range(256)))
    with pytest.raises(ModelError):
        Robot.from_urdf(tmp_path / "binary.urdf")


def turning(name, parent, child):
    """Return a revolute joint."""
    return joint(name, "revolute", parent, child, more=LIMITS)


def test_massless_joint_is_refused():
    """A joint that moves nothing would make M singular: refused by name, wherever it sits."""
    bodies = ['<link name="a"/>', link("b", 1.0), '<link name="c"/>']
    with pytest.raises(ModelError, match="two"):
        Robot.from_urdf(urdf(*bodies, turning("one", "a", "b"), turning("two", "b", "c")))
    point_on_axis = link("b", 1.0, inertia=(0, 0, 0))
    with pytest.raises(ModelError, match="spin"):
        Robot.from_urdf(urdf('<link name="a"/>', point_on_axis, turning("spin", "a", "b")))
    with pytest.raises(ModelError):
        Robot.from_urdf(urdf('<link name="a"/>'), floating_base=True)
    with pytest.raises(ModelError, match="spin"):  # a free-flyer and a hinge, and nothing between them
        Robot.from_urdf(urdf('<link name="a"/>', link("b", 1.0), turning("spin", "a", "b")), floating_base=True)


def test_joints_that_move_next_to_nothing_where_a_robot_begins_are_warned_of():
    """The elbow gives way to the shoulder of a stretched arm but for the light upper link; of a bent one it cannot."""
    light = 3e-12
    upper, lower = link("upper", 1e-9, inertia=(light, light, light)), link("lower", 1.0, (0.2, 0, 0), (0, 0, 0))
    elbow = joint("elbow", "revolute", "upper", "lower", origin=(0.3, 0, 0), more=LIMITS)
    robot = Robot.from_urdf(urdf('<link name="a"/>', upper, lower, turning("shoulder", "a", "upper"), elbow))
    with pytest.warns(LightJoint, match="'shoulder'.*behind it") as caught:
        Simulator(robot, q=robot.neutral())
    assert caught[0].message.share == pytest.approx(light / 0.5**2, rel=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Simulator(robot, q=[0.0, 0.5])
        Simulator(robot.with_joints({"shoulder": {"armature": 1e-3}}), q=robot.neutral())
        Simulator(robot).reset([0.0, 0.5])  # neutral, where it does not begin, is of no interest


def test_a_turn_without_inertia_of_a_model_is_named():
    """Of a model that Pinocchio made: a needle without thickness, whose turn about its length moves nothing."""
    model = pin.Model()
    free = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "needle")
    model.appendBodyToJoint(free, pin.Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 0.0])), pin.SE3.Identity())
    model.addFrame(pin.Frame("needle", free, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    robot = Robot(model, [], floating_base=True)
    with pytest.warns(LightJoint) as caught:
        Simulator(robot, q=robot.neutral())
    assert (caught[0].message.joint, caught[0].message.share) == (robot.velocity_names[5], 0.0)
    with pytest.raises(NonFiniteMotion, match="moves no inertia"):
        minimal_acceleration(robot, robot.neutral(), np.zeros(6), [], [PointAnchor("tip", "needle", (0, 0, 1))])


LIMITS = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'


def test_massless_links_on_fixed_joints_are_normal():
    """Feet and frames without inertia are everywhere."""
    assert "tip" in double_pendulum().links
    between = urdf(
        '<link name="a"/>', '<link name="b"/>', link("c", 1.0, (0, 0, 1)),
        joint("turn", "revolute", "a", "b", more=LIMITS), joint("weld", "fixed", "b", "c"),
    )  # fmt: skip
    assert Robot.from_urdf(between).nv == 1


def test_inertia_that_is_not_finite_is_refused():
    """NaN masses would come out at the far end otherwise."""
    with pytest.raises(ModelError):
        Robot.from_urdf(
            urdf('<link name="a"/>', link("b", float("nan")), joint("one", "revolute", "a", "b", more=LIMITS))
        )


def test_bad_actuation_is_refused():
    """Unknown joints, and a joint named twice."""
    with pytest.raises(UnknownName, match="hip"):
        Robot.from_urdf(LEG, actuated_joints=["hips"])
    with pytest.raises(InvalidValue):
        Robot.from_urdf(LEG, actuated_joints=["hip", "hip"])


@pytest.mark.parametrize("gravity", [(0, 0), (0, 0, np.nan), "down", 9.81], ids=str)
def test_bad_gravity_is_refused(gravity):
    """Three finite numbers."""
    with pytest.raises(InvalidValue):
        Robot.from_urdf(LEG, gravity=gravity)


def test_gravity_in_any_direction():
    """A free body falls along it."""
    gravity = (1.0, -2.0, 3.0)
    robot = block(gravity=gravity)
    assert simulator(robot, robot.neutral()).step().a[:3] == pytest.approx(gravity, rel=1e-12)


def test_a_robot_may_fall_without_gravity_reaching_others():
    """Each robot has a gravity of its own: none here, the usual one there."""
    weightless = block(gravity=(0, 0, 0))
    assert not simulator(weightless, weightless.neutral()).step().a.any()
    assert simulator(block(), block().neutral()).step().a[2] == pytest.approx(-9.81, rel=1e-14)


def test_a_link_is_meant_by_its_name_whatever_else_has_it():
    """A fixed joint behind it may be called the same."""
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("arm", 1.0),
            joint("turn", "continuous", "base", "arm", (0, 1, 0)),
            link("tip", 0.1),
            '<joint name="arm" type="fixed"><parent link="arm"/><child link="tip"/><origin xyz="0.5 0 0"/></joint>',
        )
    )
    assert robot.link_placement("arm")[1].translation == pytest.approx([0.0, 0.0, 0.0], abs=0.0)
    assert robot.link_placement("tip")[1].translation == pytest.approx([0.5, 0.0, 0.0], abs=1e-15)


def test_a_moving_link_cannot_be_called_the_world():
    """Under a free-flyer wrenches on it would act on nothing; where it does not move, it is the world."""
    parts = link("world", 1.0), link("arm", 1.0), joint("turn", "continuous", "world", "arm", (0, 1, 0))
    with pytest.raises(ModelError, match="'world' moves"):
        Robot.from_urdf(urdf(*parts), floating_base=True)
    assert Robot.from_urdf(urdf(*parts)).link_placement("world")[0] == 0


def test_joints_are_depth_first() -> None:
    """Pinocchio's inertia matrix is wrong otherwise: one branch after the other is accepted."""

    def tree(order: list[tuple[str, str]]) -> pin.Model:
        model, inertia = pin.Model(), pin.Inertia.Random()
        for parent, name in order:
            model.addJoint(model.getJointId(parent), pin.JointModelRY(), pin.SE3.Random(), name)
            model.appendBodyToJoint(model.getJointId(name), inertia, pin.SE3.Identity())
        return model

    depth_first = [("universe", "base"), ("base", "a"), ("a", "c"), ("base", "b")]
    robot = Robot(tree(depth_first), ())
    q = v = tau = np.array([0.1, -0.3, 0.5, 0.2])
    a = constrained_acceleration(robot, q, v, np.zeros(0), ()).a
    assert a == pytest.approx(pin.aba(robot.model, robot.model.createData(), q, v, 0.0 * tau), rel=1e-9)
    with pytest.raises(ModelError, match=r"joint 'c': got it after 'b'.*depth-first.*'a'"):
        Robot(tree([depth_first[k] for k in (0, 1, 3, 2)]), ())
