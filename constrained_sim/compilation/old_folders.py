"""Removes folders of machine code that nobody uses any more.

Every change of a kernel's source, of a library's version or of the processor leads to another folder. Which of them an
installation somewhere still uses cannot be known, since several share the user's cache, and branches come back: so each
process marks the folder that it loads from, and one that has had no mark for :data:`UNUSED_DAYS` is removed. At
worst kernels are compiled once more.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import time
from pathlib import Path

UNUSED_DAYS = 30.0
"""Without a mark for that long, a folder is removed."""
MARK_DAYS = 1.0
"""A younger mark is not renewed."""
_DAY = 86400.0


@functools.cache
def mark_used(folder: Path) -> None:
    """Mark `folder` as used now, where this user may: the mark is the time of its last change, as writing leaves it."""
    with contextlib.suppress(OSError):
        if _age(folder) > MARK_DAYS:
            os.utime(folder)


def remove_unused(place: Path) -> None:
    """Remove the folders of machine code in `place` that have had no mark for long, where this user may.

    Processes that run meanwhile lose nothing: what they have loaded stays, and a missing file is compiled again.
    """
    for folder in place.glob("kernels-*-*"):
        with contextlib.suppress(OSError):
            if not folder.is_symlink() and _age(folder) > UNUSED_DAYS:
                shutil.rmtree(folder, ignore_errors=True)


def _age(folder: Path) -> float:
    """Return the days since the last mark."""
    return (time.time() - folder.stat().st_mtime) / _DAY
