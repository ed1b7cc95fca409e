"""Closed-loop tests of controllers over ROS: the same numbers as without, and nothing left over, whatever happens."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from runpy import run_path
from textwrap import dedent

import numpy as np
import pytest
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from ros.live import CONFIG, ROOT
from sensor_msgs.msg import JointState

import constrained_sim.testing
from constrained_sim import Wrench, load_config
from constrained_sim.exceptions import (
    ConfigError,
    ConstrainedSimError,
    InvalidValue,
    NotSupported,
    UnknownName,
    ViolatedConstraint,
)
from constrained_sim.testing import ControllerFailed, NoAnswer, SimulationFailed
from constrained_sim.testing.ros import domains
from constrained_sim.testing.ros.session import refusal

pytest_plugins = ["constrained_sim.testing.fixtures"]

POSTURE = np.array([0.6, -1.2])
CONTROLLER = ROOT / "examples" / "leg_controller.py"
STAND = ["leg_controller", "--ros-args", "-p", "mode:=stand"]


def stand(t, q, v):
    """Hold the posture of the leg."""
    return 60.0 * (POSTURE - q[1:]) - 1.5 * v[1:]


class Integrator:
    """A controller with a memory, which a call too many or too few would change for good."""

    def __init__(self):
        self.sum, self.calls = np.zeros(2), []

    def __call__(self, t, q, v):
        self.calls.append(t)
        self.sum += 1e-3 * (POSTURE - q[1:])
        return stand(t, q, v) + 5.0 * self.sum


def bits(snapshot):
    """Return every number of a snapshot, bit by bit."""
    contacts = {
        name: (c.link, c.status, c.normal_force, c.friction, c.gap, *map(bytes, (c.position, c.normal)))
        for name, c in snapshot.contacts.items()
    }
    forces = {name: tuple(map(bytes, (c.force, c.moment, c.slip))) for name, c in snapshot.contacts.items()}
    return snapshot.t, *map(bytes, (snapshot.q, snapshot.v, snapshot.tau)), contacts, forces


def impact_bits(robot):
    return [
        (i.t, i.energy_lost, bytes(i.v_minus), bytes(i.v_plus), {name: bytes(p) for name, p in i.impulses.items()})
        for i in robot.impacts
    ]


SETTINGS = {
    "four steps in a period, another solver": {
        "control_period": 0.004,
        "solver": "direct",
        "factorization": "qr",
        "contact_method": "gauss_seidel",
    },
    "bouncing, with rolling friction": {
        "contacts.foot.radius": 0.01,
        "contacts.foot.rolling_friction": 0.002,
        "contacts.foot.restitution": 0.5,
        "contacts.foot.friction": 0.05,
    },
}


@pytest.mark.parametrize("parameters", SETTINGS.values(), ids=SETTINGS)
def test_both_backends_give_the_same_bits(simulate_directly, simulate_in_ros, parameters):
    """States, efforts, forces and impacts of a controller with a memory, over resets, and when it was called."""
    seen = []
    for simulate in (simulate_directly, simulate_in_ros):
        controller = Integrator()
        robot = simulate(CONFIG, controller, parameters)
        histories = []
        robot.run(0.4)
        histories.append(([bits(s) for s in robot.history], impact_bits(robot)))
        robot.reset({"slider": 0.4, "hip": 0.5}, {"slider": -0.5, "knee": 1.0})
        robot.run_until(lambda now: now.contacts["foot"].normal_force > 0.0, within=0.4)
        histories.append(([bits(s) for s in robot.history], impact_bits(robot)))
        robot.reset(velocities={"slider": -0.25})
        robot.step(30)
        robot.step()
        histories.append(([bits(s) for s in robot.history], impact_bits(robot)))
        seen.append((histories, controller.calls))
    direct, ros = seen
    assert [len(states) for states, _ in direct[0]] == [len(states) for states, _ in ros[0]]
    assert direct == ros
    assert len(direct[1]) == sum(len(states) - 1 for states, _ in direct[0])
    assert direct[0][0][1] and direct[0][1][1]


def test_pushes_give_the_same_bits(simulate_directly, simulate_in_ros):
    """For a while, for one period, in the axes of a link, at a point of it."""
    seen = []
    for simulate in (simulate_directly, simulate_in_ros):
        robot = simulate(CONFIG, stand)
        robot.run(0.15)
        robot.push(Wrench("carriage", (0.0, 0.0, -9.0), (0.0, 0.3, 0.0)), 0.05)
        robot.push(Wrench("lower_leg", (4.0, 0.0, 0.0), point=(0.0, 0.0, -0.1), axes="upper_leg"))
        robot.run(0.1)
        seen.append([bits(s) for s in robot.history])
    assert seen[0] == seen[1]


def test_floating_base_gives_the_same_bits(simulate_directly, simulate_in_ros):
    """The quadruped under joint springs and dampers, pushed: its base comes by another topic."""
    config = load_config(CONFIG.with_name("quadruped.yaml"))
    posture = config.q[7:]
    seen = []
    for simulate in (simulate_directly, simulate_in_ros):
        robot = simulate(CONFIG.with_name("quadruped.yaml"), lambda t, q, v: 5.0 * (posture - q[7:]) - 0.1 * v[6:])
        robot.run(0.05)
        robot.push(Wrench("base_link", (0.0, 3.0, 0.0)), 0.05)
        robot.run(0.1)
        seen.append([bits(s) for s in robot.history])
    assert seen[0] == seen[1]
    assert robot.now.q[1] > 0.0


PENDULUM = """<mujoco><worldbody><body name="bob">
<joint name="ball" type="ball"/><geom type="sphere" size="0.1" pos="0 0 -1" mass="1"/>
</body></worldbody></mujoco>"""


def test_joints_that_the_topics_do_not_have_are_refused(simulate_directly, simulate_in_ros, tmp_path):
    """A ball joint; without ROS it can be tested."""
    (tmp_path / "pendulum.xml").write_text(PENDULUM)
    (tmp_path / "pendulum.yaml").write_text("robot: {mjcf: pendulum.xml}\n")
    assert simulate_directly(tmp_path / "pendulum.yaml").run(0.01)[-1].q.tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.raises(NotSupported, match=r"topic joint_states cannot do 'ball'"):
        simulate_in_ros(tmp_path / "pendulum.yaml")


def test_without_a_controller(simulate_directly, simulate_in_ros):
    """The leg falls; nobody is waited for."""
    histories = [[bits(s) for s in simulate(CONFIG).run(0.2)] for simulate in (simulate_directly, simulate_in_ros)]
    assert histories[0] == histories[1]


def test_refusals_are_of_the_same_class(simulate_directly, simulate_in_ros):
    """A reset into the ground raises the same with and without ROS, with the same message."""
    messages = set()
    for simulate in (simulate_directly, simulate_in_ros):
        robot = simulate(CONFIG, stand)
        with pytest.raises(ViolatedConstraint, match=r"'foot' is violated by ") as refused:
            robot.reset({"slider": 0.1})
        messages.add(str(refused.value))
    assert len(messages) == 1


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (str(InvalidValue("dt", 0, "more")), InvalidValue),
        (str(UnknownName("link", "tail", ["foot"])), UnknownName),
        ("internal error: ZeroDivisionError()", ConstrainedSimError),
        ("of another version (constrained_sim why Nothing)", ConstrainedSimError),
        ("a warning (constrained_sim why CoarseStep)", ConstrainedSimError),
    ],
)
def test_answers_tell_the_class(message, kind):
    """By the command that a message ends with; the text stays, where that is of one of our errors."""
    error = refusal(message)
    assert type(error) is kind
    assert error.message == message.partition(" (")[0]


def test_refusals_over_ros(simulate_in_ros):
    """A reset into the ground, and a link that does not exist, change nothing."""
    robot = simulate_in_ros(CONFIG, stand)
    robot.step(3)
    now = robot.now
    with pytest.raises(ConstrainedSimError, match=r"'foot' is violated"):
        robot.reset({"slider": 0.1})
    with pytest.raises(UnknownName, match="'tail'"):
        robot.push(Wrench("tail"))
    assert robot.now is now
    assert robot.step().t == pytest.approx(0.004)


def load_example():
    spec = spec_from_file_location("leg_controller", CONTROLLER)
    module = module_from_spec(spec)
    sys.modules["leg_controller"] = module
    spec.loader.exec_module(module)
    return module.LegControllerNode


def test_command_and_node_class_give_the_same_bits(simulate_in_ros):
    """The example controller stands, as a process and as a node in the test's thread."""
    histories = []
    for controller in (STAND, load_example()):
        robot = simulate_in_ros(CONFIG, controller)
        histories.append([bits(s) for s in robot.run(1.0)])
        assert robot.now.contacts["foot"].normal_force == pytest.approx(24.525, rel=0.01)
        assert min(s.position["slider"] for s in robot.history) > 0.2
        robot.close()
    assert histories[0] == histories[1]


