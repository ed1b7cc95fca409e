"""Exit codes of all commands, and how they write to either stream."""

import json
import math
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from constrained_sim.cli import INTERRUPTED
from constrained_sim.exceptions import Explained

FAILED = 1
DIFFERS = 3

EXIT_CODES = (
    f"Exit codes: 0 done; {FAILED} refused or failed, with the reason; 2 wrong use of the command line; "
    f"{DIFFERS} a replay that differs from its recording, or a recording of which parts are lost; "
    f"{INTERRUPTED} interrupted."
)

SAID: set[str] = set()
"""What this run of a command has written once."""

Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON, and nothing else, to standard output.")]


def say(text: str) -> None:
    """Write a line for the user to the standard error stream."""
    print(f"constrained_sim: {text}", file=sys.stderr, flush=True)


def say_once(note: str | Warning) -> None:
    """Write a line as :func:`say` does, unless it has been written, as a note or as a warning."""
    text = note.message if isinstance(note, Explained) else str(note)
    if text not in SAID:
        SAID.add(text)
        say(str(note))


def wrong_use(option: str, text: str) -> typer.BadParameter:
    """Return what is to be raised where the command line gives an `option` what it does not take: exit code 2."""
    return typer.BadParameter(text, param_hint=option)


def finite(value: float | None) -> float | None:
    """Return the `value` of an option, where one is given, if it is a finite number; else it is wrong use."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"got {value}, allowed: a finite number")
    return value


def positive(value: float | None) -> float | None:
    """Return the `value` of an option, where one is given, if it is finite and more than 0; else it is wrong use."""
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"got {value}, allowed: a finite number, more than 0")
    return value


def write_json(values: Mapping[str, Any]) -> None:
    """Write `values` to standard output; numbers that are not finite become null, which JSON has in their place."""
    print(json.dumps(_finite(values), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """Return `value` without numbers that JSON does not have."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
