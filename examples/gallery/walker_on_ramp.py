"""A rimless wheel walks down a ramp: each step loses energy in an impact, and gravity gives it back."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import PointContact, Robot, Simulator

JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><axis xyz="{4}"/>
  <limit lower="-100" upper="100" effort="0" velocity="100"/></joint><link name="{3}">{5}</link>"""
HUB = """<inertial><mass value="1"/><inertia ixx="0.02" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial>"""
PLANAR = f"""<robot name="wheel"><link name="world_link"/>
  {JOINT.format("x", "prismatic", "world_link", "cart", "1 0 0", "")}
  {JOINT.format("z", "prismatic", "cart", "lift", "0 0 1", "")}
  {JOINT.format("pitch", "continuous", "lift", "hub", "0 1 0", HUB)}</robot>"""
SPOKES, LENGTH, INERTIA, GRAVITY, SLOPE = 8, 0.3, 0.02, 9.81, np.radians(5)
HALF = np.pi / SPOKES


def steady_rate():
    """Return the rate just before each impact in the long run, in closed form [rad/s]."""
    about_foot = INERTIA + LENGTH**2
    kept = (INERTIA + LENGTH**2 * np.cos(2 * HALF)) / about_foot
    return np.sqrt(4 * GRAVITY * LENGTH * np.sin(HALF) * np.sin(SLOPE) / about_foot / (1 - kept**2))


def main(picture="walker_on_ramp.png", seconds=6.0):
    """Walk; gravity is tilted in place of the ground."""
    gravity = (GRAVITY * np.sin(SLOPE), 0, -GRAVITY * np.cos(SLOPE))
    wheel = Robot.from_urdf(PLANAR, gravity=gravity, actuated_joints=[])
    angles = HALF + 2 * HALF * np.arange(SPOKES)
    tips = [(LENGTH * np.sin(a), 0, -LENGTH * np.cos(a)) for a in angles]
    feet = [PointContact(f"foot {n}", "hub", tip, friction=2.0) for n, tip in enumerate(tips)]
    q = wheel.configuration({"x": 0, "z": LENGTH * np.cos(HALF), "pitch": 0})
    foot = LENGTH * np.cos(HALF), LENGTH * np.sin(HALF)
    v = 2.5 * np.array([foot[0], foot[1], 1.0])  # about the foot in front
    run = Simulator(wheel, feet, q=q, v=v).run(seconds)
    before = [impact.v_minus[2] for impact in run.impacts if impact.energy_lost > 1e-3]
    assert abs(before[-1] / steady_rate() - 1) < 0.01, (before, steady_rate())
    figure, axes = plt.subplots(figsize=(5, 3.5))
    axes.plot(run.t, run.v[:, 2])
    axes.axhline(steady_rate(), linestyle=":", color="black")
    axes.set(xlabel="t [s]", ylabel="rate of the wheel [rad/s]", title="dotted: rate before an impact, closed form")
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
