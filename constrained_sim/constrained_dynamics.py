"""The one problem behind accelerations, impacts and time steps: bilateral rows held, contact rows complementary."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact_solvers.delassus import delassus_system, drop_held
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.contact_solvers.problem import ContactProblem, ContactSolution, no_values
from constrained_sim.contact_solvers.reduced_rows import (
    expand_rows,
    expanded_diagonal,
    leading_rows,
    own_rows,
    reduce_rows,
    reduce_vector,
)
from constrained_sim.contact_solvers.rolling_rows import no_rolling
from constrained_sim.contact_solvers.scaled_problem import ContactLaws, inverse_diagonal
from constrained_sim.contact_solvers.solve import BY_STICKING, ContactMethod, solve_fallback, solve_quick
from constrained_sim.contact_solvers.sticking import judge_sticking, solve_sticking
from constrained_sim.exceptions import ContactNotSolved, InexactContact
from constrained_sim.linalg.cholesky import independent_factor, substitute_twice
from constrained_sim.linalg.inertia_factor import factor_inertia, solve_inertia, unwhiten_one, whiten, whiten_one
from constrained_sim.linalg.products import entries, gram, matvec, vecdot, vecmat
from constrained_sim.linalg.rank import LARGE_PIVOT, MOTION_ROUNDING
from constrained_sim.solvers import Solver, System
from constrained_sim.solvers.held_rows import hold_first, hold_rows
from constrained_sim.solvers.solver import row_residual
from constrained_sim.validation import Array

EXACTLY = ContactMethod()
NOTHING_KNOWN = no_values()
NO_DRY_FRICTION = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
"""No degree of freedom with dry friction is taken out: its row is one of all."""


@dataclass(frozen=True, eq=False)
class ContactRows:
    """Rows of the contacts that may be closed, [t1, t2, n] each, then m box rows, then e rows of rolling friction.

    Attributes:
        J: (n, nv), n = 3 k + m + e.
        offset: (n,) what is added to ``J x`` to give the row quantity u of the contact law.
        friction: (k,).
        slip: (k, 2) known direction of slip, zero where the row velocity decides.
        lower: (m,) lower bounds of the box rows.
        upper: (m,) upper bounds of the box rows.
        compliance: (n,) what is added to the diagonal of the Delassus matrix, so that a row's quantity is
            ``J x + offset + compliance impulse``; None: nothing.
        rolling: (d, 6) rolling and torsional friction, see :mod:`~constrained_sim.contact_solvers.rolling_rows`.
    """

    J: Array
    offset: Array
    friction: Array
    slip: Array
    lower: Array = field(default_factory=no_values)
    upper: Array = field(default_factory=no_values)
    compliance: Array | None = None
    rolling: Array = field(default_factory=no_rolling)

    @property
    def laws(self) -> ContactLaws:
        """What the rows obey."""
        return ContactLaws(self.friction, self.slip, self.lower, self.upper, self.rolling)

    @property
    def normals(self) -> npt.NDArray[np.intp]:
        """Indices of the normal rows of the contacts, and of the box rows."""
        contacts = 3 * len(self.friction)
        return np.concatenate([np.arange(2, contacts, 3), np.arange(contacts, contacts + len(self.lower))])

    def with_rolling(self, J: Array, offset: Array, rolling: Array) -> ContactRows:
        """Return these rows with `rolling` (d, 6) of contacts among them, and their rows after all others."""
        if not len(rolling):
            return self
        compliance = None if self.compliance is None else np.concatenate([self.compliance, np.zeros(len(J))])
        return replace(
            self,
            J=np.vstack([self.J, J]),
            offset=np.concatenate([self.offset, offset]),
            compliance=compliance,
            rolling=np.vstack([self.rolling, rolling]),
        )

    def with_bilateral(self, J: Array, b: Array) -> ContactRows:
        """Return these rows with the bilateral ``J x = b`` (m,) too, as the last of the box rows, without bounds."""
        if not len(b):
            return self
        end = 3 * len(self.friction) + len(self.lower)
        return replace(
            self,
            J=np.insert(self.J, end, J, axis=0),
            offset=np.insert(self.offset, end, -b),
            lower=np.concatenate([self.lower, np.full(len(b), -np.inf)]),
            upper=np.concatenate([self.upper, np.full(len(b), np.inf)]),
        )

    @classmethod
    def none(cls, nv: int) -> ContactRows:
        """Return no rows."""
        return cls(np.zeros((0, nv)), np.zeros(0), np.zeros(0), np.zeros((0, 2)))


class TreeInertia(NamedTuple):
    """The inertia of a tree of joints.

    Attributes:
        M: (nv, nv).
        parents: (nv,) the parent of each degree of freedom, see :mod:`~constrained_sim.linalg.inertia_factor`.
    """

    M: Array
    parents: npt.NDArray[np.int64]


class QuickBudget(NamedTuple):
    """What the quick contact methods aim at, and may do.

    Attributes:
        tolerance: error of impulses that is good enough [N s].
        newton_first: see :func:`~constrained_sim.contact_solvers.solve.solve_quick`.
        may_stick: whether all contacts may stick.
    """

    tolerance: float
    newton_first: bool
    may_stick: bool


class ConstrainedSolution(NamedTuple):
    """Solution of ``M x - J^T lam - J_c^T impulse = f`` with the bilateral rows ``J x = b`` and the contact law.

    Attributes:
        x: (nv,) acceleration or velocity.
        lam: (m,) bilateral multipliers [N, N m], or impulses.
        impulse: (n,) contact forces or impulses, and those of the box rows and rolling friction.
        contact: how the contacts were solved; None without contacts.
        dynamics_residual: of the first equation, relative to the largest of its terms.
        constraint_residual: of the second, relative to the largest of its terms.
    """

    x: Array
    lam: Array
    impulse: Array
    contact: ContactSolution | None
    dynamics_residual: float
    constraint_residual: float

    def check_contacts(self, tolerable: float = 0.0) -> None:
        """Refuse a motion whose contact problem is not solved; warn up to a `tolerable` relative residual.

        Raises:
            ContactNotSolved: the residual is neither acceptable nor tolerable.
        """
        if self.contact is None or self.contact.converged:
            return
        if not self.contact.residual <= tolerable:
            raise ContactNotSolved(self.contact.residual)
        warnings.warn(InexactContact(self.contact.residual), stacklevel=2)


def solve_constrained_dynamics(
    solver: Solver,
    system: System,
    f: Array,
    b: Array,
    contacts: ContactRows,
    method: ContactMethod = EXACTLY,
    start: Array = NOTHING_KNOWN,
) -> ConstrainedSolution:
    """Solve for the motion and all multipliers.

    The solver holds all rows first, bilateral ones and those of contacts. If the forces obey the contact law, that is
    the solution. Else the contact law acts on ``G = J_c X`` and ``J_c x0 + offset`` alone, with x0 the motion without
    contact and X the response to unit contact impulses, bilateral rows held; and the solver gives the motion under
    these impulses. So the solver is linear algebra and the law is physics, and neither knows the other.

    Args:
        solver: how to solve the linear part.
        system: M and the bilateral Jacobian.
        f: (nv,) generalised force, or momentum.
        b: (m,) right-hand side of the bilateral rows.
        contacts: rows of the contacts that may be closed.
        method: how contacts are solved.
        start: (n,) impulses near those of the contacts; (0,): nothing is known of them.

    Raises:
        ContactNotSolved: the solver decides contacts itself, and found no motion that they allow.
    """
    if solver.decides_contacts and len(contacts.offset):
        return _solve_program(solver, system, f, b, contacts)
    if not len(contacts.offset):
        return _without_contacts(solver, system, f, b)
    if contacts.compliance is None:
        held = _solve_held(solver, system, f, b, contacts, method)
        if held is not None:
            return held
    return _solve_contacts(solver, system, f, b, contacts, method, start)


def _without_contacts(solver: Solver, system: System, f: Array, b: Array) -> ConstrainedSolution:
    """Solve with bilateral rows only, or without any."""
    if not len(b):
        x, dynamics = free_motion(system.M, system.parents, f)
        return ConstrainedSolution(x, no_values(), no_values(), None, dynamics, 0.0)
    x, lam = solver.factor(system).solve(f, b)
    dynamics = dynamics_residual(system.M, x, f, lam @ system.J)
    return ConstrainedSolution(x, lam, no_values(), None, dynamics, row_residual(system, f, b, x))


def _solve_program(solver: Solver, system: System, f: Array, b: Array, contacts: ContactRows) -> ConstrainedSolution:
    """Solve with the normal rows of frictionless contacts as inequalities of Gauss' principle."""
    J, offset, normals = contacts.J, contacts.offset, contacts.normals
    x, lam, normal = solver.solve_normal_contacts(system, f, b, J[normals], offset[normals])
    impulse = np.zeros(len(J))
    impulse[normals] = normal
    delassus = J @ system.unwhiten(system.whiten(J)).T
    problem = ContactProblem(delassus, J @ x + offset - delassus @ impulse, *contacts.laws)
    dynamics = dynamics_residual(system.M, x, f, lam @ system.J + impulse @ J)
    solution = problem.judged(impulse, solver.name)
    return ConstrainedSolution(x, lam, impulse, solution, dynamics, row_residual(system, f, b, x))


