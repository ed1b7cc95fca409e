"""Andrews' squeezing mechanism: seven bodies, three loops through one point, a spring, and published results.

Source: Schiehlen (ed.), Multibody Systems Handbook, 1990; data and reference solution from Mazzia and Magherini, Test
Set for Initial Value Problem Solvers, 2008, problem "andrews" (computed with PSIDE, tolerances 1e-14).
"""

import numpy as np
import pytest
from mechanisms import LIMIT, METHOD_NAMES, METHODS, joint, link, urdf
from scipy.integrate import solve_ivp

from constrained_sim import PointAnchor, Robot, Simulator, constrained_acceleration
from constrained_sim.exceptions import NotSupported
from constrained_sim.solvers import make_solver

JOINTS = ("beta", "theta", "gamma", "phi", "delta", "omega", "epsilon")
A, B, C = (-0.06934, -0.00227, 0.0), (-0.03635, 0.03273, 0.0), np.array([0.014, 0.072])
CRANK, COUPLER, ROCKER, LEVER, BAR, UPPER, LOWER = 7e-3, 28e-3, 35e-3, 4e-2, 2e-2, 2e-2, 4e-2
SPRING, SPRING_LENGTH, TORQUE, END = 4530.0, 0.07785, 0.033, 0.03

# fmt: off
BODIES = (  # mass [kg], centre of mass [m], moment of inertia [kg m^2]
    (0.04325, (92e-5, 0.0), 2.194e-6), (0.00365, (-115e-4, 0.0), 4.410e-7), (0.02373, (1043e-5, -1874e-5), 5.255e-6),
    (0.00706, (0.0, 1421e-5 - BAR), 5.667e-7), (0.07050, (2308e-5, 916e-5), 1.169e-5),
    (0.00706, (UPPER - 1421e-5, 0.0), 5.667e-7), (0.05498, (449e-5, -1228e-5), 1.912e-5),
)
Q_0 = (-0.0617138900142764496, 0.0, 0.455279819163070380, 0.222668390165885885, 0.487364979543842550,
       -0.222668390165885885, 1.23054744454982119)
A_0 = (14222.4439199541138, -10666.8329399655854, 0.0, 0.0, 0.0, 0.0, 0.0)
LAMBDA_0 = (98.5668703962410896, -6.12268834425566265, 0.0, 0.0, 0.0, 0.0)
Q_END = (0.1581077119629904e2, -0.1575637105984298e2, 0.4082224013073101e-1, -0.5347301163226948, 0.5244099658805304,
         0.5347301163226948, 0.1048080741042263e1)
V_END = (0.1139920302151208e4, -0.1424379294994111e4, 0.1103291221937134e2, 0.1929337464421385e2, 0.5735699284790808,
         -0.1929337464421385e2, 0.3231791658026955)
LAMBDA_END = (0.1991753333731910e3, -0.2975531228015052e2, 0.2306654119098399e2, 0.3145271365475927e2,
              0.2264249232082739e2, 0.1161740700019673e2)
# fmt: on


def mechanism():
    """Return the robot, driven at the crank and by the spring's moment, its loops, and the place of each joint."""
    links = [link(f"k{i}", m, (*centre, 0.0), (J, J, J)) for i, (m, centre, J) in enumerate(BODIES, 1)]
    hinges = [
        ("beta", "base", "k1", (0.0, 0.0, 0.0)),
        ("theta", "k1", "k2", (CRANK, 0.0, 0.0)),
        ("gamma", "base", "k3", B),
        ("delta", "base", "k5", A),
        ("phi", "k5", "k4", (LEVER, 0.0, 0.0)),
        ("epsilon", "base", "k7", A),
        ("omega", "k7", "k6", (0.0, -LOWER, 0.0)),
    ]
    joints = [joint(name, "revolute", *ends, (0, 0, 1), origin, LIMIT) for name, *ends, origin in hinges]
    robot = Robot.from_urdf(urdf('<link name="base"/>', *links, *joints), False, (0, 0, 0), ["beta", "gamma"])
    ends = {"k3": (0.0, -ROCKER, 0.0), "k4": (0.0, -BAR, 0.0), "k6": (UPPER, 0.0, 0.0)}
    loops = [
        PointAnchor(name, "k2", (-COUPLER, 0, 0), link_b=name, point_b=end, normals=[(1, 0, 0), (0, 1, 0)])
        for name, end in ends.items()
    ]
    return robot, loops, np.array([robot.joint_models[name].idx_v for name in JOINTS])


