"""Dynamics: the only module that runs Pinocchio's algorithms for one configuration and velocity."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from threading import get_ident
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from numpy.lib.stride_tricks import as_strided

from constrained_sim.dynamics import kinematics
from constrained_sim.dynamics.kinematics import BodyMotion
from constrained_sim.robot import Robot
from constrained_sim.user_functions import NESTING
from constrained_sim.validation import Array


class Dynamics:
    """Inertia, bias forces and kinematics of a robot, updated in place.

    The arrays are views of Pinocchio's own memory: they are current after each update and must not be kept across one.

    Attributes:
        M: (nv, nv) joint-space inertia, armature included; valid after :meth:`update` or :meth:`update_inertia`.
        h: (nv,) Coriolis, centrifugal and gravity forces; valid after :meth:`update`.
        q: (nq,) of the last update.
        v: (nv,) of the last update that was given one; zero after the others.
        t: time of the last update [s].
        joint_axes: (nv, 6) joint Jacobian in world axes, transposed (linear, angular).
        placements: (njoints, 4, 3) rotation columns and translation of each joint's frame.
        velocities: (njoints, 2, 3) linear and angular velocity of each body in its own axes, of the last
            :meth:`update`.
        biases: (njoints, 2, 3) their spatial accelerations for zero joint accelerations in these axes, gravity as a
            fictitious acceleration of the base.
    """

    def __init__(self, robot: Robot) -> None:
        """Allocate the work space for `robot`."""
        self.robot = robot
        self._data = data = robot.model.createData()
        # For one degree of freedom, the bindings return one-dimensional arrays.
        self.M: Array = data.M.reshape(robot.nv, robot.nv).T  # itself, row by row: each kernel is compiled once
        self.h: Array = np.zeros(robot.nv)
        self.q, self.v, self.t = robot.neutral(), self.h, 0.0
        self._rest: Array = np.zeros(robot.nv)
        self.joint_axes: Array = data.J.reshape(6, robot.nv).T
        self.placements: Array = _joint_table(data.oMi, "rotation", (4, 3))
        self.velocities: Array = _joint_table(data.v, "linear", (2, 3))
        self.biases: Array = _joint_table(data.a_gf, "linear", (2, 3))
        self._gravity: Array = robot.gravity

    def __reduce__(self) -> tuple[type[Dynamics], tuple[Robot]]:
        """Return how a copy is made: as a work space in which nothing has been computed yet."""
        return Dynamics, (self.robot,)

    @cached_property
    def _scratch_data(self) -> pin.Data:
        """What is not to change the results of the last update is computed there."""
        return self.robot.model.createData()

    @cached_property
    def _weightless_model(self) -> pin.Model:
        return self.robot.weightless_model()

    @classmethod
    def at(cls, robot: Robot, q: Array, v: Array, t: float = 0.0) -> Dynamics:
        """Return fresh dynamics of `robot`, updated to (q, v) at time `t`."""
        dynamics = cls(robot)
        dynamics.update(q, v, t)
        return dynamics

    def update_kinematics(self, q: Array, t: float = 0.0) -> None:
        """Compute placements and joint axes at `q` (nq,)."""
        self.q, self.v, self.t = q, self._rest, t
        pin.computeJointJacobians(self.robot.model, self._data, q)

    def update_inertia(self, q: Array, t: float = 0.0) -> None:
        """Compute placements, joint axes and M at `q` (nq,) by the composite-rigid-body algorithm."""
        self.q, self.v, self.t = q, self._rest, t
        pin.crba(self.robot.model, self._data, q, pin.Convention.WORLD)

    def update(self, q: Array, v: Array, t: float = 0.0) -> None:
        """Compute everything at `q` (nq,), `v` (nv,)."""
        self.update_inertia(q, t)
        self.v = v
        self.h = pin.nonLinearEffects(self.robot.model, self._data, q, v)

    def update_motion(self, q: Array, v: Array, a: Array, t: float = 0.0) -> None:
        """Compute placements, the bodies' motion and the forces that it takes at `q` (nq,), `v` (nv,) and `a` (nv,).

        :attr:`biases` and :meth:`body` then hold accelerations for these joint accelerations, not for zero; M and h are
        those of before.
        """
        self.update_kinematics(q, t)
        self.v = v
        pin.rnea(self.robot.model, self._data, q, v, a)

    def driving_force(self, joint: int, inertia: pin.Inertia, branches: Sequence[int]) -> Array:
        """Return (6,) what must act on some bodies for their motion, gravity made up for, by Newton-Euler.

        Force [N] and moment about the world's origin [N m], world axes: the rate of change of the bodies' momentum less
        their weight, at the last :meth:`update_motion` (Featherstone, sec. 5.3; no rotors: these are in no body).

        Args:
            joint: that moves the first of the bodies.
            inertia: of all of them that move with `joint`, in its frame.
            branches: joints that move the others, each with everything behind it.
        """
        data = self._data
        first = inertia * data.a_gf[joint] + inertia.vxiv(data.v[joint])
        total = data.oMi[joint].act(first).vector
        for branch in branches:
            total = total + data.oMi[branch].act(data.f[branch]).vector
        return np.asarray(total, dtype=np.float64)

    def articulated_response(self, q: Array, rows: Array, armature: Array | float = 0.0) -> Array:
        """Return ``(M + diag(armature))^-1 r`` for every row r of `rows` (k, nv), by the articulated-body algorithm.

        On the robot at rest without gravity, joint accelerations under the efforts r; inertia added to a degree of
        freedom is a rotor's.
        """
        model = self._weightless_model
        model.armature = self.robot.model.armature + armature
        return np.array([pin.aba(model, self._scratch_data, q, self._rest, row) for row in rows]).reshape(rows.shape)

    def damped_kkt(
        self, constraints: Sequence[pin.RigidConstraintModel], q: Array, mu: float, armature: Array | float = 0.0
    ) -> Any:
        """Return Pinocchio's branch-sparse Cholesky factorisation of ``[[-mu I, -J], [-J^T, M + diag(armature)]]``.

        Args:
            constraints: with m rows J.
            q: (nq,) configuration.
            mu: damping of the Delassus matrix.
            armature: added to the diagonal of the inertia.
        """
        model, data = self._weightless_model, self._scratch_data
        model.armature = self.robot.model.armature + armature
        pin.crba(model, data, q, pin.Convention.WORLD)
        models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for constraint in constraints:
            models.append(constraint)
            datas.append(constraint.createData())
        if hasattr(pin, "ConstraintCholeskyDecomposition"):
            for constraint, constraint_data in zip(models, datas, strict=True):
                constraint.calc(model, data, constraint_data)
            cholesky = pin.ConstraintCholeskyDecomposition(model, data, models, datas)
        else:  # Pinocchio 3, which places the constraints itself
            cholesky = pin.ContactCholeskyDecomposition(model, models)
        cholesky.compute(model, data, models, datas, mu)
        return cholesky

    def bias_at(self, v: Array) -> Array:
        """Return the bias forces (nv,) at the configuration of the last :meth:`update` and the velocity `v` (nv,).

        What depends on the velocity is that of `v` afterwards.
        """
        self.v, self.h = v, pin.nonLinearEffects(self.robot.model, self._data, self.q, v)
        return self.h

    def gravity_forces(self) -> Array:
        """Return the forces of gravity (nv,) among the bias forces, at the configuration of the last :meth:`update`."""
        return np.array(pin.computeGeneralizedGravity(self.robot.model, self._scratch_data, self.q))

    def with_com_at(self, q: Array, joints: npt.NDArray[np.int64], coms: Array) -> Array:
        """Return `q` (nq,) with free-flyers on the world moved so that all that each carries balances at `coms`.

        The results of the last update stay.

        Args:
            q: (nq,) configuration.
            joints: (r,) the free-flyers.
            coms: (r, 3) [m], world frame.
        """
        model, data, moved = self.robot.model, self._scratch_data, q.copy()
        pin.centerOfMass(model, data, q)
        for joint, com in zip(joints.tolist(), coms, strict=True):
            shift = com - data.oMi[joint].act(data.com[joint])
            first = model.idx_qs[joint]
            moved[first : first + 3] += model.jointPlacements[joint].rotation.T @ shift
        return moved

    def point_positions(self, joints: npt.NDArray[np.int64], offsets: Array) -> Array:
        """Return (k, 3) world positions [m] of points given by joint and offset [m, joint frame]."""
        return kinematics.point_positions(joints, offsets, self.placements)

    def row_jacobian(self, joints: npt.NDArray[np.int64], positions: Array, axes: Array) -> Array:
        """Return (3 k, nv) Jacobians of body points at world `positions` (k, 3) along `axes` (k, 3, 3)."""
        return kinematics.row_jacobian(joints, positions, axes, self.joint_axes, self.robot.support)

    def potential_energy(self, q: Array) -> float:
        """Return the energy of gravity [J] at `q` (nq,); the results of the last update stay."""
        return float(pin.computePotentialEnergy(self.robot.model, self._scratch_data, q))

    def placement(self, joint: int) -> pin.SE3:
        """Return the placement of a joint's frame in the world."""
        return pin.SE3(self._data.oMi[joint])

    def spatial_motion(self, joint: int) -> tuple[pin.Motion, pin.Motion]:
        """Return spatial velocity and bias acceleration of a joint's body, world axes, at the world's origin.

        Of the last :meth:`update`; joint accelerations zero, gravity not included.
        """
        if joint == 0:
            return pin.Motion.Zero(), pin.Motion.Zero()
        placement = self._data.oMi[joint]
        bias = placement.act(self._data.a_gf[joint]) + self.robot.model.gravity
        return placement.act(self._data.v[joint]), bias

    def body(self, joint: int) -> BodyMotion:
        """Return the motion of what a joint carries, of the last :meth:`update` or :meth:`update_motion`."""
        return kinematics.body_motion(joint, *self.motion)

    @property
    def motion(self) -> tuple[Array, Array, Array, Array]:
        """Placements, velocities, biases and gravity, see :func:`~constrained_sim.dynamics.kinematics.body_motion`."""
        return self.placements, self.velocities, self.biases, self._gravity


