"""CustomConstraint: rows of the user's own, by functions or by subclass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from constrained_sim.constraints.constraint import BoundConstraint, Constraint, checked_name
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.robot import Robot
from constrained_sim.user_functions import ask_user
from constrained_sim.validation import Array, finite_array, flag, function, number, whole_number

MOST_ROWS = 10_000
"""Of one constraint; more than any robot has degrees of freedom."""

RowFunction = Callable[[Array, Array, float], Any]


class CustomConstraint(Constraint):
    """Rows of the user's own: functions of (q, v, t), or a subclass that overrides the methods of the same names.

    Position level, ``phi(q, t) = 0``: phi, jacobian and gamma are needed, and velocity (``s = J v + phi_t``) where phi
    depends on time. Velocity level, ``psi(q, v, t) = 0``: velocity (psi), jacobian (dpsi/dv) and gamma are needed; psi
    may be any function of v, but where it is not linear an impact linearises it at the velocity before.
    Unilateral, ``phi(q) >= 0``: each row pushes only, and cannot depend on time.

    Attributes:
        name: unique name.
        dim: number of rows.
        is_position_level: whether there is a phi.
        is_unilateral: whether the rows push only.
        restitution: Newton's coefficient of unilateral rows.
    """

    kind = "custom"
    asks_user = True

    def __init__(
        self,
        name: str,
        dim: int,
        phi: RowFunction | None = None,
        jacobian: RowFunction | None = None,
        gamma: RowFunction | None = None,
        velocity: RowFunction | None = None,
        unilateral: bool = False,
        restitution: float = 0.0,
    ) -> None:
        """Take the functions; a subclass passes the name and the number of rows only.

        Args:
            name: unique name.
            dim: number of rows.
            phi: (dim,) violation [m, rad]; None: velocity level.
            jacobian: (dim, nv) derivative of the row velocity by v.
            gamma: (dim,) ``ds/dt - J a`` [m/s^2, rad/s^2].
            velocity: (dim,) row velocity s [m/s, rad/s]; None: ``J v``.
            unilateral: whether the rows push only.
            restitution: Newton's coefficient of unilateral rows, 0 to 1.

        Raises:
            InvalidValue: no name, no rows, a function that is missing, or unilateral rows without phi, or with a
                velocity of their own.
        """
        self.name = checked_name(name)
        self.dim = whole_number(f"dim of {name!r}", dim, 1, MOST_ROWS)
        given = {"phi": phi, "jacobian": jacobian, "gamma": gamma, "velocity": velocity}
        for method, rows in given.items():
            if rows is not None:
                setattr(self, method, function(f"{method} of {name!r}", rows, "of (q, v, t)"))
        own = {
            method
            for method in given
            if given[method] or getattr(type(self), method) is not getattr(CustomConstraint, method)
        }
        missing = {"jacobian", "gamma"} - own or ({"phi or velocity"} if not own & {"phi", "velocity"} else set())
        if missing:
            raise InvalidValue(f"functions of {name!r}", sorted(own), f"also {', '.join(sorted(missing))}")
        self.is_position_level = "phi" in own
        self.is_unilateral = flag(f"unilateral of {name!r}", unilateral)
        self.restitution = number(f"restitution of {name!r}", restitution, 0.0, 1.0)
        if unilateral and ("velocity" in own or "phi" not in own):
            raise InvalidValue(
                f"functions of {name!r}", sorted(own), "phi, jacobian and gamma of a unilateral constraint"
            )

    def __getattr__(self, attribute: str) -> Any:
        """Refuse a subclass that has not called this class's ``__init__``: only what that sets is asked for here."""
        if attribute not in ("name", "dim", "is_position_level", "is_unilateral", "restitution"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {attribute!r}")
        what = f"constraint of class {type(self).__name__!r}"
        raise InvalidValue(what, f"no {attribute}", "an __init__ that calls super().__init__(name, dim)")

    def phi(self, q: Array, v: Array, t: float) -> Any:
        """Return (dim,) the violation [m, rad] at q (nq,), v (nv,) and the time t [s]."""
        return np.zeros(self.dim)

    def jacobian(self, q: Array, v: Array, t: float) -> Any:
        """Return J (dim, nv), the derivative of the row velocity by v, at q (nq,), v (nv,) and the time t [s]."""
        raise NotImplementedError

    def gamma(self, q: Array, v: Array, t: float) -> Any:
        """Return (dim,) ``ds/dt - J a`` [m/s^2, rad/s^2] at q (nq,), v (nv,) and the time t [s]."""
        raise NotImplementedError

    def velocity(self, q: Array, v: Array, t: float) -> Any:
        """Return (dim,) the row velocity s [m/s, rad/s] at q (nq,), v (nv,) and the time t [s]."""
        return np.asarray(self.jacobian(q, v, t)) @ v

    def bind(self, robot: Robot, q: Array) -> BoundCustomConstraint:
        """Return its rows on `robot`, whose q and v the functions are given; the argument `q` does not count."""
        return BoundCustomConstraint(self, robot)


class BoundCustomConstraint(BoundConstraint):
    """A :class:`CustomConstraint` on one robot; what its functions return is checked at every call."""

    def __init__(self, declaration: CustomConstraint, robot: Robot) -> None:
        """Bind `declaration`."""
        self.declaration: CustomConstraint = declaration
        self.dim = declaration.dim
        self.is_position_level = declaration.is_position_level
        self._nv = robot.nv

    def phi(self, dynamics: Dynamics) -> Array:
        """Return (dim,) the violation; 0 at velocity level."""
        return self._checked("phi", (self.dim,), dynamics.q, dynamics.v, dynamics.t)

    def jacobian(self, dynamics: Dynamics) -> Array:
        """Return (dim, nv)."""
        return self._checked("jacobian", (self.dim, self._nv), dynamics.q, dynamics.v, dynamics.t)

    def gamma(self, dynamics: Dynamics) -> Array:
        """Return (dim,)."""
        return self._checked("gamma", (self.dim,), dynamics.q, dynamics.v, dynamics.t)

    def velocity(self, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (dim,) the row velocity."""
        return self._checked("velocity", (self.dim,), dynamics.q, v, t)

    def velocity_with(self, J: Array, dynamics: Dynamics, v: Array, t: float) -> Array:
        """Return (dim,) the same: it need not be linear in `v`."""
        return self.velocity(dynamics, v, t)

    def _checked(self, method: str, shape: tuple[int, ...], q: Array, v: Array, t: float) -> Array:
        values = ask_user(getattr(self.declaration, method), q, v, t)
        return finite_array(f"{method} of {self.name!r}", values, shape)
