"""A platform on six legs: its pose for given lengths, and the force in each leg, which statics gives too."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import PointDistance, Robot, assemble, constrained_acceleration, constraint_system

PLATE = """<robot name="platform"><link name="plate"><inertial><mass value="5"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.2" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
GROUND = np.radians([-50, 50, 70, 170, 190, 290])
ABOVE = np.radians([-10, 10, 110, 130, 230, 250])


def legs(lengths):
    """Return six rods between the ground and the plate."""
    ends = [
        ((0.3 * np.cos(a), 0.3 * np.sin(a), 0), (0.5 * np.cos(b), 0.5 * np.sin(b), 0))
        for a, b in zip(ABOVE, GROUND, strict=True)
    ]
    return [
        PointDistance(f"leg {n}", "plate", above, "world", below, distance=length)
        for n, ((above, below), length) in enumerate(zip(ends, lengths, strict=True))
    ]


def main(picture="stewart_platform.png", frames=40):
    """Let the legs go up and down, one after the other."""
    plate = Robot.from_urdf(PLATE, floating_base=True)
    q, poses, forces = plate.configuration({}, (0, 0, 0.6, 0, 0, 0, 1)), [], []
    for turn in np.linspace(0, 2 * np.pi, frames):
        rods = legs(0.75 + 0.05 * np.sin(turn + np.arange(6)))
        q = assemble(plate, q, rods).q
        held = constrained_acceleration(plate, q, np.zeros(6), [], rods)
        system = constraint_system(plate, q, np.zeros(6), rods)
        np.testing.assert_allclose(held.lam, np.linalg.solve(system.J.T, system.h), rtol=1e-8)
        poses.append(q[:3])
        forces.append(held.lam)
    figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5, 5))
    above.plot(1e3 * np.array(poses) - [0, 0, 1e3 * poses[0][2]], label=["x", "y", "z"])
    above.set(ylabel="way of the plate [mm]", title="six legs, 5 kg")
    above.legend()
    below.plot(forces)
    below.set(xlabel="frame", ylabel="force of each leg [N]")
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
