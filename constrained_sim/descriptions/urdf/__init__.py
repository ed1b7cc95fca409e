"""URDF: `read_urdf`."""

from constrained_sim.descriptions.urdf.reader import read_urdf

__all__ = ["read_urdf"]
