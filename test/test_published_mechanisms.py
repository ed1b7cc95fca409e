"""Closed mechanisms from the literature: IFToMM's library of benchmarks (Gonzalez et al., 2006), and their pitfalls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mechanisms import GRAVITY, LIMIT, every_solver, joint, link, relative, urdf
from scipy.integrate import solve_ivp
from scipy.special import gamma

from constrained_sim import (
    CustomConstraint,
    FrameAnchor,
    PointAnchor,
    Robot,
    Simulator,
    constrained_acceleration,
    constraint_system,
    solve_kkt,
)
from constrained_sim import integrators as schemes
from constrained_sim.exceptions import NonFiniteState
from constrained_sim.validation import Array

FALLING = (0.0, -GRAVITY, 0.0)


def rod(name: str, end: tuple[float, float, float], mass: float = 1.0) -> str:
    """Return a thin uniform rod from its frame's origin to `end`."""
    along = np.asarray(end)
    inertia = mass / 12.0 * (along @ along - along**2) + 1e-3
    return link(name, mass, tuple(0.5 * along), tuple(inertia))


def hinge(
    name: str, parent: str, child: str, at: tuple[float, float, float], axis: tuple[int, int, int], rpy: str = "0 0 0"
) -> str:
    """Return a hinge whose frame may be turned."""
    return joint(name, "revolute", parent, child, axis, at, LIMIT).replace("<origin ", f'<origin rpy="{rpy}" ')


# -- Bricard's mechanism: five rods, six hinges at right angles, one freedom that the count of rows does not see


