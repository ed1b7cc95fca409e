"""The formulas of the five source texts as calls, for those who check the mathematics line by line.

What the package uses itself is called by its own name; what it does not use is here. In the texts' letters:

==========================================================  ====================================================
Tedrake 1, 2: lambda with eps; a time constant per row      ``constrained_acceleration``, ``Baumgarte(each=...)``
Tedrake 3.1, 3.2: complementarity, impact                   ``constrained_acceleration``, ``resolve_impact``
RBDL: SolveContactSystemDirect, -RangeSpaceSparse           ``solve_kkt(..., parents=...)``
RBDL: SolveContactSystemNullSpace with Y, Z                 :func:`null_space_method`
RBDL: SparseFactorizeLTL, SparseSolveLTx, SparseSolveLx     the functions of :mod:`.branches`
RBDL: Phi and phi of Kokkevis                               :func:`kokkevis_system`
RBDL: G, gamma, H, C                                        ``constraint_system``
Lecture: Lambda, N, dynamically consistent inverse          ``ContactConsistentDynamics``
Lecture: pseudo-inverse with any weight                     :func:`weighted_pseudo_inverse`
Lecture: any P with P J^T = 0; Aghili's Mc                  :class:`UnweightedProjection`
Lecture: Gauss's principle as a QP                          solver ``gauss``
Lecture: integration step                                   integrator ``lecture``
Lecture: soft contact, any law                              ``Compliant``; :func:`point_force`
Savin 2: forward and backward Euler                         integrators ``explicit_euler``, ``backward_euler``
Savin 4: Taylor                                             integrator ``taylor``
Savin 10: L11 to L22                                        ``kkt_inverse``
Savin 12 to 14: velocity                                    ``project_velocity``, :func:`null_space_basis`
Savin 15 to 20: position in one step                        :func:`position_step`
Inverse dynamics: gamma (ours: Gamma), u                    ``inverse_dynamics`` with ``actuation`` B
Inverse dynamics: R of the orthogonal decomposition         :func:`row_equivalent`
Jdot                                                        :func:`jacobian_rate`
==========================================================  ====================================================

Slips in the texts, each named where it is:

* the sign of the feedback in alpha (``constrained_acceleration``), and the multiplier of velocity constraints, which
  lacks a transpose (``Baumgarte``),
* the sign of RBDL's impulses in the first row of its impact system, and J Y in place of its transpose
  (:func:`null_space_method`),
* the new velocity in the lecture's step (:class:`~constrained_sim.integrators.Lecture`), and the identity of its
  pseudo-inverse (:func:`weighted_pseudo_inverse`),
* ``gamma^T qdot = qdot_ind`` (:class:`~constrained_sim.inverse_dynamics.MinimalCoordinates`), and the law
  ``u = gamma^T B^-1 [...]`` (``inverse_dynamics``).
"""

from constrained_sim.force_laws import SpringDamper, point_force
from constrained_sim.stabilization import position_step
from constrained_sim.textbook.branches import sparse_factorize_ltl, sparse_solve_ltx, sparse_solve_lx
from constrained_sim.textbook.kokkevis import KokkevisSystem, kokkevis_system
from constrained_sim.textbook.null_space import NullSpaceSolution, null_space_method
from constrained_sim.textbook.projector import UnweightedProjection
from constrained_sim.textbook.spaces import jacobian_rate, null_space_basis, row_equivalent, weighted_pseudo_inverse

__all__ = [
    "KokkevisSystem",
    "NullSpaceSolution",
    "SpringDamper",
    "UnweightedProjection",
    "jacobian_rate",
    "kokkevis_system",
    "null_space_basis",
    "null_space_method",
    "point_force",
    "position_step",
    "row_equivalent",
    "sparse_factorize_ltl",
    "sparse_solve_ltx",
    "sparse_solve_lx",
    "weighted_pseudo_inverse",
]
