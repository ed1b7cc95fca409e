"""The shipped robots under their control laws, without ROS."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import GRAVITY, ROOT, linear_momentum, mechanical_energy, placement, point_of

from constrained_sim import PointContact, Wrench, load_config
from constrained_sim.controllers import CassieController, FourBarController, QuadrupedController, standing_efforts
from constrained_sim.exceptions import InvalidValue, UnknownName

LAWS = {"quadruped": QuadrupedController, "four_bar": FourBarController, "cassie": CassieController}
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
PAIRS = (("FL_FOOT", "HR_FOOT"), ("FR_FOOT", "HL_FOOT"))


@cache
def config(robot):
    """Return the shipped configuration of a robot."""
    return load_config(ROOT / "config" / f"{robot}.yaml")


def controlled(robot, mode):
    """Return a simulator of a shipped robot, and what to control it by."""
    return config(robot).simulator(), LAWS[robot](config(robot), mode).efforts


@pytest.mark.parametrize(("robot", "law"), LAWS.items())
def test_unknown_mode_is_refused(robot, law):
    """The refusal lists what there is."""
    with pytest.raises(UnknownName, match=law.MODES[0]):
        law(config(robot), "dance")


def test_laws_of_other_robots_are_refused():
    """A law says which robot it is for."""
    with pytest.raises(InvalidValue, match="four contacts"):
        QuadrupedController(config("four_bar"), "stand")
    with pytest.raises(InvalidValue, match="the crank"):
        FourBarController(config("quadruped"), "turn")
    with pytest.raises(UnknownName, match="knee-op"):
        CassieController(config("quadruped"), "stand")


# -- quadruped


def tilt(q):
    """Return the angle [rad] between the vertical and the base's."""
    return float(np.arccos(min(1.0, pin.Quaternion(q[3:7]).toRotationMatrix()[2, 2])))


def feet_of(q):
    """Return (4, 3) the positions of the feet of the quadruped [m]."""
    return np.array([point_of(config("quadruped").robot, q, foot) for foot in FEET])


def test_quadruped_stands():
    """For 2 s no foot slides or lifts, and at rest the ground carries the weight, within the friction cones."""
    sim, efforts = controlled("quadruped", "stand")
    run = sim.run(2.0, efforts)
    weight = config("quadruped").robot.mass * GRAVITY
    forces = np.array([run.contact_forces[foot] for foot in FEET])
    assert np.abs(feet_of(run.q[-1]) - feet_of(config("quadruped").q)).max() < 1e-8
    assert forces[:, :, 2].min() > 0.1 * weight
    assert (np.linalg.norm(forces[:, :, :2], axis=2) <= 0.7 * forces[:, :, 2] + 1e-9).all()
    assert forces[:, -1].sum(axis=0) == pytest.approx([0.0, 0.0, weight], abs=1e-6)
    assert np.abs(run.v[-1]).max() < 1e-6
    assert not run.impacts


@pytest.mark.parametrize("push", [(8.0, 0.0, 0.0), (0.0, 8.0, 0.0)])
@pytest.mark.parametrize("mode", QuadrupedController.MODES)
def test_quadruped_recovers_from_a_push(mode, push):
    """A third of the weight for 0.2 s moves the body; two seconds later it is upright where it was."""
    sim, efforts = controlled("quadruped", mode)
    sim.run(0.5, efforts)
    sim.apply(Wrench("base_link", push), 0.2)
    pushed = sim.run(0.5, efforts)
    assert np.abs(pushed.q[:, :2]).max() > 0.004
    calm = sim.run(2.0, efforts).q[-500:]
    assert np.abs(calm[:, :2]).max() < 0.02
    assert np.abs(calm[:, 2] - 0.2229).max() < 0.006
    assert max(map(tilt, calm)) < 0.02


