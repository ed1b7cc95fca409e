"""Closed loops against references that know nothing of multipliers: linkages, computed torque, equivalent joints."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import (
    GRAVITY,
    LIMIT,
    chain,
    derivative,
    every_solver,
    inertia_of,
    joint,
    kinetic_energy,
    link,
    mechanical_energy,
    placement,
    point_of,
    relative,
    simulator,
    urdf,
)
from scipy.integrate import solve_ivp

from constrained_sim import (
    PointAnchor,
    Robot,
    Trajectory,
    Wrench,
    constrained_acceleration,
    inverse_dynamics,
    resolve_impact,
)

pytestmark = pytest.mark.xdist_group("closed loops")  # they share ten seconds of each linkage

PLANE = [(1, 0, 0), (0, 0, 1)]
"""Held directions of a pin in the plane of motion; y is out of plane."""


# -- planar linkages in minimal coordinates. Vectors x + i z; an angle turns about y, and a rod hangs along -z at 0.


def along(angle):
    """Return the unit vector of a rod at an absolute angle [rad]; its derivative is -i times itself."""
    return -1j * np.exp(-1j * angle)


def angle_of(vector):
    """Return the absolute angle of a rod along `vector`."""
    return -np.angle(1j * vector)


def wrapped(angle):
    """Return the same angle within -pi .. pi."""
    return (angle + np.pi) % (2.0 * np.pi) - np.pi


def elbow(first, second, reach, branch):
    """Return the angles of two rods in series that span the vector `reach`, by the law of cosines."""
    distance = abs(reach)
    opening = np.arccos((first**2 + distance**2 - second**2) / (2.0 * first * distance))
    angle = angle_of(reach) + branch * opening
    return angle, angle_of(reach - first * along(angle))


class Joint(NamedTuple):
    """A joint of a linkage: forces along `directions` on body `on`, the opposite on `by` (None: the ground)."""

    at: tuple[float, ...]
    on: int
    by: int | None
    directions: tuple[complex, ...] = (1.0, 1j)


class Linkage:
    """A planar mechanism with one degree of freedom, described by the angle theta of its first rod alone.

    Rods in series with directions d_j, absolute angles alpha_j(theta) in closed form, k_j = d alpha_j / d theta. All
    points are sums of ``length d_j``. The pin whose force is asked for is the joint `pinned`.

    Attributes:
        lengths: (rods,) [m].
        masses: (bodies,) [kg].
        inertias: (bodies,) about the centre of mass [kg m^2].
        centres: (bodies, rods): centre of mass = ``centres @ d``.
        turns: (bodies, rods): 1 where a body turns with a rod.
        held: (rods - 1,) directions along which the end of the last rod does not move.
        joints: all of them.
        pinned: index of the pin among them.
        guided: body that a guide keeps from turning, None without.
    """

    lengths: np.ndarray
    masses: np.ndarray
    inertias: np.ndarray
    centres: np.ndarray
    turns: np.ndarray
    held: tuple[complex, ...]
    joints: tuple[Joint, ...]
    pinned: int
    guided: int | None = None

    def angles(self, theta):
        """Return (rods,) absolute angles."""
        raise NotImplementedError

    def state(self, theta, rate):
        """Return the robot's configuration and velocity."""
        raise NotImplementedError

    def motion(self, theta):
        """Return the directions d, k = d alpha / d theta and k' = dk / d theta, from the closure differentiated."""
        d = along(self.angles(theta))
        rows = np.real(np.conj(self.held)[:, None] * (-1j * self.lengths * d))
        k, slope = np.ones(len(d)), np.zeros(len(d))
        k[1:] = np.linalg.solve(rows[:, 1:], -rows[:, 0])
        slope[1:] = np.linalg.solve(rows[:, 1:], np.real(np.conj(self.held) * np.sum(self.lengths * k**2 * d)))
        return d, k, slope

    def bodies(self, theta):
        """Return centres of mass, their first and second derivatives by theta, turning rates and their derivative."""
        d, k, slope = self.motion(theta)
        centres = self.centres
        return (
            centres @ d,
            centres @ (-1j * k * d),
            centres @ ((-1j * slope - k**2) * d),
            self.turns @ k,
            self.turns @ slope,
        )

    def energy(self, theta, rate):
        """Return kinetic plus potential energy [J]."""
        c, c1, _, k, _ = self.bodies(theta)
        inertia = np.sum(self.masses * np.abs(c1) ** 2 + self.inertias * k**2)
        return 0.5 * inertia * rate**2 + GRAVITY * np.sum(self.masses * c.imag)

    def acceleration(self, theta, rate):
        """Return theta'' from I theta'' + I' theta'^2 / 2 + dV / dtheta = 0, I of all bodies per unit theta'^2."""
        _, c1, c2, k, slope = self.bodies(theta)
        inertia = np.sum(self.masses * np.abs(c1) ** 2 + self.inertias * k**2)
        half_change = np.sum(self.masses * np.real(c2 * c1.conj()) + self.inertias * k * slope)
        return -(half_change * rate**2 + GRAVITY * np.sum(self.masses * c1.imag)) / inertia

    def swing(self, theta, rate, duration):
        """Return the motion ``t -> (theta, theta')``, to 1e-12 per step; short steps keep what is between as good."""
        found = solve_ivp(
            lambda _, y: (y[1], self.acceleration(*y)),
            (0.0, duration),
            (theta, rate),
            method="DOP853",
            rtol=1e-12,
            atol=1e-13,
            dense_output=True,
            max_step=1e-2,
        )
        return found.sol

    def reactions(self, theta, rate):
        """Return the forces of all joints, one array each, and what else it takes, by Newton-Euler for each body.

        What else: a torque on the first rod, and the moment of the guide where there is one; both must vanish.
        """
        second = self.acceleration(theta, rate)
        c, c1, c2, k, slope = self.bodies(theta)
        d, count = self.motion(theta)[0], len(c)
        force = self.masses * (c1 * second + c2 * rate**2 + 1j * GRAVITY)
        moment = self.inertias * (k * second + slope * rate**2)
        columns = []
        for at, on, by, directions in self.joints:
            arms = np.dot(at, d) - c
            for direction in directions:
                column = np.zeros((3, count))
                for body, sign in ((on, 1.0), (by, -1.0)):
                    if body is not None:
                        about = np.imag(arms[body] * np.conj(direction))
                        column[:, body] = sign * np.array([np.real(direction), np.imag(direction), about])
                columns.append(column.ravel())
        turning = [0] if self.guided is None else [0, self.guided]
        columns += [np.eye(3 * count)[2 * count + body] for body in turning]
        unknown = np.linalg.solve(np.array(columns).T, np.concatenate([force.real, force.imag, moment]))
        ends = np.cumsum([len(part.directions) for part in self.joints])
        *forces, rest = np.split(unknown, ends)
        return forces, rest


