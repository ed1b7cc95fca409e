"""A study: one simulation many times, each time with other values, and what is measured of it."""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from constrained_sim.campaign.distributions import DISTRIBUTIONS, Choice, Distribution, Value
from constrained_sim.campaign.expression import Expression
from constrained_sim.campaign.keys import split_values
from constrained_sim.campaign.measures import Custom, Measure, as_measure
from constrained_sim.campaign.push import NOISE, Push
from constrained_sim.campaign.sampling import SAMPLERS, Draws
from constrained_sim.exceptions import ConfigError, InvalidValue, UnknownName
from constrained_sim.validation import instance, known, number, whole_number

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from constrained_sim.campaign.results import Results

KEEP = ("none", "all", "failed", "worst")
"""Which trajectories a study keeps."""


@dataclass(frozen=True, eq=False)
class Study:
    """What a study is; ``run`` does it.

    Values vary by keys with dots between levels. ``controller.NAME``, ``pushes.NAME.KEY`` and ``noise.NAME`` mean the
    study's own; all others mean keys of the configuration; a number is an index into a list, as in
    ``contacts.foot.normal.0``.

    Attributes:
        configuration: parameters of the simulation, nested as in a parameter file.
        duration: of each run, simulated [s].
        controller: see :func:`~constrained_sim.campaign.controller.make_controller`; or the command line of a ROS node
            in a list.
        options: of the controller.
        variations: what varies, by key.
        pushes: by name.
        noise: standard deviations of what the controller sees and says: ``position`` [rad, m], ``velocity`` [rad/s,
            m/s], ``effort`` [N m, N].
        measures: by name; also functions of a Trajectory.
        passed: expression of the measures that says which runs passed; empty: all that came to their end.
        runs: number of runs.
        seed: of all that is random.
        sampling: a name in ``SAMPLERS``.
        time_limit: wall-clock time of a run [s].
        memory_limit: of the process that does the runs [MB].
        keep: which trajectories are kept: ``none``, ``all``, ``failed``, or the ``worst``.
        worst: number of worst runs, whose ``worst_by`` is largest.
        worst_by: a measure; empty: the first one.
        robot: name of the shipped robot, if it is one.
        folder: that relative paths, and modules beside the study, are looked up in.
        file: that it was read from; None: from none.
    """

    configuration: Mapping[str, Any]
    duration: float
    controller: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    variations: Mapping[str, Distribution] = field(default_factory=dict)
    pushes: Mapping[str, Push] = field(default_factory=dict)
    noise: Mapping[str, float] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    passed: str = ""
    runs: int = 100
    seed: int = 0
    sampling: str = "independent"
    time_limit: float = 60.0
    memory_limit: float = 2000.0
    keep: str = "none"
    worst: int = 10
    worst_by: str = ""
    robot: str = ""
    folder: Path = field(default_factory=Path.cwd)
    file: Path | None = None

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: one that is not allowed.
            UnknownName: a name that does not exist.
            ConfigError: a key that cannot vary, or an expression that cannot be evaluated.
        """
        number("duration of a study", self.duration, 0.0, open_lower=True)
        whole_number("runs of a study", self.runs, 1)
        whole_number("seed of a study", self.seed, 0)
        number("time_limit of a study", self.time_limit, 0.0, open_lower=True)
        number("memory_limit of a study", self.memory_limit, 0.0, open_lower=True)
        known("sampling", self.sampling, SAMPLERS)
        known("keep", self.keep, KEEP)
        whole_number("worst runs of a study", self.worst, 1)
        for name in self.noise:
            known("noise", name, NOISE)
        for name, variation in self.variations.items():
            instance(f"variation {name!r}", variation, Distribution, f"one of {', '.join(DISTRIBUTIONS)}")
        for name, push in self.pushes.items():
            instance(f"push {name!r}", push, Push, "a Push")
            if push.at >= self.duration and f"pushes.{name}.at" not in self.variations:
                allowed = f"an instant before the end of the runs, which last {self.duration:g} s"
                raise InvalidValue(f"at of push {name!r}", push.at, allowed)
        self._check_measures()
        if self.uses_ros and self.noise:
            raise ConfigError("noise: got some with a command line, allowed: a controller without ROS, or sensors")
        self.condition  # noqa: B018 - refuses what cannot be evaluated
        self.inputs(0)

    def _check_measures(self) -> None:
        """Take functions as measures, and refuse names that a table or an expression cannot have.

        Raises:
            InvalidValue: no measure, or no such name.
            UnknownName: no measure that says which run is worse.
            ConfigError: the worst are wanted without it.
        """
        measures = {name: as_measure(name, given) for name, given in self.measures.items()}
        object.__setattr__(self, "measures", measures)
        for name in measures:
            if not name.isidentifier() or name in (*COLUMNS, *self.variations):
                raise InvalidValue("name of a measure", name, f"a word other than {', '.join(COLUMNS)}")
        if self.worst_by and self.worst_by not in self.measures:
            raise UnknownName("worst_by", self.worst_by, self.measures)
        if self.keep == "worst" and not self.measures:
            raise ConfigError("keep: got 'worst' without measures, allowed: a measure that says which run is worse")

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields: what has been found from them is found again."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def uses_ros(self) -> bool:
        """Whether the controller is the command line of a ROS node."""
        return isinstance(self.controller, list | tuple)

    @functools.cached_property
    def condition(self) -> Expression:
        """What says whether a run passed."""
        return Expression(self.passed or "True", self.measures)

    @functools.cached_property
    def draws(self) -> Draws:
        """What draws the values of runs."""
        return Draws(self.variations, self.sampling, self.seed, self.runs)

    def values(self, run: int) -> dict[str, Value]:
        """Return what varies in a `run`, by key.

        Raises:
            InvalidValue: a number below 0, or with a Latin hypercube one from :attr:`runs` on.
        """
        most = self.runs - 1 if self.sampling == "latin_hypercube" else np.inf
        return self.draws.values(whole_number("run", run, 0, most))

    def inputs(self, run: int) -> Inputs:
        """Return what a `run` is made of.

        Raises:
            ConfigError: a key that means nothing.
            ConstrainedSimError: a value that a push or noise cannot have.
        """
        values = split_values(self.values(run))
        configuration = values.put_into(copy.deepcopy(dict(self.configuration)))
        options = values.options_over(self.options)
        pushes = {name: push.with_values(values.pushes.get(name, {})) for name, push in self.pushes.items()}
        for name in values.pushes:
            if name not in self.pushes:
                raise UnknownName("push", name, self.pushes)
        noise = dict(self.noise) | {
            known("noise", name, NOISE): number(f"noise.{name}", value, 0.0) for name, value in values.noise.items()
        }
        return Inputs(configuration, options, tuple(pushes.values()), noise)

    def with_runs(self, runs: int) -> Study:
        """Return this study with another number of runs."""
        return replace(self, runs=runs)

    def replay_command(self, run: int) -> str:
        """Return what does a `run` again: a command line, or Python where the study was read from no file."""
        if self.file is None:
            return f"constrained_sim.campaign.do_run(study, {run})"
        return f"constrained_sim campaign replay {shlex.quote(str(self.file))} {run} -n {self.runs}"

    @functools.cached_property
    def fingerprint(self) -> str:
        """A text that is the same for two studies whose runs are the same, as far as it can be told."""
        what = {name: getattr(self, name) for name in SAME}
        if self.sampling == "latin_hypercube":
            what["runs"] = self.runs
        return hashlib.sha256(json.dumps(what, sort_keys=True, default=_described).encode()).hexdigest()[:16]

    def run(
        self,
        executor: Executor | None = None,
        directory: Path | str | None = None,
        resume: bool = False,
        progress: Callable[[Any], None] | None = None,
    ) -> Results:
        """Do all runs; each in a process that is ended where it takes too long or too much memory.

        Args:
            executor: of :mod:`concurrent.futures`, or of Dask (``client.get_executor()``); None: one run at a time.
            directory: for the results, which are written while the study goes on; None: a temporary one.
            resume: go on with what a directory holds already.
            progress: is told how far it is, see :class:`~constrained_sim.campaign.execution.Progress`.

        Raises:
            ConfigError: a directory that holds results already, or those of another study.
            StudyInterrupted: the executor broke, or nothing can be written; what was done is kept.
            MissingLibrary: one that the extra ``campaign`` brings.
        """
        from constrained_sim.campaign.execution import run_study

        return run_study(self, executor, directory, resume, progress)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What one run is made of.

    Attributes:
        configuration: parameters, nested.
        options: of the controller.
        pushes: that act.
        noise: standard deviations.
    """

    configuration: Mapping[str, Any]
    options: Mapping[str, Any]
    pushes: tuple[Push, ...]
    noise: Mapping[str, float]


COLUMNS = ("run", "status", "passed", "reason", "traceback")
"""Columns of a table of results before those of variations and measures."""

SAME = (
    *("configuration", "duration", "controller", "options", "variations", "pushes", "noise", "measures", "passed"),
    *("seed", "sampling", "robot"),
)
"""Attributes that decide what the rows are."""


def kind_of(distribution: Distribution) -> type:
    """Return the type of the values of a distribution."""
    return type(distribution.values[0]) if isinstance(distribution, Choice) else float


def _described(value: Any) -> Any:
    """Return what JSON can hold of `value`: functions by their name, objects by their attributes but for objects."""
    if isinstance(value, Custom):
        return _described(value.function)
    if isinstance(value, functools.partial):
        return [_described(value.func), value.args, value.keywords]
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | np.ndarray):
        return list(value)
    if isinstance(value, np.generic):
        return value.item()
    attributes = getattr(value, "__dict__", {}).items()
    plain = {name: part for name, part in attributes if callable(part) or not hasattr(part, "__dict__")}
    return [type(value).__name__, plain]