def bricard() -> tuple[Robot, list[PointAnchor]]:
    """Return five hinged rods of 1 kg and 1 m, and the anchors that make the sixth hinge: five rows of rank four."""
    ends = [(1, 0, 0), (0, -1, 0), (0, 0, 1), (-1, 0, 0), (0, 1, 0)]
    axes = [(0, 1, 0), (0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    parts, parent, at = ['<link name="base"/>'], "base", (0.0, 0.0, 0.0)
    for i, (end, axis) in enumerate(zip(ends, axes, strict=True)):
        parts += [rod(f"rod{i}", end), hinge(f"joint{i}", parent, f"rod{i}", at, axis)]
        parent, at = f"rod{i}", end
    loop = [
        PointAnchor("point", "rod4", (0, 1, 0), point_b=(0, 0, 1)),
        PointAnchor("axis", "rod4", (1, 1, 0), point_b=(1, 0, 1), normals=[(0, 1, 0), (0, 0, 1)]),
    ]
    return Robot.from_urdf(urdf(*parts), gravity=FALLING), loop


@pytest.mark.parametrize(
    ("options", "accuracy"),
    [
        ({"dt": 1e-3}, 1e-4),
        ({"dt": 1e-2}, 1e-2),
        ({"dt": 5e-3, "solver": "projected"}, 3e-3),
        ({"dt": 5e-3, "stepper": "smooth", "solver": "range_space"}, 1e-6),
    ],
)
def test_bricard_keeps_its_energy(options: dict[str, object], accuracy: float) -> None:
    """From rest, whatever the step: the redundant row never becomes an independent one."""
    robot, loop = bricard()
    sim = Simulator(robot, loop, **options)  # type: ignore[arg-type]
    sim.reset(np.zeros(5), np.array([1.0, -1.0, 1.0, -1.0, 1.0]))
    energy = sim.mechanical_energy()
    trajectory = sim.run(2.0)
    assert sim.active_rows() == (5, 4)
    assert np.abs(np.diff(trajectory.q, axis=0)).max() > 5e-4
    assert sim.mechanical_energy() == pytest.approx(energy, abs=accuracy)
    assert max(np.abs(rows).max() for rows in trajectory.multipliers.values()) < 50.0


# -- a planar four-bar linkage, however its frames are turned

TURNS = {
    "plain": [("0 0 0", (0, 0, 1), 1)] * 4,
    "half turns": [
        ("0 0 0", (0, 0, 1), 1),
        (f"{np.pi!r} 0 0", (0, 0, 1), -1),
        ("0 0 0", (0, 0, 1), -1),
        (f"{np.pi!r} 0 0", (0, 0, 1), 1),
    ],
    "quarter turns": [
        ("0 0 0", (0, 0, 1), 1),
        (f"{np.pi / 2!r} 0 0", (0, 1, 0), 1),
        (f"{-np.pi / 2!r} 0 0", (0, 0, 1), 1),
        (f"{np.pi / 2!r} 0 0", (0, 1, 0), 1),
    ],
    "eleven digits": [
        ("0 0 0", (0, 0, 1), 1),
        ("1.5707963268 0 0", (0, 1, 0), 1),
        ("-1.5707963268 0 0", (0, 0, 1), 1),
        ("1.5707963268 0 0", (0, 1, 0), 1),
    ],
}


def four_bar(turns: list[tuple[str, tuple[int, int, int], int]]) -> tuple[Robot, np.ndarray]:
    """Return an open chain of 1, 2 and 1 m and a frame at its end, and the signs of the joints."""
    lengths, masses = [1.0, 2.0, 1.0, 0.0], [1.0, 2.0, 1.0, 0.1]
    parts, parent, at = ['<link name="base"/>'], "base", 0.0
    for i, (rpy, axis, _) in enumerate(turns):
        moment = 0.05 + masses[i] * lengths[i] ** 2 / 12.0
        parts += [link(f"bar{i}", masses[i], (0.5 * lengths[i], 0, 0), (0.01, moment, moment))]
        parts += [hinge(f"joint{i}", parent, f"bar{i}", (at, 0.0, 0.0), axis, rpy)]
        parent, at = f"bar{i}", lengths[i]
    return Robot.from_urdf(urdf(*parts), gravity=FALLING), np.array([sign for _, _, sign in turns], dtype=float)


@pytest.mark.parametrize("closure", [FrameAnchor("close", "bar3", np.eye(4)), PointAnchor("close", "bar2", (1, 0, 0))])
@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
def test_planar_loop_is_not_locked_by_rounding(turns: list, closure: FrameAnchor | PointAnchor) -> None:  # type: ignore[type-arg]
    """Rows out of the plane are zero, not noise: the same motion and forces however the frames are turned."""
    start = np.array([np.pi / 3, -np.pi / 3, -2 * np.pi / 3, 2 * np.pi / 3])
    plain, _ = four_bar(TURNS["plain"])
    robot, signs = four_bar(turns)
    expected = constrained_acceleration(plain, start, np.zeros(4), np.zeros(4), [closure])
    for solver in every_solver([closure]):
        motion = constrained_acceleration(robot, start * signs, np.zeros(4), np.zeros(4), [closure], solver)
        assert motion.rank == expected.rank
        assert relative(motion.a * signs, expected.a) < 1e-9
        assert np.abs(motion.lam).max() == pytest.approx(np.abs(expected.lam).max(), rel=1e-6)


# -- rows that nearly depend on each other


# -- Bennett's linkage: four hinges in space, one freedom, six rows of rank two wherever the loop is closed


class Bennett:
    """Three bodies on hinges; the fourth hinge is two points of its axis. ``tan(q0 / 2) tan(q1 / 2) = K, q2 = -q0``.

    Source: Bennett, A new mechanism, 1903; K is ``sin((beta + alpha) / 2) / sin((beta - alpha) / 2)``, with the sign
    and direction that the axes have here.
    """

    LENGTH, TWIST, OTHER_TWIST = 0.5, np.radians(40.0), np.radians(75.0)
    OTHER_LENGTH = LENGTH * np.sin(OTHER_TWIST) / np.sin(TWIST)
    K = np.sin((OTHER_TWIST + TWIST) / 2) / np.sin((OTHER_TWIST - TWIST) / 2)

    def __init__(self) -> None:
        a, b, alpha, beta = self.LENGTH, self.OTHER_LENGTH, self.TWIST, self.OTHER_TWIST
        places = [(0.0, 0.0), (a, alpha), (b, beta)]
        parts, parent = ['<link name="base"/>'], "base"
        for i, (mass, (along, twist)) in enumerate(zip([1.0, 2.0, 1.5], places, strict=True)):
            parts += [link(f"bar{i}", mass, (0.2, 0.05, -0.03), (0.01, 0.02, 0.02))]
            parts += [hinge(f"q{i}", parent, f"bar{i}", (along, 0.0, 0.0), (0, 0, 1), f"{twist} 0 0")]
            parent = f"bar{i}"
        self.robot = Robot.from_urdf(urdf(*parts))
        self.loop = [
            PointAnchor("point", "bar2", (a, 0, 0), point_b=(-b, 0, 0)),
            PointAnchor("axis", "bar2", (a, -np.sin(alpha), np.cos(alpha)), point_b=(-b, np.sin(beta), np.cos(beta))),
        ]

    def configuration(self, angle: float) -> Array:
        return np.array([angle, 2.0 * np.arctan2(self.K, np.tan(angle / 2.0)), -angle])

    def direction(self, angle: float) -> Array:
        """Return the derivative of the configuration by the first angle."""
        sine, cosine = np.sin(angle / 2.0), np.cos(angle / 2.0)
        return np.array([1.0, -self.K / (sine**2 + (self.K * cosine) ** 2), -1.0])

    def motion(self, duration: float, angle: float, speed: float) -> Array:
        """Return the first angle and its speed, by the equation of motion of the one freedom."""

        def field(_t: float, state: Array) -> list[float]:
            x, w = state
            s = self.direction(x)
            turning = (self.direction(x + 1e-6) - self.direction(x - 1e-6)) / 2e-6
            system = constraint_system(self.robot, self.configuration(x), s * w, [])
            return [w, -(s @ (system.M @ turning * w**2 + system.h)) / (s @ system.M @ s)]

        return np.asarray(solve_ivp(field, (0.0, duration), [angle, speed], rtol=1e-10, atol=1e-11).y[:, -1])


@pytest.mark.parametrize(
    ("options", "accuracy"),
    [
        ({"dt": 1e-3}, 4e-7),
        ({"dt": 2.5e-4}, 3e-8),
        ({"dt": 1e-3, "solver": "null_space"}, 4e-7),
        ({"dt": 1e-3, "solver": "projected"}, 4e-7),
        ({"dt": 1e-3, "stepper": "smooth", "integrator": "rk4"}, 1e-9),
        ({"dt": 1e-2, "stepper": "event_driven"}, 1e-9),
    ],
    ids=str,
)
def test_bennett_is_not_locked_by_its_redundant_rows(options: dict[str, Any], accuracy: float) -> None:
    """Off the closed loop rows are independent by the square of what is moved: they hold nothing all the same.

    At an angle of 1.083 one of them vanishes, at 1 it is short. Forces are those of so slow a linkage.
    """
    bennett, angle, speed = Bennett(), 1.0, 2.0
    start = {"q": bennett.configuration(angle), "v": bennett.direction(angle) * speed}
    trajectory = Simulator(bennett.robot, bennett.loop, **start, **options).run(0.2)
    x, w = bennett.motion(0.2, angle, speed)
    np.testing.assert_allclose(trajectory.q[-1], bennett.configuration(x), atol=accuracy)
    np.testing.assert_allclose(trajectory.v[-1], bennett.direction(x) * w, atol=10.0 * accuracy)
    assert max(np.abs(lam).max() for lam in trajectory.multipliers.values()) < 50.0


@pytest.mark.parametrize("gap", [1e-7, 1e-8, 1e-9, 1e-11])
@pytest.mark.parametrize("method", ["direct", "range_space", "null_space", "projected"])
def test_rows_that_nearly_depend_on_each_other_count_as_dependent(method: str, gap: float) -> None:
    """Consistent rows: every solver leaves out the same one, and says nothing else."""
    J, M = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, gap]]), np.diag([1.0, 2.0, 0.3])
    x, lam = solve_kkt(M, J, np.array([0.0, 0.0, 0.9]), J @ [1.0, 2.0, 3.0], method)
    assert x == pytest.approx([1.0, 2.0, 3.0], abs=10.0 * gap)
    assert M @ x - J.T @ lam == pytest.approx([0.0, 0.0, 0.9], abs=10.0 * gap)