class FourBar(Linkage):
    """Three unequal rods between two fixed points; the tip is pinned to the world."""

    masses = np.array([1.0, 1.3, 0.8])
    lengths = np.array([0.5, 0.8, 0.6])
    inertias = masses * lengths**2 / 12.0
    centres = lengths * np.array([[0.5, 0, 0], [1, 0.5, 0], [1, 1, 0.5]])
    turns = np.eye(3)
    held = (1.0, 1j)
    ground = 0.7 + 0.1j
    joints = (
        Joint((0, 0, 0), 0, None),
        Joint((0.5, 0, 0), 1, 0),
        Joint((0.5, 0.8, 0), 2, 1),
        Joint((0.5, 0.8, 0.6), 2, None),
    )
    pinned = 3
    start = (0.9, 0.5)

    def angles(self, theta):
        first, second, third = self.lengths
        return np.array([theta, *elbow(second, third, self.ground - first * along(theta), -1)])

    def state(self, theta, rate):
        return wrapped(np.diff(self.angles(theta), prepend=0.0)), rate * np.diff(self.motion(theta)[1], prepend=0.0)

    def robot(self):
        return chain(tuple(self.lengths.tolist()), tuple(self.masses.tolist()))

    def anchor(self):
        return PointAnchor("pin", "tip", (0, 0, 0), point_b=(self.ground.real, 0, self.ground.imag), normals=PLANE)


class SliderCrank(Linkage):
    """A crank, a longer connecting rod, and a slider on an inclined guide that misses the axis of the crank."""

    crank, rod, slope, offset = 0.3, 0.7, 0.3, 0.1
    guide = np.exp(1j * slope)
    lengths = np.array([crank, rod])
    masses = np.array([1.0, 1.4, 0.9])
    inertias = np.array([*(masses[:2] * lengths**2 / 12.0), 1e-3])
    centres = lengths * np.array([[0.5, 0], [1, 0.5], [1, 1]])
    turns = np.array([[1, 0], [0, 1], [0, 0]])
    held = (1j * guide,)
    joints = (
        Joint((0, 0), 0, None),
        Joint((crank, 0), 1, 0),
        Joint((crank, rod), 1, 2),
        Joint((crank, rod), 2, None, (1j * guide,)),
    )
    pinned, guided = 2, 2
    start = (2.0, -0.5)

    def angles(self, theta):
        across = (self.offset - np.imag(self.crank * along(theta) * np.conj(self.guide))) / self.rod
        return np.array([theta, angle_of(self.guide * (np.sqrt(1.0 - across**2) + 1j * across))])

    def state(self, theta, rate):
        (first, second), (_, k, _) = self.angles(theta), self.motion(theta)
        wrist, velocity = (part[2] * np.conj(self.guide) for part in self.bodies(theta)[:2])
        return np.array([first, second - first, wrist.real]), rate * np.array([1.0, k[1] - 1.0, velocity.real])

    def robot(self):
        (first, second, third), (one, two, three) = self.masses.tolist(), self.inertias.tolist()
        begin = 1j * self.offset * self.guide
        return Robot.from_urdf(
            urdf(
                '<link name="base"/>',
                link("crank", first, (0, 0, -0.5 * self.crank), (one, one, 1e-3)),
                link("rod", second, (0, 0, -0.5 * self.rod), (two, two, 1e-3)),
                link("slider", third, (0, 0, 0), (three, three, three)),
                joint("crank_shaft", "revolute", "base", "crank", more=LIMIT),
                joint("crank_pin", "revolute", "crank", "rod", origin=(0, 0, -self.crank), more=LIMIT),
                joint(
                    "slide",
                    "prismatic",
                    "base",
                    "slider",
                    (self.guide.real, 0, self.guide.imag),
                    (begin.real, 0, begin.imag),
                    LIMIT,
                ),
            )
        )

    def anchor(self):
        return PointAnchor("pin", "rod", (0, 0, -self.rod), "slider", (0, 0, 0), PLANE)


