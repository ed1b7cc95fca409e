"""Objects through the package simulation_interfaces: spawned, found, put elsewhere, deleted."""

import pytest
from geometry_msgs.msg import Pose, Twist, Vector3
from mechanisms import GRAVITY
from ros.live import stamp

from constrained_sim.objects.world_object import primitive

pytest.importorskip("simulation_interfaces")
from ros.test_objects import CONFIG
from simulation_interfaces import msg, srv
from simulation_interfaces.msg import Bounds, EntityCategory, EntityFilters, EntityState, Result
from simulation_interfaces.srv import (
    DeleteEntity,
    GetEntities,
    GetEntityBounds,
    GetEntityInfo,
    GetEntityState,
    GetSpawnables,
    ResetSimulation,
    SetEntityState,
    SpawnEntity,
)

OK, FAILED, NOT_FOUND = Result.RESULT_OK, Result.RESULT_OPERATION_FAILED, Result.RESULT_NOT_FOUND
CODES = SpawnEntity.Response
BALL = primitive("sphere", (0.1,), 2.0, 0.5).urdf


@pytest.fixture(scope="module")
def _scene(simulate, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    (folder / "scene.yaml").write_text(CONFIG)
    with simulate(config=folder / "scene.yaml", clock_mode="fast", start_paused=True) as sim:
        sim.meet()
        yield sim


def request(name="ball", text=BALL, uri="", x=-1.0, z=0.5, w=1.0, frame="", **fields):
    """Return a SpawnEntity request of any version."""
    spawn = SpawnEntity.Request(name=name, **fields)
    resource = getattr(spawn, "entity_resource", spawn)
    resource.uri, resource.resource_string = uri, text
    spawn.initial_pose.header.frame_id = frame
    pose = spawn.initial_pose.pose
    pose.position.x, pose.position.z, pose.orientation.w = x, z, w
    return spawn


def as_message(made):
    """Return a request as a SpawnEntity message, which names its resource in every version."""
    named = getattr(made, "entity_resource", made)
    spawn = msg.SpawnEntity(entity_resource=msg.Resource(uri=named.uri, resource_string=named.resource_string))
    for key in set(made.get_fields_and_field_types()) & set(spawn.get_fields_and_field_types()):
        setattr(spawn, key, getattr(made, key))
    return spawn


def spawn(sim, **fields):
    made = request(**fields)
    return sim.call(
        SpawnEntity, "spawn_entity", **{key: getattr(made, key) for key in made.get_fields_and_field_types()}
    )


def entities(sim, **filters):
    answer = sim.call(GetEntities, "get_entities", filters=EntityFilters(**filters))
    assert answer.result.result == OK, answer
    return list(answer.entities)


def state(sim, name):
    return sim.call(GetEntityState, "get_entity_state", entity=name).state


def xyz(message):
    return [message.x, message.y, message.z]


def test_a_ball_is_spawned_falls_and_is_deleted(scene):
    answer = spawn(scene)
    assert (answer.result.result, answer.entity_name) == (OK, "ball")
    assert entities(scene) == ["leg", "crate", "ball"]
    scene.step(100)
    ball = state(scene, "ball")
    assert ball.pose.position.z == pytest.approx(0.5 - 0.5 * GRAVITY * 0.01, abs=1e-12)
    assert xyz(ball.twist.linear) == pytest.approx([0, 0, -GRAVITY * 0.1], rel=1e-12)
    assert xyz(ball.acceleration.linear) == pytest.approx([0, 0, -GRAVITY], rel=1e-9)
    assert scene.call(DeleteEntity, "delete_entity", entity="ball").result.result == OK
    assert entities(scene) == ["leg", "crate"]
    assert scene.call(DeleteEntity, "delete_entity", entity="ball").result.result == NOT_FOUND
    assert scene.call(DeleteEntity, "delete_entity", entity="leg").result.result == FAILED


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "crate"}, CODES.NAME_NOT_UNIQUE),
        ({"name": "leg"}, CODES.NAME_NOT_UNIQUE),
        ({"name": "my ball"}, CODES.NAME_INVALID),
        ({"name": ""}, CODES.NAME_INVALID),
        ({"text": ""}, CODES.NO_RESOURCE),
        ({"text": "<html/>"}, CODES.UNSUPPORTED_FORMAT),
        ({"text": "<robot"}, CODES.RESOURCE_PARSE_ERROR),
        ({"uri": "file:///no/such.urdf"}, CODES.RESOURCE_PARSE_ERROR),
        ({"entity_namespace": "there"}, CODES.NAMESPACE_INVALID),
        ({"x": 1.0, "z": 0.1}, CODES.INVALID_POSE),
        ({"w": 0.0}, CODES.INVALID_POSE),
        ({"frame": "crate/body"}, CODES.INVALID_POSE),
    ],
)
def test_what_cannot_be_spawned_has_its_code(scene, fields, code):
    answer = spawn(scene, **fields)
    assert answer.result.result == code and answer.result.error_message
    assert entities(scene) == ["leg", "crate"]


def test_a_name_that_is_taken_may_get_a_number(scene):
    assert spawn(scene, name="crate", allow_renaming=True).entity_name == "crate_1"
    assert spawn(scene, name="crate", allow_renaming=True, x=-2.0).entity_name == "crate_2"
    assert spawn(scene, name="", allow_renaming=True, x=-3.0).entity_name == "object"
    assert entities(scene, filter="^crate") == ["crate", "crate_1", "crate_2"]


