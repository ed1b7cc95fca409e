"""The plots beside the picture: chosen signals over the last seconds."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from constrained_sim.joints import single_joints
from constrained_sim.palette import COLOURS
from constrained_sim.viewer.frame import Frame
from constrained_sim.viewer.source import Source

SPAN = 5.0
"""[s] That a plot shows, in the time of the simulation: some steps of a robot that walks."""

SAMPLES = 400
"""Frames that a plot holds at most: more than pixels across it."""

SPACING = SPAN / 100.0
"""[s] Between frames with which a recording fills the plot: an impact is seen, and a bag is read quickly enough."""

MOST_LINES = len(COLOURS)


class Signals:
    """Plots of a `viser.GuiApi`: one group of signals at a time, which the user chooses."""

    def __init__(self, gui: Any, source: Source) -> None:
        """Add the plot of signals of `source`, and its choice."""
        self._source, robot = source, source.world.robot
        self._joints = single_joints(robot.joint_models)
        self._groups: dict[str, Callable[[Frame], Mapping[str, float]]] = {
            "normal forces [N]": lambda frame: {c.name: c.normal_force for c in frame.contacts},
            "positions [rad, m]": lambda frame: {n: j.position(frame.q) for n, j in self._joints.items()},
            "velocities [rad/s, m/s]": lambda frame: {n: float(frame.v[j.v]) for n, j in self._joints.items()},
            "efforts [N m, N]": lambda frame: frame.efforts,
            "energy [J]": lambda frame: frame.energy,
        }
        self._samples: deque[Frame] = deque(maxlen=SAMPLES)
        self._gui, self._lock = gui, threading.Lock()
        self._is_chosen, self._is_drawn = False, True
        self.group = gui.add_dropdown("signals", tuple(self._groups), hint="what the plot shows")
        self.first = gui.add_number(
            "from line", 1, min=1, step=1, hint=f"the plot shows {MOST_LINES} of them from this one on"
        )
        self.group.on_update(self._choose)
        self.first.on_update(lambda _: self.draw())
        self._container = gui.add_folder("plot")
        self._plot: Any = None
        self._shown: tuple[str, ...] = ()

    def add(self, frame: Frame) -> None:
        """Take a new frame; one of an earlier instant begins the plot anew. A recording fills what was jumped over."""
        last = self._samples[-1].t if self._samples else -np.inf
        if frame.t == last:
            return
        begins_anew = frame.t < last
        last = -np.inf if begins_anew else last
        jumped = frame.t - last > 2.0 * SPACING
        between = tuple(self._source.frames_since(max(last, frame.t - SPAN), SPACING)) if jumped else ()
        with self._lock:
            if begins_anew:
                self._samples.clear()
            self._samples.extend((*between, frame))
            self._is_drawn = False
            while self._samples[0].t < frame.t - SPAN:
                self._samples.popleft()

    def finish(self) -> None:
        """Draw what has been taken since the last time, now that time stands still."""
        if not self._is_drawn:
            self.draw()

    def draw(self) -> None:
        """Draw what has been taken; until a user chooses, of the first group in which there is something."""
        with self._lock:
            self._draw()

    def _draw(self) -> None:
        self._is_drawn = True
        if len(self._samples) < 2:
            self._remove_plot()
            return
        if not self._is_chosen:
            filled = (name for name, values in self._groups.items() if values(self._samples[-1]))
            self.group.value = next(filled, self.group.value)
        values = self._groups[self.group.value]
        rows = [values(frame) for frame in self._samples]
        start = int(self.first.value) - 1
        names = tuple(rows[-1])[start : start + MOST_LINES]
        if not names:
            self._remove_plot()
            return
        # What is not there has no force or effort; the browser cannot scale what is not a number.
        table = [np.array([row.get(name, 0.0) for row in rows], dtype=np.float64) for name in names]
        data = (np.array([frame.t for frame in self._samples]), *table)
        if self._plot is not None and self._shown == names:
            self._plot.data = data
            return
        self._remove_plot()
        series = [{"label": name, "stroke": colour, "width": 1.5} for name, colour in zip(names, COLOURS, strict=False)]
        with self._container:
            self._plot = self._gui.add_uplot(
                data, ({"label": "t [s]"}, *series), scales={"x": {"time": False}}, height=220
            )
        self._shown = names

    def _remove_plot(self) -> None:
        if self._plot is not None:
            self._plot.remove()
            self._plot = None

    def _choose(self, event: Any) -> None:
        if event.client is not None:
            self._is_chosen = True
            self.draw()
