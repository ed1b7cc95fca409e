"""Kernels are there before a simulation needs them."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import constrained_sim
from constrained_sim import load_kernels
from constrained_sim.compilation.kernel import KERNELS
from constrained_sim.compilation.sources import kernel_code
from constrained_sim.exceptions import UnknownName
from constrained_sim.precompile import compile_kernels

SCRIPT = """
import sys
import time
from constrained_sim import Wrench, load_config, load_kernels
from constrained_sim.compilation.kernel import KERNELS

def loaded():
    entrances = [kernel.entrance for kernel in KERNELS if "entrance" in vars(kernel)]
    return {(kernel.name, signature) for kernel in [*KERNELS, *entrances] for signature in kernel.signatures}

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
from constrained_sim.linalg.elimination import solve
print("before", flush=True, file=sys.stderr)
print(*solve(numpy.eye(2), numpy.ones(2)))
"""
"""A process that needs a few kernels."""
FOUR = "eliminate", "solve", "solve.entrance", "substitute"
"""Those kernels."""


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
    assert "compiling kernels, once on this machine: 1 of 4" in after
    assert second[1] == "before\n"


ALL = """
import numpy
from constrained_sim import precompile as build
from constrained_sim.linalg.elimination import solve
build.KINDS = {"few": lambda: print("few", *solve(numpy.eye(2), numpy.ones(2)))}
build.compile_kernels(kinds=["few"])
print("missing")
build.compile_missing()
"""
"""A process that compiles kernels of one kind, and then all that are missing."""


def test_all_kernels_are_compiled_once_on_a_host(tmp_path):
    """Some are not all; the second process knows that all are there, and tries none."""
    first, second = (run(ALL, NUMBA_CACHE_DIR=str(tmp_path))[0].splitlines() for _ in range(2))
    assert first == ["few 1.0 1.0", "missing", "few 1.0 1.0"]
    assert second == ["few 1.0 1.0", "missing"]


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
    assert kept == [f"constrained_sim.linalg.elimination.{name}" for name in FOUR]
    assert not list(tmp_path.rglob("*.lock"))


@pytest.mark.parametrize("kill", [False, True])
def test_a_second_process_compiles_what_is_needed_last_and_ends_with_the_first(tmp_path, kill):
    """Where much is to be compiled, and there is a processor for it; however the first one ends."""
    script = """
import sys, time
from pathlib import Path
from constrained_sim.compilation.second_process import MANY, SECOND, SecondProcess
sys.path.append(Path("of another type"))
SECOND.begin(MANY - 1)
assert SECOND.pid is None
SECOND.begin(MANY)
other = SecondProcess()
other.begin(MANY)
assert other.pid is None, "one for each folder"
end = time.monotonic() + 60.0
while SECOND.pid and not list(Path(sys.argv[1]).rglob("*.bin")):
    assert time.monotonic() < end
    time.sleep(0.1)
print(SECOND.pid)
"""
    if kill:
        script += "sys.stdout.flush(); import os; os.kill(os.getpid(), 9)"
    words, environment = [sys.executable, "-c", script, tmp_path], os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (-9 if kill else 0, "")
    if len(os.sched_getaffinity(0)) < 2:
        assert done.stdout == "None\n"
        return
    assert list(tmp_path.rglob("*.bin"))
    end = time.monotonic() + 10.0
    while is_running(int(done.stdout)):
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(pid):
    """Return whether there is a process, and it has not ended; nobody may have asked for its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def test_an_array_of_another_shape_is_not_assigned(tmp_path):
    """Kernels say so in fewer words; for functions of others Numba has its own."""
    script = """
import numba, numpy
from constrained_sim.compilation.kernel import kernel
@kernel
def put(x, y):
    x[:] = y
for function in put, numba.njit(put.py_func):
    try:
        function(numpy.zeros(2), numpy.zeros(3))
    except ValueError as error:
        print(error)
"""
    ours, theirs = run(script, NUMBA_CACHE_DIR=str(tmp_path))[0].splitlines()
    assert theirs.startswith("cannot assign slice")
    assert "another shape" in ours or ours == theirs  # what Numba 0.59 says is short itself


def test_a_kernel_may_call_itself(tmp_path):
    """As any function of Numba may."""
    script = """
from constrained_sim.compilation.kernel import kernel
@kernel
def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)
print(factorial(5))
"""
    for _ in range(2):
        assert run(script, NUMBA_CACHE_DIR=str(tmp_path))[0] == "120\n"


