"""Rows of metres and radians, of heavy and of light bodies: what a row is compared with is its own length."""

import numpy as np
import pytest
from mechanisms import GRAVITY, LIMIT, joint, link, urdf

from constrained_sim import (
    SOLVERS,
    Collisions,
    CustomConstraint,
    JointCoupling,
    JointLimit,
    JointVelocity,
    Plane,
    PointAnchor,
    PointContact,
    Robot,
    Simulator,
    Wrench,
    constrained_acceleration,
    inverse_dynamics,
)
from constrained_sim.contact_solvers import METHODS, ContactProblem, solve_contacts
from constrained_sim.exceptions import NotFollowed

HEAVY, LIGHT = 1e4, 5e-8
"""Mass of the lift [kg], and moment of inertia of the wheel [kg m^2]."""

every_solver = pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"proximal"}))


@pytest.fixture(scope="module")
def lift_and_wheel():
    """Return a lift of ten tonnes beside a wheel of a watch: entries of M differ by a factor of 2e11."""
    heavy = link("heavy", HEAVY, inertia=(1, 1, 1)), joint("lift", "prismatic", "base", "heavy", (0, 0, 1), more=LIMIT)
    light = link("wheel", 1e-3, inertia=(LIGHT,) * 3), joint("spin", "revolute", "base", "wheel", (0, 0, 1), more=LIMIT)
    return Robot.from_urdf(urdf('<link name="base"/>', *heavy, *light))


@pytest.fixture(scope="module")
def table():
    """Return a body of 1 kg that moves along x and y."""
    first = link("a", 1.0), joint("x", "prismatic", "base", "a", (1, 0, 0), more=LIMIT)
    second = link("b", 1.0), joint("y", "prismatic", "a", "b", (0, 1, 0), more=LIMIT)
    return Robot.from_urdf(urdf('<link name="base"/>', *first, *second))


@every_solver
def test_a_heavy_lift_is_held_beside_a_light_wheel(lift_and_wheel, solver):
    held = [PointAnchor("hold", "heavy", normals=[(0, 0, 1)]), JointVelocity("drive", "spin", 0.0)]
    simulator = Simulator(lift_and_wheel, held, solver=solver, dt=1e-3)
    result = simulator.step()
    assert result.lam == pytest.approx([HEAVY * GRAVITY, 0.0], rel=1e-12, abs=1e-12)
    simulator.run(0.1)
    np.testing.assert_allclose(simulator.state.q, 0.0, atol=1e-15)


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"proximal", "gauss"}))  # which does no friction
def test_a_heavy_lift_rests_on_the_ground_beside_a_light_wheel_on_its_stop(lift_and_wheel, solver):
    effort = 1e-3
    held = [PointContact("foot", "heavy", (0, 0, 0), friction=0.5), JointLimit("stop", "spin", 0.0, 1.0)]
    simulator = Simulator(lift_and_wheel, held, solver=solver, dt=1e-3)
    for _ in range(100):
        result = simulator.step([0.0, -effort])
    assert result.contact_forces["foot"].force == pytest.approx([0.0, 0.0, HEAVY * GRAVITY], rel=1e-9, abs=1e-9)
    assert result.multipliers("stop") == pytest.approx([effort, 0.0], rel=1e-9)
    np.testing.assert_allclose(simulator.state.q, 0.0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_contacts_that_do_not_touch_each_other_may_differ_by_any_factor(method):
    G, u = np.diag([1e-4, 1e-4, 1e-4, 2e7, 2e7, 2e7]), np.array([0.1, 0.0, -1.0, 0.1, 0.0, -1.0])
    problem = ContactProblem(G, u, np.array([0.5, 0.5]), np.zeros((2, 2)))
    impulse = solve_contacts(problem, method).impulse
    np.testing.assert_allclose(G @ impulse + u, 0.0, atol=1e-9)
    np.testing.assert_allclose(impulse[2::3], [1e4, 5e-8], rtol=1e-9)


@pytest.mark.parametrize(("angle", "held"), [(1e-4, True), (2e-6, True), (5e-7, False)])
@every_solver
def test_every_solver_draws_the_line_at_the_same_place(table, solver, angle, held):
    """Two rows that turn away from each other by less than ``ROW_TOLERANCE`` are one row."""
    rows = PointAnchor("rows", "b", normals=[(1, 0, 0), (1, angle, 0)])
    simulator = Simulator(table, [rows], solver=solver, dt=1e-3)
    for _ in range(10):
        simulator.step([0.0, 1.0])
    assert simulator.state.q[0] == pytest.approx(0.0, abs=1e-9)
    assert simulator.state.q[1] == pytest.approx(0.0 if held else 0.5 * 0.01**2, abs=1e-9)


@pytest.mark.parametrize("scale", [1.0, 1e-7, 1e7])
def test_inverse_dynamics_finds_forces_of_rows_of_any_scale(table, scale):
    row = CustomConstraint(
        "row",
        1,
        phi=lambda q, v, t: scale * q[1:2],
        jacobian=lambda q, v, t: np.array([[0.0, scale]]),
        gamma=lambda q, v, t: np.zeros(1),
    )
    held, push = [row, JointCoupling("column", "x", "y", 0.0)], [Wrench("b", force=(1.0, 2.0, 0.0))]
    found = inverse_dynamics(table, [0, 0], [0, 0], [], held, wrenches=push)
    assert found.lam == pytest.approx([-2.0 / scale, -1.0], rel=1e-12)
    assert found.residual < 1e-15
    expected = constrained_acceleration(table, [0, 0], [0, 0], [0, 0], held, wrenches=push)
    np.testing.assert_allclose(found.lam, expected.lam, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-9, 1e-6, 1.0, 1e6])
