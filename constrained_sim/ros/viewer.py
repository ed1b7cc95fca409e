"""`viewer`: shows a running simulation in the browser."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from functools import partial

import rclpy

from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.ros.process import begin, finish, on_end
from constrained_sim.ros.usage import check_command_line
from constrained_sim.ros.viewer_source import NodeSource
from constrained_sim.viewer.open_page import show
from constrained_sim.viewer.page import PORT

NICENESS = 10
"""Of the process: where processors are few, the simulation goes first."""


def show_node(simulator: str, port: int, browser: bool, arguments: Sequence[str] = ()) -> None:
    """Show what the node `simulator` simulates, until SIGINT or SIGTERM.

    Raises:
        ConstrainedSimError: there is no such node, or it cannot be shown.
    """
    os.nice(NICENESS)
    begin(arguments)
    ended = threading.Event()
    on_end(ended.set)
    try:
        node = rclpy.create_node("viewer")
        defaults = {"simulator": simulator, "port": port, "browser": browser}
        given = {name: node.declare_parameter(name, value).value for name, value in defaults.items()}
        source = NodeSource(node, given["simulator"])
        show(source, partial(print, flush=True), given["port"], given["browser"], lambda: not ended.is_set())
    finally:
        finish()


def main() -> int:
    """Show the simulation until SIGINT or SIGTERM; return 0, or 1 with one clear line if that cannot be."""
    check_command_line(
        sys.argv,
        "viewer",
        "Shows a running simulation in the browser: the robot, its contacts and forces; buttons act on the node.",
        "examples:\n  viewer\n  viewer --ros-args -p port:=8081 -p simulator:=constrained_sim",
        f"parameters (default)\n  port ({PORT}): of the page on the loopback interface; the next one if it is taken\n"
        "  simulator (constrained_sim): name of the node\n"
        "  browser (true): open the page in the browser, where there is a display",
    )
    try:
        show_node("constrained_sim", PORT, True, sys.argv)
    except ConstrainedSimError as error:
        print(f"viewer: {error}", file=sys.stderr)
        return 1
    return 0
