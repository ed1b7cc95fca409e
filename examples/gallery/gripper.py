"""Two fingers squeeze a ball and lift it: friction carries it while 2 mu f > m g."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from constrained_sim import Collisions, Plane, Robot, Simulator

GRIPPER = """<mujoco><worldbody>
  <body name="hand" pos="0 0 0.1"><joint name="lift" type="slide" axis="0 0 1"/><inertial pos="0 0 0.2" mass="0.5"
    diaginertia="1e-3 1e-3 1e-3"/>
    <body name="left" pos="-0.06 0 0"><joint name="left" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.01 0.03 0.03" mass="0.1"/></body>
    <body name="right" pos="0.06 0 0"><joint name="right" type="slide" axis="-1 0 0"/>
      <geom type="box" size="0.01 0.03 0.03" mass="0.1"/></body></body>
  <body name="ball" pos="0 0 0.1"><freejoint name="ball"/><geom type="sphere" size="0.04" mass="0.2"/></body>
</worldbody></mujoco>"""
PEDESTAL, WEIGHT, FRICTION = 0.06, 0.2 * 9.81, 0.6


def main(picture="gripper.png", dt=1e-3):
    """Lift with three grips, of which the first is too weak."""
    robot = Robot.from_mjcf(GRIPPER, actuated_joints=["lift", "left", "right"])
    at = {name: robot.joint_models[name].idx_v for name in ("lift", "left", "right")}
    ball = robot.joint_models["ball"].idx_q
    scene = Collisions({"pedestal": Plane(offset=PEDESTAL)}, friction=FRICTION, self_collision=True)
    q = robot.configuration({"lift": 0, "left": 0, "right": 0, "ball": (0, 0, 0.1, 0, 0, 0, 1)})
    figure, axes = plt.subplots(figsize=(5, 3.5))
    for grip in (1.0, 2.0, 4.0):

        def efforts(t, q, v, grip=grip):
            lift = 1000.0 * (0.05 * min(max(t - 0.3, 0.0), 1.0) - q[at["lift"]]) - 60.0 * v[at["lift"]]
            return [0.7 * 9.81 + lift, grip - 5.0 * v[at["left"]], grip - 5.0 * v[at["right"]]]

        run = Simulator(robot, collisions=scene, dt=dt, q=q).run(1.0, efforts)
        risen = run.q[-1, ball + 2] - run.q[0, ball + 2]
        assert (risen > 0.01) == (2 * FRICTION * grip > WEIGHT), (grip, risen)
        axes.plot(run.t, 1e3 * run.q[:, ball + 2], label=f"{grip:g} N", linewidth=6 - grip)
    axes.set(xlabel="t [s]", ylabel="height of the ball [mm]", title="lifted where the grip is strong enough")
    axes.legend()
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