def test_inverse_dynamics_does_not_depend_on_the_units_of_an_actuator(table, scale):
    accelerations = np.array([2.0, 3.0])
    plain = inverse_dynamics(table, np.zeros(2), np.zeros(2), accelerations, [])
    other = inverse_dynamics(table, np.zeros(2), np.zeros(2), accelerations, [], actuation=np.diag([1.0, scale]))
    np.testing.assert_allclose(other.tau * [1.0, scale], plain.tau, rtol=1e-14)
    two = np.array([[1.0, 0.0, 0.0], [0.0, scale, scale]])  # which share what they do: the least norm
    shared = inverse_dynamics(table, np.zeros(2), np.zeros(2), accelerations, [], actuation=two)
    np.testing.assert_allclose(shared.tau * [1.0, scale, scale], plain.tau[[0, 1, 1]] * [1.0, 0.5, 0.5], rtol=1e-14)
    assert plain.uncontrolled == other.uncontrolled == shared.uncontrolled == ()


@pytest.mark.parametrize("stepper", ["time_stepping", "event_driven"])
@pytest.mark.parametrize("arm", [0.0, 1e-15, 1e-12, 1e-9, 1e-6])
def test_a_contact_near_the_axis_of_a_hinge_leaves_the_others_alone(stepper, arm):
    """A mast that turns about its axis touches the floor: what would stop it there is no measure for other forces."""
    robot = Robot.from_mjcf(f'''<mujoco><worldbody>
      <body name="mast"><joint name="slew" axis="0 0 1" pos="{arm} 0 0"/>
        <geom type="capsule" fromto="0 0 0.05 0 0 1" size="0.05" mass="10"/></body>
      <body name="crate" pos="0.8 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    </worldbody></mujoco>''')
    ground = Collisions({"floor": Plane()}, friction=0.5)
    sim = Simulator(
        robot, collisions=ground, stepper=stepper, q=[0, 0.8, 0, 0.1, 0, 0, 0, 1], v=[0.5, 0, 0, 0, 0, 0, 0]
    )
    trajectory = sim.run(0.1)
    weight = sum(force[:, 2] for name, force in trajectory.contact_forces.items() if name.startswith("crate"))
    np.testing.assert_allclose(weight, GRAVITY, rtol=1e-13)
    assert not trajectory.impacts and abs(trajectory.q[-1, 3] - 0.1) < 1e-15
    np.testing.assert_allclose(trajectory.v[-1], [0.5, 0, 0, 0, 0, 0, 0], atol=1e-14)


def test_inverse_dynamics_knows_what_does_not_move_from_rounding():
    """A driven joint before a loop: no effort there moves the loop, and one for each freedom moves all."""
    rng = np.random.default_rng(0)
    parts = [link("l0", 1.0)]
    for i in range(1, 9):
        parts += [
            link(f"l{i}", 1.0),
            joint(f"j{i}", "revolute", f"l{i - 1}", f"l{i}", rng.normal(size=3), (0.1, 0.2, 0.3), LIMIT),
        ]
    every = Robot.from_urdf(urdf(*parts))
    constraints = [PointAnchor("loop", "l5", (0.1, 0.2, 0.3)), JointVelocity("drive", "j1", 1.0)]
    few = Robot.from_urdf(every.urdf, actuated_joints=["j1", "j6", "j7", "j8"])
    for _ in range(20):
        q, rest = rng.uniform(-1.0, 1.0, 8), np.zeros(8)
        found = inverse_dynamics(every, q, rest, np.zeros(4), constraints)
        motion = constrained_acceleration(every, q, rest, found.tau, constraints)
        np.testing.assert_allclose(motion.a, found.a, atol=1e-9)
        with pytest.raises(NotFollowed):
            inverse_dynamics(few, q, rest, np.zeros(4), constraints)


@pytest.mark.parametrize("height", [0.0, 1e-6])
@pytest.mark.parametrize("drive", [True, False], ids=["driven", "free"])
def test_a_cylinder_that_turns_on_the_floor_leaves_the_others_alone(drive, height):
    """Its rim moves along the floor only: its normal rows are zero, or the rounding of their neighbours."""
    robot = Robot.from_mjcf(f"""<mujoco><worldbody>
      <body name="mast" pos="0 0 {height}"><joint name="slew" axis="0 0 1"/>
        <geom type="cylinder" fromto="0 0 0 0 0 1" size="0.05" mass="10"/></body>
      <body name="crate" pos="0.8 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>
    </worldbody></mujoco>""")
    q, v = [0, 0.8, 0, 0.1, 0, 0, 0, 1], [0.5, 0, 0, 0, 0, 0, 0]
    held = [JointVelocity("drive", "slew", 0.5)] if drive else []
    sim = Simulator(robot, held, collisions=Collisions({"floor": Plane()}, friction=0.5), q=q, v=v)
    trajectory = sim.run(0.2)
    weight = sum(force[:, 2] for name, force in trajectory.contact_forces.items() if name.startswith("crate"))
    np.testing.assert_allclose(weight, GRAVITY, rtol=1e-13)
    assert not trajectory.impacts
    np.testing.assert_allclose(trajectory.v[-1], v, atol=1e-14)
