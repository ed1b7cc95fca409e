"""The services that set parameters: every request is answered, one that rclpy cannot read too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter

TYPES = [kind.value for kind in Parameter.Type]


def answer_every_request(node: Node) -> None:
    """Let the parameter services of `node` refuse what they otherwise raise an exception for, without an answer."""
    handlers = {SetParameters: _set_each, SetParametersAtomically: _set_all}
    for service in node.services:
        if service.srv_type in handlers:
            service.callback = partial(handlers[service.srv_type], node)


def _set_each(node: Node, request: Any, response: Any) -> Any:
    response.results = [_set(node, [message]) for message in request.parameters]
    return response


def _set_all(node: Node, request: Any, response: Any) -> Any:
    response.result = _set(node, request.parameters)
    return response


def _set(node: Node, messages: Sequence[ParameterMessage]) -> SetParametersResult:
    """Set all of these parameters, or none."""
    for message in messages:
        if message.value.type not in TYPES:
            reason = f"type of parameter {message.name!r}: got {message.value.type}, allowed: {TYPES[0]} to {TYPES[-1]}"
            return SetParametersResult(successful=False, reason=reason)
    try:
        return node.set_parameters_atomically([Parameter.from_parameter_msg(message) for message in messages])
    except Exception as error:  # whatever rclpy raises for a name or a value that it does not take
        return SetParametersResult(successful=False, reason=f"{', '.join(m.name for m in messages)}: {error}")
