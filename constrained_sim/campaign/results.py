"""Results of a study."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import binomtest

from constrained_sim.campaign.one_run import DONE, Outcome, do_run
from constrained_sim.campaign.table import read_table, schema_of, trajectory_file
from constrained_sim.exceptions import ConfigError
from constrained_sim.trajectory import Trajectory
from constrained_sim.validation import Array, known

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from constrained_sim.campaign.study import Study


class Interval(NamedTuple):
    """A confidence interval of a share.

    Attributes:
        lower: bound.
        upper: bound.
    """

    lower: float
    upper: float


class Results:
    """The table of a study.

    Attributes:
        study: that was done.
        directory: with the table's parts, and trajectories that were kept.
    """

    def __init__(self, study: Study, directory: Path, temporary: TemporaryDirectory[str] | None = None) -> None:
        """Take the results of `study` in a directory; a `temporary` one ends with this object."""
        self.study, self.directory, self._temporary = study, directory, temporary
        self._columns: dict[str, Any] = {}

    @functools.cached_property
    def table(self) -> Any:
        """The whole table, of PyArrow, in the order of runs, with all tracebacks; :meth:`column` holds less memory.

        Columns: ``run``, ``status``, ``passed``, ``reason``, ``traceback``, then variations and measures.
        """
        return read_table(self.directory)

    def column(self, name: str) -> Any:
        """Return (n,) a column as an array of NumPy; numbers that are missing are NaN.

        Raises:
            UnknownName: no such column.
        """
        if name not in self._columns:
            known("column", name, schema_of(self.study).names)
            self._columns[name] = read_table(self.directory, list({"run", name}))[name].to_numpy()
        return self._columns[name]

    @property
    def runs(self) -> int:
        """Number of runs that are done."""
        return len(self.column("run"))

    @property
    def passed(self) -> int:
        """Number of runs that passed."""
        return int(np.count_nonzero(self.column("passed")))

    @property
    def share_passed(self) -> float:
        """Share of the runs that passed."""
        return self.passed / self.runs

    @property
    def failures(self) -> list[int]:
        """Runs that did not pass."""
        return [int(run) for run in self.column("run")[~self.column("passed").astype(np.bool_)]]

    def interval(self, confidence: float = 0.95) -> Interval:
        """Return the interval of Clopper and Pearson of the share that passes (exact, for independent runs)."""
        found = binomtest(self.passed, self.runs).proportion_ci(confidence, method="exact")
        return Interval(float(found.low), float(found.high))

    def worst(self, count: int | None = None, only_done: bool = False) -> list[int]:
        """Return the runs whose measure ``worst_by`` is largest, worst first; those that came to no end before all.

        Args:
            count: of runs; None: as the study says.
            only_done: leave out those that came to no end.
        """
        count = self.study.worst if count is None else count
        ended = self.column("status") != DONE
        badness: Array = np.zeros(self.runs)
        if self.study.measures:
            badness = np.nan_to_num(self.column(self.worst_by), nan=-np.inf)
        failed = ~self.column("passed").astype(np.bool_)
        order = np.lexsort((self.column("run"), -badness, ~failed, ~ended))
        if only_done:
            order = order[~ended[order]]
        return [int(run) for run in self.column("run")[order[:count]]]

    @property
    def worst_by(self) -> str:
        """The measure that says which run is worse."""
        return self.study.worst_by or next(iter(self.study.measures))

    def trajectory(self, run: int) -> Trajectory:
        """Return the trajectory of a `run`: the file that was kept, or the run once more, the same bit by bit.

        Of one that raised, it goes until then.

        Raises:
            ConfigError: there is no step of it.
        """
        kept = trajectory_file(self.directory, run)
        if kept.is_file():
            return Trajectory.load(kept)
        outcome = self.replay(run)
        if outcome.trajectory is None:
            raise ConfigError(f"run {run} {outcome.row.status}: {outcome.row.reason}")
        return outcome.trajectory

    def replay(self, run: int) -> Outcome:
        """Return what a `run` comes to, in this process, without limits of time and memory."""
        return do_run(self.study, run)

    def report(self, path: Path | str) -> None:
        """Write a page (HTML) about the results.

        Raises:
            ConfigError: it cannot be written.
            MissingLibrary: the one that draws.
        """
        from constrained_sim.campaign.report import write_report

        write_report(self, Path(path))
