"""Everything the node publishes: each message is serialised once, for DDS and for the recorder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

from constrained_sim import msg
from constrained_sim.dynamics import potential_energy
from constrained_sim.ros.conversions import JointNames, StateMessages, impact_message, to_time
from constrained_sim.ros.padding import padding_of, zero_padding
from constrained_sim.ros.recorder import Recorder
from constrained_sim.ros.world import Period, Residuals, World
from constrained_sim.validation import Array

RELIABLE = QoSProfile(depth=100, reliability=ReliabilityPolicy.RELIABLE)
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class _Topic:
    """A publisher that also records."""

    def __init__(self, node: Node, kind: type, name: str, qos: QoSProfile, recorder: Recorder | None) -> None:
        self.publisher = node.create_publisher(kind, name, qos)
        self._type = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
        self._recorder = recorder

        self._name = self.publisher.topic_name
        self._layout: tuple[int, int] | None = None
        self._padding: list[slice] = []

    def send(self, message: Any, stamp: int, layout: int | None = None) -> bytes:
        """Publish and record `message`; one of the same `layout` and size has its padding where the last one had."""
        data = serialize_message(message)
        if layout is None or self._layout != (layout, len(data)):
            self._layout = None if layout is None else (layout, len(data))
            self._padding = padding_of(message)
        data = zero_padding(data, self._padding)
        self.publisher.publish(data)
        if self._recorder is not None:
            self._recorder.write(self._name, self._type, stamp, data)
        return data


class Outputs:
    """The publishers of the node.

    Attributes:
        commands_dropped: commands whose stamp belonged to another state.
        commands_refused: commands with something wrong in them.
        late_periods: periods that ended after their wall-clock deadline.
        recorder: None if nothing is recorded.
    """

    def __init__(self, node: Node, world: World, joints: JointNames) -> None:
        """Create the publishers, and the recorder where one is configured.

        Raises:
            ConfigError: the directory of the recording cannot be made.
        """
        options = world.config.node
        self._world = world
        self.recorder = Recorder(Path(options.record), options.clock_mode != "realtime") if options.record else None
        self.commands_dropped = self.commands_refused = self.late_periods = 0
        self._clock = _Topic(node, Clock, "/clock", RELIABLE, self.recorder)
        self._states = _Topic(node, JointState, "joint_states", RELIABLE, self.recorder)
        self._forces = _Topic(node, msg.ContactForces, "contact_forces", RELIABLE, self.recorder)
        self._impacts = _Topic(node, msg.Impact, "impacts", RELIABLE, self.recorder)
        self._status = _Topic(node, msg.SimulationStatus, "~/status", RELIABLE, self.recorder)
        self._description = _Topic(node, String, "robot_description", LATCHED, self.recorder)
        self._messages = StateMessages(joints, options.world_frame, world.period_ns, options.frame_prefix)
        self._last_state = b""

    @property
    def state_subscribers(self) -> int:
        """Number of subscriptions to joint_states."""
        return self._states.publisher.get_subscription_count()

    def start(self) -> None:
        """Publish what precedes the first period: the clock, the description, the initial state."""
        self._messages.stamp(self._world.stamp)
        self._send_clock()
        if self._world.config.robot.urdf:
            self._description.send(String(data=self._world.config.robot.urdf), self._world.stamp)
        self.send_present_state()

    def send_present_state(self) -> None:
        """Publish the state as it is between periods: at the start and after a reset; nothing has acted yet."""
        state = self._world.sim.state
        self._send_state(state.q, state.v, 0.0 * self._world.tau)
        self._send_clock()

    def repeat_state(self) -> None:
        """Publish the last state again, for subscribers that came late; it is not recorded twice."""
        self._states.publisher.publish(self._last_state)

    def send_period(self, period: Period) -> None:
        """Publish the results of a control period; the clock comes last."""
        result = period.result
        self._send_state(result.state.q, result.state.v, result.tau_applied)
        forces = self._messages.forces(period.contacts, period.mean_forces)
        self._forces.send(forces, period.stamp, self._messages.layout)
        for stamp, impact in period.impacts:
            options = self._world.config.node
            header = Header(stamp=to_time(stamp), frame_id=options.world_frame)
            self._impacts.send(impact_message(header, impact, self._world.config.robot, options.frame_prefix), stamp)
        self._send_clock()

    def send_status(self, state: int, text: str, real_time_factor: float) -> None:
        """Publish the status; residuals start anew."""
        world, sim = self._world, self._world.sim
        rows, rank = sim.active_rows()
        position_error, velocity_error = sim.largest_violation()
        contact = world.last.outcome.motion.contact if world.last is not None else None
        terms = sim.energy
        status = msg.SimulationStatus(
            header=self._header(),
            state=state,
            message=text,
            step=sim.steps,
            time=sim.steps * sim.dt,
            dt=sim.dt,
            real_time_factor=real_time_factor,
            clock_mode=world.config.node.clock_mode,
            solver=sim.solver.name,
            stepper=sim.stepper_name,
            integrator=sim.integrator_name,
            contact_method=contact.method if contact is not None else sim.contact_method,
            contact_iterations=contact.iterations if contact is not None else 0,
            rows=rows,
            rank=rank,
            dynamics_residual=world.residuals.dynamics,
            constraint_residual=world.residuals.constraint,
            complementarity_residual=world.residuals.complementarity,
            position_error=position_error,
            velocity_error=velocity_error,
            kinetic_energy=sim.kinetic_energy(),
            potential_energy=potential_energy(sim.robot, sim.state.q),
            work_actuators=terms.actuators,
            work_external=terms.external,
            work_contacts=terms.contacts,
            work_constraints=terms.constraints,
            work_damping=terms.damping,
            impact_losses=terms.impact_losses,
            projection_energy=terms.projection,
            integration_energy=sim.integration_energy(),
            energy_residual=terms.residual,
            late_periods=self.late_periods,
            commands_dropped=self.commands_dropped,
            commands_refused=self.commands_refused,
            records_lost=self.recorder.lost if self.recorder is not None else 0,
        )
        world.residuals = Residuals()
        self._status.send(status, world.stamp)

    def close(self) -> None:
        """Finish the recording."""
        if self.recorder is not None:
            self.recorder.close()

    def _send_state(self, q: Array, v: Array, tau: Array) -> None:
        self._messages.stamp(self._world.stamp)
        self._last_state = self._states.send(self._messages.state(q, v, tau), self._world.stamp, layout=0)

    def _send_clock(self) -> None:
        """Publish the clock, which ends a period: what was published since the last one goes to the recorder."""
        self._clock.send(self._messages.clock, self._world.stamp, layout=0)
        if self.recorder is not None:
            self.recorder.flush()

    def _header(self) -> Header:
        return Header(stamp=to_time(self._world.stamp), frame_id=self._world.config.node.world_frame)
