"""Sensors of a running node: topics, stamps, frames, rates, and that they are those of the core."""

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped, WrenchStamped
from rclpy.serialization import deserialize_message
from ros.live import CONFIG, PERIOD, START_TIME, Process, arguments, free_domain, stamp
from sensor_msgs.msg import FluidPressure, Imu, JointState, LaserScan, MagneticField, NavSatFix
from std_msgs.msg import Bool

from constrained_sim.config import read_config
from constrained_sim.parameter_file import load_parameters
from constrained_sim.ros.replay import replay

START = round(START_TIME * 1e9)
GROUP = {
    "body": {
        "kind": "imu",
        "link": "carriage",
        "rate": 250.0,
        "orientation_noise": 0.01,
        "angular_velocity_noise": 0.02,
        "acceleration_noise": 0.3,
    },
    "ankle": {"kind": "force_torque", "link": "foot", "force_noise": 0.5, "torque_noise": 0.01},
    "knee": {"kind": "encoder", "joint": "knee", "resolution": 0.001, "velocity_noise": 0.1, "delay": 0.002},
    "sole": {"kind": "contact_switch", "link": "foot", "rate": 250.0},
    "true": {"kind": "twist", "link": "lower_leg", "rate": 250.0},
    "scan": {"kind": "lidar", "link": "carriage", "rate": 250.0, "beams": 7, "max_range": 3.0, "range_noise": 0.01},
    "compass": {"kind": "magnetometer", "link": "foot", "rate": 250.0, "field_noise": 1e-7},
    "air": {"kind": "barometer", "link": "foot", "rate": 250.0, "pressure_noise": 2.0},
    "gps": {
        "kind": "nav_sat",
        "link": "carriage",
        "rate": 250.0,
        "latitude": 48.0,
        "horizontal_noise": 0.5,
        "vertical_noise": 1.0,
    },
}
FIELDS = {
    "scan": (LaserScan, "scan", lambda message: list(message.ranges)),
    "compass": (MagneticField, "magnetic_field", lambda message: [getattr(message.magnetic_field, a) for a in "xyz"]),
    "air": (FluidPressure, "pressure", lambda message: [message.fluid_pressure]),
    "gps": (NavSatFix, "fix", lambda message: [message.latitude, message.longitude, message.altitude]),
}
"""Of some sensors the message, the last part of the topic, and what the message says."""

PARAMETERS = {f"sensors__{name}__{key}": value for name, keys in GROUP.items() for key, value in keys.items()}


@pytest.fixture(scope="module")
def node(simulate):
    """A paused node with all sensors, in mode fast; its clients hear them."""
    parameters = {"clock_mode": "fast", "start_paused": True, "frame_prefix": "leg/", "sensor_seed": 5, **PARAMETERS}
    with simulate(**parameters) as simulation:
        simulation.imu = simulation.client.subscribe(Imu, "/body/imu")
        simulation.wrench = simulation.client.subscribe(WrenchStamped, "/ankle/wrench")
        simulation.knee = simulation.client.subscribe(JointState, "/knee/joint_state")
        simulation.sole = simulation.client.subscribe(Bool, "/sole/contact")
        simulation.twist = simulation.client.subscribe(TwistStamped, "/true/twist")
        simulation.others = {
            name: simulation.client.subscribe(kind, f"/{name}/{topic}") for name, (kind, topic, _) in FIELDS.items()
        }
        simulation.meet()

        def heard():
            simulation.step(4)
            simulation.client.spin(0.1)
            others = simulation.others.values()
            return all((simulation.imu, simulation.wrench, simulation.knee, simulation.sole, simulation.twist, *others))

        simulation.wait_for(heard, "reading of every sensor")
        yield simulation


