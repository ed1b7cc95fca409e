"""A box falls down stairs: its corners come round edges, and edges round corners, within single steps."""

import numpy as np
import pinocchio as pin
import pytest

from constrained_sim import Box, Collisions, Plane, Robot, Simulator

MASS = 2.0
BOX = f"""<robot name="box"><link name="box">
<inertial><mass value="{MASS}"/><inertia ixx="0.0217" iyy="0.0333" izz="0.0417" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><box size="0.4 0.3 0.2"/></geometry></collision></link></robot>"""

STAIRS = {"ground": Plane()} | {
    f"stair{k}": Box((0.3, 2.0, 0.15 * (6 - k)), (0.3 * k + 0.15, 0.0, 0.075 * (6 - k))) for k in range(6)
}
"""Six, down along x."""

WEIGHT = np.array([0.0, 0.0, -9.81 * MASS])


def momentum(robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (6,) the momentum [N s] and that about the world's origin [N m s], and (3,) the centre of mass [m]."""
    data = robot.model.createData()
    about_centre = pin.computeCentroidalMomentum(robot.model, data, q, v)
    centre, linear = data.com[0].copy(), about_centre.linear.copy()
    return np.concatenate([linear, about_centre.angular + np.cross(centre, linear)]), centre


def given(result) -> np.ndarray:
    """Return (6,) what contacts gave to the box in a step, as :func:`momentum`."""
    pushes = [(force.position, force.force * result.dt) for force in result.contact_forces.values()]
    for impact in result.impacts:
        names = [member.name for member in impact.constraints.contacts.members]
        pushes += [(impact.points[names.index(name)], push) for name, push in impact.contact_impulses.items()]
    return sum((np.concatenate([push, np.cross(point, push)]) for point, push in pushes), np.zeros(6))


@pytest.mark.parametrize(
    ("stepper", "dt", "seed", "begin", "end"),
    [
        ("time_stepping", 1e-3, 2, 0.2, 0.3),
        ("time_stepping", 1e-3, 3, 0.2, 0.4),
        ("time_stepping", 1e-3, 5, 0.3, 0.5),
        ("time_stepping", 4e-3, 3, 0.2, 0.6),
        ("event_driven", 1e-3, 2, 0.2, 0.3),
    ],
)
def test_what_comes_round_an_edge_touches_down(stepper, dt, seed, begin, end):
    """It is not pushed out of the stairs at the end of the step: that brings in energy, and turns the box.

    Momentum changes by weight, forces and impulses, up to what their means over a step leave out: forces along normals
    that turn by 0.01 rad or less. Pushed out, the box got 2 to 7 mJ, and up to 1e-3 N m s, in one step.
    """
    rng = np.random.default_rng(seed)
    robot = Robot.from_urdf(BOX, floating_base=True)
    sim = Simulator(robot, collisions=Collisions(STAIRS, friction=0.5), dt=dt, stepper=stepper)
    turn = rng.normal(size=4)
    q = robot.configuration({}, (0.1, rng.uniform(-0.3, 0.3), 1.4, *(turn / np.linalg.norm(turn))))
    sim.reset(q, np.array([0.8, 0.0, 0.0, *rng.normal(size=3)]))
    sim.run(begin)
    touched = 0
    for _ in range(round((end - begin) / dt)):
        before, start = momentum(robot, sim.state.q, sim.state.v)
        result = sim.step()
        after, stop = momentum(robot, sim.state.q, sim.state.v)
        fallen = np.concatenate([WEIGHT * dt, np.cross(0.5 * (start + stop), WEIGHT) * dt])
        assert np.abs(after - before - given(result) - fallen).max() < 0.06 * dt
        assert abs(result.energy.projection) < 1.0 * dt**2
        assert result.energy.contacts <= 1e-9 and result.energy.impact_losses >= -1e-9
        touched += len(result.impacts)
    assert touched
