"""Kernels are there before a simulation needs them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import constrained_sim
from constrained_sim import load_kernels
from constrained_sim.compilation.build import compile_kernels
from constrained_sim.compilation.kernel import KERNELS
from constrained_sim.exceptions import UnknownName

SCRIPT = """
import sys
from constrained_sim import Wrench, load_config, load_kernels
from constrained_sim.compilation.kernel import KERNELS

def loaded():
    return {(kernel.__qualname__, signature) for kernel in KERNELS for signature in kernel.signatures}

config = load_config(sys.argv[1])
load_kernels(config.simulation.stepper, config.simulation.solver)
before = loaded()
sim = config.simulator()
statuses = set()
pushes = [Wrench(sim.robot.root_link)]  # with which steps are not compiled whole
for step in range(600):
    result = sim.step([2.0 * (step % 400 > 200)] * sim.robot.nu, pushes[: step // 400])
    statuses |= {contact.status.name for contact in result.contact_forces.values()}
    sim.active_rows(), sim.largest_violation(), sim.kinetic_energy(), sim.integration_energy()
assert statuses >= {"OPEN", "STICKING", "SLIDING"}, statuses
print(*sorted({name for name, _ in loaded() - before}))
"""


@pytest.mark.parametrize("robot", ["leg", "quadruped"])
def test_no_kernel_is_missing_at_touchdown(robot):
    """After `load_kernels` a robot falls, lands, slides and is pushed without loading or compiling any other kernel."""
    config = Path(__file__).parents[1] / "config" / f"{robot}.yaml"
    run = subprocess.run([sys.executable, "-c", SCRIPT, config], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.split() == []


def test_kernels_of_nothing_known_are_refused():
    """A name that does not exist is an error, not nothing to load."""
    with pytest.raises(UnknownName, match="event_driven"):
        load_kernels("event-driven")
    with pytest.raises(UnknownName, match="null_space"):
        load_kernels(solver="nullspace")


FEW = """
import sys, numpy
from constrained_sim.contact.kernels import solve
print("before", flush=True, file=sys.stderr)
print(*solve(numpy.eye(2), numpy.ones(2)))
"""
"""A process that needs a few kernels."""


def run(script, **environment):
    """Return what a process that runs `script` writes to its standard output and error, and that it ends well."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=os.environ | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_compilation_is_announced_where_it_is_needed(tmp_path):
    """The first process says how many kernels it compiles; the second finds them, and says nothing."""
    first, second = (run(FEW, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first[0] == second[0] == "1.0 1.0\n"
    before, _, after = first[1].partition("before\n")
    assert before == ""
    assert "compiling kernels, once on this machine: 1 of 3" in after
    assert second[1] == "before\n"


def test_two_processes_compile_a_kernel_once(tmp_path):
    """Who comes second waits for the first: both get the same, and there is one file for each kernel."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    both = [
        subprocess.Popen([sys.executable, "-c", FEW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [out for out, _ in said] == [b"1.0 1.0\n"] * 2
    kept = sorted(path.name.partition("-")[0] for path in tmp_path.rglob("*.bin"))
    assert kept == [f"constrained_sim.contact.kernels.{name}" for name in ("eliminate", "solve", "substitute")]
    assert not list(tmp_path.rglob("*.lock"))


def test_machine_code_of_other_sources_is_not_used(tmp_path):
    """A change of any file with kernels, in whatever way the package is installed, leads to other machine code."""
    package = tmp_path / "constrained_sim"
    shutil.copytree(Path(constrained_sim.__file__).resolve().parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)}
    assert run(FEW, **environment)[0] == "1.0 1.0\n"
    kernels = package / "contact" / "kernels.py"
    text = kernels.read_text()
    changed = text.replace("x, n = b.copy(), b.shape[0]\n    for k in range(n):\n        x[k], x[pivots[k]]", "x, n = 2.0 * b, b.shape[0]\n    for k in range(n):\n        x[k], x[pivots[k]]")
    assert changed != text
    kernels.write_text(changed)
    assert run(FEW, **environment)[0] == "2.0 2.0\n"


def test_nowhere_to_write(tmp_path):
    """A user who may write nowhere but to a temporary folder uses what is there, or is warned once."""
    if os.getuid() == 0:
        limits = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *CAPABILITIES]
    else:
        limits = []
    place = tmp_path / "tmp"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    script = SLIP
    base = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    base |= {"HOME": "/nonexistent", "TMPDIR": str(place), "NUMBA_CACHE_DIR": "/nonexistent", "_ROS_WHEELS_BOOTSTRAP_COMPLETE": "1"}
    done = subprocess.run([*limits, sys.executable, "-c", script], capture_output=True, text=True, check=False, env=base)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no folder for compiled kernels can be written to") == 1


@pytest.fixture(scope="module")
def compiled():
    """All kernels, compiled by a little of everything."""
    compile_kernels()
    return KERNELS


def test_every_kernel_has_one_signature(compiled):
    """Arrays that may not be written to, literals and other layouts make no second one; small inlined ones may differ."""
    several = {kernel.__qualname__: kernel.signatures for kernel in compiled if len(kernel.signatures) > 1 and not kernel.inline}
    assert not several


def test_messages_need_no_simulator():
    """Who imports the package, or its messages, waits neither for Pinocchio nor for the compiler."""
    script = """
import sys
import constrained_sim
heavy = {"pinocchio", "numba", "scipy", "numpy"}
print(*sorted(heavy & {*sys.modules}), constrained_sim.__name__)
print(sorted(constrained_sim.__all__) == sorted(set(vars(__import__("constrained_sim.public").public)) & {*constrained_sim.__all__}))
"""
    assert run(script)[0] == "constrained_sim\nTrue\n"