def _solve_contacts(
    solver: Solver, system: System, f: Array, b: Array, contacts: ContactRows, method: ContactMethod, start: Array
) -> ConstrainedSolution:
    """Solve by contact methods, for the motion that bilateral rows leave."""
    J, laws = contacts.J, contacts.laws
    compliance = np.zeros(len(J)) if contacts.compliance is None else contacts.compliance
    may_stick = bool(contacts.compliance is not None or len(b))
    inertia = TreeInertia(system.M, system.parents)
    budget = QuickBudget(method.tolerance, method.newton_first, may_stick)
    x, delassus, free, *quick, solved = quick_contacts(
        inertia, f, (system.J, b), (J, contacts.offset), compliance, laws, start, budget
    )
    if solved:
        solution = method.quick_solution(*quick)
    else:
        solution = solve_fallback(ContactProblem(delassus, free, *laws), method, tuple(quick), start)
    total = f + solution.impulse @ J
    if solved and not len(b):
        dynamics = dynamics_residual(system.M, x, total, np.zeros_like(f))
        return ConstrainedSolution(x, no_values(), solution.impulse, solution, dynamics, 0.0)
    return _without_contacts(solver, system, total, b)._replace(impulse=solution.impulse, contact=solution)


def _solve_held(
    solver: Solver, system: System, f: Array, b: Array, contacts: ContactRows, method: ContactMethod
) -> ConstrainedSolution | None:
    """Let the solver hold all rows; return None where forces are not those that the contact law allows."""
    rows = contacts.with_bilateral(system.J, b)
    J, offset = rows.J, rows.offset
    if solver.compiled_factorization is not None:
        solver.calls += 1
        x, forces, status, residual, magnitude, solved, dynamics = sticking_dynamics(
            solver.compiled_factorization, TreeInertia(system.M, system.parents), f, (J, offset), own_rows(len(J)),
            NO_DRY_FRICTION, rows.laws, method.tolerance,
        )  # fmt: skip
    else:
        every, m, end = system.with_rows(contacts.J), len(b), 3 * len(contacts.friction) + len(contacts.lower)
        x, found = solver.factor(every).solve(f, np.concatenate([b, -contacts.offset]))
        forces = np.insert(found[m:], end, found[:m])
        whitened = np.insert(every.whitened_rows[m:], end, every.whitened_rows[:m], axis=0)
        scale = inverse_diagonal(np.einsum("ij,ij->i", whitened, whitened), rows.laws)
        free = whitened @ system.whiten(f[None])[0] + offset
        status, error, magnitude = judge_sticking(rows.laws, scale, free, J @ x + offset, forces)
        solved = error <= max(OPTIONS.accuracy * magnitude, method.tolerance)
        residual, dynamics = error / magnitude, dynamics_residual(system.M, x, f, forces @ J)
    if not solved:
        return None
    members, m = len(contacts.friction) + len(contacts.lower), len(b)
    first = members + 2 * len(contacts.friction)
    impulse, some = np.delete(forces, slice(first, first + m)), np.delete(status, slice(members, members + m))
    solution = method.quick_solution(impulse, some, (BY_STICKING, 0), residual, magnitude)
    lam = forces[first : first + m]
    return ConstrainedSolution(x, lam, impulse, solution, dynamics, row_residual(system, f, b, x))


