"""Collision geometry: where the links of a robot come near the bodies of a scene, or each other, as point contacts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from xml.etree import ElementTree

import coal
import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim import kinematics
from constrained_sim.constraints.point_contact import BoundContact, PointContact
from constrained_sim.contact.laws import Law, Rigid, SoftLaw
from constrained_sim.contact.scene import SceneBody, checked_scene, placement_of
from constrained_sim.contact.surfaces import Plane
from constrained_sim.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue, ModelError
from constrained_sim.robot import Robot
from constrained_sim.validation import Array, number

MOST_POINTS = 4
"""Contact points of one pair of bodies."""

BAND = 2e-3
"""[m] beyond the nearest point of a body within which its points are taken: what may touch in one step."""

FLAT = 1e-6
"""Share of the normal along a disc below which its lowest point is undefined."""


@dataclass(frozen=True, eq=False)
class Collisions:
    """What the collision geometry of a robot may touch, and how.

    Attributes:
        scene: bodies of the world by name.
        friction: Coulomb coefficient.
        restitution: Newton's coefficient, 0 to 1.
        law: what contacts may do; not a soft one.
        margin: distance [m] from which on a pair is watched; more than a step's approach.
        self_collision: whether links of the robot touch each other, neighbours aside.
        srdf: file or text whose ``disable_collisions`` name pairs of links that do not touch each other.
        excluded: further such pairs.
        package_dirs: folders in which ``package://`` is looked up, beside those around the description's file.

    Raises:
        InvalidValue: a value that is not allowed.
    """

    scene: Mapping[str, SceneBody] = field(default_factory=dict)
    friction: float = 0.0
    restitution: float = 0.0
    law: Law = field(default_factory=Rigid)
    margin: float = 0.02
    self_collision: bool = False
    srdf: str | os.PathLike[str] = ""
    excluded: Sequence[tuple[str, str]] = ()
    package_dirs: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Check all values."""
        object.__setattr__(self, "scene", checked_scene(self.scene))
        number("margin of collisions", self.margin, 0.0, open_lower=True)
        if isinstance(self.law, SoftLaw):
            raise InvalidValue("law of collisions", self.law.name, "rigid, frictionless or sticking")
        self.contact("any", "any", np.zeros(3), Plane(), 0.0)

    def contact(self, name: str, link: str, point: Array, surface: Plane, radius: float) -> PointContact:
        """Return one contact point with these properties."""
        return PointContact(name, link, point, surface, self.law, self.friction, self.restitution, radius)  # type: ignore[arg-type]

    def bind(self, robot: Robot) -> CollisionDetector:
        """Load the geometry of `robot`.

        Raises:
            ModelError: a robot that is not from a URDF, or a mesh that cannot be loaded.
            UnknownName: an excluded link that does not exist.
        """
        return CollisionDetector(self, robot)


class Touch(NamedTuple):
    """One point where two bodies are near.

    Attributes:
        point: (3,) of the first body [m], world frame; the centre if ``radius > 0``.
        other: (3,) a point of the second body's surface there.
        normal: (3,) unit, from the second body to the first.
        radius: [m].
    """

    point: Array
    other: Array
    normal: Array
    radius: float

    @property
    def gap(self) -> float:
        """Distance [m]; negative where they penetrate."""
        return float(self.normal @ (self.point - self.other)) - self.radius