LINKAGES = {"four_bar": FourBar(), "slider_crank": SliderCrank()}
DURATION = 10.0
SAMPLE = 1e-2
STEPS = {"smooth": 2e-3, "time_stepping": 1e-3}

BOUNDS = {
    "smooth": {"q": 1e-8, "v": 5e-8, "energy": 1.5e-8, "force": 2e-7, "slip": 1e-12, "work": 3e-10},
    "time_stepping": {"q": 1.5e-4, "v": 9e-4, "energy": 7e-5, "force": 2.5e-3, "slip": 1e-14, "work": 1e-14},
}
"""What the integrators of fourth and second order reach with these steps; half the step, a quarter of the error."""


class Run(NamedTuple):
    """Ten seconds of a linkage: what was sampled, and the worst of every step."""

    trajectory: Trajectory
    energies: np.ndarray
    violation: float
    row_velocity: float
    work: float


@cache
def recorded(name, stepper):
    """Return the swing of a linkage under gravity from its start."""
    linkage, dt = LINKAGES[name], STEPS[stepper]
    q, v = linkage.state(*linkage.start)
    sim = simulator(linkage.robot(), q, v, [linkage.anchor()], stepper=stepper, dt=dt)
    results, energies, violations = [], [], []
    for _ in range(round(DURATION / dt)):
        results.append(sim.step())
        energies.append(sim.mechanical_energy())
        violations.append(sim.largest_violation())
    trajectory = Trajectory.from_results(results, 3, 3, 3)
    position, velocity = np.max(violations, axis=0)
    return Run(trajectory, np.array(energies), position, velocity, sim.energy.constraints)


@cache
def exact(name):
    """Return the reference motion ``t -> (theta, theta')`` of a linkage."""
    return LINKAGES[name].swing(*LINKAGES[name].start, DURATION)


every_linkage = pytest.mark.parametrize("name", LINKAGES)
every_stepper = pytest.mark.parametrize("stepper", STEPS)


@every_linkage
def test_references_agree_with_themselves(name):
    """The reduced equation conserves energy, closes the loop, and needs no driving torque by Newton-Euler."""
    linkage, motion = LINKAGES[name], exact(name)
    begin = linkage.energy(*linkage.start)
    for t in np.linspace(0.0, DURATION, 41):
        theta, rate = motion(t)
        forces, rest = linkage.reactions(theta, rate)
        assert abs(linkage.energy(theta, rate) - begin) < 1e-11
        assert np.abs(rest).max() < 1e-13 * np.abs(np.concatenate(forces)).max()
        q, v = linkage.state(theta, rate)
        slope = derivative(lambda x, theta=theta: linkage.state(theta + x, 0.0)[0])
        assert np.abs(rate * slope - v).max() < 1e-11
        assert mechanical_energy(linkage.robot(), q, v) == pytest.approx(begin, abs=1e-11)


@every_linkage
def test_acceleration_and_pin_force_of_a_linkage(name):
    """At instants of the swing: minimal coordinates give the acceleration, Newton-Euler the force, for every solver."""
    linkage, robot, anchor = LINKAGES[name], LINKAGES[name].robot(), LINKAGES[name].anchor()
    for t in np.linspace(0.0, DURATION, 11):
        theta, rate = exact(name)(t)
        second, force = linkage.acceleration(theta, rate), linkage.reactions(theta, rate)[0][linkage.pinned]
        q, v = linkage.state(theta, rate)
        for solver in every_solver([anchor]):
            motion = constrained_acceleration(robot, q, v, np.zeros(3), [anchor], solver)
            assert motion.a[0] == pytest.approx(second, abs=1e-12)
            assert np.abs(motion.lam - force).max() < 1e-12


@every_linkage
@every_stepper
def test_linkage_swings_like_its_minimal_coordinates(name, stepper):
    """Ten seconds of swinging follow ``I theta'' + I' theta'^2 / 2 + dV/dtheta = 0``, every joint of it."""
    linkage, trajectory, bounds = LINKAGES[name], recorded(name, stepper).trajectory, BOUNDS[stepper]
    every = round(SAMPLE / STEPS[stepper])
    sampled = slice(every - 1, None, every)
    states = [linkage.state(*exact(name)(t)) for t in trajectory.t[sampled]]
    q, v = (np.array(part) for part in zip(*states, strict=True))
    assert len(q) == round(DURATION / SAMPLE)
    assert np.abs(wrapped(trajectory.q[sampled] - q)).max() < bounds["q"]
    assert np.abs(trajectory.v[sampled] - v).max() < bounds["v"]
    assert np.abs(v).max() > 4.0


