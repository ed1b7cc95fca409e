"""SpawnEntity, SpawnEntities, DeleteEntity and GetSpawnables of the package simulation_interfaces."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from constrained_sim.exceptions import (
    ConfigError,
    DuplicateName,
    InvalidValue,
    ModelError,
    UnknownName,
    ViolatedConstraint,
)
from constrained_sim.objects.world_object import primitive
from constrained_sim.ros.entities import Refused
from constrained_sim.ros.world import World

try:
    from simulation_interfaces import msg
except ImportError:
    msg = None

SPAWNABLE = {"box": (0.1, 0.1, 0.1), "sphere": (0.05,), "cylinder": (0.05, 0.1)}
"""Shapes that are offered, with their lengths [m]; each has a mass of 1 kg."""

FRICTION = 0.5
"""Of the shapes that are offered: rubber on most floors."""

SUFFIXES = (".urdf", ".sdf", ".xml")


class Spawning:
    """Spawns and deletes objects, as the requests spawn_object and delete_object do."""

    def __init__(self, world: World, spawn: Callable[..., None], delete: Callable[..., None]) -> None:
        """Act on `world`; `spawn` and `delete` take the fields of a SpawnObject and a DeleteObject request."""
        self._world, self._carry_out_spawn, self._carry_out_delete = world, spawn, delete

    def spawn(self, request: Any, response: Any) -> None:
        """Answer SpawnEntity, or one request among SpawnEntities, whose fields are the same.

        Raises:
            Refused: with the code for what is wrong.
        """
        # Version 1.x has the resource in the request itself.
        resource = getattr(request, "entity_resource", request)
        text = resource.uri or resource.resource_string
        if not text:
            raise Refused(response.NO_RESOURCE, "resource: got none, allowed: a uri or a resource_string")
        if request.entity_namespace:
            why = f"entity_namespace: got {request.entity_namespace!r}, allowed: none, for objects have no topics"
            raise Refused(response.NAMESPACE_INVALID, why)
        frame, frames = request.initial_pose.header.frame_id, self._world.config.node.frames
        if not frames.is_world(frame):
            raise Refused(response.INVALID_POSE, f"frame_id: got {frame!r}, allowed: {frames.world!r} or nothing")
        name = self._name(request)
        try:
            self._carry_out_spawn(name=name, description=text, pose=request.initial_pose.pose)
        except (DuplicateName, ViolatedConstraint, InvalidValue, UnknownName, ModelError, ConfigError) as error:
            raise Refused(self._code(error, response), str(error)) from error
        response.entity_name = name

    def delete(self, request: Any, response: Any) -> None:
        """Answer DeleteEntity.

        Raises:
            Refused: the robot, which stays; no such entity; or one that a constraint is on.
        """
        name, robot = request.entity, self._world.config.robot
        if name == robot.model.name:
            raise Refused(msg.Result.RESULT_OPERATION_FAILED, f"entity: got {name!r}, the robot, allowed: an object")
        try:
            self._carry_out_delete(name=name)
        except UnknownName as error:
            raise Refused(msg.Result.RESULT_NOT_FOUND, str(error)) from error

    def spawnables(self, request: Any, response: Any) -> None:
        """Answer GetSpawnables: shapes, the objects of the configuration, and descriptions in the folders asked for.

        Raises:
            Refused: a source that is no folder here.
        """
        found = [self._spawnable("", primitive(shape, size, 1.0, FRICTION).urdf, f"{shape} {size} m, 1 kg")
                 for shape, size in SPAWNABLE.items()]  # fmt: skip
        for entry in self._world.configured.robot.objects:
            if entry.body.urdf:
                found.append(self._spawnable("", entry.body.urdf, entry.name))
        for source in request.sources:
            folder = Path(source.removeprefix("file://"))
            if not folder.is_dir():
                raise Refused(msg.Result.RESULT_NOT_FOUND, f"source: got {source!r}, allowed: a folder on this machine")
            found += [self._spawnable(f"file://{file}", "", file.stem) for file in _descriptions(folder.resolve())]
        response.spawnables = found

    def _spawnable(self, uri: str, text: str, what: str) -> Any:
        if "entity_resource" in msg.Spawnable.get_fields_and_field_types():
            return msg.Spawnable(entity_resource=msg.Resource(uri=uri, resource_string=text), description=what)
        return msg.Spawnable(uri=uri or text, description=what)

    def _name(self, request: Any) -> str:
        """Return the name that is asked for, with a number behind it where it is taken and may be another."""
        taken = {entry.name for entry in self._world.config.robot.objects} | {self._world.config.robot.model.name}
        name = request.name or ("object" if request.allow_renaming else "")
        if name not in taken or not request.allow_renaming:
            return name
        return next(other for number in itertools.count(1) if (other := f"{name}_{number}") not in taken)

    @staticmethod
    def _code(error: Exception, response: Any) -> int:
        """Return the result code for what was wrong with a request."""
        if isinstance(error, DuplicateName):
            return int(response.NAME_NOT_UNIQUE)
        if isinstance(error, ViolatedConstraint):
            return int(response.INVALID_POSE)
        if isinstance(error, InvalidValue):
            if error.what == "name of an object":
                return int(response.NAME_INVALID)
            return int(response.INVALID_POSE if "pose" in error.what else response.UNSUPPORTED_FORMAT)
        return int(response.UNSUPPORTED_FORMAT if isinstance(error, UnknownName) else response.RESOURCE_PARSE_ERROR)


def _descriptions(folder: Path) -> Iterator[Path]:
    """Yield the files in `folder` that may be descriptions, by name."""
    return (file for file in sorted(folder.iterdir()) if file.suffix in SUFFIXES)
