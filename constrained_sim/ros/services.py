"""The services of the node: each refuses with a message, or takes effect whole at a period boundary."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

from constrained_sim import srv
from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.ros.control import Control
from constrained_sim.ros.conversions import to_time
from constrained_sim.ros.message_json import to_json
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.requests import Change, Requests
from constrained_sim.ros.topics import REQUESTS
from constrained_sim.ros.world import World

RESTARTING = ("reset", "set_object_state")
"""Requests after which commands are forgotten, and steps are counted anew."""


def recording(
    name: str, perform: Callable[[Any, Any], Change], control: Control, outputs: Outputs
) -> Callable[[Any, Any], None]:
    """Return a handler that records the request `name` once it has taken effect, then publishes what follows."""

    def handle(request: Any, response: Any) -> None:
        boundary = outputs.boundary
        change = perform(request, response)
        outputs.record_input(name, to_json(request), boundary)
        change.publish()
        if name in RESTARTING:
            control.was_reset()
        if change.warning:
            response.message = change.warning
        control.changed(change.text, change.warning)

    return handle


class Services:
    """Offers the services, and the parameters that take the same path as set_solver."""

    def __init__(self, node: Node, world: World, control: Control, requests: Requests, outputs: Outputs) -> None:
        """Create the services."""
        self._node, self._world, self._control = node, world, control
        self._requests, self._outputs = requests, outputs
        offer = partial(node.create_service, qos_profile=REQUESTS)
        for name, (kind, perform) in requests.kinds.items():
            offer(kind, f"~/{name}", self._refusing(recording(name, perform, control, outputs)))
        offer(srv.ListContacts, "~/list_contacts", self._refusing(requests.list_contacts))
        offer(srv.ListConstraints, "~/list_constraints", self._refusing(requests.list_constraints))
        offer(srv.SetSolver, "~/set_solver", self._refusing(self._set_solver))
        offer(SetBool, "~/pause", self._refusing(self._pause))
        # The coroutine of a step waits for the loop; meanwhile other services are answered.
        offer(srv.Step, "~/step", self._step, callback_group=ReentrantCallbackGroup())

    def change_options(self, values: dict[str, Any]) -> None:
        """Change solver, factorization, stepper, contact_method or real_time_factor: all of `values`, or none.

        Raises:
            ConstrainedSimError: a value that is not allowed.
        """
        factor = values.get("real_time_factor")
        if factor is not None:
            self._control.check_real_time_factor(factor)
        self._requests.change_options(values)
        if factor is not None:
            self._control.set_real_time_factor(factor)
        self._outputs.record_input("parameters", values)
        self._control.changed(", ".join(f"{key} is {value!r}" for key, value in values.items()))

    def _refusing(self, handle: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
        """Return a callback that answers with the text of our exceptions, and of any other that was not foreseen."""

        def callback(request: Any, response: Any) -> Any:
            try:
                handle(request, response)
                response.success = True
            except ConstrainedSimError as error:
                response.success, response.message = False, str(error)
            except Exception as error:
                self._node.get_logger().error(traceback.format_exc())
                response.success, response.message = False, f"internal error: {error!r}"
            if hasattr(response, "stamp"):
                response.stamp = to_time(self._world.stamp)
            return response

        return callback

    def _set_solver(self, request: Any, response: Any) -> None:
        wanted = {
            key: getattr(request, key) for key in ("solver", "stepper", "contact_method") if getattr(request, key)
        }
        if request.solver or request.factorization:
            wanted["factorization"] = request.factorization
        result = None
        if wanted:
            parameters = [Parameter(key, value=value) for key, value in wanted.items()]
            result = self._node.set_parameters_atomically(parameters)
        sim = self._world.sim
        response.solver, response.stepper = sim.solver.name, sim.stepper_name
        response.factorization = getattr(sim.solver, "factorization", "")
        response.contact_method = sim.contact_method
        if result is not None and not result.successful:
            raise ConstrainedSimError(result.reason)

    def _pause(self, request: Any, response: Any) -> None:
        response.message = self._control.pause(request.data)

    async def _step(self, request: Any, response: Any) -> Any:
        try:
            done = self._control.request_steps(request.periods)
        except ConstrainedSimError as error:
            response.success, response.message = False, str(error)
        else:
            response.message = await done
            response.success = not response.message
        response.stamp, response.step = to_time(self._world.stamp), self._world.sim.steps
        return response
