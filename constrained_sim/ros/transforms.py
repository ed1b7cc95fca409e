"""Transforms for /tf and /tf_static: every link in the one that carries it, as robot_state_publisher has it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pinocchio as pin
from geometry_msgs.msg import TransformStamped
from std_msgs.msg import Header

from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.frame_names import FrameNames
from constrained_sim.msg import Transforms
from constrained_sim.nanoseconds import NANOSECONDS
from constrained_sim.robot import Robot
from constrained_sim.ros.cdr import Form
from constrained_sim.validation import Array

SITE = pin.FrameType.OP_FRAME
"""Of frames that are no links: sites of an MJCF, which contacts and sensors can be on."""


class _Edge(NamedTuple):
    """A link and what carries it: their frames, and the joints and placements in joints that these have.

    Attributes:
        parent: frame of the link that carries, or the world's.
        child: frame of the link.
        carrier: joint of the link that carries, and its placement there.
        carried: the same of the link.
        is_of_object: whether it belongs to an object beside the robot.
        is_site: whether it is no link, but a frame that an MJCF marks on one.
    """

    parent: str
    child: str
    carrier: tuple[int, pin.SE3]
    carried: tuple[int, pin.SE3]
    is_of_object: bool
    is_site: bool

    @property
    def is_fixed(self) -> bool:
        """Whether no joint is between them."""
        return self.carrier[0] == self.carried[0]


class LinkTransforms:
    """The transforms of a robot, serialised: those that joints move, those of fixed joints, and that of its base.

    Links that are fixed to the world, the root of a robot with a fixed base among them, have the world's frame as their
    parent.
    """

    def __init__(self, robot: Robot, frames: FrameNames, own_links: bool = True) -> None:
        """Look up the links of `robot`.

        Args:
            robot: the robot, and what is beside it.
            frames: their names.
            own_links: take all of the robot's own links; else its base, and those that are fixed to the world. Links of
                objects, and sites, which robot_state_publisher knows nothing of, are taken in any case.
        """
        self._robot = robot
        edges = [
            edge
            for edge in _edges(robot, frames)
            if edge.child != edge.parent
            and (own_links or edge.is_of_object or edge.is_site or (edge.is_fixed and edge.parent == frames.world))
        ]
        base = frames.of(robot.root_link) if robot.floating_base else None
        self._moving = [edge for edge in edges if not edge.is_fixed and edge.child != base]
        self._fixed = [edge for edge in edges if edge.is_fixed]
        self._form = _form((edge.parent, edge.child) for edge in self._moving)
        self._base = _form([(frames.world, base)]) if base is not None else None

    def base(self, q: Array, stamp: int) -> bytes | None:
        """Return the placement of a floating base in the world at `q` and `stamp` [ns]; None: there is none."""
        if self._base is None:
            return None
        return self._base.filled([*divmod(stamp, NANOSECONDS), *q[:7].tolist()])

    def moving(self, q: Array, stamp: int) -> bytes | None:
        """Return the links behind joints, a floating base left out; None: there are none."""
        return self._form.filled(self._numbers(self._moving, q, stamp)) if self._moving else None

    def fixed(self, q: Array, stamp: int) -> bytes | None:
        """Return the links behind fixed joints; None: there are none."""
        form = _form((edge.parent, edge.child) for edge in self._fixed)
        return form.filled(self._numbers(self._fixed, q, stamp)) if self._fixed else None

    def _numbers(self, edges: Sequence[_Edge], q: Array, stamp: int) -> list[float]:
        kinematics = kinematics_at(self._robot, q)
        numbers: list[float] = []
        for edge in edges:
            (parent, in_parent), (joint, in_joint) = edge.carrier, edge.carried
            carrier, link = kinematics.placement(parent) * in_parent, kinematics.placement(joint) * in_joint
            numbers += divmod(stamp, NANOSECONDS)
            numbers += pin.SE3ToXYZQUAT(carrier.actInv(link)).tolist()
        return numbers


def _edges(robot: Robot, names: FrameNames) -> Iterable[_Edge]:
    """Yield every link and site with what carries it: the next link, or the world, on the way to the universe."""
    frames = list(robot.model.frames)
    for number, frame in enumerate(frames[1:], 1):
        is_site = frame.type == SITE and robot.links[frame.name] == number  # else the name is that of a link
        if frame.type != pin.FrameType.BODY and not is_site:
            continue
        index = frame.parentFrame
        while index and frames[index].type != pin.FrameType.BODY:
            index = frames[index].parentFrame
        above = frames[index]
        carrier = (int(above.parentJoint), pin.SE3(above.placement)) if index else (0, pin.SE3.Identity())
        yield _Edge(
            names.prefix + above.name if index else names.world,  # a root link of the name world has a frame of its own
            names.prefix + frame.name,
            carrier,
            (int(frame.parentJoint), pin.SE3(frame.placement)),
            bool(robot.owner_of(frame.name)),
            is_site,
        )


def _form(frames: Iterable[tuple[str, str]]) -> Form:
    """Return the form of transforms between these frames."""
    return Form(
        Transforms(transforms=[TransformStamped(header=Header(frame_id=a), child_frame_id=b) for a, b in frames])
    )
