"""Fixtures of the live tests: running nodes, and the bags of a few complete simulations."""

import contextlib
import signal
from functools import cache

import pytest
from rcl_interfaces.srv import SetParameters
from ros.bags import Bag
from ros.live import CONFIG, START_TIME, Process, arguments, dotted, free_domain, stamp
from sensor_msgs.msg import JointState

from constrained_sim import load_config
from constrained_sim.contact_solvers import METHODS, compile_methods
from constrained_sim.exceptions import NoAnswer
from constrained_sim.msg import SimulationStatus
from constrained_sim.ros.discovery import loopback_settings
from constrained_sim.solvers import SOLVERS, make_solver
from constrained_sim.srv import SetSolver, Step
from constrained_sim.testing.ros import Session

PATIENCE = 60.0
"""[s] How long tests wait for what has to come."""


@pytest.fixture(scope="session", autouse=True)
def environment(tmp_path_factory):
    """Keep DDS on the loopback interface and logs out of the home folder; compile what the first use would compile.

    Run in a shell's background, the tests ignore SIGINT, and so would all that they start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in loopback_settings().items():
            patch.setenv(name, value)
        patch.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("log")))
        patch.delenv("ROS_LOCALHOST_ONLY", raising=False)
        for solver in SOLVERS:
            for method in METHODS:
                sim = load_config(CONFIG).simulator()
                if not all(make_solver(solver).supports(constraint) for constraint in sim.constraints):
                    continue
                sim.set_solver(solver)
                sim.set_contact_method(method)
                sim.run(0.15)
        compile_methods()
        yield


class Simulation(Session):
    """A running simulator with a client that listens to everything."""

    def __init__(self, folder, config=CONFIG, **parameters):
        """Start both; the node starts paused unless told otherwise."""
        super().__init__(folder, config, dotted(parameters))
        self.wait_for = lambda condition, what, timeout=PATIENCE: self.client.wait_for(condition, what, timeout)

    def fresh_status(self):
        """Return a status of the simulation once it is paused."""
        self.status.clear()
        self.pause()
        # What was sent before the call may arrive after its answer, and on a busy machine the newest much later.
        still = SimulationStatus.PAUSED, SimulationStatus.FROZEN
        self.wait_for(lambda: self.status and self.status[-1].state in still, "status of the pause")
        self.settle()
        return self.status[-1]

    def settle(self):
        """Take what a paused simulation has sent, until nothing more comes."""
        before = -1
        while (count := sum(map(len, self.client.got.values()))) > before:
            before = count
            self.client.spin(0.1)

    def step_until(self, messages, periods=1):
        """Step; return the last of `messages`, which come with every period, once it is that of the last period."""
        end = stamp(self.step(periods)[0])
        self._wait_for_stamp(messages, end, "message of the last period", PATIENCE)
        return messages[-1]

    def meet(self):
        """Wait until every topic reaches the client."""

        def met():
            self.forget()
            with contextlib.suppress(NoAnswer):  # the first one may be lost: see SETTLE of the client
                self.call(Step, "step", timeout=5.0, periods=1)
            self.client.spin(0.1)
            return self.states and self.forces and self.clock and self.fresh_status()

        self.wait_for(met, "message on every topic", timeout=30.0)

    def command(self, name, effort, **header):
        """Publish a joint command."""
        message = JointState(name=name, effort=effort)
        if "stamp" in header:
            message.header.stamp = header["stamp"]
        self.publish("/joint_commands", message)

    def wait_for_commands(self):
        """Pause, and wait until the node has the commands that were sent: it counts a bad one sent after them."""
        before = self.fresh_status().commands_refused
        self.command(["nobody"], [0.0])
        self.wait_for_refusals(before + 1)

    def wait_for_refusals(self, count):
        """Pause, and wait until the node has refused so many commands since its reset."""
        self.wait_for(lambda: self.fresh_status().commands_refused == count, "count of the refusals")

    def parameters(self, *parameters):
        """Set parameters through the node's standard service; return the results."""
        messages = [parameter.to_parameter_msg() for parameter in parameters]
        return self.call(SetParameters, "set_parameters", parameters=messages).results


@pytest.fixture(scope="session")
def simulate(tmp_path_factory):
    """Return a context manager that runs a simulator and a client."""

    @contextlib.contextmanager
    def running(**parameters):
        simulation = Simulation(tmp_path_factory.mktemp("node"), **parameters)
        try:
            yield simulation
        finally:
            simulation.close()

    return running


@pytest.fixture(scope="session")
def _stepped(simulate):
    with simulate(clock_mode="fast", start_paused=True) as simulation:
        simulation.meet()
        yield simulation


@pytest.fixture
def stepped(_stepped):
    """A paused node in mode fast, just reset, solver as configured; shared by tests, which step it."""
    _stepped.pause()
    assert _stepped.call(SetSolver, "set_solver", solver="range_space", contact_method="newton").success
    assert stamp(_stepped.reset()) == START_TIME * 1e9
    _stepped.settle()
    _stepped.forget()
    return _stepped


@pytest.fixture
def scene(_scene):
    """The paused node of a module, just reset: a robot with objects beside it."""
    _scene.reset()
    _scene.settle()
    _scene.forget()
    return _scene


@pytest.fixture(scope="session")
def run_to_end(tmp_path_factory):
    """Return a function that runs a simulator for `duration` [s] with a robot's controller, and returns its bag."""

    def run(controller, duration, timeout=60.0, robot="leg", **parameters):
        folder = tmp_path_factory.mktemp("run")
        domain = free_domain()
        words = arguments(
            CONFIG.with_name(f"{robot}.yaml"),
            record=folder / "bag",
            duration=duration,
            wait_for_first_command=controller != "none",
            **parameters,
        )
        processes = [Process(folder, domain, "simulator", *words)]
        try:
            if controller != "none":
                processes.append(
                    Process(folder, domain, f"{robot}_controller", "--ros-args", "-p", f"mode:={controller}")
                )
            code = processes[0].wait(timeout)
            assert code == 0, processes[0].stderr
        finally:
            for process in processes:
                process.stop()
        return Bag(folder / "bag")

    return run


@pytest.fixture(scope="session")
def dropped(run_to_end):
    """The bag of 0.4 s of the leg without a controller, mode fast."""
    return run_to_end("none", 0.4, clock_mode="fast")


@pytest.fixture(scope="session")
def standing(at_work):
    """The bag of 1 s of the leg that is dropped and caught by the standing controller, in lockstep."""
    return at_work("leg", "stand")


@pytest.fixture(scope="session")
def at_work(run_to_end):
    """Return a function that returns the bag of 1 s of a robot and its controller in a mode, in lockstep, made once."""
    return cache(lambda robot, mode: run_to_end(mode, 1.0, robot=robot, clock_mode="lockstep", timeout=200.0))


@pytest.fixture(scope="session")
def hopping(run_to_end):
    """The bag of 4 s of the hopping leg, in lockstep."""
    return run_to_end("hop", 4.0, clock_mode="lockstep")


@pytest.fixture(scope="session")
def hopping_in_real_time(run_to_end):
    """The bag of 4 s of the hopping leg, on the wall clock: a quarter as fast, so that a busy machine keeps up."""
    return run_to_end("hop", 4.0, clock_mode="realtime", real_time_factor=0.25)
