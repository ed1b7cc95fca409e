"""All that talks to ROS can be imported: no type checker looks at it, and a name that has moved shows only then."""

import os
import pkgutil
import subprocess
import sys
from importlib.metadata import version

from catkin_pkg.package import parse_package
from ros.live import ROOT

import constrained_sim.ros

OF_APT = {
    f"python3-{name}"
    for name in ("hypothesis", "matplotlib", "numba", "numpy", "pytest", "rich", "scipy", "typer", "yaml")
}
"""Keys of Python libraries for which ``rosdep resolve`` names a package of apt on Ubuntu 24.04."""

HEAVY = {"pinocchio", "coal", "numba", "scipy", "llvmlite"}
"""Libraries of the simulation."""

OF_LAUNCH = {"launch_arguments", "launching"}
"""Modules of the launch files, which need the launch system."""


def loaded_by(code):
    """Return the names of the modules that a process has loaded after `code`."""
    words = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True).stdout.split())


def test_messages_cost_what_messages_cost():
    """A logger that only listens loads neither the dynamics nor the compiler."""
    loaded = loaded_by("from constrained_sim.msg import ContactForces; ContactForces()")
    assert "constrained_sim.msg" in loaded
    assert not HEAVY & loaded


def test_what_records_begins_at_once():
    """It loads nothing of the simulation: who kills the node while it starts loses what waits for it."""
    loaded = loaded_by("import constrained_sim.ros.recording_process")
    assert "constrained_sim.ros.recording_process" in loaded
    assert not (HEAVY | {"numpy", "rclpy"}) & loaded


def test_modules_are_compiled_once():
    """The environment keeps their bytecode, also where the user's Python writes none: else each process begins late."""
    words = [ROOT / "scripts" / "run", "python", "-c", "import sys; print(sys.dont_write_bytecode)"]
    variables = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    assert subprocess.run(words, env=variables, capture_output=True, text=True, check=True).stdout == "False\n"


def test_rosdep_needs_no_pip():
    """The manifest is valid, and asks rosdep for nothing that comes from pip, which Ubuntu 24.04 refuses."""
    manifest = parse_package(str(ROOT))
    manifest.validate()
    names = {depend.name for depend in [*manifest.exec_depends, *manifest.test_depends]}
    assert {name for name in names if name.startswith("python3-") or name.endswith("-pip")} <= OF_APT
    assert manifest.version == version("constrained_sim")


def test_every_module_finds_what_it_needs():
    """In a process of its own, since one of them says what signals do."""
    names = {module.name for module in pkgutil.iter_modules(constrained_sim.ros.__path__)} - OF_LAUNCH
    assert {"node", "viewer", "monitor", "replay"} <= names
    imports = "; ".join(f"import constrained_sim.ros.{name}" for name in sorted(names))
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
