"""Objects beside the robot in the viewer: of a running node and of its bag, they appear, move and vanish."""

import itertools

import numpy as np
import pytest
from ros.live import PERIOD, stamp
from ros.sources import source_of, wait
from ros.test_objects import CONFIG, spawning
from test_objects import DOOR
from viewing import open_page, pixels

from constrained_sim import Robot, WorldObject
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.msg import ObjectDescriptions, ObjectState, ObjectStates
from constrained_sim.objects.world_object import primitive
from constrained_sim.srv import DeleteObject, Reset, SetObjectState, SpawnObject
from constrained_sim.viewer.bag_source import BagSource
from constrained_sim.viewer.page import Page
from constrained_sim.viewer.visuals import visuals_of

__all__ = ["source_of"]

STEPS = 20
"""Between two changes."""

PLATE = primitive("cylinder", (0.3, 0.05), 1.0, 0.5).urdf


def names(frame):
    return [one.name for one in frame.objects]


def poses(frame):
    """Return the position of the base link of each object, by name."""
    return {one.name: place(one, one.body.root_link).translation for one in frame.objects}


def place(shown, link):
    joint, inside = shown.body.link_placement(link)
    return shown.mount * kinematics_at(shown.body, shown.q).placement(joint) * inside


@pytest.fixture(scope="module")
def scene_of(simulate, tmp_path_factory):
    """A paused node with a crate beside its robot; it records, hence time goes on with resets."""
    folder = tmp_path_factory.mktemp("scene")
    (folder / "scene.yaml").write_text(CONFIG)
    with simulate(config=folder / "scene.yaml", clock_mode="fast", start_paused=True, record=folder / "bag") as sim:
        sim.bag = folder / "bag"
        sim.objects = sim.client.subscribe(ObjectStates, "/object_states")
        sim.meet()
        yield sim


@pytest.fixture(scope="module")
def history(scene_of):
    """Let objects come and go; return what object_states said between these instants, by stamp."""
    sim, said = scene_of, {}

    def step():
        sim.objects.clear()
        end = stamp(sim.step_until(sim.objects, STEPS))
        told = {stamp(message): message for message in sim.objects}
        said.update({at: message for at, message in told.items() if end - STEPS * PERIOD < at < end})

    step()
    assert sim.call(SpawnObject, "spawn_object", **spawning()).success
    step()
    assert sim.call(DeleteObject, "delete_object", name="crate").success
    step()
    assert sim.call(DeleteObject, "delete_object", name="ball").success
    sim.step(STEPS)
    assert sim.call(SpawnObject, "spawn_object", **spawning("ball", PLATE, x=-0.8)).success
    step()
    return said


def test_a_page_of_the_node_follows_what_comes_and_goes(scene_of, source_of):
    """Also while time stands still, and for who comes late."""
    sim, source = scene_of, source_of(scene_of.domain)
    wait(source, lambda frame: names(frame) == ["crate"])
    assert sim.call(SpawnObject, "spawn_object", **spawning()).success
    frame = wait(source, lambda frame: names(frame) == ["crate", "ball"])
    assert len(frame.q) == source.world.robot.nq == 3
    assert poses(frame)["ball"] == pytest.approx([-1.0, 0.0, 0.5])
    ball = frame.objects[1].body
    told = {one.name: one.pose.position for one in sim.step_until(sim.objects, 100).objects}
    frame = wait(source, lambda frame: poses(frame)["ball"][2] == told["ball"].z)
    assert frame.objects[1].body is ball  # so that it need not be drawn anew
    assert sim.call(DeleteObject, "delete_object", name="crate").success
    wait(source, lambda frame: names(frame) == ["ball"])
    late = source_of(sim.domain)
    assert wait(late, names).objects[0].body.mass == pytest.approx(2.0)
    assert sim.call(DeleteObject, "delete_object", name="ball").success
    assert sim.call(SpawnObject, "spawn_object", **spawning("ball", PLATE)).success
    frame = wait(source, lambda frame: frame.objects and frame.objects[0].body is not ball)
    assert [visual.kind for visual in visuals_of(frame.objects[0].body)] == ["cylinder"]
    assert sim.call(DeleteObject, "delete_object", name="ball").success
    wait(source, lambda frame: not frame.objects)
    assert sim.call(Reset, "reset", keep_time=True).success
    wait(source, lambda frame: names(frame) == ["crate"])


