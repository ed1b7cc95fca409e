"""Proposes a configuration in which a robot stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin
import scipy

from constrained_sim.assembly import assemble
from constrained_sim.bringup.contact_proposal import ROOT, propose_contacts
from constrained_sim.bringup.ground import center_of_mass, checked_contacts, set_on_ground
from constrained_sim.constraints import PointContact
from constrained_sim.dynamics.dynamics import Dynamics, integrate, kinematics_at
from constrained_sim.exceptions import ConstrainedSimError, InvalidValue
from constrained_sim.robot import Robot, checked_robot
from constrained_sim.validation import Array

REACH = 0.87
"""Height of the hips above the feet, as a share of the legs' length: bent enough that knees do not lock."""

INSIDE = 0.02
"""Share of each joint's range that is left at either limit."""

BEND = 0.4
"""rad: joints of the legs start bent one way, then the other way."""

STAY = 0.001
"""m/rad: what it costs to move a joint."""

LEVEL = 10.0
"""What it costs to have contacts on different heights."""

BENT = 0.3
"""What it costs to have a foot too far below its hip, or not far enough: legs cannot always bend so far."""

BELOW = 0.3
"""What it costs to have a foot beside its hip, against such errors."""

TURNED = 0.3
"""m/rad: what it costs to turn a foot."""

LOADED = 0.1
"""What it costs to load a joint above the legs, per share of its effort beyond :data:`SPARE`."""

SPARE = 0.9
"""Share of its largest effort with which a joint above the legs may hold what it carries."""

BALANCE = 2.0
"""What it costs to have the centre of mass beside the middle of the feet."""

LEAST_BEND = 0.3
"""Share of the legs' length below which the height at the start is no posture to keep."""

SOLE = 1e-3
"""[m] Extent of the contacts of a foot across their line, from which on they tell how it is tilted."""


def propose_posture(robot: Robot, contacts: Sequence[PointContact] = ()) -> Array:
    """Return a configuration in which `robot` stands on level ground.

    A robot with a fixed base is at its neutral configuration, within its limits, loops assembled; so is one that
    touches the ground with its base alone. With a floating base
    the base is level and joints solve, by bounded least squares,

        all contacts equally high, 0.87 of the legs' length below the hips where the legs can bend so far;
        every foot below its hip, its contacts level, heading as at the neutral configuration;
        the centre of mass above the middle of the contacts;
        joints above the legs, where they are too weak to hold at the start, within their efforts,

    with the least motion of joints. Level contacts come first, so that legs bend less where limits ask for it. Legs
    begin bent forwards, and bent backwards; the better solution is kept.

    Args:
        robot: the robot.
        contacts: the feet; none: those of :func:`propose_contacts` at the neutral configuration.

    Returns:
        (nq,) configuration, set on the ground.

    Raises:
        InvalidValue: a floating base, and nothing that could be a foot.
    """
    start, contacts = comfortable(checked_robot(robot)), checked_contacts(contacts)
    if not robot.floating_base:
        return assembled(robot, start)
    contacts = contacts or propose_contacts(robot, start)
    if not contacts:
        raise InvalidValue("contacts", [], "at least one; the robot has nothing that could be a foot")
    if all(robot.link_placement(contact.link)[0] == ROOT for contact in contacts):
        return set_on_ground(robot, assembled(robot, start), contacts)
    legs = _Legs(robot, start, contacts)
    found = [legs.solve(seed) for seed in (0.0, BEND, -BEND)]
    best = min(found, key=lambda candidate: candidate[0])[1]
    return set_on_ground(robot, assembled(robot, best), contacts)


def comfortable(robot: Robot) -> Array:
    """Return (nq,) the neutral configuration, with joints moved a little inside their limits."""
    lower, upper = robot.tangent_limits(robot.neutral())
    margin = np.where(np.isfinite(upper - lower), INSIDE * (upper - lower), 0.0)
    margin = np.nan_to_num(margin, posinf=0.0)
    return integrate(robot, robot.neutral(), np.clip(0.0, lower + margin, upper - margin))


def assembled(robot: Robot, q: Array) -> Array:
    """Return `q` (nq,) on the robot's own constraints; `q` itself where it has none, or they do not close from here."""
    if not robot.constraints:
        return q
    try:
        return np.array(assemble(robot, q, ()).q)
    except ConstrainedSimError:
        return q


