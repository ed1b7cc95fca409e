"""The simulated world as the node drives it: control periods, stamps, commands. No ROS in here, and no maths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from constrained_sim.config import Config, control_steps, whole_nanoseconds
from constrained_sim.contact import compile_methods
from constrained_sim.exceptions import NonFiniteState
from constrained_sim.impact import Impact
from constrained_sim.step_result import ContactForce, StepResult
from constrained_sim.validation import Array


@dataclass(frozen=True, eq=False)
class Period:
    """One control period.

    Attributes:
        stamp: [ns] of its end.
        result: of its last step.
        contacts: at its end; those that were found by collision geometry and are no longer there, when they were last.
        mean_forces: (3,) mean force of each contact over the period [N], world axes.
        impacts: with their stamps [ns].
    """

    stamp: int
    result: StepResult
    contacts: Mapping[str, ContactForce]
    mean_forces: Mapping[str, Array]
    impacts: tuple[tuple[int, Impact], ...]


@dataclass
class Residuals:
    """Largest relative residuals since the last status."""

    dynamics: float = 0.0
    constraint: float = 0.0
    complementarity: float = 0.0

    def see(self, result: StepResult) -> None:
        """Take a step into account."""
        self.dynamics = max(self.dynamics, result.dynamics_residual)
        self.constraint = max(self.constraint, result.constraint_residual)
        self.complementarity = max(self.complementarity, result.complementarity_residual)


class World:
    """A simulator that advances by control periods, with time in integer nanoseconds.

    Attributes:
        config: what was configured.
        sim: the simulator.
        tau: (nu,) commanded efforts; a joint that is not commanded keeps its last value.
        stamp: [ns] of the present state.
        period_ns: control period [ns].
        frozen: why the simulation cannot go on; empty while it can.
        last: the last step, None before the first.
        residuals: since the last status.
    """

    def __init__(self, config: Config) -> None:
        """Start at the initial state of `config`.

        Raises:
            ConstrainedSimError: a configuration that the simulator refuses.
        """
        self.config = config
        self.sim = config.simulator()
        compile_methods()
        self._dt_ns = whole_nanoseconds("dt", config.simulation.dt)
        self._steps_per_period = control_steps(config.node.control_period, config.simulation.dt)
        self.period_ns = self._steps_per_period * self._dt_ns
        self.stamp = round(config.node.start_time * 1e9)
        self._forget()

    def _forget(self) -> None:
        self._stamp_at_reset = self.stamp
        self.tau = np.zeros(self.config.robot.nu)
        self.frozen = ""
        self.last: StepResult | None = None
        self.residuals = Residuals()

    def command(self, efforts: Mapping[int, float]) -> None:
        """Take over efforts [N m, N] by index into tau."""
        for index, effort in efforts.items():
            self.tau[index] = effort

    def advance(self) -> Period | None:
        """Simulate one control period; None if the state would not be finite: the world is frozen then."""
        totals: dict[str, Array] = {}
        contacts: dict[str, ContactForce] = {}
        impacts: list[tuple[int, Impact]] = []
        for _ in range(self._steps_per_period):
            try:
                result = self.sim.step(self.tau)
            except NonFiniteState as error:
                self.frozen = str(error)
                return None
            self.residuals.see(result)
            if self._steps_per_period > 1:
                contacts |= result.contact_forces
                for name, contact in result.contact_forces.items():
                    totals[name] = totals.get(name, 0.0) + contact.force
            impacts += [(self._stamp_at_reset + round(impact.t * 1e9), impact) for impact in result.impacts]
        self.last = result
        self.stamp = self._stamp_at_reset + self.sim.steps * self._dt_ns
        means = {name: total / self._steps_per_period for name, total in totals.items()}
        if self._steps_per_period == 1:
            contacts = dict(result.contact_forces)
            means = {name: contact.force for name, contact in contacts.items()}
        return Period(self.stamp, result, contacts, means, tuple(impacts))

    def reset(self, q: Array, v: Array, keep_time: bool, keep_constraints: bool) -> None:
        """Start anew at (q, v), with the stepper and the solver in effect; commands are forgotten.

        Raises:
            ConstrainedSimError: a state that violates a constraint; nothing has changed.
        """
        sim = self.config.simulator(q, v, self.sim.constraints if keep_constraints else None)
        sim.set_stepper(self.sim.stepper_name, self.sim.integrator_name)
        sim.set_solver(self.sim.solver)
        sim.set_contact_method(self.sim.contact_method)
        self.sim = sim
        self.stamp = self.stamp if keep_time else round(self.config.node.start_time * 1e9)
        self._forget()
