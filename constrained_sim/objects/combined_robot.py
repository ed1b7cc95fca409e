"""A robot and the objects beside it as one tree, and states carried over from one such tree to another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pinocchio as pin

from constrained_sim.collision.robot_shapes import mesh_path
from constrained_sim.constraints import Constraint
from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.descriptions.description import refuse_massless_joints
from constrained_sim.exceptions import DuplicateName, ModelError
from constrained_sim.objects.world_object import WorldObject
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, items
from constrained_sim.wrench import Wrench

NAMES = ("name", "link", "link_a", "link_b", "joint", "reference_joint")
"""Fields of constraints that hold names, which get the prefix of their object."""


def combine(robot: Robot, objects: Iterable[WorldObject]) -> Robot:
    """Return `robot` with these `objects` beside it, see :meth:`~constrained_sim.Robot.with_objects`."""
    objects = items("objects", objects, WorldObject, "instances of WorldObject")
    bare = robot.without_objects
    _check_names(bare, objects)
    if not objects:
        return bare
    model, gravity = pin.Model(bare.model), bare.model.gravity
    springs, constraints = dict(bare.springs), list(bare.constraints)
    elements, ignored = list(bare.collision_elements), list(bare.ignored)
    for entry in objects:
        prefix, body = entry.prefix, entry.body
        model = _appended(model, _prefixed_model(body.model, prefix), entry.mount())
        if body.root_link == WORLD and not model.existFrame(entry.base_link):
            model.addFrame(pin.Frame(entry.base_link, 0, 0, entry.mount(), pin.FrameType.OP_FRAME))
        springs |= {prefix + joint: spring for joint, spring in body.springs.items()}
        constraints += [_prefixed_constraint(constraint, entry) for constraint in body.constraints]
        elements += _prefixed_elements(body, prefix)
        ignored += [f"{entry.name}: {line}" for line in body.ignored]
    model.gravity, model.name = gravity, bare.model.name
    refuse_massless_joints(model)
    return replace(
        bare,
        model=model,
        springs=springs,
        constraints=tuple(constraints),
        collision_elements=tuple(elements),
        ignored=tuple(ignored),
        objects=objects,
        alone=bare,
    )


def _check_names(robot: Robot, objects: Iterable[WorldObject]) -> None:
    """Refuse names that mean two things.

    Raises:
        DuplicateName: two objects of one name, one of the robot's name, or one whose prefix a name of the robot has.
    """
    taken = {
        robot.model.name,
        WORLD,
        *(frame.name.partition("/")[0] for frame in robot.model.frames if "/" in frame.name),
    }
    for entry in objects:
        if entry.name in taken:
            raise DuplicateName(entry.name, "objects")
        taken.add(entry.name)


def _appended(model: pin.Model, other: pin.Model, mount: pin.SE3) -> pin.Model:
    """Return a model with both trees, the `other` one at `mount` in the world; both have copies of their own.

    Pinocchio looks up frames by name alone, where a link may have the name of a joint: each is unlike all others
    meanwhile.
    """
    names: dict[str, str] = {}
    for part in (model, other):
        for frame in list(part.frames)[1:]:
            if frame.type != pin.FrameType.JOINT:
                unlike = f"{len(names)}: {frame.name}"
                names[unlike], frame.name = frame.name, unlike
    whole = pin.appendModel(model, other, 0, mount)
    for frame in whole.frames:
        frame.name = names.get(frame.name, frame.name)
    return whole


def _prefixed_model(model: pin.Model, prefix: str) -> pin.Model:
    """Return a copy in which all names begin with `prefix`."""
    model = pin.Model(model)
    for index in range(1, model.njoints):
        model.names[index] = prefix + model.names[index]
    for frame in list(model.frames)[1:]:
        frame.name = prefix + frame.name
    return model


def _prefixed_constraint(constraint: Constraint, entry: WorldObject) -> Constraint:
    """Return a constraint of an object as one of the whole tree.

    Raises:
        ModelError: it holds the object to the world, in whose frame the object's pose is not; or it has rows of the
            user's, which know the joints of the object alone.
    """
    try:
        names = [field.name for field in fields(constraint) if field.name in NAMES]  # type: ignore[arg-type]
    except TypeError as error:
        kind = f"the {constraint.kind} constraint {constraint.name!r}, with rows for the joints of the object alone"
        raise ModelError(f"object {entry.name!r}: got {kind}, allowed: kinds that name links or joints") from error
    own = {name: getattr(constraint, name) for name in names}
    if WORLD in own.values():
        raise ModelError(f"object {entry.name!r}: got the constraint {constraint.name!r} to the world, allowed: none")
    return replace(constraint, **{key: entry.prefix + name for key, name in own.items()})  # type: ignore[type-var]


def _prefixed_elements(body: Robot, prefix: str) -> Iterator[CollisionElement]:
    """Yield the collision geometry of an object; files of meshes are found from its own folder."""
    for element in body.collision_elements:
        file = str(Path(mesh_path(body, element.file)).resolve()) if element.file else ""
        yield replace(element, link=prefix + element.link, name=prefix + element.name, file=file)


def kept_objects(before: Robot, after: Robot) -> set[str]:
    """Return the names of the objects that are beside the robot both `before` and `after`."""
    return {entry.name for entry in after.objects if any(entry.is_same(other) for other in before.objects)}


def can_act(wrench: Wrench, robot: Robot) -> bool:
    """Return whether `robot` has the links that a `wrench` names: they may have gone with an object."""
    return {wrench.link, wrench.axes} <= set(robot.links)


def carried_over(before: Robot, after: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the state (nq,), (nv,) of `after` in which all that was in `before` is as it was at (q, v).

    What is new is where it begins, at rest.
    """
    q_after, v_after = after.neutral(), np.zeros(after.nv)
    kept = kept_objects(before, after)
    for name, joint in after.joint_models.items():
        owner = after.owner_of(name)
        if not owner or owner in kept:
            old = before.joint_models[name]
            q_after[joint.idx_q : joint.idx_q + joint.nq] = q[old.idx_q : old.idx_q + old.nq]
            v_after[joint.idx_v : joint.idx_v + joint.nv] = v[old.idx_v : old.idx_v + old.nv]
    return q_after, v_after
