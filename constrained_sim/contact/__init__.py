"""Unilateral contact: laws, surfaces, the complementarity problem and its solution."""

from constrained_sim.contact.laws import (
    LAWS,
    Compliant,
    Frictionless,
    HuntCrossley,
    Law,
    Rigid,
    SoftLaw,
    Sticking,
    make_law,
)
from constrained_sim.contact.surfaces import Plane
from constrained_sim.contact_solvers.complementarity import LinearComplementarity
from constrained_sim.contact_solvers.problem import ContactProblem, ContactSolution
from constrained_sim.contact_solvers.solve import METHODS, ContactMethod, compile_methods, solve_contacts

__all__ = [
    "LAWS",
    "METHODS",
    "Compliant",
    "ContactMethod",
    "ContactProblem",
    "ContactSolution",
    "Frictionless",
    "HuntCrossley",
    "Law",
    "LinearComplementarity",
    "Plane",
    "Rigid",
    "SoftLaw",
    "Sticking",
    "compile_methods",
    "make_law",
    "solve_contacts",
]
