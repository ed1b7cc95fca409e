"""Sensors: what they read, against closed forms and Pinocchio alone; their errors, their rates, their configuration."""

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given
from mechanisms import (
    GRAVITY,
    LIMIT,
    ROOT,
    block,
    chain,
    corners,
    derivative,
    joint,
    leg_config,
    link,
    placement,
    point_of,
    property_test,
    random_link,
    random_state,
    random_tree,
    relative,
    seeds,
    simulator,
    solo12,
    solo_contacts,
    standing_solo,
    tilted,
    urdf,
)

from constrained_sim import (
    Collisions,
    Compliant,
    ForceTorque,
    FrameAnchor,
    Imu,
    JointCoupling,
    Plane,
    PointAnchor,
    PointContact,
    PointDistance,
    Robot,
    SensorSet,
    Simulator,
    Wrench,
    load_config,
)
from constrained_sim.config import read_config
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import ConfigError, InvalidValue, UnknownName
from constrained_sim.parameter_file import load_parameters

LEG = ROOT / "config" / "leg.yaml"
G = np.array([0.0, 0.0, -GRAVITY])


def exact(sensor, robot, result):
    """Return an ideal reading as one array."""
    return np.concatenate(sensor.exact(robot, result))


def wrench_on(robot, result, name):
    """Return the ideal reading of a force-torque sensor at a link."""
    return exact(ForceTorque("ft", name), robot, result)


# -- IMU


@pytest.mark.parametrize("axis", [0, 1])
def test_imu_at_rest_on_a_slope(axis):
    """It reads gravity upwards, in the axes of the block, its own orientation, and no rotation."""
    turned, robot = tilted(0.3, axis), block()
    rotation = pin.Quaternion(turned).matrix()
    q = robot.configuration({}, [*(rotation @ [0, 0, 0.05]), *turned])
    sim = simulator(robot, q, constraints=corners(surface=Plane(rotation[:, 2]), friction=0.8))
    for _ in range(20):
        result = sim.step()
    orientation, angular_velocity, acceleration = Imu("imu", "block").exact(robot, result)
    np.testing.assert_allclose(orientation, turned, atol=1e-12)
    np.testing.assert_allclose(angular_velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(acceleration, rotation.T @ -G, atol=1e-10)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven", "smooth"])
def test_imu_in_free_fall(stepper):
    """A falling body that does not turn has no proper acceleration, whatever its speed and its posture."""
    robot = block()
    q = robot.configuration({}, [0.1, 0.2, 3.0, *tilted(0.7)])
    result = simulator(robot, q, [0.3, -1.0, 2.0, 0, 0, 0], stepper=stepper).step()
    assert np.abs(Imu("imu", "block").exact(robot, result).acceleration).max() < 1e-11


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven", "smooth"])
def test_imu_in_spinning_free_fall(stepper):
    """At the centre of mass of a body that tumbles and falls, what is read vanishes with the square of the step."""
    robot, errors = block(), []
    for dt in (5e-4, 2.5e-4):
        q = robot.configuration({}, [0.1, 0.2, 3.0, *tilted(0.7)])
        result = simulator(robot, q, [0.3, -1.0, 2.0, 2.0, 1.0, -3.0], stepper=stepper, dt=dt).step()
        errors.append(np.abs(Imu("imu", "block").exact(robot, result).acceleration).max())
    assert errors[1] < 1e-4
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.05)


