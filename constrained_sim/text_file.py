"""Text files from outside, read within bounds."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular_file(path: str | os.PathLike[str], largest: int) -> str:
    """Return the text of a file that is neither a device nor a pipe, nor larger than `largest` bytes.

    Raises:
        OSError: it cannot be read.
        ValueError: not a regular file, too large, not UTF-8, or a path with a NUL in it.
        TypeError: not a path.
    """
    # Without O_NONBLOCK, open() waits for somebody to write into a pipe.
    handle = os.open(Path(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError("got a directory, a pipe or a device, allowed: a regular file")
        content = file.read(largest + 1)
    if len(content) > largest:
        raise ValueError(f"got more than {largest} bytes, allowed: at most that")
    return content.decode("utf-8-sig")
