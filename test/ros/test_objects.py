"""Objects beside the robot over ROS: declared, spawned, put elsewhere, deleted; their topics, and the robot's own."""

import math

import pinocchio as pin
import pytest
from mechanisms import GRAVITY
from ros.live import stamp
from sensor_msgs.msg import Range
from test_objects import DOOR

from constrained_sim.msg import ObjectState, ObjectStates
from constrained_sim.objects.world_object import primitive
from constrained_sim.ros.replay import replay
from constrained_sim.srv import AddConstraint, DeleteObject, Reset, SetObjectState, SpawnObject

CONFIG = """
/**:
  ros__parameters:
    robot: {urdf: "package://constrained_sim/urdf/leg.urdf"}
    initial: {positions: {slider: 1.0, hip: 0.4, knee: -0.9}}
    contacts: {foot: {link: foot, friction: 0.8}}
    scene: {floor: {kind: plane}}
    objects:
      crate: {shape: box, size: [0.2, 0.2, 0.2], mass: 2.0, friction: 0.5, pose: [1.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0]}
    sensors:
      eye: {kind: range_finder, link: rail, origin: [0.0, 0.0, 0.1], max_range: 5.0, range_noise: 0.0}
      tilt: {kind: imu, link: upper_leg, angular_velocity_noise: 0.01}
    dt: 0.001
    status_rate: 1000.0
"""


def spawning(name="ball", description=None, x=-1.0, z=0.5, **orientation):
    """Return the fields of a request to spawn, a ball if nothing else is said."""
    request = SpawnObject.Request(name=name, description=description or primitive("sphere", (0.1,), 2.0, 0.5).urdf)
    request.pose.position.x, request.pose.position.z = x, z
    for key, value in orientation.items():
        setattr(request.pose.orientation, key, value)
    return {"name": name, "description": request.description, "pose": request.pose}


@pytest.fixture(scope="module")
def _scene(simulate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    (folder / "scene.yaml").write_text(CONFIG)
    with simulate(config=folder / "scene.yaml", clock_mode="fast", start_paused=True, record=folder / "bag") as sim:
        sim.objects = sim.client.subscribe(ObjectStates, "/object_states")
        sim.bag = folder / "bag"
        sim.meet()
        yield sim


def step(sim, periods):
    """Step; return the objects by name at the end."""
    sim.objects.clear()
    return {state.name: state for state in sim.step_until(sim.objects, periods).objects}


def test_declared_objects_are_published_and_the_robot_s_topics_know_nothing_of_them(scene):
    crate = step(scene, 5)["crate"]
    assert [crate.pose.position.x, crate.pose.position.z] == pytest.approx([1.0, 0.1], abs=1e-9)
    assert len(scene.objects) == 5 and scene.objects[-1].header.frame_id == "world"
    assert stamp(scene.objects[-1]) == stamp(scene.states[-1])
    assert list(scene.states[-1].name) == ["slider", "hip", "knee"]
    forces = {one.name: one for one in scene.forces[-1].contacts}
    weight = sum(one.normal_force for name, one in forces.items() if name.startswith("crate/"))
    assert weight == pytest.approx(2.0 * GRAVITY, rel=1e-9)


def test_a_range_finder_sees_the_crate_and_what_is_spawned_before_it(scene):
    ranges = scene.client.subscribe(Range, "/eye/range")
    scene.wait_for(lambda: scene.step(1) and ranges, "range")
    message = scene.step_until(ranges)
    assert message.header.frame_id == "rail" and message.radiation_type == Range.INFRARED
    assert (message.min_range, message.max_range, message.field_of_view) == (0.0, 5.0, 0.0)
    assert message.range == pytest.approx(0.9, rel=1e-7)
    assert scene.call(SpawnObject, "spawn_object", **spawning(x=0.5, z=0.1)).success
    assert scene.step_until(ranges).range == pytest.approx(0.4, rel=1e-6)
    assert scene.call(DeleteObject, "delete_object", name="ball").success
    assert scene.call(DeleteObject, "delete_object", name="crate").success
    assert scene.step_until(ranges).range == math.inf


def test_a_spawned_ball_falls_rests_and_is_deleted(scene):
    step(scene, 100)
    before = scene.status[-1]
    assert scene.call(SpawnObject, "spawn_object", **spawning()).success
    ball = step(scene, 100)["ball"]
    assert ball.pose.position.z == pytest.approx(0.5 - 0.5 * GRAVITY * 0.01, abs=1e-12)
    assert ball.twist.linear.z == pytest.approx(-GRAVITY * 0.1, rel=1e-12)
    assert scene.status[-1].step == before.step + 100  # time went on
    ball = step(scene, 400)["ball"]
    assert ball.pose.position.z == pytest.approx(0.1, abs=1e-9)
    (force,) = (one for one in scene.forces[-1].contacts if one.name.startswith("ball/"))
    assert force.normal_force == pytest.approx(2.0 * GRAVITY, rel=1e-9)
    assert scene.call(DeleteObject, "delete_object", name="ball").success
    assert list(step(scene, 1)) == ["crate"]


def test_commands_stay_in_effect(scene):
    scene.command(["hip", "knee"], [1.0, -2.0])
    scene.wait_for_commands()
    scene.step(5)
    assert scene.call(SpawnObject, "spawn_object", **spawning()).success
    state, _ = scene.step(5)
    assert list(state.effort) == [0.0, 1.0, -2.0]


def test_a_door_has_joints_which_may_be_set(scene):
    door = DOOR.replace('"frame"', '"world"')
    assert scene.call(SpawnObject, "spawn_object", **spawning("door", door, x=2.0, z=1.0)).success
    state = ObjectState(name="door", joint_names=["hinge", "latch"], position=[0.5, 1.0], velocity=[1.0, 2.0])
    answer = scene.call(SetObjectState, "set_object_state", state=state)
    assert answer.success, answer.message
    states = step(scene, 10)
    assert list(states["door"].joint_names) == ["hinge", "latch"]
    hinge = 1.0 * math.exp(-0.5 * 0.01 / (0.3 + 5 * 0.16))  # damping over inertia about the hinge, nearly
    assert states["door"].velocity[0] == pytest.approx(hinge, rel=1e-3)
    assert states["door"].position[1] == pytest.approx(2.0 * states["door"].position[0], abs=1e-7)
    assert states["crate"].pose.position.x == pytest.approx(1.0, abs=1e-9)
    assert not scene.call(SetObjectState, "set_object_state", state=ObjectState(name="door"), set_base=True).success
    state = ObjectState(name="door", joint_names=["hinge", "latch"], position=[1.6, 3.2], velocity=[0.0, 0.0])
    answer = scene.call(SetObjectState, "set_object_state", state=state)
    assert answer.success and "joints: door/latch at 3.2, limits -3 to 3 [rad, m]" in answer.message


def test_positions_or_velocities_alone_may_be_set(scene):
    """The others stay."""
    door = DOOR.replace('"frame"', '"world"')
    assert scene.call(SpawnObject, "spawn_object", **spawning("door", door, x=2.0, z=1.0)).success

    def told():
        last = scene.objects[-1].objects if scene.objects else []
        return [[*one.position, *one.velocity] for one in last if one.name == "door"]

    for fields, wanted in (
        ({"position": [0.5, 1.0]}, [0.5, 1.0, 0.0, 0.0]),
        ({"velocity": [0.25, 0.5]}, [0.5, 1.0, 0.25, 0.5]),
    ):
        state = ObjectState(name="door", joint_names=["hinge", "latch"], **fields)
        answer = scene.call(SetObjectState, "set_object_state", state=state)
        assert answer.success, answer.message
        state = [pytest.approx(wanted, abs=1e-12)]
        scene.wait_for(lambda state=state: told() == state, f"state {wanted}")
    answer = scene.call(SetObjectState, "set_object_state", state=ObjectState(name="door", joint_names=["hinge"]))
    assert not answer.success and "positions, velocities or both" in answer.message


def test_positions_without_names_are_refused(scene):
    answer = scene.call(SetObjectState, "set_object_state", state=ObjectState(name="crate", position=[0.5]))
    assert not answer.success
    assert "names for the position of object 'crate': got []" in answer.message


def test_an_object_may_be_thrown(scene):
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.0, 1.0))
    state = ObjectState(name="crate")
    state.pose.position.x, state.pose.position.z = 3.0, 2.0
    state.pose.orientation.z, state.pose.orientation.w = turn.z, turn.w
    state.twist.linear.x, state.twist.angular.y = 2.0, 3.0
    refused = scene.call(SetObjectState, "set_object_state", state=state)
    assert not refused.success
    assert "set_base" in refused.message
    assert scene.call(SetObjectState, "set_object_state", state=state, set_base=True).success
    crate = step(scene, 100)["crate"]
    assert [crate.pose.position.x, crate.pose.position.y] == pytest.approx([3.2, 0.0], abs=1e-12)
    assert [crate.twist.linear.x, crate.twist.angular.y] == pytest.approx([2.0, 3.0], rel=1e-12)


