"""The service that changes the state of a managed node: a transition that does not begin in this state is refused."""

from __future__ import annotations

from typing import Any

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import GetAvailableTransitions
from rclpy.node import Node

from constrained_sim.exceptions import listed


def refuse_other_transitions(node: Node) -> None:
    """Let ``~/change_state`` of `node` refuse what rclpy raises an exception for, without an answer.

    What it tells to be allowed is without *cleanup*, which begins in a state, and which the node refuses.
    """
    services = {service.srv_name.rpartition("/")[2]: service for service in node.services}
    change, offer = services["change_state"].callback, services["get_available_transitions"].callback

    def change_state(request: Any, response: Any) -> Any:
        offered = offer(GetAvailableTransitions.Request(), GetAvailableTransitions.Response()).available_transitions
        if any(_is_meant(request.transition, description.transition) for description in offered):
            return change(request, response)
        state = offered[0].start_state.label if offered else "finalized"
        begin = [one.transition for one in offered if one.transition.id != Transition.TRANSITION_CLEANUP]
        allowed = listed(f"{transition.label} ({transition.id})" for transition in begin)
        given = request.transition.label or request.transition.id
        node.get_logger().warning(f"transition: got {given} in the state {state}, allowed: {allowed}")
        response.success = False
        return response

    services["change_state"].callback = change_state


def _is_meant(given: Transition, offered: Transition) -> bool:
    """Return whether a request means this transition: by its label where it has one, else by its number."""
    return bool(given.label == offered.label if given.label else given.id == offered.id)
