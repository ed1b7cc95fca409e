"""A recorded run."""

from __future__ import annotations

import itertools
import os
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from constrained_sim.by_name import ByName
from constrained_sim.energy import EnergyTerms
from constrained_sim.exceptions import InvalidValue, listed
from constrained_sim.impact_record import ImpactRecord, impacts_from
from constrained_sim.late_imports import call_late
from constrained_sim.step_result import StepResult
from constrained_sim.steppers import Run
from constrained_sim.trajectory_file import read_arrays, write_arrays
from constrained_sim.trajectory_table import write_table
from constrained_sim.validation import Array, instance, items, path

if TYPE_CHECKING:
    from constrained_sim.collision.detector import Collisions
    from constrained_sim.constraints import Constraint
    from constrained_sim.robot import Robot
    from constrained_sim.viewer.shown_page import ShownPage

SUFFIX = ".npz"
"""Of files."""

TABLES = ("t", "q", "v", "tau")
GROUPS = ("contact_forces", "multipliers", "energy", "contact_moments")
OF_IMPACTS = ("t", "energy_lost", "v_minus", "v_plus", "early")
"""What a file holds: tables with a row for each step, groups of them by name, and tables with a row for each impact."""


@dataclass(frozen=True, eq=False)
class Setup:
    """What a run was of.

    Attributes:
        robot: that moved.
        constraints: declared ones, contacts included.
        collisions: what its collision geometry could touch; None: nothing.
    """

    robot: Robot
    constraints: tuple[Constraint, ...] = ()
    collisions: Collisions | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What :meth:`Simulator.run` recorded: n steps, one row each, taken at the end of the step.

    Attributes:
        t: (n,) [s].
        q: (n, nq).
        v: (n, nv).
        tau: (n, nu) applied efforts [N m, N].
        contact_forces: (n, 3) mean force over the step [N], world axes, by contact, impulses of impacts excluded
            (`impacts` have those); NaN while absent.
        multipliers: (n, rows) mean forces [N, N m], by constraint or contact; NaN while absent.
        energy: (n,) each term of the audit [J], by name, of the single steps.
        impacts: in the order of time.
        contact_moments: (n, 3) mean moment over the step about the contact point [N m], world axes, by contact; those
            of impacts are not kept.
        setup: what was simulated, for pictures; None: unknown, as of a file, and of a pickle where it has functions
            that cannot be pickled.
    """

    t: Array
    q: Array
    v: Array
    tau: Array
    contact_forces: Mapping[str, Array]
    multipliers: Mapping[str, Array]
    energy: Mapping[str, Array]
    impacts: tuple[ImpactRecord, ...]
    contact_moments: Mapping[str, Array]
    setup: Setup | None = None

    def __post_init__(self) -> None:
        """Refuse what is no recorded run.

        Raises:
            InvalidValue: tables that are none of numbers, or not of one length.
        """
        count = len(_table("t of a trajectory", self.t, 1, None))
        for name in TABLES[1:]:
            _table(f"{name} of a trajectory", getattr(self, name), 2, count)
        for group in GROUPS:
            tables = instance(f"{group} of a trajectory", getattr(self, group), Mapping, "tables by name")
            for name, table in tables.items():
                _table(f"{group} of a trajectory, {name!r}", table, None, count)
            object.__setattr__(self, group, ByName(f"name among the {group} of a trajectory", tables))
        items("impacts of a trajectory", self.impacts, ImpactRecord, "instances of ImpactRecord")
        if self.setup is not None:
            instance("setup of a trajectory", self.setup, Setup, "an instance of Setup, or None")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: all but a setup with functions that no pickle can hold, as of lambda."""
        state = dict(vars(self))
        try:
            pickle.dumps(self.setup)
        except (pickle.PicklingError, AttributeError, TypeError):
            state["setup"] = None
        return state

    def __repr__(self) -> str:
        """Say what was recorded, not every number of it."""
        span = f"{self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else "empty"
        rows = ", ".join(self.multipliers)
        return f"Trajectory({len(self.t)} steps, {span}, {len(self.impacts)} impacts, multipliers of [{rows}])"

    def __getitem__(self, steps: slice) -> Trajectory:
        """Return some steps that follow each other, as ``trajectory[10:20]``, with the impacts in them.

        Those from an instant on are ``trajectory[numpy.searchsorted(trajectory.t, instant):]``.

        Raises:
            InvalidValue: no slice, or one that leaves steps out.
        """
        count, allowed = len(self.t), "a slice of steps that follow each other, as [10:20]"
        if not isinstance(steps, slice):
            raise InvalidValue("steps of a trajectory", steps, allowed)
        try:
            begin, end, step = steps.indices(count)
        except TypeError as error:
            raise InvalidValue("steps of a trajectory", steps, allowed) from error
        if step != 1:
            raise InvalidValue("steps of a trajectory", steps, allowed)
        end = max(begin, end)
        after = self.t[begin - 1] if begin > 0 else -np.inf
        until = self.t[end - 1] if end < count else np.inf
        inside = [impact for impact in self.impacts if end > begin and after < impact.t <= until]
        tables = {name: getattr(self, name)[begin:end] for name in TABLES}
        groups: dict[str, Any] = {
            group: {name: values[begin:end] for name, values in getattr(self, group).items()} for group in GROUPS
        }
        return replace(self, **tables, **groups, impacts=tuple(inside))

    @property
    def early_impacts(self) -> int:
        """Number of contacts that took part in impacts before they touched, see :class:`ImpactRecord`."""
        return sum(impact.early for impact in self.impacts)

    def view(self, setup: Setup | None = None, port: int = 8080) -> ShownPage:
        """Show the run on a page of the browser, on this machine only; a notebook shows it where the call stands.

        The page stays until its ``close()``, or the end of the process; ``open()`` opens the user's browser.

        Args:
            setup: what was simulated; None: as :attr:`setup`.
            port: of the page, or the next one that is free.

        Raises:
            InvalidValue: an empty run, or nobody says what it was of.
            MissingLibrary: the one that shows it.
        """
        page: ShownPage = call_late("view_trajectory", self, setup, port)
        return page

    def plot(
        self, path: str | os.PathLike[str], kinds: Sequence[str] | None = None, setup: Setup | None = None
    ) -> list[Path]:
        """Draw the run into files, and return them; see :mod:`constrained_sim.plots`.

        A PDF holds all pages. Of PNG and SVG there is one file for each page, ``NAME_KIND.png`` or
        ``NAME_KIND_PAGE.png``; a single page is written to `path` itself.

        Args:
            path: that ends in .pdf, .png or .svg.
            kinds: of pictures: contact_forces, joints, friction_cones, residuals, energy, impacts; None: all of which
                the run holds something.
            setup: what was simulated; None: as :attr:`setup`. Without one there are no limits, limbs and cones.

        Raises:
            ConfigError: a file that cannot be written.
            InvalidValue: a path for another kind of file, or a run that holds nothing of these kinds.
            UnknownName: no such kind.
            MissingLibrary: the one that draws.
        """
        files: list[Path] = call_late("plot_trajectory", self, _path(path), kinds, setup)
        return files

    @classmethod
    def from_results(cls, results: Sequence[StepResult], nq: int, nv: int, nu: int) -> Trajectory:
        """Return the run that the `results` of consecutive steps make up.

        Args:
            results: in the order of time.
            nq: numbers of a configuration.
            nv: numbers of a velocity.
            nu: actuated joints.
        """
        groups = itertools.groupby(results, lambda result: id(result.outcome.end.bound))
        parts = [cls._of_one_set(list(group)) for _, group in groups]
        if parts:
            return cls.joined(parts)
        energy = {f.name: np.zeros(0) for f in fields(EnergyTerms)}
        return cls(np.zeros(0), np.zeros((0, nq)), np.zeros((0, nv)), np.zeros((0, nu)), {}, {}, energy, (), {})

    @classmethod
    def _of_one_set(cls, results: Sequence[StepResult]) -> Trajectory:
        """Collect `results`, at least one, under the same set of constraints."""
        outcomes = [result.outcome for result in results]
        run = Run(
            outcomes[-1].end,
            (),
            np.array([result.state.q for result in results]),
            np.array([result.state.v for result in results]),
            np.array([result.tau_applied for result in results]),
            np.array([outcome.lam for outcome in outcomes]),
            np.array([outcome.axes for outcome in outcomes]),
            np.array([outcome.energy for outcome in outcomes]),
            np.array([outcome.moments for outcome in outcomes]),
        )
        impacts = tuple(ImpactRecord.of(impact, impact.t) for outcome in outcomes for impact in outcome.impacts)
        return cls.from_run(run, np.array([result.state.t for result in results]), impacts)

    @classmethod
    def from_run(cls, run: Run, t: Array, impacts: tuple[ImpactRecord, ...] = ()) -> Trajectory:
        """Take over the steps of `run`.

        Args:
            run: n steps under one set of constraints, with k contacts.
            t: (n,) where they end [s].
            impacts: within them.
        """
        bound = run.end.bound
        forces = bound.contacts.forces(bound.split(run.lam)[1], run.axes)
        moments = bound.contacts.resistance.moments(run.moments, run.axes)
        names = [member.name for member in bound.contacts.members]
        return cls(
            t,
            run.q,
            run.v,
            run.tau,
            {name: forces[:, i] for i, name in enumerate(names)},
            {name: run.lam[:, rows] for name, rows in bound.slices.items()},
            {f.name: values for f, values in zip(fields(EnergyTerms), run.energy.T, strict=True)},
            impacts,
            {name: moments[:, i] for i, name in enumerate(names)},
        )

    @classmethod
    def joined(cls, parts: Sequence[Trajectory]) -> Trajectory:
        """Return `parts`, at least one, one after the other.

        Raises:
            InvalidValue: none, those of robots of other sizes, or one name for other numbers of rows.
        """
        parts = items("parts", parts, Trajectory, "instances of Trajectory")
        sizes = {part.q.shape[1:] + part.v.shape[1:] + part.tau.shape[1:] for part in parts}
        if len(sizes) != 1:
            raise InvalidValue("parts of a trajectory, (nq, nv, nu)", sorted(sizes), "one or more of the same robot")
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.t for part in parts]),
            np.concatenate([part.q for part in parts]),
            np.concatenate([part.v for part in parts]),
            np.concatenate([part.tau for part in parts]),
            _joined([part.contact_forces for part in parts], [len(part.t) for part in parts]),
            _joined([part.multipliers for part in parts], [len(part.t) for part in parts]),
            _joined([part.energy for part in parts], [len(part.t) for part in parts]),
            tuple(impact for part in parts for impact in part.impacts),
            _joined([part.contact_moments for part in parts], [len(part.t) for part in parts]),
            parts[0].setup,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file, whole or not at all: what is there already stays until all is written.

        Raises:
            InvalidValue: a path that does not end in ``.npz``, or at which no file can be written.
        """
        file = _path(path)
        if Path(file).suffix != SUFFIX:
            raise InvalidValue(
                "path of a trajectory", file, f"one that ends in {SUFFIX}; to_csv writes a table of text"
            )
        arrays = {name: getattr(self, name) for name in TABLES}
        for group in GROUPS:
            arrays |= {f"{group}/{name}": values for name, values in getattr(self, group).items()}
        for name in OF_IMPACTS:
            arrays[f"impacts/{name}"] = np.array([getattr(impact, name) for impact in self.impacts], dtype=np.float64)
        impulses = _by_name([impact.impulses for impact in self.impacts])
        arrays |= {f"impulses/{name}": values for name, values in impulses.items()}
        write_arrays(file, arrays)

    def to_csv(self, path: str | os.PathLike[str], setup: Setup | None = None) -> None:
        """Write the steps as a table of text, whole or not at all: a line of names with units, then one for each step.

        Joints are called by their names where it is known what was simulated. Impacts are not in it.

        Args:
            path: that ends in .csv.
            setup: what was simulated; None: as :attr:`setup`.

        Raises:
            InvalidValue: a path that does not end in .csv, or at which no file can be written, or another robot.
        """
        file = _path(path)
        if Path(file).suffix != ".csv":
            raise InvalidValue("path of a table", file, "one that ends in .csv")
        known = self.setup if setup is None else instance("setup", setup, Setup, "an instance of Setup, or None")
        if known is not None:
            check_robot(self, known.robot)
        groups = {
            "forces": self.contact_forces,
            "moments": self.contact_moments,
            "multipliers": self.multipliers,
            "energy": self.energy,
        }
        states = {name: getattr(self, name) for name in TABLES}
        write_table(file, states, groups, None if known is None else known.robot)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read the file `path` that :meth:`save` wrote; nothing in it is executed. It has no :attr:`setup`.

        Raises:
            InvalidValue: no such file, or another one.
        """
        text = _path(path)
        arrays = read_arrays(text)
        missing = [name for name in TABLES if name not in arrays]
        if "impacts/early" not in arrays and "impacts/t" in arrays:  # from before it was counted
            arrays["impacts/early"] = np.zeros(arrays["impacts/t"].shape)
        missing += [f"impacts/{name}" for name in OF_IMPACTS if f"impacts/{name}" not in arrays]
        if missing:
            raise InvalidValue("trajectory", text, f"a file that Trajectory.save wrote; without {', '.join(missing)}")

        def group(prefix: str) -> dict[str, Array]:
            return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}

        impacts = impacts_from(text, [arrays[f"impacts/{name}"] for name in OF_IMPACTS], group("impulses/"))
        forces, multipliers, energy, moments = (group(f"{name}/") for name in GROUPS)
        t, q, v, tau = (arrays[name] for name in TABLES)
        return cls(t, q, v, tau, forces, multipliers, energy, impacts, moments)


