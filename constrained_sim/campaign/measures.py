"""Measures of a run: one number, or true or false."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from constrained_sim.config import Config
from constrained_sim.constraints import point_contacts
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import ConfigError, InvalidValue, UnknownName
from constrained_sim.joints import SingleJoint, within_a_turn
from constrained_sim.trajectory import Trajectory
from constrained_sim.validation import Array, lookup, number


class FinishedRun(NamedTuple):
    """A run that came to its end.

    Attributes:
        config: of the simulation.
        trajectory: what was recorded.
        violation: largest violation of a bilateral constraint, or depth of a contact, at the end [m, rad]; None:
            unknown, as of a run over ROS.
    """

    config: Config
    trajectory: Trajectory
    violation: float | None


class Measure(Protocol):
    """Measures a run; its fields are the options in a study's file."""

    def of(self, run: FinishedRun) -> float | bool | None:
        """Return the measure of a `run`; None where it is unknown."""
        ...


@dataclass(frozen=True)
class Fell:
    """Whether a link came too low, or leaned too far.

    Attributes:
        link: whose origin counts; empty: the root of a floating base.
        below: height [m] along the world's z axis; NaN: lower than in the beginning by half of that height.
        tilt: angle between the link's z axis and the world's [rad].
    """

    link: str = ""
    below: float = float("nan")
    tilt: float = float("inf")

    def of(self, run: FinishedRun) -> bool:
        """Return whether it did at the end of any step."""
        begin, heights, uprights = _heights(run, self.link)
        below = begin - 0.5 * abs(begin) if np.isnan(self.below) else self.below
        return bool((heights < below).any() or (np.arccos(np.clip(uprights, -1.0, 1.0)) > self.tilt).any())


@dataclass(frozen=True)
class RequiredFriction:
    """The least coefficient of friction that would have given the same forces at all declared contacts with planes."""

    def of(self, run: FinishedRun) -> float:
        """Return the largest ratio of tangential and normal force; 0 without contact."""
        most = 0.0
        for name, contact in point_contacts(run.config.constraints).items():
            forces = run.trajectory.contact_forces.get(name, np.zeros((0, 3)))
            along = forces @ contact.surface.normal
            tangential = np.linalg.norm(forces - along[:, None] * contact.surface.normal, axis=1)
            active = along > 0.0
            most = max(most, float((tangential[active] / along[active]).max(initial=0.0)))
        return most


@dataclass(frozen=True)
class Effort:
    """The largest effort of any joint [N m, N]."""

    def of(self, run: FinishedRun) -> float:
        """Return the largest magnitude over all steps and joints."""
        return float(np.abs(run.trajectory.tau).max(initial=0.0))


@dataclass(frozen=True)
class EffortShare:
    """The largest effort of any joint as a share of its limit; 1: the limit was reached."""

    def of(self, run: FinishedRun) -> float:
        """Return the largest share over all steps and joints; joints without limit have none."""
        robot, tau = run.config.robot, run.trajectory.tau
        limits = np.where(tau > 0.0, robot.effort_limits, robot.least_efforts)
        return float(np.divide(tau, limits, out=np.zeros_like(tau), where=tau != 0.0).max(initial=0.0))


@dataclass(frozen=True)
class TrackingError:
    """How far the actuated joints are from where they began, or from a reference, root of the mean square [rad, m].

    Continuous joints the shorter way.

    Attributes:
        reference: function ``reference(t)`` (nu,) of the positions of the actuated joints; None: the initial ones.
    """

    reference: Callable[[float], Any] | None = None

    def of(self, run: FinishedRun) -> float:
        """Return the root of the mean square over all steps and joints."""
        robot, trajectory = run.config.robot, run.trajectory
        joints = [SingleJoint.of(robot, name) for name in robot.actuated_joints]
        positions = np.array([[joint.position(q) for joint in joints] for q in trajectory.q])
        if self.reference is None:
            goal = np.array([joint.position(run.config.q) for joint in joints])
        else:
            goal = np.array([self.reference(t) for t in trajectory.t.tolist()])
        turns = [joint.turns for joint in joints]
        errors = positions - goal
        errors[:, turns] = within_a_turn(errors[:, turns])
        return float(np.sqrt(np.mean(np.square(errors))))


@dataclass(frozen=True)
class Energy:
    """Work of the actuators [J]."""

    def of(self, run: FinishedRun) -> float | None:
        """Return the sum over all steps; None of a run over ROS."""
        work = run.trajectory.energy.get("actuators")
        return None if work is None else float(work.sum())


@dataclass(frozen=True)
class Impacts:
    """Number of impacts."""

    def of(self, run: FinishedRun) -> float:
        """Return it."""
        return float(len(run.trajectory.impacts))


