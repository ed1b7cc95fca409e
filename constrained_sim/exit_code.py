"""How a process ended, in words."""

from __future__ import annotations

import signal


def cause_of_end(code: int) -> str:
    """Return the exit `code` of a process, or the signal for which Python gives a negative number."""
    names = {number.value: number.name for number in signal.Signals}
    return f"exit code {code}" if code >= 0 else names.get(-code, f"signal {-code}")


def how_it_ended(code: int) -> str:
    """Return what a process with this exit `code` did, see :func:`cause_of_end`."""
    return f"{'ended with' if code >= 0 else 'was killed by'} {cause_of_end(code)}"
