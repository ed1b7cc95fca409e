"""A real controller manager with real controllers, in lock-step with the simulator."""

import json
import re
import signal
import time

import numpy as np
import pytest
import yaml
from ros.bags import Bag
from ros.live import CONFIG, START_TIME, Client, Process, arguments, free_domain, stamp
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from constrained_sim import load_config
from constrained_sim.exceptions import NoAnswer
from constrained_sim.testing.ros import package_executable

if not package_executable("ros2_control_node").exists():
    pytest.skip("this package was built where ros2_control was not installed", allow_module_level=True)
services = pytest.importorskip("controller_manager_msgs.srv", reason="ros2_control is not installed")
trajectories = pytest.importorskip("trajectory_msgs.msg", reason="trajectory_msgs is not installed")

JTC = "joint_trajectory_controller"
BROADCASTER = "joint_state_broadcaster"
TYPES = {
    JTC: "joint_trajectory_controller/JointTrajectoryController",
    BROADCASTER: "joint_state_broadcaster/JointStateBroadcaster",
    "effort_controller": "effort_controllers/JointGroupEffortController",
}
PATIENCE = 60.0
"""[s] of wall-clock time that a test waits for what has to come."""

PANDA = "package://example-robot-data/robots/panda_description/urdf/panda.urdf"


def with_hardware(urdf, joints, interfaces=("position", "velocity", "effort"), **parameters):
    """Return the text of a URDF with a block for the plugin."""
    given = "".join(f'<param name="{name}">{value}</param>' for name, value in parameters.items())
    states = "".join(f'<state_interface name="{name}"/>' for name in ("position", "velocity", "effort"))
    commands = "".join(f'<command_interface name="{name}"/>' for name in interfaces)
    block = f"<hardware><plugin>constrained_sim/SimulatorHardware</plugin>{given}</hardware>" + "".join(
        f'<joint name="{name}">{commands}{states}</joint>' for name in joints
    )
    bare = re.sub(r"<ros2_control.*</ros2_control>", "", urdf, flags=re.DOTALL)
    return bare.replace("</robot>", f'<ros2_control name="robot" type="system">{block}</ros2_control></robot>')


class Robot:
    """A robot in lock-step and a controller manager, in a folder and a domain of their own."""

    def __init__(self, folder, config, urdf, controllers, **parameters):
        self.folder, self.domain = folder, free_domain()
        folder.mkdir()
        (folder / "robot.urdf").write_text(urdf)
        (folder / "controllers.yaml").write_text(json.dumps(controllers))  # YAML without aliases
        given = {"robot__urdf": folder / "robot.urdf", "record": folder / "bag", "start_paused": True} | parameters
        given["clock_mode"] = "lockstep"
        self.simulator = Process(folder, self.domain, "simulator", *arguments(config, **given))
        words = "--ros-args", "--params-file", folder / "controllers.yaml"
        self.manager = Process(folder, self.domain, "ros2_control_node", *words)
        self.client = Client(self.domain)
        self.client.watchers.append(self._see_the_manager)

    def _see_the_manager(self):
        assert not self.manager.ending, f"the manager {self.manager.ending}: {self.manager.stderr}"

    def call(self, kind, service, **fields):
        """Call a service of the manager, again where its answer is lost."""
        name = f"/controller_manager/{service}"
        for _ in range(3):
            try:
                return self.client.call(kind, name, timeout=PATIENCE / 2, **fields)
            except NoAnswer:
                continue
        raise NoAnswer(f"{name}; {self.manager.stderr}")

    def activate(self, *names):
        """Load, configure and activate controllers, while time stands still."""
        for name in names:
            assert self.call(services.LoadController, "load_controller", name=name).ok, self.manager.stderr
            assert self.call(services.ConfigureController, "configure_controller", name=name).ok
        switch = services.SwitchController.Request
        answer = self.call(
            services.SwitchController,
            "switch_controller",
            activate_controllers=list(names),
            strictness=switch.STRICT,
            activate_asap=True,
        )
        assert answer.ok, self.manager.stderr

    def follow(self, joints, waypoints):
        """Tell the trajectory controller positions [rad] by the time from now [s]."""
        message = trajectories.JointTrajectory(joint_names=joints)
        for after, positions in waypoints.items():
            point = trajectories.JointTrajectoryPoint(positions=positions, velocities=[0.0] * len(joints))
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(after * 1e9), 10**9)
            message.points.append(point)
        self.client.publish(f"/{JTC}/joint_trajectory", message)
        self.client.spin(0.5)

    def present_positions(self, joints):
        """Return (n,) the positions of `joints` while time stands still."""
        states = self.client.subscribe(JointState, "/joint_states")
        self.client.wait_for(lambda: states, "state", PATIENCE)
        return np.array([states[-1].position[list(states[-1].name).index(name)] for name in joints])

    def run(self):
        """Let time go on until the simulator ends by itself; return its bag."""
        self.client.call(SetBool, "pause", timeout=PATIENCE, data=False)
        assert self.simulator.wait(PATIENCE) == 0, self.simulator.stderr
        assert self.manager.wait(PATIENCE) == 0, self.manager.stderr
        return Bag(self.folder / "bag")

    def close(self):
        self.client.close()
        self.manager.stop()
        self.simulator.stop()


