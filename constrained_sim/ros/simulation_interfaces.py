"""The standard services of simulators, where the package simulation_interfaces is installed.

Requests, responses and result codes are those of https://github.com/ros-simulation/simulation_interfaces, 1.x and 2.x.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future

from constrained_sim.exceptions import ConstrainedSimError, InvalidValue
from constrained_sim.options import CHANGEABLE
from constrained_sim.ros.control import Control
from constrained_sim.ros.entities import Entities, Refused
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.requests import Requests
from constrained_sim.ros.services import recording
from constrained_sim.ros.spawning import Spawning
from constrained_sim.ros.topics import RELIABLE, REQUESTS
from constrained_sim.ros.world import World

try:
    from simulation_interfaces import action, msg, srv
except ImportError:
    action = msg = srv = None

INSTALLED = srv is not None
"""Whether there is a package simulation_interfaces."""

FEATURES = {
    "GetSimulationState": ("SIMULATION_STATE_GETTING",),
    "SetSimulationState": ("SIMULATION_STATE_SETTING", "SIMULATION_STATE_PAUSE"),
    "ResetSimulation": ("SIMULATION_RESET", "SIMULATION_RESET_TIME", "SIMULATION_RESET_STATE"),
    "StepSimulation": ("STEP_SIMULATION_SINGLE", "STEP_SIMULATION_MULTIPLE"),
    "SimulateSteps": ("STEP_SIMULATION_ACTION",),
    "GetEntities": ("ENTITY_CATEGORIES",),
    "GetEntityInfo": ("ENTITY_INFO_GETTING",),
    "GetEntityState": ("ENTITY_STATE_GETTING",),
    "SetEntityState": ("ENTITY_STATE_SETTING",),
    "GetEntityBounds": ("ENTITY_BOUNDS", "ENTITY_BOUNDS_BOX"),
    "SpawnEntity": ("SPAWNING", "SPAWNING_RESOURCE_STRING", "SIMULATION_RESET_SPAWNED"),
    "SpawnEntities": ("SPAWNING_ENTITIES",),
    "DeleteEntity": ("DELETING",),
    "GetSpawnables": ("SPAWNABLES",),
}
"""Constants of SimulatorFeatures that announce a service or an action."""


class SimulationInterfaces:
    """Offers what the installed version has and this simulator can do, each as ``~/`` and its type in snake_case.

    GetSimulatorFeatures, GetSimulationState, SetSimulationState, ResetSimulation, StepSimulation, GetEntities,
    GetEntityInfo, GetEntityState, GetEntitiesStates, SetEntityState, GetEntityBounds, SpawnEntity,
    SpawnEntities, DeleteEntity, GetSpawnables; the action SimulateSteps.

    The simulation is *stopped* after STATE_STOPPED was set, until it is paused or played, or a step is made; else it is
    paused or playing, as ~/pause says; a frozen one counts as paused. A step is a control period, and asks for a paused
    simulation, not a stopped one.

    Resets, and changes of an entity's state, go the way of ~/reset: they are recorded, commands and applied wrenches
    are forgotten, steps are counted anew. SCOPE_TIME alone keeps the robot's state, SCOPE_STATE alone the time; both
    keep contacts, constraints, objects and solver. SCOPE_ALL, and stopping, bring back those of the start.
    SCOPE_SPAWNED brings back the objects of the configuration: what was spawned is gone, what was deleted is back.
    """

    def __init__(self, node: Node, world: World, control: Control, requests: Requests, outputs: Outputs) -> None:
        """Create the services and the action; only where :data:`INSTALLED`."""
        self._node, self._world, self._control = node, world, control
        self._carry_out = {
            name: (kind, recording(name, perform, control, outputs)) for name, (kind, perform) in requests.kinds.items()
        }
        self._parameters_at_start = node.get_parameters(CHANGEABLE)
        self._stopped: Any = None  # the simulator that stands still, reset, since STATE_STOPPED was set
        self._stepping: Any = None
        entities = Entities(world, self._reset, partial(self._request, "set_object_state"))
        spawn, delete = (partial(self._request, name) for name in ("spawn_object", "delete_object"))
        self._spawning = Spawning(world, spawn, delete)
        handlers = {
            "GetSimulatorFeatures": self._get_features,
            "GetSimulationState": self._get_state,
            "SetSimulationState": self._set_state,
            "ResetSimulation": self._reset_scope,
            "GetEntities": entities.names,
            "GetEntityInfo": entities.info,
            "GetEntityState": entities.state,
            "GetEntitiesStates": entities.states,
            "SetEntityState": entities.set_state,
            "GetEntityBounds": entities.bounds,
            "SpawnEntity": self._spawning.spawn,
            "SpawnEntities": self._spawn_each,
            "DeleteEntity": self._spawning.delete,
            "GetSpawnables": self._spawning.spawnables,
        }
        callbacks = {kind: self._answering(handle) for kind, handle in handlers.items()}
        callbacks["StepSimulation"] = self._step
        self._offered = self._offer(callbacks)

    def _offer(self, callbacks: dict[str, Callable[[Any, Any], Any]]) -> list[str]:
        """Create what the installed version of the interfaces has; return its kinds."""
        # The coroutines of steps wait for the loop; meanwhile other services are answered.
        group = ReentrantCallbackGroup()
        offered = [kind for kind in callbacks if hasattr(srv, kind)]
        for kind in offered:
            how = {"qos_profile": REQUESTS, "callback_group": group}
            self._node.create_service(getattr(srv, kind), _name(kind), callbacks[kind], **how)
        if hasattr(action, "SimulateSteps"):
            ActionServer(
                self._node,
                action.SimulateSteps,
                _name("SimulateSteps"),
                self._make_steps,
                callback_group=group,
                cancel_callback=self._cancel_steps,
                goal_service_qos_profile=REQUESTS,
                result_service_qos_profile=REQUESTS,
                cancel_service_qos_profile=REQUESTS,
                feedback_pub_qos_profile=RELIABLE,
            )
            offered.append("SimulateSteps")
        return offered

    def _answering(self, handle: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
        """Return a callback that answers with the result code and the text of what `handle` raises."""

        def callback(request: Any, response: Any) -> Any:
            result = getattr(response, "result", msg.Result())  # the response of GetSimulatorFeatures has none
            try:
                handle(request, response)
                result.result = msg.Result.RESULT_OK
            except ConstrainedSimError as error:
                result.result = getattr(error, "code", msg.Result.RESULT_OPERATION_FAILED)
                result.error_message = str(error)
            except Exception as error:
                self._node.get_logger().error(traceback.format_exc())
                result.result = msg.Result.RESULT_OPERATION_FAILED
                result.error_message = f"internal error: {error!r}"
            return response

        return callback

    # -- the simulation

    def _get_features(self, request: Any, response: Any) -> None:
        names = [name for kind in self._offered for name in FEATURES.get(kind, ())]
        response.features.features = sorted(getattr(msg.SimulatorFeatures, name) for name in names)
        response.features.custom_info = "constrained_sim; entities are its robot and the objects beside it"
        response.features.spawn_formats = ["urdf", "sdf", "mjcf"]

    def _state(self) -> int:
        sim = self._world.sim
        if sim is self._stopped and sim.steps == 0 and self._control.paused:
            return int(msg.SimulationState.STATE_STOPPED)
        stands = self._control.paused or self._world.frozen
        return int(msg.SimulationState.STATE_PAUSED if stands else msg.SimulationState.STATE_PLAYING)

    def _get_state(self, request: Any, response: Any) -> None:
        response.state.state = self._state()

    def _set_state(self, request: Any, response: Any) -> None:
        states, target, present = msg.SimulationState, request.state.state, self._state()
        known = ("STATE_STOPPED", "STATE_PLAYING", "STATE_PAUSED", "STATE_QUITTING")
        names = {getattr(states, name): name for name in known}
        if target not in names:
            raise Refused(msg.Result.RESULT_FEATURE_UNSUPPORTED, f"state: got {target}, allowed: {names}")
        if target == present:
            raise Refused(response.ALREADY_IN_TARGET_STATE, f"state: got {names[target]}, allowed: another one")
        if target == states.STATE_PLAYING and self._world.frozen:
            why = f"state: got STATE_PLAYING of a frozen simulation ({self._world.frozen}), allowed: one that was reset"
            raise Refused(response.STATE_TRANSITION_ERROR, why)
        stops = target in (states.STATE_STOPPED, states.STATE_QUITTING)
        if stops and present != states.STATE_STOPPED:
            try:
                self._reset_all()
            except ConstrainedSimError as error:
                raise Refused(response.STATE_TRANSITION_ERROR, str(error)) from error
        self._stopped = self._world.sim if stops else None
        self._control.pause(target != states.STATE_PLAYING)
        if target == states.STATE_QUITTING:
            self._control.stop()

    def _reset_scope(self, request: Any, response: Any) -> None:
        scope, time, state, spawned = request.scope, request.SCOPE_TIME, request.SCOPE_STATE, request.SCOPE_SPAWNED
        if scope in (request.SCOPE_DEFAULT, request.SCOPE_ALL):
            self._reset_all()
            return
        if scope & ~(time | state | spawned):
            why = f"scope: got {scope}, allowed: {request.SCOPE_ALL}, or a sum of {time}, {state} and {spawned}"
            raise Refused(msg.Result.RESULT_FEATURE_UNSUPPORTED, why)
        self._reset(
            keep_time=not scope & time,
            keep_state=not scope & state,
            keep_objects=not scope & spawned,
            keep_constraints=True,
        )

    def _reset_all(self) -> None:
        """Bring back time, state, contacts, constraints and parameters of the start."""
        self._reset()
        launched = self._parameters_at_start
        changed = [one for one in launched if one.value != self._node.get_parameter(one.name).value]
        if changed:
            result = self._node.set_parameters_atomically(changed)
            if not result.successful:
                raise ConstrainedSimError(result.reason)

    def _reset(self, **fields: Any) -> None:
        """Carry out a request of ~/reset; a stopped simulation stays so."""
        stopped = self._state() == msg.SimulationState.STATE_STOPPED
        self._request("reset", **fields)
        self._stopped = self._world.sim if stopped else None

    def _request(self, which: str, /, **fields: Any) -> None:
        """Carry out a request of one of the node's own services."""
        kind, carry_out = self._carry_out[which]
        carry_out(kind.Request(**fields), kind.Response())  # type: ignore[attr-defined]

    def _spawn_each(self, request: Any, response: Any) -> None:
        """Answer SpawnEntities: each request as SpawnEntity answers it, in their order and at one boundary.

        Raises:
            Refused: one is; the others are there.
        """
        spawn = self._answering(self._spawning.spawn)
        response.results = [spawn(one, msg.SpawnResult()) for one in request.spawn_requests]
        refused = [one.result for one in response.results if one.result.result != msg.Result.RESULT_OK]
        if refused:
            why = f"{len(refused)} of {len(response.results)} are refused: {refused[0].error_message}"
            raise Refused(response.ENTITIES_SPAWN_FAILED, why)

    # -- steps

    async def _step(self, request: Any, response: Any) -> Any:
        try:
            why = await self._request_steps(request.steps)
        except ConstrainedSimError as error:
            why = str(error)
        _fill(response.result, why)
        return response

    async def _make_steps(self, goal: Any) -> Any:
        """Carry out a goal of SimulateSteps."""
        steps, result = goal.request.steps, action.SimulateSteps.Result()

        def report(left: int) -> None:
            goal.publish_feedback(action.SimulateSteps.Feedback(completed_steps=steps - left, remaining_steps=left))

        why = "cancelled"
        if not goal.is_cancel_requested:
            try:
                done = self._request_steps(steps, report)
                self._stepping = goal
                why = await done
            except ConstrainedSimError as error:
                why = str(error)
        _fill(result.result, why)
        if goal.is_cancel_requested:
            goal.canceled()
        elif why:
            goal.abort()
        else:
            goal.succeed()
        return result

    def _request_steps(self, steps: int, after_each: Callable[[int], None] = lambda left: None) -> Future:
        """Ask for `steps`, as :meth:`Control.request_steps` does, of a simulation that is not stopped."""
        if self._state() == msg.SimulationState.STATE_STOPPED:
            raise InvalidValue("step", "a stopped simulation", "a paused one: set STATE_PAUSED first")
        return self._control.request_steps(steps, after_each)

    def _cancel_steps(self, goal: Any) -> CancelResponse:
        if goal is self._stepping:
            self._control.end_steps("cancelled")
        return CancelResponse.ACCEPT


def _name(kind: str) -> str:
    """Return the name of the service or action of type `kind`."""
    return "~/" + re.sub("(?!^)(?=[A-Z])", "_", kind).lower()


def _fill(result: Any, why: str) -> None:
    """Say that a request succeeded, or `why` it did not."""
    result.result = msg.Result.RESULT_OPERATION_FAILED if why else msg.Result.RESULT_OK
    result.error_message = why
