"""Process that becomes a program of this package: it has loaded what nodes need, and runs no thread yet.

rclpy itself is left to the program: its libraries start threads when they are loaded, and a fork has none of them.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Mapping, Sequence

AT_START = ("ROS_", "FASTDDS_", "FASTRTPS_", "PYTEST_")
"""Beginnings of the names of environment variables that nothing reads before a program starts ROS, or ever."""


def load_node() -> None:
    """Load what a node needs."""
    import constrained_sim.msg
    import constrained_sim.ros.early_signals
    import constrained_sim.ros.world
    import constrained_sim.srv  # noqa: F401
    from constrained_sim import load_kernels

    load_kernels()


def run_program(out: int, err: int, command: Sequence[str], environment: Mapping[str, str], cwd: str) -> None:
    """Run a program as Python would.

    Args:
        out: its standard output goes to the file with this handle.
        err: its standard error goes to this one.
        command: file of the program, and arguments.
        environment: variables that are read at the start.
        cwd: folder to run in.
    """
    os.dup2(out, 1)
    os.dup2(err, 2)
    for handle in (out, err):
        os.close(handle)
    for name in read_at_start(os.environ):
        del os.environ[name]
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = list(command)
    runpy.run_path(command[0], run_name="__main__")


def read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that are read when a program starts, and not before."""
    return {name: value for name, value in environment.items() if name.startswith(AT_START)}
