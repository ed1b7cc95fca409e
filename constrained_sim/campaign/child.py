"""The process that does runs: it may hang, eat memory or crash, and only the run is lost; see ``process.py``."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import signal
import sys
import tempfile
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

from constrained_sim.process_template import MARK


def main(handle: int, errors: int, mark: str) -> NoReturn:
    """Do what arrives at the connection with this file `handle`, until it ends; never return to the template.

    Args:
        handle: of the connection.
        errors: what the process writes goes to the file with this handle.
        mark: by which its descendants are known.
    """
    for stream in (1, 2):
        os.dup2(errors, stream)
    os.environ[MARK] = mark
    faulthandler.enable(2)  # a crash tells where it was, and so does who is asked
    faulthandler.register(signal.SIGUSR1, 2, all_threads=True)
    try:
        connection = Connection(handle)
        with contextlib.suppress(EOFError, ConnectionError):
            _serve(connection)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _serve(connection: Connection) -> None:
    from constrained_sim.campaign.one_run import do_run

    study = pickle.loads(connection.recv_bytes())
    connection.send("ready")
    while True:
        run, keep = connection.recv()
        outcome = do_run(study, run)
        wanted = keep == "all" or (keep == "failed" and not outcome.row.passed)
        connection.send((outcome.row, trajectory_bytes(outcome.trajectory) if wanted else None))


def load_all() -> None:
    """Load what most runs need, and compile what any may need, so that this counts as no run's time."""
    import constrained_sim.campaign.one_run  # noqa: F401
    from constrained_sim.precompile import compile_kernels, compile_missing

    compile_missing()
    compile_kernels(kinds=["leg"])


def trajectory_bytes(trajectory: Any) -> bytes | None:
    """Return the file that keeps a trajectory; None where there is none."""
    if trajectory is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.npz"
        trajectory.save(file)
        return file.read_bytes()
