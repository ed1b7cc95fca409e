"""Everything that is proposed for a new robot, together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from constrained_sim.bringup.contact_proposal import Feet, is_legged, propose_feet, with_friction
from constrained_sim.bringup.gains import JointGains, suggest_gains
from constrained_sim.bringup.ground import center_of_mass, contact_places
from constrained_sim.bringup.posture_proposal import assembled, comfortable, propose_posture
from constrained_sim.bringup.sole import has_area
from constrained_sim.bringup.statics import Standing, standing_efforts
from constrained_sim.constraints import PointContact
from constrained_sim.descriptions.format import format_of
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.exceptions import ModelError, listed
from constrained_sim.joints import single_joints
from constrained_sim.package_paths import resolve_path
from constrained_sim.robot import Robot
from constrained_sim.validation import Array

EQUILIBRIUM_TOLERANCE = 1e-3
"""[N m, N] What may be missing in the equations of motion of a robot that stays where it is put."""

ROUNDING = 1e-6
"""[m] Of the places of contacts and of the configuration."""

UNTESTED = "no test is written: it would assert that the robot stays where it is put, and it does not"

NO_GAINS = JointGains(*[np.zeros(0)] * len(JointGains._fields))
"""Of a robot without joints that a posture could hold."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A robot and how it stands.

    Attributes:
        format: urdf, sdf or mjcf.
        robot: as it is simulated.
        contacts: its feet; none with a fixed base.
        q: (nq,) configuration in which it stands.
        gains: of its joints.
        standing: efforts and contact forces at rest.
        dt: step and control period [s].
        notes: what the user should know about joints and contacts.
        stays: whether it stays where it is put while its joints are held, as far as statics tells.
        unheld: joints with several degrees of freedom, which no posture holds: they take no efforts.
        guessed: links without collision geometry that can be read, on which the places of contacts are guessed.
    """

    format: str
    robot: Robot
    contacts: tuple[PointContact, ...]
    q: Array
    gains: JointGains
    standing: Standing
    dt: float
    notes: tuple[str, ...]
    stays: bool
    unheld: tuple[str, ...] = ()
    guessed: tuple[str, ...] = ()


class Description(NamedTuple):
    """A robot description that was read.

    Attributes:
        format: urdf, sdf or mjcf.
        robot: as it is simulated.
        feet: proposed contacts, with the friction of their geometry; None: nobody has looked for them yet.
    """

    format: str
    robot: Robot
    feet: Feet | None


def read_description(path: str, floating_base: bool | None = None) -> Description:
    """Return what is in a robot description.

    Args:
        path: a file, or ``package://NAME/PATH``.
        floating_base: None: floating if it seems to have legs, or has no joints. An MJCF says it itself.

    Raises:
        ModelError: no such file, or not a description.
    """
    file = resolve_path(path, Path.cwd())
    if isinstance(file, Path) and file.suffix in (".yaml", ".yml"):
        raise ModelError(f"{path!r} is a parameter file, allowed: a robot description (URDF, xacro, SDF or MJCF)")
    kind = format_of(file)
    if kind == "mjcf":
        return Description(kind, Robot.from_mjcf(file), None)
    read = Robot.from_urdf if kind == "urdf" else Robot.from_sdf
    if floating_base is not None:
        return Description(kind, read(file, floating_base=floating_base), None)
    try:
        robot = read(file, floating_base=False)
    except ModelError:  # a body without joints, which can be free only; or what cannot be read anyway
        return Description(kind, read(file, floating_base=True), None)
    feet = propose_feet(robot, assembled(robot, comfortable(robot)))
    if not is_legged(robot, feet.contacts):
        return Description(kind, robot, None)
    return Description(kind, read(file, floating_base=True), feet)


def guessed_base(description: Description, floating_base: bool | None) -> str:
    """Return what is to be said of a base that nobody has decided on; empty: `floating_base`, or an MJCF, says it."""
    if floating_base is not None or description.format == "mjcf":
        return ""
    base, other = ("floating", "fixed") if description.robot.floating_base else ("fixed", "floating")
    return f"base: {base} (guessed; --{other}-base)"


def plan_for(
    description: Description,
    feet: Sequence[str] = (),
    dt: float = 1e-3,
    friction: float | None = None,
    frequency: float = 5.0,
) -> Plan:
    """Return what is proposed for the robot of a description.

    Args:
        description: that was read.
        feet: links or frames that touch the ground; none: see :func:`propose_contacts`.
        dt: step and control period [s].
        friction: Coulomb coefficient of all contacts; None: that of their geometry, 0.8 where it has none.
        frequency: wanted of the joints' feedback [Hz].

    Raises:
        ConstrainedSimError: a name or a value that is not allowed.
    """
    kind, robot, proposed = description
    robot, unheld = _held(robot)
    if feet or (proposed is None and robot.floating_base):
        proposed = propose_feet(robot, assembled(robot, comfortable(robot)), links=feet)
    found = proposed or Feet(())
    contacts = with_friction(found.contacts, friction)
    q = _rounded(robot, propose_posture(robot, contacts))
    gains = suggest_gains(robot, q, dt, contacts, frequency) if robot.nu else NO_GAINS
    standing = standing_efforts(robot, q, contacts)
    tips = _tips(robot, q, contacts)
    stays = not tips and float(abs(standing.residual).max()) <= EQUILIBRIUM_TOLERANCE
    notes = (*_joint_notes(unheld), *_foot_notes(found, tips), *([] if stays else [UNTESTED]))
    guessed = (*found.assumed, *found.origins)
    return Plan(kind, robot, contacts, q, gains, standing, dt, notes, stays, unheld, guessed)


def _held(robot: Robot) -> tuple[Robot, tuple[str, ...]]:
    """Return `robot` with efforts in joints of one degree of freedom alone, and the names of the others."""
    singles = single_joints(robot.joint_models)
    held = tuple(name for name in robot.actuated_joints if name in singles)
    return replace(robot, actuated_joints=held), tuple(name for name in robot.actuated_joints if name not in singles)


def _joint_notes(unheld: Sequence[str]) -> list[str]:
    """Return what the user should know of joints with several degrees of freedom."""
    return [f"{listed(unheld)}: several degrees of freedom, which no posture holds; no efforts there"] if unheld else []


def _tips(robot: Robot, q: Array, contacts: Sequence[PointContact]) -> bool:
    """Return whether `contacts` are on a line about which the robot tips over at `q` (nq,).

    It rolls on the balls of the contacts, and comes back, where its centre of mass is not above their centres.
    """
    places = contact_places(robot, q, contacts) if contacts else np.zeros((0, 3))
    if not robot.floating_base or not contacts or has_area(places):
        return False
    return bool(center_of_mass(robot, kinematics_at(robot, q))[2] > places[:, 2].min() + ROUNDING)


def _foot_notes(feet: Feet, tips: bool) -> list[str]:
    """Return what the user should know of the feet of a robot."""
    notes = []
    if feet.origins:
        notes.append(
            f"{listed(feet.origins)}: no collision geometry that can be read; the contacts there are at the origin of "
            "the link, measure yours"
        )
    if feet.assumed:
        notes.append(
            f"{listed(feet.assumed)}: no collision geometry that can be read; the sole there is as large as it would "
            "be in man, measure yours"
        )
    if tips:
        notes.append(
            "the contacts are on a line, on which a robot stands in balance only: its controller has to balance, or to "
            "step"
        )
    return notes


def _rounded(robot: Robot, q: Array) -> Array:
    """Return `q` (nq,) with the digits that a parameter file keeps."""
    return robot.checked_configuration(np.round(q, 7) + 0.0)
