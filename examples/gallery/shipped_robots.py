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
OBLIQUE = np.array([[1.0, 0.35, 0.0], [0.0, 0.2, 1.0]])  # the picture's axes: x and z, seen a little from the side


def ends(held):
    """Return the links on which a contact or an anchor acts, each with the point where it does."""
    both = [(held.link_a, held.point_a), (held.link_b, held.point_b)] if hasattr(held, "link_a") else []
    return [end for end in both if end[1] is not None] or [(held.link, held.point)]


def lines(config, q):
    """Return (n, 2, 2) in the picture: from joint to joint, and from the last joints to what holds or touches."""
    model, data = config.robot.model, config.robot.model.createData()
    pin.forwardKinematics(model, data, q)
    place = [joint.translation for joint in data.oMi]
    found = [(place[parent], place[child]) for child, parent in enumerate(model.parents) if parent]
    for link, point in (end for held in config.constraints for end in ends(held)):
        joint, in_joint = config.robot.link_placement(link)
        found.append((place[joint], data.oMi[joint].act(in_joint.act(np.asarray(point)))))
    return np.array(found) @ OBLIQUE.T


def main(picture="{}.png", seconds=1.0, names=tuple(MODES)):
    """Draw each robot at twelve instants."""
    for name in names:
        config = load_config(shipped_robots()[name])
        law = CONTROLLERS[name](config, MODES[name])
        run = config.simulator().run(seconds, law.efforts)
        figure, axes = plt.subplots(figsize=(5, 4))
        for number, row in enumerate(np.linspace(0, len(run.t) - 1, 12).astype(int)):
            for line in lines(config, run.q[row]):
                axes.plot(*line.T, color=plt.cm.viridis(number / 12), linewidth=1)
        axes.set(xlabel="x [m], y aslant", ylabel="z [m]", title=f"{name}, {MODES[name]}: {len(run.impacts)} impacts")
        axes.axis("equal")
        figure.tight_layout()
        figure.savefig(picture.format(name))
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:2])
