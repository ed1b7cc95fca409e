"""The process that does runs: it may hang, eat memory or crash, and only the run is lost; see ``process.py``."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import signal
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: which signal comes when the parent ends."""


def main(handle: int, parent: int) -> None:
    """Do what arrives at the connection with this file `handle`, until it ends, or the process `parent` does."""
    _end_with(parent)
    faulthandler.enable()  # a crash tells where it was, and so does who is asked
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    connection = Connection(handle)
    study = pickle.loads(connection.recv_bytes())
    warm_up(study)
    connection.send("ready")
    from constrained_sim.campaign.one_run import do_run

    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            run, keep = connection.recv()
            outcome = do_run(study, run)
            wanted = keep == "all" or (keep == "failed" and not outcome.row.passed)
            connection.send((outcome.row, trajectory_bytes(outcome.trajectory) if wanted else None))


def warm_up(study: Any) -> None:
    """Load, and where need be compile, what the runs need, so that this counts as no run's time."""
    from constrained_sim.compilation.build import load_kernels
    from constrained_sim.config import read_config
    from constrained_sim.exceptions import ConstrainedSimError

    with contextlib.suppress(ConstrainedSimError):  # what is wrong with the study its rows tell
        if not study.uses_ros:
            config = read_config(study.inputs(0).configuration, study.folder)
            load_kernels(config.simulation.stepper, config.simulation.solver)


def trajectory_bytes(trajectory: Any) -> bytes | None:
    """Return the file that keeps a trajectory; None where there is none."""
    if trajectory is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.npz"
        trajectory.save(file)
        return file.read_bytes()


def _end_with(parent: int) -> None:
    """Let this process be killed when its parent ends, even in compiled code that never returns."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent has ended")
