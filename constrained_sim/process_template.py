"""A process that has loaded what others need, and gives birth to them: within milliseconds, by a fork.

It runs no code of users, so it never hangs; it ends when its owner closes the socket, or ends, and takes along all that
it gave birth to. It has one thread, so a fork is safe; where Linux tells of more, it ends at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pickle
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STARTING_TIME = 600.0
"""[s] that it may take to start: the first one on a machine compiles kernels."""

ENDING_TIME = 1.0
"""[s] between the end of its socket and its own."""

PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]) or sys.path; "
    "from constrained_sim.process_template import serve; serve(sys.argv[1], int(sys.argv[2]))"
)

LONGEST = 65_536
"""Bytes of a message between owner and template."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Variables with which a process has one thread when it forks; the matrices are small."""

MARK = "CONSTRAINED_SIM_RUNS"
"""Environment variable by which the descendants of a process that does runs are known, whatever session they are in."""

PR_SET_PDEATHSIG = 1
"""Of Linux's prctl: which signal comes when the parent ends."""


class ProcessTemplate:
    """The owner's side."""

    def __init__(
        self,
        load: Callable[[], None],
        failure: Callable[[str, str], Exception],
        environment: Mapping[str, str],
        path: Sequence[str] = (),
    ) -> None:
        """Start it; it loads while others go on.

        Args:
            load: is called in it first: a function of a module, like all that it is given to call.
            failure: the error for a text, and what it wrote.
            environment: its variables, but those of threads.
            path: where it looks for modules; (): where any Python with this environment does.
        """
        self._lock, self._failure = threading.Lock(), failure
        self._errors = tempfile.TemporaryFile()
        self._socket, theirs = socket.socketpair()
        with theirs:
            words = [f"{load.__module__}:{load.__name__}", str(theirs.fileno()), json.dumps(list(path))]
            self._popen = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, *words],
                stdin=subprocess.DEVNULL,
                stdout=self._errors,
                stderr=self._errors,
                env={**environment, **ONE_THREAD},
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the owner
            )
        self._is_ready = False

    @property
    def is_alive(self) -> bool:
        """Whether it can give birth."""
        return self._popen.poll() is None

    def fork(self, begin: Callable[..., None], handles: Sequence[int] = (), *arguments: Any) -> int:
        """Return the process id of a new process, which calls ``begin(*handles, *arguments)`` and ends.

        It is the leader of a session of its own.

        Args:
            begin: a function of a module.
            handles: of open files, which the process has too.
            arguments: that can be pickled.

        Raises:
            Exception: the template's `failure`: it ended, or takes too long, or the arguments are too long.
        """
        message = pickle.dumps((begin, arguments))
        if len(message) > LONGEST:
            raise self._failure(f"arguments of {len(message)} bytes are longer than {LONGEST}", "")
        with self._lock:
            if not self._is_ready:
                self._socket.settimeout(STARTING_TIME)
                self._ask(lambda: None)
                self._is_ready = True
            return int(self._ask(lambda: socket.send_fds(self._socket, [message], list(handles))))

    def ending(self, pid: int) -> int:
        """Wait for the end of a process that was forked, and return its exit code, negative of a signal.

        Raises:
            Exception: the template's `failure`.
        """
        with self._lock:
            return int(self._ask(lambda: self._socket.sendall(pickle.dumps((None, (pid,))))))

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

    def _ask(self, send: Any) -> Any:
        """Return the answer to what `send` sends.

        Raises:
            Exception: the template's `failure`: there is none.
        """
        try:
            send()
            if answer := self._socket.recv(LONGEST):
                return pickle.loads(answer)
        except OSError:
            pass
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(ENDING_TIME)  # it writes why
        size = os.fstat(self._errors.fileno()).st_size
        text = os.pread(self._errors.fileno(), LONGEST, max(0, size - LONGEST)).decode(errors="replace")
        raise self._failure("the process that gives birth to others has ended", text)


def serve(load: str, handle: int) -> None:
    """Call ``load``, then give birth to processes until the owner closes the socket with this file `handle`."""
    pkgutil.resolve_name(load)()
    gc.freeze()  # a collection in a fork would go through all this, and so copy the memory that it shares
    if sys.platform == "linux" and len(threads := os.listdir("/proc/self/task")) > 1:
        sys.exit(f"{load} has started {len(threads) - 1} threads, which a fork would not have")
    with socket.socket(fileno=handle) as owner:
        owner.sendall(pickle.dumps("ready"))
        while True:
            message, handles, _, _ = socket.recv_fds(owner, LONGEST, 2)
            if not message:
                return
            begin, arguments = pickle.loads(message)
            if begin is None:
                owner.sendall(pickle.dumps(_exit_code(*arguments)))
                continue
            own, (begun, told) = os.getpid(), os.pipe()
            pid = os.fork()
            if not pid:
                owner.close()
                _end_with_parent(own)
                os.setsid()
                for opened in (begun, told):
                    os.close(opened)
                begin(*handles, *arguments)
                return
            os.close(told)
            os.read(begun, 1)  # before, Python may lose a signal to the process; this ends when it has closed its side
            for opened in (begun, *handles):
                os.close(opened)
            owner.sendall(pickle.dumps(pid))


def _end_with_parent(parent: int) -> None:
    """Let this process be killed when its `parent` ends, even in compiled code that never returns."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _exit_code(pid: int) -> int:
    """Return how a process ended; it is waited for."""
    with contextlib.suppress(ChildProcessError):
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return 0
