"""The node as a managed one: configure reads and checks the robot, activate starts time, deactivate stops it."""

import pytest
from lifecycle_msgs.msg import State, Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from ros.live import CONFIG, NODE, Client, Process, arguments, free_domain

from constrained_sim.msg import SimulationStatus
from constrained_sim.srv import Step

UNCONFIGURED, INACTIVE = State.PRIMARY_STATE_UNCONFIGURED, State.PRIMARY_STATE_INACTIVE
ACTIVE = State.PRIMARY_STATE_ACTIVE


class Managed:
    """A node in a process of its own, with a client that manages it."""

    def __init__(self, folder, **parameters):
        domain = free_domain()
        self.process = Process(folder, domain, "simulator", *arguments(CONFIG, clock_mode="fast", **parameters))
        self.client = Client(domain)
        self.status = self.client.subscribe(SimulationStatus, f"{NODE}/status")

    def change(self, transition):
        request = Transition(id=transition)
        return self.client.call(ChangeState, f"{NODE}/change_state", timeout=60.0, transition=request).success

    @property
    def state(self):
        return self.client.call(GetState, f"{NODE}/get_state", timeout=60.0).current_state.id

    def time(self):
        """Return the simulated time of a status that is sent from now on."""
        self.client.spin(0.3)
        return self.status[-1].time if self.status else None

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


def test_a_robot_that_is_refused_leaves_the_node_unconfigured(manage):
    """Parameters may be mended before the next attempt."""
    node = manage(autostart=False, solver="magic")
    assert not node.change(Transition.TRANSITION_CONFIGURE) and node.state == UNCONFIGURED
    node.client.wait_for(lambda: "magic" in node.process.stderr, "the reason")
    mended = [Parameter("solver", value="direct").to_parameter_msg()]
    kind, service = SetParametersAtomically, f"{NODE}/set_parameters_atomically"
    assert node.client.call(kind, service, parameters=mended).result.successful
    assert node.change(Transition.TRANSITION_CONFIGURE) and node.state == INACTIVE
    assert node.change(Transition.TRANSITION_INACTIVE_SHUTDOWN)
    assert node.process.wait(30.0) == 0