@pytest.mark.skipif(not hasattr(srv, "SpawnEntities"), reason="simulation_interfaces without SpawnEntities")
def test_several_are_spawned_at_once_and_those_that_are_refused_leave_the_others(scene):
    """Each has its own result, also one that is in another one's way; the service says whether all are there."""

    def spawn_all(*requests):
        return scene.call(srv.SpawnEntities, "spawn_entities", spawn_requests=[as_message(one) for one in requests])

    answer = spawn_all(request("left"), request("right", x=-2.0))
    assert answer.result.result == OK and not answer.result.error_message
    assert [(one.result.result, one.entity_name) for one in answer.results] == [(OK, "left"), (OK, "right")]
    renamed = request("left", x=-3.0, allow_renaming=True)
    answer = spawn_all(request("inside", x=-2.1), renamed, request("left", x=-4.0), request("last", text="<robot"))
    assert answer.result.result == srv.SpawnEntities.Response.ENTITIES_SPAWN_FAILED
    assert answer.result.error_message.startswith("3 of 4")
    codes = [CODES.INVALID_POSE, OK, CODES.NAME_NOT_UNIQUE, CODES.RESOURCE_PARSE_ERROR]
    assert [one.result.result for one in answer.results] == codes
    assert entities(scene) == ["leg", "crate", "left", "right", "left_1"]
    assert spawn_all().result.result == OK


def test_files_are_spawned_and_offered(scene, tmp_path):
    (tmp_path / "ball.urdf").write_text(BALL)
    answer = scene.call(GetSpawnables, "get_spawnables", sources=[str(tmp_path)])
    assert answer.result.result == OK
    offered = {one.description: getattr(one, "entity_resource", one) for one in answer.spawnables}
    assert spawn(scene, text="", uri=offered["ball"].uri).result.result == OK
    shapes = [one for name, one in offered.items() if name != "ball"]
    assert len(shapes) == 4  # three shapes, and the crate
    for number, shape in enumerate(shapes):
        text = getattr(shape, "resource_string", shape.uri)
        assert spawn(scene, name=f"shape_{number}", text=text, x=2.0 + number).result.result == OK
    assert scene.call(GetSpawnables, "get_spawnables", sources=["/no/such"]).result.result == NOT_FOUND


def test_bounds_are_the_box_that_the_geometry_is_in(scene):
    def bounds(name):
        return scene.call(GetEntityBounds, "get_entity_bounds", entity=name)

    found = bounds("crate").bounds
    assert found.type == Bounds.TYPE_BOX
    assert [xyz(point) for point in found.points] == [
        pytest.approx([0.9, -0.1, 0.0], abs=1e-9), pytest.approx([1.1, 0.1, 0.2], abs=1e-9)
    ]  # fmt: skip
    turned = EntityState(pose=Pose())
    turned.pose.position.x, turned.pose.position.z = 1.0, 1.0
    turned.pose.orientation.z, turned.pose.orientation.w = 0.38268343236508984, 0.9238795325112867
    fields = {"set_pose": True, "set_twist": True} if hasattr(SetEntityState.Request(), "set_pose") else {}
    assert scene.call(SetEntityState, "set_entity_state", entity="crate", state=turned, **fields).result.result == OK
    lower, upper = (xyz(point) for point in bounds("crate").bounds.points)
    assert upper[0] - lower[0] == pytest.approx(0.2 * 2**0.5)
    assert bounds("nobody").result.result == NOT_FOUND


def test_entities_are_found_by_category_and_by_a_box(scene):
    spawn(scene)
    objects = [EntityCategory(category=EntityCategory.CATEGORY_DYNAMIC_OBJECT)]
    assert entities(scene, categories=objects) == ["crate", "ball"]
    assert entities(scene, categories=[EntityCategory(category=EntityCategory.CATEGORY_ROBOT)]) == ["leg"]
    box = Bounds(type=Bounds.TYPE_BOX, points=[Vector3(x=-1.2, y=-1.0, z=0.0), Vector3(x=-0.95, y=1.0, z=1.0)])
    assert entities(scene, bounds=box) == ["ball"]
    info = scene.call(GetEntityInfo, "get_entity_info", entity="ball").info
    assert "floating base, 6 degrees of freedom, 2 kg" in info.description


def test_an_object_is_put_elsewhere_and_the_robot_stays(scene):
    wanted = EntityState(pose=Pose(), twist=Twist())
    wanted.pose.position.x, wanted.pose.position.z, wanted.twist.linear.y = -2.0, 1.0, 0.5
    wanted.twist.angular.z = 0.5
    fields = {"set_pose": True, "set_twist": True} if hasattr(SetEntityState.Request(), "set_pose") else {}
    before = state(scene, "leg")
    assert scene.call(SetEntityState, "set_entity_state", entity="crate", state=wanted, **fields).result.result == OK
    found = state(scene, "crate")
    assert xyz(found.pose.position) == [-2.0, 0.0, 1.0] and xyz(found.twist.linear) == [0.0, 0.5, 0.0]
    assert xyz(found.acceleration.linear) == [0.0, 0.0, 0.0]  # no step has been made from there
    assert state(scene, "leg").pose == before.pose
    wanted.pose.position.z = 0.0  # in the floor
    answer = scene.call(SetEntityState, "set_entity_state", entity="crate", state=wanted, **fields)
    assert answer.result.result not in (OK, NOT_FOUND)


def test_a_reset_of_what_is_spawned_keeps_time_and_state(scene):
    spawn(scene)
    scene.call(DeleteEntity, "delete_entity", entity="crate")
    scene.step(10)
    before = stamp(scene.states[-1])
    scope = ResetSimulation.Request.SCOPE_SPAWNED
    assert scene.call(ResetSimulation, "reset_simulation", scope=scope).result.result == OK
    assert entities(scene) == ["leg", "crate"]
    scene.settle()
    assert stamp(scene.states[-1]) == before
