"""The contact problem and the methods that solve it, one file per method.

The contact law is :mod:`~constrained_sim.contact_solvers.natural_map`, its projection onto the friction cone
:mod:`~constrained_sim.contact_solvers.friction_disc`: every solution is judged by them.
"""

from constrained_sim.contact_solvers.complementarity import LinearComplementarity
from constrained_sim.contact_solvers.problem import ContactProblem, ContactSolution
from constrained_sim.contact_solvers.solve import METHODS, ContactMethod, compile_methods, solve_contacts

__all__ = [
    "METHODS",
    "ContactMethod",
    "ContactProblem",
    "ContactSolution",
    "LinearComplementarity",
    "compile_methods",
    "solve_contacts",
]
