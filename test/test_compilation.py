"""Kernels are there before a simulation needs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from constrained_sim import load_kernels
from constrained_sim.exceptions import UnknownName

SCRIPT = """
import gc, sys
from numba.core.dispatcher import Dispatcher
from constrained_sim import Wrench, load_config, load_kernels

def loaded():
    kernels = [item for item in gc.get_objects() if isinstance(item, Dispatcher)]
    return {(kernel.py_func.__qualname__, signature) for kernel in kernels for signature in kernel.signatures}

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


def test_the_first_compilation_is_announced(tmp_path):
    """Once per process that compiles kernels, however many; never by one that finds them in the cache."""
    script = """
import numba, numpy
from constrained_sim.contact.kernels import solve
from constrained_sim.solvers.kernels import cholesky
numba.njit(lambda x: x + 1)(1)
numba.njit(eval("lambda x: x + 2", {}))(1)  # a function of no module
print("before", flush=True, file=__import__("sys").stderr)
solve(numpy.eye(2), numpy.ones(2)), cholesky(numpy.eye(2))
"""
    run, environment = [sys.executable, "-c", script], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(run, capture_output=True, text=True, check=True, env=environment).stderr for _ in range(2)
    )
    before, _, after = first.partition("before\n")
    assert before == ""
    assert after.count("\n") == 1
    assert "constrained_sim compiles kernels" in after
    assert second == "before\n"
