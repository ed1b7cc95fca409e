"""Tests of controllers in closed loop, with pytest or without, over ROS or without.

A test of a controller, which runs twice, in the test's own process and over DDS, with the same numbers::

    from numpy import array

    from constrained_sim import Wrench
    from constrained_sim.testing import required_friction

    pytest_plugins = ["constrained_sim.testing.fixtures"]


    def test_leg_withstands_a_push(simulate):
        efforts = lambda t, q, v: 60 * (array([0.6, -1.2]) - q[1:]) - 1.5 * v[1:]  # q, v: slider, hip, knee
        leg = simulate("package://constrained_sim/config/leg.yaml", efforts)
        leg.run_until(lambda now: now.contacts["foot"].normal_force > 0, within=0.5, what="touchdown")
        leg.push(Wrench("carriage", force=(0, 0, -10)), duration=0.2)
        assert min(now.position["slider"] for now in leg.run(1.0)) > 0.2
        assert max(required_friction(now.contacts["foot"]) for now in leg.history[1:]) < 0.5

The fixture ``campaign`` does a study: ``campaign("leg_friction.yaml", runs=200).passed_at_least(0.99)``.

The fixture ``simulate`` is for functions ``efforts(t, q, v)``; ``simulate_in_ros`` also takes the command line of a
controller, or the class of an rclpy node. Without pytest the same is ``with DirectRobot(...) as leg:`` and
``with constrained_sim.testing.ros.RosRobot(...) as leg:``. Nothing but ``testing.ros`` needs ROS, and nothing but
``testing.fixtures`` needs pytest.
"""

from constrained_sim.exceptions import ControllerFailed, NoAnswer, SimulationFailed
from constrained_sim.testing.direct import DirectRobot
from constrained_sim.testing.simulated_robot import SimulatedRobot
from constrained_sim.testing.snapshot import Snapshot, assert_throughout, required_friction

__all__ = [
    "ControllerFailed",
    "DirectRobot",
    "NoAnswer",
    "SimulatedRobot",
    "SimulationFailed",
    "Snapshot",
    "assert_throughout",
    "required_friction",
]