@pytest.mark.parametrize("lost", FOUR)
def test_machine_code_that_is_lost_is_compiled_again(tmp_path, lost):
    """So is that of its callers, which would call a function of another process; the next process finds all."""
    run(FEW, NUMBA_CACHE_DIR=str(tmp_path))
    [file] = tmp_path.rglob(f"constrained_sim.linalg.elimination.{lost}-*.bin")
    file.unlink()
    second, third = (run(FEW, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert second[0] == third[0] == "1.0 1.0\n"
    assert "compiling kernels" in second[1]
    assert third[1] == "before\n"


def test_a_kernel_that_python_has_called_is_found_at_once():
    """Whether its arrays may be written to or not, from the second call on."""
    script = """
import numpy
from constrained_sim.linalg.elimination import solve
A, b = numpy.eye(2), numpy.ones(2)
fixed = numpy.eye(2)
fixed.flags.writeable = False
asked = []
compile = type(solve).compile
type(solve).compile = lambda self, sig: asked.append(sig) or compile(self, sig)
for _ in range(3):
    print(*solve(A, b), *solve(fixed, b), len(asked))
"""
    first, *others = run(script)[0].splitlines()
    assert first.startswith("1.0 1.0 1.0 1.0 ")
    assert others == [first, first]


def test_two_threads_compile_kernels_that_call_each_other(tmp_path):
    """Each keeps what its own kernels call: the next process finds all."""
    script = """
import threading
import numpy
from constrained_sim.linalg import elimination
found = {}
def solve():
    found["solve"] = elimination.solve(numpy.eye(2), numpy.ones(2))
def substitute():
    found["substitute"] = elimination.substitute(numpy.eye(2), numpy.arange(2), numpy.ones(2))
threads = [threading.Thread(target=task) for task in (solve, substitute)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*found["solve"], *found["substitute"])
"""
    first, second = (run(script, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first[0] == second[0] == "1.0 1.0 1.0 1.0\n"
    assert "compiling" not in second[1]


def test_machine_code_of_other_sources_is_not_used(tmp_path):
    """A change of a kernel's code, however the package is installed, leads to other machine code; prose does not."""
    package, source = tmp_path / "constrained_sim", Path(constrained_sim.__file__).resolve().parent
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)}
    assert run(FEW, **environment)[0] == "1.0 1.0\n"
    kernels = package / "linalg" / "elimination.py"
    text, beginning = kernels.read_text(), "def substitute(factors, pivots, b):"
    head, found, tail = text.partition(beginning)
    assert found
    kernels.write_text(f'"""Other words."""  # and more{text.removeprefix(text.splitlines()[0])}')
    assert run(FEW, **environment) == ("1.0 1.0\n", "before\n")
    kernels.write_text(head + found + tail.replace("x, n = b.copy(), b.shape[0]", "x, n = 2.0 * b, b.shape[0]", 1))
    assert run(FEW, **environment)[0] == "2.0 2.0\n"


KERNEL_FILE = """
from compiled.compilation.kernel import kernel
from compiled import sizes
from compiled.helpers import Pair, limit as most

@kernel
def clipped(x: float) -> float:
    \"\"\"Return it.\"\"\"
    return Pair(min(most(x), sizes.LARGEST), OFFSET)

OFFSET = [1.0]
OFFSET[0] = 2.0

def unrelated():
    return 1
"""
HELPERS = """
from typing import NamedTuple

from compiled.sizes import SMALLEST

class Pair(NamedTuple):
    first: float
    second: float

def limit(x):
    return max(x, SMALLEST)
"""
SIZES = "LARGEST = 3.0\nSMALLEST = 1.0\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "matters"),
    [
        ("kernels.py", "min(", "max(", True),
        ("kernels.py", "Return it.", "Return it, clipped.", False),
        ("kernels.py", "x: float", "x: int", False),
        ("kernels.py", "return 1", "return 2", False),
        ("kernels.py", "= 2.0", "= 3.0", True),
        ("helpers.py", "max(", "min(", True),
        ("helpers.py", "first: float\n    second: float", "second: float\n    first: float", True),
        ("sizes.py", "= 1.0", "= 2.0", True),
        ("sizes.py", "= 3.0", "= 4.0", True),
        ("sizes.py", "LARGEST", "# the largest\nLARGEST", False),
    ],
)
def test_code_of_kernels_is_all_that_they_name(tmp_path, file, old, new, matters):
    """Constants, functions and classes of whichever file; no docstring, comment, annotation or other function."""
    files = {"kernels.py": KERNEL_FILE, "helpers.py": HELPERS, "sizes.py": SIZES}
    found = []
    for edited in (files, files | {file: files[file].replace(old, new)}):
        package = tmp_path / f"{len(found)}" / "compiled"
        package.mkdir(parents=True)
        for name, text in edited.items():
            (package / name).write_text(text)
        found.append(kernel_code(package))
    assert (found[0] != found[1]) == matters


def test_nowhere_to_keep_machine_code(tmp_path):
    """Who can keep it in a temporary folder only is told, once; the next process finds it there, and keeps nothing."""
    before = {"NUMBA_CACHE_DIR": "/dev/null/none", "XDG_CACHE_HOME": "/dev/null/none", "TMPDIR": str(tmp_path)}
    first, second = (run(FEW, **before) for _ in range(2))
    assert first[0] == second[0] == "1.0 1.0\n"
    assert first[1].count("no folder for compiled kernels can be written to") == 1
    assert "compiling kernels" in first[1]
    assert second[1] == "before\n"


def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path):
    """Machine code in a temporary folder runs only where nobody else can have put it there."""
    folder = tmp_path / f"constrained_sim-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    said = run(FEW, NUMBA_CACHE_DIR="/dev/null/none", XDG_CACHE_HOME="/dev/null/none", TMPDIR=str(tmp_path))
    assert said[0] == "1.0 1.0\n"
    assert "every process compiles them again" in said[1]
    assert not list(folder.iterdir())