@every_linkage
@every_stepper
def test_linkage_stays_closed_and_keeps_its_energy(name, stepper):
    """At every step of ten seconds the loop is closed to 1e-9 m, and the energy is that of the start."""
    linkage, run = LINKAGES[name], recorded(name, stepper)
    assert np.abs(run.energies - linkage.energy(*linkage.start)).max() < BOUNDS[stepper]["energy"]
    assert run.violation <= 1e-9
    assert run.row_velocity <= BOUNDS[stepper]["slip"]


@every_linkage
@every_stepper
def test_pin_force_of_a_swinging_linkage(name, stepper):
    """The multipliers are the mean over the step of the force that Newton and Euler find (Simpson's rule)."""
    linkage, trajectory, dt = LINKAGES[name], recorded(name, stepper).trajectory, STEPS[stepper]
    largest = 0.0
    for step in range(99, len(trajectory.t), 100):
        at = [exact(name)(trajectory.t[step] - back * dt) for back in (1.0, 0.5, 0.0)]
        begin, middle, end = (linkage.reactions(*state)[0][linkage.pinned] for state in at)
        mean = (begin + 4.0 * middle + end) / 6.0
        assert np.abs(trajectory.multipliers["pin"][step] - mean).max() < BOUNDS[stepper]["force"]
        largest = max(largest, np.abs(mean).max())
    assert largest > 5.0


# -- the same linkage from loose bodies


def loose_rods(linkage):
    """Return the rods of a four-bar, each on two prismatic joints and a revolute one: ``q = (x, z, angle)`` each."""
    parts = ['<link name="base"/>']
    for i, (mass, inertia) in enumerate(zip(linkage.masses.tolist(), linkage.inertias.tolist(), strict=True)):
        parts += [f'<link name="along{i}"/>', f'<link name="up{i}"/>']
        parts.append(link(f"rod{i}", mass, (0, 0, 0), (inertia, inertia, 1e-3)))
        parts.append(joint(f"x{i}", "prismatic", "base", f"along{i}", (1, 0, 0), more=LIMIT))
        parts.append(joint(f"z{i}", "prismatic", f"along{i}", f"up{i}", (0, 0, 1), more=LIMIT))
        parts.append(joint(f"angle{i}", "revolute", f"up{i}", f"rod{i}", (0, 1, 0), more=LIMIT))
    return Robot.from_urdf(urdf(*parts))


def pins(linkage, normals):
    """Return anchors in place of the four revolute joints of :func:`loose_rods`."""
    half, ground = 0.5 * linkage.lengths, linkage.ground
    return [
        PointAnchor("pin0", "rod0", (0, 0, half[0]), "world", (0, 0, 0), normals),
        PointAnchor("pin1", "rod1", (0, 0, half[1]), "rod0", (0, 0, -half[0]), normals),
        PointAnchor("pin2", "rod2", (0, 0, half[2]), "rod1", (0, 0, -half[1]), normals),
        PointAnchor("pin3", "rod2", (0, 0, -half[2]), "world", (ground.real, 0, ground.imag), normals),
    ]


@pytest.mark.parametrize("normals", [PLANE, None], ids=["full_rank", "redundant"])
def test_linkage_of_loose_rods(normals):
    """Three free rods and four pins are the four-bar: accelerations, and all joint forces by Newton-Euler.

    Pins that hold the direction out of plane too have four rows that are zero.
    """
    linkage = LINKAGES["four_bar"]
    robot, anchors = loose_rods(linkage), pins(linkage, normals)
    for t in np.linspace(0.0, DURATION, 6):
        theta, rate = exact("four_bar")(t)
        second, (forces, _) = linkage.acceleration(theta, rate), linkage.reactions(theta, rate)
        c, c1, c2, k, slope = linkage.bodies(theta)
        c3 = c1 * second + c2 * rate**2
        q = np.column_stack([c.real, c.imag, linkage.angles(theta)]).ravel()
        v = rate * np.column_stack([c1.real, c1.imag, k]).ravel()
        a = np.column_stack([c3.real, c3.imag, k * second + slope * rate**2]).ravel()
        for solver in every_solver(anchors):
            motion = constrained_acceleration(robot, q, v, np.zeros(9), anchors, solver)
            assert motion.rank == 8
            assert np.abs(motion.a - a).max() < 1e-11
            for i, force in enumerate(forces):
                wrench = motion.wrench(f"pin{i}", f"rod{min(i, 2)}")
                assert np.abs(wrench - [force[0], 0, force[1], 0, 0, 0]).max() < 1e-11


# -- a closed arm


