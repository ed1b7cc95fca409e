"""Run states of the simulation: running, paused, stepping, waiting or frozen; and the loop that does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from rclpy.node import Node
from rclpy.task import Future

from constrained_sim.exceptions import InvalidValue
from constrained_sim.msg import SimulationStatus
from constrained_sim.nanoseconds import NANOSECONDS, nanoseconds_of, seconds_of
from constrained_sim.options import SPEEDS
from constrained_sim.ros.callbacks import SERVICE_PERIOD, Callbacks
from constrained_sim.ros.commands import Commands
from constrained_sim.ros.health import Counters, Health
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.pace import Pace, Realtime
from constrained_sim.ros.world import World
from constrained_sim.validation import number

REPEAT_AFTER = 0.25
"""[s] of wall-clock time without an answer after which the last state is published again (lockstep)."""

ALERT = 0.002
"""[s] of wall-clock time for which answers are looked for without sleeping (lockstep): to be woken, with cold caches,
takes longer than many a controller."""

DIAGNOSTICS_PERIOD = 1.0
"""[s] of wall-clock time between two diagnostics."""

BREATH = 3e-5
"""[s] of wall-clock time between two looks for answers: each takes a lock that the thread which receives them needs."""

START_PATIENCE = 60.0
"""[s] of wall-clock time that a node with a ``duration`` waits at least for what has to be there at the start."""

IDLE = 0.1
"""[s] for which the executor waits at most while there is nothing to simulate."""


class Control:
    """Runs the loop of the node in one thread: simulate, publish, and spin the executor in between.

    Callbacks run between control periods only, so whatever they change acts at a period boundary.

    Attributes:
        failure: why the loop ended before the configured duration was simulated; empty: it did not.
    """

    def __init__(
        self,
        node: Node,
        world: World,
        outputs: Outputs,
        commands: Commands,
        pace: Pace,
        watches: Sequence[Callable[[], str]],
    ) -> None:
        """Keep the parts of the node; `watches` return what the user should know now, or nothing."""
        self._node, self._world, self._outputs = node, world, outputs
        self._commands, self._pace = commands, pace
        self._watches = watches
        self._callbacks = Callbacks(node, commands.inbox.subscriptions)
        self._options = world.config.node
        self._paused, self._active, self._runs = self._options.start_paused, False, False
        self._stopped = False
        self._steps_wanted = 0
        self._steps_done: Future | None = None
        self._after_step: Callable[[int], None] = lambda left: None
        self._waiting_since: float | None = None
        self._free_run: Realtime | None = None
        self._was_overdue = False
        self._next_diagnostics = 0.0
        waits = self._options.wait_for_first_command or self._options.wait_for_subscriber or self._options.record
        self._started = not waits
        self._repeated = self._warned = time.monotonic()
        self._told = Counters()
        self._text = self.failure = self._recording_problem = ""
        self._status_period = round(NANOSECONDS / self._options.status_rate)
        self._next_status = world.stamp
        self._rate_from = (time.monotonic(), world.stamp)
        self._end = world.stamp + nanoseconds_of(self._options.duration) if self._options.duration else None

    # -- what services ask for

    @property
    def paused(self) -> bool:
        """Whether periods are simulated on request only."""
        return self._paused

    def pause(self, on: bool) -> str:
        """Pause or go on; a pause ends steps that were requested. Return what the status says now."""
        self._paused = on
        self._pace.restart()
        if on:
            self._finish_steps("paused")
        self.changed("paused" if on else "running" if self._active else "inactive")
        return self._message

    def activate(self, on: bool) -> None:
        """Let time go on, unless it is paused, or stand still: transitions of a managed node."""
        self._active = on
        self._pace.restart()
        if not on:
            self._finish_steps("inactive")
        if self._runs:  # before that, nothing is published
            self.changed("active" if on else "inactive")

    def request_steps(self, periods: int, after_each: Callable[[int], None] = lambda left: None) -> Future:
        """Run `periods` control periods; the future's result is empty, or why it stopped early.

        Args:
            periods: how many.
            after_each: told how many are left, once a period is published.

        Raises:
            InvalidValue: not paused, frozen, at its end, none wanted, or a request is under way.
        """
        if not self._active:
            raise InvalidValue("step", "an inactive node", "an active one: ros2 lifecycle set NODE activate")
        if not self._paused:
            raise InvalidValue("step", "a running simulation", "a paused one: call ~/pause with data: true first")
        if self._stopped:
            raise InvalidValue("step", "a node that ends", "one that goes on")
        if self._steps_done is not None:
            raise InvalidValue("step", "a second request", "one at a time")
        if periods < 1:
            raise InvalidValue("periods", periods, "at least 1")
        if self._world.frozen:
            raise InvalidValue("step", f"a frozen simulation ({self._world.frozen})", "one that was reset")
        self._steps_wanted, self._steps_done = periods, Future(executor=self._callbacks.executor)
        self._after_step = after_each
        if not self._started:
            self._waiting_since = None  # what is waited for is said once more
        self._pace.restart()
        return self._steps_done

    def end_steps(self, why: str) -> None:
        """End the steps that were requested, where there are any, after those that are published already."""
        self._finish_steps(why)

    def check_real_time_factor(self, factor: float) -> None:
        """Refuse a factor that cannot be set.

        Raises:
            InvalidValue: out of range, or another clock mode.
        """
        number("real_time_factor", factor, *SPEEDS)
        if not isinstance(self._pace, Realtime):
            raise InvalidValue("real_time_factor", factor, "a change in clock_mode realtime only")

    def set_real_time_factor(self, factor: float) -> None:
        """Change the speed of realtime mode, checked before."""
        if isinstance(self._pace, Realtime):
            self._pace.factor = factor
            self._pace.restart()

    def was_reset(self) -> None:
        """Start counting anew after a reset."""
        self._finish_steps("the simulation was reset")
        self._commands.expect_answers()
        self._commands.hardware.send_state()
        self._outputs.restart_counters()
        self._waiting_since = None
        self._was_overdue = False
        self._rate_from = (time.monotonic(), self._world.stamp)
        self._pace.restart()
        self._end_free_run()

    def changed(self, text: str, warning: str = "") -> None:
        """Publish the status because something changed, and log a `warning`."""
        if warning:
            self._node.get_logger().warning(warning)
        self._text = text
        self._send_status()

    # -- the loop

    def run(self) -> None:
        """Run until stopped, or until the configured duration has been simulated."""
        self._rate_from = (time.monotonic(), self._world.stamp)
        self._runs = True
        self._send_status()
        self._pace.restart()
        while not self._stopped and (self._end is None or self._world.stamp < self._end):
            self._loop_once()
        self._stopped = True
        self._finish_steps("the node ends")
        self._callbacks.finish()
        self._commands.refusals.tell_more()

    @property
    def stopped(self) -> bool:
        """Whether the loop is to end."""
        return self._stopped

    def stop(self) -> None:
        """End the loop at the next period boundary."""
        self._stopped = True

    def _loop_once(self) -> None:
        self._commands.take_all()
        self._outputs.flush()
        if time.monotonic() >= self._next_diagnostics:
            self._next_diagnostics = time.monotonic() + DIAGNOSTICS_PERIOD
            self._watch_recording()
            self._commands.refusals.tell_more()
            self._publish_latched()
            warnings = [warning for watch in self._watches if (warning := watch())]
            self._outputs.send_diagnostics(self._health("; ".join(warnings)))
        if self._is_idle():
            self._publish_latched()
            if self._outputs.counters != self._told:
                self._send_status()
            self._callbacks.wait(IDLE)
            return
        self._callbacks.run_ready()
        if self._is_idle():
            return
        if not self._started:
            self._wait_to_start()
            return
        if not self._outputs.recorder_has_room(SERVICE_PERIOD):
            return
        delay = self._pace.delay(self._commands.answers)
        if self._free_run is not None:
            delay = self._free_run_delay(delay)
        if delay == float("inf"):
            self._wait_for_answer()
        elif delay > 0.0:
            time.sleep(min(delay, SERVICE_PERIOD))  # commands act at the boundary only: no need to be woken by each
        else:
            self._waiting_since = None
            self._advance()

    def _is_idle(self) -> bool:
        """Whether there is nothing to simulate."""
        return not self._active or bool(self._world.frozen) or (self._paused and not self._steps_wanted)

    def _advance(self) -> None:
        """Simulate one control period and publish it."""
        if (self._free_run or self._pace).begun():
            self._outputs.counters.late_periods += 1
        self._commands.expect_answers()
        self._watch_command_timeout()
        period = self._world.advance()
        if period is not None:
            self._commands.hardware.send_state()  # before the messages, which are made while controllers work
            if self._world.stamp >= self._next_status:
                self._send_status()
            self._outputs.send_period(period)
        if self._world.frozen:
            self._react_to_freezing()
        elif self._steps_wanted:
            self._steps_wanted -= 1
            self._after_step(self._steps_wanted)
            if not self._steps_wanted:
                self._finish_steps("")
                if self._status_is_old:
                    self._send_status()

    def _react_to_freezing(self) -> None:
        """Say why the world is frozen; a node with a ``duration``, which nobody may be there to reset, ends."""
        if self._options.duration:
            self._give_up(f"frozen: {self._world.frozen}")
        else:
            self._node.get_logger().error(f"frozen: {self._world.frozen}; call ~/reset to go on")
            self.changed(self._world.frozen)
        self._finish_steps(self._world.frozen)

    def _wait_for_answer(self) -> None:
        """Wait for commands; repeat the state for controllers that missed it; say who is missing."""
        now = time.monotonic()
        if self._waiting_since is None:
            self._waiting_since = self._repeated = self._warned = now
        if self._commands.hardware.is_awaited:
            if not self._commands.hardware.wait(SERVICE_PERIOD):
                return
        elif now - self._waiting_since < ALERT:
            while time.monotonic() - now < BREATH:
                pass  # awake: see ALERT
            return
        else:
            self._commands.inbox.wait(SERVICE_PERIOD)
        self._publish_latched()
        self._repeat(now)
        gives_up = self._options.duration and self._options.lockstep_action == "warn"
        if gives_up and now - self._waiting_since > self._patience:
            self._give_up(f"lockstep: no answer for {now - self._waiting_since:.1f} s{self._dropped}")
            return
        if now - self._warned > self._options.lockstep_timeout:
            self._warned = now
            wanted, publishers = self._options.lockstep_commands, self._commands.publishers
            self._react_to_silence(
                f"lockstep: waiting for {wanted - self._commands.answers} of {wanted} commands for "
                f"{now - self._waiting_since:.1f} s; {publishers} publisher(s) of commands, "
                f"{self._outputs.states.subscribers} subscriber(s) of joint_states are connected{self._dropped}"
            )

    def _repeat(self, now: float) -> None:
        """Publish the state again for those who missed it, and the status where there is something new to say."""
        if now - self._repeated <= REPEAT_AFTER:
            return
        if self._repeated == self._waiting_since or self._outputs.counters != self._told:
            self._send_status()  # it waits, or it has dropped or refused commands meanwhile
        self._repeated = now
        self._outputs.states.repeat_state()

    @property
    def _dropped(self) -> str:
        """Return how many answers to other states there were, as a part of a sentence; empty: none."""
        count = self._outputs.counters.commands_dropped
        return f"; {count} command(s) with other stamps were dropped" if count else ""

    @property
    def _patience(self) -> float:
        """How long a node with a ``duration`` waits for commands [s] of wall-clock time."""
        return max(self._options.duration, self._options.lockstep_timeout)

    def _give_up(self, why: str) -> None:
        """End the node before its duration has been simulated: nobody drives it, or it is frozen."""
        self.failure = f"{why}; the node ends before its duration of {self._options.duration:g} s"
        self.changed(self.failure)
        self._stopped = True

    def _react_to_silence(self, text: str) -> None:
        """Do what ``lockstep_action`` says where answers are missing."""
        action = self._options.lockstep_action
        if action == "pause":
            self._waiting_since = None
            self._paused = True
            text += "; paused"
            self._finish_steps(text)
        elif action == "continue":
            self._waiting_since = None
            self._free_run = Realtime(seconds_of(self._world.period_ns), 1.0)
            self._commands.any_stamp = True
            text += "; going on in real time, with the last command, until one comes"
        self._node.get_logger().warning(text)
        self.changed(text)

    def _free_run_delay(self, delay: float) -> float:
        """Return how long to wait while lockstep goes on without its controller; `delay` is 0 once it answers."""
        if delay == 0.0 or self._free_run is None:
            self._end_free_run()
            self.changed("lockstep: commands come again")
            return delay
        return self._free_run.delay(0)

    def _end_free_run(self) -> None:
        self._free_run, self._commands.any_stamp = None, False

    def _watch_command_timeout(self) -> None:
        """Say when ``command_timeout`` begins to act, and when it ends."""
        overdue = self._world.command_is_overdue
        if overdue != self._was_overdue:
            self._was_overdue = overdue
            action = self._options.timeout_action
            text = f"no command for {self._options.command_timeout} s: {action}" if overdue else "commands come again"
            self._node.get_logger().warning(text)
            self.changed(text)

    def _watch_recording(self) -> None:
        """Say what keeps messages from being recorded, when it begins and when it ends."""
        problem = self._outputs.recording_problem
        if problem != self._recording_problem:
            self._recording_problem = problem
            self._node.get_logger().error(problem or "messages are recorded again")
            self.changed(problem or "messages are recorded again")

    def _wait_to_start(self) -> None:
        """Show the initial state to those who come up, until all that is waited for is there."""
        missing = [] if self._commands.answers or not self._options.wait_for_first_command else ["a command"]
        subscriber = self._options.wait_for_subscriber
        if subscriber and not self._outputs.states.are_heard_by(subscriber):
            missing.append(f"a subscription of {subscriber!r} to contact_forces")
        if not self._outputs.recorder_has_room(0.0):
            missing.append("the recording to begin")
        now = time.monotonic()
        if not missing:
            self._started, self._waiting_since = True, None
            self._pace.restart()
            self.changed("started")
            return
        if self._waiting_since is None:
            self._waiting_since = self._repeated = now
            text = f"waiting for {' and '.join(missing)}"
            self.changed(text, f"the step that was asked for is {text}" if self._steps_wanted else "")
        self._repeat(now)
        if self._options.duration and now - self._waiting_since > max(self._patience, START_PATIENCE):
            self._give_up(f"waited for {' and '.join(missing)} for {now - self._waiting_since:.1f} s")
        self._publish_latched()
        self._commands.inbox.wait(SERVICE_PERIOD)

    def _finish_steps(self, why: str) -> None:
        self._steps_wanted = 0
        if self._steps_done is not None:
            self._steps_done.set_result(why)
            self._callbacks.expect()
            self._steps_done = None

    def _publish_latched(self) -> None:
        """Tell those who have begun to listen how things are."""
        self._outputs.publish_latched()
        if self._outputs.status_has_newcomers:
            self._send_status()

    @property
    def _status_is_old(self) -> bool:
        """Whether time has passed since the last status."""
        return self._next_status != self._world.stamp + self._status_period

    def _send_status(self) -> None:
        health = self._health()
        now = time.monotonic()
        if now - self._rate_from[0] > 1.0:
            self._rate_from = (now, self._world.stamp)
        self._next_status = self._world.stamp + self._status_period
        self._told = replace(self._outputs.counters)
        self._outputs.send_status(health)

    def _health(self, warning: str = "") -> Health:
        factor, problem = self._real_time_factor(), self._outputs.recording_problem
        return Health(self._node.get_fully_qualified_name(), self._state(), self._message, factor, problem, warning)

    @property
    def _message(self) -> str:
        """What the status says: what happened last, of a frozen simulation why it is frozen."""
        return self._world.frozen or self._text

    def _real_time_factor(self) -> float:
        then, stamp = self._rate_from
        return seconds_of(self._world.stamp - stamp) / max(time.monotonic() - then, 1e-9)

    def _state(self) -> int:
        if self._world.frozen:
            return SimulationStatus.FROZEN
        if self._paused or not self._active:
            return SimulationStatus.PAUSED
        waiting = self._waiting_since is not None or not self._started
        return SimulationStatus.WAITING if waiting else SimulationStatus.RUNNING
