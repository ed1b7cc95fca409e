"""Changes of a world that services and parameters ask for; a replay takes the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose, Twist

from constrained_sim import srv
from constrained_sim.constraints.constraint import Bilateral
from constrained_sim.contact import Plane
from constrained_sim.contact_solvers import METHODS
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.objects.combined_robot import carried_over
from constrained_sim.options import configured_solver
from constrained_sim.ros.constraint_messages import constraint_from_message, constraint_to_message
from constrained_sim.ros.conversions import named_values, pose_values, to_nanoseconds, xyz
from constrained_sim.ros.declarations import (
    contact_from_message,
    contact_to_message,
    wrench_from_request,
)
from constrained_sim.ros.object_requests import object_from_request, state_from_request, without
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.world import World
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array, finite_array, lookup


class Change(NamedTuple):
    """What a request has changed.

    Attributes:
        text: for people.
        publish: publishes what follows from it at once.
        warning: what did not go as it was asked; empty: all did.
    """

    text: str
    publish: Callable[[], None] = lambda: None
    warning: str = ""


class Requests:
    """Carries out requests at a period boundary: each takes effect whole, or raises and changes nothing."""

    def __init__(self, world: World, outputs: Outputs) -> None:
        """Act on `world`; what follows at once is published by `outputs`."""
        self._world, self._outputs = world, outputs
        scene = world.config.collisions.scene if world.config.collisions is not None else {}
        self._planes = {name: body for name, body in scene.items() if isinstance(body, Plane)}

    @property
    def kinds(self) -> Mapping[str, tuple[type, Callable[[Any, Any], Change]]]:
        """Service type of each request that changes something, and what carries it out."""
        return {
            "add_contact": (srv.AddContact, self._add_contact),
            "remove_contact": (srv.RemoveContact, self._remove_contact),
            "add_constraint": (srv.AddConstraint, self._add_constraint),
            "remove_constraint": (srv.RemoveConstraint, self._remove_constraint),
            "apply_wrench": (srv.ApplyWrench, self._apply_wrench),
            "reset": (srv.Reset, self._reset),
            "spawn_object": (srv.SpawnObject, self._spawn_object),
            "delete_object": (srv.DeleteObject, self._delete_object),
            "set_object_state": (srv.SetObjectState, self._set_object_state),
        }

    def change_options(self, values: Mapping[str, Any]) -> None:
        """Change solver, factorization, stepper or contact_method: all of `values`, or none.

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
        sim.check_solver(solver)
        if stepper != sim.stepper_name:
            stabilization = self._world.config.simulation.make_stabilization(stepper)
            sim.set_stepper(stepper, stabilization=stabilization)  # the last that may be refused
        sim.set_solver(solver)
        sim.set_contact_method(method)

    def list_contacts(self, request: Any, response: Any) -> None:
        """Fill in the declared contacts, as in effect."""
        response.contacts = [contact_to_message(contact, self._planes) for contact in self._world.contacts.values()]

    def list_constraints(self, request: Any, response: Any) -> None:
        """Fill in the bilateral constraints, disabled ones too."""
        disabled = {constraint.name for constraint in self._world.sim.disabled}
        response.constraints = [
            constraint_to_message(constraint, name not in disabled) for name, constraint in self._bilateral().items()
        ]

    def _add_contact(self, request: Any, response: Any) -> Change:
        contact = contact_from_message(request.contact, self._planes, self._world.link_of)
        self._outputs.check_contact(contact.name)
        self._world.sim.add(contact)
        self._outputs.follow_contacts()
        return Change(f"contact {contact.name!r} added")

    def _remove_contact(self, request: Any, response: Any) -> Change:
        lookup("contact", request.name, self._world.contacts)
        self._world.sim.remove(request.name)
        self._outputs.follow_contacts()
        return Change(f"contact {request.name!r} removed")

    def _add_constraint(self, request: Any, response: Any) -> Change:
        constraint, before = constraint_from_message(request.constraint, self._world.link_of), self._world.sim.state
        impact = self._world.sim.add(constraint, assemble=request.assemble, enabled=request.constraint.enabled)
        text = f"constraint {constraint.name!r} added"
        if impact is not None:
            response.energy_lost = impact.energy_lost
        return Change(text, partial(self._outputs.send_change, impact, before))

    def _remove_constraint(self, request: Any, response: Any) -> Change:
        lookup("constraint", request.name, self._bilateral())
        self._world.sim.remove(request.name)
        return Change(f"constraint {request.name!r} removed")

    def _apply_wrench(self, request: Any, response: Any) -> Change:
        wrench = wrench_from_request(request, self._world.link_of)
        self._world.apply(wrench, to_nanoseconds(request.duration))
        return Change(f"wrench on {wrench.link!r}")

    def _reset(self, request: Any, response: Any) -> Change:
        q, v = self._initial_state(request)
        self._world.reset(q, v, request.keep_time, request.keep_constraints, request.keep_objects)
        self._outputs.follow_contacts()
        given = dict(zip(request.joints.name, request.joints.position, strict=False))
        publish = partial(self._outputs.send_present_state, given if request.keep_state else None)
        return Change("reset", publish, self._warning(given))

    def _warning(self, given: Mapping[str, float]) -> str:
        """Return what is to be said of joints that were put to the positions `given` [rad, m]; empty: nothing."""
        return "; ".join(map(str, self._world.config.warnings_at(given, self._world.sim.state.q)))

    def _spawn_object(self, request: Any, response: Any) -> Change:
        entry = object_from_request(request)
        self._world.change_objects([*self._world.config.robot.objects, entry])
        return Change(f"object {entry.name!r} spawned", self._outputs.follow_objects)

    def _delete_object(self, request: Any, response: Any) -> Change:
        self._world.change_objects(without(self._world.config.robot, request.name))
        return Change(f"object {request.name!r} deleted", self._outputs.follow_objects)

    def _set_object_state(self, request: Any, response: Any) -> Change:
        state = self._world.sim.state
        robot = self._world.config.robot
        q, v = state_from_request(robot, state.q, state.v, request, self._world.freed(robot))
        self._world.reset(q, v, keep_time=True, keep_constraints=True)
        names = [f"{request.state.name}/{name}" for name in request.state.joint_names]
        warning = self._warning(dict(zip(names, request.state.position, strict=False)))
        publish = partial(self._outputs.send_present_state, ())
        return Change(f"state of object {request.state.name!r} set", publish, warning)

    def _bilateral(self) -> dict[str, Bilateral]:
        sim = self._world.sim
        return {c.name: c for c in (*sim.constraints, *sim.disabled) if isinstance(c, Bilateral)}

    def _initial_state(self, request: Any) -> tuple[Array, Array]:
        """Return the state that a Reset request asks for: what it does not name is as configured, or as it is."""
        present, there = self._world.sim.state, self._world.config.robot
        config = self._world.config if request.keep_objects else self._world.configured
        robot, joints = config.robot, request.joints
        names = list(joints.name)
        if len(set(names)) != len(names):
            raise InvalidValue("joints of a reset", names, "each joint once")
        if joints.effort:
            raise InvalidValue("effort of a reset", list(joints.effort), "none: commands give efforts")
        q, v = config.q.copy(), config.v.copy()
        if request.keep_state:
            q, v = carried_over(there, robot, present.q, present.v)
        if joints.position:
            positions = named_values("position of a reset", names, joints.position)
            given = robot.configuration(dict(zip(names, positions.tolist(), strict=True)))
            for name in names:
                joint = robot.joint_models[name]
                q[joint.idx_q : joint.idx_q + joint.nq] = given[joint.idx_q : joint.idx_q + joint.nq]
            q = robot.with_followers(q, names, self._world.freed(robot) if request.keep_constraints else ())
        if joints.velocity:
            velocities = named_values("velocity of a reset", names, joints.velocity)
            for name, velocity in zip(names, velocities, strict=True):
                if name not in robot.velocity_names:
                    raise UnknownName("joint", name, robot.velocity_names)
                v[robot.velocity_names.index(name)] = velocity
        if names and not (joints.position or joints.velocity):
            raise InvalidValue("joints of a reset", names, "names with positions, velocities or both")
        if request.set_base:
            twist = request.base_twist
            q[:7] = robot.configuration({}, pose_values(request.base_pose))[:7]
            v[:6] = finite_array("base_twist of a reset", [*xyz(twist.linear), *xyz(twist.angular)], (6,))
        elif request.base_pose != Pose() or request.base_twist != Twist():
            raise InvalidValue("set_base of a reset", False, "true, where base_pose or base_twist is given")
        return q, np.asarray(v)