@pytest.mark.parametrize("angle", [1e-2, 1e-3, 1e-4])
def test_near_a_singular_position_no_solver_stops_early(angle: float) -> None:
    """A nearly straight pair of rods, its end held at the far end: forces grow as 1 / angle, all solvers agree."""
    parts = ['<link name="base"/>', rod("one", (1, 0, 0)), rod("two", (1, 0, 0))]
    parts += [hinge("a", "base", "one", (0, 0, 0), (0, 0, 1)), hinge("b", "one", "two", (1, 0, 0), (0, 0, 1))]
    robot = Robot.from_urdf(urdf(*parts), gravity=FALLING)
    q = np.array([angle, -2.0 * angle])
    hold = [PointAnchor("hold", "two", (1, 0, 0))]
    push = GRAVITY / (2.0 * np.tan(angle))  # two halves of a roof of 1 kg each, pinned at both ends
    for solver in every_solver(hold):
        motion = constrained_acceleration(robot, q, np.zeros(2), np.zeros(2), hold, solver)
        force = motion.wrench("hold", "two")[:3]
        assert motion.a == pytest.approx([0.0, 0.0], abs=1e-14 * motion.condition)
        assert force == pytest.approx([-push, GRAVITY, 0.0], rel=1e-14 * motion.condition, abs=1e-9)


