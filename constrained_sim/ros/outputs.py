"""Everything the node publishes, in the order in which a period publishes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Header, String
from visualization_msgs.msg import MarkerArray

from constrained_sim import msg
from constrained_sim.dynamics import potential_energy
from constrained_sim.impact import Impact
from constrained_sim.ros.contact_wrenches import ContactWrenches
from constrained_sim.ros.conversions import JointNames, to_time
from constrained_sim.ros.period_messages import PeriodMessages, TFMessage, impact_message
from constrained_sim.ros.sensors import SensorTopics
from constrained_sim.ros.topics import LATCHED, Topics
from constrained_sim.ros.world import LAST_STAMP, Period, Residuals, World
from constrained_sim.validation import Array


class Outputs:
    """The topics of a simulation.

    Attributes:
        commands_dropped: commands whose stamp belonged to another state.
        commands_refused: commands and wrenches with something wrong in them.
        late_periods: periods that ended after their wall-clock deadline.
        publications: how often the last state was published.
    """

    def __init__(self, topics: Topics, world: World, joints: JointNames) -> None:
        """Open the topics."""
        options, robot = world.config.node, world.config.robot
        self._topics, self._world, self._joints, self._options = topics, world, joints, options
        self.restart_counters()
        self._clock = topics.open(Clock, "/clock")
        self._states = topics.open(JointState, "joint_states")
        self._forces = topics.open(msg.ContactForces, "contact_forces")
        self._constraint_forces = topics.open(msg.ConstraintForces, "constraint_forces")
        self._impacts = topics.open(msg.Impact, "impacts")
        self._markers = topics.open(MarkerArray, "contact_markers")
        self._status = topics.open(msg.SimulationStatus, "~/status")
        self._diagnostics = topics.open(DiagnosticArray, "/diagnostics")
        self._description = topics.open(String, "robot_description", LATCHED)
        self._messages = PeriodMessages(robot, joints, options.world_frame, world.period_ns, options.frame_prefix)
        self._odometry = topics.open(Odometry, "odom") if robot.floating_base else None
        self._transforms = topics.open(TFMessage, "/tf") if robot.floating_base and TFMessage is not None else None
        several = self._messages.has_multi_dof_joints
        self._multi_dof = topics.open(MultiDOFJointState, "multi_dof_joint_states") if several else None
        self._sensors = SensorTopics(topics, world.config)
        self._wrenches = ContactWrenches(topics, options.contact_wrenches)
        self.follow_contacts()
        self._input = msg.Input(header=Header(frame_id=options.world_frame))
        self._next_markers = 0
        self.publications = 1

    def restart_counters(self) -> None:
        """Count anew after a reset."""
        self.commands_dropped = self.commands_refused = self.late_periods = 0
        self._lost_before = self._topics.lost

    @property
    def state_subscribers(self) -> int:
        """Number of subscriptions to joint_states."""
        return len(self._states.subscriber_names)

    def check_contact(self, name: str) -> None:
        """Check the name of a contact that is to be added.

        Raises:
            InvalidValue: it cannot be a topic, or is the topic of another one.
        """
        self._wrenches.check(name, self._world.contacts)

    def follow_contacts(self) -> None:
        """Open the topics of contacts that were declared, close those of contacts that were removed.

        Raises:
            InvalidValue: a name that :meth:`check_contact` refuses.
        """
        self._wrenches.follow(self._world.contacts)

    def start(self, configuration: Mapping[str, Any]) -> None:
        """Publish what precedes the first period: the clock, the description, the initial state.

        Args:
            configuration: to be recorded, for a replay.
        """
        self._messages.stamp(self._world.stamp)
        self._send_clock()
        self.record_input("configuration", configuration)
        if self._world.config.robot.urdf:
            self._description.send(String(data=self._world.config.robot.urdf), self._world.stamp)
        self.send_present_state()

    def send_present_state(self) -> None:
        """Publish the state as it is between periods: at the start and after a reset; nothing has acted yet."""
        self._joints.forget()
        self._sensors.restart()
        self._next_markers = 0
        state = self._world.sim.state
        self._send_state(state.q, state.v, 0.0 * self._world.tau)
        self._send_clock()

    def repeat_state(self) -> None:
        """Publish the last state again, for subscribers that came late; it is not recorded twice."""
        self.publications += 1
        self._states.repeat()
        if self._odometry is not None:
            self._odometry.repeat()

    def greet_newcomers(self) -> None:
        """Publish the last state again if somebody has begun to listen to it since the last look."""
        if self._states.has_newcomers or (self._odometry is not None and self._odometry.has_newcomers):
            self.repeat_state()

    def send_period(self, period: Period) -> None:
        """Publish the results of a control period; the clock comes last."""
        result = period.result
        self._send_state(result.state.q, result.state.v, result.tau_applied, period.length)
        if self._forces.is_wanted:
            forces = self._messages.forces(period.contacts, period.mean_forces, period.mean_moments)
            self._forces.send_bytes(forces, period.stamp)
        if self._constraint_forces.is_wanted and period.constraints is not None:
            self._constraint_forces.send(
                self._messages.constraint_forces(period.constraints, period.mean_constraint_forces), period.stamp
            )
        if self._options.contact_wrenches:
            self._send_wrenches(period)
        self.send_impacts(period.impacts)
        if self._options.marker_rate and period.stamp >= self._next_markers and self._markers.is_wanted:
            self._send_markers(period)
        self._sensors.send(period)
        self._send_clock()

    def flush(self) -> None:
        """Let what was published be recorded: between periods, however long they are."""
        self._topics.flush()

    def recorder_has_room(self, timeout: float) -> bool:
        """Return whether the simulation may go on; where the recorder holds it up, wait up to `timeout` [s]."""
        return self._topics.has_room(timeout)

    @property
    def recording_problem(self) -> str:
        """What keeps messages from being recorded; empty: nothing does."""
        return self._topics.problem

    def send_impacts(self, impacts: tuple[tuple[int, Impact], ...]) -> None:
        """Publish impacts with their stamps [ns]."""
        for stamp, impact in impacts:
            header = Header(stamp=to_time(stamp), frame_id=self._options.world_frame)
            message = impact_message(header, impact, self._world.config.robot, self._options.frame_prefix)
            self._impacts.send(message, stamp)

    @property
    def boundary(self) -> tuple[int, int]:
        """Stamp [ns] and number of physics steps since reset, now."""
        return self._world.stamp, self._world.sim.steps

    def record_input(
        self, name: str, content: Mapping[Any, Any] | str, boundary: tuple[int, int] | None = None
    ) -> None:
        """Record something that takes effect at `boundary`, None: now.

        Args:
            name: of the input.
            content: JSON, or values by name.
            boundary: see :attr:`boundary`.
        """
        if not self._topics.records:
            return
        stamp, step = boundary or self.boundary
        message = self._input  # one for all: to make a message takes as long as to write it
        message.header.stamp = to_time(stamp)
        message.step, message.name = step, name
        message.content = content if isinstance(content, str) else json.dumps(content)
        self._topics.record(msg.Input, "~/inputs", message, stamp)

    def send_status(self, state: int, text: str, real_time_factor: float) -> None:
        """Publish the status; residuals start anew."""
        world, sim = self._world, self._world.sim
        rows, rank = sim.active_rows()
        position_error, velocity_error = sim.largest_violation()
        residuals = world.residuals
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
            clock_mode=self._options.clock_mode,
            solver=sim.solver.name,
            stepper=sim.stepper_name,
            integrator=sim.integrator_name,
            contact_method=contact.method if contact is not None else sim.contact_method,
            contact_iterations=contact.iterations if contact is not None else 0,
            rows=rows,
            rank=rank,
            dynamics_residual=residuals.dynamics,
            constraint_residual=residuals.constraint,
            complementarity_residual=residuals.complementarity,
            position_error=max(position_error, residuals.position),
            velocity_error=max(velocity_error, residuals.velocity),
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
            records_lost=self._topics.lost - self._lost_before,
            early_impacts=sim.early_impacts,
            actuated_joints=self._joints.actuated,
        )
        world.residuals = Residuals()
        self._status.send(status, world.stamp)

    def send_diagnostics(self, state: int, text: str, real_time_factor: float, warning: str = "") -> None:
        """Publish how the simulation is doing, for the ROS diagnostics tools; a `warning` comes first."""
        world, states = self._world, msg.SimulationStatus
        problem, lost = self.recording_problem, self._topics.lost - self._lost_before
        unhappy = state == states.WAITING or world.command_is_overdue or bool(problem or warning)
        level = DiagnosticStatus.WARN if unhappy else DiagnosticStatus.OK
        values = {
            "step": world.sim.steps,
            "simulated time [s]": world.sim.steps * world.sim.dt,
            "real-time factor": real_time_factor,
            "late periods": self.late_periods,
            "commands dropped": self.commands_dropped,
            "commands refused": self.commands_refused,
            "records lost": lost,
        }
        status = DiagnosticStatus(
            level=DiagnosticStatus.ERROR if state == states.FROZEN or lost else level,
            name="constrained_sim: simulation",
            message="; ".join(filter(None, [problem, warning, text])) or "running",
            hardware_id=world.config.robot.model.name,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        self._diagnostics.send(DiagnosticArray(header=self._header(), status=[status]), world.stamp)

    def is_heard_by(self, node_name: str) -> bool:
        """Return whether the node `node_name` subscribes to contact_forces, so that it will miss nothing."""
        return self._forces.is_connected_to(node_name)

    def _send_state(self, q: Array, v: Array, tau: Array, length: int | None = None) -> None:
        stamp, self.publications = self._world.stamp, 1
        self._messages.stamp(stamp, length)
        self._states.send_bytes(self._messages.state(q, v, tau), stamp)
        if self._odometry is not None:
            self._odometry.send_bytes(self._messages.odometry(q, v), stamp)
        if self._transforms is not None and self._transforms.is_wanted:
            self._transforms.send_bytes(self._messages.transform(q), stamp)
        if self._multi_dof is not None and self._multi_dof.is_wanted:
            self._multi_dof.send_bytes(self._messages.multi_dof(q, v, tau), stamp)

    def _send_wrenches(self, period: Period) -> None:
        wrenches = self._messages.contact_wrenches(
            period.result.state.q, period.contacts, period.mean_forces, period.mean_moments
        )
        self._wrenches.send(wrenches, period.stamp)

    def _send_markers(self, period: Period) -> None:
        """Publish markers, when their time has come."""
        self._next_markers = period.stamp + round(min(1e9 / self._options.marker_rate, LAST_STAMP))
        markers = self._messages.markers(period.contacts, period.mean_forces, self._options.marker_scale)
        self._markers.send(markers, period.stamp)

    def _send_clock(self) -> None:
        """Publish the clock, which ends a period."""
        self._clock.send_bytes(self._messages.clock(), self._world.stamp)

    def _header(self) -> Header:
        return Header(stamp=to_time(self._world.stamp), frame_id=self._options.world_frame)
