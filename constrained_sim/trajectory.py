"""A recorded run."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from constrained_sim.energy import EnergyTerms
from constrained_sim.exceptions import InvalidValue
from constrained_sim.impact import Impact
from constrained_sim.step_result import StepResult
from constrained_sim.steppers import Run
from constrained_sim.validation import Array


@dataclass(frozen=True, eq=False)
class ImpactRecord:
    """One impact of a run.

    Attributes:
        t: instant [s].
        energy_lost: kinetic energy [J].
        v_minus: (nv,) velocity before.
        v_plus: (nv,) after.
        impulses: (3,) on each contact that passed one [N s], world axes, by name.
        early: contacts that took part before they touched.
    """

    t: float
    energy_lost: float
    v_minus: Array
    v_plus: Array
    impulses: Mapping[str, Array]
    early: int = 0

    @classmethod
    def of(cls, impact: Impact, t: float) -> ImpactRecord:
        """Return what is kept of `impact`, at the instant `t` [s]."""
        return cls(t, impact.energy_lost, impact.v_minus, impact.v_plus, impact.contact_impulses, impact.early)


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What :meth:`Simulator.run` recorded: n steps, one row each, taken at the end of the step.

    Attributes:
        t: (n,) [s].
        q: (n, nq).
        v: (n, nv).
        tau: (n, nu) applied efforts [N m, N].
        contact_forces: (n, 3) mean force over the step [N], world axes, by contact, percussions excluded (`impacts`
            have those); NaN while absent.
        multipliers: (n, rows) mean forces [N, N m], by constraint or contact; NaN while absent.
        energy: (n,) each term of the audit [J], by name, of the single steps.
        impacts: in the order of time.
        contact_moments: (n, 3) likewise of moments about the contact point [N m]; those of percussions are not kept.
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

    def __repr__(self) -> str:
        """Say what was recorded, not every number of it."""
        span = f"{self.t[0]:g} to {self.t[-1]:g} s" if len(self.t) else "empty"
        rows = ", ".join(self.multipliers)
        return f"Trajectory({len(self.t)} steps, {span}, {len(self.impacts)} impacts, multipliers of [{rows}])"

    @property
    def early_impacts(self) -> int:
        """Number of contacts that took part in impacts before they touched, see :class:`ImpactRecord`."""
        return sum(impact.early for impact in self.impacts)

    @classmethod
    def from_results(cls, results: Sequence[StepResult], nq: int, nv: int, nu: int) -> Trajectory:
        """Collect `results` of a robot with these dimensions."""
        forces = [{name: contact.force for name, contact in result.contact_forces.items()} for result in results]
        moments = [{name: contact.moment for name, contact in result.contact_forces.items()} for result in results]
        rows = [{name: result.multipliers(name) for name in result.outcome.end.bound.slices} for result in results]
        return cls(
            np.array([result.state.t for result in results]),
            np.array([result.state.q for result in results]).reshape(len(results), nq),
            np.array([result.state.v for result in results]).reshape(len(results), nv),
            np.array([result.tau_applied for result in results]).reshape(len(results), nu),
            _by_name(forces),
            _by_name(rows),
            {f.name: np.array([getattr(result.energy, f.name) for result in results]) for f in fields(EnergyTerms)},
            tuple(ImpactRecord.of(impact, impact.t) for result in results for impact in result.impacts),
            _by_name(moments),
        )

    @classmethod
    def from_run(cls, run: Run, t: Array) -> Trajectory:
        """Take over the steps of `run`, which end at `t` (n,) [s]."""
        bound = run.end.bound
        forces = bound.contacts.forces(bound.split(run.lam)[1], run.axes)
        names = [member.name for member in bound.contacts.members]
        return cls(
            t,
            run.q,
            run.v,
            run.tau,
            {name: forces[:, i] for i, name in enumerate(names)},
            {name: run.lam[:, rows] for name, rows in bound.slices.items()},
            {f.name: values for f, values in zip(fields(EnergyTerms), run.energy.T, strict=True)},
            (),
            {name: np.zeros_like(forces[:, i]) for i, name in enumerate(names)},
        )

    @classmethod
    def joined(cls, parts: Sequence[Trajectory]) -> Trajectory:
        """Return `parts`, at least one, one after the other.

        Raises:
            InvalidValue: none, those of robots of other sizes, or one name for other numbers of rows.
        """
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
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an ``.npz`` file."""
        arrays = {name: getattr(self, name) for name in ("t", "q", "v", "tau")}
        for group in ("contact_forces", "contact_moments", "multipliers", "energy"):
            arrays |= {f"{group}/{name}": values for name, values in getattr(self, group).items()}
        for name in ("t", "energy_lost", "v_minus", "v_plus", "early"):
            arrays[f"impacts/{name}"] = np.array([getattr(impact, name) for impact in self.impacts])
        impulses = _by_name([impact.impulses for impact in self.impacts])
        arrays |= {f"impulses/{name}": values for name, values in impulses.items()}
        with open(path, "wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trajectory:
        """Read what :meth:`save` wrote; nothing in the file is executed.

        Raises:
            InvalidValue: another file.
        """
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        missing = {"t", "q", "v", "tau"} - arrays.keys()
        if missing:
            raise InvalidValue("trajectory", str(path), f"a file that holds {', '.join(sorted(missing))}")

        def group(prefix: str) -> dict[str, Array]:
            return {key.removeprefix(prefix): value for key, value in arrays.items() if key.startswith(prefix)}

        jumps = zip(*(arrays[f"impacts/{name}"] for name in ("t", "energy_lost", "v_minus", "v_plus")), strict=True)
        early = arrays.get("impacts/early", np.zeros(len(arrays["impacts/t"])))
        impulses = group("impulses/")
        return cls(
            arrays["t"],
            arrays["q"],
            arrays["v"],
            arrays["tau"],
            group("contact_forces/"),
            group("multipliers/"),
            group("energy/"),
            tuple(
                ImpactRecord(float(t), float(lost), minus, plus, _present(impulses, i), int(early[i]))
                for i, (t, lost, minus, plus) in enumerate(jumps)
            ),
            group("contact_moments/"),
        )


def _by_name(records: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """Return one (n, rows) array for each name that occurs, NaN where it does not."""
    sizes = {name: len(values) for record in records for name, values in record.items()}
    return {
        name: np.array([record.get(name, np.full(size, np.nan)) for record in records]).reshape(-1, size)
        for name, size in sizes.items()
    }


def _present(arrays: Mapping[str, Array], i: int) -> dict[str, Array]:
    """Return row `i` of each array, unless it is NaN there."""
    return {name: values[i] for name, values in arrays.items() if not np.isnan(values[i]).any()}


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
