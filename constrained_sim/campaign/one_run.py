"""Does one run of a study: what goes in follows from the study and the number of the run alone."""

from __future__ import annotations

import functools
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_sim.campaign.controller import NoisyController, make_controller
from constrained_sim.campaign.measures import FinishedRun
from constrained_sim.campaign.push import in_order
from constrained_sim.campaign.sampling import generator
from constrained_sim.campaign.study import Inputs, Study
from constrained_sim.compilation.background import BACKGROUND
from constrained_sim.config import Config, read_config
from constrained_sim.config_sections import make_robot
from constrained_sim.linalg.blas_threads import single_threaded_blas
from constrained_sim.nanoseconds import control_steps
from constrained_sim.robot import Robot
from constrained_sim.trajectory import Trajectory

if TYPE_CHECKING:
    from constrained_sim.campaign.push import Push
    from constrained_sim.simulator import Controller, Simulator

DONE, RAISED, TIMED_OUT, OUT_OF_MEMORY, DIED = "done", "raised", "timed out", "out of memory", "died"
"""How a run can end."""


@dataclass
class Row:
    """A row of a study's table.

    Attributes:
        run: its number.
        status: how it ended.
        passed: whether it counts as passed.
        reason: why it came to no end, in one line; else empty.
        traceback: where that was; empty if nobody knows.
        values: what varied, by key.
        measures: by name; None where there is none.
    """

    run: int
    status: str
    passed: bool = False
    reason: str = ""
    traceback: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    measures: dict[str, Any] = field(default_factory=dict)


@dataclass
class Outcome:
    """What a run came to.

    Attributes:
        row: of the table.
        trajectory: until the failure, where it failed; None where there is no step of it.
        config: of the simulation; None where it could not be read.
    """

    row: Row
    trajectory: Trajectory | None = None
    config: Config | None = None


def do_run(study: Study, run: int) -> Outcome:
    """Do a `run` of `study`, compiled: it gives the same bits as ever; what it raises becomes a row.

    Raises:
        InvalidValue: no number of a run.
    """
    BACKGROUND.compile_here()
    outcome = Outcome(Row(run, DONE, values=study.values(run)))
    row = outcome.row
    try:
        with warnings.catch_warnings(), single_threaded_blas():
            warnings.simplefilter("ignore")  # of one run in thousands nobody reads them
            inputs = study.inputs(run)
            outcome.config = read_config(inputs.configuration, study.folder, described_robot)
            finished = _simulate(study, run, inputs, outcome.config)
            outcome.trajectory = finished.trajectory
            row.measures = {name: measure.of(finished) for name, measure in study.measures.items()}
    except MemoryError:
        row.status, row.reason, row.traceback = OUT_OF_MEMORY, memory_reason(study), traceback.format_exc()
    except (Exception, SystemExit) as error:
        done = getattr(error, "trajectory", None)
        if done is not None and len(done.t):
            outcome.trajectory = done
        row.status, row.reason, row.traceback = RAISED, _one_line(error), traceback.format_exc()
    row.passed = row.status == DONE and study.condition.holds(row.measures)
    return outcome


@functools.lru_cache(maxsize=8)
def described_robot(kind: str, path_or_xml: str | Path, options: tuple[tuple[str, Any], ...]) -> Robot:
    """Return the robot of a description, read once: robots never change."""
    return make_robot(kind, path_or_xml, options)


def memory_reason(study: Study) -> str:
    """Return the reason of a run that ate memory."""
    return f"its process held more than {study.memory_limit:g} MB"


def _simulate(study: Study, run: int, inputs: Inputs, config: Config) -> FinishedRun:
    """Simulate a run to its end."""
    if study.uses_ros:
        from constrained_sim.campaign.ros_run import simulate_in_ros

        return FinishedRun(config, simulate_in_ros(study, run, inputs, config), None)
    controller: Any = make_controller(study.controller, inputs.options, config, study.robot, study.folder)
    if controller is not None and any(inputs.noise.values()):
        controller = NoisyController(controller, config, inputs.noise, generator(study.seed, run, "noise"))
    sim = config.simulator()
    period = control_steps(config.node.control_period, config.simulation.dt) * config.simulation.dt
    trajectory = run_with_pushes(sim, study.duration, controller, period, inputs.pushes)
    return FinishedRun(config, trajectory, sim.largest_violation()[0])


def run_with_pushes(
    sim: Simulator, duration: float, controller: Controller | None, period: float, pushes: tuple[Push, ...]
) -> Trajectory:
    """Return the run of a simulation that begins at 0, with `pushes`.

    Args:
        sim: at its beginning.
        duration: [s].
        controller: ``controller(t, q, v) -> tau``.
        period: control period [s]: pushes begin with one.
        pushes: that act.

    Raises:
        InvalidValue: a push that would begin after the end.

    What ends the run early has the run until then as its attribute ``trajectory``.
    """
    periods = max(1, round(duration / period))
    parts, now = list[Trajectory](), 0
    try:
        for begin, push in in_order(pushes, period, periods):
            if begin > now:
                parts.append(sim.run((begin - now) * period, controller, period))
                now = begin
            sim.apply(push.wrench, push.duration)
        parts.append(sim.run((periods - now) * period, controller, period))
    except BaseException as error:
        last = getattr(error, "trajectory", None)
        if done := [*parts, *([] if last is None else [last])]:
            vars(error)["trajectory"] = Trajectory.joined(done)
        raise
    return Trajectory.joined(parts)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