@kernel
def quick_contacts(inertia, f, bilateral, rows, compliance, laws, start, budget):
    """Solve the contact problem of the motion that bilateral rows leave, as ``solve_quick`` does.

    The compliance may be that of the first rows only; others have none.

    Args:
        inertia: a :class:`TreeInertia`.
        f: (nv,) force or momentum.
        bilateral: rows (m, nv), and what they are to be (m,), times x.
        rows: J (n, nv) of the contacts, and so on, and what is added to ``J x`` (n,).
        compliance: (n,) or fewer, added to the diagonal of G.
        laws: the :class:`~constrained_sim.contact_solvers.scaled_problem.ContactLaws`.
        start: (n,) impulses to begin from; (0,): nothing is known.
        budget: a :class:`QuickBudget`.

    Returns:
        (x, G, b of the contacts, the six values of ``solve_quick``).
    """
    (M, parents), (held, b), (J, offset) = inertia, bilateral, rows
    L = factor_inertia(M, parents)
    whitened, free = whiten(L, parents, J), whiten_one(L, parents, f)
    rounding = 0.0
    if b.shape[0]:
        rounding = MOTION_ROUNDING * np.sqrt(vecdot(free, free))
        diagonal, unconstrained = np.diag(gram(whitened)).copy(), unwhiten_one(L, parents, free)
        hold_first(whiten(L, parents, held), b, whitened, free)
        x = unwhiten_one(L, parents, free)
        G, bias = gram(whitened), matvec(J, x)
        bias += offset
        drop_held(G, bias, J, np.maximum(np.abs(x), np.abs(unconstrained)), diagonal)
        rounding *= (inverse_diagonal(np.diag(G), laws) * np.sqrt(diagonal)).max()
    else:
        G, bias = gram(whitened), matvec(whitened, free)
        bias += offset
    for i in range(compliance.shape[0]):
        G[i, i] += compliance[i]
    enough, least = max(budget.tolerance, rounding), rounding / OPTIONS.accuracy
    impulse, status, how, residual, magnitude, solved = solve_quick(
        G, bias, laws, start, enough, budget.newton_first, budget.may_stick
    )
    if magnitude < least:  # where a whole robot falls freely, its joints need no impulse but rounding
        residual, magnitude = residual * magnitude / least, least
    free += vecmat(impulse, whitened)
    return unwhiten_one(L, parents, free), G, bias, impulse, status, how, residual, magnitude, solved


