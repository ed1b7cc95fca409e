"""Objects beside the robot: what they are, and the one tree in which they are simulated with it."""

from constrained_sim.objects.world_object import PRIMITIVES, WorldObject

__all__ = ["PRIMITIVES", "WorldObject"]