class FiveBar:
    """Two arms whose hands are pinned together; the motors are at the shoulders, the elbows are passive."""

    left, right = (0.3, 0.45), (0.35, 0.4)
    ground = 0.25 + 0.05j
    motors = ("left", "right")

    def robot(self):
        def rod(name, length, mass):
            slender = mass * length**2 / 12.0
            return link(name, mass, (0, 0, -0.5 * length), (slender, slender, 1e-3))

        shoulder = (self.ground.real, 0, self.ground.imag)
        return Robot.from_urdf(
            urdf(
                '<link name="base"/>',
                rod("left_arm", self.left[0], 1.0),
                rod("left_hand", self.left[1], 0.8),
                rod("right_arm", self.right[0], 1.2),
                rod("right_hand", self.right[1], 0.7),
                joint("left", "revolute", "base", "left_arm", more=LIMIT),
                joint("left_elbow", "revolute", "left_arm", "left_hand", origin=(0, 0, -self.left[0]), more=LIMIT),
                joint("right", "revolute", "base", "right_arm", origin=shoulder, more=LIMIT),
                joint("right_elbow", "revolute", "right_arm", "right_hand", origin=(0, 0, -self.right[0]), more=LIMIT),
            ),
            actuated_joints=self.motors,
        )

    def anchor(self):
        return PointAnchor("hands", "left_hand", (0, 0, -self.left[1]), "right_hand", (0, 0, -self.right[1]), PLANE)

    def state(self, shoulders, rates):
        """Return the whole configuration and velocity for angles and rates of the shoulders, in closed form."""
        first, second = shoulders
        span = self.ground + self.right[0] * along(second) - self.left[0] * along(first)
        third, fourth = elbow(self.left[1], self.right[1], span, 1.0)
        fourth += np.pi  # the second rod of the pair, seen from its other end
        lengths = np.array([self.left[0], -self.right[0], self.left[1], -self.right[1]])
        spin = -1j * lengths * along(np.array([first, second, third, fourth]))
        rows = np.array([spin.real, spin.imag])
        x, y = np.linalg.solve(rows[:, 2:], -rows[:, :2] @ rates)
        q = np.array([first, wrapped(third - first), second, wrapped(fourth - second)])
        return q, np.array([rates[0], x - rates[0], rates[1], y - rates[1]])


ARM = FiveBar()
SHOULDERS = [0, 2]


def wanted(t):
    """Return angles, rates and accelerations that the shoulders are to have at time `t` [s]."""
    begin, size, pulse = np.array([0.9, -0.7]), np.array([0.3, -0.25]), np.array([3.0, 4.0])
    return begin + size * np.sin(pulse * t), size * pulse * np.cos(pulse * t), -size * pulse**2 * np.sin(pulse * t)


def computed_torque(robot, t, correction=0.0):
    """Return the efforts for the wanted motion at time `t`, with a `correction` of the accelerations (2,)."""
    angles, rates, accelerations = wanted(t)
    q, v = ARM.state(angles, rates)
    return inverse_dynamics(robot, q, v, accelerations + correction, [ARM.anchor()], independent=ARM.motors)


def test_computed_torque_of_a_closed_arm():
    """The efforts give the wanted accelerations, elbows included, for every solver; their power is that of the energy.

    The energy along the wanted motion follows from the closed form of the loop alone: ``dE/dt = tau^T rates``.
    """
    robot = ARM.robot()
    assert robot.velocity_names == ("left", "left_elbow", "right", "right_elbow")
    for t in np.linspace(0.0, 2.0, 21):
        result, (angles, rates, accelerations) = computed_torque(robot, t), wanted(t)
        q, v = ARM.state(angles, rates)
        expected = derivative(lambda x, t=t: ARM.state(*wanted(t + x)[:2])[1])
        energy = derivative(lambda x, t=t: mechanical_energy(robot, *ARM.state(*wanted(t + x)[:2])))
        assert result.tau @ rates == pytest.approx(energy, abs=1e-10)
        assert result.residual < 1e-13
        for solver in every_solver([ARM.anchor()]):
            motion = constrained_acceleration(robot, q, v, result.tau, [ARM.anchor()], solver)
            assert np.abs(motion.a[SHOULDERS] - accelerations).max() < 1e-12
            assert np.abs(motion.a - expected).max() < 1e-9
            assert np.abs(motion.lam - result.lam).max() < 1e-12


def tracked(dt, duration, gain=0.0):
    """Return the errors (n, 4) of all joints after every step of a run.

    Efforts are held over a step: those of the wanted motion in its middle; with `gain` [1/s], a feedback that puts both
    poles of each shoulder's error at -gain.
    """
    robot = ARM.robot()
    q, v = ARM.state(*wanted(0.0)[:2])
    sim = simulator(robot, q, v, [ARM.anchor()], stepper="smooth", dt=dt)
    errors = []
    for _ in range(round(duration / dt)):
        now = sim.state
        angles, rates, _ = wanted(now.t)
        correction = gain**2 * (angles - now.q[SHOULDERS]) + 2.0 * gain * (rates - now.v[SHOULDERS])
        sim.step(computed_torque(robot, now.t + 0.5 * dt, correction).tau)
        errors.append(sim.state.q - ARM.state(*wanted(sim.state.t)[:2])[0])
    return np.array(errors)


