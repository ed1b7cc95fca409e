"""Draws the values of a running simulation: a table for a terminal, a line where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import Pose
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from constrained_sim.msg import ContactForce, SimulationStatus
from constrained_sim.ros.live_values import SAMPLES, LiveValues

WIDTH = 80

FEW_JOINTS = 8
"""Number of joints up to which each has a line of its own; more are grouped by limb."""

FEW_CONTACTS = 6
"""Number of contacts up to which each has a line of its own."""

STATUS = {ContactForce.OPEN: "open", ContactForce.STICKING: "sticking", ContactForce.SLIDING: "sliding"}

NOTHING = 1e-9
"""[J] of work that is not shown."""

BARS = " ▁▂▃▄▅▆▇█"

Rows = list[tuple[str, str]]


def live_table(values: LiveValues, is_there: bool, waited: float) -> Group:
    """Return the table of a simulation, at most :data:`WIDTH` columns wide.

    Args:
        values: what it has told.
        is_there: whether a simulator publishes its status.
        waited: seconds since the monitor began.
    """
    sections = [_pairs(_head(values, is_there, waited), ": ".join(filter(None, ("constrained_sim", _robot(values)))))]
    if values.joints is not None:
        sections += [_joints(values), *_contacts(values)]
    return Group(*(Padding(section, (0, 0, 1, 0)) for section in sections))


def live_line(values: LiveValues, is_there: bool, waited: float) -> str:
    """Return what matters most in one line; arguments as :func:`live_table`."""
    rows = _head(values, is_there, waited)
    if values.joints is not None and not _is_grouped(values):
        rows += [(name, f"{q:+.4f}") for name, q in zip(values.joints.name, values.joints.position, strict=True)]
    return " | ".join(f"{name} {value}".strip() for name, value in rows)


def sparkline(sizes: Iterable[float], largest: float) -> str:
    """Return one character for each of `sizes`, between zero and `largest`; what is not finite is a question mark."""
    return "".join(_bar(size / largest if largest else 0.0) for size in sizes)


def _bar(share: float) -> str:
    """Return the character for a share of the largest; none but zero, or less, has the blank."""
    if not math.isfinite(share):
        return "?"
    steps = len(BARS) - 1
    return BARS[min(steps, max(0, math.ceil(steps * share)))]


def _robot(values: LiveValues) -> str:
    return str(values.robot.model.name) if values.robot is not None else ""


# -- names and values


def _head(values: LiveValues, is_there: bool, waited: float) -> Rows:
    phase = values.phase(is_there)
    status = values.status
    if status is None:
        return [("state", f"{phase} ({waited:.0f} s)")]
    rows = [("state", phase)]
    if values.time is not None:
        speed = f", {status.real_time_factor:.2f} of real time" if is_there else ""
        rows.append(("time", f"{values.time:.3f} s from zero{speed}"))
    rows.append(("solver", f"{status.solver}, {status.stepper}, {status.clock_mode}"))
    rows += [*_energy(status), ("residual", _residual(status)), ("impacts", _impacts(values))]
    if values.odometry is not None:
        rows.append(("base", _base(values.odometry.pose.pose)))
    if force := _force(values):
        rows.append(force)
    if troubles := _troubles(values):
        rows.append(("troubles", troubles))
    return rows


def _energy(status: SimulationStatus) -> Rows:
    """Return what energy there is, where it came from and went, and what the sum leaves."""
    flows = {
        "actuators": status.work_actuators,
        "external": status.work_external,
        "contacts": status.work_contacts,
        "constraints": status.work_constraints,
        "damping": status.work_damping,
        "impacts": -abs(status.impact_losses),
        "numerical": status.projection_energy + status.integration_energy,
    }
    moved = [f"{name} {value:+.2g}" for name, value in flows.items() if abs(value) > NOTHING]
    now = f"kinetic {status.kinetic_energy:.4g}, potential {status.potential_energy:.4g} J"
    balance = f"balance open by {status.energy_residual:.1e} J"
    return [("energy", f"{now}, {balance}"), ("since zero", f"{', '.join(moved)} J" if moved else "none came or went")]


def _residual(status: SimulationStatus) -> str:
    residuals = {
        "dynamics": status.dynamics_residual,
        "constraints": status.constraint_residual,
        "complementarity": status.complementarity_residual,
    }
    largest = max(residuals, key=lambda name: residuals[name])
    return f"{residuals[largest]:.1e} of {largest}, position off by {status.position_error:.1e} m, rad"


def _impacts(values: LiveValues) -> str:
    since = f"{values.counted_from:.3f} s" if values.counted_from else "zero"
    return f"{values.impact_rate:.0f} per second, {values.impacts} since {since} took {values.energy_lost:.3g} J"


def _base(pose: Pose) -> str:
    """Return where the base is [m], and how it is turned: roll, pitch and yaw [deg]."""
    at, turned = pose.position, pose.orientation
    quaternion = pin.Quaternion(np.array([turned.x, turned.y, turned.z, turned.w]))
    angles = np.degrees(pin.rpy.matrixToRpy(quaternion.matrix()))
    turn = " ".join(f"{angle:+.1f}" for angle in angles)
    return f"x {at.x:+.3f} y {at.y:+.3f} z {at.z:+.3f} m, roll pitch yaw {turn} deg"


def _force(values: LiveValues) -> tuple[str, str] | None:
    """Return a sparkline of the main force, with its newest and its largest value."""
    name, sizes = values.main_force()
    if not sizes:
        return None
    largest = max((size for size in sizes if math.isfinite(size)), default=0.0)
    line = sparkline(sizes, largest).ljust(SAMPLES)
    return "force", f"{line} {sizes[-1]:.1f} of {largest:.1f} N, {name}"


def _troubles(values: LiveValues) -> str:
    status = values.status
    counts = {
        "late periods": status.late_periods,
        "commands dropped": status.commands_dropped,
        "commands refused": status.commands_refused,
        "records lost": status.records_lost,
    } if status is not None else {}  # fmt: skip
    told = [f"{count} {name}" for name, count in counts.items() if count]
    if values.ungrouped:
        told.append(f"joints are not grouped: {values.ungrouped}")
    return ", ".join(told)


# -- tables


def _pairs(rows: Rows, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, show_header=False, pad_edge=False, width=WIDTH)
    table.add_column(style="bold", width=11, overflow="fold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table with numbers to the right; the first column has names."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, width=WIDTH)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left", overflow="fold", ratio=1 if place else None)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _is_grouped(values: LiveValues) -> bool:
    return values.joints is not None and values.limbs is not None and len(values.joints.name) > FEW_JOINTS


def _joints(values: LiveValues) -> Table:
    """Return the joints, or where there are many the limbs."""
    joints = values.joints
    rows = list(zip(joints.name, joints.position, joints.velocity, joints.effort, strict=True))  # type: ignore[union-attr]
    if values.limbs is None or not _is_grouped(values):
        each = [(name, f"{q:+.4f}", f"{v:+.3f}", f"{tau:+.2f}") for name, q, v, tau in rows]
        return _table(("joint", "position [rad, m]", "velocity", "effort [N m, N]"), each)
    members: dict[str, list[tuple[str, float, float, float]]] = {}
    for row in rows:
        members.setdefault(values.limbs.of_joint(row[0]), []).append(row)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, width=WIDTH)
    for column, options in (("limb", {"max_width": 14}), ("positions [rad, m]", {"ratio": 1}),
                            ("fastest", {"width": 7, "justify": "right"}),
                            ("largest effort", {"width": 9, "justify": "right"})):  # fmt: skip
        table.add_column(column, overflow="fold", **options)
    for limb, group in members.items():
        positions = " ".join(f"{q:+6.2f}" for _, q, _, _ in group)
        _, _, speeds, efforts = zip(*group, strict=True)
        speed, effort = max(speeds, key=abs), max(efforts, key=abs)
        table.add_row(*map(Text, (limb or "joints", positions, f"{speed:+.2f}", f"{effort:+.1f}")))
    return table


def _contacts(values: LiveValues) -> list[Table]:
    """Return the contacts, or where there are many those of each limb together; nothing where there are none."""
    contacts = list(values.contacts.contacts) if values.contacts is not None else []
    if not contacts:
        return []
    if len(contacts) <= FEW_CONTACTS or values.limbs is None:
        each = [(c.name, STATUS[c.status], f"{c.normal_force:.2f}", f"{_side(c):.2f}") for c in contacts]
        return [_table(("contact", "status", "normal [N]", "tangential [N]"), each)]
    members: dict[str, list[ContactForce]] = {}
    for contact in contacts:
        members.setdefault(values.limbs.of_link(contact.link), []).append(contact)
    rows = []
    for limb, group in members.items():
        closed = [STATUS[c.status] for c in group if c.status != ContactForce.OPEN]
        told = f"{len(closed)} of {len(group)}" + (", sliding" if "sliding" in closed else "")
        normal, side = sum(c.normal_force for c in group), sum(_side(c) for c in group)
        rows.append((limb or "all", told, f"{normal:.2f}", f"{side:.2f}"))
    return [_table(("contacts of", "closed", "normal [N]", "tangential [N]"), rows)]


def _side(contact: ContactForce) -> float:
    """Return the size of the tangential force [N]."""
    force = contact.wrench.force
    return math.sqrt(max(0.0, force.x**2 + force.y**2 + force.z**2 - contact.normal_force**2))
