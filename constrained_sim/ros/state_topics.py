"""The topics that tell how things are at the end of a period: joints, base, transforms, forces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState, MultiDOFJointState
from visualization_msgs.msg import MarkerArray

from constrained_sim import msg
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.ros.cdr import serialise
from constrained_sim.ros.contact_messages import arrows, link_wrenches
from constrained_sim.ros.contact_wrenches import ContactWrenches
from constrained_sim.ros.object_topic import ObjectTopics
from constrained_sim.ros.period_messages import PeriodMessages
from constrained_sim.ros.sampled_topics import SampledTopics
from constrained_sim.ros.topics import Topics
from constrained_sim.ros.transform_topics import TransformTopics
from constrained_sim.ros.world import LAST_STAMP, Period, World
from constrained_sim.validation import Array


@dataclass(frozen=True, eq=False)
class Present:
    """What is true now.

    Attributes:
        q: (nq,) configuration.
        v: (nv,) velocity.
        tau: (nu,) efforts that were applied.
        period: that has just ended; None: nothing has acted yet.
    """

    q: Array
    v: Array
    tau: Array
    period: Period | None = None


class StateTopics:
    """Publishes what is true at the end of every period, and tells those again who begin to listen between two of them.

    Attributes:
        wrenches: those of single contacts.
        publications: how often the last state was published.
    """

    def __init__(self, topics: Topics, world: World, messages: PeriodMessages) -> None:
        """Open the topics."""
        options, robot = world.config.node, world.config.robot
        self._world, self._messages, self._options = world, messages, options
        self._states = topics.open(JointState, "joint_states")
        self._forces = topics.open(msg.ContactForces, "contact_forces")
        self._constraint_forces = topics.open(msg.ConstraintForces, "constraint_forces")
        self._markers = topics.open(MarkerArray, "contact_markers")
        self._odometry = topics.open(Odometry, "odom") if robot.floating_base else None
        self._transforms = TransformTopics(topics, robot, options)
        self._objects = ObjectTopics(topics, robot, options.world_frame)
        several = messages.has_multi_dof_joints
        self._multi_dof = topics.open(MultiDOFJointState, "multi_dof_joint_states") if several else None
        self._sampled = SampledTopics(topics, self._copied())
        self.wrenches = ContactWrenches(topics, options.contact_wrenches)
        self._next_markers, self.publications = 0, 1
        self._present = self._initial()

    def _copied(self) -> dict[str, tuple[type, Callable[[], bytes | None]]]:
        """Return the topics of which there are copies for those who look on, with their types and what makes them."""
        copied: dict[str, tuple[type, Callable[[], bytes | None]]] = {
            "contact_forces": (msg.ContactForces, self._contact_forces),
            "constraint_forces": (msg.ConstraintForces, self._all_constraint_forces),
            "joint_states": (JointState, self._joint_states),
        }
        if self._odometry is not None:
            copied["odom"] = Odometry, self._base
        if self._multi_dof is not None:
            copied["multi_dof_joint_states"] = MultiDOFJointState, self._multi_dof_joints
        copied["object_states"] = msg.ObjectStates, self._object_states
        return copied

    def _initial(self) -> Present:
        state = self._world.sim.state
        return Present(state.q, state.v, np.zeros(self._world.config.robot.nu))

    def follow_objects(self) -> None:
        """Publish from now on what is beside the robot now, and at once where it is."""
        robot, state, stamp = self._world.config.robot, self._world.sim.state, self._world.stamp
        self._present = replace(self._present, q=state.q, v=state.v)
        self._transforms.follow(robot)
        self._transforms.restart()
        self._transforms.start(state.q, stamp)
        self._transforms.send(state.q, stamp)
        self._objects.follow(robot)
        self._objects.describe(stamp)
        self._objects.send(state.q, state.v, stamp)
        self._sampled.send(stamp)

    # -- periods

    def start(self) -> None:
        """Publish what seldom changes, or never."""
        self._objects.describe(self._world.stamp)
        self._transforms.start(self._world.sim.state.q, self._world.stamp)

    def send_initial(self) -> None:
        """Publish the state as it is at the start and after a reset; nothing has acted yet."""
        self._next_markers = 0
        if self._objects.is_of_other_than(self._world.config.robot):
            self._transforms.follow(self._world.config.robot)
            self._transforms.start(self._world.sim.state.q, self._world.stamp)
            self._objects.follow(self._world.config.robot)
            self._objects.describe(self._world.stamp)
            if not self._objects.are_any:
                self._objects.send(self._world.sim.state.q, self._world.sim.state.v, self._world.stamp)
        self._transforms.restart()
        self._present = self._initial()
        self._send_state(None)
        self._sampled.send(self._world.stamp)

    def send_changed(self) -> None:
        """Publish the state of this moment again, which a request has moved; forces stay those of the last period."""
        state, times, period = self._world.sim.state, self.publications + 1, self._present.period
        self._transforms.restart()
        self._present = replace(self._present, q=state.q, v=state.v)
        self._send_state(period.length if period is not None else None)
        self._sampled.send(self._world.stamp)
        self.publications = times  # whoever has answered what was published before may answer this too

    def send_period(self, period: Period) -> None:
        """Publish the state and the forces of a control period, markers left out."""
        result = period.result
        self._present = Present(result.state.q, result.state.v, result.tau_applied, period)
        self._send_state(period.length)
        self._forces.offer(self._contact_forces, period.stamp)
        self._constraint_forces.offer(self._all_constraint_forces, period.stamp)
        if self._options.contact_wrenches:
            self.wrenches.send(self._wrenches_on_links(), period.stamp)
        self._sampled.send(period.stamp)

    def send_markers(self, period: Period) -> None:
        """Publish markers, when their time has come."""
        if self._options.marker_rate and period.stamp >= self._next_markers and self._markers.is_wanted:
            self._next_markers = period.stamp + round(min(NANOSECONDS / self._options.marker_rate, LAST_STAMP))
            self._markers.offer(self._arrows, period.stamp)

    def _send_state(self, length: int | None) -> None:
        stamp, present = self._world.stamp, self._present
        self.publications = 1
        self._messages.stamp(stamp, length)
        self._states.offer(self._joint_states, stamp)
        if self._odometry is not None:
            self._odometry.offer(self._base, stamp)
        self._transforms.send(present.q, stamp)
        if self._multi_dof is not None:
            self._multi_dof.offer(self._multi_dof_joints, stamp)
        if self._objects.are_any:
            self._objects.send(present.q, present.v, stamp)

    # -- between periods

    def repeat_state(self) -> None:
        """Publish the state of joints and base again, for controllers that came late; it is not recorded twice."""
        self.publications += 1
        self._states.repeat(self._joint_states())
        if self._odometry is not None:
            self._odometry.repeat(self._base())

    def greet(self) -> None:
        """Publish what is true again to those who have begun to listen."""
        news = [topic.has_newcomers for topic in (self._states, self._odometry) if topic is not None]
        if any(news):
            self.repeat_state()
        self._transforms.greet(self._present.q, self._world.stamp)
        if self._multi_dof is not None:
            self._multi_dof.greet(self._multi_dof_joints)
        self._objects.greet(self._present.q, self._present.v, self._world.stamp)
        self._forces.greet(self._contact_forces)
        self._constraint_forces.greet(self._all_constraint_forces)
        if self._options.marker_rate:
            self._markers.greet(self._arrows)
        self.wrenches.greet(self._wrenches_on_links)
        self._sampled.greet(self._world.stamp)

    @property
    def subscribers(self) -> int:
        """Number of subscriptions to joint_states."""
        return len(self._states.subscriber_names)

    def are_heard_by(self, node_name: str) -> bool:
        """Return whether the node `node_name` subscribes to contact_forces, so that it will miss nothing."""
        return self._forces.is_connected_to(node_name)

    # -- messages

    def _joint_states(self) -> bytes:
        return self._messages.state(self._present.q, self._present.v, self._present.tau)

    def _base(self) -> bytes:
        return self._messages.odometry(self._present.q, self._present.v)

    def _multi_dof_joints(self) -> bytes:
        return self._messages.multi_dof(self._present.q, self._present.v, self._present.tau)

    def _object_states(self) -> bytes:
        return self._objects.message(self._present.q, self._present.v, self._world.stamp)

    def _contact_forces(self) -> bytes | None:
        period = self._present.period
        return self._messages.forces(period) if period is not None else None

    def _all_constraint_forces(self) -> bytes | None:
        period = self._present.period
        if period is None or period.constraints is None:
            return None
        return serialise(self._messages.constraint_forces(period.constraints, period.mean_constraint_forces))

    def _arrows(self) -> bytes | None:
        period = self._present.period
        if period is None:
            return None
        return serialise(arrows(self._messages.header, period, self._options.marker_scale))

    def _wrenches_on_links(self) -> dict[str, WrenchStamped]:
        period = self._present.period
        if period is None:
            return {}
        return link_wrenches(self._messages.header, period, self._options.frames)