class CollisionDetector:
    """Detects the contacts of one robot.

    Against a plane every shape is exact: a sphere and the ends of a capsule as spheres, boxes and convex hulls by their
    vertices, cylinders by the lowest points of their rims. Other pairs go through coal: bounding spheres first, then
    GJK and EPA with a security margin, and the contact patch. No pair has more than four points.
    """

    def __init__(self, collisions: Collisions, robot: Robot) -> None:
        """See :meth:`Collisions.bind`."""
        self.collisions, self.robot = collisions, robot
        self._shapes = [_Shape.of(robot, shape) for shape in _load(robot, collisions.package_dirs)]
        self._planes = {n: body for n, body in collisions.scene.items() if isinstance(body, Plane)}
        self._bodies = {n: body for n, body in collisions.scene.items() if not isinstance(body, Plane)}
        self._solids = [(name, body.shape(), placement_of(body)) for name, body in self._bodies.items()]
        self._pairs = self._self_pairs() if collisions.self_collision else np.empty((0, 2), dtype=np.intp)
        self._joints = np.array([shape.joint for shape in self._shapes], dtype=np.int64)
        centres = [shape.placement.act(shape.centre) for shape in self._shapes]
        self._centres = np.array(centres).reshape(-1, 3)
        self._bounds = np.array([shape.bound for shape in self._shapes])
        self._request = coal.CollisionRequest()
        self._request.security_margin = collisions.margin
        self._request.num_max_contacts = 1
        self._request.enable_contact = True

    def detect(self, dynamics: Dynamics, horizon: float = 0.0) -> list[BoundContact]:
        """Return the contacts at the configuration of `dynamics`, up to a gap of the margin.

        Among many points of one body, those count as the nearest that will be after `horizon` [s], at the velocity of
        the last :meth:`Dynamics.update`: else a body that falls flat would sink the points that were passed over.
        """
        centres = kinematics.point_positions(self._joints, self._centres, dynamics.placements)
        found: list[BoundContact] = []
        for name, plane in self._planes.items():
            reach = self._bounds + self.collisions.margin + plane.offset
            for index in np.flatnonzero(centres @ plane.normal <= reach):
                shape = self._shapes[index]
                found += self._contacts(
                    shape, name, 0, self._on_plane(shape, plane, dynamics, horizon), dynamics, plane
                )
        if self._solids or len(self._pairs):
            found += self._near_solids(centres, dynamics)
        return found

    def _on_plane(self, shape: _Shape, plane: Plane, dynamics: Dynamics, horizon: float) -> list[Touch]:
        """Return where a shape is near a plane, or will be."""
        points = shape.towards(plane.normal, dynamics)
        gaps = points @ plane.normal - plane.offset - shape.radius
        if horizon:
            gaps += horizon * np.minimum(shape.velocities(points, dynamics) @ plane.normal, 0.0)
        near = np.flatnonzero(gaps <= min(self.collisions.margin, max(float(gaps.min()), 0.0) + BAND))
        if not near.size:
            return []
        chosen = near[spread(points[near], gaps[near], plane.axes)]
        return [Touch(points[i], plane.offset * plane.normal, plane.normal, shape.radius) for i in chosen]

    # -- solids

    def _near_solids(self, centres: Array, dynamics: Dynamics) -> list[BoundContact]:
        """Return the contacts with the boxes, spheres and meshes of the scene, and of the robot with itself."""
        placements = [shape.placement_in_world(dynamics) for shape in self._shapes]
        bounds = self._bounds
        found: list[BoundContact] = []
        for name, solid, placement in self._solids:
            solid.computeLocalAABB()
            reach = bounds + solid.aabb_radius + self.collisions.margin
            near = np.linalg.norm(centres - placement.act(solid.aabb_center), axis=1) <= reach
            for index in np.flatnonzero(near):
                touches = self._narrow(self._shapes[index], placements[index], solid, placement)
                found += self._contacts(self._shapes[index], name, 0, touches, dynamics)
        for i, j in self._pairs:
            if np.linalg.norm(centres[i] - centres[j]) <= bounds[i] + bounds[j] + self.collisions.margin:
                first, second = self._shapes[i], self._shapes[j]
                touches = self._narrow(first, placements[i], second.solid, placements[j])
                found += self._contacts(first, second.name, second.joint, touches, dynamics)
        return found

    def _narrow(self, shape: _Shape, here: pin.SE3, solid: coal.CollisionGeometry, there: pin.SE3) -> list[Touch]:
        """Return where two convex bodies are near."""
        one, two = (coal.Transform3s(p.rotation, p.translation) for p in (here, there))
        result = coal.CollisionResult()
        if not coal.collide(shape.solid, one, solid, two, self._request, result):
            return []
        contact = result.getContact(0)
        normal = -np.array(contact.normal)
        if shape.radius and shape.is_ball:
            return [Touch(here.act(shape.centre), np.array(contact.getNearestPoint2()), normal, shape.radius)]
        patches = coal.ContactPatchResult()
        coal.computeContactPatch(shape.solid, one, solid, two, result, coal.ContactPatchRequest(), patches)
        points = []
        if patches.numContactPatches():
            patch = patches.getContactPatch(0)
            points = [(patch.getPointShape1(i), patch.getPointShape2(i)) for i in range(patch.size())]
        if not points:
            points = [(contact.getNearestPoint1(), contact.getNearestPoint2())]
        touches = [Touch(np.array(a), np.array(b), normal, 0.0) for a, b in points]
        chosen = spread(
            np.array([touch.point for touch in touches]),
            np.array([touch.gap for touch in touches]),
            Plane(normal).axes,
        )
        return [touches[i] for i in chosen]

    def _self_pairs(self) -> npt.NDArray[np.intp]:
        """Return (n, 2) shapes that may touch each other: of joints that are no neighbours, nor excluded."""
        parents, shapes = self.robot.model.parents, self._shapes
        excluded = {frozenset(pair) for pair in [*self.collisions.excluded, *_disabled(self.collisions.srdf)]}
        for link in {link for pair in self.collisions.excluded for link in pair}:
            self.robot.link_placement(link)
        pairs = [
            (i, j)
            for i in range(len(shapes))
            for j in range(i + 1, len(shapes))
            if shapes[i].joint != shapes[j].joint
            and parents[shapes[i].joint] != shapes[j].joint
            and parents[shapes[j].joint] != shapes[i].joint
            and frozenset((shapes[i].link, shapes[j].link)) not in excluded
        ]
        return np.array(pairs, dtype=np.intp).reshape(-1, 2)

    # -- results

    def _contacts(
        self,
        shape: _Shape,
        other: str,
        other_joint: int,
        touches: Iterable[Touch],
        dynamics: Dynamics,
        plane: Plane | None = None,
    ) -> list[BoundContact]:
        """Return `touches` as contacts bound to the robot; with `plane`, or with the tangent planes there."""
        bound = []
        for i, touch in enumerate(touches):
            if touch.gap > self.collisions.margin:
                continue
            offset = _in_joint(dynamics, shape.joint, touch.point)
            point = shape.link_placement.actInv(offset)
            surface = plane or Plane(touch.normal, float(touch.normal @ touch.other))
            name = f"{shape.name}/{other}#{i}"
            declaration = self.collisions.contact(name, shape.link, point, surface, touch.radius)
            anchor = _in_joint(dynamics, other_joint, touch.other)
            bound.append(BoundContact(declaration, shape.joint, offset, other_joint, anchor))
        return bound