@kernel
def sticking_dynamics(factorization, inertia, f, every_row, basis, joint_friction, laws, tolerance):
    """Solve for the motion if all contacts stick, limits hold, and dry friction holds all joints that have it.

    This is the equality problem with all rows held, see :func:`~constrained_sim.solvers.held_rows.hold_rows`. What dry
    friction holds has a known velocity, and its impulse is what is missing in its equation of motion: where contacts
    leave that unique, these joints take no part in the factorisation.

    Args:
        factorization: one of :mod:`~constrained_sim.solvers.held_rows`.
        inertia: a :class:`TreeInertia`.
        f: (nv,) momentum or force.
        every_row: J (n, nv), of which the last d are those of dry friction, and what is added to ``J x`` (n,).
        basis: of all rows, a :class:`~constrained_sim.contact_solvers.reduced_rows.RowBasis`.
        joint_friction: (d,) degrees of freedom with dry friction; the others, and the parent of each of these among
            them, see :func:`~constrained_sim.dynamics.tree.contract`.
        laws: the :class:`~constrained_sim.contact_solvers.scaled_problem.ContactLaws`.
        tolerance: error of impulses that is good enough [N s].

    Returns:
        (x, impulse, status, relative residual, impulse scale, whether this solves the problem,
        relative residual of the equation of motion).
    """
    (M, parents), (J, offset) = inertia, every_row
    x, impulse, b, scale, is_unique = _without_held(factorization, M, f, J, basis, offset, joint_friction)
    if not is_unique:
        rows, target = reduce_rows(basis, J), -reduce_vector(basis, offset)
        x, some, before, G, _ = hold_rows(factorization, M, parents, rows, f, target)
        impulse, b, scale = (
            expand_rows(basis, some),
            expand_rows(basis, before) + offset,
            expanded_diagonal(basis, G),
        )
    status, error, magnitude = judge_sticking(laws, inverse_diagonal(scale, laws), b, matvec(J, x) + offset, impulse)
    solved = error <= max(OPTIONS.accuracy * magnitude, tolerance)
    return x, impulse, status, error / magnitude, magnitude, solved, dynamics_residual(M, x, f, vecmat(impulse, J))


