"""All that talks to ROS can be imported: no type checker looks at it, and a name that has moved shows only then."""

import pkgutil
import subprocess
import sys

import constrained_sim.ros

OF_LAUNCH = {"launch_arguments", "launching"}
"""Modules of the launch files, which need the launch system."""


def test_every_module_finds_what_it_needs():
    """In a process of its own, since one of them says what signals do."""
    names = {module.name for module in pkgutil.iter_modules(constrained_sim.ros.__path__)} - OF_LAUNCH
    assert {"node", "viewer", "monitor", "replay"} <= names
    imports = "; ".join(f"import constrained_sim.ros.{name}" for name in sorted(names))
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
