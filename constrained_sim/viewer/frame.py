"""Content of one picture, independent of its source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.robot import Robot
from constrained_sim.step_result import StepResult
from constrained_sim.validation import Array

PICTURE_PERIOD = 1.0 / 30.0
"""[s] of wall-clock time between two pictures: that of films; a control period is far shorter."""


@dataclass(frozen=True, eq=False)
class ShownContact:
    """One contact point.

    Attributes:
        name: of the contact.
        status: open, sticking or sliding.
        position: (3,) [m], world frame.
        normal: (3,) unit vector from the ground to the robot, world axes.
        force: (3,) on the robot [N], world axes, impacts excluded.
        friction: Coulomb coefficient.
        link: that touches; one of an object has the object's name before it.
    """

    name: str
    status: ContactStatus
    position: Array
    normal: Array
    force: Array
    friction: float
    link: str

    @property
    def normal_force(self) -> float:
        """Force along the normal [N]."""
        return float(self.force @ self.normal)

    @property
    def text(self) -> str:
        """What a user reads who asks for the force."""
        normal = self.normal_force
        tangential = float(np.linalg.norm(self.force - normal * self.normal))
        return (
            f"{self.name}: {self.status.name.lower()}, force {_components(self.force)} N, "
            f"normal {normal:.2f} N, tangential {tangential:.2f} of {self.friction * max(normal, 0.0):.2f} N"
        )


@dataclass(frozen=True, eq=False)
class ShownAnchor:
    """One constraint between links.

    Attributes:
        name: of the constraint.
        position: (3,) where its force acts [m], world frame.
        force: (3,) on its first link [N], world axes.
    """

    name: str
    position: Array
    force: Array

    @property
    def text(self) -> str:
        """What a user reads who asks for the force."""
        return f"{self.name}: force {_components(self.force)} N, {np.linalg.norm(self.force):.2f} N in all"


@dataclass(frozen=True, eq=False)
class ShownImpact:
    """One impact.

    Attributes:
        t: instant [s].
        energy_lost: kinetic energy [J].
        contacts: names of those that passed an impulse.
    """

    t: float
    energy_lost: float
    contacts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ShownObject:
    """An object beside the robot.

    Attributes:
        name: of the object.
        body: what it is; the same one in all frames while it is there.
        q: (nq,) configuration of `body`.
        mount: where the world of `body` is in the world.
    """

    name: str
    body: Robot
    q: Array
    mount: pin.SE3


@dataclass(frozen=True, eq=False)
class Frame:
    """The robot and what is beside it at one instant.

    Attributes:
        t: [s].
        q: (nq,) configuration of the robot alone.
        v: (nv,) velocity of the robot alone.
        efforts: by actuated joint [N m, N].
        contacts: open ones too.
        anchors: closed loops and other constraints between links.
        impacts: in the order of time, those of long ago perhaps left out.
        energy: [J] by name, for the plots.
        text: what else there is to say of the simulation: its state, its solver.
        objects: beside the robot.
    """

    t: float
    q: Array
    v: Array
    efforts: Mapping[str, float] = field(default_factory=dict)
    contacts: tuple[ShownContact, ...] = ()
    anchors: tuple[ShownAnchor, ...] = ()
    impacts: tuple[ShownImpact, ...] = ()
    energy: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    objects: tuple[ShownObject, ...] = ()

    def find(self, name: str) -> ShownContact | ShownAnchor | None:
        """Return the contact or anchor `name`; None where there is none."""
        all_of_them: tuple[ShownContact | ShownAnchor, ...] = (*self.contacts, *self.anchors)
        return next((shown for shown in all_of_them if shown.name == name), None)


def _components(force: Array) -> str:
    return f"({', '.join(f'{component:.2f}' for component in force)})"


def split(robot: Robot, q: Array, v: Array) -> tuple[Array, Array, tuple[ShownObject, ...]]:
    """Return q and v of `robot` alone, and the objects beside it, at its `q` (nq,) and `v` (nv,)."""
    own, objects = robot.without_objects, []
    first = own.nq
    for entry in robot.objects:
        objects.append(ShownObject(entry.name, entry.body, q[first : first + entry.body.nq], entry.mount()))
        first += entry.body.nq
    return q[: own.nq], v[: own.nv], tuple(objects)


SHOWN_TERMS = "actuators", "impact_losses", "external", "damping", "contacts", "constraints", "projection"
"""Of :class:`~constrained_sim.energy.EnergyTerms`, in the order in which a plot shows them."""


def energies_of(kinetic: float, potential: float, terms: Mapping[str, float]) -> dict[str, float]:
    """Return the energies that a plot shows [J], all of the robot and the objects beside it.

    Args:
        kinetic: energy [J].
        potential: of gravity and springs [J].
        terms: of the audit, by their names, added up [J].
    """
    return {"kinetic": kinetic, "potential": potential, **{name.replace("_", " "): terms[name] for name in SHOWN_TERMS}}


def contacts_of(result: StepResult) -> tuple[ShownContact, ...]:
    """Return the contacts at the end of a step."""
    return tuple(
        ShownContact(one.name, one.status, one.position, one.normal, one.force, one.friction, one.link)
        for one in result.contact_forces.values()
    )


def anchors_of(result: StepResult) -> tuple[ShownAnchor, ...]:
    """Return the constraints between links at the end of a step."""
    return tuple(
        ShownAnchor(force.name, force.position, force.wrench[:3])
        for force in result.constraint_forces.values()
        if force.link_a
    )
