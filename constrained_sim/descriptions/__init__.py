"""Formats of robot descriptions, one file each."""

from constrained_sim.descriptions.description import Description, Spring
from constrained_sim.descriptions.mjcf import read_mjcf
from constrained_sim.descriptions.sdf import read_sdf
from constrained_sim.descriptions.urdf import read_urdf

__all__ = ["Description", "Spring", "read_mjcf", "read_sdf", "read_urdf"]
