"""The table of a study on disk: Parquet files in a directory, each written whole."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from constrained_sim.campaign.one_run import Row
from constrained_sim.campaign.study import COLUMNS, Study, kind_of
from constrained_sim.exceptions import ConfigError
from constrained_sim.optional import optional
from constrained_sim.whole_file import remove_unfinished, write_texts, writing, written_whole

MOST_ROWS = 5000
"""Rows that wait to be written."""

LONGEST = 5.0
"""[s] that a row waits to be written."""

ABOUT = "study.json"
"""What the study was."""

TRAJECTORIES = "trajectories"
"""Folder of those that are kept."""


def schema_of(study: Study) -> Any:
    """Return the schema of the table: what all have, what varies, measures; any may be null but the first."""
    arrow = optional("pyarrow", "the table of a study")
    kinds: dict[str, type] = dict(zip(COLUMNS, (int, str, bool, str, str), strict=True))
    kinds |= {name: kind_of(variation) for name, variation in study.variations.items()}
    kinds |= dict.fromkeys(study.measures, float)
    types = {float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_(), str: arrow.string()}
    types[tuple] = arrow.list_(arrow.float64())
    return arrow.schema([(name, types[kind]) for name, kind in kinds.items()])


def table_of(study: Study, rows: Iterable[Row]) -> Any:
    """Return `rows` as an Arrow table; true and false of measures are 1 and 0."""
    arrow = optional("pyarrow", "the table of a study")
    schema = schema_of(study)
    records = [
        {
            **{name: getattr(row, name) for name in COLUMNS},
            **row.values,
            **{name: None if value is None else float(value) for name, value in row.measures.items()},
        }
        for row in rows
    ]
    return arrow.Table.from_pylist(records, schema=schema)


class TableDirectory:
    """A directory that holds the table of a study, in parts, and its trajectories.

    One process at a time writes: a lock sees to it. Rows wait in memory for a few seconds; a part is there whole, or
    not at all.

    Attributes:
        path: the directory.
        written: number of rows in it.
    """

    def __init__(self, path: Path, study: Study) -> None:
        """Take a directory that is there or not; nothing is written yet."""
        self.path, self._study, self.written = path, study, 0
        self._waiting: list[Row] = []
        self._written = time.monotonic()
        self._lock: Any = None

    def begin(self, resume: bool) -> npt.NDArray[np.bool_]:
        """Make the directory, and return which runs are done already.

        Raises:
            ConfigError: it is in use, cannot be written, or holds results: not wanted ones, those of another study, or
                runs that the study does not have.
        """
        with writing(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            self._take_lock()
        if (self.path / ABOUT).exists():
            self._check_results(resume)
        done = np.zeros(self._study.runs, dtype=np.bool_)
        for part in self.parts():
            runs = optional("pyarrow.parquet", "the table of a study").read_table(part, columns=["run"])["run"]
            if (last := int(np.max(runs.to_numpy()))) >= len(done):
                raise ConfigError(
                    f"{str(self.path)!r} holds run {last} already, got a study of {len(done)} runs, allowed: "
                    f"-n {last + 1} or more, or another directory"
                )
            done[runs.to_numpy()] = True
        self._write_about()
        remove_unfinished(self.path)
        self.written = int(done.sum())
        return done

    def _check_results(self, resume: bool) -> None:
        """Refuse results that are not wanted, or those of another study.

        Raises:
            ConfigError: they are.
        """
        where = f"{str(self.path)!r} holds results"
        if not resume:
            raise ConfigError(f"{where} already, allowed: --resume, or another directory")
        found, study = read_about(self.path), self._study
        if found["fingerprint"] == study.with_runs(found["runs"]).fingerprint != study.fingerprint:
            raise ConfigError(
                f"{where} of {found['runs']} runs, got a study of {study.runs} runs, whose values depend on how many "
                f"there are (sampling: {study.sampling}), allowed: -n {found['runs']}, or another directory"
            )
        if found["fingerprint"] != study.fingerprint:
            raise ConfigError(
                f"{where} of another study ({found['fingerprint']}, this one is {study.fingerprint}), allowed: the "
                "same study, or another directory"
            )

    def parts(self) -> list[Path]:
        """Return the files of the table."""
        return sorted(self.path.glob("part-*.parquet"))

    def add(self, rows: Sequence[Row]) -> None:
        """Take `rows`, and write those that wait when they are many, or have waited long.

        Raises:
            ConfigError: nothing can be written; the rows still wait.
        """
        self._waiting += rows
        if len(self._waiting) >= MOST_ROWS or time.monotonic() - self._written > LONGEST:
            self.flush()

    def flush(self) -> None:
        """Write all that waits.

        Raises:
            ConfigError: nothing can be written; the rows still wait.
        """
        self._written = time.monotonic()
        if not self._waiting:
            return
        table = table_of(self._study, sorted(self._waiting, key=lambda row: row.run))
        first = min(row.run for row in self._waiting)
        target = self.path / f"part-{time.time_ns():020d}-{first:09d}.parquet"
        parquet = optional("pyarrow.parquet", "the table of a study")
        with written_whole(target) as part:
            parquet.write_table(table, part, compression="zstd")
        self.written += len(self._waiting)
        self._waiting = []

    def keep_trajectory(self, run: int, content: bytes) -> None:
        """Write the file of a trajectory.

        Raises:
            ConfigError: it cannot be written.
        """
        file = trajectory_file(self.path, run)
        with writing(file):
            file.parent.mkdir(exist_ok=True)
        with written_whole(file) as part:
            part.write_bytes(content)

    def drop_trajectories(self, but: Iterable[int]) -> None:
        """Remove the files of trajectories other than those of some runs."""
        kept = {trajectory_file(self.path, run) for run in but}
        for file in (self.path / TRAJECTORIES).glob("*"):
            if file not in kept:
                file.unlink()

    def close(self) -> None:
        """Let others write."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take_lock(self) -> None:
        import fcntl

        self._lock = (self.path / ".lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise ConfigError(f"{str(self.path)!r} is in use, allowed: one study at a time") from error

    def _write_about(self) -> None:
        study = self._study
        about = {"fingerprint": study.fingerprint, "runs": study.runs, "seed": study.seed, "passed": study.passed}
        about |= {"variations": list(study.variations), "measures": list(study.measures)}
        write_texts({self.path / ABOUT: json.dumps(about, indent=2)})


def read_about(directory: Path) -> dict[str, Any]:
    """Return what the study in a directory of results was.

    Raises:
        ConfigError: there is none.
    """
    try:
        about = json.loads((directory / ABOUT).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{str(directory)!r} holds no results of a study: {error}") from error
    return dict(about)


def read_table(directory: Path, columns: Sequence[str] | None = None) -> Any:
    """Return the table in a directory, or some of its columns with ``run`` among them, in the order of runs.

    Raises:
        ConfigError: there is none.
        MissingLibrary: the one that reads it.
    """
    parts = sorted(directory.glob("part-*.parquet"))
    if not parts:
        raise ConfigError(f"{str(directory)!r} holds no results of a study")
    parquet, arrow = optional("pyarrow.parquet", "the table"), optional("pyarrow", "the table")
    tables = [parquet.read_table(part, columns=columns) for part in parts]
    return arrow.concat_tables(tables).sort_by("run").combine_chunks()


def trajectory_file(directory: Path, run: int) -> Path:
    """Return where the trajectory of a `run` is kept."""
    return directory / TRAJECTORIES / f"run-{run:09d}.npz"
