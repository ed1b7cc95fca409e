"""Start of a process that imports this package from where this one does, and what it may use."""

from __future__ import annotations

import json
import os
import sys

try:
    import fcntl as fcntl
except ImportError:  # Windows: there is one process, or two would compile the same
    fcntl = None  # type: ignore[assignment]


def python_words(program: str) -> list[str]:
    """Return the command of a process that runs `program`, with the module path of this one."""
    path = [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
    begin = "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n"
    return [sys.executable, "-P", "-c", begin + program, json.dumps(path)]


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
