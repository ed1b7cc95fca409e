"""Camera of the viewer's page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

from constrained_sim.robot import Robot
from constrained_sim.validation import Array
from constrained_sim.viewer.quaternions import wxyz

AZIMUTH, ELEVATION = -52.0, 15.0
"""[deg] From where the camera looks: from the front, right and above."""

DISTANCE = 1.7
"""From what is looked at to the camera, as a share of the robot's size."""

FIELD_OF_VIEW = np.deg2rad(50.0)
"""Vertical [rad]."""


class Camera:
    """Looks at the centre of mass of a robot, from a distance that suits its size."""

    def __init__(self, robot: Robot, q: Array) -> None:
        """Look at `robot` in the configuration `q` (nq,)."""
        self._model, self._data = robot.model, robot.model.createData()
        self.look_at, self._distance = self._com(q), DISTANCE * distance_to(robot)
        self.look_from(AZIMUTH, ELEVATION)

    def look_from(self, azimuth: float, elevation: float, zoom: float = 1.0) -> None:
        """Move the camera to these angles [deg] about and above the ground, and nearer by a factor."""
        around, up = np.deg2rad([azimuth, elevation])
        direction = np.array([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)])
        self.position = self.look_at + self._distance / zoom * direction

    def travelled(self, q: Array) -> Array:
        """Return how far the centre of mass has moved along the ground when the robot is at `q` (nq,): (3,) [m]."""
        return (self._com(q) - self.look_at) * np.array([1.0, 1.0, 0.0])

    def pose(self) -> dict[str, Any]:
        """Return the camera for `viser.ClientHandle.get_render`: x to the right, y down, z forward."""
        forward = (self.look_at - self.position) / np.linalg.norm(self.look_at - self.position)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        turn = wxyz(np.column_stack([right, np.cross(forward, right), forward]))
        return {"position": self.position, "wxyz": turn, "fov": float(FIELD_OF_VIEW)}

    def _com(self, q: Array) -> Array:
        return np.array(pin.centerOfMass(self._model, self._data, q))


def distance_to(robot: Robot) -> float:
    """Return how far the camera is from a robot [m]: its size and a bit, at least 0.4 m."""
    return max(0.4, 1.15 * size_of(robot))


def size_of(robot: Robot) -> float:
    """Return a length of `robot` [m]: the diagonal of the box around its joints and links at neutral, at least 0.1."""
    data = robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.neutral())
    points = np.array([placement.translation for placement in data.oMf])[1:]
    return max(0.1, float(np.linalg.norm(np.ptp(points, axis=0))))