@kernel
def _without_held(factorization, M, f, J, basis, offset, joint_friction):
    """Solve with all rows held, without the degrees of freedom that dry friction holds.

    Returns:
        (x, impulses of all rows, their velocities without impulses, diagonal of their Delassus matrix, whether that is
        so and these are unique: if not, nothing else is of use).
    """
    held, others, parents_of_others = joint_friction
    d, size = held.shape[0], offset.shape[0]
    n, x, impulse = size - d, np.zeros(f.shape[0]), np.empty(size)
    b, scale = np.empty(size), np.empty(size)
    if not d:
        return x, impulse, b, scale, False
    rows = reduce_rows(basis, J)
    rows = rows[: rows.shape[0] - d].copy()
    if _is_held(rows, held, M):
        return x, impulse, b, scale, False
    for i in range(d):
        x[held[i]] = -offset[n + i]
    given, columns = offset[:n] + matvec(J[:n], x), np.arange(rows.shape[0])
    inertia, force = entries(M, others, others), (f - matvec(M, x))[others]
    alone = leading_rows(basis, n, rows.shape[0])
    moved, some, before, G, is_regular = hold_rows(
        factorization, inertia, parents_of_others, entries(rows, columns, others), force, -reduce_vector(alone, given)
    )
    if not is_regular:
        return x, impulse, b, scale, False
    x[others], impulse[:n] = moved, expand_rows(alone, some)
    b[:n], scale[:n] = expand_rows(alone, before) + given, expanded_diagonal(alone, G)
    missing = matvec(M, x) - f - vecmat(impulse[:n], J[:n])
    for i in range(d):
        impulse[n + i], scale[n + i] = missing[held[i]], 1.0 / M[held[i], held[i]]
        b[n + i] = -scale[n + i] * impulse[n + i]
    return x, impulse, b, scale, True


@kernel
def _is_held(rows, held, M):
    """Return whether one of `rows` (k, nv) hardly moves unless one of the degrees of freedom `held` (d,) does."""
    for row in rows:
        part = whole = 0.0
        for j in held:
            if row[j] != 0.0:
                part += row[j] * row[j] / M[j, j]
        if part == 0.0:
            continue
        for j in range(row.shape[0]):
            whole += row[j] * row[j] / M[j, j]
        if whole - part <= LARGE_PIVOT * whole:
            return True
    return False


@kernel
def free_motion(M, parents, f):
    """Return the x (nv,) with ``M x = f``, and the relative residual of that."""
    x = solve_inertia(M, parents, f)
    return x, dynamics_residual(M, x, f, np.zeros_like(f))


@kernel
def smallest_motion(M, parents, J, target):
    """Return the x (nv,) of least ``x^T M x`` with ``J x = -target``; least squares where the rows clash."""
    rest = np.zeros(M.shape[0])
    L = factor_inertia(M, parents)
    rows = whiten(L, parents, J)
    G, b = delassus_system(rows, rows, rest, target)
    drop_held(G, b, J, rest, np.diag(G))
    return unwhiten_one(L, parents, vecmat(solve_sticking(G, b), rows))


@kernel
def smallest_reduced_motion(M, parents, J, basis, target):
    """Return what :func:`smallest_motion` does, by fewer combinations of the rows.

    Those of a `basis`, see :class:`~constrained_sim.contact_solvers.reduced_rows.RowBasis`.
    """
    L = factor_inertia(M, parents)
    rows = whiten(L, parents, reduce_rows(basis, J))
    U, is_regular = independent_factor(gram(rows))
    if not is_regular:
        return smallest_motion(M, parents, J, target)
    combined = substitute_twice(U, -reduce_vector(basis, target))
    return unwhiten_one(L, parents, vecmat(combined, rows))


@kernel(inline=True)
def dynamics_residual(M, x, f, reaction):
    """Return ``|M x - f - reaction|`` relative to its largest term."""
    worst = largest = 0.0
    for i in range(x.shape[0]):
        momentum = vecdot(M[i], x)
        worst = max(worst, abs(momentum - reaction[i] - f[i]))
        largest = max(largest, abs(momentum), abs(reaction[i]), abs(f[i]))
    return worst / largest if largest > 0.0 else worst
