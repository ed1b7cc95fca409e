"""A running node as a source of the viewer; it uses only topics and services."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Wrench
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import GetParameters, ListParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_srvs.srv import SetBool

from constrained_sim import msg, srv
from constrained_sim.config import read_config
from constrained_sim.exceptions import ConstrainedSimError, NoAnswer
from constrained_sim.nanoseconds import NANOSECONDS, seconds_of
from constrained_sim.ros.callbacks import Callbacks
from constrained_sim.ros.conversions import to_duration, to_nanoseconds, vector
from constrained_sim.ros.inbox import Inbox
from constrained_sim.ros.message_types import type_name
from constrained_sim.ros.parameters import nested_values
from constrained_sim.ros.sampled_topics import SAMPLED
from constrained_sim.ros.topics import LATCHED
from constrained_sim.validation import Array
from constrained_sim.viewer import message_frames as messages
from constrained_sim.viewer.frame import Frame, ShownImpact
from constrained_sim.viewer.live_panel import LiveSource
from constrained_sim.viewer.source import World

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Pictures need the newest message only, and the simulation waits for no acknowledgement."""

IMPACTS = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)

PATIENCE = 5.0
"""[s] How long a service may take."""

TOPICS: dict[str, type] = {
    "joint_states": JointState,
    "odom": Odometry,
    "multi_dof_joint_states": MultiDOFJointState,
    "contact_forces": msg.ContactForces,
    "constraint_forces": msg.ConstraintForces,
    "object_states": msg.ObjectStates,
}


