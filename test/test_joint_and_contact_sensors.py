"""Encoders, contact switches and true twists: what they read, against the states and forces of the same steps."""

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import LIMIT, double_pendulum, joint, leg_config, link, random_state, random_tree, simulator, urdf

from constrained_sim import Collisions, ContactSwitch, Encoder, Imu, Robot, SensorSet, Twist
from constrained_sim.config import read_config
from constrained_sim.exceptions import InvalidValue, UnknownName

PERIOD = 1e-3


def readings(sensors, sim, steps):
    """Return what is read after each step, by name, and the results."""
    every, results = [], []
    for _ in range(steps):
        results.append(sim.step())
        every.append(sensors.measure(results[-1]))
    return every, results


def swinging():
    robot = double_pendulum()
    return robot, simulator(robot, [0.4, -0.9], [1.0, 2.0])


def test_an_encoder_reads_multiples_of_its_resolution():
    """The nearest one to the position; the velocity is that of the joint."""
    robot, sim = swinging()
    joint = robot.joint_names[-1]
    sensors = SensorSet(robot, [Encoder("coarse", joint, resolution=0.01), Encoder("fine", joint)], PERIOD)
    every, results = readings(sensors, sim, 200)
    coarse = np.array([now["coarse"].position[0] for now in every])
    q, v = (np.array([getattr(result.state, name)[1] for result in results]) for name in "qv")
    assert np.abs(coarse / 0.01 - np.round(coarse / 0.01)).max() < 1e-9
    assert 0.004 < np.abs(coarse - q).max() <= 0.005 * (1 + 1e-9)
    assert np.array_equal([now["fine"].position[0] for now in every], q)
    assert np.array_equal([now["fine"].velocity[0] for now in every], v)


def test_a_late_encoder_reads_what_was():
    """The reading of so many periods before; nothing before there was any; and anew after a reset."""
    robot, sim = swinging()
    joint = robot.joint_names[0]
    late = Encoder("late", joint, rate=500.0, delay=0.007)
    sensors = SensorSet(robot, [late, Encoder("now", joint)], PERIOD)
    for _ in range(2):
        every, _ = readings(sensors, sim, 40)
        q = [now["now"].position[0] for now in every]
        assert [k for k in range(40) if "late" in every[k]] == [k for k in range(7, 40) if k % 2]
        assert [every[k]["late"].position[0] for k in range(7, 40, 2)] == [q[k - 7] for k in range(7, 40, 2)]
        sensors.reset()


def test_noise_of_an_encoder():
    """It has the standard deviations that are asked for, and is rounded with the position."""
    robot, sim = swinging()
    joint = robot.joint_names[0]
    noisy = Encoder("noisy", joint, position_noise=0.02, velocity_noise=0.3, resolution=0.001)
    every, results = readings(SensorSet(robot, [noisy], PERIOD, seed=3), sim, 3000)
    errors = [
        [now["noisy"].position[0] - result.state.q[0], now["noisy"].velocity[0] - result.state.v[0]]
        for now, result in zip(every, results, strict=True)
    ]
    deviation = np.std(errors, axis=0) / [np.hypot(0.02, 0.001 / np.sqrt(12)), 0.3]
    assert deviation == pytest.approx([1.0, 1.0], abs=5 / np.sqrt(2 * 3000))


def test_both_links_of_a_contact_are_pressed():
    """Two sliders pressed together with 10 N: whichever of them is the first of the pair."""
    box = '<box size="0.2 0.2 0.2"/>'
    sliders = [link(name, 1.0, shape=box) for name in ("left", "right")]
    joints = [
        joint(f"to {name}", "prismatic", "base", name, (1, 0, 0), (x, 0, 0), LIMIT)
        for name, x in (("left", -0.1), ("right", 0.1))
    ]
    robot = Robot.from_urdf(urdf('<link name="base"/>', *sliders, *joints))
    sim = simulator(robot, [0.0, 0.0], collisions=Collisions(self_collision=True))
    sensors = SensorSet(robot, [ContactSwitch(name, name, threshold=9.99) for name in ("left", "right")], PERIOD)
    for _ in range(20):
        result = sim.step([10.0, -10.0])
    now = sensors.measure(result)
    assert (now["left"].is_pressed[0], now["right"].is_pressed[0]) == (1, 1)
    for _ in range(2):
        result = sim.step([9.9, -9.9])
    assert not any(reading.is_pressed[0] for reading in sensors.measure(result).values())


