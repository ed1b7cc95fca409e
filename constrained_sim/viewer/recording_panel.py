"""The time line of a recording: play, scrub, speed, events."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from constrained_sim.validation import Array
from constrained_sim.viewer.frame import Frame
from constrained_sim.viewer.source import Event, Source

MOST_EVENTS = 200
"""That the list shows."""


class Recording(Source):
    """A run that is over: frames at any instant of it.

    Attributes:
        times: (n,) [s] of its frames.
        events: in the order of time.
        time: [s] that :meth:`frame` shows.
    """

    times: Array
    events: Sequence[Event]
    time: float
    _shown: tuple[int, Frame | None] = (-1, None)

    @abstractmethod
    def frame_at(self, index: int) -> Frame | None:
        """Return the frame of ``times[index]``; None where the recording does not tell."""

    def frame(self) -> Frame | None:
        """Return the frame at the present time; the same one until there is another."""
        index = self.index()
        if index != self._shown[0]:
            self._shown = index, self.frame_at(index)
        return self._shown[1]

    def frames_since(self, t: float, spacing: float) -> Iterator[Frame]:
        """Return frames after `t` [s] and before the present one, this far apart [s]."""
        wanted = np.arange(max(t, self.begin), self.time, spacing)
        for index in np.unique(np.searchsorted(self.times, wanted)):
            if t < self.times[index] < self.time and (frame := self.frame_at(int(index))) is not None:
                yield frame

    def add_controls(self, server: Any) -> RecordingPanel:
        """Add the time line."""
        return RecordingPanel(server, self)

    def index(self) -> int:
        """Return the last of :attr:`times` that is not after the present one."""
        return max(int(np.searchsorted(self.times, self.time + 1e-9, side="right")) - 1, 0)

    @property
    def begin(self) -> float:
        """First instant [s]."""
        return float(self.times[0])

    @property
    def end(self) -> float:
        """Last instant [s]."""
        return float(self.times[-1])

    def picture_of(self, event: Event) -> float:
        """Return the instant [s] of the first frame that shows `event`."""
        index = int(np.searchsorted(self.times, event.t - 1e-9))
        return max(event.t, float(self.times[min(index, len(self.times) - 1)]))

    def next_event(self) -> Event | None:
        """Return the first event after the present time; the very first one after the last."""
        later = [event for event in self.events if event.t > self.time + 1e-9]
        return next(iter(later or self.events), None)


class RecordingPanel:
    """Moves the time of a :class:`Recording`."""

    def __init__(self, server: Any, source: Recording) -> None:
        """Add the controls to the page of a `viser.ViserServer`."""
        gui = server.gui
        self._source, self._wall, self._lock = source, time.monotonic(), threading.Lock()
        self.plays = True
        self._play = gui.add_button("Pause")
        self._play.on_click(lambda _: self._play_or_pause())
        marks = tuple((event.t, "") for event in source.events[:MOST_EVENTS])
        step = max((source.end - source.begin) / 1000.0, 1e-6)
        self._slider = gui.add_slider("t [s]", source.begin, source.end, step, source.begin, marks=marks or None)
        self._shown = source.begin
        self._speed = gui.add_slider("speed", 0.05, 4.0, 0.05, 1.0)
        self._repeat = gui.add_checkbox("repeat", True)
        jump = gui.add_button("Next impact", disabled=not source.events)
        jump.on_click(lambda _: self._jump())
        self._last_event = gui.add_markdown("one event" if len(source.events) == 1 else f"{len(source.events)} events")

    def update(self) -> None:
        """Go where a user has moved the slider, and let time go on by what has passed on the wall clock."""
        now, before = time.monotonic(), self._wall
        self._wall = now
        with self._lock:
            self._scrub()
            if self.plays:
                self._advance((now - before) * float(self._speed.value))

    def _advance(self, seconds: float) -> None:
        t = self._source.time + seconds
        if t > self._source.end:
            t = self._source.begin if self._repeat.value else self._source.end
            if not self._repeat.value:
                self._toggle()
        self._move(t)

    def _move(self, t: float) -> None:
        self._source.time = t
        self._slider.value = self._shown = min(max(t, self._source.begin), self._source.end)

    def _scrub(self) -> None:
        """Go where a user has moved the slider."""
        if self._slider.value != self._shown:
            self._source.time = self._shown = float(self._slider.value)

    def _toggle(self) -> None:
        self.plays = not self.plays
        self._play.label = "Pause" if self.plays else "Play"

    def _play_or_pause(self) -> None:
        """Stop time, or let it go on; from the beginning where it has come to its end."""
        with self._lock:
            self._scrub()
            if not self.plays and self._source.time >= self._source.end:
                self._move(self._source.begin)
            self._toggle()

    def _jump(self) -> None:
        """Go to the next event and stay there."""
        with self._lock:
            self._scrub()
            event = self._source.next_event()
            if event is None:
                return
            self._move(self._source.picture_of(event))
            if self.plays:
                self._toggle()
        self._last_event.content = f"{event.t:.4f} s: {event.text}"