def script(folder, text):
    """Return the command of a controller that is a script."""
    path = folder / "controller.py"
    path.write_text(dedent(text))
    return [sys.executable, str(path)]


FAILING = """
    import sys
    import rclpy
    from rclpy.node import Node
    from sensor_msgs.msg import JointState

    class Failing(Node):
        def __init__(self):
            super().__init__("failing")
            self.publisher = self.create_publisher(JointState, "joint_commands", 10)
            self.create_subscription(JointState, "joint_states", self.answer, 1)

        def answer(self, state):
            if state.header.stamp.nanosec >= 20_000_000:
                raise RuntimeError("lost my gains")
            command = JointState(name=["hip", "knee"], effort=[0.0, 0.0])
            command.header.stamp = state.header.stamp
            self.publisher.publish(command)

    if __name__ == "__main__":
        rclpy.init()
        rclpy.spin(Failing())
"""


@pytest.mark.parametrize("is_late", [False, True])
def test_crash_of_a_process_is_reported(simulate_in_ros, tmp_path, is_late):
    """The error has the command, the exit code, the simulated time, and what was written to standard error.

    Also where the test hears of the end before it has taken in what was published until then.
    """
    robot = simulate_in_ros(CONFIG, script(tmp_path, FAILING))
    naps = [is_late]

    def nap():
        if naps[-1] and robot.session.states and robot.session.states[-1].header.stamp.nanosec >= 3_000_000:
            naps.append(False)
            time.sleep(3.0)

    robot.session.client.watchers.insert(0, nap)
    with pytest.raises(ControllerFailed, match=r"(?s)ended with exit code 1, at t = 0\.02.* lost my gains"):
        robot.run(0.1)
    assert robot.now.t == pytest.approx(0.02)
    assert [s.t for s in robot.history] == pytest.approx([0.001 * k for k in range(21)])


