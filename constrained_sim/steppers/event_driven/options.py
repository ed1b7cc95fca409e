"""Every tolerance and budget of event-driven stepping, with its unit and the reason for its value."""

from __future__ import annotations

from typing import NamedTuple


class EventOptions(NamedTuple):
    """When something is closed, at rest or an event, and how events are located.

    Attributes:
        closed_gap: gap [m, rad] up to which what rests counts as closed.
        touching_gap: gap [m, rad] up to which what approaches collides now: rounding, some hundred metres from the
            world's origin.
        resting_speed: approach speed [m/s, rad/s] up to which what touches rests; beyond, it collides. What a contact
            falls from a gap of ``event_margin`` makes up to 1e-8 m/s.
        instant: [s] within which what is about to touch touches now, and events count as those of one instant.
        max_events: in one step.
        max_stalled: events of one instant, one after the other, before time goes on without looking for any.
        event_free_time: how long that lasts [s].
        event_margin: of the event functions beyond their values at the beginning of a segment: rounding; at most, where
            it is of a gap.
        outside: by how much, relative to the largest force, forces of least norm are outside their cones, beyond
            rounding.
        independent: singular value of a Delassus matrix, relative to the largest, below which a combination of forces
            moves nothing.
        soft_depth: depth [m] to which a soft contact comes in a first step at most: in a longer one it might be left
            unnoticed.
        max_turn: [rad, m] by which a joint moves at most between two looks for events.
        onset_speed: speed [m/s, rad/s] up to which what begins to slip or to turn does so along its acceleration: its
            direction follows forces at a rate that is inverse to the speed, too fast for an explicit integrator.
        onset_steps: Newton steps, at most, that find the direction of an onset.
        onset_angle: [rad] of the differences that these steps take.
        onset_rank: singular value of their matrix, relative to the largest, below which no angle follows from it:
            differences are exact to about this.
        painleve_ratio: ratio of accelerations with and without friction from which on the integrator meets rounding: a
            Painleve impact.
        approach_ratio: approach in a Painleve impact, relative to the largest speed of its contacts: too small to
            matter, too large to be overlooked.
        balanced: singular value of rows of unit length below which forces along them balance each other.
        cuts: planes for each cone, at most, in the linear program for forces well inside their cones.
        missing_margin: part of the largest margin that may be missing then.
        enter_sigma: singular value of the scaled rows, see :mod:`.singular_crossing`, below which a combination of them
            is not enforced in a crossing.
        singular_sigma: singular value of the scaled rows that a mechanism reaches which moves through a singular
            position.
        lookahead: how far ahead rows are looked at where a motion begins, which may be in such a position [rad, m].
        off_path: row velocity within the crossing, relative to the largest velocity, from which on the motion has left
            its path.
    """

    closed_gap: float = 1e-10
    touching_gap: float = 1e-13
    resting_speed: float = 1e-7
    instant: float = 1e-11
    max_events: int = 5000
    max_stalled: int = 3
    event_free_time: float = 1e-9
    event_margin: float = 1e-16
    outside: float = 1e-9
    independent: float = 1e-11
    soft_depth: float = 1e-5
    max_turn: float = 1.0
    onset_speed: float = 1e-6
    onset_steps: int = 12
    onset_angle: float = 1e-6
    onset_rank: float = 1e-9
    painleve_ratio: float = 1e6
    approach_ratio: float = 1e-7
    balanced: float = 1e-9
    cuts: int = 50
    missing_margin: float = 0.1
    enter_sigma: float = 1e-3
    singular_sigma: float = 1e-5
    lookahead: float = 1e-2
    off_path: float = 1e-6


EVENTS = EventOptions()
