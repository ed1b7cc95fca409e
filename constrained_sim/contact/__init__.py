"""Unilateral contact: laws, surfaces, the complementarity problem and its solution."""

from constrained_sim.contact.complementarity import LinearComplementarity
from constrained_sim.contact.laws import LAWS, Frictionless, Law, Rigid, Sticking
from constrained_sim.contact.problem import METHODS, ContactProblem, ContactSolution, solve_contacts
from constrained_sim.contact.surfaces import Plane

__all__ = [
    "LAWS",
    "METHODS",
    "ContactProblem",
    "ContactSolution",
    "Frictionless",
    "Law",
    "LinearComplementarity",
    "Plane",
    "Rigid",
    "Sticking",
    "solve_contacts",
]
