"""A process that has loaded everything, and gives birth to those that do runs: within milliseconds, by a fork.

It runs no code of users, so it never hangs; it ends when its owner closes the socket, or ends. It has one thread, so a
fork is safe.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from typing import IO, Any

from constrained_sim.exceptions import RunsFailed

STARTING_TIME = 600.0
"""[s] that it may take to start: the first one on a machine compiles kernels."""

ENDING_TIME = 1.0
"""[s] between the end of its socket and its own."""

PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from constrained_sim.campaign.template import serve; serve(int(sys.argv[1]))"
)

ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The matrices are small, and a process that forks has one thread."""

LONGEST = 65_536
"""Bytes of a message between owner and template."""


class Template:
    """The owner's side."""

    def __init__(self) -> None:
        """Start it; it loads while others go on."""
        self._lock = threading.Lock()
        self._errors = tempfile.TemporaryFile()
        ours, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(theirs.fileno()), json.dumps(sys.path)],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env=os.environ | ENVIRONMENT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the process that does the study
            )
        self._socket = ours
        self._is_ready = False

    @property
    def is_alive(self) -> bool:
        """Whether it can give birth."""
        return self._popen.poll() is None

    def fork(self, theirs: socket.socket, errors: IO[bytes], mark: str) -> int:
        """Return the process id of a new process that does runs.

        Args:
            theirs: its side of the connection.
            errors: what it writes goes there.
            mark: by which its descendants are known.

        Raises:
            RunsFailed: the template ended, or takes too long.
        """
        with self._lock:
            self._wait_until_ready()
            handles = [theirs.fileno(), errors.fileno()]
            return int(self._ask(lambda: socket.send_fds(self._socket, [mark.encode()], handles)))

    def ending(self, pid: int) -> int:
        """Return the exit code of a process that has ended, negative of a signal."""
        with self._lock:
            return int(self._ask(lambda: self._socket.sendall(pickle.dumps(pid))))

    def end(self) -> int:
        """End it where it has not ended by itself; return its exit code, negative of a signal, 1 where it hung."""
        try:
            return self._popen.wait(ENDING_TIME)
        except subprocess.TimeoutExpired:
            self.close()
            return 1

    def close(self) -> None:
        """End it, and all that it gave birth to."""
        self._socket.close()
        self._popen.kill()
        self._popen.wait()
        self._errors.close()

    def _wait_until_ready(self) -> None:
        if not self._is_ready:
            self._socket.settimeout(STARTING_TIME)
            self._ask(lambda: None)
            self._is_ready = True

    def _ask(self, send: Any) -> Any:
        """Return the answer to what `send` sends.

        Raises:
            RunsFailed: there is none.
        """
        try:
            send()
            if answer := self._socket.recv(LONGEST):
                return pickle.loads(answer)
        except OSError:
            pass
        size = os.fstat(self._errors.fileno()).st_size
        text = os.pread(self._errors.fileno(), LONGEST, max(0, size - LONGEST)).decode(errors="replace")
        raise RunsFailed("the process that gives birth to those that do runs has ended", text)


def serve(handle: int) -> None:
    """Load all that runs need, then give birth to processes until the owner closes the socket with this `handle`."""
    from constrained_sim.campaign.child import end_with_parent, load_all, main

    load_all()
    with socket.socket(fileno=handle) as owner:
        owner.sendall(pickle.dumps("ready"))
        while True:
            message, handles, _, _ = socket.recv_fds(owner, LONGEST, 2)
            if not message:
                return
            if not handles:
                owner.sendall(pickle.dumps(_exit_code(pickle.loads(message))))
                continue
            own = os.getpid()
            pid = os.fork()
            if not pid:
                owner.close()
                end_with_parent(own)
                _become(handles[1], message.decode())
                main(handles[0])
            for handle in handles:
                os.close(handle)
            owner.sendall(pickle.dumps(pid))


def _become(errors: int, mark: str) -> None:
    """Become a process of its own: what it writes goes to the file `errors`."""
    from constrained_sim.campaign.leftovers import MARK

    os.setsid()
    for stream in (1, 2):
        os.dup2(errors, stream)
    os.environ[MARK] = mark
    faulthandler.enable(2)  # a crash tells where it was, and so does who is asked
    faulthandler.register(signal.SIGUSR1, 2, all_threads=True)


def _exit_code(pid: int) -> int:
    """Return how a process ended; it is waited for."""
    with contextlib.suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 0