def check_robot(trajectory: Trajectory, robot: Robot) -> None:
    """Refuse a `robot` that `trajectory` cannot be of.

    Raises:
        InvalidValue: one of another size.
    """
    held = trajectory.q.shape[1], trajectory.v.shape[1], trajectory.tau.shape[1]
    if held != (robot.nq, robot.nv, robot.nu):
        has = ", ".join(map(str, (robot.nq, robot.nv, robot.nu)))
        rows = f", and of {listed(trajectory.multipliers)}" if trajectory.multipliers else ""
        raise InvalidValue(
            "robot",
            robot,
            f"one whose configurations have {held[0]} numbers, velocities {held[1]} and efforts {held[2]}: the run is "
            f"of such a robot{rows}; this one has {has}",
        )


def _path(value: str | os.PathLike[str]) -> str:
    return path("path of a trajectory", value)


def _table(what: str, value: object, dimensions: int | None, count: int | None) -> Array:
    """Return `value` if it is an array of numbers with as many `dimensions`, and `count` rows; None: any."""
    is_table = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim > 0
    if is_table and dimensions in (None, value.ndim) and count in (None, len(value)):  # type: ignore[attr-defined, arg-type]
        return value  # type: ignore[return-value]
    shape = " x ".join(["steps" if count is None else str(count), *["..."] * ((dimensions or 1) - 1)])
    raise InvalidValue(what, value, f"an array of numbers, {shape}")


def _by_name(records: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return one (n, rows) array for each name that occurs, NaN where it does not."""
    sizes = {name: len(values) for record in records for name, values in record.items()}
    return {
        name: np.array([record.get(name, np.full(size, np.nan)) for record in records]).reshape(-1, size)
        for name, size in sizes.items()
    }


def _joined(parts: Sequence[Mapping[str, Array]], lengths: Sequence[int]) -> dict[str, Array]:
    """Return the arrays of each name one after the other, NaN where a part of this length does not have it."""
    shapes: dict[str, tuple[int, ...]] = {}
    for name, values in itertools.chain.from_iterable(part.items() for part in parts):
        if shapes.setdefault(name, values.shape[1:]) != values.shape[1:]:
            raise InvalidValue(f"rows of {name!r} in parts of a trajectory", values.shape[1:], str(shapes[name]))
    return {
        name: np.concatenate(
            [part.get(name, np.full((n, *shape), np.nan)) for part, n in zip(parts, lengths, strict=True)]
        )
        for name, shape in shapes.items()
    }