@pytest.fixture
def robot(tmp_path):
    """Return a function that starts a robot and its controller manager."""
    started = []

    def start(*given, **named):
        started.append(Robot(tmp_path / f"robot_{len(started)}", *given, **named))
        return started[-1]

    yield start
    for one in started:
        one.close()


def parameters(joints, interfaces=("position",), rate=1000, **gains):
    """Return the parameters of a manager and its controllers."""
    manager = {"update_rate": rate} | {name: {"type": kind} for name, kind in TYPES.items()}
    trajectory = {
        "joints": joints,
        "command_interfaces": list(interfaces),
        "state_interfaces": ["position", "velocity"],
    }
    if gains:
        trajectory["gains"] = {name: gains for name in joints}
    return {
        "controller_manager": {"ros__parameters": manager},
        JTC: {"ros__parameters": trajectory},
        BROADCASTER: {"ros__parameters": {"use_local_topics": True}},
        "effort_controller": {"ros__parameters": {"joints": joints}},
    }


def positions(bag, joints):
    """Return times since the start [s], and the positions (n, joints)."""
    states = bag.messages("/joint_states")
    order = [list(states[0].name).index(name) for name in joints]
    stamps = [state.header.stamp.sec + state.header.stamp.nanosec * 1e-9 - START_TIME for state in states]
    return np.array(stamps), np.array([state.position for state in states])[:, order]


def of_leg(folder):
    """The leg on its foot, with efforts of the controller's own gains."""
    config = load_config(CONFIG)
    joints = list(config.robot.actuated_joints)
    gains = {"p": 200.0, "d": 4.0}
    return CONFIG, config.robot, parameters(joints, ["effort"], **gains), {"initial__positions__slider": 0.2641}


def of_quadruped(folder):
    """solo12 on four feet, with the gains of its parameter file."""
    path = CONFIG.with_name("quadruped.yaml")
    robot = load_config(path).robot
    return path, robot, parameters(list(robot.actuated_joints)), {}


def of_panda(folder):
    """An arm with stiff drives."""
    path, joints = folder / "panda.yaml", [f"panda_joint{number}" for number in range(1, 8)]
    robot = {"urdf": PANDA, "actuated_joints": joints}
    servo = {name: {"stiffness": 1e5, "damping": 1e3} for name in joints}
    initial = {"positions": {"panda_joint2": -0.5, "panda_joint4": -2.0, "panda_joint6": 1.5}}
    path.write_text(yaml.safe_dump({"robot": robot, "servo": servo, "initial": initial, "dt": 0.001}))
    path.write_text(yaml.safe_dump({"/**": {"ros__parameters": yaml.safe_load(path.read_text())}}))
    return path, load_config(path).robot, parameters(joints), {}


ROBOTS = {"leg": (of_leg, 0.03), "solo12": (of_quadruped, 0.1), "panda": (of_panda, 2e-3)}
"""By name: the robot, and by how much its joints may miss a waypoint at which they rest [rad]."""


@pytest.mark.parametrize("name", ROBOTS)
def test_trajectories_are_followed_and_two_runs_are_equal(robot, name, tmp_path):
    make, tolerance = ROBOTS[name]
    path, model, controllers, given = make(tmp_path)
    joints = list(model.actuated_joints)
    bags = []
    for _ in range(2):
        given |= {"duration": 1.5}
        running = robot(path, with_hardware(model.urdf, joints), controllers, **given)
        running.activate(BROADCASTER, JTC)
        start = running.present_positions(joints)
        waypoints = {0.5: start + 0.2 * np.resize([1.0, -1.0], len(joints)), 1.2: start}
        running.follow(joints, {after: list(goal) for after, goal in waypoints.items()})
        bags.append(running.run())
    times, followed = positions(bags[0], joints)
    assert times[-1] == pytest.approx(1.5)
    for after, goal in waypoints.items():
        error = np.abs(followed[np.argmin(np.abs(times - after))] - goal)
        assert error.max() < tolerance
    assert len(bags[0].raw["/joint_states"]) == 1501
    assert bags[0].raw["/joint_states"] == bags[1].raw["/joint_states"]