FLAP = """<mujoco><worldbody>
  <body name="leaf" pos="0.1 0 0.2">
    <joint name="hinge" axis="0 0 1"/><geom type="box" size="0.4 0.02 0.1" pos="0.4 0 0"/>
    <body name="knob" pos="0.7 0.05 0"><joint name="latch" axis="0 1 0"/><geom type="capsule" size="0.02 0.05"/></body>
  </body>
</worldbody></mujoco>"""
"""Two bodies on the world, which is no body."""

DOORS = {"URDF": DOOR.replace('"frame"', '"world"'), "MJCF": FLAP}


@pytest.mark.parametrize("format", DOORS)
def test_links_of_a_door_are_where_its_joints_say(scene_of, source_of, format):
    """As those of the same door in one tree with the robot."""
    sim, source, text = scene_of, source_of(scene_of.domain), DOORS[format]
    assert sim.call(SpawnObject, "spawn_object", **spawning("door", text, x=2.0, z=1.0)).success
    state = ObjectState(name="door", joint_names=["hinge", "latch"], position=[0.5, 1.0], velocity=[0.0, 0.0])
    assert sim.call(SetObjectState, "set_object_state", state=state).success
    frame = wait(source, lambda frame: "door" in names(frame) and frame.objects[-1].q[0] == 0.5)
    read = {"URDF": Robot.from_urdf, "MJCF": Robot.from_mjcf}[format]
    door = WorldObject("door", read(text), (2, 0, 1, 0, 0, 0, 1))
    tree = source.world.robot.with_objects([door])
    there = kinematics_at(tree, tree.configuration({"door/hinge": 0.5, "door/latch": 1.0}))
    for link in ("leaf", "knob"):
        joint, inside = tree.link_placement(f"door/{link}")
        expected = there.placement(joint) * inside
        np.testing.assert_allclose(place(frame.objects[-1], link).homogeneous, expected.homogeneous, atol=1e-12)
    assert sim.call(Reset, "reset", keep_time=True).success


def test_descriptions_say_what_is_there(scene_of):
    """To who comes late, too: text, and the link whose pose is told."""
    messages = scene_of.client.subscribe(ObjectDescriptions, "/object_descriptions", latched=True)
    (crate,) = scene_of.wait_for(lambda: messages and messages[-1].objects, "descriptions")
    assert (crate.name, crate.base_link, crate.folder) == ("crate", "body", "")
    assert Robot.from_urdf(crate.description, floating_base=True).mass == pytest.approx(2.0)


def test_a_page_of_the_bag_shows_them_while_they_were_there(scene_of, history, browser):
    """The last test of the module: it ends the node. Time may be moved to and fro."""
    scene_of.process.stop()
    source = BagSource(scene_of.bag)
    for at in sorted(history, reverse=True):
        source.time = 1e-9 * at
        told = {one.name: one.pose.position for one in history[at].objects}
        shown = poses(source.frame())
        assert list(shown) == list(told)
        for name, position in told.items():
            np.testing.assert_allclose(shown[name], [position.x, position.y, position.z], atol=1e-12)
    crate, both, ball, plate = (1e-9 * (min(history) + PERIOD * STEPS * k) for k in (0.5, 1.5, 2.5, 4.5))
    with Page(source) as page, open_page(browser, page) as (tab, _):

        def drawn(name, t):
            page.source.time = t
            page.draw_frame()
            return pixels(tab, name)

        seen = [drawn(f"bag with {name}", t) for name, t in
                {"crate": crate, "crate and ball": both, "ball": ball, "plate": plate}.items()]  # fmt: skip
        assert all(np.mean(before != after) > 0.001 for before, after in itertools.pairwise(seen))
        assert page.server.scene.get_handle_by_name("/world/objects/crate") is None
        drawn("bag with crate again", crate)
        assert page.server.scene.get_handle_by_name("/world/objects/ball") is None
