"""A block on a slope: at rest below the angle of friction, sliding above it by g (sin a - mu cos a) t^2 / 2."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import PointContact, Robot, Simulator

BLOCK = """<robot name="block"><link name="block"><inertial><mass value="1"/>
  <inertia ixx="0.004" iyy="0.004" izz="0.007" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
FRICTION, GRAVITY, SECONDS = 0.5, 9.81, 1.0
CORNERS = [(x, y, -0.05) for x in (-0.1, 0.1) for y in (-0.1, 0.1)]


def main(picture="block_on_slope.png", dt=1e-3):
    """Slide on slopes from 20 to 35 degrees; gravity is tilted in place of the ground."""
    figure, axes = plt.subplots(figsize=(5, 3.5))
    for degrees in (20, 25, 30, 35):
        angle = np.radians(degrees)
        gravity = (GRAVITY * np.sin(angle), 0, -GRAVITY * np.cos(angle))
        block = Robot.from_urdf(BLOCK, floating_base=True, gravity=gravity)
        feet = [PointContact(f"foot {n}", "block", corner, friction=FRICTION) for n, corner in enumerate(CORNERS)]
        run = Simulator(block, feet, dt=dt, q=block.configuration({}, (0, 0, 0.05, 0, 0, 0, 1))).run(SECONDS)
        pull = max(0.0, GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle)))
        (line,) = axes.plot(run.t, run.q[:, 0], label=f"{degrees} degrees")
        axes.plot(run.t[::50], pull * run.t[::50] ** 2 / 2, "o", color=line.get_color(), markersize=3)
        assert abs(run.q[-1, 0] - pull * SECONDS**2 / 2) < 1e-9
    axes.set(xlabel="t [s]", ylabel="way down the slope [m]", title="lines: simulated, dots: closed form")
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
