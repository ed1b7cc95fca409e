"""The node `constrained_sim`: one world, one robot, one thread."""

from __future__ import annotations

import gc
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.exceptions import InvalidParameterException, InvalidParameterValueException
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter

from constrained_sim.compilation.background import BACKGROUND
from constrained_sim.compilation.progress import PROGRESS
from constrained_sim.config import Config, read_config
from constrained_sim.exceptions import ConfigError, ConstrainedSimError, SimulationFailed, UnknownName, listed
from constrained_sim.linalg.blas_threads import single_threaded_blas
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.options import CHANGEABLE, configured_solver
from constrained_sim.precompile import load_kernels
from constrained_sim.ros import simulation_interfaces
from constrained_sim.ros.callbacks import SERVICE_PERIOD
from constrained_sim.ros.clock_owner import CLOCK, ClockOwner
from constrained_sim.ros.commands import Commands
from constrained_sim.ros.control import Control
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.given_parameters import check_overrides, check_parameter_files
from constrained_sim.ros.group_parameters import describe_groups
from constrained_sim.ros.lateness import Lateness
from constrained_sim.ros.message_types import TRANSFORMS
from constrained_sim.ros.namesakes import Namesakes
from constrained_sim.ros.node_topics import NodeTopics
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.pace import make_pace
from constrained_sim.ros.parameter_services import answer_every_request
from constrained_sim.ros.parameters import (
    check_group_names,
    check_types,
    declare_options,
    let_parameters_change,
    nested_parameters,
    of_wanted_type,
)
from constrained_sim.ros.process import COMPILING, LateCompilation, begin, finish, leave, on_end
from constrained_sim.ros.recorded_setup import describe
from constrained_sim.ros.recorder import Recorder, make_recorder
from constrained_sim.ros.requests import Requests
from constrained_sim.ros.services import Services
from constrained_sim.ros.simulation_interfaces import SimulationInterfaces
from constrained_sim.ros.topic_choice import TopicChoice
from constrained_sim.ros.transitions import refuse_other_transitions
from constrained_sim.ros.undo import destroyer_of_news
from constrained_sim.ros.usage import check_command_line, simulator_parameters
from constrained_sim.ros.world import World

EXPECTED = ConstrainedSimError, InvalidParameterException, InvalidParameterValueException
"""What is raised of a configuration that is refused; the text says what was given and what is allowed."""