def test_feedforward_tracks_up_to_the_hold_of_the_efforts():
    """Without any feedback the arm follows for a second; what is off falls with the square of the period of the hold.

    So it is the hold, and not the efforts: extrapolated to no hold, the error is below 1e-10 rad.
    """
    coarse, fine = tracked(2e-3, 1.0), tracked(1e-3, 1.0)[1::2]
    assert np.abs(fine).max() < 5e-7
    assert np.abs(coarse).max() / np.abs(fine).max() == pytest.approx(4.0, rel=0.01)
    assert np.abs((4.0 * fine - coarse) / 3.0)[:, SHOULDERS].max() < 1e-10


def test_closed_arm_is_tracked():
    """Computed torque with feedback, held for 0.5 ms at a time, keeps the shoulders within 1e-8 rad for a second.

    Holding shifts sampled angles by h^2 / 12 of the jerk per second; poles at -g leave 2 / g of that.
    """
    errors = tracked(5e-4, 1.0, gain=300.0)
    assert np.abs(errors[:, SHOULDERS]).max() < 3e-9
    assert np.abs(errors).max() < 5e-9


# -- a chain from joints, and from free bodies


class Equivalent(NamedTuple):
    """One chain twice: its bodies on revolute joints, and each on a free-flyer of its own.

    Attributes:
        jointed: the robot with joints.
        free: the robot of free bodies.
        axes: (n, 3) of the joints, in the body behind.
        placements: of the joints, in the body before.
    """

    jointed: Robot
    free: Robot
    axes: np.ndarray
    placements: tuple[pin.SE3, ...]

    def anchors(self, kind):
        """Return what replaces the joints: two points of each axis.

        The second holds two directions (``full_rank``) or all three (``redundant``); ``thrice`` adds a third point.
        """
        found = []
        for i, (axis, at) in enumerate(zip(self.axes, self.placements, strict=True)):
            before = "world" if i == 0 else f"body{i - 1}"
            across = np.linalg.svd((at.rotation @ axis)[None])[2][1:]
            points = {"origin": 0.0, "far": 0.3, "back": -0.2}
            for name in ("origin", "far", "back")[: 3 if kind == "thrice" else 2]:
                point = points[name] * axis
                normals = across if kind == "full_rank" and name == "far" else None
                found.append(PointAnchor(f"{name}{i}", f"body{i}", point, before, at.act(point), normals))
        return found

    def efforts(self, tau):
        """Return the joint efforts `tau` as moments on the bodies before and behind."""
        found = []
        for i, moment in enumerate(tau[:, None] * self.axes):
            found.append(Wrench(f"body{i}", torque=moment, axes=f"body{i}"))
            if i:
                found.append(Wrench(f"body{i - 1}", torque=-moment, axes=f"body{i}"))
        return found

    def state(self, q, v, a):
        """Return placements, velocities and accelerations of the bodies: the free robot's q, v and a."""
        model = self.jointed.model
        data = model.createData()
        pin.forwardKinematics(model, data, q, v, a)
        bodies = range(1, model.njoints)
        return (
            np.concatenate([pin.SE3ToXYZQUAT(data.oMi[i]) for i in bodies]),
            np.concatenate([data.v[i].vector for i in bodies]),
            np.concatenate([data.a[i].vector for i in bodies]),
        )

    def freed(self, q, v):
        """Return the free robot and its configuration and velocity."""
        return (self.free, *self.state(q, v, 0.0 * v)[:2])

    def velocity_map(self, q):
        """Return B (6 n, n): velocities of the free bodies for the rates of the joints."""
        columns = [self.state(q, unit, 0.0 * unit)[1] for unit in np.eye(self.jointed.nv)]
        return np.array(columns).T

    def reactions(self, q, v, a, tau):
        """Return (n, 6) force and moment at each joint on the body behind, its axes, efforts aside: by RNEA."""
        model = self.jointed.model
        data = model.createData()
        pin.rnea(model, data, q, v, a)
        return np.array([data.f[i + 1].vector - [0, 0, 0, *(tau[i] * self.axes[i])] for i in range(len(tau))])


@cache
def equivalent(bodies=5):
    """Return a chain with random axes, placements and inertias."""
    rng, jointed, free = np.random.default_rng(3), pin.Model(), pin.Model()
    parent, axes, placements = 0, [], []
    for i in range(bodies):
        axis = rng.normal(size=3)
        axes.append(axis / np.linalg.norm(axis))
        placements.append(pin.SE3(pin.exp3(rng.normal(size=3)), rng.uniform(-0.4, 0.4, 3)))
        inertia = pin.Inertia.FromBox(rng.uniform(0.5, 2.0), *rng.uniform(0.1, 0.4, 3))
        centre = pin.SE3(pin.exp3(rng.normal(size=3)), rng.uniform(-0.2, 0.2, 3))
        kind = pin.JointModelRevoluteUnaligned(axes[-1])
        parent = jointed.addJoint(parent, kind, placements[-1], f"joint{i}")
        alone = free.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), f"free{i}")
        for model, index in ((jointed, parent), (free, alone)):
            model.appendBodyToJoint(index, inertia, centre)
            model.addBodyFrame(f"body{i}", index, pin.SE3.Identity(), 0)
    return Equivalent(Robot(jointed, tuple(jointed.names)[1:]), Robot(free, ()), np.array(axes), tuple(placements))


