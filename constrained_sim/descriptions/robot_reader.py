"""Robots from descriptions in files: what Robot.from_urdf, from_sdf and from_mjcf do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.description import Description, refuse_impossible_bodies, refuse_massless_joints
from constrained_sim.descriptions.document import errors_in, read_text
from constrained_sim.descriptions.mjcf import read_mjcf
from constrained_sim.descriptions.sdf import read_sdf
from constrained_sim.descriptions.urdf import read_urdf
from constrained_sim.exceptions import ModelError
from constrained_sim.package_paths import resolve_path
from constrained_sim.robot import WORLD, Robot, actuated_of
from constrained_sim.validation import finite_array, flag


def read_robot_from_urdf(
    cls: type[Robot],
    path_or_xml: str | os.PathLike[str],
    floating_base: bool,
    gravity: Sequence[float],
    actuated_joints: Sequence[str] | None,
) -> Robot:
    """Read a URDF, see :meth:`~constrained_sim.Robot.from_urdf`."""
    path_or_xml = _located(path_or_xml)
    text = read_text(path_or_xml)
    folder = _folder(path_or_xml, text)
    with errors_in(path_or_xml):
        description = read_urdf(text, flag("floating_base", floating_base), folder)
        return _robot_of(cls, description, gravity, actuated_joints, folder)


def read_robot_from_sdf(
    cls: type[Robot],
    path_or_xml: str | os.PathLike[str],
    floating_base: bool,
    gravity: Sequence[float],
    actuated_joints: Sequence[str] | None,
) -> Robot:
    """Read an SDF, see :meth:`~constrained_sim.Robot.from_sdf`."""
    path_or_xml = _located(path_or_xml)
    text = read_text(path_or_xml)
    with errors_in(path_or_xml):
        description = read_sdf(text, flag("floating_base", floating_base))
        return _robot_of(cls, description, gravity, actuated_joints, _folder(path_or_xml, text))


def read_robot_from_mjcf(
    cls: type[Robot],
    path_or_xml: str | os.PathLike[str],
    gravity: Sequence[float] | None,
    actuated_joints: Sequence[str] | None,
) -> Robot:
    """Read an MJCF, see :meth:`~constrained_sim.Robot.from_mjcf`."""
    path_or_xml = _located(path_or_xml)
    text = read_text(path_or_xml)
    folder = _folder(path_or_xml, text)
    with errors_in(path_or_xml):
        return _robot_of(cls, read_mjcf(text, folder), gravity, actuated_joints, folder)


def _robot_of(
    cls: type[Robot],
    description: Description,
    gravity: Sequence[float] | None,
    actuated_joints: Sequence[str] | None,
    folder: Path | None,
) -> Robot:
    model = description.model
    if model.nv == 0:
        raise ModelError("the robot description has no moving joint")
    if gravity is not None:
        model.gravity = pin.Motion(finite_array("gravity", gravity, (3,)), np.zeros(3))
    refuse_impossible_bodies(model)
    refuse_massless_joints(model)
    if any(f.name == WORLD and f.parentJoint and f.type == pin.FrameType.BODY for f in model.frames):
        raise ModelError(f"link {WORLD!r} moves: that name means the world; give the link another one, or no base")
    names = tuple(model.names)[2 if description.floating_base else 1 :]
    if actuated_joints is None:
        actuated_joints = [name for name in names if name not in description.passive]
    return cls(
        model,
        actuated_of(names, actuated_joints),
        description.floating_base,
        description.text,
        description.constraints,
        description.springs,
        folder,
        description.collisions,
        description.ignored,
        description.effort_ranges,
        visuals=description.visuals,
        free_poses=description.free_poses,
    )


def _located(path_or_xml: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the file that ``package://`` means; anything else as it is.

    Raises:
        ConfigError: no such package.
        MissingLibrary: the package of robots that this one refers to is not installed.
    """
    if isinstance(path_or_xml, str) and path_or_xml.startswith("package://"):
        return resolve_path(path_or_xml, Path.cwd())
    return path_or_xml


def _folder(path_or_xml: str | os.PathLike[str], text: str) -> Path | None:
    """Return the folder of a description's file; None where it was given as text."""
    return None if text == path_or_xml else Path(path_or_xml).resolve().parent