def test_imu_on_a_spinning_pendulum():
    """Centripetal and tangential acceleration and gravity, in the axes of the rod; its orientation at the end."""
    robot = chain((0.5,))
    result = simulator(robot, [0.4], [3.0]).step([0.7])
    angle, rate, acceleration = result.middle.q[0], result.middle.v[0], result.a[0]
    reading = Imu("imu", "tip").exact(robot, result)
    # The rod hangs along its own -z; a turn about y by +90 degrees takes -z to -x.
    expected = [-0.5 * acceleration - GRAVITY * np.sin(angle), 0.0, 0.5 * rate**2 + GRAVITY * np.cos(angle)]
    np.testing.assert_allclose(reading.acceleration, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(reading.angular_velocity, [0.0, result.state.v[0], 0.0], atol=1e-15)
    np.testing.assert_allclose(reading.orientation, tilted(result.state.q[0]), atol=1e-15)


@given(seeds)
@property_test(25)
def test_imu_against_finite_differences(seed):
    """On any link: the second derivative of the frame's position, and the derivative of its rotation."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, floating_base=bool(seed % 2))
    q, v = random_state(robot, rng)
    result = simulator(robot, q, v, stepper="smooth").step(rng.normal(size=robot.nu))
    for name in ("link0", "link5"):
        reading = Imu("imu", name).exact(robot, result)
        middle, state = result.middle, result.state

        def along(t, middle=middle, a=result.a):
            return pin.integrate(robot.model, middle.q, t * (middle.v + 0.5 * t * a))

        def velocity(t, name=name, along=along):
            return derivative(lambda s: point_of(robot, along(t + s), name), 2e-3)

        rotation = placement(robot, middle.q, name).rotation
        expected = rotation.T @ (derivative(velocity, 2e-3) - G)
        np.testing.assert_allclose(reading.acceleration, expected, atol=1e-7 * (1.0 + np.abs(expected).max()))
        turn = placement(robot, state.q, name).rotation

        def turned(t, name=name, turn=turn, state=state):
            return turn.T @ placement(robot, pin.integrate(robot.model, state.q, t * state.v), name).rotation

        spin = derivative(turned)
        omega = [spin[2, 1], spin[0, 2], spin[1, 0]]
        np.testing.assert_allclose(reading.angular_velocity, omega, atol=1e-9)
        np.testing.assert_allclose(pin.Quaternion(reading.orientation).matrix(), turn, atol=1e-14)


def test_imu_of_the_world_and_of_a_fixed_base():
    """What does not move reads gravity."""
    robot = chain((0.5,))
    result = simulator(robot, [0.4], [3.0]).step()
    for name in ("world", "base"):
        orientation, angular_velocity, acceleration = Imu("imu", name).exact(robot, result)
        assert (orientation.tolist(), angular_velocity.tolist()) == ([0, 0, 0, 1], [0, 0, 0])
        np.testing.assert_allclose(acceleration, -G, rtol=1e-15)


def test_quaternions_have_a_positive_scalar_part():
    """Also beyond half a turn, where the other sign would say the same."""
    robot = chain((0.5,))
    for angle in (3.0, 3.3, 5.0):
        w = Imu("imu", "tip").exact(robot, simulator(robot, [angle]).step()).orientation[3]
        assert w == pytest.approx(abs(np.cos(angle / 2.0)), abs=1e-4)


def test_the_acceleration_leaves_impacts_out():
    """Where a ball is caught within a step, the mean acceleration is that of fall and rest, not of the jump."""
    for stepper in ("time_stepping", "event_driven"):
        robot = block()
        q = robot.configuration({}, [0, 0, 0.05 + 4e-4, 0, 0, 0, 1])
        sim = simulator(robot, q, [0, 0, -1.0, 0, 0, 0], corners(), stepper=stepper)
        result = sim.step()
        (impact,) = result.impacts
        assert impact.v_plus[2] - impact.v_minus[2] == pytest.approx(1.0, rel=0.01)
        assert result.a[2] == pytest.approx(-GRAVITY * impact.t / 1e-3, rel=1e-9)
        acceleration = Imu("imu", "block").exact(robot, result).acceleration[2]
        assert acceleration == pytest.approx(GRAVITY * (1.0 - impact.t / 1e-3), rel=1e-9)
        force = sum(contact.force[2] for contact in result.contact_forces.values())
        assert 2.0 * acceleration == pytest.approx(force, rel=1e-9)  # mean force by mass


# -- force and torque


def test_a_tool_that_hangs_reads_its_weight_upwards():
    """The sign: what carries exerts on what is carried; about the origin of the frame, in its axes."""
    robot = Robot.from_urdf(
        urdf(
            link("base", 1.0),
            link("arm", 2.0),
            joint("shoulder", "revolute", "base", "arm", more=LIMIT),
            link("tool", 0.7, (0.1, 0, 0)),
            '<joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/>'
            '<origin xyz="0 0 -1" rpy="0 0 1.5707963267948966"/></joint>',
        )
    )
    sim = simulator(robot, [0.0])
    result = sim.step()
    assert np.abs(sim.state.v).max() < 1e-15
    weight = 0.7 * GRAVITY
    # The centre of mass is at x = 0.1 of the tool, where the weight turns about y; the arm holds against it.
    np.testing.assert_allclose(wrench_on(robot, result, "tool"), [0, 0, weight, 0, -0.1 * weight, 0], atol=1e-13)


def test_foot_of_the_standing_leg():
    """The ankle carries the ground's force less the foot's weight, downwards, and no torque about the foot's origin
    but that of its weight; the rail carries what neither gravity nor the ground gives."""
    config = leg_config()
    sim = config.simulator()
    posture = sim.state.q[1:].copy()
    for _ in range(3000):
        result = sim.step(60.0 * (posture - sim.state.q[1:]) - 1.5 * sim.state.v[1:])
    robot, state, force = config.robot, result.state, result.contact_forces["foot"].force
    assert np.abs(state.v).max() < 1e-9
    assert force[2] == pytest.approx(2.5 * GRAVITY, rel=1e-6)
    rotation = placement(robot, state.q, "foot").rotation
    carried = 0.03 * G + force
    arm = rotation @ [0.0, 0.0, 0.005]
    expected = np.concatenate([rotation.T @ -carried, rotation.T @ -np.cross(arm, 0.03 * G)])
    assert relative(wrench_on(robot, result, "foot"), expected) < 1e-9
    rail = wrench_on(robot, result, "carriage")
    np.testing.assert_allclose(rail[:3], [-force[0], 0, 0], atol=1e-7)


@pytest.mark.parametrize("tau", [0.0, 1.3])
def test_pivot_of_a_pendulum(tau):
    """Closed form: the pivot of a slender rod holds its weight and turns its middle, centripetally and tangentially.

    About the axis the pivot exerts the effort of the joint; with an armature, less what turns the rotor.
    """
    length, mass = 0.5, 1.0
    for armature in (0.0, 0.2):
        robot = chain((length,), (mass,)).with_joints({"joint0": {"armature": armature}})
        result = simulator(robot, [0.4], [3.0], stepper="smooth").step([tau])
        angle, rate, acceleration = result.middle.q[0], result.middle.v[0], result.a[0]
        force = mass * np.array(
            [
                -0.5 * length * acceleration - GRAVITY * np.sin(angle),
                0.0,
                0.5 * length * rate**2 + GRAVITY * np.cos(angle),
            ]
        )
        torque = mass * (length**2 / 3.0 * acceleration + 0.5 * length * GRAVITY * np.sin(angle))
        reading = wrench_on(robot, result, "rod0")
        np.testing.assert_allclose(reading, [*force, 0.0, torque, 0.0], rtol=1e-12, atol=1e-12)
        assert torque + armature * acceleration == pytest.approx(tau, abs=1e-5)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven", "smooth"])
def test_second_order_along_the_axis_of_a_joint(stepper):
    """What a joint transmits about its axis is its effort, up to the square of the step."""
    robot = random_tree(np.random.default_rng(5), 5)
    q, v = random_state(robot, np.random.default_rng(6))
    tau, errors = 0.3 * np.arange(1.0, 6.0), []
    for dt in (2e-3, 1e-3):
        result = simulator(robot, q, v, stepper=stepper, dt=dt).step(tau)
        found = []
        for i, name in enumerate(robot.joint_names):
            axis = pin.Motion(np.asarray(axis_of(robot, name)))
            moved = next(f.name for f in robot.model.frames if f.type == pin.BODY and f.parentJoint == i + 1)
            found.append(axis.vector @ wrench_on(robot, result, moved))
        errors.append(np.abs(found - tau).max())
    assert errors[1] < 1e-3
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.15)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_a_passive_joint_carries_nothing_through_touchdown(stepper):
    """The slider of a leg that lands: nothing along it, also in the step in which the joints' velocities jump."""
    config, errors = leg_config(), []
    for dt in (2e-3, 1e-3):
        sim = Simulator(config.robot, stepper=stepper, dt=dt)
        sim.reset(config.q)
        sim.add(config.constraints[0])
        found, jumps = [], []
        for _ in range(round(0.15 / dt)):
            result = sim.step(60.0 * (config.q[1:] - sim.state.q[1:]) - 1.5 * sim.state.v[1:])
            found.append(abs(wrench_on(config.robot, result, "carriage")[2]))
            jumps += [impact.v_plus - impact.v_minus for impact in result.impacts]
        assert np.abs(jumps).max() > 1.0
        errors.append(max(found))
    assert errors[1] < 1e-4 * config.robot.mass * GRAVITY
    assert errors[1] < 0.6 * errors[0]


def axis_of(robot, name):
    """Return the motion (6,) of a joint with one degree of freedom, in its own frame."""
    model = robot.model.joints[robot.model.getJointId(name)]
    data = model.createData()
    model.calc(data, robot.neutral())
    return np.asarray(data.S).reshape(6)


def cut_chain(rng, kind):
    """Return a floating tree in which the joint ``cut``, between link1 and link2, is of a `kind`."""
    origin = '<origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 -0.6"/>'
    parts = [random_link(rng, f"link{i}") for i in range(7)]
    parts += [
        joint("one", "revolute", "link0", "link1", (0, 0, 1), (0.2, 0, 0.1), LIMIT),
        f'<joint name="cut" type="{kind}"><parent link="link1"/><child link="link2"/>{origin}</joint>',
        joint("three", "fixed", "link2", "link3", origin=(0.1, 0.3, 0.1)),
        joint("four", "revolute", "link3", "link4", (1, 0, 0), (0, 0.2, 0.1), LIMIT),
        joint("five", "fixed", "link1", "link5", origin=(-0.3, 0.1, 0)),
        joint("six", "revolute", "link1", "link6", (0, 1, 0), (0.1, 0.2, 0), LIMIT),
    ]
    return Robot.from_urdf(urdf(*parts), floating_base=True)


@given(seeds)
@property_test(20)
def test_cut_at_a_fixed_joint_inside_a_chain(seed):
    """Against the inverse dynamics of a robot that has a joint with six degrees of freedom in place of the cut.

    Branches at the parent's side of the cut, fixed and moving, which Pinocchio gives to the same joint, are left out;
    the external wrench on the child counts.
    """
    whole = cut_chain(np.random.default_rng(seed), "fixed")
    split = cut_chain(np.random.default_rng(seed), "floating")
    rng = np.random.default_rng(seed + 1)
    q, v = random_state(whole, rng)
    push = Wrench("link3", rng.normal(size=3), rng.normal(size=3), rng.normal(size=3))
    elsewhere = Wrench("link5", rng.normal(size=3))
    result = simulator(whole, q, v).step(rng.normal(size=3), [push, elsewhere])
    q6, v6, a6 = split.neutral(), np.zeros(split.nv), np.zeros(split.nv)
    for name in whole.joint_names:
        old, new = (robot.model.joints[robot.model.getJointId(name)] for robot in (whole, split))
        q6[new.idx_q : new.idx_q + new.nq] = result.middle.q[old.idx_q : old.idx_q + old.nq]
        v6[new.idx_v : new.idx_v + new.nv] = result.middle.v[old.idx_v : old.idx_v + old.nv]
        a6[new.idx_v : new.idx_v + new.nv] = result.a[old.idx_v : old.idx_v + old.nv]
    tau = pin.rnea(split.model, split.model.createData(), q6, v6, a6)
    moment = push.torque + np.cross(point_of(split, q6, "link3", push.point), push.force)
    external = placement(split, q6, "link2").actInv(pin.Force(push.force, moment))
    cut = split.model.joints[split.model.getJointId("cut")].idx_v
    assert relative(wrench_on(whole, result, "link2"), tau[cut : cut + 6] - external.vector) < 1e-11


def test_a_cut_is_known_by_its_link_and_by_its_joint():
    """The name of a fixed joint means the cut at the link behind it."""
    robot = cut_chain(np.random.default_rng(3), "fixed")
    q, v = random_state(robot, np.random.default_rng(4))
    result = simulator(robot, q, v).step()
    assert wrench_on(robot, result, "cut").tolist() == wrench_on(robot, result, "link2").tolist()


def test_a_floating_base_is_held_by_nothing():
    """The joint of a free-flyer carries nothing: all that acts on the robot explains its motion."""
    robot, q = solo12(), standing_solo()
    sim = simulator(robot, q, constraints=solo_contacts(friction=0.7))
    for _ in range(300):
        result = sim.step(8.0 * (q[7:] - sim.state.q[7:]) - 0.2 * sim.state.v[6:])
    weight = robot.mass * GRAVITY
    assert sum(contact.force[2] for contact in result.contact_forces.values()) == pytest.approx(weight, rel=0.1)
    assert np.abs(wrench_on(robot, result, "base_link")).max() < 1e-6 * weight


def test_base_of_a_fixed_robot_carries_everything():
    """Its weight and its motion, the links that do not move among it."""
    parts = [link("base", 3.0, (0.1, 0, 0)), link("plate", 1.5), link("arm", 2.0, (0, 0, -0.5))]
    parts += [joint("mount", "fixed", "base", "plate"), joint("swing", "revolute", "plate", "arm", more=LIMIT)]
    robot = Robot.from_urdf(urdf(*parts))
    result = simulator(robot, [0.0]).step()
    expected = [0, 0, 6.5 * GRAVITY, 0, -0.3 * GRAVITY, 0]
    np.testing.assert_allclose(wrench_on(robot, result, "base"), expected, atol=1e-12)
    np.testing.assert_allclose(wrench_on(robot, result, "plate"), [0, 0, 3.5 * GRAVITY, 0, 0, 0], atol=1e-12)


def closed_loop():
    """Return two unequal rods held at the tip by the world, moving, and the result of a step."""
    robot = chain((0.5, 0.35, 0.4))
    q = robot.configuration({"joint0": 0.7, "joint1": -1.6, "joint2": -0.5})
    anchor = PointAnchor("pin", "tip", (0, 0, 0), normals=[(1, 0, 0), (0, 0, 1)])
    sim = simulator(robot, q, np.zeros(3), [anchor], stepper="smooth")
    sim.run(0.2)
    return robot, sim.step([0.1, 0.2, 0.3])


def newton_euler(robot, result, joints):
    """Return (6,) the rate of momentum less the weight of the bodies of `joints`, about the world's origin."""
    data, total = robot.model.createData(), np.zeros(6)
    pin.forwardKinematics(robot.model, data, result.middle.q, result.middle.v, result.a)
    for index in joints:
        body, at = robot.model.inertias[index], data.oMi[index]
        gravity = pin.Motion(at.rotation.T @ G, np.zeros(3))
        total += at.act(body * (data.a[index] - gravity) + body.vxiv(data.v[index])).vector
    return total


def test_cut_in_a_closed_loop():
    """The anchor's force on the tip is external to every part that holds the tip."""
    robot, result = closed_loop()
    assert np.abs(result.state.v).max() > 0.5
    force = result.wrench("pin", "tip")[:3]
    tip = point_of(robot, result.middle.q, "tip")
    for first in range(3):
        total = newton_euler(robot, result, range(first + 1, 4))
        total -= np.concatenate([force, np.cross(tip, force)])
        frame = placement(robot, result.middle.q, f"rod{first}")
        expected = frame.actInv(pin.Force(total)).vector
        assert relative(wrench_on(robot, result, f"rod{first}"), expected) < 1e-10


def test_members_between_two_links():
    """Inside the part they cancel; across the cut they count, with the sign of the side; so does a weld."""
    parts = [random_link(np.random.default_rng(i), f"link{i}") for i in range(4)]
    parts += [
        joint("a", "revolute", "link0", "link1", (0, 1, 0), (0.3, 0, 0), LIMIT),
        joint("b", "revolute", "link0", "link2", (0, 1, 0), (-0.3, 0, 0), LIMIT),
        joint("c", "revolute", "link2", "link3", (0, 0, 1), (0, 0, -0.2), LIMIT),
    ]
    robot = Robot.from_urdf(urdf(*parts), floating_base=True)
    anchors = [
        PointAnchor("bar", "link1", (0, 0, -0.3), "link2", normals=[(0, 0, 1)]),
        FrameAnchor("weld", "link2", pin.SE3.Identity(), "link3"),
    ]
    q, v = robot.configuration({"a": 0.3, "b": -0.2, "c": 0.1}), np.zeros(robot.nv)
    v[6:] = 0.0
    sim = simulator(robot, q, v, anchors)
    sim.run(0.05, lambda t, q, v: [0.5, 0.0, 0.2])
    result = sim.step([0.5, 0.0, 0.2])
    bound, forces = {member.name: member for member in result.outcome.end.bound.bilateral.members}, {}
    dynamics = Dynamics(robot)
    dynamics.update_kinematics(result.middle.q)
    for name, on in (("bar", "link1"), ("weld", "link2")):
        wrench = bound[name].wrench(dynamics, result.multipliers(name), on)
        forces[name] = wrench + np.concatenate([np.zeros(3), np.cross(bound[name].wrench_point(dynamics), wrench[:3])])
        assert np.abs(wrench).max() > 1e-2
    for name, joints, external in (
        ("link1", (2,), forces["bar"]),
        ("link2", (3, 4), -forces["bar"]),
        ("link3", (4,), -forces["weld"]),
    ):
        total = newton_euler(robot, result, joints) - external
        expected = placement(robot, result.middle.q, name).actInv(pin.Force(total)).vector
        assert relative(wrench_on(robot, result, name), expected) < 1e-10


def test_a_rod_holds_what_it_is_fastened_to():
    """A tool on an arm, hung up on a rod: the cut carries the weight less what the rod pulls, as an anchor's would."""
    arm, tool = link("arm", 2.0, (0.5, 0, 0)), link("tool", 1.0, (0.1, 0, 0))
    joints = joint("j", "continuous", "base", "arm"), joint("f", "fixed", "arm", "tool", origin=(1, 0, 0))
    robot = Robot.from_urdf(urdf('<link name="base"/>', arm, tool, *joints))
    pull = GRAVITY * (2.0 * 0.5 + 1.0 * 1.1) / 1.2  # moments about the hinge
    rod = PointDistance("held", "tool", (0.2, 0, 0), "world", (1.2, 0, 1.0))
    for held in (rod, PointAnchor("held", "tool", (0.2, 0, 0), normals=[(0, 0, 1)])):
        result = Simulator(robot, [held], q=robot.neutral()).step()
        reading = SensorSet(robot, [ForceTorque("ft", "tool")], 1e-3).measure(result)["ft"]
        assert reading.force == pytest.approx([0, 0, GRAVITY - pull], abs=1e-9)
        assert reading.torque == pytest.approx([0, 0.2 * pull - 0.1 * GRAVITY, 0], abs=1e-9)


def test_couplings_are_efforts_in_joints():
    """A gear between two joints acts about the axis of each: on the follower by its multiplier, beside the actuator."""
    robot = chain((0.5, 0.35))
    sim = simulator(robot, [0.4, 0.8], constraints=[JointCoupling("gear", "joint1", "joint0", 2.0)], stepper="smooth")
    result = sim.step([0.0, 0.5])
    lam = result.multipliers("gear")[0]
    assert wrench_on(robot, result, "rod1")[4] == pytest.approx(0.5 + lam, abs=1e-5)
    assert wrench_on(robot, result, "rod0")[4] == pytest.approx(-2.0 * lam, abs=1e-5)


def test_results_hold_the_applied_wrenches():
    """Those passed to a step and those that still act, in this order, and no others."""
    sim = simulator(chain((0.5, 0.35)), [0.4, 0.8])
    lasting, passed = Wrench("tip", (1.0, 2.0, 3.0)), Wrench("rod0", (0.0, 5.0, 0.0))
    sim.apply(lasting, 0.002)
    assert [sim.step(wrenches=given).wrenches for given in ([passed], [], [])] == [(passed, lasting), (lasting,), ()]


@pytest.mark.parametrize("axes", ["world", "rod0"])
def test_applied_wrenches(axes):
    """What pushes out of the plane of a pendulum does not move it: every pivot takes its opposite, at once."""
    robot = chain((0.5, 0.35))
    push = Wrench("rod1", (0.0, 5.0, 0.0), (0.3, 0.0, 0.1), (0.1, 0.2, -0.3), axes)
    results = [simulator(robot, [0.4, 0.8], [1.0, 2.0]).step(wrenches=wrenches) for wrenches in ([push], [])]
    assert relative(results[0].state.v, results[1].state.v) < 1e-12
    q = results[0].middle.q
    turn = placement(robot, q, axes).rotation
    moment = turn @ push.torque + np.cross(point_of(robot, q, "rod1", push.point), turn @ push.force)
    for name in ("rod0", "rod1"):
        change = wrench_on(robot, results[0], name) - wrench_on(robot, results[1], name)
        expected = -placement(robot, q, name).actInv(pin.Force(turn @ push.force, moment)).vector
        assert change[[1, 3, 5]] == pytest.approx(expected[[1, 3, 5]], abs=1e-12)


@pytest.mark.parametrize("law", ["rigid", "compliant"])
def test_contacts_of_spheres(law):
    """A wheel that slips: its axle takes a force at the point of contact, not at the centre."""
    parts = [link("body", 2.0), link("wheel", 1.0), joint("axle", "revolute", "body", "wheel", more=LIMIT)]
    robot = Robot.from_urdf(urdf(*parts), floating_base=True)
    options = {"law": Compliant(1e4, 1e2)} if law == "compliant" else {}
    contact = PointContact("tyre", "wheel", (0, 0, 0), friction=0.9, radius=0.2, **options)
    q = robot.configuration({}, [0, 0, 0.2, 0, 0, 0, 1])
    sim = simulator(robot, q, [1.0, 0, 0, 0, 0, 0, 5.0], [contact])
    sim.run(0.02, lambda t, q, v: [0.5])
    result = sim.step([0.5])
    force = result.contact_forces["tyre"].force
    assert force[2] > 1.0 and abs(force[0]) > 0.1
    at = point_of(robot, result.middle.q, "wheel") - [0, 0, 0.2]
    total = newton_euler(robot, result, (2,)) - np.concatenate([force, np.cross(at, force)])
    expected = placement(robot, result.middle.q, "wheel").actInv(pin.Force(total)).vector
    assert relative(wrench_on(robot, result, "wheel"), expected) < 1e-8


@pytest.mark.parametrize("order", [1, -1])
def test_contacts_between_links(order):
    """A link that lies on another, which is bolted to a third: each side of a cut takes the force on its own."""

    def shaped(name, mass):
        return link(name, mass, shape='<box size="0.2 0.2 0.1"/>')

    parts = ['<link name="stand"/>', link("guide", 0.4), shaped("lid", 1.0), link("lift", 2.0), shaped("plate", 0.5)]
    rails = [
        joint("down", "prismatic", "stand", "lift", (0, 0, 1), more=LIMIT) + joint("bolt", "fixed", "lift", "plate"),
        joint("guided", "prismatic", "stand", "guide", (1, 0, 0), more=LIMIT)
        + joint("up", "prismatic", "guide", "lid", (0, 0, 1), more=LIMIT),
    ]
    names = {1: ("a", "b"), -1: ("b", "a")}[order]  # Pinocchio sorts the branches by the names of their joints
    rails = [rail.replace('joint name="', f'joint name="{name}') for rail, name in zip(rails, names, strict=True)]
    robot = Robot.from_urdf(urdf(*parts, *rails))
    up, down = names[1] + "up", names[0] + "down"
    sim = Simulator(robot, collisions=Collisions(self_collision=True), constraints=())
    q = robot.configuration({up: 0.1})
    sim.reset(q)
    tau = np.zeros(robot.nu)
    tau[robot.actuated_joints.index(down)] = 3.5 * GRAVITY
    for _ in range(10):
        result = sim.step(tau)
    assert {contact.link for contact in result.contact_forces.values()} == {"lid" if order < 0 else "plate"}
    for name, carried in (("plate", 1.5), ("lift", 3.5), ("lid", 0.0), ("guide", 0.4)):
        np.testing.assert_allclose(wrench_on(robot, result, name)[:3], [0, 0, carried * GRAVITY], atol=1e-9)


def test_sites_and_bodies_of_an_mjcf():
    """A site measures at the joint that holds its body, about its own origin."""
    xml = (
        '<mujoco><worldbody><body name="arm"><joint name="swing" type="hinge" axis="0 1 0"/>'
        '<geom type="sphere" size="0.1" mass="2"/><body name="tool" pos="0 0 -1">'
        '<geom type="sphere" size="0.1" mass="3"/>'
        '<site name="tip" pos="0.2 0 -0.5"/></body></body></worldbody></mujoco>'
    )
    robot = Robot.from_mjcf(xml)
    result = simulator(robot, [0.0]).step()
    weight = 3.0 * GRAVITY
    np.testing.assert_allclose(wrench_on(robot, result, "tool"), [0, 0, weight, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(wrench_on(robot, result, "tip"), [0, 0, weight, 0, 0.2 * weight, 0], atol=1e-12)
    np.testing.assert_allclose(wrench_on(robot, result, "arm"), [0, 0, 5.0 * GRAVITY, 0, 0, 0], atol=1e-12)


def swinging_tool(kind):
    """Return an arm that swings about y, with a tool of 1 kg fixed half a metre below."""
    if kind == "mjcf":
        inertial = '<inertial pos="0 0 0" mass="{}" diaginertia="0.01 0.01 0.01"/>'.format
        return Robot.from_mjcf(
            f'<mujoco><worldbody><body name="arm"><joint name="swing" type="hinge" axis="0 1 0"/>{inertial(2)}'
            f'<body name="tool" pos="0 0 -0.5">{inertial(1)}</body></body></worldbody></mujoco>'
        )
    joints = joint("swing", "continuous", "base", "arm"), joint("mount", "fixed", "arm", "tool", origin=(0, 0, -0.5))
    return Robot.from_urdf(urdf('<link name="base"/>', link("arm", 2.0), link("tool", 1.0), *joints))


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_payload_hangs_on_its_link(kind):
    """The cut carries the weight of what is behind it, and what holds it on its circle: of link and payload."""
    for payloads, tool, arm in (({}, 1.0, 2.0), ({"tool": 5.0}, 6.0, 2.0), ({"tool": -0.6, "arm": 3.0}, 0.4, 5.0)):
        robot, omega = swinging_tool(kind).with_payloads(payloads), 3.0
        result = Simulator(robot, q=robot.neutral(), v=[omega], dt=1e-6).step()
        pull = tool * (GRAVITY + 0.5 * omega**2)
        np.testing.assert_allclose(wrench_on(robot, result, "tool"), [0, 0, pull, 0, 0, 0], atol=2e-4)
        expected = [0, 0, pull + arm * GRAVITY, 0, 0, 0]
        np.testing.assert_allclose(wrench_on(robot, result, "arm"), expected, atol=2e-4)


@pytest.mark.parametrize("kind", ["urdf", "mjcf"])
def test_a_link_cannot_be_made_lighter_than_nothing(kind):
    """Though what its joint moves would still have a mass."""
    with pytest.raises(InvalidValue, match=r"payloads.*no link with a negative one"):
        swinging_tool(kind).with_payloads({"tool": -1.5})


@pytest.mark.parametrize("of", ["joint", "body", "joint's frame"])
def test_frames_that_were_added_to_a_model(of):
    """A frame of Pinocchio's belongs to what its joint moves, whichever frame it names as its parent, if any.

    The joint carries the weight less what pushes up at the frame, or all that a contact there does not.
    """
    arm = link("arm", 2.0), joint("lift", "prismatic", "base", "arm", (0, 0, 1), more=LIMIT)
    model = pin.buildModelFromXML(urdf('<link name="base"/>', *arm))
    parent = {"joint": 0, "body": model.getFrameId("arm"), "joint's frame": model.getFrameId("lift")}[of]
    model.addFrame(pin.Frame("tcp", 1, parent, pin.SE3.Identity(), pin.FrameType.OP_FRAME))
    robot, weight = Robot(model, ("lift",)), 2.0 * GRAVITY
    pushed = Simulator(robot, q=[0.0]).step([weight - 5.0], [Wrench("tcp", (0, 0, 5.0))])
    standing = Simulator(robot, [PointContact("foot", "tcp", (0, 0, 0))], q=[0.0]).step()
    for name in ("arm", "tcp"):
        np.testing.assert_allclose(wrench_on(robot, pushed, name), [0, 0, weight - 5.0, 0, 0, 0], atol=1e-12)
        np.testing.assert_allclose(wrench_on(robot, standing, name), 0.0, atol=1e-12)


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_a_body_with_two_joints_behind_the_cut_counts(order):
    """A tool on two slides with springs: the mount carries its weight, and what accelerates it, at a moving point."""
    axes, stiffness = {"x": "1 0 0", "y": "0 1 0"}, {"x": 30.0, "y": 50.0}
    slides = "".join(
        f'<joint name="{name}" type="slide" axis="{axes[name]}" stiffness="{stiffness[name]}"/>' for name in order
    )
    inertial = '<inertial pos="0 0 0" mass="{}" diaginertia="1 1 1"/>'.format
    robot = Robot.from_mjcf(
        f'<mujoco><worldbody><body name="arm">{inertial(2)}<body name="mount" pos="0 0 1">{inertial(1)}'
        f'<body name="tool" pos="0.1 0 0">{slides}{inertial(5)}</body></body></body></worldbody></mujoco>'
    )
    v = [0.4 if name == "x" else -0.3 for name in order]
    sim = Simulator(robot, q=robot.configuration({"x": 0.05, "y": 0.02}), v=v)
    for _ in range(20):
        result = sim.step()
        a = dict(zip(order, result.a, strict=True))
        at = dict(zip(order, result.middle.q, strict=True))
        force = np.array([5.0 * a["x"], 5.0 * a["y"], 6.0 * GRAVITY])
        torque = np.cross([0.1 + at["x"], at["y"], 0.0], force - [0.0, 0.0, GRAVITY])
        np.testing.assert_allclose(wrench_on(robot, result, "mount"), [*force, *torque], atol=1e-12)
    assert abs(a["x"]) > 0.1 and abs(a["y"]) > 0.1


def test_links_of_an_sdf():
    """A fixed joint and a moving one: the same as those of the URDF of the same robot."""
    inertial = (
        "<inertial><pose>0.1 0 0.05 0 0 0</pose><mass>{}</mass><inertia><ixx>0.01</ixx><iyy>0.02</iyy><izz>0.02</izz>"
        "<ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>"
    )
    links = "".join(
        f'<link name="{name}"><pose>{pose}</pose>{inertial.format(mass)}'
        for name, pose, mass in (
            ("base", "0 0 0 0 0 0", 4.0),
            ("arm", "0 0 0.3 0 0 0", 2.0),
            ("tool", "0.5 0 0.3 0 0 0", 0.7),
        )
    )
    axis = "<axis><xyz>0 1 0</xyz></axis>"
    sdf = (
        f'<sdf version="1.7"><model name="m">{links}'
        f'<joint name="swing" type="revolute"><parent>base</parent><child>arm</child>{axis}</joint>'
        '<joint name="mount" type="fixed"><parent>arm</parent><child>tool</child></joint></model></sdf>'
    )
    moments = (0.01, 0.02, 0.02)
    parts = [link(name, mass, (0.1, 0, 0.05), moments) for name, mass in (("base", 4.0), ("arm", 2.0), ("tool", 0.7))]
    parts.append(joint("swing", "revolute", "base", "arm", (0, 1, 0), (0, 0, 0.3), LIMIT))
    parts.append(joint("mount", "fixed", "arm", "tool", origin=(0.5, 0, 0)))
    readings = []
    for robot in (Robot.from_sdf(sdf), Robot.from_urdf(urdf(*parts))):
        result = simulator(robot, [0.6], [2.0]).step([1.5])
        readings.append([wrench_on(robot, result, name) for name in ("base", "arm", "tool")])
    np.testing.assert_allclose(readings[0], readings[1], atol=1e-12)
    assert readings[0][0][2] > 4.0 * GRAVITY


# -- errors


NOISY = (
    Imu("imu", "block", 0.0, 0.01, 0.02, 0.3, (0.1, 0.2, 0.3), (1.0, 2.0, 3.0)),
    ForceTorque("ft", "block", 0.0, 2.0, 0.5, (1.0, -1.0, 0.5), (0.1, 0.2, -0.3)),
)


def at_rest():
    """Return a block that lies on the ground, and the result of a step."""
    robot = block()
    sim = simulator(robot, robot.configuration({}, [0, 0, 0.05, 0, 0, 0, 1]), constraints=corners())
    return robot, sim.step()


def readings(robot, result, sensors, count, **options):
    """Return `count` readings of every sensor as arrays, by name."""
    every = SensorSet(robot, sensors, 1e-3, **options)
    found = [every.measure(result) for _ in range(count)]
    return {name: np.array([np.concatenate(reading[name]) for reading in found]) for name in found[0]}


def test_statistics_of_the_errors():
    """Mean and covariance of many readings are bias and noise, within five standard errors; all are independent."""
    robot, result = at_rest()
    count = 4000
    found = readings(robot, result, NOISY, count)
    turns = np.array([pin.log3(pin.Quaternion(quaternion).matrix()) for quaternion in found["imu"][:, :4]])
    for values, bias, noise in (
        (turns, np.zeros(3), 0.01),
        (found["imu"][:, 4:7], NOISY[0].angular_velocity_bias, 0.02),
        (found["imu"][:, 7:], np.asarray(NOISY[0].acceleration_bias) - G, 0.3),
        (found["ft"][:, :3], NOISY[1].force_bias, 2.0),
        (found["ft"][:, 3:], NOISY[1].torque_bias, 0.5),
    ):
        assert np.abs(values.mean(axis=0) - bias).max() < 5.0 * noise / np.sqrt(count)
        covariance = np.cov(values.T) / noise**2
        assert np.abs(covariance - np.eye(3)).max() < 5.0 * np.sqrt(2.0 / count)
        neighbours = np.mean((values[1:] - values.mean(axis=0)) * (values[:-1] - values.mean(axis=0)), axis=0)
        assert np.abs(neighbours).max() < 5.0 * noise**2 / np.sqrt(count)
    np.testing.assert_allclose(np.linalg.norm(found["imu"][:, :4], axis=1), 1.0, rtol=1e-14)


def test_without_errors_the_reading_is_exact():
    """No noise and no bias change no bit."""
    robot, result = at_rest()
    sensors = (Imu("imu", "block"), ForceTorque("ft", "block"))
    found = readings(robot, result, sensors, 2)
    for sensor in sensors:
        assert found[sensor.name][0].tolist() == found[sensor.name][1].tolist() == exact(sensor, robot, result).tolist()


def test_noise_is_reproducible_and_each_sensors_own():
    """The same seed gives the same bits, another one others; sensors do not change each other's noise, nor share it."""
    robot, result = at_rest()
    first = readings(robot, result, NOISY, 20, seed=7)
    again = readings(robot, result, (Imu("other", "block", 0.0, 0.1), *reversed(NOISY)), 20, seed=7)
    for name, values in first.items():
        assert values.tolist() == again[name].tolist()
        assert (readings(robot, result, NOISY, 20, seed=8)[name] != values).any(axis=0).sum() >= 6
    twin = Imu("twin", *[getattr(NOISY[0], key) for key in ("link", "rate", "orientation_noise")], 0.02, 0.3)
    both = readings(robot, result, (NOISY[0], twin), 500)
    noise = [both[name][:, 4:] - both[name][:, 4:].mean(axis=0) for name in ("imu", "twin")]
    correlation = (noise[0] * noise[1]).mean(axis=0) / np.array([0.02**2] * 3 + [0.3**2] * 3)
    assert np.abs(correlation).max() < 5.0 / np.sqrt(500)


def test_noise_does_not_depend_on_its_size():
    """Every reading takes as many values whatever the deviations: twice the deviation is twice the error."""
    robot, result = at_rest()
    small = readings(robot, result, [ForceTorque("ft", "block", force_noise=1.0, torque_noise=1.0)], 10)["ft"]
    large = readings(robot, result, [ForceTorque("ft", "block", force_noise=2.0)], 10)["ft"]
    ideal = exact(ForceTorque("ft", "block"), robot, result)
    np.testing.assert_allclose((large - ideal)[:, :3], 2.0 * (small - ideal)[:, :3], rtol=1e-12, atol=1e-12)
    assert (large[:, 3:] == ideal[3:]).all()


def test_reset_begins_anew():
    """Noise and instants: what is read after a reset equals a fresh run bit by bit."""
    robot, result = at_rest()
    sensors = (*NOISY, ForceTorque("slow", "block", 250.0, 1.0))
    every = SensorSet(robot, sensors, 1e-3, seed=3)
    fresh = [every.measure(result) for _ in range(9)]
    every.measure(result)
    every.reset()
    for before in fresh:
        after = every.measure(result)
        assert after.keys() == before.keys()
        for name, reading in after.items():
            assert np.concatenate(reading).tolist() == np.concatenate(before[name]).tolist()


def test_rates():
    """A sensor reads at the end of every n-th control period from the reset on; rate 0 means each of them."""
    robot, result = at_rest()
    rates = {"each": 0.0, "full": 1000.0, "half": 500.0, "third": 333.3333, "rare": 1.0}
    every = SensorSet(robot, [Imu(name, "block", rate) for name, rate in rates.items()], 1e-3)
    found = [set(every.measure(result)) for _ in range(1000)]
    for name, n in (("each", 1), ("full", 1), ("half", 2), ("third", 3), ("rare", 1000)):
        assert [k for k, names in enumerate(found, 1) if name in names] == list(range(n, 1001, n))


@pytest.mark.parametrize("rate", [300.0, 400.0, 999.0, 1001.0, 2000.0])
def test_rates_that_no_number_of_periods_gives(rate):
    """They are refused, with the control rate."""
    with pytest.raises(InvalidValue, match="1000 Hz divided by a whole number"):
        SensorSet(block(), [Imu("imu", "block", rate)], 1e-3)


@pytest.mark.parametrize("kind", [Imu, ForceTorque])
def test_refusals(kind):
    """Names, links, rates, seeds, deviations and biases that are not allowed."""
    robot = block()
    for wrong in ("", "1st", "a b", "a/b", "ä", 3):
        with pytest.raises(InvalidValue, match="letters, digits and underscores"):
            kind(wrong, "block")
    for option, value in (("rate", -1.0), ("rate", np.nan), ("rate", "fast")):
        with pytest.raises(InvalidValue, match="rate of sensor 's'"):
            kind("s", "block", **{option: value})
    noise, bias = {"imu": ("acceleration_noise", "acceleration_bias"), "force_torque": ("force_noise", "force_bias")}[
        kind.kind
    ]
    for option, value in ((noise, -0.1), (noise, np.inf), (bias, (1.0, 2.0)), (bias, (1.0, 2.0, np.nan)), (bias, 1.0)):
        with pytest.raises(InvalidValue, match=f"{option} of sensor 's'"):
            kind("s", "block", **{option: value})
    with pytest.raises(UnknownName, match=r"unknown link 'nowhere', allowed: .*block"):
        SensorSet(robot, [kind("s", "nowhere")], 1e-3)
    with pytest.raises(InvalidValue, match="no other sensor"):
        SensorSet(robot, [kind("s", "block"), Imu("s", "block")], 1e-3)
    for seed in (-1, 0.5, True, "a"):
        with pytest.raises(InvalidValue, match="seed of sensors"):
            SensorSet(robot, [kind("s", "block")], 1e-3, seed)
    with pytest.raises(InvalidValue, match="period of sensors"):
        SensorSet(robot, [], 0.0)


def test_nothing_holds_the_world():
    """A force-torque sensor needs a link of the robot."""
    with pytest.raises(InvalidValue, match="a link of the robot"):
        SensorSet(block(), [ForceTorque("ft", "world")], 1e-3)


# -- configuration


SENSOR_GROUP = {
    "body": {"kind": "imu", "link": "carriage", "rate": 200, "acceleration_bias": [0, 0, 1]},
    "ankle": {"kind": "force_torque", "link": "foot", "force_noise": 0.5},
}


def configured(sensors, **changes):
    """Return the shipped configuration with `sensors`."""
    values = load_parameters(LEG) | {"sensors": sensors} | changes
    return read_config(values, LEG.parent)


def test_configuration():
    """Every key arrives where it belongs; a config without the group has no sensors."""
    config = configured(SENSOR_GROUP, sensor_seed=5, control_period=0.005)
    imu = Imu("body", "carriage", 200.0, acceleration_bias=(0.0, 0.0, 1.0))
    assert config.sensors == (imu, ForceTorque("ankle", "foot", force_noise=0.5))
    assert load_config(LEG).sensors == ()
    sensors, sim = config.sensor_set(), config.simulator()
    direct = SensorSet(config.robot, config.sensors, 0.005, seed=5)
    for _ in range(3):
        result = sim.step()
        mine, other = sensors.measure(result), direct.measure(result)
        assert list(mine) == ["body", "ankle"]
        for name, reading in mine.items():
            assert np.concatenate(reading).tolist() == np.concatenate(other[name]).tolist()


@pytest.mark.parametrize(
    ("sensors", "changes", "error", "message"),
    [
        ({"s": {"kind": "camera", "link": "foot"}}, {}, UnknownName, "unknown kind of sensor 'camera', allowed: imu"),
        ({"s": {"kind": "imu", "link": "arm"}}, {}, UnknownName, "unknown link 'arm'"),
        ({"s": {"kind": "imu"}}, {}, ConfigError, "the key 'link' is missing"),
        ({"s": {"link": "foot"}}, {}, ConfigError, "the key 'kind' is missing"),
        ({"s": {"kind": "imu", "link": "foot", "force_noise": 1.0}}, {}, ConfigError, "unknown key"),
        ({"s": {"kind": "imu", "link": "foot", "rate": "x"}}, {}, ConfigError, "allowed: a number"),
        ({"s": {"kind": "imu", "link": "foot", "rate": 400.0}}, {}, InvalidValue, "divided by a whole number"),
        ({"s": {"kind": "imu", "link": "foot", "rate": 500.0}}, {"control_period": 0.005}, InvalidValue, "200 Hz"),
        ({"s": {"kind": "force_torque", "link": "world"}}, {}, InvalidValue, "a link of the robot"),
        ({}, {"sensor_seed": -1}, InvalidValue, "seed of sensors"),
    ],
)  # fmt: skip
def test_configuration_that_is_refused(sensors, changes, error, message):
    """With what was given and what is allowed."""
    with pytest.raises(error, match=message):
        configured(sensors, **changes)


def test_the_example_in_the_shipped_configuration():
    """The lines that are commented out there are read as they stand."""
    lines = LEG.read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip() == "# sensors:")
    last = next(i for i, line in enumerate(lines) if i > first and line.strip().startswith("# (noise"))
    text = "\n".join(line.replace("# ", "", 1) for line in lines[first:last])
    config = configured(yaml.safe_load(text)["sensors"])
    assert [(sensor.name, sensor.kind, sensor.link) for sensor in config.sensors] == [
        ("body", "imu", "carriage"),
        ("ankle", "force_torque", "foot"),
    ]
