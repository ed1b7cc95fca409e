"""Soft contacts: closed forms of their laws, convergence of time stepping, friction through springs, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import GRAVITY, ball, block, corners, link, simulator, tilted, urdf

from constrained_sim import (
    Compliant,
    HuntCrossley,
    Plane,
    PointContact,
    Robot,
    Simulator,
    constrained_acceleration,
    load_config,
    resolve_impact,
)
from constrained_sim.contact import make_law
from constrained_sim.exceptions import CoarseStep, InvalidValue, NotSupported, UnknownName

MASS, RADIUS = 0.5, 0.1


def weightless_ball() -> Robot:
    """Return the ball without gravity."""
    return Robot.from_urdf(urdf(link("ball", MASS, inertia=[0.4 * MASS * RADIUS**2] * 3)), True, gravity=(0, 0, 0))


def touching(robot: Robot, velocity: object, law: object, dt: float, stepper: str = "time_stepping", **options: object):  # type: ignore[no-untyped-def]
    """Return a simulation of a ball that touches the ground now."""
    q = robot.neutral()
    q[2] = RADIUS
    contact = PointContact("c", "ball", (0, 0, 0), radius=RADIUS, law=law, **options)  # type: ignore[arg-type]
    return simulator(robot, q, velocity, [contact], dt=dt, stepper=stepper)


def test_undamped_spring_gives_back_all_energy_after_half_a_period() -> None:
    """A ball on a spring: contact for pi sqrt(m / k), rebound with the same speed, to second order in dt."""
    k, errors = 2e3, []
    for dt in (1e-3, 5e-4, 2.5e-4):
        sim = touching(weightless_ball(), [0, 0, -1.0, 0, 0, 0], Compliant(stiffness=k), dt)
        trajectory = sim.run(0.1)
        push = trajectory.contact_forces["c"][:, 2]
        assert push.min() >= 0.0
        assert push.sum() * dt == pytest.approx(MASS * (1.0 + sim.state.v[2]), rel=1e-12)
        assert (push > 0.0).sum() * dt == pytest.approx(np.pi * np.sqrt(MASS / k), abs=1.5 * dt)
        assert abs(sim.energy.residual) < 1e-13
        errors.append(abs(sim.state.v[2] - 1.0))
    assert errors[-1] < 2e-4
    assert errors[-1] < errors[0] / 6.0


@pytest.mark.parametrize(
    "law",
    [
        Compliant(stiffness=3e3, damping=8.0),
        HuntCrossley(2e5, 0.3),
        Compliant(law=lambda penetration, rate: 3e3 * penetration * (1.0 + 0.2 * rate)),
    ],
    ids=["linear", "hunt_crossley", "own"],
)
def test_time_stepping_converges_to_the_exact_events(law: Compliant | HuntCrossley) -> None:
    """Ever shorter steps lead to the rebound that the event-driven stepper finds."""
    exact = touching(weightless_ball(), [0, 0, -0.8, 0, 0, 0], law, 0.01, "event_driven")
    exact.run(0.1)
    assert 0.0 < exact.state.v[2] < 0.8
    assert exact.energy.contacts == pytest.approx(0.5 * MASS * (exact.state.v[2] ** 2 - 0.64), abs=1e-9)
    errors = []
    for dt in (4e-4, 1e-4):
        sim = touching(weightless_ball(), [0, 0, -0.8, 0, 0, 0], law, dt)
        sim.run(0.1)
        errors.append(abs(sim.state.v[2] - exact.state.v[2]))
    assert errors[1] < 2e-4
    assert errors[1] < errors[0] / 3.0


def test_hunt_crossley_loses_two_thirds_of_dissipation_times_speed() -> None:
    """For slow impacts the coefficient of restitution is 1 - 2/3 c v, whatever stiffness and exponent."""
    for stiffness, exponent, speed in ((1e5, 1.5, 0.05), (4e3, 1.0, 0.1)):
        law = HuntCrossley(stiffness, 0.3, exponent)
        sim = touching(weightless_ball(), [0, 0, -speed, 0, 0, 0], law, 0.02, "event_driven")
        sim.run(0.3)
        assert 1.0 - sim.state.v[2] / speed == pytest.approx(2.0 / 3.0 * 0.3 * speed, rel=0.02)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_rest_on_springs(stepper: str) -> None:
    """A block on four springs sinks by m g / (4 k) and stays there; forces are those of the spring."""
    law = Compliant(stiffness=4e3, damping=60.0)
    q = block().neutral()
    q[2] = 0.05
    sim = simulator(block(), q, None, corners(law=law, friction=0.5), dt=2e-3, stepper=stepper)
    sim.run(1.0)
    result = sim.step()
    depth = 2.0 * GRAVITY / (4.0 * 4e3)
    assert sim.state.q[2] == pytest.approx(0.05 - depth, abs=1e-9)
    for force in result.contact_forces.values():
        assert force.force == pytest.approx([0.0, 0.0, 0.5 * GRAVITY], abs=1e-6)
        assert force.gap == pytest.approx(-depth, abs=1e-9)
        assert force.status == 1


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_springs_along_the_surface_hold_a_block_on_a_slope(stepper: str) -> None:
    """Below the cone it hangs in its springs, displaced by m g sin / (4 k_t); no creep."""
    angle = np.radians(15.0)
    normal = np.array([-np.sin(angle), 0.0, np.cos(angle)])
    q = np.concatenate([0.05 * normal, tilted(-angle)])
    law = Compliant(stiffness=8e3, damping=100.0, tangential_stiffness=2e3)
    sim = simulator(block(), q, None, corners(law=law, friction=0.5, surface=Plane(normal)), dt=2e-3, stepper=stepper)
    sim.run(1.0)
    before = sim.state.q.copy()
    sim.run(0.3)
    assert np.abs(sim.state.q - before).max() < 1e-7
    along = np.array([-np.cos(angle), 0.0, -np.sin(angle)])
    assert (sim.state.q[:3] - q[:3]) @ along == pytest.approx(
        2.0 * GRAVITY * np.sin(angle) / (4.0 * 2e3), rel=0.05
    )  # and a little more by the moment of its weight
    total = sum(force.force for force in sim.step().contact_forces.values())
    assert total == pytest.approx([0.0, 0.0, 2.0 * GRAVITY], abs=1e-5)


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
def test_sliding_on_soft_contacts_obeys_coulomb(stepper: str) -> None:
    """A sliding ball on a spring-damper: friction is c times the normal force, against the slip; then it rolls."""
    law = Compliant(stiffness=2e4, damping=100.0, tangential_stiffness=0.0, tangential_damping=200.0)
    sim = touching(ball(RADIUS, MASS), [2.0, 0, 0, 0, 0, 0], law, 1e-3, stepper, friction=0.3)
    trajectory = sim.run(0.1)
    force = trajectory.contact_forces["c"]
    assert force[50:, 0] == pytest.approx(-0.3 * force[50:, 2], rel=1e-6)
    forward = pin.Quaternion(sim.state.q[3:]).matrix() @ sim.state.v[:3]
    assert forward[0] == pytest.approx(2.0 - 0.3 * GRAVITY * 0.1, abs=1e-3)
    sim.run(0.3)
    rolling = sim.step().contact_forces["c"]
    assert np.hypot(*rolling.slip[:2]) < 1e-4  # of order dt^2 in time stepping
    assert np.hypot(*rolling.force[:2]) < 1e-5


def test_spring_along_the_surface_begins_anew_at_each_touchdown() -> None:
    """A ball bounces along, its springs stretched at every lift-off: each touchdown has the impulse of the first.

    In a frame that moves with it the ball meets the ground as it did before: without gravity, thrown back by a ceiling
    without friction.
    """
    law = Compliant(stiffness=3e3, tangential_stiffness=2e3)
    ceiling = PointContact("top", "ball", (0, 0, 0), Plane((0, 0, -1), -0.35), radius=RADIUS, restitution=1.0)

    def thrown(dt: float, stepper: str) -> Simulator:
        sim = touching(weightless_ball(), [0.3, 0, -1.0, 0, 0, 0], law, dt, stepper=stepper, friction=10.0)
        sim.add(ceiling)
        return sim

    fine = thrown(1e-4, "time_stepping")
    fine.run(1.0)
    assert not np.allclose(fine.state.v[[0, 4]], [0.3, 0.0], atol=0.02)
    for dt in (0.05, 0.01):
        sim = thrown(dt, "event_driven")
        assert sum(bool(sim.step().impacts) for _ in range(round(1.0 / dt))) > 2
        assert sim.state.v == pytest.approx(fine.state.v, abs=2e-3)


@pytest.mark.parametrize("height", [1e-3, 1e-5])
def test_graze_of_a_soft_contact_is_not_missed(height: float) -> None:
    """Thrown up so that it would pass a soft ceiling by `height`, for much less than the step: as in short steps."""
    law = Compliant(stiffness=2e3)
    ceiling = PointContact("c", "ball", (0, 0, 0), Plane((0, 0, -1), -0.4), radius=RADIUS, law=law)
    q, speed = ball().configuration({}, [0, 0, 0.2, 0, 0, 0, 1]), np.sqrt(2.0 * GRAVITY * (0.1 + height))
    long, short = (
        simulator(ball(), q, [0, 0, speed, 0, 0, 0], [ceiling], dt=dt, stepper="event_driven") for dt in (0.4, 1e-3)
    )
    long.run(0.4)
    short.run(0.4)
    assert long.state.v == pytest.approx(short.state.v, abs=1e-9)
    assert abs(long.state.v[2] - (speed - GRAVITY * 0.4)) > 1e-6


@pytest.mark.parametrize("mass", [1.0, 1e-5, 1e-8])
def test_light_bodies_on_soft_ground(mass: float) -> None:
    """A vibration at 100 rad/s, whatever the mass: ``cos(w t)`` as long as it presses, to second order in dt."""
    body = Robot.from_urdf(urdf(link("ball", mass, inertia=[0.4 * mass * RADIUS**2] * 3)), True)
    k, depth = 1e4 * mass, GRAVITY / 1e4
    q = body.neutral()
    q[2] = RADIUS - 1.5 * depth
    contact = PointContact("c", "ball", (0, 0, 0), radius=RADIUS, law=Compliant(stiffness=k))
    sim = simulator(body, q, None, [contact], dt=1e-4)
    sim.run(0.1)
    assert (RADIUS - depth - sim.state.q[2]) / (0.5 * depth) == pytest.approx(np.cos(10.0), abs=2e-4)


def test_forces_never_pull() -> None:
    """A strong damper would hold back what leaves; the contact lets go instead."""
    law = Compliant(stiffness=500.0, damping=80.0)
    for stepper in ("time_stepping", "event_driven"):
        sim = touching(weightless_ball(), [0, 0, -1.0, 0, 0, 0], law, 1e-3, stepper)
        forces = sim.run(0.3).contact_forces["c"]
        assert forces[:, 2].min() >= 0.0
        assert forces[-1, 2] == 0.0


def test_stateless_calls_use_the_force_of_the_law() -> None:
    """An acceleration feels k delta + d ddelta; an impact feels nothing."""
    law = Compliant(stiffness=1e3, damping=10.0)
    contact = PointContact("c", "ball", (0, 0, 0), radius=RADIUS, law=law)
    q, v = ball().neutral(), np.array([0.0, 0.0, -0.4, 0.0, 0.0, 0.0])
    q[2] = RADIUS - 2e-3
    motion = constrained_acceleration(ball(), q, v, np.zeros(0), [contact])
    assert motion.multipliers("c") == pytest.approx([0.0, 0.0, 2.0 + 4.0], rel=1e-13)
    assert motion.a[2] == pytest.approx(6.0 / MASS - GRAVITY, rel=1e-13)
    impact = resolve_impact(ball(), q, v, [contact])
    assert impact.v_plus == pytest.approx(v, abs=1e-15)
    assert not impact.impulse.any()


def test_stretch_survives_other_changes() -> None:
    """Adding or removing something else leaves the springs along the surface as they are."""
    angle = np.radians(15.0)
    normal = np.array([-np.sin(angle), 0.0, np.cos(angle)])
    q = np.concatenate([0.05 * normal, tilted(-angle)])
    law = Compliant(stiffness=8e3, damping=100.0)
    sim = simulator(block(), q, None, corners(law=law, friction=0.5, surface=Plane(normal)), dt=2e-3)
    sim.run(1.5)
    before = sim.state.q.copy()
    sim.add(PointContact("other", "block", (0, 0, 1.0)))
    sim.run(0.05)
    sim.remove("other")
    sim.set_stepper("event_driven")
    sim.run(0.05)
    assert np.abs(sim.state.q - before).max() < 1e-7


def test_step_too_long_for_the_stiffness_warns_once() -> None:
    """The warning names contact and step; the result stays finite all the same."""
    sim = touching(ball(RADIUS, MASS), None, Compliant(stiffness=1e7, damping=10.0), 1e-3)
    with pytest.warns(CoarseStep, match=r"'c'.*0\.001 s") as caught:
        sim.run(0.2)
    assert len(caught) == 1
    assert np.abs(sim.state.v).max() < 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        touching(ball(RADIUS, MASS), None, Compliant(stiffness=1e4, damping=10.0), 1e-3).run(0.05)


@pytest.mark.parametrize("height", [0.004, 0.002, 5e-4])
def test_the_warning_is_of_the_whole_step_whoever_solves(height: float) -> None:
    """Kernels or the interpreted step, step by step or in a run, wherever in a step the contact touches down."""
    said = set()
    for solver in ("range_space", "kokkevis"):
        for at_once in (True, False):
            q = [0, 0, RADIUS + height, 0, 0, 0, 1]
            contact = PointContact("c", "ball", (0, 0, 0), radius=RADIUS, law=Compliant(stiffness=2e4, damping=10.0))
            sim = simulator(ball(RADIUS, MASS), q, [0, 0, -0.8, 0, 0, 0], [contact], dt=5e-3, solver=solver)
            with pytest.warns(CoarseStep, match=r"'c'.*0\.005 s") as caught:
                sim.run(0.05, None if at_once else lambda t, q, v: [])
            (warning,) = caught
            said.add(str(warning.message))
    assert len(said) == 1


def test_values_that_do_not_fit_are_refused() -> None:
    """Every refusal says what was given and what is allowed."""
    for wrong in (
        {"stiffness": -1.0},
        {},
        {"stiffness": 1.0, "law": abs},
        {"stiffness": float("nan")},
        {"law": 3.0},
        {"stiffness": 1e3, "damping": float("inf")},
    ):
        with pytest.raises(InvalidValue):
            Compliant(**wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="exponent"):
        HuntCrossley(1e3, exponent=0.5)
    with pytest.raises(InvalidValue, match="tangential"):
        PointContact("c", "ball", (0, 0, 0), law=HuntCrossley(1e3), friction=0.3)
    with pytest.raises(InvalidValue, match="restitution"):
        PointContact("c", "ball", (0, 0, 0), law=Compliant(stiffness=1e3), restitution=0.3)
    with pytest.raises(UnknownName, match="stiffness"):
        make_law("rigid", {"stiffness": 1.0})
    with pytest.raises(InvalidValue, match="stiffness"):
        make_law("hunt_crossley", {})
    with pytest.raises(NotSupported, match="gauss"):
        simulator(
            ball(), None, None, [PointContact("c", "ball", (0, 0, 9), law=Compliant(stiffness=1e3))], solver="gauss"
        )
    sim = touching(weightless_ball(), [0, 0, -1.0, 0, 0, 0], Compliant(law=lambda penetration, rate: np.nan), 1e-3)
    with pytest.raises(InvalidValue, match="law"):
        sim.run(0.01)


def test_laws_from_yaml(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The keys of a soft law are its attributes."""
    path = tmp_path / "ball.yaml"
    (tmp_path / "ball.urdf").write_text(urdf(link("b", 1.0)))
    path.write_text(
        """
robot: {urdf: ball.urdf, floating_base: true}
contacts:
  soft: {link: b, law: compliant, stiffness: 2000, damping: 30, tangential_stiffness: 500, friction: 0.4}
  hard: {link: b, law: hunt_crossley, stiffness: 1.0e+5, dissipation: 0.2}
"""
    )
    laws = [constraint.law for constraint in load_config(path).constraints]  # type: ignore[union-attr]
    assert laws == [Compliant(2000.0, 30.0, tangential_stiffness=500.0), HuntCrossley(1e5, 0.2)]


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
@pytest.mark.parametrize(
    ("friction", "speed", "status"), [(0.0, 1.0, "SLIDING"), (0.3, 1.0, "SLIDING"), (0.9, 0.0, "STICKING")]
)
def test_soft_contacts_say_whether_they_slide(stepper, friction, speed, status) -> None:
    """They do where friction is at its limit."""
    law, depth = Compliant(stiffness=1e3, damping=10.0), MASS * GRAVITY / 1e3
    contact = PointContact("c", "ball", (0, 0, 0), friction=friction, law=law)
    sim = simulator(ball(), [0, 0, -depth, 0, 0, 0, 1], [speed, 0, 0, 0, 0, 0], [contact], stepper=stepper)
    force = sim.step().contact_forces["c"]
    assert force.status.name == status
    limit = friction * MASS * GRAVITY
    assert np.hypot(*force.force[:2]) == pytest.approx(limit if speed else 0.0, rel=1e-9)


@pytest.mark.parametrize("stiffness", [1e3, 1e5, 1e7])
def test_the_slopes_of_a_law_of_the_users_are_those_of_its_derivative(stiffness) -> None:
    """By differences that rounding leaves alone, at any speed."""
    law = Compliant(law=lambda penetration, rate: stiffness * penetration + 7.0 * rate)
    for rate in (0.0, 1e-9, 1e-3, 10.0):
        assert law.slopes(0.01, rate) == pytest.approx((stiffness, 7.0), rel=1e-4)
