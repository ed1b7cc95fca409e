"""What RViz 2, Foxglove and PlotJuggler are told to show of each shipped robot is what the node publishes."""

import json
import re
from xml.etree import ElementTree

import pytest
import yaml
from ros.live import CONFIG

from constrained_sim import load_config
from constrained_sim.exceptions import ConfigError
from constrained_sim.layouts import layout_texts, write_layouts
from constrained_sim.ros.demos import MODES

DISPLAYED = {
    "RobotModel": "std_msgs/msg/String",
    "MarkerArray": "visualization_msgs/msg/MarkerArray",
    "Odometry": "nav_msgs/msg/Odometry",
}
"""Type of the messages of each display of RViz that has a topic."""

RARE = {"/impacts"}
"""Topics that are in a recording only where something has happened; the leg falls onto its foot."""


WORK = {"leg": "stand", "quadruped": "trot", "four_bar": "turn", "cassie": "stand"}
"""Modes of the controllers, of which other tests read the bags too."""


@pytest.fixture(scope="module", params=MODES)
def recorded(request, at_work):
    """A robot, and the bag of 1 s of it."""
    return request.param, at_work(request.param, WORK[request.param])


def newest(bag, topic):
    """Return the last message of `topic`; an empty one of its type where there was none."""
    assert topic in {*bag.connections, *RARE}, f"{topic} is not among {sorted(bag.connections)}"
    return bag.newest(topic)


def foxglove_value(bag, path):
    """Return the value at a message path of Foxglove, ``/topic.field[index]`` or ``.fields[:]{name=="..."}.field``."""
    topic, rest = re.fullmatch(r"([^.]+)(.*)", path).groups()
    value = newest(bag, topic)
    for field, index, name in re.findall(r'\.(\w+)(?:\[(\d+)\]|\[:\]\{name=="(.*?)"\})?', rest):
        value = getattr(value, field)
        if index:
            value = value[int(index)]
        if name:
            (value,) = (entry for entry in value if entry.name == name)
    return value


def plotjuggler_value(bag, name, topics):
    """Return the label-giving name and the value of a series of PlotJuggler, which splits joint_states by joint."""
    (topic,) = (topic for topic in topics if name.startswith(f"{topic}/"))
    message, *rest = newest(bag, topic), *name.removeprefix(f"{topic}/").split("/")
    if topic == "/joint_states":
        joint, quantity = rest
        return getattr(message, quantity)[list(message.name).index(joint)]
    for part in rest:
        field, index = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", part).groups()
        message = getattr(message, field) if index is None else getattr(message, field)[int(index)]
    return message


def test_files_are_those_that_the_command_writes():
    """Nobody edits them: `constrained_sim layouts ROBOT` makes each again."""
    for robot in MODES:
        texts = layout_texts(load_config(CONFIG.with_name(f"{robot}.yaml")), robot)
        assert len(texts) == 3
        for name, text in texts.items():
            assert CONFIG.with_name(name).read_text() == text, f"config/{name}: remove it and write it again"


def test_files_are_not_overwritten(tmp_path):
    """The reason names the file."""
    config = load_config(CONFIG)
    assert [path.name for path in write_layouts(config, "leg", tmp_path)] == list(layout_texts(config, "leg"))
    with pytest.raises(ConfigError, match=r"leg\.rviz"):
        write_layouts(config, "leg", tmp_path)
    with pytest.raises(ConfigError, match="no directory"):
        write_layouts(config, "leg", tmp_path / "missing")


def test_rviz_shows_what_is_published(recorded):
    """Every topic is there with the type that its display takes; frames are in the tree of transforms."""
    robot, bag = recorded
    manager = yaml.safe_load(CONFIG.with_name(f"{robot}.rviz").read_text())["Visualization Manager"]
    for display in manager["Displays"]:
        kind = display["Class"].removeprefix("rviz_default_plugins/")
        topic = display.get("Topic") or display.get("Description Topic")
        assert (topic is not None) == (kind in DISPLAYED)
        if topic:
            connection = bag.connections[f"/{topic['Value']}"]
            assert connection.msgtype == DISPLAYED[kind]
            (offered,) = connection.ext.offered_qos_profiles
            latched = offered.durability.name == "TRANSIENT_LOCAL"
            assert topic["Durability Policy"] == ("Transient Local" if latched else "Volatile")
    moving = bag.messages("/tf_static") + bag.messages("/tf")
    frames = {name for m in moving for t in m.transforms for name in (t.header.frame_id, t.child_frame_id)}
    assert {manager["Global Options"]["Fixed Frame"], manager["Views"]["Current"]["Target Frame"]} <= frames


def test_foxglove_shows_what_is_published(recorded):
    """Every panel is in the layout once, every topic is published, every path leads to a number."""
    robot, bag = recorded
    layout = json.loads(CONFIG.with_name(f"{robot}.foxglove.json").read_text())
    panels = layout["configById"]
    trees = [layout["layout"], *(tab["layout"] for tab in panels["Tab!charts"]["tabs"])]
    assert sorted(name for tree in trees for name in leaves(tree)) == sorted(panels)
    assert set(panels["3D!robot"]["topics"]) <= set(bag.connections)
    assert panels["RawMessages!status"]["topicPath"] in bag.connections
    assert panels["DiagnosticSummary!node"]["topicToRender"] in bag.connections
    paths = [path for name, panel in panels.items() if name.startswith("Plot!") for path in panel["paths"]]
    assert len(paths) > 10
    assert robot != "leg" or bag.connections.keys() >= RARE
    for path in paths:
        assert isinstance(foxglove_value(bag, path["value"]), float)
        if path["value"].startswith("/joint_states"):
            index = int(re.search(r"\[(\d+)\]", path["value"])[1])
            assert newest(bag, "/joint_states").name[index] == path["label"]


def test_plotjuggler_shows_what_is_published(recorded):
    """Every series is one that PlotJuggler makes of the topics which it is told to subscribe to."""
    robot, bag = recorded
    root = ElementTree.parse(CONFIG.with_name(f"{robot}.plotjuggler.xml")).getroot()
    topics = [topic.get("name") for topic in root.iter("topic")]
    names = [curve.get("name") for curve in root.iter("curve")]
    assert len(names) > 10
    for name in names:
        assert isinstance(plotjuggler_value(bag, name, topics), float)
    for splitter in root.iter("DockSplitter"):
        assert len(splitter) == int(splitter.get("count")) == len(splitter.get("sizes").split(";"))


def test_both_draw_the_same(recorded):
    """A path of Foxglove and the series of PlotJuggler in the same place have the same value."""
    robot, bag = recorded
    layout = json.loads(CONFIG.with_name(f"{robot}.foxglove.json").read_text())["configById"]
    root = ElementTree.parse(CONFIG.with_name(f"{robot}.plotjuggler.xml")).getroot()
    topics = [topic.get("name") for topic in root.iter("topic")]
    plots = [panel for name, panel in layout.items() if name.startswith("Plot!")]
    areas = list(root.iter("DockArea"))
    assert [panel["title"] for panel in plots] == [area.get("name") for area in areas]
    for panel, area in zip(plots, areas, strict=True):
        for path, curve in zip(panel["paths"], area.iter("curve"), strict=True):
            assert foxglove_value(bag, path["value"]) == plotjuggler_value(bag, curve.get("name"), topics)


def leaves(tree):
    """Return the panels of a layout."""
    return [tree] if isinstance(tree, str) else [*leaves(tree["first"]), *leaves(tree["second"])]
