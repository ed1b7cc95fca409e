"""Event-driven stepping: adaptive integration between events, impact maps at events."""

from constrained_sim.steppers.event_driven.event_driven import EventDriven

__all__ = ["EventDriven"]
