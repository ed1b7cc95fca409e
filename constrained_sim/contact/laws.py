"""Contact laws: the forces that a closed contact may have."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import NamedTuple

from numba.extending import register_jitable

from constrained_sim.exceptions import InvalidValue
from constrained_sim.user_functions import ask_user
from constrained_sim.validation import function, lookup, number

RESTITUTION_LAWS = ("newton", "poisson")
"""What a coefficient of restitution relates: normal velocities before and after, or impulses of the two phases."""

ForceLaw = Callable[[float, float], float]
"""From penetration [m] and its rate [m/s], positive while it grows, to the normal force [N]."""


class Law(ABC):
    """What a closed contact may do: normal force f_n >= 0 [N], friction f_t (2,) [N], slip velocity s_t (2,) [m/s].

    Attributes:
        name: in parameter files and messages.
    """

    name: str

    @abstractmethod
    def coefficient(self, friction: float) -> float:
        """Return mu of the cone ``|f_t| <= mu f_n``, infinite where the contact never slides.

        Args:
            friction: coefficient declared with the contact, >= 0.

        Raises:
            InvalidValue: a coefficient that this law does not have.
        """


@dataclass(frozen=True)
class Rigid(Law):
    """Non-penetration with Coulomb friction: Signorini's condition, and the friction that dissipates the most.

    ``0 <= f_n _|_ s_n >= 0`` with s_n the normal velocity where the gap is closed. ``|f_t| <= mu f_n``, and
    ``f_t = -mu f_n s_t / |s_t|`` where it slides. The cone is the round one.

    Source: Acary and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems, 2008, chapters 3 and 13.
    """

    name = "rigid"

    def coefficient(self, friction: float) -> float:
        """Return `friction`, as declared."""
        return friction


class _WithoutCoefficient(Law):
    def coefficient(self, friction: float) -> float:
        """Return mu of this law.

        Raises:
            InvalidValue: a declared `friction` other than 0.
        """
        if friction != 0.0:
            raise InvalidValue(
                f"friction of a contact with law {self.name!r}", friction, "0: this law has no coefficient"
            )
        return self._coefficient

    _coefficient: float


@dataclass(frozen=True)
class Frictionless(_WithoutCoefficient):
    """Non-penetration without friction: ``0 <= f_n _|_ s_n >= 0``, ``f_t = 0``. The contact declares no coefficient."""

    name = "frictionless"
    _coefficient = 0.0


@dataclass(frozen=True)
class Sticking(_WithoutCoefficient):
    """Holds its point in all directions until the normal force would pull: lift-off as simple simulators have it.

    That is Coulomb's law with an infinite coefficient; the contact declares none. Several such contacts may leave no
    solution: one of them would pull if it held, and penetrate if it did not. Then Coulomb's law with a coefficient of
    100 decides which of them slide.
    """

    name = "sticking"
    _coefficient = math.inf


class ForceCoefficients(NamedTuple):
    """Coefficients of a normal force ``F = k delta^n (1 + c ddelta/dt) + d ddelta/dt``.

    Attributes:
        stiffness: k [N/m^n].
        exponent: n, at least 1.
        dissipation: c [s/m].
        damping: d [N s/m].
    """

    stiffness: float
    exponent: float
    dissipation: float
    damping: float


@register_jitable
def normal_force(coefficients, penetration, rate):
    """Return F [N] and its derivatives by `penetration` [N/m], not below 0, and by its `rate` [N s/m].

    Args:
        coefficients: see :class:`ForceCoefficients`.
        penetration: delta > 0 [m].
        rate: of the penetration [m/s], positive while it grows.
    """
    k, n, c, d = coefficients
    spring, growth = k * penetration**n, 1.0 + c * rate
    by_penetration = n * k * penetration ** (n - 1.0) * growth
    return spring * growth + d * rate, max(by_penetration, 0.0), spring * c + d


class SoftLaw(Law):
    """A force that depends on penetration and its rate; there is no impact, and penetration is not an error.

    Normal force ``f_n = max(0, F(delta, ddelta/dt))`` where the penetration delta > 0 [m], else 0. Along the surface a
    spring and a damper pull towards where the contact touched down: ``f_t = -k_t e - d_t s_t``, with e (2,) the
    deflection of the spring [m]. Where this is longer than ``mu f_n`` it is cut to that length: the contact slides, and
    the spring follows the force, ``de/dt = -(f_t + k_t e) / d_t``, at once where there is no damper. Without the spring
    this is friction regularised by viscosity.

    Attributes:
        tangential_stiffness: k_t [N/m].
        tangential_damping: d_t [N s/m].
    """

    tangential_stiffness: float
    tangential_damping: float

    @property
    @abstractmethod
    def coefficients(self) -> ForceCoefficients | None:
        """Coefficients of F. None: :meth:`force` and :meth:`slopes` are asked in each step; override them only then."""

    def force(self, penetration: float, rate: float) -> float:
        """Return F [N], pushing the bodies apart; a negative value counts as 0.

        Args:
            penetration: delta > 0 [m].
            rate: of the penetration [m/s], positive while it grows.

        Raises:
            InvalidValue: a law of the user's that returned no finite number.
        """
        force: float
        force, _, _ = normal_force(self.coefficients, penetration, rate)
        return force

    def slopes(self, penetration: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of F by `penetration` [N/m], not below 0, and by its `rate` [N s/m]."""
        by_penetration: float
        by_rate: float
        _, by_penetration, by_rate = normal_force(self.coefficients, penetration, rate)
        return by_penetration, by_rate

    def coefficient(self, friction: float) -> float:
        """Return `friction`, as declared.

        Raises:
            InvalidValue: a friction, but neither stiffness nor damping along the surface.
        """
        if friction and not (self.tangential_stiffness or self.tangential_damping):
            allowed = "0, or a tangential_stiffness or tangential_damping beside it"
            raise InvalidValue(f"friction of a contact with law {self.name!r}", friction, allowed)
        return friction

    def _check(self, *names: str) -> None:
        for name in names:
            value = number(f"{name} of law {self.name!r}", getattr(self, name), 0.0)
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Compliant(SoftLaw):
    """A linear spring and damper in each direction, ``F = k delta + d ddelta/dt``, or a normal force of the user's.

    Attributes:
        stiffness: k [N/m].
        damping: d [N s/m].
        law: ``law(penetration, rate) -> force`` [N], in place of k and d.
        tangential_stiffness: k_t [N/m]; None: `stiffness`.
        tangential_damping: d_t [N s/m]; None: `damping`.

    Raises:
        InvalidValue: a negative value, neither a stiffness nor a law, or both.

    Source: Hutter and others, lecture on simulating legged robots: soft contact ``f = K (p0 - p) - D dp/dt``, and its
    extension to general laws.
    """

    stiffness: float = 0.0
    damping: float = 0.0
    law: ForceLaw | None = None
    tangential_stiffness: float = None  # type: ignore[assignment]
    tangential_damping: float = None  # type: ignore[assignment]

    name = "compliant"

    def __post_init__(self) -> None:
        """Check all values."""
        for normal, tangential in (("stiffness", "tangential_stiffness"), ("damping", "tangential_damping")):
            if getattr(self, tangential) is None:
                object.__setattr__(self, tangential, getattr(self, normal))
        self._check("stiffness", "damping", "tangential_stiffness", "tangential_damping")
        if self.law is not None:
            function("law of a compliant contact", self.law, "law(penetration, rate) -> force")
        if (self.law is None) == (self.stiffness == 0.0) or (self.law is not None and self.damping):
            given = {"stiffness": self.stiffness, "damping": self.damping, "law": self.law}
            raise InvalidValue("compliant contact", given, "a positive stiffness, or a law instead")

    @property
    def coefficients(self) -> ForceCoefficients | None:
        """Coefficients of F; None: it is a function of the user's."""
        return ForceCoefficients(self.stiffness, 1.0, 0.0, self.damping) if self.law is None else None

    def force(self, penetration: float, rate: float) -> float:
        """Return F [N] of `penetration` [m] and `rate` [m/s], see :meth:`SoftLaw.force`."""
        if self.law is None:
            return super().force(penetration, rate)
        return number("force of a compliant contact's law", ask_user(self.law, penetration, rate))

    def slopes(self, penetration: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of F by `penetration` and `rate`; of a user's law by differences, and not below 0."""
        if self.law is None:
            return super().slopes(penetration, rate)
        here = self.force(penetration, rate)
        by_penetration = (self.force(penetration * (1.0 + DIFFERENCE), rate) - here) / (penetration * DIFFERENCE)
        step = DIFFERENCE * max(abs(rate), 1.0)
        return max(by_penetration, 0.0), max((self.force(penetration, rate + step) - here) / step, 0.0)


DIFFERENCE = 1e-6
"""Step of the differences of a user's law, relative to the depth, and to the speed or 1 m/s: it leaves about 1e-6 of
curvature, and 1e-10 of rounding."""


@dataclass(frozen=True)
class HuntCrossley(SoftLaw):
    """``F = k delta^n (1 + c ddelta/dt)``: no jump of the force at touchdown.

    Restitution falls with the speed v of the impact: at small speeds Newton's coefficient is about ``1 - 2/3 c v``.

    Attributes:
        stiffness: k [N/m^n].
        dissipation: c [s/m].
        exponent: n; 3/2 for a sphere on a plane (Hertz).
        tangential_stiffness: k_t [N/m].
        tangential_damping: d_t [N s/m].

    Raises:
        InvalidValue: a negative value, no stiffness, or an exponent below 1.

    Source: Hunt and Crossley, Coefficient of restitution interpreted as damping in vibroimpact, 1975.
    """

    stiffness: float
    dissipation: float = 0.0
    exponent: float = 1.5
    tangential_stiffness: float = 0.0
    tangential_damping: float = 0.0

    name = "hunt_crossley"

    def __post_init__(self) -> None:
        """Check all values."""
        number(f"stiffness of law {self.name!r}", self.stiffness, 0.0, open_lower=True)
        number(f"exponent of law {self.name!r}", self.exponent, 1.0)
        self._check("stiffness", "dissipation", "exponent", "tangential_stiffness", "tangential_damping")

    @property
    def coefficients(self) -> ForceCoefficients:
        """Coefficients of F."""
        return ForceCoefficients(self.stiffness, self.exponent, self.dissipation, 0.0)


LAWS: dict[str, type[Law]] = {law.name: law for law in (Rigid, Frictionless, Sticking, Compliant, HuntCrossley)}
"""Contact laws by their name in parameter files."""


def make_law(name: str, parameters: Mapping[str, float]) -> Law:
    """Return the law `name` with `parameters`, numbers by name.

    Raises:
        UnknownName: no such law, or a parameter that it does not have.
        InvalidValue: a parameter that is missing or not allowed.
    """
    kind = lookup("contact law", name, LAWS)
    known = {f.name: f for f in fields(kind) if f.name != "law"}  # type: ignore[arg-type]
    for parameter in parameters:
        lookup(f"parameter of law {name!r}", parameter, known)
    for parameter, f in known.items():
        if f.default is MISSING and parameter not in parameters:
            raise InvalidValue(f"{parameter} of law {name!r}", None, "a number: it has no default")
    return kind(**parameters)
