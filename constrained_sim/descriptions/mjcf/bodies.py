"""The bodies of an MJCF, parents first: where they are, how they move, what they weigh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.document import Tag, where
from constrained_sim.descriptions.inertia import body_inertia, inertia_matrix
from constrained_sim.descriptions.mjcf.geoms import Geom, Geoms
from constrained_sim.descriptions.mjcf.settings import Compiler, Defaults
from constrained_sim.descriptions.vocabulary import Ignored, not_negative, number, numbers
from constrained_sim.exceptions import ModelError

TYPES = ("hinge", "slide", "ball", "free")


@dataclass(eq=False)
class JointEntry:
    """One joint of a body.

    Attributes:
        element: with its defaults.
        name: its own, or one that is given to it.
        type: ``hinge``, ``slide``, ``ball`` or ``free``.
        placement: of its axes in the frame of the body; it turns about, or slides along, `axis`.
        axis: (3,) unit, in the frame of the body.
        reference: position at which the file shows it [rad, m].
    """

    element: Tag
    name: str
    type: str
    placement: pin.SE3
    axis: np.ndarray
    reference: float = 0.0


@dataclass(eq=False)
class Body:
    """One body.

    Attributes:
        name: its own, or one that is given to it.
        parent: index of the parent body; -1: the world.
        placement: in the parent's frame, in the configuration of the file.
        element: the <body>.
        joints: in their order.
        inertia: in the frame of the body.
        geoms: with mass or collision.
        sites: placements in the frame of the body, by name.
    """

    name: str
    parent: int
    placement: pin.SE3
    element: Element
    joints: list[JointEntry] = field(default_factory=list)
    inertia: pin.Inertia = field(default_factory=pin.Inertia.Zero)
    geoms: list[Geom] = field(default_factory=list)
    sites: dict[str, pin.SE3] = field(default_factory=dict)


class Bodies:
    """Reads all bodies of a file.

    Attributes:
        bodies: parents before children, branch by branch.
        world_sites: placements of the sites in the world, by name.
    """

    def __init__(self, root: Element, compiler: Compiler, defaults: Defaults, geoms: Geoms, ignored: Ignored) -> None:
        """Read them.

        Raises:
            ModelError: something that no robot can be, or that is not supported.
        """
        self.bodies: list[Body] = []
        self.world_sites: dict[str, pin.SE3] = {}
        self._compiler, self._defaults, self._geoms, self._ignored = compiler, defaults, geoms, ignored
        self._names: dict[str, set[str]] = {"body": set(), "joint": set()}
        for world in root.findall("worldbody"):
            self._read_world(world)

    def _read_world(self, world: Element) -> None:
        waiting: list[tuple[Element, int, pin.SE3, str | None]] = []
        waiting += self._read_content(world, None, -1, None)
        while waiting:
            element, parent, offset, childclass = waiting.pop()
            childclass = element.get("childclass", childclass)
            name = self._name(element, "body", len(self.bodies))
            body = Body(name, parent, offset * self._compiler.pose(element), element)
            self.bodies.append(body)
            waiting += self._read_content(element, body, len(self.bodies) - 1, childclass)
            self._weigh(body)

    def _read_content(
        self, element: Element, body: Body | None, index: int, childclass: str | None
    ) -> list[tuple[Element, int, pin.SE3, str | None]]:
        """Read what a body holds, and return the bodies in it, the last first."""
        inner = []
        for child, offset, child_class in self._flattened(element, pin.SE3.Identity(), childclass):
            if child.tag == "body":
                inner.append((child, index, offset, child_class))
            elif child.tag == "site":
                site = self._defaults.applied(child, child_class)
                placed = offset * self._geoms.placement(site)
                if site.get("name"):
                    (self.world_sites if body is None else body.sites)[site.get("name", "")] = placed
            elif body is None and child.tag == "geom":
                self._ignored.add("<geom> in <worldbody>", child, "bodies of the world are the scene of a simulation")
            elif child.tag == "geom" and body is not None:
                body.geoms.append(self._geoms.read(self._defaults.applied(child, child_class), offset))
            elif child.tag in ("joint", "freejoint") and body is not None:
                body.joints.append(self._joint(child, offset, child_class, body))
            elif child.tag in ("joint", "freejoint", "inertial"):
                if body is None:
                    raise ModelError(f"{where(child)}: got it in the world, allowed: in a <body>")
        return inner[::-1]

    def _flattened(
        self, element: Element, offset: pin.SE3, childclass: str | None
    ) -> Iterator[tuple[Element, pin.SE3, str | None]]:
        """Yield what an element holds, and what the frames in it hold, each with the placement of its frame."""
        for child in element:
            if child.tag == "frame":
                placed = offset * self._compiler.pose(child)
                yield from self._flattened(child, placed, child.get("childclass", childclass))
            else:
                yield child, offset, childclass

    def _name(self, element: Element, tag: str, count: int) -> str:
        name, taken = element.get("name", ""), self._names[tag]
        if name in taken:
            raise ModelError(f"{where(element)}: got a name that another {tag} has, allowed: each once")
        while not name or name in taken:
            name = f"{tag} {count}"
            count += 1
        taken.add(name)
        return name

    def _joint(self, element: Element, offset: pin.SE3, childclass: str | None, body: Body) -> JointEntry:
        """Return one joint, in the frame of its body.

        Raises:
            ModelError: a type or an axis that cannot be, or a free joint beside another or inside a body.
        """
        joint = self._defaults.applied(element, childclass)
        kind = "free" if element.tag == "freejoint" else joint.get("type", "hinge")
        if kind not in TYPES:
            raise ModelError(f"{where(element)}: got type {kind!r}, allowed: {', '.join(TYPES)}")
        if (kind == "free" and (body.parent >= 0 or body.joints)) or any(j.type == "free" for j in body.joints):
            raise ModelError(f"{where(element)}: got a free joint beside others, allowed: one, of a body in the world")
        name = self._name(element, "joint", len(self._names["joint"]))
        if kind == "free":
            return JointEntry(joint, name, kind, pin.SE3.Identity(), np.zeros(3))
        axis = np.array(numbers(joint, "axis", (0.0, 0.0, 1.0)))
        if np.linalg.norm(axis) < 1e-9:
            raise ModelError(f"axis of {where(element)}: got {axis.tolist()}, allowed: a vector of non-zero length")
        pos = offset.act(np.array(numbers(joint, "pos", (0.0, 0.0, 0.0))))
        unit = self._compiler.angle if kind == "hinge" else 1.0
        reference = unit * number(joint, "ref", 0.0) if kind in ("hinge", "slide") else 0.0
        axis = offset.rotation @ axis / np.linalg.norm(axis)
        return JointEntry(joint, name, kind, pin.SE3(np.eye(3), pos), axis, reference)

    def _weigh(self, body: Body) -> None:
        """Find the inertia of a body: stated, or that of its geoms; stated in any case where no geom has a mass."""
        stated = body.element.findall("inertial")
        by_geoms = self._compiler.settings.get("inertiafromgeom", "auto")
        asks_geoms = by_geoms == "true" or (by_geoms == "auto" and not stated)
        if asks_geoms:
            body.inertia = self._geoms.inertia(body.geoms)
        if stated and asks_geoms and body.inertia.mass:
            self._ignored.add("<inertial> beside inertiafromgeom='true'", stated[0])
        elif stated:
            body.inertia = self._stated_inertia(stated[0])

    def _stated_inertia(self, element: Element) -> pin.Inertia:
        what = where(element)
        if element.get("mass") is None or element.get("pos") is None:
            raise ModelError(f"{what}: got no mass or no pos, allowed: both")
        full, diagonal = element.get("fullinertia"), element.get("diaginertia")
        if (full is None) == (diagonal is None):
            count = "no" if full is None else "two"
            raise ModelError(f"{what}: got {count} inertias, allowed: diaginertia or fullinertia")
        moments = numbers(element, "diaginertia" if full is None else "fullinertia")
        if self._compiler.settings.get("balanceinertia") == "true" and full is None:
            least, middle, largest = sorted(moments)
            moments = [sum(moments) / 3.0] * 3 if least + middle < largest else moments
        placement = self._compiler.pose(element)
        return body_inertia(what, not_negative(element, "mass", 0.0), inertia_matrix(*moments), placement)
