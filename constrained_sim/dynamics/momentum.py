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
from constrained_sim.linalg.elimination import solve
from constrained_sim.linalg.products import entries, matvec, vecdot, vecmat

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
def largest_energy(h, M, v, mean, impulses, inertial):
    """Return the kinetic energy that there may be at the end of a step [J]: what there was, and the work of all forces.

    Args:
        h: length of the step [s].
        M: (nv, nv) inertia at the beginning.
        v: (nv,) velocity there.
        mean: (nv,) velocity in the step.
        impulses: (6, nv) generalised impulses of the causes of motion, with those of the bias forces [N m s, N s].
        inertial: (nv,) Coriolis and centrifugal forces among the bias forces, which do no work.
    """
    work = 0.0
    for i in range(v.shape[0]):
        impulse = h * inertial[i]
        for cause in range(impulses.shape[0]):
            impulse += impulses[cause, i]
        work += impulse * mean[i]
    return 0.5 * vecdot(v, matvec(M, v)) + abs(work)


@kernel
def bounded_momentum(M, v, most):
    """Return (nv,) M v; less of it where the kinetic energy is far beyond the `most` that there may be [J].

    It is where joints turn by about a radian within a step. There no step is accurate; without a bound the next one
    would begin with what this one errs.
    """
    momentum = matvec(M, v)
    energy = 0.5 * vecdot(v, momentum)
    if energy > (1.0 + EXCESS) * most:
        momentum *= np.sqrt(most / energy)
    return momentum


@kernel
def cyclic_momentum(h, M, v, impulses, inertial, rows):
    """Return (c,) the rows of cyclic coordinates of the generalised momentum at the end of a step, exact.

    Args:
        h: length of the step [s].
        M: (nv, nv) inertia at the beginning.
        v: (nv,) velocity there.
        impulses: (6, nv) generalised impulses of the causes of motion, with those of the bias forces [N m s, N s].
        inertial: (nv,) Coriolis and centrifugal forces among the bias forces, which give it no momentum.
        rows: (c,) see :func:`cyclic_rows`.
    """
    found = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        row = rows[i]
        found[i] = vecdot(M[row], v) + h * inertial[row]
        for cause in range(impulses.shape[0]):
            found[i] += impulses[cause, row]
    return found


@kernel
def give_momentum(M, rows, momentum, total):
    """Make `rows` of a generalised momentum `total` (nv,) what they must be, in place.

    By the change of velocity of these coordinates alone that does it.

    Args:
        M: (nv, nv) inertia.
        rows: (c,) which rows.
        momentum: (c,) of them.
        total: changed.
    """
    change = solve(entries(M, rows, rows), momentum - total[rows])
    total += vecmat(change, M[rows])
    total[rows] = momentum


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
