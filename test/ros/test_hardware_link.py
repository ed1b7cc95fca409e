"""The simulator as hardware of ros2_control, with the other end of its socket played by the test."""

import math
import socket
import struct

import numpy as np
import pytest
from ros.live import CONFIG, PERIOD, START_TIME

from constrained_sim import load_config
from constrained_sim.config import read_config
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.parameter_file import load_parameters
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.hardware_joints import HardwareJoints
from constrained_sim.ros.hardware_link import socket_name
from constrained_sim.servo import JointCommand

NAN = math.nan
EFFORT = "1000\nknee\teffort\nslider\nhip\teffort"
"""Joints in an order of their own, one of which is passive."""


class Manager:
    """What a controller manager does at its end."""

    def __init__(self, domain, request, timeout=20.0):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout)
        self.socket.connect(socket_name(domain, "/constrained_sim"))
        self.socket.send(request.encode())
        self.refusal = self.socket.recv(4096).decode().strip()

    def read(self):
        """Return the number of the next state, its stamp [ns], and positions, velocities and efforts."""
        data = self.socket.recv(4096)
        return *struct.unpack_from("qq", data), np.frombuffer(data, offset=16).reshape(3, -1)

    def write(self, number, position=(NAN, NAN, NAN), velocity=(NAN, NAN, NAN), effort=(NAN, NAN, NAN)):
        self.socket.send(struct.pack("q", number) + np.array([position, velocity, effort]).tobytes())


@pytest.fixture(scope="module")
def leg(simulate):
    """A leg in lock-step, without topics that anybody waits for."""
    with simulate(clock_mode="lockstep", start_paused=False) as simulation:

        def listens():
            try:
                Manager(simulation.domain, "no rate").socket.close()
            except OSError:
                return False
            return True

        simulation.wait_for(listens, "socket of the simulator")
        yield simulation


@pytest.fixture
def connect(leg):
    """Return a function that connects a controller manager to the leg."""
    managers = []

    def connected(request):
        managers.append(Manager(leg.domain, request))
        return managers[-1]

    yield connected
    for manager in managers:
        manager.socket.close()


def test_states_are_those_of_the_core_bit_for_bit(leg, connect):
    """Each command acts in the period after the state that it answers; a joint without one has no effort."""
    leg.reset()
    manager, config = connect(EFFORT), load_config(CONFIG)
    assert manager.refusal == ""
    sim, joints, tau = config.simulator(), JointNames(config.robot), np.zeros(2)
    assert joints.names == ["slider", "hip", "knee"]
    for turn in range(50):
        number, stamp, state = manager.read()
        assert stamp == round(START_TIME * 1e9) + turn * PERIOD
        expected = joints.positions(sim.state.q), joints.velocities(sim.state.v), joints.efforts(tau)
        np.testing.assert_array_equal(state, np.array(expected)[:, [2, 0, 1]])
        tau = np.array([math.sin(0.1 * turn), NAN if turn % 2 else -1.0])
        manager.write(number, effort=(tau[1], 5.0, tau[0]))
        tau = sim.step(np.nan_to_num(tau)).tau_applied


def test_positions_and_velocities_are_followed_by_the_servo(leg, connect):
    leg.reset()
    manager = connect("1000\nhip\tposition\teffort\nknee\tvelocity")
    config = load_config(CONFIG)
    sim = config.simulator()
    for turn in range(50):
        number, _, state = manager.read()
        np.testing.assert_array_equal(state[0], sim.state.q[1:])
        goal = 0.6 + 0.001 * turn
        manager.write(number, position=(goal, NAN), velocity=(NAN, -0.5), effort=(0.1, NAN))
        sim.step(config.servo.targets([goal, NAN], [NAN, -0.5], [0.1, 0.0]))


@pytest.mark.parametrize(
    ("request_text", "said"),
    [
        ("1000\nelbow\teffort", "elbow"),
        ("1000\nslider\teffort", "actuated"),
        ("500\nhip\teffort", "control_period is 0.001 s"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(connect, request_text, said):
    assert said in connect(request_text).refusal


def test_one_manager_at_a_time_and_another_after_it(leg, connect):
    first = connect(EFFORT)
    _, stamp, _ = first.read()
    with pytest.raises(TimeoutError):
        Manager(leg.domain, EFFORT, timeout=0.3)
    first.socket.close()
    second = connect(EFFORT)
    assert second.refusal == ""
    assert second.read()[1] == stamp


def test_a_command_for_a_state_before_a_reset_is_not_taken_for_the_one_after(leg, connect):
    manager = connect(EFFORT)
    number, *_ = manager.read()
    leg.reset()
    after, stamp, _ = manager.read()
    assert stamp == round(START_TIME * 1e9)
    manager.write(number)
    manager.socket.settimeout(0.3)
    with pytest.raises(TimeoutError):
        manager.read()
    manager.socket.settimeout(20.0)
    manager.write(after)
    assert manager.read()[1] == stamp + PERIOD


@pytest.mark.parametrize("numbers", [b"", b"too short", struct.pack("9d", *[math.inf] * 9)])
def test_what_is_no_command_ends_the_connection_and_nothing_else(leg, connect, numbers):
    manager = connect(EFFORT)
    number, *_ = manager.read()
    manager.socket.send(struct.pack("q", number) + numbers)
    assert manager.socket.recv(4096) == b""
    assert connect(EFFORT).refusal == ""


def test_positions_need_gains():
    config = load_config(CONFIG)
    joints = JointNames(config.robot)
    parameters = {key: value for key, value in load_parameters(CONFIG).items() if key != "servo"}
    with pytest.raises(InvalidValue, match="no servo"):
        HardwareJoints({"hip": ["position"]}, read_config(parameters), joints)
    gains = {"servo": {"knee": {"stiffness": 1.0, "damping": 1.0}}}
    with pytest.raises(InvalidValue, match="hip"):
        HardwareJoints({"hip": ["velocity"]}, read_config(parameters | gains), joints)
    with pytest.raises(UnknownName, match="elbow"):
        HardwareJoints({"elbow": []}, config, joints)


def test_commands_are_those_of_commanded_joints_by_their_place_in_tau():
    config = load_config(CONFIG)
    asked = {"slider": [], "knee": ["effort", "position"], "hip": ["velocity"]}
    commands = HardwareJoints(asked, config, JointNames(config.robot)).commands(
        np.array([9.0, 0.1, NAN, 9.0, NAN, 0.2, 9.0, 3.0, NAN])
    )
    assert commands.keys() == {0, 1}
    np.testing.assert_array_equal(commands[1], JointCommand(3.0, 0.1, NAN))
    np.testing.assert_array_equal(commands[0], JointCommand(0.0, NAN, 0.2))