def test_quadruped_trots_in_place():
    """For 3 s each diagonal pair leaves the ground and lands once a period, the pairs in turn; the base stays put."""
    sim, efforts = controlled("quadruped", "trot")
    run = sim.run(3.0, efforts)
    assert np.abs(run.q[:, :2]).max() < 0.02
    assert np.abs(run.q[:, 2] - 0.2229).max() < 0.006
    assert max(map(tilt, run.q)) < 0.025
    touching = {foot: run.contact_forces[foot][:, 2] > 0.0 for foot in FEET}
    heights = np.array([feet_of(q)[:, 2] for q in run.q[::5]])
    assert (heights.max(axis=0) > 0.02).all()
    assert heights.min() > -1e-8
    period = round(QuadrupedController.PERIOD / sim.dt)
    for cycle in range(1, 11):
        begin = cycle * period + period // 20  # between a landing and the next lift-off
        part = slice(begin, begin + period)
        for pair in PAIRS:
            for foot in pair:
                landings = np.diff(touching[foot][part].astype(int))
                assert (np.count_nonzero(landings == 1), np.count_nonzero(landings == -1)) == (1, 1)
        first, second = (~(touching[a] | touching[b])[part] for a, b in PAIRS)  # both feet of a pair in the air
        assert first.sum() > 0.3 * period
        assert second.sum() > 0.3 * period
        assert not (first & second).any()
    robot = config("quadruped").robot
    pushed = sim.dt * np.sum([run.contact_forces[foot] for foot in FEET], axis=(0, 1))
    for impact in run.impacts:
        q = run.q[np.searchsorted(run.t, impact.t - 1e-9)]  # at the end of its step
        pushed += linear_momentum(robot, q, impact.v_plus) - linear_momentum(robot, q, impact.v_minus)
    gained = linear_momentum(robot, run.q[-1], run.v[-1])
    np.testing.assert_allclose(pushed - gained, [0.0, 0.0, robot.mass * GRAVITY * run.t[-1]], atol=5e-3)


# -- four-bar


def test_crank_turns_at_a_constant_rate():
    """After half a second the rate stays within 1 % of a turn per second; the loop stays closed, the rocker rocks."""
    sim, efforts = controlled("four_bar", "turn")
    sim.run(0.5, efforts)
    run = sim.run(2.0, efforts)
    assert np.abs(run.v[:, 0] / (2.0 * np.pi) - 1.0).max() < 0.01
    assert run.v[-1000:, 0].mean() == pytest.approx(2.0 * np.pi, rel=1e-4)
    assert sim.largest_violation()[0] < 1e-9
    robot = config("four_bar").robot
    for q in run.q[::100]:
        ends = point_of(robot, q, "coupler_rod", (0, 0, 0.30)), point_of(robot, q, "rocker_rod", (0, 0, 0.25))
        np.testing.assert_allclose(*ends, atol=1e-9)
    rocker = run.q[:, -1]
    np.testing.assert_allclose((rocker.min(), rocker.max()), rocker_limits(), atol=1e-4)


def rocker_limits():
    """Return the angles of the rocker from the vertical where crank and coupler are in line, by the law of cosines."""
    crank, coupler, rocker, ground = 0.10, 0.30, 0.25, 0.28
    angles = [
        np.arccos((ground**2 + rocker**2 - reach**2) / (2.0 * ground * rocker))
        for reach in (coupler - crank, coupler + crank)
    ]
    return [angle - 0.5 * np.pi for angle in angles]


def test_loop_force_is_that_of_the_opened_chain():
    """The pin's force is what inverse dynamics of the two arms, cut there, asks for in their joints without a motor."""
    sim, efforts = controlled("four_bar", "turn")
    sim.run(1.0, efforts)
    robot, dt = config("four_bar").robot, sim.dt
    run = sim.run(1.0, efforts)
    largest = 0.0
    for k in range(10, 990, 20):
        a = (run.v[k + 1] - run.v[k - 1]) / (2.0 * dt)  # at the end of step k
        force = 0.5 * (in_world(run, k) + in_world(run, k + 1))  # means over the steps before and after it
        expected = cut_force(robot, run.q[k], run.v[k], a)
        largest = max(largest, np.linalg.norm(expected))
        np.testing.assert_allclose(force, expected, atol=2e-3)
    assert largest > 5.0


def in_world(run, k):
    """Return (x, z) the mean force [N] of the pin on the coupler over step k, along the rocker's axes half-way."""
    robot = config("four_bar").robot
    q = pin.interpolate(robot.model, run.q[k - 1], run.q[k], 0.5)
    force = placement(robot, q, "rocker_rod").rotation[:, [0, 2]] @ run.multipliers["pin"][k]
    return force[[0, 2]]


def cut_force(robot, q, v, a):
    """Return (x, z) the force [N] on the coupler's end, its opposite on the rocker's, that makes both joints passive.

    Recursive Newton-Euler without the loop leaves efforts in the joints of coupler and rocker: the force at the cut
    has to be what gives them, ``tau = J^T f`` in these two rows.
    """
    data = robot.model.createData()
    tau = pin.rnea(robot.model, data, q, v, a)
    apart = end_jacobian(robot, q, "coupler_rod", 0.30) - end_jacobian(robot, q, "rocker_rod", 0.25)
    passive = [robot.velocity_names.index(name) for name in ("coupler", "rocker")]
    return np.linalg.solve(apart[[0, 2]][:, passive].T, tau[passive])