def test_efforts_are_those_of_the_core(robot, tmp_path):
    """Each command acts in the period after the state that it answers, from the first on."""
    config = load_config(CONFIG)
    joints = ["hip", "knee"]
    running = robot(CONFIG, with_hardware(config.robot.urdf, joints), parameters(joints), duration=0.3)
    running.activate("effort_controller")
    running.client.publish("/effort_controller/commands", Float64MultiArray(data=[0.5, -1.0]))
    running.client.spin(0.5)
    times, followed = positions(running.run(), joints)
    sim, expected = config.simulator(), []
    expected.append(sim.state.q[1:])
    sim.step([0.0, 0.0])  # answered before the controller had its command
    while len(expected) < len(times):
        expected.append(sim.state.q[1:])
        sim.step([0.5, -1.0])
    np.testing.assert_array_equal(followed, np.array(expected)[: len(times)])


@pytest.mark.parametrize(
    ("joints", "interfaces", "rate", "said"),
    [
        (["hip", "elbow"], ["effort"], 1000, "elbow"),
        (["hip", "slider"], ["effort"], 1000, "slider"),
        (["hip"], ["acceleration"], 1000, "no interface 'acceleration', allowed: position, velocity, effort"),
        (["hip"], ["effort"], 500, "the control_period is 0.001 s"),
    ],
)
def test_a_block_that_does_not_fit_is_refused_with_the_reason(robot, joints, interfaces, rate, said):
    urdf = with_hardware(load_config(CONFIG).robot.urdf, joints, interfaces)
    running = robot(CONFIG, urdf, parameters(joints, rate=rate))
    running.client.wait_for(lambda: said in running.manager.stderr, said, PATIENCE)
    assert running.simulator.ending == ""


def test_a_simulator_that_is_not_there_is_named(robot):
    urdf = with_hardware(load_config(CONFIG).robot.urdf, ["hip"], simulator="/nobody")
    running = robot(CONFIG, urdf, parameters(["hip"]))
    said = "no simulator /nobody in lock-step on this machine"
    running.client.wait_for(lambda: said in running.manager.stderr, said, PATIENCE)


def test_an_interrupt_ends_the_manager_and_the_simulator_waits_for_another(robot):
    joints = ["hip", "knee"]
    running = robot(CONFIG, with_hardware(load_config(CONFIG).robot.urdf, joints), parameters(joints))
    running.activate(BROADCASTER)
    running.manager.popen.send_signal(signal.SIGINT)
    assert running.manager.wait(PATIENCE) == 0, running.manager.stderr
    assert "[ERROR]" not in running.manager.stderr
    running.client.wait_for(lambda: "the controller manager has left" in running.simulator.stderr, "end", PATIENCE)
    assert running.simulator.ending == ""


def test_no_time_passes_until_the_awaited_controllers_are_active(robot):
    """With the files of the leg as they are; then it passes as fast as the wall clock does."""
    controllers = yaml.safe_load(CONFIG.with_name("leg_ros2_control.yaml").read_text())
    running = robot(CONFIG, load_config(CONFIG).robot.urdf, controllers, start_paused=False)
    running.activate("effort_controller")
    states = running.client.subscribe(JointState, "/joint_states")
    running.client.wait_for(lambda: states, "state", PATIENCE)
    running.client.spin(1.0)
    assert {stamp(state) for state in states} == {round(START_TIME * 1e9)}
    switch = services.SwitchController
    stop = {"deactivate_controllers": ["effort_controller"], "strictness": switch.Request.STRICT}
    assert running.call(switch, "switch_controller", activate_asap=True, **stop).ok
    running.activate(JTC)
    running.client.wait_for(lambda: stamp(states[-1]) > 1.1e9, "time", PATIENCE)
    before, begin = stamp(states[-1]), time.monotonic()
    running.client.spin(1.0)
    assert 0.0 < (stamp(states[-1]) - before) * 1e-9 < time.monotonic() - begin + 0.2
