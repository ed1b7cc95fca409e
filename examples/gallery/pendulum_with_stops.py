"""A pendulum that swings into a stop: each impact keeps 0.8 of the speed, so 0.64 of the energy."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from constrained_sim import JointLimit, Robot, Simulator

PENDULUM = """<robot name="pendulum"><link name="base"/>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="0" velocity="100"/></joint>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="0.0833" iyy="0.0833" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>"""
RESTITUTION = 0.8


def main(picture="pendulum_with_stops.png", dt=1e-3):
    """Let it swing for four seconds."""
    robot = Robot.from_urdf(PENDULUM, actuated_joints=[])
    stop = JointLimit("stop", "hinge", lower=-0.5, upper=2.0, restitution=RESTITUTION)
    sim = Simulator(robot, [stop], dt=dt, q=robot.configuration({"hinge": 1.2}))
    run = sim.run(4.0)
    for impact in run.impacts:
        ratio = -impact.v_plus[0] / impact.v_minus[0]
        assert abs(ratio - RESTITUTION) < 1e-9
    assert run.q[:, 0].min() > -0.5 - 1e-9
    figure, (above, below) = plt.subplots(2, sharex=True, figsize=(5, 4))
    above.plot(run.t, np.degrees(run.q[:, 0]))
    above.axhline(np.degrees(-0.5), linestyle=":", color="gray")
    above.set(ylabel="angle [degrees]", title=f"{len(run.impacts)} impacts on a stop")
    below.plot(run.t, run.v[:, 0], color="tab:orange")
    below.set(xlabel="t [s]", ylabel="rate [rad/s]")
    figure.tight_layout()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:2])
