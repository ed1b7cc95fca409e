"""A billiard ball is struck with backspin: it slides, rolls, and hits another one; momentum along the table is kept."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import Collisions, Plane, Robot, Simulator

RADIUS, GAP = 0.03, 0.6
BALL = (
    '<body name="{0}" pos="{1} 0 0.03"><freejoint name="{0}"/><geom type="sphere" size="0.03" density="1800"/></body>'
)
TABLE = f"<mujoco><worldbody>{BALL.format('white', 0)}{BALL.format('red', GAP)}</worldbody></mujoco>"


def main(picture="billiards.png", dt=1e-3):
    """Strike the white ball with 1.5 m/s and a spin of -40 rad/s."""
    balls = Robot.from_mjcf(TABLE)
    q = balls.configuration({"white": (0, 0, RADIUS, 0, 0, 0, 1), "red": (GAP, 0.0, RADIUS, 0, 0, 0, 1)})
    v = np.zeros(balls.nv)
    v[0], v[4] = 1.5, -40.0
    ground = Collisions({"cloth": Plane()}, friction=0.2, restitution=0.95, self_collision=True)
    sim = Simulator(balls, collisions=ground, dt=dt, q=q, v=v)
    run = sim.run(1.5)
    speeds = np.gradient(run.q[:, [0, 7]], run.t, axis=0)
    (hit,) = [impact for impact in run.impacts if impact.energy_lost > 1e-3][:1]
    assert abs((hit.v_plus - hit.v_minus)[[0, 6]].sum()) < 0.2  # friction between the balls lifts them a little
    figure, axes = plt.subplots(figsize=(5, 3.5))
    for column, name, color in ((0, "white", "gray"), (1, "red", "tab:red")):
        axes.plot(run.t, speeds[:, column], color=color, label=name)
    axes.axvline(hit.t, linestyle=":", color="black")
    axes.set(xlabel="t [s]", ylabel="speed along the table [m/s]", title="slides, rolls, hits, follows")
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
