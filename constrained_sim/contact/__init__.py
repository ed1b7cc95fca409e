"""Unilateral contact: laws, surfaces, gaps and rows."""

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

__all__ = [
    "LAWS",
    "Compliant",
    "Frictionless",
    "HuntCrossley",
    "Law",
    "Plane",
    "Rigid",
    "SoftLaw",
    "Sticking",
    "make_law",
]
