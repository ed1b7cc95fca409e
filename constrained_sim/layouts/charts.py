"""The charts that Foxglove and PlotJuggler draw of a robot: which fields of which topics, by limb."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from constrained_sim.config import Config
from constrained_sim.constraints import point_contacts
from constrained_sim.constraints.constraint_set import ConstraintSet
from constrained_sim.joints import single_joints
from constrained_sim.plots.limbs import Limbs

STATES, FORCES, CONSTRAINTS, BASE, IMPACTS, STATUS = (
    "/joint_states",
    "/contact_forces",
    "/constraint_forces",
    "/odom",
    "/impacts",
    "/constrained_sim/status",
)

MOST_ROWS = 8
"""Number of constraint rows up to which their multipliers are drawn: more cannot be told apart."""


@dataclass(frozen=True)
class Signal:
    """One number of a topic over time.

    Attributes:
        label: in the legend.
        topic: absolute.
        foxglove: rest of its message path in Foxglove.
        plotjuggler: rest of the name of its series in PlotJuggler.
    """

    label: str
    topic: str
    foxglove: str
    plotjuggler: str

    @classmethod
    def field(cls, topic: str, path: str, label: str = "") -> Signal:
        """Return a field of a message, ``a.b.c``."""
        return cls(label or path, topic, f".{path}", "/" + path.replace(".", "/"))


@dataclass(frozen=True)
class Chart:
    """Signals over the same time.

    Attributes:
        title: with the unit.
        signals: at least one.
    """

    title: str
    signals: tuple[Signal, ...]


@dataclass(frozen=True)
class Page:
    """Charts below each other.

    Attributes:
        title: of the tab.
        charts: at least one.
    """

    title: str
    charts: tuple[Chart, ...]


def pages_of(config: Config) -> tuple[Page, ...]:
    """Return the pages for the robot of `config`: forces, joints, efforts, base, health; none that is empty."""
    limbs = Limbs(config.robot)
    names = list(single_joints(config.robot.own_joint_models))
    pages = (
        Page("forces", (*_contacts(config, limbs), *_constraints(config))),
        Page("joints", _joints("position [rad, m]", "position", names, names, limbs)),
        Page("efforts", _joints("effort [N m, N]", "effort", names, config.robot.actuated_joints, limbs)),
        Page("base", _base() if config.robot.floating_base else ()),
        Page("health", _health()),
    )
    return tuple(page for page in pages if page.charts)


def _contacts(config: Config, limbs: Limbs) -> Iterable[Chart]:
    """Return a chart of normal forces for each limb; messages hold contacts in the order of their names."""
    contacts = [contact for _, contact in sorted(point_contacts(config.constraints).items())]
    signals: dict[str, list[Signal]] = {}
    for place, contact in enumerate(contacts):
        path, series = f'.contacts[:]{{name=="{contact.name}"}}.normal_force', f"/contacts[{place}]/normal_force"
        signals.setdefault(limbs.of_link(contact.link), []).append(Signal(contact.name, FORCES, path, series))
    return _by_limb("normal force [N]", signals)


def _constraints(config: Config) -> Iterable[Chart]:
    """Return a chart of each bilateral constraint with a few rows; messages hold them in the order of their names."""
    bound = ConstraintSet.bind(config.robot, config.q, config.constraints)
    for place, member in enumerate(sorted(bound.bilateral.members, key=lambda member: member.name)):
        rows = range(bound.slices[member.name].stop - bound.slices[member.name].start)
        path, series = f'.constraints[:]{{name=="{member.name}"}}', f"/constraints[{place}]"
        signals = [
            Signal(f"{member.name} {row}", CONSTRAINTS, f"{path}.multipliers[{row}]", f"{series}/multipliers[{row}]")
            for row in rows
        ]
        if len(signals) <= MOST_ROWS:
            yield Chart(f"multipliers of {member.name} [N, N m]", tuple(signals))


def _joints(title: str, quantity: str, names: list[str], drawn: Iterable[str], limbs: Limbs) -> tuple[Chart, ...]:
    """Return a chart for each limb of the joints to be `drawn`, among those whose `names` joint_states has."""
    signals: dict[str, list[Signal]] = {}
    for name in drawn:
        if name in names:
            signal = Signal(name, STATES, f".{quantity}[{names.index(name)}]", f"/{name}/{quantity}")
            signals.setdefault(limbs.of_joint(name), []).append(signal)
    return _by_limb(title, signals)


def _by_limb(title: str, signals: dict[str, list[Signal]]) -> tuple[Chart, ...]:
    return tuple(Chart(f"{limb}: {title}" if limb else title, tuple(group)) for limb, group in signals.items())


def _base() -> tuple[Chart, ...]:
    position, velocity = "pose.pose.position", "twist.twist.linear"
    titles = {position: "base, position [m]", velocity: "base, velocity in its axes [m/s]"}
    return tuple(
        Chart(title, tuple(Signal.field(BASE, f"{path}.{axis}", axis) for axis in "xyz"))
        for path, title in titles.items()
    )


def _health() -> tuple[Chart, ...]:
    residuals = "dynamics_residual", "constraint_residual", "complementarity_residual"
    energies = "kinetic_energy", "potential_energy", "work_actuators", "work_damping", "impact_losses"
    return (
        Chart("energy [J]", tuple(Signal.field(STATUS, name) for name in energies)),
        Chart("energy that the audit leaves [J]", (Signal.field(STATUS, "energy_residual"),)),
        Chart("residuals, relative", tuple(Signal.field(STATUS, name) for name in residuals)),
        Chart("energy lost in impacts [J]", (Signal.field(IMPACTS, "energy_lost"),)),
        Chart("real-time factor", (Signal.field(STATUS, "real_time_factor"),)),
    )