def test_a_reset_brings_back_the_objects_of_the_configuration(scene):
    assert scene.call(SpawnObject, "spawn_object", **spawning()).success
    assert scene.call(DeleteObject, "delete_object", name="crate").success
    assert scene.call(Reset, "reset", keep_objects=True).success
    assert list(step(scene, 1)) == ["ball"]
    assert scene.call(Reset, "reset", keep_objects=False, keep_state=True).success
    assert list(step(scene, 1)) == ["crate"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (spawning("crate"), "crate"),
        (spawning("a ball"), "letters"),
        (spawning("leg"), "leg"),
        (spawning(description="nothing"), "text of a URDF"),
        (spawning(description="<robot"), "line"),
        (spawning(description="<html/>"), "html"),
        (spawning(description="/no/such/file"), "file"),
        (spawning(x=1.0, z=0.1), "crate"),
        (spawning(z=0.0), "floor"),
        (spawning(w=0.0), "quaternion"),
        (spawning(x=math.nan), "pose"),
    ],
)
def test_what_cannot_be_spawned_is_refused_and_nothing_changes(scene, fields, why):
    answer = scene.call(SpawnObject, "spawn_object", **fields)
    assert not answer.success and why.lower() in answer.message.lower(), answer.message
    assert list(step(scene, 1)) == ["crate"]


def test_what_holds_an_object_keeps_it(scene):
    hold = AddConstraint.Request()
    hold.constraint.name, hold.constraint.kind, hold.constraint.link_a = "rope", "point_anchor", "crate/body"
    assert scene.call(AddConstraint, "add_constraint", constraint=hold.constraint).success
    answer = scene.call(DeleteObject, "delete_object", name="crate")
    assert not answer.success and "rope" in answer.message
    assert not scene.call(DeleteObject, "delete_object", name="ball").success
    assert list(step(scene, 1)) == ["crate"]


def test_the_recording_of_all_this_is_repeated_bit_by_bit(_scene):
    """The last test of the module: it ends the node."""
    _scene.process.stop()
    comparison = replay(_scene.bag)
    assert comparison.difference == ""
    assert comparison.counts["/object_states"] > 500 and comparison.counts["/tilt/imu"] > 500
