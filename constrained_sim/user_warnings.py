"""Warnings, told of at the user's line that led to them."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

PACKAGE = __name__.partition(".")[0]


def warn(warning: Warning) -> None:
    """Warn as ``warnings.warn`` does, at the innermost line that is not of this package.

    There users look for the reason; and Python shows a text once for each line, in a loop of theirs once.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    """Return whether a frame runs code of this package."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] == PACKAGE
