"""Programs that tests start are forks of one that has loaded all; they are what they are when started by themselves."""

import contextlib
import json.tool
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ros.live import CONFIG, Process, arguments, free_domain

from constrained_sim.exceptions import NoAnswer
from constrained_sim.process_template import ProcessTemplate
from constrained_sim.testing.ros import forked_program
from constrained_sim.testing.ros.forked_program import ForkedProgram


@pytest.fixture(params=["forked", "alone"])
def start(request, tmp_path, monkeypatch):
    """Return a function that starts one of the package's programs."""
    if request.param == "alone":
        monkeypatch.setattr("constrained_sim.testing.ros.process.template_for", lambda environment: None)
    started = []

    def start(executable, *words):
        started.append(Process(tmp_path, free_domain(), executable, *words))
        assert isinstance(started[-1].popen, ForkedProgram) == (request.param == "forked")
        return started[-1]

    yield start
    for process in started:
        process.stop()


def test_exit_codes_and_output_are_those_of_the_program(start):
    """Also where it refuses its arguments."""
    refused = start("simulator", *arguments(dt=-1.0))
    assert refused.wait(30.0) == 1
    assert "dt" in refused.stderr and "Traceback" not in refused.stderr
    assert refused.ending == "ended with exit code 1"


@pytest.mark.parametrize(("number", "ending"), [("SIGINT", "ended with exit code 0"), ("SIGKILL", "killed by SIGKILL")])
def test_signals_reach_it(start, number, ending):
    """A simulator ends well at SIGINT, and at SIGKILL at once."""
    process = start("simulator", *arguments())
    end = time.monotonic() + 30.0
    while "simulating leg" not in process.stderr and time.monotonic() < end:
        time.sleep(0.05)
    with pytest.raises(NoAnswer, match=r"still running after 0\.1"):
        process.wait(0.1)
    assert process.family() == [process.pid] and process.ending == ""
    process.popen.send_signal(getattr(signal, number))
    process.wait(30.0)
    assert process.ending.endswith(ending)
    process.popen.send_signal(signal.SIGINT)  # to nobody
    process.wait_for_family()


def test_it_runs_where_it_is_told(start, tmp_path, monkeypatch):
    """Its folder and its session are its own."""
    monkeypatch.chdir(tmp_path)
    process = start("monitor")
    assert process.family() == [process.pid] and os.getsid(process.pid) == process.pid != os.getsid(0)
    end = time.monotonic() + 10.0
    while (folder := Path(f"/proc/{process.pid}/cwd").resolve()) != tmp_path and time.monotonic() < end:
        time.sleep(0.01)
    assert folder == tmp_path


def test_programs_end_with_the_process_that_started_them(tmp_path):
    """Killed, a test leaves no simulator behind."""
    script = """
import sys, time
from pathlib import Path
from constrained_sim.testing.ros import Process, arguments, free_domain, package_executable
words = arguments(Path(sys.argv[2]), {})
process = Process(Path(sys.argv[1]), free_domain(), [package_executable("simulator"), *words])
print(process.pid, flush=True)
time.sleep(60.0)
"""
    words = [sys.executable, "-c", script, str(tmp_path), str(CONFIG)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as owner:
        pid = int(owner.stdout.readline())
        os.kill(pid, 0)
        owner.kill()
    end = time.monotonic() + 10.0
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.kill(pid, 0)
            time.sleep(0.05)
        pytest.fail("the simulator runs on")


def test_a_template_that_ends_is_told_of():
    """With what it wrote; nobody waits for it."""

    def unknown():
        """Be in a module that the template does not find."""

    unknown.__module__ = "no_such_module"
    template = ProcessTemplate(unknown, lambda how, text: NoAnswer(f"{how}: {text}"), os.environ)
    with pytest.raises(NoAnswer, match=r"(?s)has ended: .*No module named 'no_such_module'"):
        template.fork(os.getpid)
    assert not template.is_alive
    with pytest.raises(NoAnswer, match="are longer than"):
        template.fork(os.getpid, [], "x" * 100_000)
    template.close()


def test_what_keeps_a_template_from_starting_keeps_no_program(tmp_path, monkeypatch):
    """It is started by itself; so it is where there are templates of two environments."""
    monkeypatch.setattr(forked_program, "_templates", {})
    monkeypatch.setattr(forked_program, "load_node", json.tool.main)  # which reads, finds nothing and ends
    monkeypatch.setenv("LANGUAGE", "of this test")
    assert Process(tmp_path, free_domain(), "monitor", "--help").wait(30.0) == 0
    monkeypatch.setattr(forked_program, "MOST", 1)
    monkeypatch.setenv("LANGUAGE", "of another")
    assert forked_program.template_for(os.environ) is None


def test_threads_of_the_environment_do_not_count(tmp_path, monkeypatch):
    """A node bounds them itself, and a template has one thread."""
    monkeypatch.setattr(forked_program, "_templates", {})
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    process = Process(tmp_path, free_domain(), "monitor", "--help")
    assert isinstance(process.popen, ForkedProgram) and process.wait(30.0) == 0
