"""While another process compiles the kernels, Python runs their source: the results are those of machine code."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import test_posture
from test_posture import TO_COMPARE, UNCOMPILED, assert_as_uncompiled

from constrained_sim.compilation.background import LOCK
from constrained_sim.compilation.machine_code import folders


@pytest.fixture
def place(tmp_path):
    """Return the relative path of a folder; processes that keep machine code there are killed at the end."""
    folder = Path(os.path.relpath(tmp_path))
    yield folder
    for pid in processes_at(folder):
        os.kill(pid, signal.SIGKILL)


def processes_at(place):
    """Return the processes that keep machine code at a `place`."""
    found, variable = [], f"\0NUMBA_CACHE_DIR={place}\0".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if variable in b"\0" + (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def environment(place):
    """Return the variables of a process that keeps machine code at a `place`, and looks nowhere else."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    places = dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"), str(place))
    return os.environ | places | {"PYTHONPATH": path}


def run(script, place):
    """Return the finished process that has run a `script`."""
    words = [sys.executable, "-c", script]
    return subprocess.run(words, env=environment(place), capture_output=True, text=True, check=False, timeout=300)


@contextmanager
def compiled_meanwhile(place):
    """Let processes find that another one compiles the kernels at a `place`, where none is yet; yield their folder."""
    folder = place / "constrained_sim" / folders()[0].name
    folder.mkdir(parents=True)
    with (folder / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def test_source_and_machine_code_do_the_same(place):
    """To rounding: scenes with contacts, limits, loops, drives and dry friction."""
    file = place / "runs.npz"
    words = [sys.executable, "-c", UNCOMPILED, Path(__file__).parent, file, *(scene.__name__ for scene in TO_COMPARE)]
    with compiled_meanwhile(place) as folder:
        done = subprocess.run(words, env=environment(place), check=True, timeout=300, capture_output=True, text=True)
        assert not list(folder.glob("*.bin"))
    assert done.stderr.count("\n") == 1, done.stderr
    assert "being compiled in the background" in done.stderr
    assert_as_uncompiled(file)


TURN = """
import sys, time
sys.path[:0] = sys.argv[1:2]
import numpy as np
import test_posture
from constrained_sim.compilation import background
from constrained_sim.steppers import substep_runner
background.PATIENCE = float(sys.argv[3])
sim, posture = test_posture.falling_leg()
states = []
for k in range(60):
    if k == 20:
        print("interpreted", flush=True)
        assert input() == "go on"
        time.sleep(2 * background.LOOK)
    sim.step(posture.efforts(sim.state.q, sim.state.v))
    states.append([*sim.state.q, *sim.state.v])
np.save(sys.argv[2], states)
print(substep_runner.run_substep.runs_source())
"""
"""A process that takes some steps, waits for a word, and takes others."""


@pytest.mark.parametrize("patience", [1e9, 0.0])
def test_a_simulation_turns_to_machine_code_when_it_is_there(place, patience):
    """In the middle of its steps, or at the first one where it has no patience: then it says how far that is."""
    words = [sys.executable, "-c", TURN, Path(__file__).parent, place / "states.npy", str(patience)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with compiled_meanwhile(place) as folder:
        process = subprocess.Popen(words, env=environment(place), **pipes)
        if patience:
            assert process.stdout.readline() == "interpreted\n"
        else:
            lines = iter(process.stderr.readline, "")
            assert next(line for line in lines if "compiling kernels" in line).endswith("(run_substep)\n")
        files = next(place for place in folders() if place.is_dir()).glob("*.bin")
        for file in sorted(files, key=lambda file: ".entrance-" in file.name):  # what is called comes before who calls
            shutil.copy(file, folder)
    out, errors = process.communicate("go on\n", timeout=300)
    assert (process.returncode, out.splitlines()[-1]) == (0, "False"), errors
    sim, posture = test_posture.falling_leg()
    for state in np.load(place / "states.npy"):
        sim.step(posture.efforts(sim.state.q, sim.state.v))
        expected = [*sim.state.q, *sim.state.v]
        np.testing.assert_allclose(state, expected, rtol=0, atol=1e-11)


SHORT = """
import numpy as np
import test_posture
from constrained_sim.compilation.background import BACKGROUND, Background
sim, posture = test_posture.falling_leg()
sim.step()
assert BACKGROUND.is_at_work()
other = Background()
assert other.begin(100) and other.is_at_work()
"""


def test_what_compiles_goes_on_when_a_short_program_has_ended(place):
    """One process does it, whoever has begun it; it is nobody's child."""
    for _ in range(2):
        done = run(SHORT, place)
        assert done.returncode == 0, done.stderr
    (compiling,) = (pid for pid in processes_at(place) if "second_process" not in command(pid))
    assert Path(f"/proc/{compiling}/stat").read_text().rpartition(") ")[2].split()[16] == "10", "niceness"
    end = time.monotonic() + 300.0
    while not list(place.rglob("*.bin")):
        assert time.monotonic() < end
        time.sleep(0.1)


def command(pid):
    """Return the command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text()


def test_it_begins_at_once():
    """The simulation waits until it has: it loads the standard library, and what it needs when it is alone."""
    code = "import sys, constrained_sim.compilation.detached_process; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "numba", "pinocchio"} & set(done.stdout.split())


THREADS = """
from concurrent.futures import ThreadPoolExecutor
from constrained_sim.compilation.background import BACKGROUND
with ThreadPoolExecutor(4) as threads:
    assert list(threads.map(BACKGROUND.begin, [100] * 4)) == [True] * 4
"""


def test_threads_share_it(place):
    """None of them compiles what the others wait for."""
    with compiled_meanwhile(place):
        done = run(THREADS, place)
    assert (done.returncode, done.stderr.count("being compiled in the background")) == (0, 1), done.stderr


HERE = """
import os, sys
import constrained_sim
from constrained_sim.compilation import background, kernel
def end(kernel, sig):
    print("compiled", kernel.name, file=sys.stderr, flush=True)
    os._exit(1)
kernel.Kernel._compiled = end
"""
"""Beginning of a process that ends where it would compile a kernel."""

STEP = """
background.PATIENCE = 0.0
import test_posture
sim, posture = test_posture.falling_leg()
while True:
    sim.step()
"""


def test_what_the_other_process_leaves_is_compiled_here(place):
    """It was killed while this one waited for it, or cannot compile: that it tells beside the machine code."""
    with compiled_meanwhile(place):
        process = subprocess.Popen(
            [sys.executable, "-c", HERE + STEP], env=environment(place), stderr=subprocess.PIPE, text=True
        )
        lines = iter(process.stderr.readline, "")
        assert next(line for line in lines if "compiling kernels" in line)
    _, errors = process.communicate(timeout=300)
    assert errors.splitlines()[-1].startswith("compiled ")
    broken = place / "broken"
    (broken / "pinocchio").mkdir(parents=True)
    (broken / "pinocchio" / "__init__.py").write_text("raise ImportError('no Pinocchio')\n")
    begin = f"import sys, constrained_sim.public; sys.path.insert(0, {str(broken)!r})\n"
    done = run(begin + HERE + STEP, place)
    assert done.stderr.splitlines()[-1].startswith("compiled "), done.stderr
    (file,) = place.rglob(LOCK)
    assert "ImportError: no Pinocchio" in file.read_text()


NEEDS_BITS = {
    "load_kernels()": "constrained_sim.load_kernels()",
    "a test": "from constrained_sim.testing.direct import DirectRobot as Robot; Robot(LEG).run(0.01)",
    "a run of a study": "from constrained_sim.campaign import do_run, read_study; do_run(read_study(STUDY), 0)",
}
"""Those that need the same bits as others, and what they do."""


@pytest.mark.parametrize("who", NEEDS_BITS)
def test_who_needs_the_bits_waits(place, who):
    """Kernels are compiled when they are called, in a test of a controller and in a study."""
    given = "LEG, STUDY = 'package://constrained_sim/config/leg.yaml', {'robot': 'leg', 'duration': 0.05}\n"
    done = run(HERE + given + NEEDS_BITS[who], place)
    assert done.stderr.startswith("compiled "), done.stderr
    assert not processes_at(place)
