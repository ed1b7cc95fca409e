"""The one problem behind accelerations, impacts and time steps: bilateral rows held, contact rows complementary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact_solvers.problem import ContactProblem, ContactSolution, no_values
from constrained_sim.contact_solvers.quick_contacts import QuickBudget, quick_contacts
from constrained_sim.contact_solvers.reduced_rows import (
    own_rows,
)
from constrained_sim.contact_solvers.scaled_problem import ContactLaws, inverse_diagonal
from constrained_sim.contact_solvers.solve import ContactMethod, solve_fallback
from constrained_sim.contact_solvers.sticking import judge_sticking
from constrained_sim.contact_solvers.sticking_dynamics import NO_DRY_FRICTION, sticking_dynamics
from constrained_sim.exceptions import ContactNotSolved, InexactContact
from constrained_sim.solvers import Solver, System
from constrained_sim.solvers.held_dynamics import TreeInertia, dynamics_residual, free_motion, held_dynamics
from constrained_sim.solvers.solver import row_residual
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array

EXACTLY = ContactMethod()
NOTHING_KNOWN = no_values()


@dataclass(frozen=True, eq=False)
class ContactRows:
    """Rows of the contacts that may be closed, [t1, t2, n] each, then m box rows, then e rows of rolling friction.

    Attributes:
        J: (n, nv), n = 3 k + m + e.
        offset: (n,) what is added to ``J x`` to give the row quantity u of the contact law.
        laws: what the rows obey.
        compliance: (n,) what is added to the diagonal of the Delassus matrix, so that a row's quantity is
            ``J x + offset + compliance impulse``; None: nothing.
    """

    J: Array
    offset: Array
    laws: ContactLaws
    compliance: Array | None = None

    @property
    def normals(self) -> npt.NDArray[np.intp]:
        """Indices of the normal rows of the contacts, and of the box rows."""
        contacts = 3 * len(self.laws.friction)
        return np.concatenate([np.arange(2, contacts, 3), np.arange(contacts, contacts + len(self.laws.lower))])

    def with_rolling(self, J: Array, offset: Array, rolling: Array) -> ContactRows:
        """Return these rows with `rolling` (d, 6) of contacts among them, and their rows after all others."""
        if not len(rolling):
            return self
        compliance = None if self.compliance is None else np.concatenate([self.compliance, np.zeros(len(J))])
        return replace(
            self,
            J=np.vstack([self.J, J]),
            offset=np.concatenate([self.offset, offset]),
            laws=self.laws._replace(rolling=np.vstack([self.laws.rolling, rolling])),
            compliance=compliance,
        )

    def with_bilateral(self, J: Array, b: Array) -> ContactRows:
        """Return these rows with the bilateral ``J x = b`` (m,) too, as the last of the box rows, without bounds."""
        if not len(b):
            return self
        laws, free = self.laws, np.full(len(b), np.inf)
        end = 3 * len(laws.friction) + len(laws.lower)
        return replace(
            self,
            J=np.insert(self.J, end, J, axis=0),
            offset=np.insert(self.offset, end, -b),
            laws=laws._replace(lower=np.append(laws.lower, -free), upper=np.append(laws.upper, free)),
        )

    @classmethod
    def none(cls, nv: int) -> ContactRows:
        """Return no rows."""
        return cls(np.zeros((0, nv)), np.zeros(0), ContactLaws.of_contacts(no_values()))


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
        warn(InexactContact(self.contact.residual))


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
    if solver.compiled_factorization is not None:
        solver.calls += 1
        inertia = TreeInertia(system.M, system.parents)
        x, lam, dynamics, rows = held_dynamics(solver.compiled_factorization, inertia, f, system.J, b)
        return ConstrainedSolution(x, lam, no_values(), None, dynamics, rows)
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
    motion = quick_contacts(inertia, f, (system.J, b), (J, contacts.offset), compliance, laws, start, budget)
    quick = motion.solution
    if quick.solved:
        solution = method.solution(quick)
    else:
        problem = ContactProblem(motion.delassus, motion.free, *laws)
        solution = solve_fallback(problem, replace(method, tolerance=motion.tolerance), quick, start)
    reaction = solution.impulse @ J
    if quick.solved and not len(b):
        dynamics = dynamics_residual(system.M, motion.x, f, reaction)
        return ConstrainedSolution(motion.x, no_values(), solution.impulse, solution, dynamics, 0.0)
    found = _without_contacts(solver, system, f + reaction, b)
    dynamics = dynamics_residual(system.M, found.x, f, reaction + found.lam @ system.J)
    return found._replace(impulse=solution.impulse, contact=solution, dynamics_residual=dynamics)


def _solve_held(
    solver: Solver, system: System, f: Array, b: Array, contacts: ContactRows, method: ContactMethod
) -> ConstrainedSolution | None:
    """Let the solver hold all rows; return None where forces are not those that the contact law allows."""
    rows = contacts.with_bilateral(system.J, b)
    J, offset = rows.J, rows.offset
    if solver.compiled_factorization is not None:
        solver.calls += 1
        x, held, dynamics = sticking_dynamics(
            solver.compiled_factorization, TreeInertia(system.M, system.parents), f, (J, offset), own_rows(len(J)),
            NO_DRY_FRICTION, rows.laws, method.tolerance,
        )  # fmt: skip
    else:
        every, m, end = system.with_rows(contacts.J), len(b), 3 * len(contacts.laws.friction) + len(contacts.laws.lower)
        x, multipliers = solver.factor(every).solve(f, np.concatenate([b, -contacts.offset]))
        forces = np.insert(multipliers[m:], end, multipliers[:m])
        whitened = np.insert(every.whitened_rows[m:], end, every.whitened_rows[:m], axis=0)
        scale = inverse_diagonal(np.einsum("ij,ij->i", whitened, whitened), rows.laws)
        free = whitened @ system.whiten(f[None])[0] + offset
        held = judge_sticking(rows.laws, scale, free, J @ x + offset, forces, method.tolerance)
        dynamics = dynamics_residual(system.M, x, f, held.impulse @ J)
    if not held.solved:
        return None
    members, m = len(contacts.laws.friction) + len(contacts.laws.lower), len(b)
    first = members + 2 * len(contacts.laws.friction)
    impulse = np.delete(held.impulse, slice(first, first + m))
    status = np.delete(held.status, slice(members, members + m))
    solution = method.solution(held._replace(impulse=impulse, status=status))
    lam = held.impulse[first : first + m]
    return ConstrainedSolution(x, lam, impulse, solution, dynamics, row_residual(system, f, b, x))