def stepped(node, periods, **options):
    """Return all readings of `periods` control periods after a reset, and the stamp at the reset."""
    start = stamp(node.reset(**options))
    node.forget()
    node.step(periods)
    node.wait_for(lambda: len(node.imu) == periods // 4 and len(node.wrench) == periods, "all readings")
    return start, list(node.imu), list(node.wrench)


def numbers(message):
    """Return all values of a message but its header."""
    if isinstance(message, TwistStamped):
        parts = (message.twist.linear, message.twist.angular)
    elif isinstance(message, Imu):
        parts = (message.orientation, message.angular_velocity, message.linear_acceleration)
    else:
        parts = (message.wrench.force, message.wrench.torque)
    return [getattr(part, axis) for part in parts for axis in "xyzw" if hasattr(part, axis)]


def test_stamps_rates_and_frames(node):
    """Ends of control periods counted from the reset; the link behind the prefix; no other reading in between."""
    start, imu, wrench = stepped(node, 40)
    assert start == START
    assert [stamp(message) for message in imu] == [START + 4 * k * PERIOD for k in range(1, 11)]
    assert [stamp(message) for message in wrench] == [START + k * PERIOD for k in range(1, 41)]
    assert {message.header.frame_id for message in imu} == {"leg/carriage"}
    assert {message.header.frame_id for message in wrench} == {"leg/foot"}


def test_delayed_reading_has_the_stamp_of_the_state_that_it_shows(node):
    """The encoder shows the joint of two periods before, with the stamp of then; a reset begins anew."""
    for _ in range(2):
        stepped(node, 40, velocities={"knee": 3.0})
        node.wait_for(lambda: len(node.knee) == 38 and len(node.states) >= 40, "all readings")
        knee = {stamp(state): state.position[state.name.index("knee")] for state in node.states}
        assert [stamp(message) for message in node.knee] == [START + k * PERIOD for k in range(1, 39)]
        assert all(abs(message.position[0] - knee[stamp(message)]) <= 0.0005 for message in node.knee)
        assert abs(knee[START + 38 * PERIOD] - knee[START + 40 * PERIOD]) > 0.001  # two periods make a difference


def test_covariances_are_those_of_the_noise(node):
    """Squares of the standard deviations on the diagonals."""
    _, (message, *_), _ = stepped(node, 4)
    for covariance, noise in (
        (message.orientation_covariance, 0.01),
        (message.angular_velocity_covariance, 0.02),
        (message.linear_acceleration_covariance, 0.3),
    ):
        assert covariance.reshape(3, 3).tolist() == [[noise**2 * (i == j) for j in range(3)] for i in range(3)]


def test_readings_are_those_of_the_core_after_every_reset(node):
    """Bit for bit, through touchdown too, and again after a reset that keeps the time, in the middle of an interval."""
    config = read_config(load_parameters(CONFIG) | {"sensors": GROUP, "sensor_seed": 5}, CONFIG.parent)
    sim, sensors = config.simulator(), config.sensor_set()
    expected = {name: [] for name in GROUP}
    for _ in range(120):
        for name, reading in sensors.measure(sim.step()).items():
            expected[name].append([value for part in reading for value in part.tolist()])
    assert sim.energy.impact_losses > 0.0
    for keep_time in (False, True):
        node.step(2)
        start, imu, wrench = stepped(node, 120, keep_time=keep_time)
        assert (start > START) == keep_time
        assert stamp(imu[0]) == start + 4 * PERIOD
        assert [numbers(message) for message in imu] == expected["body"]
        assert [numbers(message) for message in wrench] == expected["ankle"]
        node.wait_for(lambda: len(node.knee) == 118 and len(node.sole) == len(node.twist) == 30, "all other readings")
        assert [[*message.position, *message.velocity] for message in node.knee] == expected["knee"]
        assert {(*message.name, message.header.frame_id) for message in node.knee} == {("knee", "")}
        assert [[message.data] for message in node.sole] == expected["sole"]
        assert {message.data for message in node.sole} == {False, True}
        assert [numbers(message) for message in node.twist] == expected["true"]
        node.wait_for(lambda: all(len(found) == 30 for found in node.others.values()), "the readings of the others")
        for name, (_, _, fields) in FIELDS.items():
            single = np.float32 if name == "scan" else np.float64
            found = [fields(message) for message in node.others[name]]
            assert found == [[float(single(value)) for value in reading] for reading in expected[name]]


def test_messages_tell_how_they_are_meant(node):
    """Angles and reach of a scan, and the covariances of the others."""
    stepped(node, 4)
    node.wait_for(lambda: all(node.others.values()), "the readings of the others")
    scan, compass, air, fix = (node.others[name][0] for name in FIELDS)
    assert (scan.header.frame_id, compass.header.frame_id) == ("leg/carriage", "leg/foot")
    assert (scan.angle_min, scan.angle_max) == pytest.approx((-0.75 * np.pi, 0.75 * np.pi), rel=1e-6)
    assert scan.angle_min + 6 * scan.angle_increment == pytest.approx(scan.angle_max, rel=1e-6)
    assert (scan.scan_time, scan.range_min, scan.range_max) == pytest.approx((0.004, 0.0, 3.0), rel=1e-6)
    assert compass.magnetic_field_covariance.tolist() == pytest.approx((1e-14 * np.eye(3)).ravel(), rel=1e-14)
    assert air.variance == 4.0
    assert fix.position_covariance.tolist() == np.diag([0.25, 0.25, 1.0]).ravel().tolist()
    assert (fix.status.status, fix.status.service, fix.position_covariance_type) == (0, 1, 2)


def test_readings_are_recorded(run_to_end):
    """The bag holds each reading with its stamp, before the clock of its period; a replay gives the same."""
    bag = run_to_end("none", 0.1, clock_mode="fast", **PARAMETERS)
    for topic, kind, every in (("/body/imu", Imu, 4), ("/ankle/wrench", WrenchStamped, 1)):
        messages = [deserialize_message(data, kind) for data in bag.raw[topic]]
        assert [stamp(message) for message in messages] == [START + k * PERIOD for k in range(every, 101, every)]
    delayed = [stamp(deserialize_message(data, JointState)) for data in bag.raw["/knee/joint_state"]]
    assert delayed == [START + k * PERIOD for k in range(1, 99)]
    assert bag.log_times["/knee/joint_state"] == [START + k * PERIOD for k in range(3, 101)]
    assert replay(bag.path).difference == ""
    order = [
        topic for topic in bag.topics_in_order() if topic in ("/joint_states", "/body/imu", "/ankle/wrench", "/clock")
    ]
    periods = order[order.index("/ankle/wrench") - 1 :]
    assert periods[:3] == ["/joint_states", "/ankle/wrench", "/clock"]
    assert periods[9:13] == ["/joint_states", "/body/imu", "/ankle/wrench", "/clock"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("link", "thigh", "unknown link 'thigh', allowed: "),
        ("rate", 300.0, "rate of sensor 'body': got 300.0, allowed: 0 (every control period), or 1000 Hz divided"),
        ("colour", "red", "unknown key 'colour'"),
    ],
)
def test_what_is_refused(tmp_path, key, value, message):
    """The node ends and says what was given and what is allowed."""
    words = arguments(**(PARAMETERS | {f"sensors__body__{key}": value}))
    process = Process(tmp_path, free_domain(), "simulator", *words)
    try:
        assert process.wait(30.0) != 0
        assert message in process.stderr
    finally:
        process.stop()
