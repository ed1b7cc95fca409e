"""The robots of the package with their controllers, leg, quadruped, four-bar and Cassie, at twelve instants."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pinocchio as pin

from constrained_sim import load_config
from constrained_sim.controllers import CONTROLLERS
from constrained_sim.shipped import shipped_robots

MODES = {"leg": "hop", "quadruped": "trot", "four_bar": "turn", "cassie": "stand"}


def joints(robot, q):
    """Return (n, 2) where the joints are in the plane of x and z, and the parent of each."""
    data = robot.model.createData()
    pin.forwardKinematics(robot.model, data, q)
    return np.array([[place.translation[0], place.translation[2]] for place in data.oMi[1:]]), robot.model.parents


def main(picture="{}.png", seconds=1.0, names=tuple(MODES)):
    """Draw each robot at twelve instants."""
    for name in names:
        config = load_config(shipped_robots()[name])
        law = CONTROLLERS[name](config, MODES[name])
        run = config.simulator().run(seconds, law.efforts)
        figure, axes = plt.subplots(figsize=(5, 4))
        for number, row in enumerate(np.linspace(0, len(run.t) - 1, 12).astype(int)):
            points, parents = joints(config.robot, run.q[row])
            for child, parent in enumerate(parents[1:]):
                if parent:
                    axes.plot(*points[[child, parent - 1]].T, color=plt.cm.viridis(number / 12), linewidth=1)
        axes.set(xlabel="x [m]", ylabel="z [m]", title=f"{name}: {seconds:g} s, {len(run.impacts)} impacts")
        axes.axis("equal")
        figure.tight_layout()
        figure.savefig(picture.format(name))
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
