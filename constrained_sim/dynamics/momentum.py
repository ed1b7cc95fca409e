"""Generalised momentum M v over a step: of which rows it is known exactly, and how the rest follows.

By Lagrange, ``d(M v)/dt = dT/dq + f`` with T the kinetic energy. A coordinate that M does not depend on (a cyclic one)
gains what forces give it, and nothing else. So are the rows of free-flyers known, see
:mod:`~constrained_sim.dynamics.free_flyer`.

A step has a velocity by the equation of motion in its middle, ``M (v' - v) = h (f - bias)``, where such momenta are
right to second order only. Of all changes of velocity that make them right, that of these coordinates alone has the
least kinetic energy: ``min dv^T M dv`` with ``S M dv = dp`` is ``dv = S^T (S M S^T)^-1 dp``, S the rows. So the other
joints move as the equation of motion says, and what carries them takes what is left of the momentum.

To solve for the other velocities by momentum too, ``M' v' = p'``, is of second order as well, but not stable: M changes
within a step by more than its smallest eigenvalue where light links turn fast, as in a rope.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.compilation.kernel import kernel
from constrained_sim.linalg.inertia_factor import solve_inertia
from constrained_sim.linalg.products import entries, matvec, vecmat

EXCESS = 0.1
"""Share of the kinetic energy that one step may err by: of chains that lash, steps that are of use err by 0.03."""

SAME_INERTIA = 1e-12
"""Change of an entry ``M_ij / sqrt(M_ii M_jj)`` of the inertia that is rounding."""


@kernel
def generalized_momentum(M, v, impulses):
    """Return (nv,) ``M v`` plus the sum of `impulses` (6, nv)."""
    total = matvec(M, v)
    for cause in range(impulses.shape[0]):
        for i in range(total.shape[0]):
            total[i] += impulses[cause, i]
    return total


@kernel
def applied_impulses(h, impulses, inertial):
    """Return (nv,) the generalised impulses of all forces but inertial ones [N m s, N s].

    Args:
        h: length of the step [s].
        impulses: (6, nv) of the causes of motion, with those of the bias forces.
        inertial: (nv,) Coriolis and centrifugal forces among these [N m, N].
    """
    total = h * inertial
    for cause in range(impulses.shape[0]):
        for i in range(total.shape[0]):
            total[i] += impulses[cause, i]
    return total


@kernel
def limit_energy(parents, kinetic, work, v, momentum):
    """Scale the momentum (nv,) at the end of a step down where its kinetic energy is far beyond the work, in place.

    Of each tree on the world by itself. It is far beyond where joints turn by about a radian within a step: there no
    step is accurate, and without a limit the next one would begin with what this one errs. Momenta that are known are
    not kept there.

    Args:
        parents: (nv,) parent of each degree of freedom, -1 at a root.
        kinetic: (nv,) shares ``v_i (M v)_i / 2`` of the kinetic energy at the beginning [J].
        work: (nv,) of all forces along each degree of freedom [J].
        v: (nv,) velocity at the end.
        momentum: (nv,) M v there; changed.
    """
    roots = np.empty(v.shape[0], dtype=np.int64)
    most, done, energy = np.zeros(v.shape[0]), np.zeros(v.shape[0]), np.zeros(v.shape[0])
    for i in range(v.shape[0]):
        root = i if parents[i] < 0 else roots[parents[i]]
        roots[i] = root
        most[root] += kinetic[i]
        done[root] += work[i]
        energy[root] += 0.5 * v[i] * momentum[i]
    for i in range(v.shape[0]):
        allowed = most[roots[i]] + abs(done[roots[i]])
        if energy[roots[i]] > (1.0 + EXCESS) * allowed:
            momentum[i] *= np.sqrt(allowed / energy[roots[i]])


@kernel
def give_momentum(M, rows, parents, exact, v, total):
    """Make the rows of a generalised momentum that are known what they are, in place.

    By the change of velocity of these coordinates alone that does it.

    Args:
        M: (nv, nv) inertia.
        rows: (c,) which rows.
        parents: (c,) the parent of each among them, -1 where there is none.
        exact: (nv,) momentum, of which these rows count.
        v: (nv,) velocity; changed.
        total: (nv,) M v; changed.
    """
    change = solve_inertia(entries(M, rows, rows), parents, exact[rows] - total[rows])
    v[rows] += change
    total += vecmat(change, M[rows])
    total[rows] = exact[rows]


def cyclic_rows(model: pin.Model) -> npt.NDArray[np.int64]:
    """Return (c,) the rows in v of the coordinates that M does not depend on.

    As of a joint on the world, the three of a gantry, a turntable that slides along its axis, or a wheel. They are
    found by moving one after the other. Where v is not the rate of coordinates (quaternions), there are none.
    """
    data, vary = model.createData(), np.random.default_rng(0)
    q = pin.integrate(model, pin.neutral(model), vary.uniform(-1.0, 1.0, model.nv))
    M = np.triu(pin.crba(model, data, q))
    units = np.sqrt(np.diag(M))
    negligible = SAME_INERTIA * np.outer(units, units)
    found = []
    for nq, nv, first in zip(model.nqs, model.nvs, model.idx_vs, strict=True):
        for row in range(first, first + nv) if nq == nv or nv == 1 else ():
            moved = np.triu(pin.crba(model, data, pin.integrate(model, q, np.eye(1, model.nv, row)[0])))
            if np.all(np.abs(moved - M) <= negligible):
                found.append(row)
    return np.array(found, dtype=np.int64)
