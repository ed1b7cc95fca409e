"""One simulated step, one file per way to do it, and their registry."""

from constrained_sim.steppers.event_driven import EventDriven
from constrained_sim.steppers.smooth import Smooth
from constrained_sim.steppers.step_outcome import Evaluation, Run, StepOutcome
from constrained_sim.steppers.stepper import Stepper
from constrained_sim.steppers.time_stepping import TimeStepping

STEPPERS: dict[str, type[Stepper]] = {stepper.name: stepper for stepper in (TimeStepping, EventDriven, Smooth)}

__all__ = ["STEPPERS", "Evaluation", "Run", "StepOutcome", "Stepper"]
