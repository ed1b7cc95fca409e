"""MJCF: `read_mjcf`."""

from constrained_sim.descriptions.mjcf.reader import read_mjcf

__all__ = ["read_mjcf"]
