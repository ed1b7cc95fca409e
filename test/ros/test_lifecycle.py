"""The node as a managed one: configure reads and checks the robot, activate starts time, deactivate stops it."""

import pytest
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter
from ros.bags import Bag
from ros.live import CONFIG, NODE, URDF, Client, Process, arguments, free_domain, lifecycle_state
from std_srvs.srv import SetBool

from constrained_sim.msg import SimulationStatus
from constrained_sim.srv import Step

UNCONFIGURED, INACTIVE = State.PRIMARY_STATE_UNCONFIGURED, State.PRIMARY_STATE_INACTIVE
ACTIVE = State.PRIMARY_STATE_ACTIVE


class Managed:
    """A node in a process of its own, with a client that manages it."""

    def __init__(self, folder, config=CONFIG, **parameters):
        domain = free_domain()
        self.process = Process(folder, domain, "simulator", *arguments(config, clock_mode="fast", **parameters))
        self.client = Client(domain)
        self.status = self.client.subscribe(SimulationStatus, f"{NODE}/status")

    def change(self, transition):
        request = Transition(id=transition)
        return self.client.call(ChangeState, f"{NODE}/change_state", timeout=60.0, transition=request).success

    @property
    def state(self):
        return lifecycle_state(self.client)

    def time(self):
        """Return the simulated time of a status that is sent from now on."""
        self.client.spin(0.3)
        return self.status[-1].time if self.status else None

    def offered(self):
        """Return the topics and services of the node that others know."""
        node, name = self.client.node, (NODE.removeprefix("/"), "/")
        publishers = node.get_publisher_names_and_types_by_node(*name)
        subscribers, services = (
            node.get_subscriber_names_and_types_by_node(*name), node.get_service_names_and_types_by_node(*name)
        )  # fmt: skip
        return sorted(publishers), sorted(subscribers), sorted(services)

    def close(self):
        self.client.close()
        self.process.stop()


@pytest.fixture
def manage(tmp_path):
    nodes = []

    def start(**parameters):
        nodes.append(Managed(tmp_path, **parameters))
        return nodes[-1]

    yield start
    for node in nodes:
        node.close()


def test_plain_run_activates_by_itself(manage):
    node = manage()
    node.client.wait_for(lambda: node.status and node.status[-1].time > 0.0, "time")
    assert node.state == ACTIVE


def test_transitions_start_and_stop_time(manage):
    """While it is inactive the state is told and services are answered, but steps are refused; then time goes on."""
    node = manage(autostart=False, status_rate=1000.0)
    assert node.state == UNCONFIGURED and node.time() is None
    assert node.change(Transition.TRANSITION_CONFIGURE) and node.state == INACTIVE
    node.client.wait_for(lambda: node.status, "status")
    assert node.time() == 0.0 and node.status[-1].state == SimulationStatus.PAUSED
    answer = node.client.call(Step, f"{NODE}/step", periods=1)
    assert not answer.success and "inactive" in answer.message
    assert node.change(Transition.TRANSITION_ACTIVATE) and node.state == ACTIVE
    node.client.wait_for(lambda: node.status[-1].time > 0.01, "time")
    assert node.change(Transition.TRANSITION_DEACTIVATE) and node.state == INACTIVE
    then = node.time()
    assert then > 0.01 and node.time() == then
    assert not node.change(Transition.TRANSITION_CLEANUP) and node.state == INACTIVE
    assert node.change(Transition.TRANSITION_ACTIVATE)
    node.client.wait_for(lambda: node.status[-1].time > then, "more time")
    assert node.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert node.process.wait(30.0) == 0


def test_inactive_node_does_not_say_that_it_runs(manage):
    """The end of a pause lets no time go on: service and status say why, until the node is active."""
    node = manage()
    node.client.wait_for(lambda: node.status and node.status[-1].time > 0.0, "time")
    assert node.change(Transition.TRANSITION_DEACTIVATE)
    assert node.client.call(SetBool, f"{NODE}/pause", data=False).message == "inactive"
    node.time()
    assert (node.status[-1].state, node.status[-1].message) == (SimulationStatus.PAUSED, "inactive")
    assert node.change(Transition.TRANSITION_ACTIVATE)
    assert node.client.call(SetBool, f"{NODE}/pause", data=False).message == "running"


