"""Turns as viser takes them."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from constrained_sim.validation import Array


def wxyz(rotation: Array) -> Array:
    """Return the quaternion w, x, y, z of a rotation matrix (3, 3)."""
    x, y, z, w = pin.Quaternion(np.asarray(rotation)).coeffs()
    return np.array([w, x, y, z])
