"""Buttons and sliders of a simulation that runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from constrained_sim.exceptions import ConstrainedSimError
from constrained_sim.solvers import SOLVERS
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array
from constrained_sim.viewer.source import Source

SPEEDS = 0.05, 2.0
"""Least and most of the slider, in steps of the least."""

STRONGEST_PUSH = 2.0
"""Of the slider, as a share of the robot's weight: twice the weight throws over any robot that stands."""

UNLIMITED_EFFORT = 1.0
"""Of the slider of a joint without effort limit, as the weight of the robot at an arm of this length [m]."""


class LiveSource(Source):
    """A simulation that runs and takes commands; what it refuses raises ConstrainedSimError.

    Attributes:
        speed: simulated seconds per second, as it was asked for last.
    """

    speed: float = 1.0

    def add_controls(self, server: Any) -> LivePanel:
        """Add buttons and sliders."""
        return LivePanel(server, self)

    @property
    @abstractmethod
    def is_paused(self) -> bool:
        """Whether time stands still."""

    @property
    @abstractmethod
    def methods(self) -> tuple[str, str]:
        """Names of the solver and the stepper in use."""

    @abstractmethod
    def pause(self, on: bool) -> None:
        """Stop time, or let it go on."""

    @abstractmethod
    def step(self) -> None:
        """Simulate one control period, while paused."""

    @abstractmethod
    def reset(self) -> None:
        """Begin anew at the initial state."""

    @abstractmethod
    def use(self, solver: str = "", stepper: str = "") -> None:
        """Use another solver or stepper from now on; empty: as it is."""

    @abstractmethod
    def push(self, link: str, force: Array, seconds: float) -> None:
        """Let a force (3,) [N], world axes, act at the origin of `link` for so long."""

    @abstractmethod
    def set_effort(self, joint: str, effort: float) -> None:
        """Command the effort [N m, N] of an actuated joint."""

    @abstractmethod
    def set_speed(self, factor: float) -> None:
        """Simulate this many seconds per second."""


