"""A quadruped on point feet: it stands, or trots in place."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.config import Config
from constrained_sim.constraints import point_contacts
from constrained_sim.contact_solvers.options import OPTIONS
from constrained_sim.controllers.control_law import checked_mode
from constrained_sim.controllers.statics import standing_efforts
from constrained_sim.dynamics.dynamics import Dynamics
from constrained_sim.exceptions import InvalidValue
from constrained_sim.posture import Posture
from constrained_sim.validation import Array


class QuadrupedController:
    """Makes a quadruped on a free-flyer stand, or trot in place; its feet are the four contacts of the configuration.

    ``stand`` holds the initial posture by joint springs and dampers, about the efforts that carry the weight. ``trot``
    lifts the feet in diagonal pairs, by the clock: the first and the fourth contact together, the second and the third
    half a period later.

    Feet that stand carry the body. Their forces f are the least-squares solution of the first six equations of motion,

        J_b^T f = h_b + M_b a_b,    a_b = K (pose_0 - pose) - D v_b,

    for the wanted acceleration a_b of the base (linear and angular, axes of the base), regularised by ``EFFORT``, then
    brought into their friction cones. Two feet cannot turn the body about the line through them: moments give way to
    forces as ``MOMENT_WEIGHT`` says, and the next steps correct what is left. The joints give
    ``tau = h_j - J_j^T f``. (Task-space control by contact forces: Focchi et al., High-slope terrain locomotion for
    torque-controlled quadruped robots, Autonomous Robots 41, 2017.)

    Feet in the air follow ``z = LIFT sin^2(pi s)``, s from 0 to 1 over the swing, to where they stand under the body in
    the initial configuration, displaced by ``(T_stance / 2 + FORESIGHT) v`` (Raibert, Legged Robots That Balance, 1986,
    chapter 2).
    """

    MODES: ClassVar[tuple[str, ...]] = ("trot", "stand")

    STIFFNESS, DAMPING = 20.0, 0.5  # N m/rad, N m s/rad: of the joints, standing

    PERIOD = 0.25  # s, of the trot
    DUTY = 0.6  # part of the period for which a foot stands
    LIFT = 0.04  # m
    FORESIGHT = 0.08  # s
    BASE_STIFFNESS = np.array([30.0, 30.0, 150.0, 150.0, 150.0, 60.0])  # 1/s^2
    BASE_DAMPING = np.array([8.0, 8.0, 20.0, 20.0, 20.0, 12.0])  # 1/s
    MOMENT_WEIGHT = 10.0  # 1/m, of moments against forces
    EFFORT = 1e-4  # of contact forces against errors of the wrench
    CONE = 0.85  # part of the friction cone that is used
    SMALLEST_FORCE = 0.5  # N, along the normal of a foot that stands
    SWING_STIFFNESS, SWING_DAMPING = 300.0, 6.0  # N/m, N s/m: of a foot in the air

    def __init__(self, config: Config, mode: str) -> None:
        """Prepare to do `mode`, ``trot`` or ``stand``, about the initial configuration of `config`.

        Raises:
            UnknownName: no such mode.
            InvalidValue: not four point contacts on level ground.
        """
        self._trots = checked_mode(type(self), mode) == "trot"
        robot = config.robot
        feet = list(point_contacts(config.constraints).values())
        if len(feet) != 4 or not robot.floating_base:
            raise InvalidValue("quadruped", f"{len(feet)} contacts", "a floating base and four contacts, its feet")
        self._posture = Posture(robot, config.q, self.STIFFNESS, self.DAMPING, standing_efforts(config))
        self._dynamics = Dynamics(robot)
        places = [robot.link_point(foot.link, foot.point) for foot in feet]
        self._joints = np.array([joint for joint, _ in places], dtype=np.int64)
        self._offsets = np.array([offset for _, offset in places])
        self._axes = np.tile(np.eye(3), (4, 1, 1))
        self._friction = self.CONE * np.minimum([foot.coefficient for foot in feet], OPTIONS.strong_friction)
        self._position, self._rotation = config.q[:3].copy(), _rotation(config.q)
        self._dynamics.update_kinematics(config.q)
        self._stance = self._dynamics.point_positions(self._joints, self._offsets)
        self._ground = self._stance[:, 2].copy()

    def efforts(self, t: float, q: Array, v: Array) -> Array:
        """Return (12,) the efforts [N m] at time `t` [s], configuration `q` and velocity `v`."""
        if not self._trots:
            return self._posture.efforts(q, v)
        self._dynamics.update(q, v)
        feet = self._dynamics.point_positions(self._joints, self._offsets)
        jacobian = self._dynamics.row_jacobian(self._joints, feet, self._axes)
        phases = (t / self.PERIOD + np.array([0.0, 0.5, 0.5, 0.0])) % 1.0
        standing = phases < self.DUTY
        force = np.zeros((4, 3))
        force[standing] = -self._stance_forces(q, v, jacobian[np.repeat(standing, 3)], self._friction[standing])
        progress = (phases - self.DUTY) / (1.0 - self.DUTY)
        force[~standing] = self._swing_forces(q, v, feet, (jacobian @ v).reshape(4, 3), progress)[~standing]
        return np.asarray((self._dynamics.h + jacobian.T @ force.ravel())[6:])

    def _stance_forces(self, q: Array, v: Array, jacobian: Array, friction: Array) -> Array:
        """Return (k, 3) the forces [N] of the ground on the k feet that stand, world axes."""
        rotation = _rotation(q)
        error = np.concatenate(
            [rotation.T @ (self._position - q[:3]), pin.log3(rotation.T @ self._rotation)],
        )
        wanted = self.BASE_STIFFNESS * error - self.BASE_DAMPING * v[:6]
        wrench = self._dynamics.h[:6] + self._dynamics.M[:6, :6] @ wanted
        weights = np.repeat([1.0, self.MOMENT_WEIGHT], 3)
        A, b = weights[:, None] * jacobian[:, :6].T, weights * wrench
        forces = np.linalg.solve(A.T @ A + self.EFFORT * np.eye(len(jacobian)), A.T @ b).reshape(-1, 3)
        return _within_cones(forces, friction, self.SMALLEST_FORCE)

    def _swing_forces(self, q: Array, v: Array, feet: Array, velocities: Array, progress: Array) -> Array:
        """Return (4, 3) the forces [N] that draw feet along the swing trajectory, world axes."""
        rotation = _rotation(q)
        base_velocity = rotation @ v[:3]
        turned = _about_vertical(rotation @ self._rotation.T)
        duration = self.PERIOD * (1.0 - self.DUTY)
        goal = q[:3] + (self._stance - self._position) @ turned.T
        goal += (0.5 * self.PERIOD * self.DUTY + self.FORESIGHT) * base_velocity
        goal[:, 2] = self._ground + self.LIFT * np.sin(np.pi * progress) ** 2
        goal_velocity = np.tile(base_velocity, (4, 1))
        goal_velocity[:, 2] = self.LIFT * np.pi / duration * np.sin(2.0 * np.pi * progress)
        return self.SWING_STIFFNESS * (goal - feet) + self.SWING_DAMPING * (goal_velocity - velocities)


def _rotation(q: Array) -> Array:
    """Return the rotation of the base, base to world, at `q`."""
    return np.asarray(pin.Quaternion(q[3:7]).toRotationMatrix())


def _about_vertical(rotation: Array) -> Array:
    """Return the part of a rotation that turns about the vertical."""
    x, y = rotation[:2, 0] / np.linalg.norm(rotation[:2, 0])
    return np.array([[x, -y, 0.0], [y, x, 0.0], [0.0, 0.0, 1.0]])


def _within_cones(forces: Array, friction: npt.NDArray[np.float64], smallest: float) -> Array:
    """Return `forces` (k, 3) with normal parts of at least `smallest` and tangential parts that friction allows."""
    normal = np.maximum(forces[:, 2], smallest)
    sideways = np.linalg.norm(forces[:, :2], axis=1)
    scale = np.minimum(1.0, friction * normal / np.maximum(sideways, 1e-9))
    return np.column_stack([forces[:, :2] * scale[:, None], normal])