def test_crash_of_a_node_is_raised_in_the_test(simulate_in_ros):
    """The exception of a callback arrives as it is; rclpy's default context ends with the robot."""

    class Failing(Node):
        def __init__(self):
            super().__init__("failing")
            self.create_subscription(JointState, "joint_states", self.answer, QoSProfile(depth=1))

        def answer(self, state):
            raise ZeroDivisionError("no gains")

    robot = simulate_in_ros(CONFIG, Failing)
    assert rclpy.ok()
    with pytest.raises(ZeroDivisionError, match="no gains"):
        robot.run(0.01)
    robot.close()
    assert not rclpy.ok()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_node_that_exits_is_a_controller_that_failed(simulate_in_ros, at_once):
    """A SystemExit would end the test run, or look like the end of the test."""

    class Leaving(Node):
        def __init__(self):
            super().__init__("leaving")
            self.create_subscription(JointState, "joint_states", self.answer, QoSProfile(depth=1))
            if at_once:
                sys.exit("no gains")

        def answer(self, state):
            sys.exit(3)

    expected = r"Leaving called sys.exit\('no gains'\)" if at_once else r"Leaving called sys.exit\(3\), at t = 0"
    with pytest.raises(ControllerFailed, match=expected):
        simulate_in_ros(CONFIG, Leaving).run(0.01)