def efforts(gamma):
    """Return the torque of the drive and the moment of the spring [N m], which pulls from point C, at angle `gamma`."""
    arm = np.array([[np.cos(gamma), -np.sin(gamma)], [np.sin(gamma), np.cos(gamma)]]) @ [2e-2, -18e-3]
    span = B[:2] + arm - C
    length = np.hypot(*span)
    force = -SPRING * (length - SPRING_LENGTH) / length * span
    return [TORQUE, arm[0] * force[1] - arm[1] * force[0]]


@pytest.mark.parametrize(("name", "options"), METHODS, ids=METHOD_NAMES)
def test_published_accelerations_and_forces(name, options):
    """At the beginning to rounding; at the end as far as the published velocities go, which obey the loops to 1e-9."""
    robot, loops, order = mechanism()
    solver = make_solver(name, **options)
    if not all(solver.supports(loop) for loop in loops):
        with pytest.raises(NotSupported):
            constrained_acceleration(robot, robot.neutral(), np.zeros(7), [0.0, 0.0], loops, solver)
        return
    for angles, rates, forces, accuracy in ((Q_0, np.zeros(7), LAMBDA_0, 1e-12), (Q_END, V_END, LAMBDA_END, 2e-7)):
        q, v = np.empty(7), np.empty(7)
        q[order], v[order] = angles, rates
        result = constrained_acceleration(robot, q, v, efforts(angles[2]), loops, solver)
        on_coupler = [result.wrench(loop.name, "k2")[:2] for loop in loops]
        np.testing.assert_allclose(-np.concatenate(on_coupler), forces, rtol=0, atol=accuracy * max(forces))
        if not np.any(rates):
            np.testing.assert_allclose(result.a[order], A_0, rtol=0, atol=accuracy * A_0[0])


def test_published_motion_from_forward_dynamics():
    """Sixteen turns of the coupler at 1400 rad/s, integrated from accelerations alone."""
    robot, loops, order = mechanism()
    q = np.empty(7)
    q[order] = Q_0

    def rates(t, y):
        acceleration = constrained_acceleration(robot, y[:7], y[7:], efforts(y[order[2]]), loops).a
        return np.concatenate([y[7:], acceleration])

    end = solve_ivp(rates, (0.0, END), np.concatenate([q, np.zeros(7)]), "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(end[:7][order], Q_END, rtol=0, atol=5e-9)
    np.testing.assert_allclose(end[7:][order], V_END, rtol=0, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "accuracy"),
    [
        ({"stepper": "time_stepping"}, 5e-4),
        ({"stepper": "smooth", "integrator": "rk4"}, 2e-5),
        ({"stepper": "event_driven"}, 2e-5),
    ],
    ids=str,
)
def test_published_motion_from_steps(options, accuracy):
    """The spring's moment is held over a step, that of its middle: so the error is of second order at best, and is."""
    errors = []
    for steps in (750, 1500):
        robot, loops, order = mechanism()
        dt, q = END / steps, np.empty(7)
        q[order] = Q_0
        sim = Simulator(robot, dt=dt, **options)
        sim.reset(q)
        for loop in loops:
            sim.add(loop)
        gamma = order[2]
        end = sim.run(END, lambda t, q, v: efforts(q[gamma] + 0.5 * dt * v[gamma]))  # noqa: B023
        errors.append(np.abs(end.q[-1][order] - Q_END).max())
        assert sim.largest_violation()[0] < 1e-9
    assert errors[1] < accuracy
    assert 3.7 < errors[0] / errors[1] < 5.0