def test_every_kernel_has_one_signature():
    """Arrays that may not be written to, literals and other layouts make no second one; inlined ones may differ."""
    compile_kernels()
    several = {kernel.__qualname__: kernel.signatures for kernel in KERNELS if len(kernel.signatures) > 1}
    inlined = {kernel.__qualname__ for kernel in KERNELS if kernel.inline}
    assert not several.keys() - inlined


def test_messages_need_no_simulator():
    """Who imports the package waits for no library until a public name is used; all public names are there then."""
    script = """
import sys
import time
import constrained_sim
print(*sorted({"pinocchio", "numba", "scipy", "numpy"} & {*sys.modules}))
print(all(getattr(constrained_sim, name) is not None for name in constrained_sim.__all__))
"""
    assert run(script)[0] == "\nTrue\n"


def test_folders_that_nobody_uses_are_removed(tmp_path):
    """Who makes a folder of machine code removes those without a mark for a month, and no others; loading marks one."""
    place = tmp_path / "constrained_sim"
    old, recent, other = (place / name for name in ("kernels-old-one", "kernels-new-one", "something"))
    for folder, days in ((old, 31), (recent, 29), (other, 31)):
        folder.mkdir(parents=True)
        (folder / "code.bin").touch()
        age(folder, days)
    run(FEW, NUMBA_CACHE_DIR=str(tmp_path))
    made = {path.name for path in place.iterdir()} - {recent.name, other.name}
    assert len(made) == 1, "the old one is gone, the new one is there"
    folder = place / made.pop()
    age(folder, 31)
    run(FEW, NUMBA_CACHE_DIR=str(tmp_path))
    assert time.time() - folder.stat().st_mtime < 3600.0


def age(folder, days):
    """Let `folder` be last changed so many days ago."""
    then = time.time() - 86400.0 * days
    os.utime(folder, (then, then))


def test_a_lock_that_is_gone_is_taken_anew(tmp_path):
    """Three processes ask for a lock file that each removes at its end: no two of them hold it at once."""
    script = """
import sys, time
from pathlib import Path
from constrained_sim.compilation.machine_code import _locked
lock, held = Path(sys.argv[1]) / "lock", Path(sys.argv[1]) / "held"
for _ in range(100):
    with _locked(lock):
        held.touch(exist_ok=False)
        time.sleep(0.001)
        held.unlink()
"""
    all_three = [subprocess.Popen([sys.executable, "-c", script, tmp_path], stderr=subprocess.PIPE) for _ in range(3)]
    assert [(process.communicate()[1], process.returncode) for process in all_three] == [(b"", 0)] * 3
