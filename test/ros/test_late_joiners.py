"""Whoever begins to listen while time stands still is told of what is true."""

import pytest
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile, ReliabilityPolicy
from ros.live import CONFIG, NODE, Client, stamp
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState, MultiDOFJointState
from visualization_msgs.msg import MarkerArray

from constrained_sim.msg import ContactForces, SimulationStatus
from constrained_sim.ros.message_types import TRANSFORMS

TRUTH = {
    "/clock": Clock,
    "/joint_states": JointState,
    "/odom": Odometry,
    "/multi_dof_joint_states": MultiDOFJointState,
    "/contact_forces": ContactForces,
    f"{NODE}/sampled/contact_forces": ContactForces,
    f"{NODE}/sampled/joint_states": JointState,
    f"{NODE}/sampled/odom": Odometry,
    "/contact_markers": MarkerArray,
    "/body/imu": Imu,
    f"{NODE}/status": SimulationStatus,
}
if TRANSFORMS.published is not None:
    TRUTH["/tf"] = TRANSFORMS.published
SENSOR = {"sensors__body__kind": "imu", "sensors__body__link": "base_link"}


@pytest.fixture
def join():
    """Return a function that joins a domain and subscribes to everything; all leave at the end."""
    clients = []

    def joined(domain, topics):
        client = Client(domain)
        clients.append(client)
        for topic, kind in topics.items():
            client.subscribe(kind, topic)
        client.wait_for(lambda: all(client.got[topic] for topic in topics), f"message on each of {', '.join(topics)}")
        return client.got

    yield joined
    for client in clients:
        client.close()


def test_paused_node_tells_everything(simulate, join):
    """Who comes after the last period gets the clock, the state, the forces and the status of its end."""
    with simulate(config=CONFIG.with_name("quadruped.yaml"), clock_mode="fast", start_paused=True, **SENSOR) as sim:
        sim.meet()
        sim.step(20)
        got = join(sim.domain, TRUTH)
        ends = {topic: stamp(got[topic][-1]) for topic in ("/joint_states", "/odom", "/contact_forces", "/body/imu")}
        assert set(ends.values()) == {stamp(sim.states[-1])}
        clock = got["/clock"][-1].clock
        assert clock.sec * 10**9 + clock.nanosec == stamp(sim.states[-1])
        assert got[f"{NODE}/status"][-1].state == SimulationStatus.PAUSED
        assert got["/contact_forces"][-1] == sim.forces[-1]
        for topic in ("/joint_states", "/odom", "/contact_forces"):
            assert got[f"{NODE}/sampled{topic}"][-1] == got[topic][-1]


def test_node_that_waits_tells_everything(simulate, join):
    """A node in lock-step that has never had a command says that it waits, at which time, and in which state."""
    topics = {topic: kind for topic, kind in TRUTH.items() if topic in ("/clock", "/joint_states", f"{NODE}/status")}
    with simulate(clock_mode="lockstep") as sim:
        sim.wait_for(lambda: sim.status and sim.status[-1].state == SimulationStatus.WAITING, "status that says so")
        got = join(sim.domain, topics)
        assert got[f"{NODE}/status"][-1].state == SimulationStatus.WAITING
        assert got["/clock"][-1].clock.sec == 1


def test_best_effort_listener_is_told(simulate):
    """A node with use_sim_time listens to the clock without asking for lost messages again: it is told twice."""
    with simulate(clock_mode="fast", start_paused=True) as sim:
        sim.wait_for(lambda: sim.status, "status")
        client = Client(sim.domain)
        try:
            qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            client.node.create_subscription(Clock, "/clock", client.got["/clock"].append, qos)
            client.wait_for(lambda: client.got["/clock"], "clock")
        finally:
            client.close()
