"""Formats of robot descriptions, one file each."""

from constrained_sim.descriptions.description import Description, Spring, read_text, refuse_massless_joints
from constrained_sim.descriptions.mjcf import read_mjcf
from constrained_sim.descriptions.sdf import read_sdf
from constrained_sim.descriptions.urdf import read_urdf

__all__ = ["Description", "Spring", "read_mjcf", "read_sdf", "read_text", "read_urdf", "refuse_massless_joints"]
