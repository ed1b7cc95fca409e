"""Layout of the array in which a compiled step leaves its results.

To allocate an array for each of them takes longer than the step of a leg.
"""

from __future__ import annotations

from typing import NamedTuple

from numba.extending import register_jitable

from constrained_sim.energy import TERMS
from constrained_sim.validation import Array


class Sizes(NamedTuple):
    """Of a robot and its constraints.

    Attributes:
        nq: length of q.
        nv: of v.
        flyers: number of free-flyers.
        contacts: number k of contacts.
        rows: number of rows, 3 k + l.
        joint_friction: number of degrees of freedom with dry friction.
        bilateral: number m of bilateral rows.
        turning: number e of rows in which contacts resist turning.
        moments: number g of moments about these.
        soft: number of soft contacts.
    """

    nq: int
    nv: int
    flyers: int
    contacts: int
    rows: int
    joint_friction: int
    bilateral: int
    turning: int
    moments: int
    soft: int


class State(NamedTuple):
    """A state as kernels see it, of k contacts and l one-sided rows.

    Attributes:
        q: (nq,) configuration.
        v: (nv,) velocity.
        M: (nv, nv) inertia.
        frames: (r, 4, 3) placements of the free-flyers.
        axes: (k, 3, 3) of the contacts, and so on, see :class:`~constrained_sim.contact.features.ContactGeometry`.
        points: (k, 3) [m].
        distances: (k,) [m].
        gaps: (k + l,) [m, rad].
        phi: (m,) violations of the bilateral rows [m, rad].
        s_bilateral: (m,) their velocities [m/s, rad/s].
        J: (3 k + l, nv) rows.
        s: (3 k + l,) their velocities [m/s, rad/s].
        J_bilateral: (m, nv).
        turning: (e, nv) rows in which contacts resist rolling and spinning.
        deflection: (soft, 2) of the springs of soft contacts along their surfaces [m].
    """

    q: Array
    v: Array
    M: Array
    frames: Array
    axes: Array
    points: Array
    distances: Array
    gaps: Array
    phi: Array
    s_bilateral: Array
    J: Array
    s: Array
    J_bilateral: Array
    turning: Array
    deflection: Array


class StepOutputs(NamedTuple):
    """What a step gives.

    Attributes:
        energy: (9,) terms of the audit.
        acceleration: (nv,) mean, see :func:`~constrained_sim.dynamics.free_flyer.mean_acceleration`.
        forces: (3 k + l + m,) mean forces of all rows, in the order of declaration [N, N m].
        axes: (k, 3, 3) mean axes of the contacts.
        friction_efforts: (nv,) mean ones of dry friction [N m, N].
        impulse: (3 k + l,) of contacts and one-sided rows [N s, N m s].
        joint_friction: (d,) impulses of dry friction [N m s, N s].
        lam: (m,) impulses of the bilateral rows [N s, N m s].
        moments: (e,) impulses of the rows in which contacts resist turning [N m s].
        x: (nv,) velocity of the prediction.
        row_impulses: (3 k + l + d + e,) impulses of all that took part in it, which may be fewer.
    """

    energy: Array
    acceleration: Array
    forces: Array
    axes: Array
    friction_efforts: Array
    impulse: Array
    joint_friction: Array
    lam: Array
    moments: Array
    x: Array
    row_impulses: Array


@register_jitable
def state_size(sizes):
    """Return how many numbers :func:`unpack_state` unpacks."""
    nq, nv, flyers, k, rows, _, m, turning, _, soft = sizes
    per_row, per_contact = nv + 2, 9 + 3 + 1 - 2
    return nq + nv * (nv + 1) + 12 * flyers + per_contact * k + per_row * rows + (m + turning) * nv + 2 * m + 2 * soft


@register_jitable
def packed_size(sizes):
    """Return the length of a record."""
    _, nv, _, k, rows, joint_friction, m, turning, _, _ = sizes
    return state_size(sizes) + TERMS + 3 * nv + 3 * rows + 9 * k + 2 * joint_friction + 2 * m + 2 * turning


@register_jitable
def unpack_state(record, sizes):
    """Return the :class:`State` with which a `record` begins: the one at the end of a step."""
    nq, nv, flyers, k, rows, _, m, e, _, soft = sizes
    M = nq + nv
    frames = M + nv * nv
    axes = frames + 12 * flyers
    points, distances, gaps = axes + 9 * k, axes + 12 * k, axes + 13 * k
    phi = gaps + rows - 2 * k
    s_bilateral, J = phi + m, phi + 2 * m
    s = J + rows * nv
    J_bilateral = s + rows
    turning = J_bilateral + m * nv
    deflection = turning + e * nv
    return State(
        record[:nq],
        record[nq:M],
        record[M:frames].reshape((nv, nv)),
        record[frames:axes].reshape((flyers, 4, 3)),
        record[axes:points].reshape((k, 3, 3)),
        record[points:distances].reshape((k, 3)),
        record[distances:gaps],
        record[gaps:phi],
        record[phi:s_bilateral],
        record[s_bilateral:J],
        record[J:s].reshape((rows, nv)),
        record[s:J_bilateral],
        record[J_bilateral:turning].reshape((m, nv)),
        record[turning:deflection].reshape((e, nv)),
        record[deflection : deflection + 2 * soft].reshape((soft, 2)),
    )


@register_jitable
def unpack_outputs(record, sizes):
    """Return the other parts of a `record`: the :class:`StepOutputs`."""
    _, nv, _, k, rows, joint_friction, m, e, _, _ = sizes
    energy = state_size(sizes)
    a, forces = energy + TERMS, energy + TERMS + nv
    axes = forces + rows + m
    efforts = axes + 9 * k
    impulse, friction = efforts + nv, efforts + nv + rows
    lam, moments = friction + joint_friction, friction + joint_friction + m
    x, row_impulses = moments + e, moments + e + nv
    return StepOutputs(
        record[energy:a],
        record[a:forces],
        record[forces:axes],
        record[axes:efforts].reshape((k, 3, 3)),
        record[efforts:impulse],
        record[impulse:friction],
        record[friction:lam],
        record[lam:moments],
        record[moments:x],
        record[x:row_impulses],
        record[row_impulses:],
    )