def test_a_switch_is_on_while_its_link_is_pressed_hard_enough():
    """The foot of a leg that is dropped: off in the air, on at rest; never with a threshold above its weight."""
    config = leg_config()
    sim = config.simulator()
    weight = 9.81 * sum(inertia.mass for inertia in config.robot.model.inertias)
    switches = [
        ContactSwitch("sole", "foot", threshold=1.0),
        ContactSwitch("heavy", "foot", threshold=100.0 * weight),
        ContactSwitch("knee", "lower_leg"),
    ]
    every, results = readings(SensorSet(config.robot, switches, PERIOD), sim, 300)
    on = [bool(now["sole"].is_pressed[0]) for now in every]
    assert on == [result.contact_forces["foot"].normal_force >= 1.0 for result in results]
    assert not on[0] and any(on)
    assert not any(now[name].is_pressed[0] for now in every for name in ("heavy", "knee"))


@pytest.mark.parametrize("seed", range(3))
def test_a_twist_is_the_velocity_of_its_frame(seed):
    """As Pinocchio has it, in the axes of the frame; the IMU reads the same angular velocity."""
    rng = np.random.default_rng(seed)
    robot = random_tree(rng, 5, floating_base=True)
    q, v = random_state(robot, rng)
    link = list(robot.links)[-1]
    sim = simulator(robot, q, v)
    reading = SensorSet(robot, [Twist("true", link), Imu("imu", link)], PERIOD).measure(result := sim.step())
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, result.state.q, result.state.v)
    expected = pin.getFrameVelocity(robot.model, data, robot.links[link], pin.ReferenceFrame.LOCAL)
    np.testing.assert_allclose(reading["true"].linear, expected.linear, atol=1e-12)
    np.testing.assert_allclose(reading["true"].angular, expected.angular, atol=1e-12)
    np.testing.assert_allclose(reading["imu"].angular_velocity, expected.angular, atol=1e-12)


def test_they_are_read_from_a_configuration():
    """Keys are the attributes."""
    leg = {"robot": {"urdf": "package://constrained_sim/urdf/leg.urdf"}}
    sensors = {
        "knee": {"kind": "encoder", "joint": "knee", "resolution": 1e-3, "delay": 0.002},
        "sole": {"kind": "contact_switch", "link": "foot", "threshold": 5.0},
        "body": {"kind": "twist", "link": "carriage", "rate": 100.0},
    }
    found = read_config({**leg, "sensors": sensors}).sensors
    assert found == (
        Encoder("knee", "knee", resolution=1e-3, delay=0.002),
        ContactSwitch("sole", "foot", threshold=5.0),
        Twist("body", "carriage", rate=100.0),
    )
    for name, change, error, what in (
        ("knee", {"joint": "ankle"}, UnknownName, "joint"),
        ("knee", {"delay": 0.0005}, InvalidValue, "delay of sensor 'knee'.*multiple of 0.001"),
        ("knee", {"resolution": -1.0}, InvalidValue, "resolution"),
        ("sole", {"threshold": 0.0}, InvalidValue, "threshold"),
        ("body", {"link": "arm"}, UnknownName, "link"),
    ):
        with pytest.raises(error, match=what):
            read_config({**leg, "sensors": {name: sensors[name] | change}})


def test_errors_do_not_lead_out_of_a_turn():
    """An encoder of a continuous joint reads -pi to pi, whatever rounding and noise do near the end."""
    robot = Robot.from_urdf(urdf('<link name="base"/>', link("disc", 1.0), joint("axle", "continuous", "base", "disc")))
    sim = simulator(robot, [-1.0, 1e-12])
    coarse, noisy = Encoder("coarse", "axle", resolution=0.05), Encoder("noisy", "axle", position_noise=0.1)
    every, _ = readings(SensorSet(robot, [coarse, noisy, Encoder("exact", "axle")], PERIOD, seed=1), sim, 50)
    assert every[0]["exact"].position[0] == pytest.approx(np.pi, abs=1e-3)
    for now in every:
        assert all(abs(reading.position[0]) <= np.pi for reading in now.values())
    assert {np.sign(now["noisy"].position[0]) for now in every} == {1.0, -1.0}
    assert every[0]["coarse"].position[0] == pytest.approx(3.15 - 2.0 * np.pi)
