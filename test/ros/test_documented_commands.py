"""The commands of the pages that need ROS do what they are there for."""

import importlib
import os
import shlex
import shutil
import subprocess
import sys

import pytest
import yaml
from lifecycle_msgs.msg import State
from lifecycle_msgs.srv import ChangeState
from mechanisms import ROOT
from pages import ALL_PAGES, blocks, page_commands
from ros.live import Client, Process, free_domain, lifecycle_state
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from shell_blocks import SECONDS, needs_ros, provide_files

RECORDING = "leg_bag_20260101_120000"
"""Name of a bag on the page of recordings."""


PATIENCE = 60.0
"""[s] of wall-clock time that a test waits for what has to come."""


def commands(page):
    """Return the words of each command of a page that needs ROS, but for those of launch files: see test_launch.py."""
    return [words for words in page_commands(page) if needs_ros(words) and words[:2] != ["ros2", "launch"]]


PAGES = [page for page in ALL_PAGES if commands(page)]


def interface(name):
    """Return the class of a type, such as `std_msgs/msg/Bool`."""
    package, folder, kind = name.split("/")
    return getattr(importlib.import_module(f"{package}.{folder}"), kind)


def filled(message, values):
    """Return `message` with the values of a tree of YAML."""
    for name, value in values.items():
        setattr(message, name, filled(getattr(message, name), value) if isinstance(value, dict) else value)
    return message


class Terminal:
    """Types commands; those about a running node go to the last one that was started, first to `session`."""

    def __init__(self, folder, session):
        self._folder, self._client, self._own, self._session = folder, session.client, [], session

    def type(self, words):
        """Run a command, and see that it does something."""
        for begin, do in {
            "make": self._make,
            "python3": self._script,
            "ros2 run": self._run,
            "ros2 service call": self._call,
            "ros2 topic echo": self._echo,
            "ros2 topic pub": self._publish,
            "ros2 lifecycle set": self._change,
        }.items():
            if words[: begin.count(" ") + 1] == begin.split():
                return do(*words[begin.count(" ") + 1 :])
        raise AssertionError(f"nobody knows what {words} does")

    def close(self):
        """End what runs."""
        for thing in reversed(self._own):
            thing.close() if isinstance(thing, Client) else thing.stop()

    def _make(self, robot):
        """The demonstration ends by itself, and leaves a bag and a picture."""
        asked = ["make", "--no-print-directory", "-n", robot, f"DURATION={SECONDS}"]
        bare = {"PATH": os.environ["PATH"]}  # without the variables of a make that runs this
        recipe = subprocess.run(asked, cwd=ROOT, env=bare, capture_output=True, text=True, check=True).stdout
        script, python, *rest = shlex.split(recipe.replace("\\\n", " "))
        assert (script, python) == ("scripts/run", "python")
        there = {"cwd": self._folder, "env": os.environ | {"ROS_DOMAIN_ID": str(free_domain())}}
        subprocess.run([sys.executable, "-P", *rest], check=True, capture_output=True, **there)
        assert list(self._folder.glob(f"recordings/{robot}_bag_*.pdf"))

    def _script(self, file):
        """A controller: efforts arrive."""
        process = Process(self._folder, self._client.node.context.get_domain_id(), sys.executable, file)
        self._own.append(process)
        states = self._client.subscribe(JointState, "/joint_states")
        self._client.wait_for(
            lambda: states and any(states[-1].effort),
            "efforts of a controller",
            PATIENCE,
            details=lambda: f"{len(states)} states have come, the last one is {states[-1:]}; {process.stderr}",
        )

    def _run(self, package, executable, *words):
        """A simulator runs until it is stopped, on its own clock or when it is activated; other programs end."""
        domain = free_domain()
        self._own.append(process := Process(self._folder, domain, executable, *words))
        if executable != "simulator":
            assert process.wait(PATIENCE) == 0, process.stderr
            return
        self._own.append(client := Client(domain))
        self._client, clock = client, client.subscribe(Clock, "/clock")
        if "autostart:=false" in words:
            assert lifecycle_state(client) == State.PRIMARY_STATE_UNCONFIGURED
        else:
            client.wait_for(lambda: clock, "time", PATIENCE)

    def _call(self, service, kind, request):
        asked = filled(interface(kind).Request(), yaml.safe_load(request))
        fields = {name: getattr(asked, name) for name in asked.get_fields_and_field_types()}
        answer = self._client.call(interface(kind), service, PATIENCE, **fields)
        assert answer.success, answer.message

    def _echo(self, topic):
        """Something comes when time goes on."""
        topics = self._client.node.get_topic_names_and_types
        (kind,) = self._client.wait_for(lambda: dict(topics()).get(topic), topic, PATIENCE)
        messages = self._client.subscribe(interface(kind), topic)
        self._session.step()
        self._client.wait_for(lambda: messages, f"message on {topic}", PATIENCE)

    def _publish(self, once, topic, kind, text):
        """The joints that the message names are driven."""
        message = filled(interface(kind)(), yaml.safe_load(text))
        states = self._client.subscribe(JointState, "/joint_states")
        self._client.publish(topic, message)
        self._client.wait_for(lambda: states and any(states[-1].effort), "efforts", PATIENCE)

    def _change(self, node, transition):
        request = ChangeState.Request()
        request.transition.label = transition
        answer = self._client.call(ChangeState, f"{node}/change_state", PATIENCE, transition=request.transition)
        assert answer.success
        clock = self._client.got["/clock"]
        if transition == "activate":
            self._client.wait_for(lambda: clock, "time", PATIENCE)


@pytest.fixture(scope="module")
def session(simulate):
    """The paused leg."""
    with simulate(clock_mode="fast", start_paused=True) as running:
        running.meet()
        yield running


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_run(page, session, dropped, tmp_path, monkeypatch):
    """In the order of the page, in a folder with its files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)  # scripts/run sets it; the tutorial says what to do then
    provide_files()
    shutil.copy("leg.yaml", "my_robot.yaml")  # another page makes one
    shutil.copytree(dropped.path, RECORDING)
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.text)
    session.pause()
    session.reset()
    terminal = Terminal(tmp_path, session)
    try:
        for words in commands(page):
            terminal.type(words)
    finally:
        terminal.close()


def test_a_page_has_each_kind_of_command():
    """The table of the terminal is about what stands on the pages."""
    typed = {" ".join(words[:3]) for page in PAGES for words in commands(page)}
    assert typed >= {"ros2 service call", "ros2 topic echo", "ros2 topic pub", "ros2 lifecycle set"}
