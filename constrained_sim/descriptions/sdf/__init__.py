"""SDFormat: `read_sdf`."""

from constrained_sim.descriptions.sdf.reader import read_sdf

__all__ = ["read_sdf"]
