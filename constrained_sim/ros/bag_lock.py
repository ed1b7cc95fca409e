"""One process at a time writes a bag: the lock that a recording and `recover` take."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RETRY = 0.05
WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
"""What file systems say that know no locks: there, nothing is locked."""


@contextmanager
def bag_lock(directory: Path, wait: float = 0.0) -> Iterator[int]:
    """Keep others that ask for it from the bag in `directory`; the end of the process ends that too.

    Yields the file descriptor that holds the lock. A process that inherits it holds the lock until it ends.

    Args:
        directory: of the bag.
        wait: how long to wait for another process that has it [s].

    Raises:
        BlockingIOError: another process has it still.
        OSError: the directory cannot be opened.
    """
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        _lock(folder, time.monotonic() + wait)
        yield folder
    finally:
        os.close(folder)


def _lock(folder: int, end: float) -> None:
    while True:
        try:
            return fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise
            time.sleep(RETRY)
        except OSError as error:
            if error.errno not in WITHOUT_LOCKS:
                raise
            return None
