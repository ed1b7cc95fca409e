#!/usr/bin/env python3
"""Turns the crank of config/four_bar.yaml at a constant rate: an ordinary rclpy node around a control law."""

import os
import sys

import constrained_sim.ros.early_signals  # noqa: F401  (first: what follows takes a second)

# isort: split

# The matrices are small: threads of the linear algebra library would only wait for each other, and take a core each.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from constrained_sim.controllers import FourBarController
from constrained_sim.ros.controller import main

if __name__ == "__main__":
    sys.exit(main("four_bar_controller", FourBarController, "four_bar.yaml"))
