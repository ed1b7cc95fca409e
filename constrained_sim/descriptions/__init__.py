"""Formats of robot descriptions: a reader and a vocabulary each."""

from constrained_sim.descriptions.collision_element import CollisionElement
from constrained_sim.descriptions.description import (
    Description,
    Spring,
    refuse_impossible_bodies,
    refuse_massless_joints,
)
from constrained_sim.descriptions.document import read_text
from constrained_sim.descriptions.mjcf import read_mjcf
from constrained_sim.descriptions.sdf import read_sdf
from constrained_sim.descriptions.urdf import read_urdf

__all__ = [
    "CollisionElement",
    "Description",
    "Spring",
    "read_mjcf",
    "read_sdf",
    "read_text",
    "read_urdf",
    "refuse_impossible_bodies",
    "refuse_massless_joints",
]