ASIDE = -1
"""In place of the depth of calls: the work space of :func:`kinematics_aside`."""


@lru_cache(maxsize=16)
def _work_space_of(robot: Robot, thread: int, depth: int) -> Dynamics:
    return Dynamics(robot)


def _work_space(robot: Robot) -> Dynamics:
    return _work_space_of(robot, get_ident(), NESTING.depth)


def dynamics_at(robot: Robot, q: Array, v: Array, t: float = 0.0) -> Dynamics:
    """Return the dynamics of `robot` at (q, v) and time `t`, in a work space that the next call uses again."""
    dynamics = _work_space(robot)
    dynamics.update(q, v, t)
    return dynamics


def motion_at(robot: Robot, q: Array, v: Array, a: Array, t: float = 0.0) -> Dynamics:
    """Return the motion of all bodies at (q, v, a) and time `t`, in a work space that the next call uses again."""
    dynamics = _work_space(robot)
    dynamics.update_motion(q, v, a, t)
    return dynamics


def kinematics_at(robot: Robot, q: Array, t: float = 0.0) -> Dynamics:
    """Return the kinematics of `robot` at `q` (nq,) and time `t`, in a work space that the next call uses again."""
    dynamics = _work_space(robot)
    dynamics.update_kinematics(q, t)
    return dynamics


