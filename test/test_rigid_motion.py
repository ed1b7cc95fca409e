"""Logarithms of rigid motions: inverse of Pinocchio's exponential, and their exact derivative."""

import numpy as np
import pinocchio as pin
import pytest

from constrained_sim.dynamics.rigid_motion import jlog6, log3, log6

ANGLES = [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 0.05, 0.3, 0.499, 0.501, 1.0, 2.0, 3.0, 3.14, np.pi - 1e-5, np.pi - 1e-9]


def motions(angle):
    """Yield placements that turn by an angle about axes of all kinds."""
    rng = np.random.default_rng(1)
    axes = [*np.eye(3), *-np.eye(3), *rng.normal(size=(6, 3)), (1.0, 1e-9, 0.0), (-1.0, -1.0, 1e-12)]
    for axis in axes:
        yield pin.SE3(pin.exp3(angle * np.array(axis) / np.linalg.norm(axis)), rng.normal(size=3))


def as_rows(motion):
    """Return the columns of the rotation, then the translation."""
    return np.vstack([motion.rotation.T, motion.translation])


@pytest.mark.parametrize("angle", ANGLES)
def test_the_exponential_of_a_logarithm_is_the_motion(angle):
    """To rounding at any angle, pi included; the turn is not longer than pi."""
    for motion in motions(angle):
        found = log6(as_rows(motion))
        assert np.linalg.norm(log3(as_rows(motion))) == pytest.approx(angle, abs=1e-14)
        back = pin.SE3(pin.exp3(found[3:]), np.zeros(3))
        np.testing.assert_allclose(back.rotation, motion.rotation, rtol=0, atol=4e-15)
        if angle > 1e-2 or angle == 0.0:  # between them Pinocchio's exponential itself loses digits
            np.testing.assert_allclose(
                pin.exp6(found).homogeneous, motion.homogeneous, rtol=0, atol=4e-15 / (angle or 1)
            )


@pytest.mark.parametrize("angle", ANGLES[:-2])
def test_the_derivative_is_that_of_the_logarithm(angle):
    """By central differences, along each velocity in the moving axes."""
    step = 1e-5
    for motion in motions(angle):
        slopes = [
            (log6(as_rows(motion * pin.exp6(step * e))) - log6(as_rows(motion * pin.exp6(-step * e)))) / (2.0 * step)
            for e in np.eye(6)
        ]
        atol = 1e-9 if angle < 3.1 else 1e-5  # the third derivative grows without bound towards 2 pi only
        np.testing.assert_allclose(jlog6(as_rows(motion)), np.array(slopes).T, rtol=0, atol=atol)


def test_a_half_turn_has_a_logarithm():
    """Exactly: of one of its two directions."""
    for turn in (np.diag([1.0, -1.0, -1.0]), np.diag([-1.0, 1.0, -1.0]), np.diag([-1.0, -1.0, 1.0])):
        found = log6(np.vstack([turn, np.zeros(3)]))
        assert np.linalg.norm(found) == pytest.approx(np.pi, abs=1e-15)
        np.testing.assert_allclose(pin.exp3(found[3:]), turn, rtol=0, atol=1e-15)
