"""Draws contact points, forces, friction cones, anchors, impacts, the centre of mass and its support."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
import scipy

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.palette import GREEN, PURPLE, SKY_BLUE, STATUS_COLOURS, YELLOW, rgb
from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.camera import size_of
from constrained_sim.viewer.frame import Frame, ShownContact
from constrained_sim.viewer.robot_drawing import WORLD

CONTACT_COLOURS = {status: rgb(colour) for status, colour in STATUS_COLOURS.items()}
ANCHOR_COLOUR, COM_COLOUR, FLASH_COLOUR, CONE_COLOUR = rgb(PURPLE), rgb(YELLOW), rgb(SKY_BLUE), rgb(GREEN)
CONE_EDGES = 24

FLASH = 0.15
"""[s] How long an impact is shown, in the time of the simulation: long enough to be seen at a third of real time. Its
disc shrinks meanwhile, so that feet which land in turn are not covered for ever."""

FLASH_SIZE = 0.07
"""Of the disc at an impact when it happens, as a share of the robot's size."""

BALL = 0.035
"""Radius of contacts, anchors and the centre of mass, as a share of the robot's size."""

LONGEST_ARROW = 1.0
"""Of a force, as a share of the robot's size; longer ones are cut."""


@dataclass
class ForceOptions:
    """What is drawn of forces.

    Attributes:
        arrow_weight: length [m] of an arrow as long as the robot's weight is large.
        cones: draw friction cones of contacts that touch.
        chosen: contact or anchor whose force is told, and whose cone is drawn; empty: none.
        com: draw the centre of mass and its support polygon.
        anchors: draw anchors of closed loops and their forces.
        impacts: draw the impacts of the last moments.
    """

    arrow_weight: float = 0.5
    cones: bool = False
    chosen: str = ""
    com: bool = True
    anchors: bool = True
    impacts: bool = True