@dataclass(frozen=True, eq=False)
class _Shape:
    """One collision element of the robot.

    Attributes:
        name: of the element, ``<link>_<index>``.
        link: that carries it.
        joint: that carries the link.
        link_placement: of the link in the joint's frame.
        placement: of the shape there.
        solid: the shape, convex.
        vertices: (n, 3) whose hull, grown by the radius, it is [m], joint's frame; none of a cylinder.
        radius: [m].
        rims: (2, 3) middles of the discs of a cylinder, joint's frame; none of others.
        centre: (3,) of the bounding sphere, frame of the shape.
        bound: radius of the bounding sphere [m].
    """

    name: str
    link: str
    joint: int
    link_placement: pin.SE3
    placement: pin.SE3
    solid: coal.CollisionGeometry
    vertices: Array
    radius: float
    rims: Array

    @classmethod
    def of(cls, robot: Robot, element: pin.GeometryObject) -> _Shape:
        """Take over one element as Pinocchio loaded it.

        Raises:
            ModelError: a shape that is not supported.
        """
        link = robot.model.frames[element.parentFrame].name
        joint, link_placement = robot.link_placement(link)
        placement, solid, radius = pin.SE3(element.placement), element.geometry, 0.0
        local, rims = np.zeros((0, 3)), np.zeros((0, 3))
        if isinstance(solid, coal.Sphere):
            local, radius = np.zeros((1, 3)), solid.radius
        elif isinstance(solid, coal.Capsule):
            local, radius = np.array([[0, 0, -1.0], [0, 0, 1.0]]) * solid.halfLength, solid.radius
        elif isinstance(solid, coal.Box):
            local = np.array(np.meshgrid(*([-1.0, 1.0],) * 3)).reshape(3, -1).T * np.asarray(solid.halfSide)
        elif isinstance(solid, coal.Cylinder):
            rims = np.array([[0, 0, -1.0], [0, 0, 1.0]]) * solid.halfLength
        elif isinstance(solid, coal.BVHModelBase):
            solid.buildConvexHull(True, "Qt")
            solid = solid.convex
            local = np.array(solid.points())
        else:
            raise ModelError(f"collision element {element.name!r}: got {type(solid).__name__}, allowed: {SHAPES}")
        return cls(
            element.name, link, joint, link_placement, placement, solid, _moved(placement, local), radius,
            _moved(placement, rims),
        )  # fmt: skip

    @cached_property
    def is_ball(self) -> bool:
        """Whether the shape is a sphere."""
        return isinstance(self.solid, coal.Sphere)

    @cached_property
    def centre(self) -> Array:
        """(3,) middle of the bounding sphere, frame of the shape."""
        self.solid.computeLocalAABB()
        return np.array(self.solid.aabb_center)

    @cached_property
    def bound(self) -> float:
        """Radius of the bounding sphere [m]."""
        self.solid.computeLocalAABB()
        return float(self.solid.aabb_radius)

    def placement_in_world(self, dynamics: Dynamics) -> pin.SE3:
        """Return the placement of the shape in the world."""
        placement = dynamics.placements[self.joint]
        return pin.SE3(placement[:3].T.copy(), placement[3].copy()) * self.placement

    def velocities(self, points: Array, dynamics: Dynamics) -> Array:
        """Return (n, 3) velocities [m/s] of the body points that are at `points` (n, 3) [m], world frame."""
        placement, (linear, angular) = dynamics.placements[self.joint], dynamics.velocities[self.joint]
        return linear @ placement[:3] + np.cross(angular @ placement[:3], points - placement[3])

    def towards(self, normal: Array, dynamics: Dynamics) -> Array:
        """Return (n, 3) points [m], world frame, among which is the one that touches a plane with this `normal` first.

        Of a cylinder the lowest points of both rims, and three more of each that spread.
        """
        placement = dynamics.placements[self.joint]
        rotation, middle = placement[:3].T, placement[3]
        if not self.rims.size:
            return self.vertices @ rotation.T + middle
        axes = rotation @ self.placement.rotation
        down = axes[:, 2] * (axes[:, 2] @ normal) - normal
        if np.linalg.norm(down) < FLAT:
            down = axes[:, 0]
        down = down / np.linalg.norm(down)
        around = self.solid.radius * np.array([down, np.cross(axes[:, 2], down)])
        ring = np.concatenate([around, -around])
        return np.concatenate([rotation @ rim + middle + ring for rim in self.rims])


