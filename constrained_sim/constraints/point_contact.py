"""PointContact: a point or a sphere of a link may touch a fixed surface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from constrained_sim.constraints.constraint import Constraint, checked_links, checked_name
from constrained_sim.contact.bound_contact import BoundContact, ContactProperties
from constrained_sim.contact.laws import RESTITUTION_LAWS, Law, Rigid, SoftLaw, Sticking
from constrained_sim.contact.surfaces import Plane
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import WORLD, Robot
from constrained_sim.validation import Array, finite_array, known, number, read_only


@dataclass(frozen=True, eq=False)
class PointContact(Constraint):
    """A unilateral contact of a point (or a sphere) of the robot with a surface; rows [t1, t2, n].

    Attributes:
        name: unique name.
        link: any link or frame of the robot.
        point: (3,) [m] in the link; the centre of the sphere if ``radius > 0``.
        surface: plane that it may touch.
        law: which forces it may have.
        friction: Coulomb coefficient, >= 0.
        restitution: coefficient, 0 to 1.
        radius: [m], >= 0.
        restitution_law: what the coefficient relates: ``"newton"``, normal velocities after and before an impact;
            ``"poisson"``, normal impulses of expansion and compression. See
            :class:`~constrained_sim.impact_problem.ImpactProblem`.
        torsional_friction: [m], >= 0; the moment about the normal is at most this times the normal force.
        rolling_friction: [m], >= 0; the moment along the surface is at most this times the normal force.

    Raises:
        InvalidValue: a value outside these ranges, or a coefficient that the law does not have.
        UnknownName: no such law of restitution.
    """

    name: str
    link: str
    point: Sequence[float]
    surface: Plane = field(default_factory=Plane)
    law: Law = field(default_factory=Rigid)
    friction: float = 0.0
    restitution: float = 0.0
    radius: float = 0.0
    restitution_law: str = "newton"
    torsional_friction: float = 0.0
    rolling_friction: float = 0.0

    kind = "point_contact"
    is_unilateral = True

    def __post_init__(self) -> None:
        """Check all values."""
        checked_name(self.name)
        what = f"of contact {self.name!r}"
        checked_links(what, self.link)
        if self.link == WORLD:
            raise InvalidValue(f"link {what}", self.link, "a link of the robot: nothing moves the world")
        object.__setattr__(self, "point", read_only(finite_array(f"point {what}", self.point, (3,))))
        object.__setattr__(self, "friction", number(f"friction {what}", self.friction, 0.0))
        object.__setattr__(self, "restitution", number(f"restitution {what}", self.restitution, 0.0, 1.0))
        object.__setattr__(self, "radius", number(f"radius {what}", self.radius, 0.0))
        for coefficient in ("torsional_friction", "rolling_friction"):
            object.__setattr__(self, coefficient, number(f"{coefficient} {what}", getattr(self, coefficient), 0.0))
        known("law of restitution", self.restitution_law, RESTITUTION_LAWS)
        if not isinstance(self.law, Law):
            raise InvalidValue(f"law {what}", self.law, "an instance of a class in LAWS, such as Rigid()")
        if isinstance(self.law, SoftLaw) and self.restitution:
            raise InvalidValue(f"restitution {what}", self.restitution, "0: a soft law has no impact")
        if self.resists_turning and not isinstance(self.law, (Rigid, Sticking)):
            given = {"torsional_friction": self.torsional_friction, "rolling_friction": self.rolling_friction}
            raise InvalidValue(f"resistance {what}", given, f"0 with law {self.law.name!r}: it takes no moments")
        if not isinstance(self.surface, Plane):
            raise InvalidValue(f"surface {what}", self.surface, "a Plane")
        self.law.coefficient(self.friction)

    @cached_property
    def coefficient(self) -> float:
        """Friction coefficient in effect under the law; infinite where the law sticks."""
        return self.law.coefficient(self.friction)

    @cached_property
    def properties(self) -> ContactProperties:
        """What it may do, wherever it is."""
        return ContactProperties(
            self.law,
            self.coefficient,
            self.restitution,
            self.restitution_law == "poisson",
            self.torsional_friction,
            self.rolling_friction,
        )

    @property
    def resists_turning(self) -> bool:
        """Whether it resists rolling or spinning."""
        return self.torsional_friction > 0.0 or self.rolling_friction > 0.0

    def bind(self, robot: Robot, q: Array) -> BoundContact:
        """Return the contact on `robot`; `q` does not count.

        Raises:
            UnknownName: a link that the robot does not have.
        """
        joint, offset = robot.link_point(self.link, np.asarray(self.point))
        anchor = self.surface.offset * np.asarray(self.surface.normal)
        return BoundContact(
            self.name, self.link, self.properties, joint, offset, self.radius, 0, anchor, self.surface.axes,
            declaration=self,
        )  # fmt: skip


def point_contacts(constraints: Iterable[Constraint]) -> dict[str, PointContact]:
    """Return those of `constraints` that are contacts, by name, in their order."""
    return {constraint.name: constraint for constraint in constraints if isinstance(constraint, PointContact)}
