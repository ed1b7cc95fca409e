"""Studies as tests: so many runs, of which so many have to pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained_sim.campaign import Results, Study, load_study, read_study
from constrained_sim.compilation.python_process import processors
from constrained_sim.validation import number

if TYPE_CHECKING:
    from constrained_sim.testing.simulated_robot import PathLike

MOST_NAMED = 10
"""Failures that a message names."""


class FinishedStudy:
    """A study that a test has done.

    Attributes:
        results: of it.
    """

    def __init__(self, results: Results) -> None:
        """Take the results of a study."""
        self.results = results

    def passed_at_least(self, share: float) -> None:
        """Check that this `share` of the runs passed, or more.

        Raises:
            AssertionError: fewer did; the message names runs that anyone can do again, bit by bit.
            InvalidValue: no share.
        """
        number("share of runs that pass", share, 0.0, 1.0)
        if self.results.share_passed < share:
            raise AssertionError(self._failures(share))

    def _failures(self, share: float) -> str:
        """Return what failed, and how to see it again."""
        results, interval = self.results, self.results.interval()
        failures = results.failures
        rows = {row["run"]: row for row in results.table.to_pylist() if row["run"] in failures[:MOST_NAMED]}
        lines = [
            f"{results.passed} of {results.runs} runs passed, {results.share_passed:.4g} (95 % confidence: "
            f"{interval.lower:.4g} to {interval.upper:.4g}), wanted {share:.4g} or more; "
            f"passed means: {results.study.passed or 'came to its end'}",
            f"seed {results.study.seed}, runs that failed: {', '.join(map(str, failures[:MOST_NAMED]))}"
            + (f" and {len(failures) - MOST_NAMED} more" if len(failures) > MOST_NAMED else ""),
            *(_described(results.study, row) for row in rows.values()),
        ]
        ended = Counter(row["reason"] for row in results.table.to_pylist() if row["reason"])
        lines += [f"{count} runs came to no end: {reason}" for reason, count in ended.most_common(3)]
        return "\n".join([*lines, f"again: {results.study.replay_command(failures[0])}"])


def finish_study(
    study: PathLike | Mapping[str, Any] | Study, runs: int | None, directory: Path, workers: int | None = None
) -> FinishedStudy:
    """Do a study on this machine.

    Args:
        study: file, or what a file holds, or the study itself.
        runs: how many; None: as the study says.
        directory: for the results.
        workers: processes at once; None: one a processor.

    Raises:
        ConstrainedSimError: a study that is refused, or that came to no end.
    """
    if not isinstance(study, Study):
        study = read_study(study) if isinstance(study, Mapping) else load_study(study)
    if runs is not None:
        study = study.with_runs(runs)
    with ThreadPoolExecutor(workers or processors()) as executor:
        return FinishedStudy(study.run(executor, directory))


def _described(study: Study, row: Mapping[str, Any]) -> str:
    """Return the values and the measures of a run."""
    values = ", ".join(f"{name} {row[name]:.6g}" for name in study.variations if isinstance(row[name], float))
    measures = ", ".join(f"{name} {row[name]:.6g}" for name in study.measures if row[name] is not None)
    return f"  run {row['run']}: {row['reason'] or measures}; with {values or 'nothing that varies'}"
