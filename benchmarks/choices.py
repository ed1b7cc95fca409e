"""Measures cost and error of steppers, integrators, contact laws and methods, in scenes with known results.

    scripts/run python benchmarks/choices.py

A ball falls and bounces; a double pendulum without friction keeps its energy; a four-bar linkage stays closed; a ball
rests; a block slides. The time is processor time of a simulated second, with kernels compiled and loaded.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim import LAWS, PointContact, Robot, Simulator, constraint_system
from constrained_sim.contact_solvers.solve import METHODS
from constrained_sim.shipped import shipped_robots
from constrained_sim.testing.simulated_robot import read_parameters

sys.path.append(str(Path(__file__).parent))  # scripts/run leaves it out

from comparison import BLOCK, CORNERS, FRICTION, GRAVITY, PENDULUM, START, energy, tilted
from comparison import HEIGHT as HIGH
from comparison import RADIUS as RADIUS_OF_FEET

BALL = """<robot name="ball"><link name="ball"><inertial><mass value="1"/>
  <inertia ixx="0.004" iyy="0.004" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""

FOUR_BAR = shipped_robots()["four_bar"]

HEIGHT, RADIUS, RESTITUTION, SECONDS = 1.0, 0.1, 0.8, 2.0
"""The ball falls so far [m], and bounces for so long [s]."""

STEPS = (("time_stepping", 1e-3), ("time_stepping", 1e-4), ("event_driven", 1e-3), ("event_driven", 2e-2))

LAW_OPTIONS: dict[str, dict[str, float]] = {
    "compliant": {"stiffness": 1e4, "damping": 50.0},
    "hunt_crossley": {"stiffness": 1e5, "dissipation": 1.0},
}


def timed(sim: Simulator, seconds: float) -> float:
    """Run twice, since the first run may load code; return the time of a simulated second [ms] of the second."""
    q, v = sim.state.q.copy(), sim.state.v.copy()
    for _ in range(2):
        sim.reset(q, v)
        begin = time.process_time()
        sim.run(seconds)
        duration = time.process_time() - begin
    return 1e3 * duration / seconds


def bouncing_height(t: float) -> float:
    """Return how high the ball is at `t` [s], in closed form."""
    velocity, since = 0.0, math.sqrt(2 * HEIGHT / GRAVITY)
    if t < since:
        return HEIGHT - 0.5 * GRAVITY * t**2
    velocity = RESTITUTION * GRAVITY * since
    while t > since + 2 * velocity / GRAVITY:
        since += 2 * velocity / GRAVITY
        velocity *= RESTITUTION
    return velocity * (t - since) - 0.5 * GRAVITY * (t - since) ** 2


def bounces() -> Iterator[list[str]]:
    """Position of a bouncing ball against the closed form."""
    ball = Robot.from_urdf(BALL, floating_base=True)
    q = ball.configuration({}, (0, 0, HEIGHT + RADIUS, 0, 0, 0, 1))
    contact = PointContact("ball", "ball", (0, 0, 0), radius=RADIUS, friction=0.5, restitution=RESTITUTION)
    for stepper, dt in STEPS:
        sim = Simulator(ball, [contact], stepper=stepper, dt=dt, q=q)
        cost = timed(sim, SECONDS)
        error = abs(sim.state.q[2] - RADIUS - bouncing_height(SECONDS))
        yield ["ball, 4 bounces", f"{stepper}, dt = {dt:g} s", f"{error:.1e} m", f"{cost:.1f}"]


def swings() -> Iterator[list[str]]:
    """Energy of the pendulum."""
    robot = Robot.from_urdf(PENDULUM, actuated_joints=[])
    q = robot.configuration({"upper_joint": START[0], "lower_joint": START[1]})
    cases: list[tuple[str, dict[str, Any]]] = [
        (f"{name}, dt = {dt:g} s", {"stepper": name, "dt": dt}) for name, dt in STEPS
    ]
    for name in ("midpoint", "semi_implicit_euler", "explicit_euler", "rk4", "taylor", "adaptive", "backward_euler"):
        cases.append((f"smooth, {name}, dt = 0.001 s", {"stepper": "smooth", "integrator": name}))
    for name, options in cases:
        sim = Simulator(robot, q=q, **options)
        cost = timed(sim, 5.0)
        at = sim.state.q
        angles = np.array([math.atan2(at[1], at[0]), math.atan2(at[3], at[2])])
        error = abs(energy(angles, sim.state.v) - energy(np.array(START), np.zeros(2)))
        yield ["double pendulum, 5 s", name, f"{error:.1e} J", f"{cost:.1f}"]


def loops() -> Iterator[list[str]]:
    """Drift of a closed loop."""
    for name, dt in STEPS:
        sim = read_parameters(FOUR_BAR, {"stepper": name, "dt": dt, "control_period": dt}).simulator()
        cost = timed(sim, 1.0)
        drift = np.abs(constraint_system(sim.robot, sim.state.q, sim.state.v, sim.constraints).phi).max()
        yield ["four-bar, 1 s", f"{name}, dt = {dt:g} s", f"{drift:.1e} m", f"{cost:.1f}"]


def rests() -> Iterator[list[str]]:
    """Depth of a ball at rest, by law."""
    ball = Robot.from_urdf(BALL, floating_base=True)
    for name, law in LAWS.items():
        options = LAW_OPTIONS.get(name, {})
        contact = PointContact("ball", "ball", (0, 0, 0), radius=RADIUS, law=law(**options))
        sim = Simulator(ball, [contact], q=ball.configuration({}, (0, 0, RADIUS, 0, 0, 0, 1)))
        cost = timed(sim, 1.0)
        words = ", ".join([name, *(f"{key} {value:g}" for key, value in options.items())])
        yield ["ball at rest, 9.81 N", words, f"{RADIUS - sim.state.q[2]:.1e} m", f"{cost:.1f}"]


def slides() -> Iterator[list[str]]:
    """Way of a block on four corners down a slope against the closed form, by contact method."""
    angle = math.radians(30.0)
    block = Robot.from_urdf(BLOCK.format(feet=""), floating_base=True, gravity=tilted(angle))
    feet = [
        PointContact(f"foot{number}", "block", corner, radius=RADIUS_OF_FEET, friction=FRICTION)
        for number, corner in enumerate(CORNERS)
    ]
    exact = 0.5 * GRAVITY * (math.sin(angle) - FRICTION * math.cos(angle))
    for method in METHODS:
        sim = Simulator(block, feet, contact_method=method, q=block.configuration({}, (0, 0, HIGH / 2, 0, 0, 0, 1)))
        cost = timed(sim, 1.0)
        yield ["block slides, 4 corners", method, f"{abs(sim.state.q[0] - exact):.1e} m", f"{cost:.1f}"]


def main() -> None:
    """Print a table."""
    print("| scene | choice | error | ms for 1 s |\n|---|---|---|---|")
    for scene in (bounces, swings, loops, rests, slides):
        for line in scene():
            print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