class SimulationNode(LifecycleNode):
    """Simulates a robot under joint efforts and publishes its state and its contact forces.

    A managed node: *configure* reads the parameters and sets the world up, *activate* lets its time go on, *deactivate*
    stops it. With the parameter ``autostart`` it does the first two by itself.

    Parameters: those of :class:`~constrained_sim.config.SimulationOptions` and
    :class:`~constrained_sim.config.NodeOptions`, and the groups ``robot``, ``initial``, ``contacts``,
    ``constraints``, ``objects`` and ``sensors`` of the configuration; config/leg.yaml explains each.

    Subscribes: joint_commands (sensor_msgs/JointState), ~/commands (std_msgs/Float64MultiArray), ~/external_wrench
    (geometry_msgs/WrenchStamped).

    Publishes: joint_states (sensor_msgs/JointState), multi_dof_joint_states (sensor_msgs/MultiDOFJointState), odom
    (nav_msgs/Odometry), contact_forces (ContactForces), constraint_forces (ConstraintForces), impacts (Impact),
    contact_wrenches/NAME (geometry_msgs/WrenchStamped, on request), object_states (ObjectStates), object_descriptions
    (ObjectDescriptions, latched), NAME/imu (sensor_msgs/Imu), NAME/wrench (geometry_msgs/WrenchStamped) and the like of
    the configured sensors, contact_markers (visualization_msgs/MarkerArray), ~/sampled/NAME (copies of states and
    forces, at most 30 a second), ~/status (SimulationStatus), robot_description (std_msgs/String, latched), /clock
    (rosgraph_msgs/Clock), /tf and /tf_static (tf2_msgs/TFMessage, where installed), /diagnostics
    (diagnostic_msgs/DiagnosticArray).

    Services: ~/add_contact, ~/remove_contact, ~/list_contacts, ~/add_constraint, ~/remove_constraint,
    ~/list_constraints, ~/spawn_object, ~/delete_object, ~/set_object_state, ~/apply_wrench, ~/set_solver, ~/pause,
    ~/step, ~/reset; where the package simulation_interfaces is installed, those of
    :class:`~constrained_sim.ros.simulation_interfaces.SimulationInterfaces`.
    """

    def __init__(self) -> None:
        """Take the parameters; :meth:`start` and :meth:`run` do the rest."""
        super().__init__(
            "constrained_sim", automatically_declare_parameters_from_overrides=True, allow_undeclared_parameters=True
        )
        BACKGROUND.compile_here()  # replays compare the bits of all that it computes
        let_parameters_change(self)
        answer_every_request(self)
        refuse_other_transitions(self)
        self._began, self._is_loading, self._is_ended = time.monotonic(), False, False
        self._control: Control | None = None
        self._recorder: Recorder | None = None
        self._problem: Exception | None = None

    def declare_parameters(
        self, namespace: str, parameters: list[Any], ignore_override: bool = False
    ) -> list[Parameter]:
        """Declare parameters; one of a file or the command line that rclpy has no value of is an empty list.

        Such a list has no type in ROS, and rclpy declares nothing without a type.
        """
        typed = [(name, [] if not rest or rest[0] is None else rest[0], *rest[1:]) for name, *rest in parameters]
        return list(super().declare_parameters(namespace, typed, ignore_override))

    def get_parameter_type(self, name: str) -> int:
        """Return the type of the parameter `name`: a number, as it is in messages, of one that is not declared too.

        rclpy returns no number for those, which its service of types cannot send.
        """
        kind = super().get_parameter_type(name)
        return int(getattr(kind, "value", kind))

    # -- transitions

    def start(self) -> None:
        """Configure and activate, unless ``autostart`` says that somebody else does.

        Raises:
            ConstrainedSimError: the configuration is refused.
        """
        autostart = self.get_parameter_or("autostart", Parameter("autostart", value=True)).value
        if autostart is False:
            return
        if self.trigger_configure() != TransitionCallbackReturn.SUCCESS and self._problem is not None:
            raise self._problem
        self.trigger_activate()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters and set everything up; a refusal leaves the node as it was, for another attempt."""
        try:
            self._set_up()
        except Exception as error:
            self._problem = error
            if self.get_parameter_or("autostart", Parameter("autostart", value=True)).value is False:
                self.get_logger().error(str(error) if isinstance(error, EXPECTED) else traceback.format_exc())
            return TransitionCallbackReturn.FAILURE
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let time go on, unless ``~/pause`` says otherwise."""
        return self._activate(True)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Let time stand still at the next period boundary; services are answered meanwhile."""
        return self._activate(False)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Refuse: what a simulation has published and recorded cannot be taken back."""
        self.get_logger().error("cleanup: got a configured simulation, allowed: to shut it down, and to start another")
        return TransitionCallbackReturn.FAILURE

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End the process, with a complete bag."""
        self.stop()
        return TransitionCallbackReturn.SUCCESS

    def _activate(self, on: bool) -> TransitionCallbackReturn:
        if self._control is not None:
            self._control.activate(on)
        return TransitionCallbackReturn.SUCCESS

    def _set_up(self) -> None:
        """Read the configuration and make what it says; a refusal leaves nothing behind.

        Raises:
            ConstrainedSimError: the configuration is refused.
        """
        parameters = nested_parameters(self)
        if "robot" not in parameters:
            raise ConfigError(
                f"the parameter `robot` is not set: give its file as --ros-args --params-file FILE, where /**: or "
                f"{self.get_fully_qualified_name()}: stands above ros__parameters"
            )
        check_group_names(self)
        config = read_config(parameters)
        world, joints = World(config), JointNames(config.robot, config.node.joints)
        with ExitStack() as undo:
            recorder = make_recorder(config.node)
            if recorder is not None:
                undo.callback(recorder.discard)
            undo.callback(destroyer_of_news(self))
            clock = ClockOwner(self, config.node.publish_clock, self._began)
            chosen = TopicChoice(config.node.record_topics, self.get_namespace(), self.get_name())
            topics = NodeTopics(self, recorder, chosen, {CLOCK: clock.qos})
            outputs = Outputs(topics, world, joints, clock.publishes)
            topics.check_recorded()
            commands = Commands(self, world, joints, outputs)
            pace = make_pace(config.node, seconds_of(world.period_ns))
            watches = (
                Namesakes(self).look,
                Lateness(self, world, outputs).look,
                lambda: clock.look(outputs.leave_clock),
            )
            control = Control(self, world, outputs, commands, pace, watches)
            requests = Requests(world, outputs)
            self._fix_parameters(config)  # nothing is refused from here on
            self._offered = Services(self, world, control, requests, outputs)
            if simulation_interfaces.INSTALLED:
                SimulationInterfaces(self, world, control, requests, outputs)
            undo.pop_all()
        self._config, self._outputs, self._recorder, self._control = config, outputs, recorder, control
        self.add_pre_set_parameters_callback(self._complete_parameters)
        self.add_on_set_parameters_callback(self._set_parameters)

    def _fix_parameters(self, config: Config) -> None:
        """Declare all parameters as they are in effect; most cannot be changed any more."""
        for line in config.robot.ignored:
            self.get_logger().info(line)
        declare_options(self)
        describe_groups(self)
        in_effect = getattr(config.simulation.make_solver(), "factorization", "")
        self.set_parameters([Parameter("factorization", value=in_effect)])

    def run(self) -> int:
        """Simulate until the node is shut down or its configured duration is over; return an exit code.

        Raises:
            SimulationFailed: a node with a duration waited for commands in vain, or froze.
        """
        single_threaded_blas()  # for good: the process is the node's
        control = self._configured()
        if control is None:
            return 0
        try:
            self._outputs.start(describe(nested_parameters(self), self._config, self.get_namespace()))
            self._load_kernels()
            self._say_what_runs()
            gc.freeze()  # what is there by now stays: a collection that looked at all of it would hold up a period
            with PROGRESS.told_to(LateCompilation(self.get_logger().warning)):
                control.run()
            if control.failure:
                raise SimulationFailed(control.failure)
        finally:
            code = self._finish_recording()
        return code

    def stop(self) -> None:
        """End :meth:`run` at the next period boundary, and the process, with a complete bag, while kernels load."""
        self._is_ended = True
        if self._control is not None:
            self._control.stop()
        if self._is_loading:
            self._is_loading = False
            code = self._finish_recording()
            self.destroy_node()
            leave(code)

    def destroy_node(self) -> None:
        """Destroy the node and its state machine, which rclpy leaves alive: the node would keep its name in /rosout."""
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def _configured(self) -> Control | None:
        """Wait until the node is configured; return what runs the world, None where it is shut down before."""
        executor = SingleThreadedExecutor(context=self.context)
        while self._control is None and not self._is_ended:
            executor.add_node(self)  # in each turn: what fails in a configuration may have taken the node away
            executor.spin_once(timeout_sec=SERVICE_PERIOD)
        if self._control is not None and self._is_ended:
            self._control.stop()  # told so during the configuration
        return self._control

    def _finish_recording(self) -> int:
        """Complete the bag; return 0, or 1 where messages are missing in it, and say so."""
        if self._recorder is None:
            return 0
        self._recorder.close()
        if self._recorder.problem:
            self.get_logger().error(f"{self._recorder.problem} ({self._recorder.lost} messages lost)")
            return 1
        self.get_logger().info(f"recorded to {str(self._recorder.directory.absolute())!r}")
        return 0

    def _load_kernels(self) -> None:
        """Load the kernels; say so where they have to be compiled."""
        if self._is_ended:
            return
        self._is_loading = True
        try:
            with PROGRESS.told_to(self._tell_of_compilation):
                load_kernels(self._config.simulation.stepper, self._config.simulation.solver)
        finally:
            self._is_loading = False

    def _say_what_runs(self) -> None:
        """Log one line, so that whoever started the node sees that it came up, and what it waits for."""
        config = self._config
        waits = [
            *(["a controller's answers"] if config.node.clock_mode == "lockstep" else []),
            *(["the first command"] if config.node.wait_for_first_command else []),
            *([f"node {config.node.wait_for_subscriber}"] if config.node.wait_for_subscriber else []),
            *(["~/pause or ~/step"] if config.node.start_paused else []),
        ]
        until = f"; waits for {', '.join(waits)}" if waits else ""
        self.get_logger().info(
            f"simulating {config.robot.model.name} in {config.node.clock_mode}, dt {config.simulation.dt:g} s, "
            f"actuated: {listed(config.robot.actuated_joints)}{until}"
        )
        if config.node.tf != "none" and TRANSFORMS.published is None:
            self.get_logger().info("tf2_msgs is not installed: nothing is published on /tf, recordings have it")

    def _tell_of_compilation(self, done: int, total: int, name: str) -> None:
        self.get_logger().info(COMPILING, once=True)

    def _complete_parameters(self, parameters: list[Parameter]) -> list[Parameter]:
        """Say which factorization an empty one, or a change of solver without one, means; 1 means 1.0 where wanted."""
        parameters = [of_wanted_type(parameter) for parameter in parameters]
        values = {parameter.name: parameter.value for parameter in parameters}
        if not (values.keys() & {"solver", "factorization"} and values.get("factorization", "") == ""):
            return parameters
        try:
            solver = configured_solver(values.get("solver", self.get_parameter("solver").value))
        except ConstrainedSimError:
            return parameters  # to be refused as it is
        others = [parameter for parameter in parameters if parameter.name != "factorization"]
        return [*others, Parameter("factorization", value=getattr(solver, "factorization", ""))]

    def _set_parameters(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        values = {parameter.name: parameter.value for parameter in parameters if parameter.name in CHANGEABLE}
        fixed = [parameter.name for parameter in parameters if parameter.name not in (*CHANGEABLE, "use_sim_time")]
        deleted = [parameter.name for parameter in parameters if parameter.type_ == Parameter.Type.NOT_SET]
        try:
            if deleted:
                raise ConfigError(f"{', '.join(deleted)}: cannot be deleted, allowed: another value")
            if unknown := [name for name in fixed if not self.has_parameter(name)]:
                raise UnknownName("parameter", ", ".join(unknown), CHANGEABLE)
            if fixed:
                raise ConfigError(
                    f"{', '.join(fixed)}: cannot be changed while the node runs, allowed: {', '.join(CHANGEABLE)}"
                )
            check_types(values)
            if values:
                self._offered.change_options(values)
        except ConstrainedSimError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; return 0, or 1 with one clear line where it cannot start, or where its recording is not whole."""
    arguments = list(sys.argv if args is None else args)
    check_command_line(
        arguments,
        "simulator",
        "Simulates a robot under joint efforts and publishes its state and its contact forces.",
        "examples:\n  simulator --ros-args --params-file robot.yaml\n"
        "  simulator --ros-args --params-file robot.yaml -p clock_mode:=lockstep -p record:=/tmp/bag",
        simulator_parameters(),
    )
    try:
        check_parameter_files(arguments)
        begin(arguments)
        node = SimulationNode()
        warnings.showwarning = lambda message, *_: node.get_logger().warning(str(message))  # the process is the node's
        try:
            check_overrides(arguments, node)
            node.start()
        except EXPECTED:
            node.destroy_node()
            raise
        on_end(node.stop)
        return node.run()
    except EXPECTED as error:
        print(f"constrained_sim: {error}", file=sys.stderr)
        return 1
    finally:
        finish()
