"""Speeds that tell rest from motion [m/s, rad/s]."""

from __future__ import annotations

import numpy as np

from constrained_sim.validation import Array

REST_SPEED = 1e-9
"""Up to which a contact or a joint does not slip, a body does not turn, and a row does not leave its bound."""

STOP_SPEED = 1e-11
"""At which slip, or turning, has come to its end, or turns back."""


def directions(velocities: Array, least: float = 0.0) -> Array:
    """Return the unit vectors (n, d) along `velocities` (n, d); zero of what is not faster than the `least` speed."""
    speeds = np.linalg.norm(velocities, axis=1, keepdims=True)
    moves = speeds > least
    return np.where(moves, velocities / np.where(moves, speeds, 1.0), 0.0)
