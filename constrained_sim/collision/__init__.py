"""Collision detection: where the links of a robot come near the bodies of a scene, or each other."""