def kinematics_aside(robot: Robot, q: Array) -> Dynamics:
    """Return the kinematics of `robot` at `q` (nq,), and leave alone what the functions above have returned."""
    dynamics = _work_space_of(robot, get_ident(), ASIDE)
    dynamics.update_kinematics(q)
    return dynamics


def potential_energy(robot: Robot, q: Array) -> float:
    """Return the energy of gravity and of springs [J] at `q` (nq,).

    That of gravity is zero where the centre of mass is at the world's origin.
    """
    return _work_space(robot).potential_energy(q) + (robot.spring_energy(q) if robot.springs else 0.0)


def integrate(robot: Robot, q: Array, tangent: Array) -> Array:
    """Return the configuration reached from `q` (nq,) by the tangent step `tangent` (nv,)."""
    return pin.integrate(robot.model, q, tangent)


def tangent_rate(robot: Robot, q: Array, x: Array, v: Array) -> Array:
    """Return (nv,) the rate of the tangent coordinates x about `q` at which ``q + x`` moves with velocity `v` (nv,)."""
    if robot.is_vector_space:
        return v
    return np.asarray(np.linalg.solve(tangent_derivative(robot, q, x), v), dtype=np.float64)


def tangent_derivative(robot: Robot, q: Array, x: Array) -> Array:
    """Return D (nv, nv): where x moves at the rate dx/dt, ``q + x`` moves with the velocity ``D dx/dt``."""
    return pin.dIntegrate(robot.model, q, x, pin.ArgumentPosition.ARG1)


def difference(robot: Robot, q: Array, other: Array) -> Array:
    """Return the tangent step (nv,) that leads from `q` (nq,) to `other` (nq,)."""
    return pin.difference(robot.model, q, other)


def _joint_table(members: pin.StdVec_SE3, part: str, shape: tuple[int, int]) -> Array:
    """Return one array over a vector of Pinocchio objects, (njoints, *shape), without copying.

    The objects are contiguous blocks of doubles; `part` is the member at the block's beginning. The layout is
    compared with what Pinocchio's own accessors return, so that another build of it cannot go unnoticed.
    """
    first = getattr(members[0], part)
    size = 8 * shape[0] * shape[1]
    last = len(members) - 1
    if getattr(members[last], part).ctypes.data != first.ctypes.data + last * size:
        raise RuntimeError("this build of Pinocchio lays out its data differently: cannot map joint placements")
    origin = as_strided(first.T if first.ndim == 2 else first, (1,), (8,))
    return as_strided(origin, (len(members), *shape), (size, 8 * shape[1], 8))
