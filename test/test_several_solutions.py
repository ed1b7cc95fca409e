"""Scenes at rest in which the laws of contact allow several motions: one of them is taken, whichever method begins."""

from typing import NamedTuple

import numpy as np
import pytest

from constrained_sim.contact_solvers import METHODS, ContactProblem, solve_contacts
from constrained_sim.linalg.cholesky import independent_factor

DT, GRAVITY = 1e-3, 9.81
UP, ACROSS = np.eye(3), np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
"""Rows t1, t2, n of contacts whose normal is vertical, or along x."""

SIGNS = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
LOADS = [0.3, 0.9, 0.999, 1.0, 1.001, 1.1, 2.0]
"""Of what friction can hold: most of them near the onset of slip."""


class Box(NamedTuple):
    """A free body: its half lengths [m], its mass [kg] and the middle of it [m]."""

    half: np.ndarray
    mass: float
    middle: np.ndarray

    @property
    def inverse_inertia(self):
        """(6,) for forces and for moments about the middle."""
        around = self.mass / 3.0 * (np.sum(self.half**2) - self.half**2)
        return 1.0 / np.concatenate([np.full(3, self.mass), around])


class Touch(NamedTuple):
    """A contact: point [m], rows t1, t2, n, which body is pushed along n, by which other; -1: ground."""

    point: np.ndarray
    axes: np.ndarray
    pushed: int
    other: int = -1


def problem_of(boxes, touches, pushes, friction, guided=()):
    """Return the problem of one step from rest under gravity and `pushes`, (6,) on some boxes.

    Those that are `guided` move along x only.
    """
    inverse = np.concatenate([box.inverse_inertia for box in boxes])
    force = np.concatenate([[0, 0, -GRAVITY * box.mass, 0, 0, 0] for box in boxes]).astype(float)
    for place, push in pushes:
        force[6 * place : 6 * place + 6] += push
    for place in guided:
        inverse[6 * place + 1 : 6 * place + 6] = 0.0
    J = np.zeros((3 * len(touches), len(inverse)))
    for c, touch in enumerate(touches):
        for place, sign in ((touch.pushed, 1.0), (touch.other, -1.0)):
            if place >= 0:
                arm = touch.point - boxes[place].middle
                rows = np.hstack([touch.axes, np.cross(arm, touch.axes)])
                J[3 * c : 3 * c + 3, 6 * place : 6 * place + 6] += sign * rows
    G = (J * inverse) @ J.T
    b, count = DT * (J * inverse) @ force, len(touches)
    return ContactProblem(0.5 * (G + G.T), b, np.full(count, friction), np.zeros((count, 2)))


def pinch(rng):
    """A box between two jaws on slides, which push with a part of what would hold it."""
    held = Box(rng.uniform(0.005, 0.03, 3), rng.uniform(0.02, 0.5), np.zeros(3))
    x, y, z = held.half
    jaws = [Box(np.array([0.01, 0.05, 0.05]), 0.2, np.array([sign * (x + 0.01), 0, 0])) for sign in (-1, 1)]
    friction = rng.uniform(0.2, 1.0)
    force = held.mass * GRAVITY / (2 * friction) * rng.choice(LOADS)
    pushes = [(1, np.array([force, 0, 0, 0, 0, 0])), (2, np.array([-force, 0, 0, 0, 0, 0]))]
    ends = SIGNS if rng.integers(2) else [(0, 1), (0, -1)]
    points = [(side, jaw, np.array([side * x, a * y, b * z])) for jaw, side in ((1, -1), (2, 1)) for b, a in ends]
    touches = [Touch(point, -side * ACROSS, 0, jaw) for side, jaw, point in points]
    return problem_of([held, *jaws], touches, pushes, friction, guided=(1, 2))


def stack(rng):
    """One box or more on each other, all but some pushed at its middle or over it, along an axis or a diagonal."""
    boxes, touches, height = [], [], 0.0
    for place in range(rng.integers(1, 4)):
        half = rng.uniform(0.03, 0.2, 3)
        below = boxes[-1].half if boxes else half
        x, y = np.minimum(half, below)[:2]
        touches += [Touch(np.array([a * x, b * y, height]), UP, place, place - 1) for a, b in SIGNS]
        boxes.append(Box(half, rng.uniform(0.2, 3.0), np.array([0, 0, height + half[2]])))
        height += 2 * half[2]
    friction, place = rng.uniform(0.1, 1.0), int(rng.integers(len(boxes)))
    direction = np.array([[1.0, 0, 0], [0, 1, 0], [np.sqrt(0.5), np.sqrt(0.5), 0], [0, 0, 0]])[rng.integers(4)]
    force = friction * sum(box.mass for box in boxes[place:]) * GRAVITY * rng.choice(LOADS) * direction
    arm = np.array([0, 0, boxes[place].half[2] * rng.choice([0.0, 0.5, -0.5])])
    return problem_of(boxes, touches, [(place, np.concatenate([force, np.cross(arm, force)]))], friction)


@pytest.mark.parametrize("make", [pinch, stack])
def test_the_method_does_not_decide(make):
    """Two hundred scenes, most of them about to slip: all methods come to one motion and to the same forces."""
    for seed in range(100):
        problem = make(np.random.default_rng(seed))
        found = {method: solve_contacts(problem, method) for method in METHODS}
        expected = found["newton"].impulse
        speed, push = np.abs(problem.b).max(), np.abs(expected).max()
        for method, solution in found.items():
            assert solution.converged, (seed, method)
            assert np.abs(problem.G @ (solution.impulse - expected)).max() < 1e-8 * speed, (seed, method)
            assert np.abs(solution.impulse - expected).max() < 1e-8 * push, (seed, method)


@pytest.mark.parametrize("method", METHODS)
def test_a_pinch_that_begins_to_slip_goes_straight_down(method):
    """All contacts carry the same: the box falls with what friction leaves of gravity, and does not turn."""
    held, force, friction = Box(np.array([0.004, 0.015, 0.01]), 0.045, np.zeros(3)), 0.2, 0.7
    jaws = [Box(np.array([0.01, 0.05, 0.05]), 0.2, np.array([sign * 0.014, 0, 0])) for sign in (-1, 1)]
    pushes = [(1, np.array([force, 0, 0, 0, 0, 0])), (2, np.array([-force, 0, 0, 0, 0, 0]))]
    touches = [
        Touch(np.array([side * 0.004, a * 0.015, b * 0.01]), -side * ACROSS, 0, jaw)
        for jaw, side in ((1, -1), (2, 1))
        for a, b in SIGNS
    ]
    problem = problem_of([held, *jaws], touches, pushes, friction, guided=(1, 2))
    r = solve_contacts(problem, method).impulse.reshape(-1, 3)
    u = (problem.G @ r.ravel() + problem.b).reshape(-1, 3)
    slip = u * np.repeat([1.0, -1.0], 4)[:, None]
    assert r[:, 2] == pytest.approx(np.full(8, force * DT / 4), rel=1e-7)
    fall = -(GRAVITY - 2 * friction * force / held.mass) * DT
    assert slip == pytest.approx(np.tile([0.0, fall, 0.0], (8, 1)), abs=1e-10)


def test_rows_after_a_small_pivot_are_not_taken_for_independent():
    """Rounding of a row that depends on one that nearly depends on others is more than that of the others."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        a, b, c = np.linalg.qr(rng.normal(size=(5, 3)))[0].T
        rows = np.array([a, a + 1e-4 * b, b + c, c])
        assert not independent_factor(rows @ rows.T)[1]
        assert independent_factor(rows[[0, 2, 3]] @ rows[[0, 2, 3]].T)[1]
