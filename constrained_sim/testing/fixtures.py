"""pytest fixtures: a test module enables them by ``pytest_plugins = ["constrained_sim.testing.fixtures"]``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from constrained_sim.testing.direct import DirectRobot
from constrained_sim.testing.simulated_robot import SimulatedRobot

if TYPE_CHECKING:
    from constrained_sim.testing.studies import FinishedStudy

Simulate = Callable[..., SimulatedRobot]
"""Starts a simulated robot that ends with the test."""


@pytest.fixture
def simulate_directly() -> Iterator[Simulate]:
    """Return a function that takes what DirectRobot does and returns one."""
    with ExitStack() as robots:
        yield lambda *args, **options: robots.enter_context(DirectRobot(*args, **options))


@pytest.fixture
def simulate_in_ros(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulate]:
    """Return a function that takes what RosRobot does and returns one; skipped where there is no ROS.

    DDS stays on this machine, and logs stay out of the home folder. What the processes wrote to standard error is shown
    with a test that fails.
    """
    pytest.importorskip("rclpy", reason="needs ROS 2: rclpy cannot be imported")
    from constrained_sim.testing.ros import RosRobot

    folder = tmp_path_factory.mktemp("simulated_robot")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as robots:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        patch.delenv("ROS_LOCALHOST_ONLY", raising=False)
        patch.setenv("ROS_LOG_DIR", str(folder))
        robots.callback(_show, folder)
        yield lambda *args, **options: robots.enter_context(RosRobot(*args, **{"folder": folder, **options}))


@pytest.fixture
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., FinishedStudy]:
    """Return a function ``campaign(study, runs)`` that does a study (a file, a mapping, or a Study) on this machine.

    What it returns has ``passed_at_least(share)``, whose message names runs that anyone can do again; ``results`` has
    the table. Needs the extra ``campaign``.
    """
    from constrained_sim.testing.studies import finish_study

    def finish(study: Any, runs: int | None = None, workers: int | None = None) -> FinishedStudy:
        return finish_study(study, runs, tmp_path_factory.mktemp("study"), workers)

    return finish


@pytest.fixture(params=["direct", "ros"])
def simulate(request: pytest.FixtureRequest) -> Simulate:
    """Return a function ``simulate(config, controller, parameters)`` for a controller ``efforts(t, q, v)``.

    The test runs twice: with a DirectRobot and with a RosRobot.
    """
    name = "simulate_directly" if request.param == "direct" else "simulate_in_ros"
    fixture: Simulate = request.getfixturevalue(name)
    return fixture


def _show(folder: Path) -> None:
    """Print what processes wrote to standard error, which pytest captures and shows with a failure."""
    for path in sorted(folder.glob("*.err")):
        if text := path.read_text(errors="replace"):
            print(f"--- standard error of {path.stem}\n{text}", file=sys.stderr)
