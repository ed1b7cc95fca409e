"""Calls of the functions that users give: their errors are told apart from those of the package."""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import Any

import numpy as np


class _Nesting(local):
    depth = 0


NESTING = _Nesting()


def ask_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a user's function returns.

    It gets read-only views of arrays. What it asks of the same robot leaves the work space in use alone. What it raises
    is marked, see :func:`is_of_user`.
    """
    NESTING.depth += 1
    try:
        return function(*map(_view, arguments))
    except Exception as error:
        error.__dict__[OF_USER] = True
        raise
    finally:
        NESTING.depth -= 1


OF_USER = "_constrained_sim_user_code"


def is_of_user(error: BaseException) -> bool:
    """Return whether a function of the user's raised `error`: then it is theirs to see, as it is."""
    return OF_USER in error.__dict__


def _view(argument: Any) -> Any:
    if not isinstance(argument, np.ndarray):
        return argument
    view = argument.view()
    view.flags.writeable = False
    return view
