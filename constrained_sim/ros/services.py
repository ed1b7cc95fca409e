"""The services of the node: each refuses with a message, or takes effect whole at a period boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import SetBool

from constrained_sim import srv
from constrained_sim.config import configured_solver
from constrained_sim.constraints import PointContact
from constrained_sim.contact import METHODS
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue, UnknownName
from constrained_sim.ros.control import Control
from constrained_sim.ros.conversions import contact_from_message, contact_to_message, to_time
from constrained_sim.ros.world import World
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array, finite_array, lookup


class Services:
    """Offers the services, and the parameters that take the same path as set_solver."""

    def __init__(self, node: Node, world: World, control: Control) -> None:
        """Create the services."""
        self._node, self._world, self._control = node, world, control
        node.create_service(srv.AddContact, "~/add_contact", self._refusing(self._add_contact))
        node.create_service(srv.RemoveContact, "~/remove_contact", self._refusing(self._remove_contact))
        node.create_service(srv.ListContacts, "~/list_contacts", self._refusing(self._list_contacts))
        node.create_service(srv.SetSolver, "~/set_solver", self._refusing(self._set_solver))
        node.create_service(srv.Reset, "~/reset", self._refusing(self._reset))
        node.create_service(SetBool, "~/pause", self._refusing(self._pause))
        # The coroutine of a step waits for the loop; meanwhile other services are answered.
        node.create_service(srv.Step, "~/step", self._step, callback_group=ReentrantCallbackGroup())

    def _refusing(self, handle: Callable[[Any, Any], None]) -> Callable[[Any, Any], Any]:
        """Return a callback that answers with the text of our exceptions."""

        def callback(request: Any, response: Any) -> Any:
            try:
                handle(request, response)
                response.success = True
            except ConstrainedSimError as error:
                response.success, response.message = False, str(error)
            if hasattr(response, "stamp"):
                response.stamp = to_time(self._world.stamp)
            return response

        return callback

    def _add_contact(self, request: Any, response: Any) -> None:
        contact = contact_from_message(request.contact)
        self._world.sim.add(contact)
        self._control.changed(f"contact {contact.name!r} added")

    def _remove_contact(self, request: Any, response: Any) -> None:
        contacts = {contact.name: contact for contact in self._contacts()}
        lookup("contact", request.name, contacts)
        self._world.sim.remove(request.name)
        self._control.changed(f"contact {request.name!r} removed")

    def _list_contacts(self, request: Any, response: Any) -> None:
        response.contacts = [contact_to_message(contact) for contact in self._contacts()]

    def _contacts(self) -> list[PointContact]:
        return [constraint for constraint in self._world.sim.constraints if isinstance(constraint, PointContact)]

    def _set_solver(self, request: Any, response: Any) -> None:
        sim = self._world.sim
        response.solver, response.stepper = sim.solver.name, sim.stepper_name
        response.factorization, response.contact_method = (
            getattr(sim.solver, "factorization", ""),
            sim.contact_method,
        )
        wanted = {
            key: getattr(request, key) for key in ("solver", "stepper", "contact_method") if getattr(request, key)
        }
        if request.solver or request.factorization:
            wanted["factorization"] = request.factorization
        if wanted:
            parameters = [Parameter(key, value=value) for key, value in wanted.items()]
            result = self._node.set_parameters_atomically(parameters)
            if not result.successful:
                raise ConstrainedSimError(result.reason)
        response.solver, response.stepper = sim.solver.name, sim.stepper_name
        response.factorization, response.contact_method = (
            getattr(sim.solver, "factorization", ""),
            sim.contact_method,
        )

    def change_options(self, values: dict[str, Any]) -> None:
        """Change solver, factorization, stepper, contact_method or real_time_factor: all of `values`, or none.

        Raises:
            ConstrainedSimError: a value that is not allowed.
        """
        sim = self._world.sim
        factorization = values.get(
            "factorization", "" if "solver" in values else getattr(sim.solver, "factorization", "")
        )
        solver = configured_solver(values.get("solver", sim.solver.name), factorization)
        stepper = values.get("stepper", sim.stepper_name)
        lookup("stepper", stepper, STEPPERS)
        method = values.get("contact_method", sim.contact_method)
        lookup("contact method", method, METHODS)
        if "real_time_factor" in values:
            self._control.set_real_time_factor(values["real_time_factor"])
        sim.set_solver(solver)
        sim.set_contact_method(method)
        if stepper != sim.stepper_name:
            sim.set_stepper(stepper)
        self._control.changed(", ".join(f"{key} is {value!r}" for key, value in values.items()))

    def _pause(self, request: Any, response: Any) -> None:
        self._control.pause(request.data)
        response.message = "paused" if request.data else "running"

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

    def _reset(self, request: Any, response: Any) -> None:
        q, v = self._initial_state(request)
        self._world.reset(q, v, request.keep_time, request.keep_constraints)
        self._control.was_reset()

    def _initial_state(self, request: Any) -> tuple[Array, Array]:
        """Return the state that a Reset request asks for: what it does not name is as configured."""
        config = self._world.config
        robot, joints = config.robot, request.joints
        names = list(joints.name)
        if len(set(names)) != len(names):
            raise InvalidValue("joints of a reset", names, "each joint once")
        q, v = config.q.copy(), config.v.copy()
        if joints.position:
            positions = finite_array("position of a reset", joints.position, (len(names),))
            given = robot.configuration(dict(zip(names, positions.tolist(), strict=True)))
            for name in names:
                joint = robot.model.joints[robot.model.getJointId(name)]
                q[joint.idx_q : joint.idx_q + joint.nq] = given[joint.idx_q : joint.idx_q + joint.nq]
        if joints.velocity:
            velocities = finite_array("velocity of a reset", joints.velocity, (len(names),))
            for name, velocity in zip(names, velocities, strict=True):
                if name not in robot.velocity_names:
                    raise UnknownName("joint", name, robot.velocity_names)
                v[robot.velocity_names.index(name)] = velocity
        if names and not (joints.position or joints.velocity):
            raise InvalidValue("joints of a reset", names, "names with positions, velocities or both")
        if request.set_base:
            pose, twist = request.base_pose, request.base_twist
            position, turn = pose.position, pose.orientation
            q[:7] = robot.configuration({}, [position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w])[:7]
            linear, angular = twist.linear, twist.angular
            rates = [linear.x, linear.y, linear.z, angular.x, angular.y, angular.z]
            v[:6] = finite_array("base_twist of a reset", rates, (6,))
        return q, np.asarray(v)
