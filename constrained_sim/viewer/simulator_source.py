"""A `Simulator` that runs in a thread of its own while the page shows it."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import asdict, replace

import numpy as np

from constrained_sim.constraints import point_contacts
from constrained_sim.dynamics.dynamics import kinematics_at, potential_energy
from constrained_sim.simulator import Controller, Simulator
from constrained_sim.user_functions import ask_user
from constrained_sim.validation import Array
from constrained_sim.viewer.declared_contacts import DeclaredContacts
from constrained_sim.viewer.frame import Frame, ShownImpact, anchors_of, contacts_of, energies_of, split
from constrained_sim.viewer.live_panel import LiveSource
from constrained_sim.viewer.source import World
from constrained_sim.wrench import Wrench

SLICE = 0.01
"""[s] of wall-clock time between two looks at the clock."""


class SimulatorSource(LiveSource):
    """Steps a simulator in real time; it begins paused.

    Between the first frame and :meth:`close`, the simulator belongs to this source, and once time has gone on, to a
    thread of its own.
    """

    def __init__(self, sim: Simulator, controller: Controller | None = None) -> None:
        """Show `sim`; ``controller(t, q, v)`` gives (nu,) efforts, to which the user's are added."""
        self.world = World.of(sim.robot, sim.constraints, sim.collisions)
        self._sim, self._law = sim, controller
        self._begin = sim.state
        self._extra = np.zeros(sim.robot.nu)
        self._impacts: deque[ShownImpact] = deque(maxlen=50)
        self._lock = threading.RLock()
        self._paused, self._closed = True, False
        self._frame = self._beginning()
        self._thread: threading.Thread | None = None

    def frame(self) -> Frame:
        """Return the frame after the last step."""
        return self._frame

    @property
    def is_paused(self) -> bool:
        """Whether time stands still."""
        return self._paused

    @property
    def methods(self) -> tuple[str, str]:
        """Names of the solver and the stepper."""
        return self._sim.solver.name, self._sim.stepper_name

    def pause(self, on: bool) -> None:
        """Stop time, or let it go on."""
        self._paused = on
        if not on and self._thread is None:
            self._thread = threading.Thread(target=self._run, name="simulator of the viewer", daemon=True)
            self._thread.start()

    def step(self) -> None:
        """Simulate one step."""
        with self._lock:
            self._advance()

    def reset(self) -> None:
        """Begin anew where the simulator was first shown."""
        with self._lock:
            self._sim.reset(self._begin.q, self._begin.v, self._begin.t)
            self._extra[:] = 0.0
            self._impacts.clear()
            self._frame = self._beginning()

    def use(self, solver: str = "", stepper: str = "") -> None:
        """Use another solver or stepper from the next step on."""
        with self._lock:
            if solver:
                self._sim.set_solver(solver)
            if stepper:
                self._sim.set_stepper(stepper)

    def push(self, link: str, force: Array, seconds: float) -> None:
        """Let a force (3,) [N], world axes, act at the origin of `link`."""
        with self._lock:
            self._sim.apply(Wrench(link, force=force.tolist()), seconds)

    def set_effort(self, joint: str, effort: float) -> None:
        """Add an effort [N m, N] to what the controller asks of a joint."""
        self._extra[self._sim.robot.actuated_joints.index(joint)] = effort

    def set_speed(self, factor: float) -> None:
        """Simulate this many seconds per second."""
        self.speed = factor

    def close(self) -> None:
        """End the thread; the simulator stays as it is."""
        self._closed = True
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed:
            time.sleep(SLICE)
            now = time.monotonic()
            if self._paused:
                due = now
                continue
            due = max(due, now - 5.0 * SLICE)  # what cannot be simulated in time is not made up for
            with self._lock:
                while due < now and not self._paused:
                    due += self._sim.dt / self.speed
                    self._advance()

    def _beginning(self) -> Frame:
        """Return the frame before the first step: no force is known yet."""
        sim, begin = self._sim, self._begin
        q, v, objects = split(sim.robot, begin.q, begin.v)
        declared = DeclaredContacts(sim.robot, sim.constraints, point_contacts(sim.constraints))
        contacts = declared.shown(kinematics_at(sim.robot, begin.q, begin.t), {})
        return Frame(begin.t, q, v, contacts=contacts, energy=self._energies(), objects=objects)

    def _energies(self) -> dict[str, float]:
        sim = self._sim
        return energies_of(sim.kinetic_energy(), potential_energy(sim.robot, sim.state.q), asdict(sim.energy))

    def _advance(self) -> None:
        """Simulate a step; one that fails, or a controller that does, pauses, and the page says why."""
        sim = self._sim
        try:
            state = sim.state
            asked = 0.0 if self._law is None else np.asarray(ask_user(self._law, state.t, state.q, state.v))
            result = sim.step(asked + self._extra)
        except Exception as error:  # whatever the user's controller raises; nobody else would hear of it
            self._paused = True
            self._frame = replace(self._frame, text=f"{type(error).__name__}: {error}")
            return
        self._impacts.extend(
            ShownImpact(impact.t, impact.energy_lost, tuple(impact.contact_impulses)) for impact in result.impacts
        )
        q, v, objects = split(sim.robot, result.state.q, result.state.v)
        self._frame = Frame(
            result.state.t,
            q,
            v,
            dict(zip(sim.robot.actuated_joints, result.tau_applied.tolist(), strict=False)),
            contacts_of(result),
            anchors_of(result),
            tuple(self._impacts),
            self._energies(),
            ", ".join(self.methods),
            objects,
        )
