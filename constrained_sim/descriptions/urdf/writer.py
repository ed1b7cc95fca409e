"""A tree of bodies as URDF: for tools that read nothing else, where a robot comes as SDF or MJCF."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.joint_properties import property_of
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array

SHAPES = {
    "sphere": ("sphere", ("radius",)),
    "cylinder": ("cylinder", ("radius", "length")),
    "capsule": ("cylinder", ("radius", "length")),
}
"""Element and attributes of shapes that URDF has, or that it has nothing closer for."""


def urdf_of(robot: Robot) -> str:
    """Return the tree of `robot` as URDF: links, joints with limits and losses, inertias, its geometry as looks.

    URDF has no closed loops, and no joints with several degrees of freedom but ``floating``: the former are left out,
    the latter are of this type, whatever they are. The frame of a joint that no link has becomes the link
    ``<joint>_frame``.
    """
    return _Writer(robot).text()


class _Writer:
    """Writes the links from the root on; the frame of joint i is a link, too, where no link has it."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._model = robot, robot.model
        self._root = Element("robot", name=robot.model.name or "robot")
        self._links: list[list[tuple[str, pin.SE3]]] = [[] for _ in self._model.names]
        for frame in self._model.frames:
            if frame.type == pin.FrameType.BODY:
                self._links[frame.parentJoint].append((frame.name, pin.SE3(frame.placement)))
        self._base = 1 if robot.floating_base else 0
        self._carriers = [self._carrier(joint) for joint in range(self._model.njoints)]

    def _carrier(self, joint: int) -> str:
        """Return the link whose frame is that of `joint`."""
        at_joint = (name for name, placement in self._links[joint] if placement.isIdentity(0.0))
        return next(at_joint, WORLD if joint == self._base else f"{self._model.names[joint]}_frame")

    def text(self) -> str:
        for joint in range(self._base, self._model.njoints):
            self._write_links(joint)
            if joint != self._base:
                self._write_joint(joint)
        ElementTree.indent(self._root)
        return ElementTree.tostring(self._root, encoding="unicode")

    def _write_links(self, joint: int) -> None:
        carrier = self._carriers[joint]
        link = SubElement(self._root, "link", name=carrier)
        if self._model.inertias[joint].mass:
            _write_inertia(link, self._model.inertias[joint])
        self._write_shapes(link)
        for name, placement in self._links[joint]:
            if name != carrier:
                self._write_shapes(SubElement(self._root, "link", name=name))
                self._connect(f"{name}_fixed", "fixed", carrier, name, placement)

    def _write_joint(self, index: int) -> None:
        name, model = self._model.names[index], self._model.joints[index]
        axis, kind = _axis(model)
        joint = self._connect(
            name, kind, self._carriers[self._model.parents[index]], self._carriers[index],
            self._model.jointPlacements[index],
        )  # fmt: skip
        if axis is None:
            return
        SubElement(joint, "axis", xyz=_numbers(axis))
        limits = {
            "effort": property_of(self._model, "effort")[model.idx_v],
            "velocity": property_of(self._model, "velocity")[model.idx_v],
        }
        if kind != "continuous":
            limits["lower"] = self._model.lowerPositionLimit[model.idx_q]
            limits["upper"] = self._model.upperPositionLimit[model.idx_q]
        finite = {key: f"{np.clip(value, -1e9, 1e9):.17g}" for key, value in limits.items()}
        SubElement(joint, "limit", finite)
        losses = {key: float(property_of(self._model, key)[model.idx_v]) for key in ("damping", "friction")}
        if any(losses.values()):
            SubElement(joint, "dynamics", {key: f"{value:.17g}" for key, value in losses.items()})

    def _connect(self, name: str, kind: str, parent: str, child: str, placement: pin.SE3) -> Element:
        joint = SubElement(self._root, "joint", name=name, type=kind)
        SubElement(joint, "parent", link=parent)
        SubElement(joint, "child", link=child)
        _write_origin(joint, placement)
        return joint

    def _write_shapes(self, link: Element) -> None:
        for shape in self._robot.collision_elements:
            if shape.link == link.get("name"):
                for role in ("visual", "collision"):
                    _write_shape(link, role, shape, self._file(shape))

    def _file(self, shape: CollisionElement) -> str:
        folder = self._robot.folder
        return f"file://{folder / shape.file}" if folder is not None and "://" not in shape.file else shape.file


def _axis(model: pin.JointModel) -> tuple[Array | None, str]:
    """Return the axis of a joint in its own frame and its type in URDF; None: it has no single axis."""
    if model.nv != 1:
        return None, "floating"
    data = model.createData()
    model.calc(data, _neutral(model))
    linear, angular = np.split(np.asarray(data.S).ravel(), 2)
    if angular.any():
        return angular, "continuous" if model.nq == 2 else "revolute"
    return linear, "prismatic"


def _neutral(model: pin.JointModel) -> Array:
    q = np.zeros(model.idx_q + model.nq)
    if model.nq == 2:
        q[model.idx_q] = 1.0
    return q


def _write_inertia(link: Element, inertia: pin.Inertia) -> None:
    inertial = SubElement(link, "inertial")
    _write_origin(inertial, pin.SE3(np.eye(3), inertia.lever))
    SubElement(inertial, "mass", value=f"{inertia.mass:.17g}")
    matrix = inertia.inertia
    entries = {f"i{'xyz'[i]}{'xyz'[j]}": f"{matrix[i, j]:.17g}" for i in range(3) for j in range(i, 3)}
    SubElement(inertial, "inertia", entries)


def _write_shape(link: Element, role: str, shape: CollisionElement, file: str) -> None:
    if shape.kind in SHAPES:
        tag, names = SHAPES[shape.kind]
        attributes = dict(zip(names, (f"{value:.17g}" for value in shape.size), strict=True))
    elif shape.kind == "box":
        tag, attributes = "box", {"size": _numbers(shape.size)}
    elif shape.kind == "mesh" and shape.file:
        tag, attributes = "mesh", {"filename": file, "scale": _numbers(shape.size or (1.0, 1.0, 1.0))}
    else:
        return
    element = SubElement(link, role)
    _write_origin(element, shape.placement)
    SubElement(SubElement(element, "geometry"), tag, attributes)


def _write_origin(element: Element, placement: pin.SE3) -> None:
    rpy = pin.rpy.matrixToRpy(placement.rotation)
    SubElement(element, "origin", xyz=_numbers(placement.translation), rpy=_numbers(rpy))


def _numbers(values: Sequence[float] | Array) -> str:
    return " ".join(f"{value:.17g}" for value in values)
