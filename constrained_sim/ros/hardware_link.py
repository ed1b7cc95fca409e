"""The simulator's end of the hardware plugin for ros2_control: one state out, one command in, over a local socket.

The other end is src/simulator_socket.cpp. Messages are packets of a Unix socket, whose name tells the domain and the
node. Numbers are in the machine's own order, for both ends are on it.

* The plugin's first packet is text: its rate [Hz], and a line for each joint, with its command interfaces, all
  separated by tabs. The answer is a line: empty, or why it is refused.
* A state is its number, its stamp [ns], and the (3 n) numbers of
  :class:`~constrained_sim.ros.hardware_joints.HardwareJoints`.
* A command is the number of the state that it answers, and (3 n) numbers.
"""

from __future__ import annotations

import os
import select
import socket
import struct
from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np
from rclpy.node import Node

from constrained_sim.exceptions import ConstrainedSimError, InvalidValue
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.hardware_joints import HardwareJoints
from constrained_sim.ros.world import World
from constrained_sim.sensors.sensor_set import MOST_OFF
from constrained_sim.servo import JointCommand

LONGEST = 1 << 16
"""[bytes] Longest packet that is taken."""

NUMBER = struct.Struct("q")
"""Number of a state."""

STATE_HEAD = struct.Struct("qq")
"""Number and stamp [ns] of a state."""

CREDENTIALS = struct.Struct("3i")
"""A process, a user and a group, as the kernel tells them."""


def socket_name(domain: int, node: str) -> bytes:
    """Return the name of the socket of the simulator `node` in the DDS domain `domain`.

    It is in Linux's abstract namespace, which forgets it when the process ends, however it ends.
    """
    return f"\0constrained_sim/{domain}{node}".encode()


class HardwareLink:
    """Serves one controller manager at a time, without a thread of its own."""

    def __init__(
        self, node: Node, world: World, joints: JointNames, take: Callable[[Mapping[int, JointCommand]], None]
    ) -> None:
        """Serve nobody yet.

        Args:
            node: of the simulator.
            world: whose state is sent.
            joints: of the robot.
            take: gets the commands by index into tau.
        """
        self._node, self._world, self._joints, self._take = node, world, joints, take
        self._poll = select.poll()
        self._listener: socket.socket | None = None
        self._manager: socket.socket | None = None
        self._asked: HardwareJoints | None = None
        self._sent = self._answered = 0

    def listen(self) -> None:
        """Let a controller manager connect; a warning tells why none can."""
        name = socket_name(self._node.context.get_domain_id(), self._node.get_fully_qualified_name())
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            listener.bind(name)
        except OSError as error:
            listener.close()
            self._node.get_logger().warning(f"no controller manager can connect to {name.decode()[1:]!r}: {error}")
            return
        listener.listen(1)
        self._listener = listener
        self._poll.register(listener, select.POLLIN)

    @property
    def is_connected(self) -> bool:
        """Whether a controller manager gets the states."""
        return self._asked is not None

    @property
    def is_awaited(self) -> bool:
        """Whether it owes the answer to the last state."""
        return self.is_connected and self._answered < self._sent

    def wait(self, timeout: float = 0.0) -> bool:
        """Deal with what has arrived, or arrives within `timeout` [s]; return whether an answer is owed yet."""
        if self._listener is not None and self._poll.poll(round(timeout * 1e3)):
            if self._manager is not None:
                self._receive(self._manager)
            else:
                self._accept(self._listener)
        return self.is_awaited

    def send_state(self) -> None:
        """Send the present state."""
        if self._manager is None or self._asked is None:
            return
        last = self._world.last
        tau = np.zeros(self._world.config.robot.nu) if last is None else last.tau_applied
        self._sent += 1
        head = STATE_HEAD.pack(self._sent, self._world.stamp)
        self._send(self._manager, head + self._asked.state(self._world.sim, tau).tobytes())

    def _accept(self, listener: socket.socket) -> None:
        manager, _ = listener.accept()
        _, user, _ = CREDENTIALS.unpack(manager.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        if user not in (0, os.getuid()):
            self._node.get_logger().warning(f"the controller manager of another user, {user}, is turned away")
            manager.close()
            return
        manager.setblocking(False)
        self._manager = manager
        self._poll.unregister(listener)  # the next one waits until this one has left
        self._poll.register(manager, select.POLLIN)

    def _receive(self, manager: socket.socket) -> None:
        """Take a packet; an empty one is the end."""
        data = b""
        with suppress(ConnectionError):
            data = manager.recv(LONGEST)
        if not data:
            self._leave(manager)
            return
        try:
            if self._asked is None:
                self._greet(manager, data)
            else:
                self._take_command(data, self._asked)
        except (ConstrainedSimError, ValueError, struct.error) as error:
            self._node.get_logger().error(f"refused from a controller manager, which is let go: {error}")
            self._leave(manager)

    def _greet(self, manager: socket.socket, data: bytes) -> None:
        """Answer the first packet, and send the present state."""
        try:
            self._asked = self._read_request(data.decode())
        except ConstrainedSimError as error:
            self._send(manager, str(error).encode())
            return
        self._node.get_logger().info("a controller manager is connected")
        self._send(manager, b"\n")
        self.send_state()

    def _read_request(self, text: str) -> HardwareJoints:
        """Return the joints that are asked for.

        Raises:
            ConstrainedSimError: a joint or a command interface that the robot does not have, or another rate.
        """
        rate, *lines = text.splitlines()
        period = seconds_of(self._world.period_ns)
        if abs(float(rate) * period - 1.0) > MOST_OFF:
            raise InvalidValue(
                "update_rate", f"{rate} Hz", f"{1.0 / period:g} Hz, for the control_period is {period:g} s"
            )
        asked = {name: interfaces for name, *interfaces in (line.split("\t") for line in lines)}
        return HardwareJoints(asked, self._world.config, self._joints)

    def _take_command(self, data: bytes, asked: HardwareJoints) -> None:
        """Take the command that answers the last state; others are too late."""
        (answered,) = NUMBER.unpack_from(data)
        if answered == self._sent:
            self._answered = answered
            self._take(asked.commands(np.frombuffer(data, float, offset=NUMBER.size)))

    def _leave(self, manager: socket.socket) -> None:
        if self.is_connected:
            self._node.get_logger().info("the controller manager has left")
        self._poll.unregister(manager)
        manager.close()
        self._manager = self._asked = None
        if self._listener is not None:
            self._poll.register(self._listener, select.POLLIN)

    def _send(self, manager: socket.socket, packet: bytes) -> None:
        """Send a packet; that nobody takes it is found out when the next one is received."""
        with suppress(OSError):
            manager.send(packet)
