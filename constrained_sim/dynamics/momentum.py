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
from constrained_sim.linalg.products import entries, vecmat

ENERGY_ERRORS = 0.003, 0.1
"""Shares of the kinetic energy that one step may err by: of second order, in which nearly all of quadrupeds that stand,
run or fall err less; and of first order."""

SAME_INERTIA = 1e-12
"""Change of an entry ``M_ij / sqrt(M_ii M_jj)`` of the inertia that is rounding."""


@kernel
def with_impulses(momentum, impulses):
    """Return (nv,) a generalised `momentum` (nv,) plus the sum of the `impulses` (6, nv) of the causes of motion."""
    total = momentum.copy()
    for cause in range(impulses.shape[0]):
        for i in range(total.shape[0]):
            total[i] += impulses[cause, i]
    return total


@kernel
def limit_energy(parents, kinetic, work, allowed, v, momentum):
    """Compare the kinetic energy at the end of a step with the work, and limit it by that, in place.

    Of each tree on the world by itself. They differ by more than :data:`ENERGY_ERRORS` where joints turn by some tenths
    of a radian within a step: there no step is accurate, and without a limit the next one would begin with what this
    one errs. Where the energy at the end is the larger one, the velocity is multiplied by the s of
    ``s^2 E = T + |W_0| + s |W_1|``, with the energies T at the beginning and E at the end, and the work of the forces
    at either velocity. Momenta that are known are not kept there.

    Args:
        parents: (nv,) parent of each degree of freedom, -1 at a root.
        kinetic: (nv,) shares ``v_i (M v)_i / 2`` of the kinetic energy at the beginning [J].
        work: (2, nv) of all forces along each degree of freedom, the halves at the velocities at both ends [J].
        allowed: share of the kinetic energy by which they may differ; (nv,) shares of that at rest [J], which is added
            to it.
        v: (nv,) velocity at the end.
        momentum: (nv,) M v there; scaled down where its energy is too large.

    Returns:
        Whether they differ by so much in a tree. So does NaN.
    """
    roots = np.empty(v.shape[0], dtype=np.int64)
    (error, negligible), first = allowed, np.zeros(v.shape[0])
    energy, least = np.zeros(v.shape[0]), np.zeros(v.shape[0])
    done = np.zeros((2, v.shape[0]))
    for i in range(v.shape[0]):
        root = i if parents[i] < 0 else roots[parents[i]]
        roots[i] = root
        first[root] += kinetic[i]
        done[0, root] += work[0, i]
        done[1, root] += work[1, i]
        energy[root] += 0.5 * v[i] * momentum[i]
        least[root] += negligible[i]
    is_off = False
    for i in range(v.shape[0]):
        start, end, before, after = first[roots[i]], energy[roots[i]], done[0, roots[i]], done[1, roots[i]]
        most = start + abs(before + after) + least[roots[i]]
        is_off |= not abs(end - start - before - after) <= error * most
        if end > (1.0 + error) * most:
            half = 0.5 * abs(after) / end
            momentum[i] *= min(half + np.sqrt(half * half + (start + abs(before)) / end), 1.0)
    return is_off


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
