"""The equations of motion in one mode of the contacts, linear in all forces."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from constrained_sim.contact_solvers.delassus import drop_held
from constrained_sim.solvers import System
from constrained_sim.solvers.solver import Factorization
from constrained_sim.steppers.event_driven.contact_modes import Mode
from constrained_sim.steppers.event_driven.options import EVENTS
from constrained_sim.steppers.event_driven.singular_crossing import CrossingFactorization
from constrained_sim.validation import Array


class ModeEquations(NamedTuple):
    """The equations of motion at one state: linear in all forces, for any friction of what moves.

    Forces that are indeterminate are near to a reference, or without one, zero, of least norm: multipliers of bilateral
    rows and all. But where something slides, they are those of equal springs under all that is held, as contact methods
    have it: then the choice may tell the motion.

    Attributes:
        mode: in which things move.
        J: (3 k + l + e, nv) rows of the contacts and of what turns.
        held_joints: (d, nv) rows of the joints that dry friction holds.
        rate: (3 k + l + e,) what the accelerations of J are to make up for.
        reference: (h + d,) forces to be near to where they are indeterminate; where something slides, with its part
            that moves nothing.
        system: of the bilateral rows.
        factorization: of this.
        free: (nv,) acceleration without the forces of contacts.
        lam: (m,) multipliers then.
    """

    mode: Mode
    J: Array
    held_joints: Array
    rate: Array
    reference: Array
    system: System
    factorization: Factorization | CrossingFactorization
    free: Array
    lam: Array

    def solve(self, friction: Array) -> tuple[Array, Array, Array, Array]:
        """Return acceleration (nv,), multipliers (m,), forces of what is held (h + d,) and the rows they act along.

        For the `friction` (g, 2) of what moves, per unit of its normal force.
        """
        if not len(self.reference):
            return self.free, self.lam, self.reference, self.held_joints
        held = np.concatenate([self.J[self.mode.held], self.held_joints])
        force_rows = np.concatenate([self.mode.force_rows(self.J, friction), self.held_joints])
        response, reaction = self.factorization.solve(force_rows, np.zeros((len(force_rows), len(self.lam))))
        delassus, error = held @ response.T, held @ self.free
        error[: len(self.mode.held)] += self.rate[self.mode.held]
        diagonal = self.system.free_diagonal(held)
        if len(self.lam):
            drop_held(delassus, error, held, np.abs(self.free), diagonal)
        inverse, balanced = _inverse(delassus, np.sqrt(diagonal))
        if len(balanced) and len(friction):
            alone = held @ self.factorization.solve(held, np.zeros((len(held), len(self.lam))))[0].T
            inverse = _sharing(inverse, balanced, _inverse(alone, np.sqrt(diagonal))[1])
        r = self.reference
        for _ in range(2):  # the second takes back what rounding has left
            r = r - inverse @ (error + delassus @ r)
        if len(balanced) and not (len(friction) or self.reference.any()):
            r = r + _shared(self.lam + r @ reaction, balanced @ reaction) @ balanced
        return self.free + r @ response, self.lam + r @ reaction, r, force_rows

    def with_onset(self, friction: Array, onset: npt.NDArray[np.intp]) -> Array:
        """Return `friction` (g, 2), of what is at its `onset` opposite to the acceleration that it leaves.

        From rest ``u`` has the direction of ``du/dt``, which forces may turn faster than u can be integrated. The angle
        by which it has turned since the beginning of the mode is a root of the acceleration across it, by Newton's
        method.
        """
        angles, best, least = np.zeros(len(onset)), friction, np.inf
        if not onset.size:
            return friction
        for _ in range(EVENTS.onset_steps):
            trial = _turned(friction, onset, angles)
            across = self._across(trial, onset)
            error = np.abs(across).max()
            if not error < least:
                break
            best, least = trial, error
            slope = [
                (self._across(_turned(trial, onset, EVENTS.onset_angle * unit), onset) - across) / EVENTS.onset_angle
                for unit in np.eye(len(onset))
            ]
            angles = angles - np.linalg.lstsq(np.stack(slope, axis=1), across, EVENTS.onset_rank)[0]
        return best

    def _across(self, friction: Array, onset: npt.NDArray[np.intp]) -> Array:
        """Return the accelerations at right angles to the `friction` of what is at its `onset`."""
        acceleration = self.mode.moving.blocks.components(self.J @ self.solve(friction)[0] + self.rate)[onset]
        x, y = friction[onset].T
        return (x * acceleration[:, 1] - y * acceleration[:, 0]) / np.hypot(x, y)


def _inverse(delassus: Array, lengths: Array) -> tuple[Array, Array]:
    """Return (n, n) what solves for forces of least norm, and (k, n) orthonormal ones that move nothing held.

    Args:
        delassus: (n, n).
        lengths: (n,) of the rows in the metric of M^-1: divided by them, rows of light and of heavy bodies compare.
    """
    scale = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    left, singular, right = np.linalg.svd(scale[:, None] * delassus * scale)
    rank = int((singular > EVENTS.independent * singular.max()).sum())
    solved = scale[:, None] * (right[:rank].T / singular[:rank]) @ (left[:, :rank].T * scale)
    if rank == len(lengths):
        return solved, np.zeros((0, rank))
    balanced = np.linalg.qr((right[rank:] * scale).T)[0].T
    return solved - balanced.T @ (balanced @ solved), balanced


def _sharing(inverse: Array, balanced: Array, alone: Array) -> Array:
    """Return what solves for forces as equal springs under all that is held share them.

    Springs yield with the motion: their forces are ``J y``, at right angles to all that move nothing.

    Args:
        inverse: (n, n) what solves for some forces.
        balanced: (k, n) forces that move nothing, with the friction that they bring with them.
        alone: (k, n) forces that move nothing without it, orthonormal.
    """
    return np.asarray(inverse - balanced.T @ np.linalg.lstsq(alone @ balanced.T, alone @ inverse)[0], dtype=float)


def _shared(lam: Array, relief: Array) -> Array:
    """Return (k,) the z for which ``|z|^2 + |lam + z relief|^2`` is least: how far contacts bear what rows would.

    Args:
        lam: (m,) multipliers of the bilateral rows, where contact forces are those of least norm.
        relief: (k, m) their changes with forces of contacts that change no motion, of norm 1 and at right angles.
    """
    return np.asarray(-np.linalg.solve(np.eye(len(relief)) + relief @ relief.T, relief @ lam), dtype=float)


def _turned(friction: Array, which: npt.NDArray[np.intp], angles: Array) -> Array:
    """Return `friction` (g, 2) with what is in `which` turned by `angles` [rad]."""
    x, y = friction[which].T
    turned = friction.copy()
    turned[which, 0] = np.cos(angles) * x - np.sin(angles) * y
    turned[which, 1] = np.sin(angles) * x + np.cos(angles) * y
    return turned