def test_transitions_that_do_not_begin_here_are_refused(manage):
    """They are answered, the log says which ones do, and the node goes on with the parameters that were set."""
    node = manage(autostart=False)
    activate, configure = Transition.TRANSITION_ACTIVATE, Transition.TRANSITION_CONFIGURE
    wrong = {
        UNCONFIGURED: (activate, Transition.TRANSITION_DEACTIVATE, 99),
        INACTIVE: (configure, Transition.TRANSITION_DEACTIVATE),
        ACTIVE: (configure, Transition.TRANSITION_CLEANUP, activate),
    }
    assert node.state == UNCONFIGURED
    node.client.call(SetParameters, f"{NODE}/set_parameters", parameters=[parameter("dt", 0.0005)])
    for state, forward in {UNCONFIGURED: configure, INACTIVE: activate, ACTIVE: None}.items():
        assert [node.change(transition) for transition in wrong[state]] == [False] * len(wrong[state])
        assert node.state == state
        assert forward is None or node.change(forward)
    node.client.wait_for(lambda: node.status and node.status[-1].time > 0.0, "time")
    assert node.status[-1].dt == 0.0005
    assert "transition: got 3 in the state unconfigured, allowed: configure (1), shutdown (5)" in node.process.stderr
    assert "transition: got 4 in the state inactive, allowed: activate (3), shutdown (6)" in node.process.stderr
    assert "transition: got 2 in the state active, allowed: deactivate (4), shutdown (7)" in node.process.stderr
    assert "Traceback" not in node.process.stderr


UNTOLD = """
/**:
  ros__parameters:
    autostart: false
    clock_mode: fast
    slover: magic
"""
"""A file that does not name the robot, and in which a key is misspelt."""


def parameter(name, value=None):
    return Parameter(name, value=value).to_parameter_msg()


@pytest.mark.parametrize(
    ("given", "why", "mended"),
    [
        ({"solver": "magic"}, ["magic"], {"solver": "direct"}),
        ({"solver": 5}, ["solver", "5"], {"solver": "direct"}),
        ({"record_topics": "[/nothing]"}, ["/nothing", "joint_states"], {"record_topics": ["/joint_states"]}),
        ({"config": UNTOLD}, ["robot"], {"robot.urdf": str(URDF), "slover": None}),
    ],
    ids=["solver", "type", "topics", "missing and misspelt"],
)
def test_a_refused_configuration_leaves_nothing_and_may_be_mended(manage, tmp_path, given, why, mended):
    """Topics, services and the recording are those of before; then parameters may be set, added and deleted."""
    if "config" in given:
        (tmp_path / "untold.yaml").write_text(given["config"])
        given = {"config": tmp_path / "untold.yaml"}
    node = manage(autostart=False, record=tmp_path / "bag", **given)
    assert node.state == UNCONFIGURED
    node.client.spin(0.5)  # all of it is discovered
    before = node.offered()
    assert not node.change(Transition.TRANSITION_CONFIGURE) and node.state == UNCONFIGURED
    node.client.wait_for(lambda: all(word in node.process.stderr for word in why), "the reason")
    assert "Traceback" not in node.process.stderr
    node.client.wait_for(lambda: node.offered() == before, "what was there before, alone")
    assert not (tmp_path / "bag").exists()
    messages = [parameter(name, value) for name, value in mended.items()]
    answer = node.client.call(SetParametersAtomically, f"{NODE}/set_parameters_atomically", parameters=messages)
    assert answer.result.successful, answer.result.reason
    assert node.change(Transition.TRANSITION_CONFIGURE) and node.state == INACTIVE
    assert node.change(Transition.TRANSITION_ACTIVATE)
    node.client.wait_for(lambda: node.status and node.status[-1].time > 0.01, "time")
    (answer,) = node.client.call(SetParameters, f"{NODE}/set_parameters", parameters=[parameter("dt", 0.1)]).results
    assert not answer.successful
    assert node.change(Transition.TRANSITION_ACTIVE_SHUTDOWN)
    assert node.process.wait(30.0) == 0
    assert Bag(tmp_path / "bag").messages("/joint_states")