class ForceDrawing:
    """All that is not a body."""

    def __init__(self, scene: Any, robot: Robot) -> None:
        """Draw into a `viser.SceneApi`; a click on a contact or an anchor chooses it, a second one leaves it."""
        self.options = ForceOptions()
        self._scene, self._robot = scene, robot
        self._data = robot.model.createData()
        self._weight = max(robot.mass * float(np.linalg.norm(robot.gravity)), 1e-9)
        self._size = size_of(robot)
        self._balls: dict[str, Any] = {}
        self._flashes: dict[str, Any] = {}
        self._com = scene.add_icosphere(f"{WORLD}/com", radius=BALL * self._size, color=COM_COLOUR)

    @property
    def newtons_per_metre(self) -> float:
        """Force [N] that an arrow of 1 m stands for."""
        return self._weight / self.options.arrow_weight

    def update(self, frame: Frame) -> None:
        """Show the forces of `frame`."""
        self._draw_points(frame)
        self._draw_arrows(frame)
        self._draw_cones(frame.contacts)
        self._draw_com(frame)
        self._draw_flashes(frame)
        self._draw_read_out(frame)

    def _draw_points(self, frame: Frame) -> None:
        """Move the ball of each contact and each anchor; that of a contact has the colour of its status."""
        at = {contact.name: (contact.position, CONTACT_COLOURS[contact.status]) for contact in frame.contacts}
        if self.options.anchors:
            at |= {anchor.name: (anchor.position, ANCHOR_COLOUR) for anchor in frame.anchors}
        for name in self._balls.keys() - at.keys():
            self._balls.pop(name).remove()
        for name, (position, colour) in at.items():
            ball = self._balls.get(name)
            if ball is None:
                ball = self._scene.add_icosphere(f"{WORLD}/points/{name}", radius=BALL * self._size, color=colour)
                ball.on_click(lambda _, name=name: self._choose(name))
                self._balls[name] = ball
            ball.position, ball.color = position, colour  # sent where they differ

    def _choose(self, name: str) -> None:
        self.options.chosen = "" if self.options.chosen == name else name

    def _draw_arrows(self, frame: Frame) -> None:
        scale = 1.0 / self.newtons_per_metre
        arrows = [(c.position, c.force, CONTACT_COLOURS[c.status]) for c in frame.contacts]
        if self.options.anchors:
            arrows += [(anchor.position, anchor.force, ANCHOR_COLOUR) for anchor in frame.anchors]
        arrows = [arrow for arrow in arrows if np.linalg.norm(arrow[1]) * scale > 0.005 * self._size]
        points = np.array([[at, at + self._arrow(scale * force)] for at, force, _ in arrows]).reshape(-1, 2, 3)
        self._replace(f"{WORLD}/forces", len(arrows), lambda name: self._scene.add_arrows(
            name, points, np.array([colour for *_, colour in arrows], dtype=np.uint8),
            shaft_radius=0.012 * self._size, head_radius=0.03 * self._size, head_length=0.06 * self._size,
        ))  # fmt: skip

    def _arrow(self, arrow: Array) -> Array:
        """Return `arrow` (3,) [m], cut where it is longer than the robot: internal forces of loops know no bound."""
        return arrow * min(1.0, LONGEST_ARROW * self._size / float(np.linalg.norm(arrow)))

    def _draw_cones(self, contacts: Sequence[ShownContact]) -> None:
        """Draw each cone as high as the normal force is long: the arrow lies in it."""
        scale, options = 1.0 / self.newtons_per_metre, self.options
        lines = [
            edge
            for contact in contacts
            if (options.cones or contact.name == options.chosen) and contact.normal_force > 0.0
            for edge in cone_edges(contact, scale * contact.normal_force)
        ]
        self._replace(f"{WORLD}/cones", len(lines), lambda name: self._scene.add_line_segments(
            name, np.array(lines), CONE_COLOUR, thickness=1.5, thickness_units="screen"
        ))  # fmt: skip

    def _draw_com(self, frame: Frame) -> None:
        """Show the centre of mass, its plumb line and the hull of the points that carry the robot."""
        com = pin.centerOfMass(self._robot.model, self._data, frame.q)
        self._com.position, self._com.visible = com, self.options.com
        carry = (c for c in frame.contacts if c.status is not ContactStatus.OPEN and c.link in self._robot.links)
        feet = np.array([contact.position for contact in carry]).reshape(-1, 3)
        lines = []
        if self.options.com and len(feet):
            lines = [(com, [com[0], com[1], feet[:, 2].mean()]), *support_edges(feet)]
        self._replace(f"{WORLD}/support", len(lines), lambda name: self._scene.add_line_segments(
            name, np.array(lines), COM_COLOUR, thickness=4.0, thickness_units="screen"
        ))  # fmt: skip

    def _draw_flashes(self, frame: Frame) -> None:
        """Show recent impacts: a disc at each contact that took part, and the energy that the last of them lost."""
        where = {contact.name: contact.position for contact in frame.contacts}
        ages = [(frame.t - impact.t, impact) for impact in frame.impacts if self.options.impacts]
        recent = [(age, impact) for age, impact in ages if 0.0 <= age < FLASH]
        left = {name: 1.0 - age / FLASH for age, impact in recent for name in impact.contacts if name in where}
        for name in self._flashes.keys() - left.keys():
            self._flashes.pop(name).remove()
        for name, share in left.items():
            disc = self._flashes.get(name)
            if disc is None:
                path, origin = f"{WORLD}/impacts/{name}", np.zeros((1, 3))
                disc = self._scene.add_point_cloud(path, origin, FLASH_COLOUR, point_size=1.0, point_shape="circle")
                self._flashes[name] = disc
            disc.position, disc.point_size = where[name], FLASH_SIZE * share * self._size
        above, told = np.array([0.0, 0.0, 0.1 * self._size]), recent[-1:]
        at = [where[name] + above for _, impact in told for name in impact.contacts if name in where]
        self._replace(f"{WORLD}/impact", len(at), lambda name: self._scene.add_label(
            name, f"impact, {told[0][1].energy_lost:.3g} J", position=at[0]
        ))  # fmt: skip

    def _draw_read_out(self, frame: Frame) -> None:
        """Write how large the force of the chosen contact or anchor is beside it; the panel says more."""
        chosen = frame.find(self.options.chosen)
        at = [] if chosen is None else [chosen]
        self._replace(f"{WORLD}/read_out", len(at), lambda name: self._scene.add_label(
            name, f"{at[0].name}: {np.linalg.norm(at[0].force):.2f} N", position=at[0].position
        ))  # fmt: skip

    def _replace(self, name: str, count: int, add: Any) -> None:
        """Draw something anew, or take it away where there is none of it."""
        if count:
            add(name)
        elif self._scene.get_handle_by_name(name) is not None:
            self._scene.remove_by_name(name)


def cone_edges(contact: ShownContact, height: float) -> list[tuple[Array, Array]]:
    """Return line segments of the cone ``|f_t| <= friction f_n`` up to `height` [m] above the contact."""
    side = np.linalg.svd(contact.normal[None])[2][1:]
    angles = np.linspace(0.0, 2.0 * np.pi, CONE_EDGES + 1)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1) @ side
    rim = contact.position + height * (contact.normal + contact.friction * circle)
    return [*itertools.pairwise(rim), *((contact.position, end) for end in rim[:-1:3])]


def support_edges(feet: Array) -> list[tuple[Array, Array]]:
    """Return the edges of the convex hull of `feet` (n, 3), seen from above."""
    if len(feet) < 3 or np.linalg.matrix_rank(feet[:, :2] - feet[0, :2], tol=1e-6) < 2:
        return list(itertools.pairwise(feet))
    corners = feet[scipy.spatial.ConvexHull(feet[:, :2]).vertices]
    return list(zip(corners, np.roll(corners, -1, axis=0), strict=True))
