"""Files that are written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yield a path beside `target`, and rename what is written there; of a failure nothing is left.

    Raises:
        OSError: it cannot be written.
    """
    part = target.with_name(f"{target.name}.{os.getpid()}.writing")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