@dataclass(frozen=True)
class Drift:
    """Largest violation of a bilateral constraint, or depth of a contact, at the end [m, rad]."""

    def of(self, run: FinishedRun) -> float | None:
        """Return it; None of a run over ROS."""
        return run.violation


@dataclass(frozen=True)
class Displacement:
    """Horizontal distance from where a link was in the beginning to where it is at the end [m].

    Attributes:
        link: whose origin counts; empty: the root of a floating base.
    """

    link: str = ""

    def of(self, run: FinishedRun) -> float:
        """Return it."""
        begin, end = (_place(run.config, self.link, q) for q in (run.config.q, run.trajectory.q[-1]))
        return float(np.linalg.norm((end - begin)[:2]))


@dataclass(frozen=True)
class Custom:
    """A function of the user's.

    Attributes:
        function: ``function(trajectory)``, which returns a number, or true or false.
    """

    function: Callable[[Trajectory], Any]

    def of(self, run: FinishedRun) -> float | bool:
        """Return what the function returns.

        Raises:
            InvalidValue: it is no number.
        """
        value = self.function(run.trajectory)
        if isinstance(value, bool | np.bool_):
            return bool(value)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"measure {self.function!r}", value, "a number, or true or false") from error


MEASURES: dict[str, type[Measure]] = {
    "fell": Fell,
    "required_friction": RequiredFriction,
    "effort": Effort,
    "effort_share": EffortShare,
    "tracking_error": TrackingError,
    "energy": Energy,
    "impacts": Impacts,
    "drift": Drift,
    "displacement": Displacement,
}
"""Built-in measures by the names that a study's file uses."""


def as_measure(name: str, given: Any) -> Measure:
    """Return the measure that is `given`: itself, or of a function of a Trajectory one that asks it.

    Raises:
        InvalidValue: neither.
    """
    if hasattr(given, "of") and not isinstance(given, type):
        made: Measure = given
        return made
    if not callable(given) or isinstance(given, type):
        raise InvalidValue(f"measure {name!r}", given, "a measure, or a function of a Trajectory")
    return Custom(given)


def read_measure(name: str, content: Any, find: Callable[[str], Any]) -> Measure:
    """Read a measure of a study's file; `find` returns what ``MODULE:NAME`` means.

    Raises:
        UnknownName: no such measure or option.
        ConfigError: options that are no mapping.
        InvalidValue: an option of another kind.
    """
    if isinstance(content, str):
        return as_measure(name, find(content))
    if callable(content):
        return as_measure(name, content)
    kind: Any = lookup("measure", name, MEASURES)
    if not isinstance(content or {}, Mapping):
        raise ConfigError(f"measures.{name}: got {content!r}, allowed: options in a mapping, or MODULE:NAME")
    options = {}
    known = {option.name: option for option in fields(kind)}
    for key, value in (content or {}).items():
        if key not in known:
            raise UnknownName(f"option of measure {name!r}", key, known)
        default = known[key].default
        if isinstance(default, float):
            value = number(f"measures.{name}.{key}", value)
        elif not isinstance(value, str):
            raise InvalidValue(f"measures.{name}.{key}", value, "a text")
        options[key] = find(value) if key == "reference" else value
    made: Measure = kind(**options)
    return made


def _link(config: Config, link: str) -> tuple[int, pin.SE3]:
    """Return the joint that moves a link, and where the link is in its frame; empty: the root of a floating base."""
    robot = config.robot
    if not link and not robot.floating_base:
        raise InvalidValue("link of a measure", link, "a link, since this robot has no floating base")
    return robot.link_placement(link or robot.root_link)


def _place(config: Config, link: str, q: Array) -> Array:
    """Return (3,) where the origin of a link is [m], world frame."""
    joint, offset = _link(config, link)
    there = kinematics_at(config.robot, q).placements[joint]
    return np.asarray(there[3] + offset.translation @ there[:3])


def _heights(run: FinishedRun, link: str) -> tuple[float, Array, Array]:
    """Return the height [m] of a link in the beginning, at all steps, and how upright (cosine) it is at all steps."""
    joint, offset = _link(run.config, link)
    begin = float(_place(run.config, link, run.config.q)[2])
    verticals = np.empty((len(run.trajectory.q), 4))  # of the joint's axes and of its origin
    for vertical, q in zip(verticals, run.trajectory.q, strict=True):
        vertical[:] = kinematics_at(run.config.robot, q).placements[joint, :, 2]
    heights = verticals[:, 3] + verticals[:, :3] @ offset.translation
    return begin, heights, verticals[:, :3] @ offset.rotation[:, 2]
