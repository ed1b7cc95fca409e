"""Collision geometry: where the links of a robot come near the bodies of a scene, or each other, as point contacts."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from constrained_sim.collision import manifold
from constrained_sim.collision.narrow_phase import ContactPoint, SearchRange, find_contact_points
from constrained_sim.collision.nearest import contact_request
from constrained_sim.collision.passing import is_passed
from constrained_sim.collision.placed_shape import PlacedShape
from constrained_sim.collision.rims import CylinderRims, place_rims
from constrained_sim.collision.robot_shapes import robot_shapes, scene_shape
from constrained_sim.collision.scene import SceneBody, checked_scene
from constrained_sim.collision.shape_features import NO_LINE, Feature
from constrained_sim.collision.shapes import Shape
from constrained_sim.constraints.point_contact import PointContact
from constrained_sim.contact.bound_contact import BoundContact, ContactProperties
from constrained_sim.contact.features import UNDIRECTED, NormalOwner
from constrained_sim.contact.laws import Law, Rigid, SoftLaw
from constrained_sim.contact.surfaces import Plane, tangent_axes
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, flag, items, names, number, path

FORESIGHT = 2.5
"""How many times the horizon motion is foreseen: two bodies may approach each other, and speeds grow."""

DETECTED_NAME = re.compile(r".+/.+#\d+")
"""Names of detected contacts, see :class:`Collisions`."""

PairKey = tuple[int, int, float, float, bytes]
"""A pair of shapes; the margin [m] and the horizon [s]; placements and velocities to the bit: what contacts hang on."""

Found = tuple[BoundContact, float]
"""A contact and its gap [m]: ``n . (p - p_other) - radius - other_radius``, negative where bodies penetrate."""


@dataclass(frozen=True, eq=False)
class Collisions:
    """What the collision geometry of a robot may touch, and how.

    A detected contact has the name ``ELEMENT/BODY#NUMBER``: an element of the description, a body of the scene or
    another element, and a number. The element is called ``<link>_<index>``, that of an MJCF as its geom.

    Attributes:
        scene: bodies of the world by name.
        friction: Coulomb coefficient; None: that of each element of the description, of two elements the smaller one,
            and 0 where there is none.
        restitution: coefficient, 0 to 1.
        law: which forces contacts may have; not a soft one.
        margin: distance [m] from which on a pair is watched; where bodies are fast, what they do in a step counts.
        self_collision: whether links of the robot touch each other, except neighbours; so do those of an object.
            Objects touch each other and the robot in any case, but for what is excluded.
        srdf: file or text whose ``disable_collisions`` name pairs of links that do not touch each other.
        excluded: further such pairs; those of an object that is not there wait for it.
        package_dirs: folders in which ``package://`` is looked up, beside those around the description's file.
        restitution_law: ``"newton"`` or ``"poisson"``, see :class:`~constrained_sim.constraints.PointContact`.
        torsional_friction: largest moment about the normal per normal force [m].
        rolling_friction: largest moment along the surface per normal force [m].

    Raises:
        InvalidValue: a value that is not allowed.
        UnknownName: no such law of restitution.
    """

    scene: Mapping[str, SceneBody] = field(default_factory=dict)
    friction: float | None = None
    restitution: float = 0.0
    law: Law = field(default_factory=Rigid)
    margin: float = 0.02
    self_collision: bool = False
    srdf: str | os.PathLike[str] = ""
    excluded: Sequence[tuple[str, str]] = ()
    package_dirs: Sequence[str] = ()
    restitution_law: str = "newton"
    torsional_friction: float = 0.0
    rolling_friction: float = 0.0

    def __post_init__(self) -> None:
        """Check all values."""
        object.__setattr__(self, "scene", checked_scene(self.scene))
        number("margin of collisions", self.margin, 0.0, open_lower=True)
        flag("self_collision", self.self_collision)
        if not (isinstance(self.srdf, str) and not self.srdf):
            path("srdf", self.srdf)
        pairs = items("excluded", self.excluded, object, "pairs of links")
        object.__setattr__(self, "excluded", tuple(map(_pair, pairs)))
        names("package_dirs", self.package_dirs)
        if isinstance(self.law, SoftLaw):
            raise InvalidValue("law of collisions", self.law.name, "rigid, frictionless or sticking")
        self.contact()

    def contact(self, friction: float = 0.0) -> PointContact:
        """Return a contact like those that are detected.

        Args:
            friction: Coulomb coefficient of the description, for collisions without one.
        """
        return PointContact(
            "collisions",
            "any",
            (0.0, 0.0, 0.0),
            law=self.law,
            friction=friction if self.friction is None else self.friction,
            restitution=self.restitution,
            restitution_law=self.restitution_law,
            torsional_friction=self.torsional_friction,
            rolling_friction=self.rolling_friction,
        )

    def bind(self, robot: Robot) -> CollisionDetector:
        """Load the geometry of `robot`.

        Raises:
            ModelError: a robot without a description, or a mesh that cannot be loaded.
            UnknownName: an excluded link that does not exist.
        """
        return CollisionDetector(self, robot)


def _pair(links: Any) -> tuple[str, str]:
    """Return two names of links.

    Raises:
        InvalidValue: something else.
    """
    pair = names("pair of excluded links", links)
    if len(pair) != 2:
        raise InvalidValue("pair of excluded links", links, "two names")
    return pair[0], pair[1]


class CollisionDetector:
    """Detects where one robot is near a scene, or itself, as contacts with the properties of a :class:`Collisions`.

    Against a plane every shape is exact: a sphere and the ends of a capsule as spheres, boxes and convex hulls by their
    vertices, cylinders by the lowest points of their rims and three more around each. Of other pairs, world-aligned
    bounding boxes are compared first; then :mod:`~constrained_sim.collision.nearest` gives the direction of least
    distance. Where a flat face is what touches, the other body's points over it do, each with its own gap; where a
    straight edge or axis lies along another, both ends of what they share; else the nearest points. A pair at rest has
    eight at most.
    """

    def __init__(self, collisions: Collisions, robot: Robot) -> None:
        """See :meth:`Collisions.bind`."""
        self.collisions, self.robot = collisions, robot
        scene = collisions.scene
        self._planes = {name: body for name, body in scene.items() if isinstance(body, Plane)}
        self._shapes = robot_shapes(robot, collisions.package_dirs)
        self._own = len(self._shapes)
        apart = _excluded(robot, collisions.excluded) | _disabled(collisions.srdf)
        solids = [scene_shape(name, body) for name, body in scene.items() if not isinstance(body, Plane)]
        self._shapes += solids
        pairs = self._pairs_with_solids() + self._pairs_of_owners(apart)
        pairs += self._self_pairs(apart) if collisions.self_collision else []
        self._pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self._stack()
        self._request, self._gravity = contact_request(), float(np.linalg.norm(robot.gravity))
        self._properties: dict[float, ContactProperties] = {}
        self._on_planes: dict[tuple[str, bytes], BoundContact] = {}
        self._of_pairs: dict[PairKey, list[Found]] = {}

    def __reduce__(self) -> tuple[type[CollisionDetector], tuple[Collisions, Robot], dict[str, Any]]:
        """Return how it is unpickled: coal's geometry is loaded anew."""
        known = {"_on_planes": self._on_planes, "_of_pairs": self._of_pairs}
        return CollisionDetector, (self.collisions, self.robot), known

    def __deepcopy__(self, memo: dict[int, Any]) -> CollisionDetector:
        """Return a detector of its own that shares the geometry, but what moves with the rims of cylinders."""
        other = object.__new__(CollisionDetector)
        known = {name: copy.deepcopy(vars(self)[name], memo) for name in ("_on_planes", "_of_pairs")}
        rims = self._shape_points._replace(points=self._shape_points.points.copy()), self._circles.copy()
        vars(other).update(vars(self), _request=contact_request(), _shape_points=rims[0], _circles=rims[1], **known)
        return other

    def _stack(self) -> None:
        """Put what the kernels take of all shapes into arrays; those of the robot come first."""
        shapes = self._shapes
        self._joints = np.array([shape.joint for shape in shapes], dtype=np.int64)
        self._rotations = np.array([shape.placement.rotation for shape in shapes]).reshape(-1, 3, 3)
        self._centres = np.array([shape.centre for shape in shapes]).reshape(-1, 3)
        self._halves = np.array([shape.box[1] for shape in shapes]).reshape(-1, 3)
        self._arms = np.array([float(np.linalg.norm(shape.centre)) + shape.bound for shape in shapes])
        # What the world carries cannot touch a plane of it.
        bounds = np.array([shape.bound if shape.joint else -np.inf for shape in shapes])
        starts = np.cumsum([0, *(len(shape.points) for shape in shapes)])
        points = np.concatenate([np.zeros((0, 3)), *(shape.points for shape in shapes)])
        radii = np.repeat([shape.radius for shape in shapes], np.diff(starts))
        self._shape_points = manifold.ShapePoints(points, starts, self._joints, radii, self._centres, bounds)
        self._circles = np.full(len(points), -1)
        indices = [index for index, shape in enumerate(shapes) if shape.is_cylinder]
        cylinders = np.array(indices, dtype=np.int64)
        axes = self._rotations[cylinders]
        self._rims = CylinderRims(
            starts[cylinders],
            self._joints[cylinders],
            np.array([shapes[index].cap_centers for index in indices]).reshape(-1, 2, 3),
            axes[:, :, 2].copy(),
            axes[:, :, 0].copy(),
            np.array([float(shapes[index].solid.radius) for index in indices]),
        )

    def _pairs_with_solids(self) -> list[tuple[int, int]]:
        return [(i, j) for j in range(self._own, len(self._shapes)) for i in range(self._own) if self._shapes[i].joint]

    def _pairs_of_owners(self, apart: set[frozenset[str]]) -> list[tuple[int, int]]:
        """Return shapes of which one is an object's, the other another one's or the robot's; none set `apart`."""
        shapes = self._shapes
        owners = [self.robot.owner_of(shape.link) for shape in shapes[: self._own]]
        return [
            (i, j)
            for i in range(self._own)
            for j in range(i + 1, self._own)
            if owners[i] != owners[j]
            and (shapes[i].joint or shapes[j].joint)
            and frozenset((shapes[i].link, shapes[j].link)) not in apart
        ]

    def _self_pairs(self, apart: set[frozenset[str]]) -> list[tuple[int, int]]:
        """Return shapes of one robot or object that may touch: of joints that are no neighbours, nor set `apart`."""
        parents, shapes, owner = self.robot.model.parents, self._shapes, self.robot.owner_of
        return [
            (i, j)
            for i in range(self._own)
            for j in range(i + 1, self._own)
            if owner(shapes[i].link) == owner(shapes[j].link)
            and shapes[i].joint not in (shapes[j].joint, parents[shapes[j].joint])
            and parents[shapes[i].joint] != shapes[j].joint
            and frozenset((shapes[i].link, shapes[j].link)) not in apart
        ]

    def contacts(self, dynamics: Dynamics, horizon: float = 0.0) -> tuple[list[BoundContact], Array]:
        """Return the contacts at the placements of `dynamics` up to a gap of the margin, and the gaps (k,) [m].

        Or up to what the fastest body might do in a while: nothing that is hit within the `horizon` [s] may be missed.
        Among many points of one body near a plane, those count as the nearest that will be after `horizon` [s], at the
        velocity of the last :meth:`Dynamics.update`: else a body that falls flat would sink the points that were passed
        over. What has rested since the last call is the same object again, and costs no search, unless something is so
        fast that the margin of all grows with it.
        """
        lookahead, request = FORESIGHT * horizon, self._request
        ways = lookahead * self._speed_bounds(dynamics)
        request.security_margin = max(self.collisions.margin, ways.max(initial=0.0))
        within = SearchRange(request, horizon, lookahead, self._gravity)
        found = [pair for name in self._planes for pair in self._of_plane(name, dynamics, within)]
        self._on_planes = {_place(contact.name, contact.offset): contact for contact, _ in found}
        if len(self._pairs):
            placements = dynamics.placements
            near = manifold.near_pairs(
                self._pairs, self._joints, self._rotations, self._centres, self._halves, placements, within.margin
            )
            known, self._of_pairs = self._of_pairs, {}
            moves = (ways > manifold.SAME).tolist()  # else it rests: what was found last is found again
            for i, j in self._pairs[near].tolist():
                one = PlacedShape.of(self._shapes[i], dynamics, moves[i])
                two = PlacedShape.of(self._shapes[j], dynamics, moves[j])
                states = (part.tobytes() for part in (*one.motion, *two.motion))
                key = i, j, within.margin, horizon, b"".join(states)
                hits = known.get(key)
                self._of_pairs[key] = pair = self._of_solids(one, two, within) if hits is None else hits
                found += pair
        return [contact for contact, _ in found], np.array([gap for _, gap in found])

    def _speed_bounds(self, dynamics: Dynamics) -> Array:
        """Return (s,) bounds of the speeds of all points of each shape [m/s]."""
        speeds = np.linalg.norm(dynamics.velocities[self._joints], axis=2)
        return np.asarray(speeds[:, 0] + speeds[:, 1] * self._arms)

    def _of_plane(self, name: str, dynamics: Dynamics, within: SearchRange) -> Iterator[Found]:
        """Yield the contacts of all shapes of the robot with a plane."""
        plane, points, margin, horizon = self._planes[name], self._shape_points, within.margin, within.horizon
        placements, velocities, normal = dynamics.placements, dynamics.velocities, np.asarray(plane.normal)
        surface, fall = (normal, plane.offset), (within.lookahead, within.gravity)
        place_rims(self._rims, placements, velocities, surface, *fall, points.points, self._circles)
        places, gaps = manifold.near_plane(points, placements, velocities, normal, plane.offset, margin, horizon)
        for index in np.flatnonzero(places[:, 0] >= 0):
            for i, (place, gap) in enumerate(zip(places[index].tolist(), gaps[index].tolist(), strict=True)):
                if place >= 0 and gap <= margin:
                    yield self._on_plane(self._shapes[index], self._feature_at(place), name, i), gap

    def _on_plane(self, shape: Shape, feature: Feature, name: str, number: int) -> BoundContact:
        """Return contact `number` of a shape's feature, joint's frame, with a plane of the scene."""
        called = f"{shape.name}/{name}#{number}"
        if (known := self._on_planes.get(_place(called, feature.point))) is not None:
            return known
        plane, radii = self._planes[name], (feature.rim, 0.0)
        return BoundContact(
            called, shape.link, self._properties_of(shape), shape.joint, feature.point, feature.radius, 0,
            plane.offset * np.asarray(plane.normal), plane.axes, rim_radii=radii,
            directions=np.array([feature.line, NO_LINE]) if feature.rim else UNDIRECTED,
        )  # fmt: skip

    def _feature_at(self, place: int) -> Feature:
        """Return the feature, joint's frame, at a point near a plane."""
        circle, points, rims = self._circles[place], self._shape_points, self._rims
        if circle < 0:
            return Feature(points.points[place].copy(), float(points.radii[place]))
        cylinder, cap = divmod(int(circle), 2)
        return Feature(rims.middles[cylinder, cap], line=rims.axes[cylinder], rim=float(rims.radii[cylinder]))

    def _of_solids(self, one: PlacedShape, two: PlacedShape, within: SearchRange) -> list[Found]:
        """Return the contacts of two solids, but those of features that pass each other while they are foreseen."""
        hits = [hit for hit in find_contact_points(one, two, within) if not is_passed(hit, one, two, within.lookahead)]
        return list(zip(self._bind(one, two, hits), [hit.gap for hit in hits], strict=True)) if hits else []

    def _bind(self, one: PlacedShape, two: PlacedShape, hits: Sequence[ContactPoint]) -> list[BoundContact]:
        """Return the contacts of two bodies at their contact points, one at least."""
        pair, properties = f"{one.shape.name}/{two.shape.name}", self._properties_of(one.shape, two.shape)
        points = one.in_joint(np.array([hit.one.point for hit in hits]))
        others = two.in_joint(np.array([hit.two.point for hit in hits]))
        directions = np.array([(hit.one.line, hit.two.line) for hit in hits])
        for direction, hit in zip(directions, hits, strict=True):
            if hit.normal_owner != NormalOwner.BOTH:
                direction[hit.normal_owner] = hit.normal
        directions[:, 0], directions[:, 1] = directions[:, 0] @ one.rotation.T, directions[:, 1] @ two.rotation.T
        normals = {hit.normal.tobytes(): hit.normal for hit in hits}
        axes = {key: tangent_axes(normal) for key, normal in normals.items()}
        return [
            BoundContact(
                f"{pair}#{i}", one.shape.link, properties, one.shape.joint, points[i], hit.one.radius, two.shape.joint,
                others[i], axes[hit.normal.tobytes()], hit.normal_owner, hit.two.radius, directions[i],
                (hit.one.rim, hit.two.rim), two.shape.link or WORLD,
            )
            for i, hit in enumerate(hits)
        ]  # fmt: skip

    def _properties_of(self, *shapes: Shape) -> ContactProperties:
        """Return what contacts of these shapes may do, with the least friction that the description gives them."""
        friction = min((shape.friction for shape in shapes if shape.friction is not None), default=0.0)
        if friction not in self._properties:
            self._properties[friction] = self.collisions.contact(friction).properties
        return self._properties[friction]


def _place(name: str, point: Array) -> tuple[str, bytes]:
    """Return which `point` (3,) of the robot touches what: the contact's `name` says the bodies."""
    return name, point.tobytes()


def _excluded(robot: Robot, pairs: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    """Return pairs of links; those of objects that are not there may come.

    Raises:
        UnknownName: no such link.
    """
    excluded, there = {frozenset(pair) for pair in pairs}, {entry.name for entry in robot.objects}
    for link in set().union(*excluded):
        owner, separator, _ = link.partition("/")
        if link in robot.links or not separator or owner in there:
            robot.link_placement(link)
    return excluded


def _disabled(srdf: str | os.PathLike[str]) -> set[frozenset[str]]:
    """Return the pairs of links that an SRDF excludes.

    Raises:
        ModelError: it cannot be read.
    """
    from constrained_sim.descriptions.document import parse_xml, read_text

    if not srdf:
        return set()
    tree = parse_xml(read_text(srdf, "SRDF"), "SRDF")
    return {frozenset((pair.get("link1", ""), pair.get("link2", ""))) for pair in tree.iter("disable_collisions")}