SHAPES = "sphere, capsule, box, cylinder, mesh"


def spread(points: Array, gaps: Array, axes: Array) -> npt.NDArray[np.intp]:
    """Return which at most four of `points` (n, 3) keep the area that supports, for a surface with `axes` (3, 3).

    The deepest, the farthest from it, and on either side of their line the one that is farthest from that.
    """
    if len(points) <= MOST_POINTS:
        return np.arange(len(points))
    flat = points @ axes[:2].T
    first = int(np.argmin(gaps))
    second = int(np.argmax(np.linalg.norm(flat - flat[first], axis=1)))
    line = flat[second] - flat[first]
    side = line[0] * (flat[:, 1] - flat[first, 1]) - line[1] * (flat[:, 0] - flat[first, 0])
    chosen = [first, second]
    for candidate in (int(np.argmax(side)), int(np.argmin(side))):
        if abs(side[candidate]) > 1e-12 and candidate not in chosen:
            chosen.append(candidate)
    return np.sort(np.array(chosen, dtype=np.intp))


def _load(robot: Robot, package_dirs: Sequence[str]) -> list[pin.GeometryObject]:
    """Return the collision elements of a robot's description.

    Raises:
        ModelError: no URDF, or a mesh that cannot be loaded.
    """
    if not robot.urdf:
        raise ModelError("collision geometry needs a robot that was read from a URDF")
    around = [str(folder) for folder in robot.folder.parents] if robot.folder is not None else []
    folders = [*package_dirs, *([str(robot.folder)] if robot.folder is not None else []), *around]
    folders += [
        os.path.join(prefix, "share") for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix
    ]
    geometry = pin.GeometryModel()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pin.buildGeomFromUrdfString(robot.model, robot.urdf, pin.GeometryType.COLLISION, geometry, folders)
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"collision geometry: {error}") from error
    return list(geometry.geometryObjects)


def _disabled(srdf: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Return the pairs of links that an SRDF excludes.

    Raises:
        ModelError: it cannot be read.
    """
    from constrained_sim.descriptions import read_text

    if not srdf:
        return []
    try:
        tree = ElementTree.fromstring(read_text(srdf))
    except ElementTree.ParseError as error:
        raise ModelError(f"not a valid SRDF: {error}") from error
    return [(pair.get("link1", ""), pair.get("link2", "")) for pair in tree.iter("disable_collisions")]


def _moved(placement: pin.SE3, points: Array) -> Array:
    return np.asarray(points @ placement.rotation.T + placement.translation) if len(points) else points


def _in_joint(dynamics: Dynamics, joint: int, point: Array) -> Array:
    placement = dynamics.placements[joint]
    return np.asarray(placement[:3] @ (point - placement[3]))
