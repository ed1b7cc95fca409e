#!/usr/bin/env python3
"""Makes the robot of config/quadruped.yaml stand, or trot in place: an ordinary rclpy node around a control law."""

import os
import sys

import constrained_sim.ros.early_signals  # noqa: F401  (first: what follows takes a second)

# isort: split

# The matrices are small: threads of the linear algebra library would only wait for each other, and take a core each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from constrained_sim.controllers import QuadrupedController
from constrained_sim.ros.controller import main

if __name__ == "__main__":
    sys.exit(main("quadruped_controller", QuadrupedController, "quadruped.yaml"))
