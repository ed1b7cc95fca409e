"""An arm wipes a wall: it pushes with 5 N and moves up and down along it."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import Plane, PointContact, Robot, Simulator, constraint_system

LINK = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><origin xyz="0 0 {3}"/>
  <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="100" velocity="100"/></joint><link name="{2}"><inertial>
  <origin xyz="0 0 -0.15"/><mass value="1"/><inertia ixx="0.008" iyy="0.008" izz="0.001" ixy="0" ixz="0" iyz="0"/>
  </inertial></link>"""
ARM = f"""<robot name="arm"><link name="base"/>{LINK.format("shoulder", "base", "upper", 0)}
  {LINK.format("elbow", "upper", "lower", -0.3)}</robot>"""
LENGTH, PUSH, FRICTION = 0.3, 5.0, 0.3


def hand(q):
    """Return where the hand is, along x and z, and its Jacobian."""
    a, b = q[0], q[0] + q[1]
    place = -LENGTH * np.array([np.sin(a) + np.sin(b), np.cos(a) + np.cos(b)])
    return place, LENGTH * np.array([[-np.cos(a) - np.cos(b), -np.cos(b)], [np.sin(a) + np.sin(b), np.sin(b)]])


def main(picture="wiping_arm.png", seconds=3.0):
    """Wipe; the force on the wall is what was asked for, less what the arm's own acceleration takes."""
    arm = Robot.from_urdf(ARM)
    q = arm.configuration({"shoulder": -1.0, "elbow": -0.6})
    start, _ = hand(q)
    wall = PointContact(
        "hand", "lower", (0, 0, -LENGTH), surface=Plane((-1, 0, 0), -start[0] - 1e-3), friction=FRICTION
    )

    def efforts(t, q, v):
        (_, z), J = hand(q)
        rate = J @ v
        wanted, speed = start[1] + 0.06 * (1 - np.cos(2 * t)), 0.12 * np.sin(2 * t)
        force = np.array([PUSH - 20 * rate[0], 300 * (wanted - z) + 30 * (speed - rate[1])])
        return constraint_system(arm, q, v, []).h + J.T @ force

    run = Simulator(arm, [wall], q=q).run(seconds, efforts)
    pushed = -run.contact_forces["hand"][500:, 0]
    assert (abs(pushed - PUSH) < 2.0).all() and pushed.min() > 0
    figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5, 4))
    above.plot(run.t, [hand(row)[0][1] for row in run.q])
    above.set(ylabel="height of the hand [m]")
    below.plot(run.t, -run.contact_forces["hand"][:, [0]], label="on the wall")
    below.plot(run.t, run.contact_forces["hand"][:, [2]], label="friction")
    below.set(xlabel="t [s]", ylabel="force [N]", ylim=(-4, 10))
    below.legend()
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
