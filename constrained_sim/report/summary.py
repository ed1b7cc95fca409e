"""Summary of a recording in a few lines, with what its user should look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.plots.from_bag import BagMessages
from constrained_sim.plots.recording import JointSeries, Recording
from constrained_sim.validation import Array

FROZEN = 3
"""State of a simulation that stopped at a number which is not finite, see SimulationStatus."""

LARGE_RESIDUAL = 1e-6
"""Relative residual above which a solution is doubtful: solvers reach 1e-9 and less."""

LARGE_DRIFT = 1e-4
"""[m, rad] Above which constraints are visibly violated; it is the tolerance of a configuration too."""

LARGE_ENERGY = 1e-6
"""Share of the energy moved that the audit may leave unexplained."""

AT_LIMIT = 1.0 - 1e-9
"""Share of a limit at which a value stands at it."""

COUNTERS = {
    "late_periods": "control periods took longer than real time allowed: the machine did not keep up",
    "commands_dropped": "commands were replaced by a newer one before they took effect",
    "commands_refused": "commands were refused",
    "records_lost": "messages were not recorded",
    "early_impacts": "contacts took part in an impact before they touched",
}
"""Counters of the status that should be zero, and what they mean."""


def summary(recording: Recording, messages: BagMessages) -> dict[str, str]:
    """Return facts by name, in the order of reading."""
    rows: dict[str, str] = {}
    for name, times in (("joint states", recording.joint_times), ("contact forces", recording.contact_times)):
        if len(times):
            rows[name] = f"{len(times)} instants, {times[0]:.3f} s to {times[-1]:.3f} s"
    rows["joints"] = f"{len(recording.joints)} with one degree of freedom"
    rows["contacts"] = ", ".join(recording.contacts) or "none"
    impacts = recording.impacts
    rows["impacts"] = f"{len(impacts.t)}, which took {impacts.energy_lost.sum():.6g} J"
    for name, contact in recording.contacts.items():
        if contact.has_normal:
            rows[f"contact {name}"] = _contact(contact.normal, contact.status)
    for name, values in (*recording.residuals.columns.items(), *recording.drift.columns.items()):
        rows[f"largest residual: {name}"] = f"{np.nanmax(values, initial=0.0):.3g}"
    status = messages.last_status
    if status is not None:
        rows["solver"] = f"{status.solver}, contacts by {status.contact_method}"
        rows["stepper"] = f"{status.stepper}, {status.integrator}, dt {status.dt:g} s"
        rows["clock mode"] = f"{status.clock_mode}, real-time factor {status.real_time_factor:.3g} at the end"
        rows["energy that the audit leaves"] = f"{status.energy_residual:.3g} J"
    return rows


def warnings(recording: Recording, messages: BagMessages) -> list[str]:
    """Return what deserves a look; empty: nothing."""
    return [
        *recording.notes,
        *_of_status(messages.last_status),
        *_of_tables(recording),
        *_of_joints(recording),
    ]


def _contact(normal: Array, status: Any) -> str:
    share = {state: float(np.mean(status == state)) for state in ContactStatus}
    return (
        f"largest normal force {np.nanmax(normal, initial=0.0):.4g} N; sticks {share[ContactStatus.STICKING]:.0%}, "
        f"slips {share[ContactStatus.SLIDING]:.0%}, open {share[ContactStatus.OPEN]:.0%} of the time"
    )


def _of_status(status: Any) -> Iterator[str]:
    if status is None:
        yield "no status was recorded: residuals, energy and counters are unknown"
        return
    if status.state == FROZEN:
        yield f"the simulation froze: {status.message}"
    for name, meaning in COUNTERS.items():
        if count := getattr(status, name, 0):
            yield f"{count} {meaning}"
    moved = sum(abs(getattr(status, f"work_{name}")) for name in ("actuators", "external", "contacts", "damping"))
    if abs(status.energy_residual) > LARGE_ENERGY * max(moved + abs(status.impact_losses), 1.0):
        yield f"the energy audit leaves {status.energy_residual:.3g} J unexplained"


def _of_tables(recording: Recording) -> Iterator[str]:
    for table, bound in ((recording.residuals, LARGE_RESIDUAL), (recording.drift, LARGE_DRIFT)):
        for name, values in table.columns.items():
            worst = int(np.nanargmax(np.abs(values))) if np.isfinite(values).any() else 0
            if len(values) and abs(values[worst]) > bound:
                yield f"{name}: {values[worst]:.3g} at {table.t[worst]:.3f} s, more than {bound:g}"


def _of_joints(recording: Recording) -> Iterator[str]:
    for name, joint in recording.joints.items():
        for text, values, limits in _parts(joint):
            low, high = limits
            beyond = (values <= AT_LIMIT * low) | (values >= AT_LIMIT * high)
            if low < high and beyond.any():
                first, share = recording.joint_times[np.argmax(beyond)], beyond.mean()
                yield f"{name}: {text} at its limit or beyond in {share:.1%} of the time, first at {first:.3f} s"


def _parts(joint: JointSeries) -> tuple[tuple[str, Array, tuple[float, float]], ...]:
    return (
        ("velocity", joint.velocity, joint.limits.velocity),
        ("effort", joint.effort, joint.limits.effort),
    )
