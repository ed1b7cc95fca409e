"""The condition for a run to pass: an expression of its measures."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from constrained_sim.exceptions import ConfigError, UnknownName

FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}

ALLOWED = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.Lt, ast.LtE),
    *(ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Name, ast.Load),
    *(ast.Constant, ast.Call),
)


class Expression:
    """A condition such as ``not fell and effort_share < 0.9``.

    Attributes:
        text: as it was given.
    """

    def __init__(self, text: str, names: Iterable[str]) -> None:
        """Read `text`, which may use `names`, numbers, comparisons, arithmetic, and, or, not, abs, min and max.

        Raises:
            ConfigError: something else in it.
            UnknownName: another name.
        """
        self.text, allowed = text, tuple(names)
        try:
            tree = ast.parse(text, mode="eval")
        except (SyntaxError, ValueError) as error:
            raise ConfigError(f"passed: {text!r} is no expression ({error})") from error
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                _check_call(text, node)
            elif isinstance(node, ast.Name) and node.id not in (*allowed, *FUNCTIONS):
                raise UnknownName("name in passed", node.id, (*allowed, *FUNCTIONS))
            elif not isinstance(node, ALLOWED):
                what = "measures, numbers, comparisons, + - * /, and, or, not, abs, min and max"
                raise ConfigError(f"passed: got {ast.unparse(node)!r} in {text!r}, allowed: {what}")
        self._used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - set(FUNCTIONS)
        self._code = compile(tree, "<passed>", "eval")

    def holds(self, measures: Mapping[str, Any]) -> bool:
        """Return whether it is true of `measures`; where one of them that it needs is None, it is not."""
        if any(measures[name] is None for name in self._used):
            return False
        try:
            return bool(eval(self._code, {"__builtins__": {}, **FUNCTIONS, **measures}))
        except ZeroDivisionError:
            return False


def _check_call(text: str, call: ast.Call) -> None:
    """Refuse a call of what is none of the functions."""
    if not isinstance(call.func, ast.Name) or call.func.id not in FUNCTIONS or call.keywords:
        raise ConfigError(f"passed: got {ast.unparse(call)!r} in {text!r}, allowed: {', '.join(FUNCTIONS)}")