class _Legs:
    """The least-squares problem of :func:`propose_posture`, in the velocity entries of the joints."""

    def __init__(self, robot: Robot, start: Array, contacts: Sequence[PointContact]) -> None:
        self.robot, self.start = robot, start
        places = [robot.link_point(contact.link, contact.point) for contact in contacts]
        self._joints, self._offsets = np.array([j for j, _ in places]), np.array([offset for _, offset in places])
        self._radii = np.array([contact.radius for contact in contacts])
        self._feet = sorted(set(self._joints.tolist()) - {ROOT})  # the base itself stays level
        lower, upper = robot.tangent_limits(start)
        self._lower, self._upper = lower[6:] - 1e-9, upper[6:] + 1e-9
        at_start = kinematics_at(robot, start)
        self._soles = {foot: self._level_sole(foot, at_start) for foot in self._feet}
        self._chains = {foot: self._chain(foot) for foot in self._feet}
        self._hips = {foot: self._hip(foot, at_start) for foot in self._feet}
        legs = [i for chain in self._chains.values() for i in self._dofs(chain)]
        self._loaded, self._strength = self._too_heavy(legs)
        self._moves = np.isin(np.arange(6, robot.nv), [*legs, *self._loaded])
        lengths = [self._length(foot, at_start) for foot in self._feet]
        self._depth = REACH * float(np.mean(lengths))
        points = self._points(at_start)
        bent = float(
            np.mean([at_start.placement(self._hips[f]).translation[2] for f in self._feet]) - points[:, 2].min()
        )
        if LEAST_BEND * np.mean(lengths) < bent < self._depth:
            self._depth = bent

    def solve(self, bend: float) -> tuple[float, Array]:
        """Return the cost and the configuration found from joints that start bent by `bend` [rad]."""
        first = np.zeros(self.robot.nv - 6)
        for chain in self._chains.values():
            pitch = [i - 6 for i in self._dofs(chain) if self._turns_about_y(i)]
            for place, index in enumerate(pitch[:3]):
                first[index] = bend * (1.0, -2.0, 1.0)[place]
        first = np.clip(first, self._lower + 1e-6, self._upper - 1e-6)[self._moves]
        bounds = self._lower[self._moves], self._upper[self._moves]
        result = scipy.optimize.least_squares(self._residuals, first, bounds=bounds, xtol=1e-10, ftol=1e-10)
        return float(result.cost), self._at(result.x)

    def _at(self, x: Array) -> Array:
        tangent = np.zeros(self.robot.nv)
        tangent[6:][self._moves] = x
        return integrate(self.robot, self.start, tangent)

    def _residuals(self, x: Array) -> Array:
        dynamics = kinematics_at(self.robot, self._at(x))
        points = self._points(dynamics)
        parts = []
        for foot in self._feet:
            own = points[self._joints == foot]
            hip = dynamics.placement(self._hips[foot]).translation
            parts.append(BENT * (own[:, 2] - hip[2] + self._depth))
            parts.append(BELOW * (own[:, :2].mean(axis=0) - hip[:2]))
            if len(own) > 1:
                turned = dynamics.placement(foot).rotation @ self._soles[foot].T
                parts.append(TURNED * np.array([turned[2, 0], turned[2, 1], turned[1, 0]]))
        parts.append(LEVEL * (points[:, 2] - points[:, 2].mean()))
        parts.append(BALANCE * (center_of_mass(self.robot, dynamics)[:2] - points[:, :2].mean(axis=0)))
        if self._loaded.size:
            load = np.abs(self._gravity(dynamics.q)[self._loaded]) / self._strength
            parts.append(LOADED * np.maximum(load - SPARE, 0.0))
        return np.concatenate([*parts, STAY * x])

    def _level_sole(self, foot: int, at_start: Any) -> Array:
        """Return the rotation of a foot at the start, tilted until the plane of its contacts is level."""
        rotation = np.asarray(at_start.placement(foot).rotation)
        points = self._points(at_start)[self._joints == foot]
        _, extents, directions = np.linalg.svd(points - points.mean(axis=0))
        if len(points) < 3 or extents[1] < SOLE:
            return rotation
        normal = np.copysign(1.0, directions[2, 2]) * directions[2]
        return np.asarray(pin.Quaternion.FromTwoVectors(normal, np.array([0.0, 0.0, 1.0])).matrix() @ rotation)

    def _too_heavy(self, legs: Sequence[int]) -> tuple[npt.NDArray[np.intp], Array]:
        """Return the actuated degrees of freedom above the legs that cannot hold at the start, and their efforts."""
        robot = self.robot
        strength = np.minimum(robot.effort_limits, -robot.least_efforts)
        above = ~np.isin(robot.actuation, legs) & (strength > 0.0)
        load = np.abs(self._gravity(self.start)[robot.actuation])
        found = np.flatnonzero(above & (load > SPARE * strength))
        return robot.actuation[found].astype(np.intp), strength[found]

    def _gravity(self, q: Array) -> Array:
        """Return (nv,) the efforts [N m, N] that hold the robot at `q` (nq,), where no contact is beyond a joint."""
        return np.asarray(Dynamics.at(self.robot, q, np.zeros(self.robot.nv)).h - self.robot.spring_effort(q))

    def _points(self, dynamics: Any) -> Array:
        points = dynamics.point_positions(self._joints, self._offsets)
        points[:, 2] -= self._radii
        return np.asarray(points)

    def _chain(self, foot: int) -> list[int]:
        """Return the joints between the base and `foot`, hip first."""
        chain = [foot]
        while (parent := int(self.robot.model.parents[chain[0]])) > ROOT:
            chain.insert(0, parent)
        return chain

    def _hip(self, foot: int, dynamics: Any) -> int:
        """Return the joint at which the leg begins to swing fore and aft; the first where none does."""
        turning = [j for j in self._chains[foot] if any(self._turns_about_y(i) for i in self._dofs([j]))]
        return turning[0] if turning else self._chains[foot][0]

    def _length(self, foot: int, dynamics: Any) -> float:
        chain = self._chains[foot]
        places = [dynamics.placement(j).translation for j in chain[chain.index(self._hips[foot]) :]]
        low = self._points(dynamics)[self._joints == foot].mean(axis=0)
        return float(sum(np.linalg.norm(b - a) for a, b in zip(places, [*places[1:], low], strict=True)))

    def _dofs(self, chain: Sequence[int]) -> list[int]:
        model = self.robot.model
        return [model.idx_vs[j] + k for j in chain for k in range(model.nvs[j])]

    def _turns_about_y(self, dof: int) -> bool:
        """Return whether a degree of freedom turns the leg fore and aft at the start."""
        axis = kinematics_at(self.robot, self.start).joint_axes[dof]
        return bool(abs(axis[4]) > 0.7)