# -- IFToMM A02: bars that stay parallel, one pendulum, through the positions where all are in line


def double_four_bar() -> tuple[Robot, list[PointAnchor], list[float]]:
    """Return three posts and two beams of 1 kg and 1 m, the anchors of both loops, and a velocity."""
    parts, anchors = ['<link name="base"/>'], []
    for i in range(3):
        parts += [rod(f"post{i}", (0, 1, 0)), hinge(f"foot{i}", "base", f"post{i}", (float(i), 0.0, 0.0), (0, 0, 1))]
    for i in range(2):
        parts += [rod(f"beam{i}", (1, 0, 0)), hinge(f"top{i}", f"post{i}", f"beam{i}", (0.0, 1.0, 0.0), (0, 0, 1))]
        anchors += [PointAnchor(f"loop{i}", f"beam{i}", (1, 0, 0), f"post{i + 1}", (0, 1, 0))]
    robot = Robot.from_urdf(urdf(*parts), gravity=FALLING)
    return robot, anchors, [-1.0 if name.startswith("foot") else 1.0 for name in robot.joint_names]


def swing(duration: float, begin: float = 0.0) -> float:
    """Return the angle of the posts: ``(3 I + 2 m) q'' = g (3 / 2 + 2) m sin q``, I of a post about its foot."""
    inertia, drive = 3.0 * (1.0 / 12.0 + 1e-3 + 0.25) + 2.0, GRAVITY * (3.0 * 0.5 + 2.0)
    path = solve_ivp(
        lambda t, y: [y[1], drive / inertia * np.sin(y[0])],
        (0.0, duration), [begin, -1.0], method="DOP853", rtol=1e-13, atol=1e-13,
    )  # fmt: skip
    return float(path.y[0, -1])


def test_double_four_bar_passes_its_singular_positions() -> None:
    """With time stepping, to its order."""
    robot, anchors, v = double_four_bar()
    sim = Simulator(robot, anchors, dt=1e-3)
    sim.reset(v=v)
    energy = sim.mechanical_energy()
    sim.run(3.0)
    assert sim.state.q[robot.joint_names.index("foot0")] == pytest.approx(swing(3.0), abs=2e-5)
    assert sim.mechanical_energy() == pytest.approx(energy, abs=1e-4)


def test_event_driven_passes_singular_positions() -> None:
    """Twelve digits of the same motion, whether passages lie within long steps or across several short ones."""
    for dt in (1e-2, 2.5e-3):
        robot, anchors, v = double_four_bar()
        sim = Simulator(robot, anchors, dt=dt, stepper="event_driven")
        sim.reset(v=v)
        sim.run(1.6)
        exact = swing(1.6)
        assert exact < -1.5 * np.pi  # it has been in line twice
        assert sim.state.q == pytest.approx(-exact * np.array(v), abs=1e-10)
        assert abs(sim.integration_energy()) < 1e-11


@pytest.mark.parametrize("beyond", [-1e-2, -3e-4, 0.0, 1e-7, 1e-5, 1e-3])
def test_event_driven_begins_in_a_singular_position(beyond: float) -> None:
    """Or near one, 0.01 rad before it too, where the look ahead meets it: rows are as many as a moment later."""
    robot, anchors, v = double_four_bar()
    sim = Simulator(robot, anchors, dt=1e-2, stepper="event_driven")
    begin = -0.5 * np.pi - beyond
    sim.reset(q=-begin * np.array(v), v=v)
    sim.run(0.5)
    assert sim.state.q == pytest.approx(-swing(0.5, begin) * np.array(v), abs=1e-10)


