"""Constraint violations of a run, computed from its configurations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from constrained_sim.constraints import BoundConstraint, PointContact
from constrained_sim.dynamics.dynamics import Dynamics, kinematics_at
from constrained_sim.plots.recording import Table
from constrained_sim.trajectory import Setup, Trajectory
from constrained_sim.validation import Array

INSTANTS = 1000
"""At which violations and energies are computed: as many as a page has pixels for."""

Violation = Callable[[Dynamics], float]


def sampled(trajectory: Trajectory) -> npt.NDArray[np.intp]:
    """Return the steps of which a picture shows what takes long to compute, the first and the last among them."""
    count = len(trajectory.t)
    return np.unique(np.linspace(0, count - 1, INSTANTS).astype(np.intp)) if count else np.zeros(0, dtype=np.intp)


def violations(trajectory: Trajectory, setup: Setup) -> Table:
    """Return the largest ``|phi|`` of each constraint, and the penetration of each contact [m, rad], over time.

    A target that a constraint takes from where it is, is taken from the first recorded configuration.
    """
    if not len(trajectory.t):
        return Table()
    found = dict(_violations_of(setup, trajectory.q[0]))
    rows = sampled(trajectory)
    values = np.empty((len(rows), len(found)))
    for k, i in enumerate(rows):
        dynamics = kinematics_at(setup.robot, trajectory.q[i], float(trajectory.t[i]))
        values[k] = [violation(dynamics) for violation in found.values()]
    return Table(trajectory.t[rows], dict(zip(found, values.T, strict=True)))


def _violations_of(setup: Setup, q: Array) -> Iterator[tuple[str, Violation]]:
    """Yield the violation of each constraint that has one, as a function of the kinematics."""
    constraints = {constraint.name: constraint for constraint in (*setup.robot.constraints, *setup.constraints)}
    for name, constraint in constraints.items():
        if isinstance(constraint, PointContact):
            yield name, _penetration(constraint, setup)
        else:
            bound = constraint.bind(setup.robot, q)
            if isinstance(bound, BoundConstraint) and bound.is_position_level:
                yield name, _excess(bound) if constraint.is_unilateral else _error(bound)


def _penetration(contact: PointContact, setup: Setup) -> Violation:
    joint, offset = setup.robot.link_point(contact.link, contact.point)
    normal, height = contact.surface.normal, contact.surface.offset + contact.radius
    return lambda dynamics: max(0.0, height - float(normal @ dynamics.placement(joint).act(offset)))


def _excess(bound: BoundConstraint) -> Violation:
    return lambda dynamics: max(0.0, -float(np.min(bound.phi(dynamics), initial=0.0)))


def _error(bound: BoundConstraint) -> Violation:
    return lambda dynamics: float(np.max(np.abs(bound.phi(dynamics)), initial=0.0))