def end_jacobian(robot, q, link, length):
    """Return (3, 3) the Jacobian of the end of a rod, by Pinocchio alone."""
    data, frame = robot.model.createData(), robot.model.getFrameId(link)
    J = pin.computeFrameJacobian(robot.model, data, q, frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    arm = placement(robot, q, link).rotation @ [0.0, 0.0, length]
    return J[:3] - pin.skew(arm) @ J[3:]


def test_work_on_the_four_bar_becomes_energy():
    """What motor and joint damping do is the change of kinetic and potential energy: the pin does no work."""
    sim, efforts = controlled("four_bar", "turn")
    sim.run(0.2, efforts)
    before = mechanical_energy(sim.robot, sim.state.q, sim.state.v)
    run = sim.run(1.0, efforts)
    after = mechanical_energy(sim.robot, sim.state.q, sim.state.v)
    damping = -0.002 * np.sum(run.v[:, 0] ** 2) * sim.dt
    work = np.sum(run.tau[:, 0] * run.v[:, 0]) * sim.dt
    assert work + damping == pytest.approx(after - before, abs=2e-3)
    assert np.abs(run.energy["constraints"]).max() < 1e-9
    assert work > 0.05


def test_integral_does_not_wind_up():
    """While the effort is at its limit the integral waits; time that goes back starts anew."""
    law = FourBarController(config("four_bar"), "turn")
    q, v = config("four_bar").q, np.zeros(3)
    saturated = [law.efforts(0.001 * k, q, v)[0] for k in range(1000)]
    assert max(saturated) == min(saturated) > 5.0
    at_rate = np.array([law.RATE, 0.0, 0.0])
    assert law.efforts(1.0, q, at_rate)[0] == 0.0
    near = at_rate - [0.1, 0.0, 0.0]
    first, second = (law.efforts(t, q, near)[0] for t in (1.001, 1.002))
    assert second - first == pytest.approx(law.GAIN * 0.1 * 0.001 / law.INTEGRAL_TIME)
    assert law.efforts(1.002, q, near)[0] == second
    assert law.efforts(0.0, q, near)[0] == pytest.approx(law.GAIN * 0.1)


# -- Cassie


def test_cassie_starts_in_equilibrium():
    """The springs carry the weight, the feed-forward efforts hold the rest: released, nothing accelerates much."""
    start = config("cassie")
    tau = standing_efforts(start)
    assert np.abs(tau).max() < 30.0
    sim = start.simulator()
    assert np.abs(sim.state.q - start.q).max() < 1e-6
    run = sim.run(0.05, lambda t, q, v: tau)
    assert np.abs(run.q - start.q).max() < 1e-3


def test_contacts_of_cassie_are_the_ends_of_its_feet():
    """Toe and heel lie on the axis of the foot's cylinder in the SDF, its length apart, and touch the ground."""
    start = config("cassie")
    feet = [contact for contact in start.constraints if isinstance(contact, PointContact)]
    turn = pin.rpy.rpyToMatrix(0.0, 1.57, -0.695)
    for foot in feet:
        end = 0.09 if foot.name.endswith("toe") else -0.09
        centre = np.array([0.01, 0.045, 0.0]) + turn @ [0.0, 0.0, end]
        np.testing.assert_allclose(foot.point, centre, atol=1e-4)
        assert point_of(start.robot, start.q, foot.link, foot.point)[2] == pytest.approx(foot.radius, abs=1e-5)


@pytest.mark.parametrize("push", [(0.0, 0.0, 0.0), (20.0, 0.0, 0.0), (0.0, 30.0, 0.0)])
def test_cassie_stands(push):
    """For 4 s all four contacts carry, together the weight; pushed for 0.2 s it sways back, with closed loops."""
    sim, efforts = controlled("cassie", "stand")
    if any(push):
        sim.apply(Wrench("pelvis", push), 0.2)
    run = sim.run(4.0, efforts)
    forces = np.array(list(run.contact_forces.values()))
    assert forces[:, 100:, 2].min() > 0.0
    assert np.abs(run.q[:, 2] - config("cassie").q[2]).max() < 0.01
    assert np.linalg.norm(run.q[-500:, :2], axis=1).max() < 0.01
    assert forces[:, -500:].sum(axis=0).mean(axis=0)[2] == pytest.approx(sim.robot.mass * GRAVITY, rel=0.01)
    assert sim.largest_violation()[0] < 1e-8