def bead(
    phi: Callable[[Array], float], slope: Callable[[Array], Array], curvature: Callable[[Array], Array]
) -> tuple[Robot, CustomConstraint]:
    """Return a bead in a plane without gravity, and the wire ``phi = 0``, a function of ``sqrt(m_i) q_i``."""
    parts = ['<link name="base"/>', link("carriage", 0.25), link("bead", 0.75)]
    parts += [joint("x", "prismatic", "base", "carriage", (1, 0, 0), more=LIMIT)]
    parts += [joint("y", "prismatic", "carriage", "bead", (0, 1, 0), more=LIMIT)]
    robot = Robot.from_urdf(urdf(*parts), gravity=(0.0, 0.0, 0.0))
    root = np.sqrt([1.0, 0.75])
    return robot, CustomConstraint(
        "wire",
        1,
        lambda q, v, t: [phi(root * q)],
        lambda q, v, t: [root * slope(root * q)],
        lambda q, v, t: [root * v @ curvature(root * q) @ (root * v)],
    )


@pytest.mark.parametrize("dt", [2e-2, 4e-3])
def test_bead_on_a_lemniscate(dt: float) -> None:
    """``(x^2 + y^2)^2 = x^2 - y^2`` crosses itself: where the wire's only row vanishes, the bead goes straight on.

    At constant speed v: length 5.2441151..., curvature 3 r and gradient 2 r give the multiplier -3 v^2 / 2 everywhere.
    """
    robot, wire = bead(
        lambda x: (x @ x) ** 2 - x[0] ** 2 + x[1] ** 2,
        lambda x: 4.0 * (x @ x) * x + [-2.0, 2.0] * x,
        lambda x: 4.0 * (x @ x) * np.eye(2) + 8.0 * np.outer(x, x) + np.diag([-2.0, 2.0]),
    )
    length, speed = 4.0 * np.sqrt(np.pi) * gamma(1.25) / gamma(0.75), 2.0
    sim = Simulator(robot, [wire], dt=dt, stepper="event_driven")
    sim.reset(q=[1.0, 0.0], v=[0.0, speed / np.sqrt(0.75)])
    half = round(0.5 * length / speed / dt)
    steps = [sim.step() for _ in range(2 * half)]
    rest = 2 * half * dt - length / speed
    assert steps[half - 1].state.q == pytest.approx([-1.0, 0.0], abs=2.0 * dt * speed)
    assert sim.state.q[1] * np.sqrt(0.75) == pytest.approx(speed * rest, abs=30.0 * abs(speed * rest) ** 3 + 1e-10)
    for step in steps:  # a violation of the row by c, 1e-11 at most, is some 10 c v^2 / r^4 of its multiplier
        force = step.constraint_forces["wire"]
        near = max(1e-3, np.linalg.norm(step.state.q) - dt * speed)
        now = np.linalg.norm(np.sqrt([1.0, 0.75]) * step.state.v)  # what takes out drift beside the crossing changes it
        assert now == pytest.approx(speed, rel=1e-10)
        assert force.multipliers == pytest.approx([-1.5 * now**2], abs=1e-10 * speed**2 / near**4)
    assert abs(sim.integration_energy()) < 1e-11


def test_no_motion_leads_out_of_a_cusp() -> None:
    """``y^2 = x^3`` ends at the origin for whoever comes along it: the bead would need an infinite force there."""
    robot, wire = bead(
        lambda x: x[1] ** 2 - x[0] ** 3,
        lambda x: np.array([-3.0 * x[0] ** 2, 2.0 * x[1]]),
        lambda x: np.diag([-6.0 * x[0], 2.0]),
    )
    sim = Simulator(robot, [wire], dt=1e-2, stepper="event_driven")
    start = np.array([1.0, 1.0]) / np.sqrt([1.0, 0.75])
    sim.reset(q=start, v=[-2.0, -3.0] / np.sqrt([1.0, 0.75]))
    with pytest.raises(NonFiniteState, match="singular position"):
        sim.run(1.0)
    assert sim.largest_violation()[0] < 1e-9


def test_adaptive_steps_end_where_forces_have_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clear error after so many evaluations, not ever smaller steps into the singular position."""
    monkeypatch.setattr(schemes, "MOST_EVALUATIONS", 3000)
    robot, anchors, v = double_four_bar()
    sim = Simulator(robot, anchors, dt=0.01, stepper="smooth", integrator="adaptive")
    sim.reset(v=v)
    with pytest.raises(NonFiniteState, match="3000 evaluations"):
        sim.run(3.0)
    assert np.isfinite(sim.state.q).all()