class NodeSource(LiveSource):
    """Shows the simulation of a node.

    Messages are looked at when a picture is due, not when they come: most are never read. All of ROS happens in the
    thread that calls :meth:`frame`; the page's own threads hand in what users ask for, and wait.
    """

    def __init__(self, node: Node, simulator: str = "constrained_sim") -> None:
        """Subscribe as `node`, and ask the node `simulator` for its configuration.

        Raises:
            NoAnswer: there is no such node.
            ConstrainedSimError: its configuration cannot be read here.
        """
        self._node, self._simulator = node, simulator
        self._clients: dict[str, Any] = {}
        self._newest: dict[str, Any] = {}
        self._has_news = False
        self._impacts: deque[ShownImpact] = deque(maxlen=50)
        self._asked: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._inbox = Inbox(node)
        for topic, kind in TOPICS.items():
            self._inbox.subscribe(kind, SAMPLED.replace("~", simulator) + topic, self._keep, NEWEST)
        self._inbox.subscribe(msg.SimulationStatus, f"{simulator}/status", self._keep, NEWEST)
        self._inbox.subscribe(msg.ObjectDescriptions, "object_descriptions", self._keep, LATCHED)
        self._inbox.subscribe(msg.Impact, "impacts", self._keep_impact, IMPACTS)
        self._callbacks = Callbacks(node, self._inbox.subscriptions)
        self._commands = node.create_publisher(JointState, "joint_commands", 10)
        config = read_config(self._parameters())
        self.world, self.speed = World.configured(config), config.node.real_time_factor
        self._configured = config.simulation
        self._frames = messages.MessageFrames(self.world.robot, config.robot.objects)
        self._frame: Frame | None = None

    def frame(self) -> Frame | None:
        """Return the newest state, and do what users have asked for meanwhile."""
        while not self._asked.empty():
            act, done = self._asked.get()
            try:
                done.set_result(act())
            except ConstrainedSimError as error:
                done.set_exception(error)
        self._inbox.take_all()
        if self._has_news and messages.STATES in self._newest:
            self._frame, self._has_news = self._frame_of(self._newest[messages.STATES]), False
        return self._frame

    def _frame_of(self, state: JointState) -> Frame | None:
        return self._frames.frame(seconds_of(to_nanoseconds(state.header.stamp)), self._newest, self._impacts)

    @property
    def is_paused(self) -> bool:
        """Whether the last status said so."""
        status = self._newest.get(messages.STATUS)
        return status is not None and status.state == msg.SimulationStatus.PAUSED

    @property
    def methods(self) -> tuple[str, str]:
        """Names of the solver and the stepper, as the last status said."""
        told = self._newest.get(messages.STATUS, self._configured)
        return told.solver, told.stepper

    def pause(self, on: bool) -> None:
        """Pause the node, or let it go on."""
        self._request(SetBool, "pause", SetBool.Request(data=on))

    def step(self) -> None:
        """Simulate one control period."""
        self._request(srv.Step, "step", srv.Step.Request(periods=1))

    def reset(self) -> None:
        """Put the robot back to its initial state; time goes on, so that a recording can be read."""
        self._request(srv.Reset, "reset", srv.Reset.Request(keep_time=True))
        self._ask(self._forget_forces)

    def _forget_forces(self) -> None:
        """Forget forces and impacts of before a reset: there are none until the next step."""
        self._inbox.take_all()
        for forces in (messages.CONTACTS, messages.CONSTRAINTS):
            self._newest.pop(forces, None)
        self._impacts.clear()
        self._has_news = True

    def use(self, solver: str = "", stepper: str = "") -> None:
        """Use another solver or stepper from now on."""
        self._request(srv.SetSolver, "set_solver", srv.SetSolver.Request(solver=solver, stepper=stepper))

    def push(self, link: str, force: Array, seconds: float) -> None:
        """Let a force (3,) [N], world axes, act at the origin of `link`."""
        duration = to_duration(round(seconds * NANOSECONDS))
        wrench = Wrench(force=vector(force))
        request = srv.ApplyWrench.Request(link=link, point=Point(), wrench=wrench, duration=duration)
        self._request(srv.ApplyWrench, "apply_wrench", request)

    def set_effort(self, joint: str, effort: float) -> None:
        """Command the effort [N m, N] of a joint; a controller that commands it too overrules this."""
        message = JointState(name=[joint], effort=[float(effort)])
        state = self._newest.get(messages.STATES)
        message.header.stamp = Time() if state is None else state.header.stamp
        self._ask(lambda: self._commands.publish(message))

    def set_speed(self, factor: float) -> None:
        """Simulate this many seconds per second."""
        parameter = Parameter("real_time_factor", value=factor).to_parameter_msg()
        request = SetParametersAtomically.Request(parameters=[parameter])
        self._request(SetParametersAtomically, "set_parameters_atomically", request)
        self.speed = factor

    def _keep(self, message: Any) -> None:
        self._newest[type_name(type(message))] = message
        self._has_news = True

    def _keep_impact(self, message: msg.Impact) -> None:
        stamp = seconds_of(to_nanoseconds(message.header.stamp))
        self._impacts.append(messages.impact_of(message, stamp))

    def _parameters(self) -> dict[str, Any]:
        """Return the parameters of the simulator."""
        names = list(self._call(ListParameters, "list_parameters", ListParameters.Request()).result.names)
        values = self._call(GetParameters, "get_parameters", GetParameters.Request(names=names)).values
        pairs = zip(names, map(parameter_value_to_python, values), strict=True)
        return nested_values(Parameter(name, value=value) for name, value in pairs if value is not None)

    def _request(self, kind: Any, name: str, request: Any) -> None:
        """Let the thread of ROS call a service; a refusal is raised here."""
        answer = self._ask(lambda: self._call(kind, name, request))
        result = getattr(answer, "result", answer)
        if not getattr(result, "success", getattr(result, "successful", True)):
            raise ConstrainedSimError(getattr(result, "message", getattr(result, "reason", "")))

    def _ask(self, act: Callable[[], Any]) -> Any:
        """Let the thread of ROS do something, and wait for what comes of it."""
        done: Future[Any] = Future()
        self._asked.put((act, done))
        return done.result(timeout=2.0 * PATIENCE)

    def _call(self, kind: Any, name: str, request: Any) -> Any:
        """Call a service of the simulator, and wait for its answer.

        Raises:
            NoAnswer: none came.
        """
        if name not in self._clients:
            self._clients[name] = self._node.create_client(kind, f"{self._simulator}/{name}")
        if not self._clients[name].wait_for_service(PATIENCE):
            raise NoAnswer(f"the service {self._simulator}/{name} is not there: does the simulator run in this domain?")
        future = self._clients[name].call_async(request)
        self._callbacks.executor.spin_until_future_complete(future, PATIENCE)
        if not future.done():
            raise NoAnswer(f"the service {self._simulator}/{name} did not answer within {PATIENCE:g} s")
        return future.result()