class LivePanel:
    """What a user can do to a :class:`LiveSource`; refusals are shown as notes."""

    def __init__(self, server: Any, source: LiveSource) -> None:
        """Add the controls to the page of a `viser.ViserServer`."""
        gui = server.gui
        self._server, self._gui, self._source = server, gui, source
        robot = source.world.robot
        self._weight = robot.mass * float(np.linalg.norm(robot.gravity))
        self._shares: dict[str, float] = {}
        self._pause = gui.add_button("Pause")
        self._on_click(self._pause, lambda: source.pause(not source.is_paused))
        self._on_click(gui.add_button("Step"), source.step)
        self._on_click(gui.add_button("Reset"), self._reset)
        self._speed = gui.add_slider("real-time factor", *SPEEDS, SPEEDS[0], np.clip(source.speed, *SPEEDS).item())
        self._speed.on_update(self._set_speed)
        with gui.add_folder("Solver"):
            self._methods = source.methods
            solver, stepper = self._methods
            self._choices = (
                self._add_choice("solver", SOLVERS, solver, lambda name: source.use(solver=name)),
                self._add_choice("stepper", STEPPERS, stepper, lambda name: source.use(stepper=name)),
            )
        with gui.add_folder("Push a link"):
            self._add_push()
        with gui.add_folder("Effort of a joint"):
            self._add_effort()

    def update(self) -> None:
        """Say on the button what a click will do; follow who else chooses a solver or a stepper, and what is there."""
        label = "Go on" if self._source.is_paused else "Pause"
        if self._pause.label != label:
            self._pause.label = label
        if self._source.methods != self._methods:
            self._methods = self._source.methods
            self._show_methods()
        links = self._links()
        if links != self._link.options:
            self._link.options = links

    def _links(self) -> tuple[str, ...]:
        """Return the links that can be pushed: those that move, of the robot and of the objects beside it."""
        frame = self._source.frame()
        objects = {} if frame is None else {f"{one.name}/": one.body for one in frame.objects}
        bodies = {"": self._source.world.robot} | objects
        return tuple(
            prefix + link for prefix, body in bodies.items() for link in body.links if body.link_placement(link)[0]
        )

    def _set_speed(self, event: Any) -> None:
        """Do as a user asks; what is refused does not stay on the slider."""
        if event.client is not None and not self._try(lambda: self._source.set_speed(float(self._speed.value))):
            self._speed.value = np.clip(self._source.speed, *SPEEDS).item()

    def _show_methods(self) -> None:
        for choice, name in zip(self._choices, self._methods, strict=True):
            choice.value = name

    def _add_choice(self, label: str, names: Iterable[str], name: str, use: Callable[[str], None]) -> Any:
        choice = self._gui.add_dropdown(label, tuple(dict.fromkeys((*names, name))), initial_value=name)

        def choose(event: Any) -> None:
            if event.client is not None and not self._try(lambda: use(choice.value)):
                self._show_methods()

        choice.on_update(choose)
        return choice

    def _add_push(self) -> None:
        robot = self._source.world.robot
        masses = {name: robot.model.inertias[robot.link_placement(name)[0]].mass for name in robot.links}
        heaviest = max((name for name in self._links() if name in masses), key=lambda name: masses[name])
        link = self._link = self._gui.add_dropdown("link", self._links(), initial_value=heaviest)
        most = _rounded_up(STRONGEST_PUSH * max(1.0, self._weight))
        force = [self._gui.add_slider(f"{axis} [N]", -most, most, most / 100.0, 0.0) for axis in "xyz"]
        seconds = self._gui.add_slider("for [s]", 0.01, 1.0, 0.01, 0.1)
        push = self._gui.add_button("Push")
        values = lambda: np.array([slider.value for slider in force], dtype=np.float64)  # noqa: E731
        self._on_click(push, lambda: self._source.push(link.value, values(), float(seconds.value)))

    def _add_effort(self) -> None:
        robot = self._source.world.robot
        joints = robot.actuated_joints
        if not joints:
            return
        joint = self._joint = self._gui.add_dropdown("joint", joints)
        limits = dict(zip(joints, robot.effort_limits, strict=False))
        share = self._share = self._gui.add_slider("share of its limit", -1.0, 1.0, 0.01, 0.0)

        def command(event: Any) -> None:
            if event.client is None:
                return
            name, wanted = joint.value, float(share.value)  # another joint may be chosen while this is asked for
            most = limits[name] if np.isfinite(limits[name]) else UNLIMITED_EFFORT * self._weight
            if self._try(lambda: self._source.set_effort(name, wanted * float(most))):
                self._shares[name] = wanted
            else:
                self._show_share()

        share.on_update(command)
        joint.on_update(lambda _: self._show_share())

    def _show_share(self) -> None:
        """Put the slider where the effort of the chosen joint is."""
        self._share.value = self._shares.get(self._joint.value, 0.0)

    def _reset(self) -> None:
        """Begin anew; nothing is commanded then."""
        self._source.reset()
        self._shares.clear()
        if self._source.world.robot.actuated_joints:
            self._show_share()

    def _on_click(self, button: Any, act: Callable[[], None]) -> None:
        button.on_click(lambda _: self._try(act))

    def _try(self, act: Callable[[], None]) -> bool:
        """Do something, and return whether that could be; show what was refused to everybody who looks."""
        try:
            act()
        except ConstrainedSimError as error:
            for client in self._server.get_clients().values():
                client.add_notification("Refused", str(error), color="red", auto_close_seconds=8.0)
            return False
        return True


def _rounded_up(value: float) -> float:
    """Return the next number above a positive `value` that has one digit but for a half: 1, 1.5, 2, ... 9.5, 10."""
    unit = 0.5 * 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / unit) * unit)