def test_a_function_that_exits_is_a_controller_that_failed(simulate_directly, simulate_in_ros):
    """With and without ROS."""

    def leave(t, q, v):
        sys.exit("no gains")

    for simulate in (simulate_directly, simulate_in_ros):
        with pytest.raises(ControllerFailed, match=r"leave called sys.exit\('no gains'\)"):
            simulate(CONFIG, leave).run(0.01)


def test_a_law_that_exits_ends_its_node_with_one_line():
    """Of the package's nodes for laws, which a user's law may use."""
    code = """
        import sys
        from constrained_sim.controllers import LegController
        from constrained_sim.ros.controller import main

        class Leaving(LegController):
            def __init__(self, config, mode):
                sys.exit(0)

        sys.exit(main("leaving", Leaving, "leg.yaml", ["leaving"]))
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "leaving: the control law Leaving called sys.exit(0)\n")


def test_node_that_cannot_be_made_leaves_nothing(simulate_in_ros):
    class Failing(Node):
        def __init__(self):
            raise ZeroDivisionError("no gains")

    with pytest.raises(ZeroDivisionError, match="no gains"):
        simulate_in_ros(CONFIG, Failing)
    assert not rclpy.ok()


def test_default_context_in_use_is_refused(simulate_in_ros):
    rclpy.init(domain_id=101)
    try:
        with pytest.raises(InvalidValue, match="default context"):
            simulate_in_ros(CONFIG, load_example())
    finally:
        rclpy.shutdown()


def test_controller_killed_in_motion_is_reported(simulate_in_ros):
    """At once, with the signal; the time that passed is kept."""
    robot = simulate_in_ros(CONFIG, STAND)
    robot.run(0.05)
    os.kill(robot.controller.process.pid, signal.SIGKILL)
    with pytest.raises(ControllerFailed, match=r"leg_controller .*was killed by SIGKILL, at t = 0\.05"):
        robot.run(1.0)
    assert robot.now.t < 0.06


def test_silent_controller_is_named(simulate_in_ros, tmp_path):
    """A process that lives and says nothing: the message says who is missing and at which time."""
    command = script(tmp_path, "import sys, time\nprint('no robot', file=sys.stderr)\ntime.sleep(100.0)")
    robot = simulate_in_ros(CONFIG, command, timeout=4.0)
    expected = (
        r"(?s)no new state within 4 s: the simulation waits at t = 0 s .*controller\.py is running; "
        r"its standard error is: no robot; publishers of joint_commands: none; subscribers of joint_states: none; "
        r"the simulator, which counts this test as one publisher and one subscriber too, wrote: "
    )
    with pytest.raises(NoAnswer, match=expected):
        robot.run(0.1)


class Deaf(Node):
    """Commands a joint that does not exist."""

    def __init__(self):
        super().__init__("deaf")
        self.publisher = self.create_publisher(JointState, "joint_commands", QoSProfile(depth=1))
        self.create_subscription(JointState, "joint_states", self.answer, QoSProfile(depth=1))

    def answer(self, state):
        self.publisher.publish(JointState(name=["tail"], effort=[0.0]))


def test_refused_commands_are_in_the_message(simulate_in_ros):
    """A controller that is there, but is not understood."""
    robot = simulate_in_ros(CONFIG, Deaf, timeout=4.0)
    with pytest.raises(NoAnswer, match=r"(?s)joint_commands: deaf; .*joint_states: deaf; .*refused: .*'tail'"):
        robot.run(0.1)


def test_end_of_the_simulator_is_reported(simulate_in_ros):
    robot = simulate_in_ros(CONFIG, stand)
    robot.step()
    robot.session.process.popen.kill()
    with pytest.raises(SimulationFailed, match="the simulator was killed by SIGKILL"):
        robot.run(0.5)


def test_motion_that_is_not_finite(simulate_in_ros):
    robot = simulate_in_ros(CONFIG, stand)
    robot.reset(velocities={"knee": 1e200})
    with pytest.raises(SimulationFailed, match=r"step 0 .* failed: .* NaN or infinity"):
        robot.step()
    robot.reset()
    assert robot.step().t == pytest.approx(0.001)


@pytest.mark.parametrize("controller", ["leg_controller", [], int, 3])
def test_bad_controllers_are_refused(simulate_in_ros, controller):
    with pytest.raises(InvalidValue, match="a command line in a list"):
        simulate_in_ros(CONFIG, controller)


def test_command_that_does_not_exist(simulate_in_ros):
    with pytest.raises(InvalidValue, match="no_such_controller"):
        simulate_in_ros(CONFIG, ["no_such_controller"])


def test_bad_configuration_is_refused_before_anything_starts(simulate_in_ros):
    with pytest.raises(ConfigError, match="nonsense"):
        simulate_in_ros(CONFIG, stand, {"nonsense": 1.0})


MARK = "CONSTRAINED_SIM_TEST_RUN"


def run_pytest(folder, text):
    """Run the tests in `text` in a pytest of their own; return its output. Nothing that it started may be left."""
    (folder / "test_user.py").write_text(dedent(text))
    mark = f"{os.getpid()}_{time.monotonic_ns()}"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-v", "test_user.py"]
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=os.environ | {MARK: mark}, timeout=120
    )
    assert [path.name for path in Path("/proc").iterdir() if f"{MARK}={mark}" in environment_of(path)] == []
    return run.stdout


def environment_of(process):
    try:
        return (process / "environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def test_failing_tests_leave_nothing(tmp_path):
    """A crash, a failed assertion beside a living controller, a crash that nobody noticed: each is reported."""
    script(tmp_path, FAILING)
    head = f"""
        import sys, time
        import rclpy
        from constrained_sim.testing.ros import RosRobot
        pytest_plugins = ["constrained_sim.testing.fixtures"]
        CONFIG = {str(CONFIG)!r}
        FAILING = [sys.executable, "controller.py"]

        def test_crash(simulate_in_ros):
            simulate_in_ros(CONFIG, FAILING).run(0.1)

        def test_assertion(simulate_in_ros):
            leg = simulate_in_ros(CONFIG, {STAND!r})
            leg.run(0.05)
            assert leg.now.t == 0.0

        def test_crash_after_the_last_step(simulate_in_ros):
            leg = simulate_in_ros(CONFIG, FAILING)
            leg.step(20)
            leg.controller.process.popen.wait(20.0)

        def test_next():
            assert not rclpy.ok()
    """
    output = run_pytest(tmp_path, head)
    assert "test_user.py::test_next PASSED" in output
    assert all(count in output.splitlines()[-1] for count in ("2 failed", "2 passed", "1 error")), output
    crash = output.partition("_ test_crash _")[2].partition("_ test_assertion _")[0]
    assert "RuntimeError: lost my gains" in crash and "ControllerFailed" in crash
    error = output.partition("ERROR at teardown of test_crash_after_the_last_step")[2]
    assert "ended with exit code 1" in error and "RuntimeError: lost my gains" in error


def test_no_two_processes_get_the_same_domain():
    """Not even before anybody listens there: two that begin their search at the same one."""
    searches = [run_path(domains.__file__)["free_domain"] for _ in range(2)]
    found = [search() for _ in range(8) for search in searches]
    assert len(set(found)) == 16
    assert set(found) <= set(range(1, 101))


def test_domains_do_not_run_out(monkeypatch):
    """One that was free, and that nobody took, is so again: a process may simulate any number of robots in turn."""
    monkeypatch.setattr(domains, "DOMAINS", 3)
    monkeypatch.setattr(domains, "FIRST_PORT", 1400)  # tests that run beside this use the domains of DDS
    monkeypatch.setattr(domains, "_claims", deque(maxlen=20))
    assert {domains.free_domain() for _ in range(8)} <= {1, 2, 3}


def test_example_of_the_documentation(tmp_path):
    """The test in the docstring of the package passes as it stands, without and with ROS; the README has the same."""
    documentation = constrained_sim.testing.__doc__
    code = dedent(documentation.partition("::\n\n")[2].partition("\nThe fixture")[0])
    output = run_pytest(tmp_path, code)
    assert "2 passed" in output, output
    readme = (ROOT / "README.md").read_text()
    assert code.strip() in readme or "constrained_sim.testing" not in readme