KINDS = {"full_rank": 25, "redundant": 30, "thrice": 45}
"""Ways to hold the five axes, and how many rows they have; 25 are independent."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_free_bodies_with_anchors_are_the_chain_with_joints(kind, seed):
    """Accelerations are those of the articulated-body algorithm, and joint reactions those of RNEA, for every solver.

    Where rows are redundant the single multipliers are a choice; their resultant on each axis is not.
    """
    pair, rng = equivalent(), np.random.default_rng(seed)
    q, v, tau = rng.uniform(-1.0, 1.0, 5), 2.0 * rng.normal(size=5), rng.normal(size=5)
    model = pair.jointed.model
    a = pin.aba(model, model.createData(), q, v, tau).copy()
    expected, reactions = pair.state(q, v, a), pair.reactions(q, v, a, tau)
    anchors = pair.anchors(kind)
    for solver in every_solver(anchors):
        motion = constrained_acceleration(*pair.freed(q, v), (), anchors, solver, wrenches=pair.efforts(tau))
        assert len(motion.lam) == KINDS[kind]
        assert motion.rank == 25
        assert relative(motion.a, expected[2]) < 1e-11
        found = np.zeros((5, 6))
        for anchor in anchors:
            force = motion.wrench(anchor.name, anchor.link_a, anchor.link_a)[:3]
            found[int(anchor.name[-1])] += [*force, *np.cross(anchor.point_a, force)]
        assert relative(found, reactions) < 1e-11


@pytest.mark.parametrize(("stepper", "order", "bound"), [("smooth", 4, 2e-10), ("time_stepping", 2, 5e-6)])
def test_free_bodies_with_anchors_move_like_the_chain(stepper, order, bound):
    """Both models run into one another as the step goes to zero, with the order of the integrator."""
    pair, rng = equivalent(), np.random.default_rng(0)
    q, v = rng.uniform(-1.0, 1.0, 5), 2.0 * rng.normal(size=5)
    differences = []
    for dt in (4e-3, 2e-3):
        jointed = simulator(pair.jointed, q, v, stepper=stepper, dt=dt)
        free = simulator(*pair.freed(q, v), pair.anchors("redundant"), stepper=stepper, dt=dt)
        jointed.run(0.2)
        free.run(0.2)
        expected = pair.freed(jointed.state.q, jointed.state.v)[1].reshape(5, 7)
        differences.append(np.abs(free.state.q.reshape(5, 7)[:, :3] - expected[:, :3]).max())
        assert free.active_rows() == (30, 25)
    assert differences[1] < bound
    assert np.log2(differences[0] / differences[1]) == pytest.approx(order, abs=0.1)


# -- work, in motion and in impacts


@every_linkage
@every_stepper
def test_pin_of_a_swinging_linkage_does_no_work(name, stepper):
    """The power lam . s of the pin is rounding, s the velocity of the two points that it joins.

    So is the work that time stepping counts over ten seconds, lam (s + s') / 2 per step. The stages of RK4 do not lie
    on the constraint: the work that it integrates is its own error. Its projection leaves row velocities up to 1e-12.
    """
    linkage, run, anchor = LINKAGES[name], recorded(name, stepper), LINKAGES[name].anchor()
    robot = linkage.robot()
    for step in range(99, len(run.trajectory.t), 100):
        q, v = run.trajectory.q[step], run.trajectory.v[step]
        motion = constrained_acceleration(robot, q, v, np.zeros(3), [anchor])
        slip = slip_of(robot, q, v, anchor)
        assert abs(motion.lam @ slip) < BOUNDS[stepper]["slip"] * np.abs(motion.lam).sum()
    assert abs(run.work) < BOUNDS[stepper]["work"]


def frame_velocity(robot, q, v, frame, point):
    """Return the velocity (3,) of a point of a link, world axes, by Pinocchio alone."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q, v)
    pin.updateFramePlacements(robot.model, data)
    index = robot.model.getFrameId(frame)
    motion = pin.getFrameVelocity(robot.model, data, index, pin.LOCAL)
    return data.oMf[index].rotation @ (motion.linear + np.cross(motion.angular, point))


def test_pin_that_moves_does_the_work_of_its_velocity():
    """Where rows depend on time, dE/dt = lam . (velocity of the anchor): workless rows are those that do not."""
    linkage = LINKAGES["four_bar"]
    robot, (q, v) = linkage.robot(), linkage.state(*linkage.start)
    tip, drive, speed = point_of(robot, q, "tip"), np.array([0.4, 0.0, -0.3]), np.array([-1.0, 0.0, 2.0])
    moving = PointAnchor(
        "pin",
        "tip",
        (0, 0, 0),
        point_b=lambda t: (tip + drive * t + speed * t**2, drive + 2 * speed * t, 2 * speed),
        normals=PLANE,
    )
    v = resolve_impact(robot, q, v, [moving]).v_plus
    motion = constrained_acceleration(robot, q, v, np.zeros(3), [moving])
    assert np.abs(frame_velocity(robot, q, v, "tip", np.zeros(3)) - drive).max() < 1e-14

    def energy(t):
        return mechanical_energy(robot, q + t * v + 0.5 * t**2 * motion.a, v + t * motion.a)

    assert abs(motion.lam @ drive[[0, 2]]) > 1.0
    assert derivative(energy) == pytest.approx(motion.lam @ drive[[0, 2]], rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("restitution", [0.0, 0.6])
def test_free_bodies_that_are_caught_lose_the_energy_of_their_rows(kind, restitution):
    """Bodies in any motion become a chain at once: the jointed chain keeps their momentum, B^T M (v_plus - v) = 0.

    The loss is -(s_minus + s_plus)^T impulse / 2; without restitution s_minus^T Lambda s_minus / 2, which is the
    kinetic energy of the lost velocities (Carnot), and with it 1 - e^2 times as much. Redundant rows included.
    """
    pair, rng = equivalent(), np.random.default_rng(7)
    q, v = rng.uniform(-1.0, 1.0, 5), rng.normal(size=30)
    free, (q_free, _) = pair.free, pair.freed(q, np.zeros(5))[1:]
    M, B = inertia_of(free, q_free), pair.velocity_map(q)
    together = B @ np.linalg.solve(B.T @ M @ B, B.T @ M @ v)
    lost = 0.5 * (1.0 - restitution**2) * (v - together) @ M @ (v - together)
    anchors = pair.anchors(kind)
    slips = np.concatenate([slip_of(free, q_free, v, anchor) for anchor in anchors])
    J = np.array([np.concatenate([slip_of(free, q_free, unit, anchor) for anchor in anchors]) for unit in np.eye(30)]).T
    carnot = 0.5 * (1.0 - restitution**2) * slips @ np.linalg.pinv(J @ np.linalg.solve(M, J.T), 1e-10) @ slips
    assert carnot == pytest.approx(lost, rel=1e-11)
    for solver in every_solver(anchors):
        impact = resolve_impact(free, q_free, v, anchors, solver, restitution)
        assert relative(impact.v_plus, together + restitution * (together - v)) < 1e-11
        assert relative(impact.row_velocity_minus, slips) < 1e-12
        assert np.abs(impact.row_velocity_plus + restitution * slips).max() < 1e-11 * np.abs(slips).max()
        assert impact.energy_lost == pytest.approx(lost, rel=1e-11)
        mean = 0.5 * (impact.row_velocity_minus + impact.row_velocity_plus)
        assert -mean @ impact.impulse == pytest.approx(lost, rel=1e-11)
        kinetic = kinetic_energy(free, q_free, v) - kinetic_energy(free, q_free, impact.v_plus)
        assert kinetic == pytest.approx(lost, rel=1e-11)


def slip_of(robot, q, v, anchor):
    """Return the row velocities of `anchor`, whose points coincide, by Pinocchio alone."""
    slip = frame_velocity(robot, q, v, anchor.link_a, anchor.point_a)
    axes = np.eye(3)
    if anchor.link_b != "world":
        slip = slip - frame_velocity(robot, q, v, anchor.link_b, anchor.point_b)
        axes = placement(robot, q, anchor.link_b).rotation
    return (np.eye(3) if anchor.normals is None else anchor.normals) @ axes.T @ slip


@every_stepper
def test_a_loop_that_closes_in_motion(stepper):
    """The pin that catches a swinging chain is one impact: the audit books its loss, and the rest keeps its energy."""
    linkage = LINKAGES["four_bar"]
    robot, q = linkage.robot(), linkage.state(*linkage.start)[0]
    sim = simulator(robot, q, [1.0, -2.0, 1.5], stepper=stepper)
    sim.run(0.05)
    q, v = sim.state.q, sim.state.v
    M, slip = inertia_of(robot, q), frame_velocity(robot, q, v, "tip", np.zeros(3))[[0, 2]]
    J = np.array([frame_velocity(robot, q, unit, "tip", np.zeros(3))[[0, 2]] for unit in np.eye(3)]).T
    before = sim.mechanical_energy()
    impact = sim.add(PointAnchor("pin", "tip", (0, 0, 0), normals=PLANE))
    expected = 0.5 * slip @ np.linalg.solve(J @ np.linalg.solve(M, J.T), slip)
    assert impact.energy_lost == pytest.approx(expected, rel=1e-12)
    assert before - sim.mechanical_energy() == pytest.approx(expected, rel=1e-12)
    assert sim.energy.impact_losses == pytest.approx(expected, rel=1e-12)
    after = sim.mechanical_energy()
    sim.run(0.05)
    assert sim.mechanical_energy() == pytest.approx(after, abs={"smooth": 1e-9, "time_stepping": 1e-4}[stepper])
    assert sim.energy.impact_losses == pytest.approx(expected, rel=1e-12)
