"""A live table of a running simulation in the terminal."""

from __future__ import annotations

import math
import sys
import time

import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rich.console import Console
from rich.live import Live
from rich.table import Table
from sensor_msgs.msg import JointState

from constrained_sim.exceptions import ConfigError
from constrained_sim.msg import ContactForce, ContactForces, SimulationStatus
from constrained_sim.ros.process import begin, finish, on_end
from constrained_sim.ros.usage import check_command_line

REFRESH = 0.1
PLAIN_REFRESH = 1.0
BURST = 0.05
STATUS = {ContactForce.OPEN: "open", ContactForce.STICKING: "sticking", ContactForce.SLIDING: "sliding"}
STATES = {
    SimulationStatus.RUNNING: "running",
    SimulationStatus.PAUSED: "paused",
    SimulationStatus.WAITING: "waiting for a command",
    SimulationStatus.FROZEN: "frozen",
}


class Monitor(Node):
    """Subscribes to joint_states, contact_forces and constrained_sim/status, and keeps the newest of each."""

    def __init__(self) -> None:
        """Subscribe."""
        super().__init__("monitor")
        self.joints: JointState | None = None
        self.contacts: ContactForces | None = None
        self.status: SimulationStatus | None = None
        self._stopped = False
        newest = QoSProfile(depth=1)
        self.create_subscription(JointState, "joint_states", lambda message: setattr(self, "joints", message), newest)
        self.create_subscription(
            ContactForces, "contact_forces", lambda message: setattr(self, "contacts", message), newest
        )
        self.create_subscription(
            SimulationStatus,
            "constrained_sim/status",
            lambda message: setattr(self, "status", message),
            newest,
        )

    def rows(self) -> list[tuple[str, str]]:
        """Return what to show: names and values."""
        if self.joints is None:
            return [("simulation", "waiting for joint_states ...")]
        stamp = self.joints.header.stamp
        rows = [("time", f"{stamp.sec + 1e-9 * stamp.nanosec:10.3f} s")]
        rows += [(name, f"{q:+10.4f}") for name, q in zip(self.joints.name, self.joints.position, strict=True)]
        for contact in self.contacts.contacts if self.contacts is not None else ():
            force = contact.wrench.force
            side = math.hypot(force.x, force.y, force.z)
            side = math.sqrt(max(0.0, side**2 - contact.normal_force**2))
            rows.append((f"contact {contact.name}", f"{STATUS[contact.status]:>10}"))
            rows.append(("  normal, tangential force", f"{contact.normal_force:10.3f} N {side:8.3f} N"))
        if self.status is not None:
            rows.append(("simulation", STATES[self.status.state]))
            rows.append(("solver", f"{self.status.solver}, {self.status.stepper}, {self.status.clock_mode}"))
            rows.append(("real-time factor", f"{self.status.real_time_factor:10.3f}"))
        return rows

    def table(self) -> Table:
        """Return the rows as a table."""
        table = Table(title="constrained_sim", show_header=False, min_width=60)
        table.add_column(style="bold", min_width=28)
        table.add_column(min_width=28)
        for row in self.rows():
            table.add_row(*row)
        return table

    def stop(self) -> None:
        """Return from :meth:`listen`, now and from now on."""
        self._stopped = True

    def listen(self, seconds: float) -> bool:
        """Handle what arrives for this long, in bursts: the newest of each topic will do; False once stopped."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stopped:
            time.sleep(min(seconds, BURST))
            for _ in range(4):
                rclpy.spin_once(self, timeout_sec=0.0)
        return not self._stopped


def main() -> int:
    """Show the table until interrupted; without a terminal, a line per second. Return 0, or 1 where it cannot start."""
    check_command_line(
        sys.argv,
        "monitor",
        "Shows a running simulation: joint positions, contact forces and status; without a terminal, a line a second.",
        "examples:\n  monitor\n  monitor --ros-args -r joint_states:=/robot/joint_states",
    )
    try:
        begin(sys.argv)
    except ConfigError as error:
        print(f"monitor: {error}", file=sys.stderr)
        return 1
    monitor, console = Monitor(), Console()
    on_end(monitor.stop)
    if console.is_terminal:
        with Live(monitor.table(), console=console, auto_refresh=False) as live:
            while monitor.listen(REFRESH):
                live.update(monitor.table(), refresh=True)
    else:
        while monitor.listen(PLAIN_REFRESH):
            print(
                " | ".join(f"{name.strip()} {' '.join(value.split())}" for name, value in monitor.rows()),
                flush=True,
            )
    finish()
    return 0
