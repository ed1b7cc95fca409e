"""constraint_system: the matrices of a robot and its constraints, against Pinocchio, differences and the solvers."""

import numpy as np
import pytest
from mechanisms import (
    LIMIT,
    SOLO_FEET,
    bias_of,
    derivative,
    inertia_of,
    joint,
    leg,
    link,
    point_of,
    relative,
    solo12,
    standing_solo,
    urdf,
)

from constrained_sim import (
    FrameAnchor,
    JointCoupling,
    JointVelocity,
    PointAnchor,
    PointContact,
    Robot,
    constrained_acceleration,
    constraint_system,
    resolve_impact,
    solve_kkt,
)
from constrained_sim.dynamics.dynamics import integrate
from constrained_sim.exceptions import InvalidValue, UnknownName


def moving_solo():
    """Return solo12 at a random state, and constraints of every kind whose rows are in another order than by kind."""
    rng, robot = np.random.default_rng(4), solo12()
    q = integrate(robot, standing_solo(0.02), 0.2 * rng.normal(size=robot.nv))
    constraints = [
        PointContact("first", SOLO_FEET[0], (0.0, 0.0, 0.0), friction=0.7),
        PointAnchor(
            "second", SOLO_FEET[1], (0.01, 0.0, 0.0), point_b=(0.3, 0.1, 0.0), normals=[(0, 0.6, 0.8), (1, 0, 0)]
        ),
        JointVelocity("third", "FL_KFE", 0.3),
        FrameAnchor("fourth", SOLO_FEET[2], (0, 0, 0, 0, 0, 0, 1), SOLO_FEET[3]),
    ]
    return robot, q, rng.normal(size=robot.nv), constraints


def test_terms_of_every_row():
    """M and h are Pinocchio's; s = J v + phi_t, ds/dt = J a + gamma along a motion, and phi is a distance."""
    robot, q, v, constraints = moving_solo()
    a, here = np.random.default_rng(5).normal(size=robot.nv), constraint_system(robot, q, v, constraints)
    assert relative(here.M, inertia_of(robot, q)) < 1e-14
    assert relative(here.h, bias_of(robot, q, v)) < 1e-13
    assert list(here.slices) == [c.name for c in constraints]
    assert [here.slices[c.name].start for c in constraints] == [0, 3, 5, 6]
    assert here.J.shape == (12, robot.nv)

    def rates(t):
        there = integrate(robot, q, t * v + 0.5 * t**2 * a)
        return constraint_system(robot, there, v + t * a, constraints[:3]).s

    assert here.J[:6] @ a + here.gamma[:6] == pytest.approx(derivative(rates), abs=1e-8)
    drive = np.zeros(12)
    drive[here.slices["third"]] = -0.3
    assert here.s == pytest.approx(here.J @ v + drive, abs=1e-13)
    foot, held = (
        point_of(robot, q, name, at) for name, at in ((SOLO_FEET[0], (0, 0, 0)), (SOLO_FEET[1], (0.01, 0, 0)))
    )
    assert here.phi[:3] == pytest.approx([0.0, 0.0, foot[2]], abs=1e-14)
    off = held - [0.3, 0.1, 0.0]
    assert here.phi[3:5] == pytest.approx([[0, 0.6, 0.8] @ off, off[0]], abs=1e-14)
    assert here.phi[5] == 0.0


def test_solve_kkt_takes_it():
    """Acceleration and impact with all rows held, from the matrices, are those of the calls that do everything."""
    robot, q, v, constraints = moving_solo()
    bilateral, tau = constraints[1:], np.random.default_rng(6).normal(size=robot.nu)
    here, force = constraint_system(robot, q, v, bilateral), np.zeros(robot.nv)
    force[robot.actuation] = tau
    a, lam = solve_kkt(here.M, here.J, force - here.h, -here.gamma)
    motion = constrained_acceleration(robot, q, v, tau, bilateral)
    assert relative(motion.a, a) < 1e-11
    assert relative(motion.lam, lam) < 1e-11
    v_plus, impulse = solve_kkt(here.M, here.J, here.M @ v, here.J @ v - here.s)
    impact = resolve_impact(robot, q, v, bilateral)
    assert relative(impact.v_plus, v_plus) < 1e-11
    assert relative(impact.impulse, impulse) < 1e-11


def test_bad_input_is_refused():
    """As by every stateless call."""
    with pytest.raises(InvalidValue, match="q: got"):
        constraint_system(leg(), [0.0], np.zeros(3), [])
    with pytest.raises(InvalidValue, match="a list of them"):
        constraint_system(leg(), leg().neutral(), np.zeros(3), PointContact("c", "foot", (0, 0, 0)))
    with pytest.raises(UnknownName):
        constraint_system(leg(), leg().neutral(), np.zeros(3), [PointContact("c", "nothing", (0, 0, 0))])
    empty = constraint_system(leg(), leg().neutral(), np.zeros(3), [])
    assert empty.J.shape == (0, 3)
    with pytest.raises(ValueError, match="read-only"):
        empty.M[0, 0] = 1.0


@pytest.mark.parametrize(("ratio", "unknown"), [(1, 2 * np.pi), (2, 4 * np.pi), (-3, 6 * np.pi), (0, np.inf)])
def test_turns_of_a_continuous_reference_count_by_the_ratio(ratio, unknown):
    """A slider that follows a wheel is known up to `ratio` turns of it, and exactly where it does not follow at all."""
    robot = Robot.from_urdf(
        urdf(
            '<link name="base"/>',
            link("wheel", 1.0),
            joint("c", "continuous", "base", "wheel", (0, 0, 1)),
            link("rod", 1.0),
            joint("p", "prismatic", "base", "rod", (1, 0, 0), more=LIMIT),
        )
    )
    coupling = JointCoupling("rack", "p", "c", ratio)
    for wanted in (0.0, 0.4, -0.4, 2 * np.pi, 3.0 * np.pi + 0.1):
        q = robot.configuration({"c": 0.0, "p": wanted})
        expected = wanted if np.isinf(unknown) else np.remainder(wanted + 0.5 * unknown, unknown) - 0.5 * unknown
        assert constraint_system(robot, q, np.zeros(2), [coupling]).phi == pytest.approx([expected], abs=1e-14)
