"""A live table of a running simulation in the terminal."""

from __future__ import annotations

import sys
import time

from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rich.console import Console, Group
from rich.live import Live
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from constrained_sim.exceptions import ConfigError
from constrained_sim.msg import ConstraintForces, ContactForces, Impact, SimulationStatus
from constrained_sim.ros.callbacks import Callbacks
from constrained_sim.ros.inbox import Inbox
from constrained_sim.ros.live_table import live_line, live_table
from constrained_sim.ros.live_values import SIMULATOR, LiveValues
from constrained_sim.ros.process import begin, finish, on_end
from constrained_sim.ros.topics import LATCHED
from constrained_sim.ros.usage import check_command_line

REFRESH = 0.1
PLAIN_REFRESH = 1.0
BURST = 0.1
"""[s] of wall-clock time between two readings: the sparkline holds the last 2.4 s."""

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Of what comes every period: the table needs the newest only, and the simulation waits for no acknowledgement."""

EVERY = QoSProfile(depth=400)

TOPICS: dict[str, tuple[type, QoSProfile]] = {
    "joint_states": (JointState, NEWEST),
    "odom": (Odometry, NEWEST),
    "contact_forces": (ContactForces, NEWEST),
    "constraint_forces": (ConstraintForces, NEWEST),
    f"{SIMULATOR}/status": (SimulationStatus, EVERY),
    "impacts": (Impact, EVERY),
    "robot_description": (String, LATCHED),
    "/rosout": (Log, EVERY),
}


class Monitor(Node):
    """Subscribes to what the simulator publishes, and keeps what is shown.

    Subscribes: joint_states (sensor_msgs/JointState), odom (nav_msgs/Odometry), contact_forces (ContactForces),
    constraint_forces (ConstraintForces), constrained_sim/status (SimulationStatus), impacts (Impact),
    robot_description (std_msgs/String, latched), /rosout (rcl_interfaces/Log).
    """

    def __init__(self) -> None:
        """Subscribe."""
        super().__init__("monitor")
        self.values = LiveValues()
        self._began = time.monotonic()
        self._stopped = False
        self._inbox = Inbox(self)
        for topic, (kind, qos) in TOPICS.items():
            self._inbox.subscribe(kind, topic, self.values.keep, qos)
        self._callbacks = Callbacks(self, self._inbox.subscriptions)

    def table(self) -> Group:
        """Return what is shown in a terminal."""
        return live_table(self.values, *self._start())

    def line(self) -> str:
        """Return what is written where there is no terminal."""
        return live_line(self.values, *self._start())

    def stop(self) -> None:
        """Return from :meth:`listen`, now and from now on."""
        self._stopped = True

    def listen(self, seconds: float) -> bool:
        """Take what arrives for this long, in bursts; False once stopped."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stopped:
            time.sleep(min(seconds, BURST))
            self._inbox.take_all()
            self._callbacks.run_ready()
        return not self._stopped

    def _start(self) -> tuple[bool, float]:
        """Return whether a simulator is there, and the seconds for which this node has been waiting."""
        return self.count_publishers(f"{SIMULATOR}/status") > 0, time.monotonic() - self._began


def main() -> int:
    """Show the table until interrupted; without a terminal, a line per second. Return 0, or 1 where it cannot start."""
    check_command_line(
        sys.argv,
        "monitor",
        "Shows a running simulation: its start, time, energy balance, residuals, impacts, base, joints and forces; "
        "without a terminal, a line a second.",
        "examples:\n  monitor\n  monitor --ros-args -r __ns:=/left",
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
            print(monitor.line(), flush=True)
    finish()
    return 0
