"""A `Trajectory` as what is plotted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from constrained_sim.constraints import PointContact, point_contacts
from constrained_sim.contact.surfaces import Plane
from constrained_sim.dynamics.dynamics import dynamics_at, potential_energy
from constrained_sim.energy import FORCES
from constrained_sim.joints import SingleJoint, single_joints
from constrained_sim.plots.contact_status import status_of
from constrained_sim.plots.limbs import Limbs
from constrained_sim.plots.recording import (
    UNKNOWN,
    ContactSeries,
    ImpactSeries,
    JointLimits,
    JointSeries,
    Recording,
    Table,
)
from constrained_sim.plots.violations import sampled, violations
from constrained_sim.robot import Robot
from constrained_sim.trajectory import Setup, Trajectory, check_robot
from constrained_sim.validation import Array

WORKS = {
    "actuators": "actuators",
    "external": "external wrenches",
    "damping": "joint damping and friction",
    "contacts": "contacts",
    "constraints": "constraints",
}
"""Terms of the energy audit by what a picture calls them, but those of gravity: it shows potential energy instead."""


def recording_of(trajectory: Trajectory, setup: Setup | None = None, title: str = "") -> Recording:
    """Return what `trajectory` holds.

    Args:
        trajectory: the run.
        setup: what it was of; None: as the trajectory says. Without one there are no names of joints, no limits, no
            normals of contacts and no drift.
        title: of the pictures.

    Raises:
        InvalidValue: `setup` has a robot of another size.
    """
    setup = setup or trajectory.setup
    t = trajectory.t
    if setup is None:
        return Recording(
            title,
            t,
            _unnamed_joints(trajectory),
            t,
            {name: _unknown(force) for name, force in trajectory.contact_forces.items()},
            _impacts(trajectory),
            _energy(trajectory, None),
            _residuals(trajectory),
        )
    check_robot(trajectory, setup.robot)
    limbs = Limbs(setup.robot)
    declared = point_contacts(setup.constraints)
    contacts = {
        name: declared_contact(force, declared[name], limbs)
        if name in declared
        else _collision(name, force, setup, limbs)
        for name, force in trajectory.contact_forces.items()
    }
    return Recording(
        title or str(setup.robot.model.name) or "robot",
        t,
        _joints(trajectory, setup.robot, limbs),
        t,
        contacts,
        _impacts(trajectory),
        _energy(trajectory, setup.robot),
        _residuals(trajectory),
        violations(trajectory, setup),
    )


def joint_limits(robot: Robot) -> dict[str, JointLimits]:
    """Return the limits of every joint with one degree of freedom."""
    lower, upper = robot.position_limits
    largest, least = np.full(robot.nv, np.inf), np.full(robot.nv, -np.inf)
    largest[robot.actuation], least[robot.actuation] = robot.effort_limits, robot.least_efforts
    speeds = robot.velocity_limits
    places = {name: joint.v for name, joint in single_joints(robot.joint_models).items()}
    return {
        name: JointLimits(
            (float(lower[i]), float(upper[i])),
            (-float(speeds[i]), float(speeds[i])),
            (float(least[i]), float(largest[i])),
        )
        for name, i in places.items()
    }


def _joints(trajectory: Trajectory, robot: Robot, limbs: Limbs) -> dict[str, JointSeries]:
    efforts = np.zeros((len(trajectory.t), robot.nv))
    efforts[:, robot.actuation] = trajectory.tau
    series = {}
    for name, limits in joint_limits(robot).items():
        joint = SingleJoint.of(robot, name)
        position = np.array([joint.position(q) for q in trajectory.q])
        limb = limbs.of_joint(name)
        series[name] = JointSeries(position, trajectory.v[:, joint.v], efforts[:, joint.v], limits, limb)
    return series


def _unnamed_joints(trajectory: Trajectory) -> dict[str, JointSeries]:
    """Return the entries of q; those of v have the same places only without joints of several coordinates."""
    nothing = np.full(len(trajectory.t), np.nan)
    same = trajectory.q.shape[1] == trajectory.v.shape[1]
    return {
        f"q[{i}]": JointSeries(column, trajectory.v[:, i] if same else nothing, nothing)
        for i, column in enumerate(trajectory.q.T)
    }


def declared_contact(force: Array, contact: PointContact, limbs: Limbs) -> ContactSeries:
    """Return what the mean forces (n, 3) on a declared contact tell [N], world axes; NaN while absent."""
    normal, friction = contact.surface.normal, contact.coefficient
    status = np.where(np.isfinite(force[:, 0]), status_of(force, normal, friction), UNKNOWN)
    limb = limbs.of_link(contact.link)
    return ContactSeries(force, force @ normal, np.full(len(force), friction), status, limb)


def _collision(name: str, force: Array, setup: Setup, limbs: Limbs) -> ContactSeries:
    """Return a contact of collision geometry: its name is that of a link's element, ``/``, a body, ``#`` and a number.

    The normal is known on planes.
    """
    pair, collisions = name.rpartition("#")[0], setup.collisions
    element = next((one for one in setup.robot.collision_elements if pair.startswith(f"{one.name}/")), None)
    if element is None or collisions is None:
        return _unknown(force)
    plane = collisions.scene.get(pair.removeprefix(f"{element.name}/"))
    if not isinstance(plane, Plane):
        return _unknown(force, limbs.of_link(element.link))
    contact = replace(collisions.contact(element.friction or 0.0), link=element.link, surface=plane)
    return declared_contact(force, contact, limbs)


def _unknown(force: Array, limb: str = "") -> ContactSeries:
    nothing = np.full(len(force), np.nan)
    return ContactSeries(force, nothing, nothing, np.full(len(force), UNKNOWN), limb)


def _impacts(trajectory: Trajectory) -> ImpactSeries:
    impacts = trajectory.impacts
    names = dict.fromkeys(name for impact in impacts for name in impact.impulses)
    return ImpactSeries(
        np.array([impact.t for impact in impacts]),
        np.array([impact.energy_lost for impact in impacts]),
        {
            name: np.array([np.linalg.norm(impact.impulses.get(name, np.full(3, np.nan))) for impact in impacts])
            for name in names
        },
    )


def _energy(trajectory: Trajectory, robot: Robot | None) -> Table:
    """Return the work of all causes, added up, and the energy of the `robot` [J]; without it the work alone.

    What no cause accounts for is the error of integration, since the first step: what was before that is not recorded.
    """
    terms, rows = trajectory.energy, sampled(trajectory)
    works = {text: np.cumsum(terms[name])[rows] for name, text in WORKS.items() if name in terms}
    if "impact_losses" in terms:
        works["impacts"] = -np.cumsum(terms["impact_losses"])[rows]
    if "projection" in terms:
        works["removal of drift"] = np.cumsum(terms["projection"])[rows]
    if robot is None or not works or not len(rows):
        return Table(trajectory.t[rows], works)
    kinetic, potential = np.array([_energies(robot, trajectory.q[i], trajectory.v[i]) for i in rows]).T
    unexplained = kinetic + potential - sum(works.values())
    energies = {"kinetic energy": kinetic, "potential energy": potential}
    return Table(trajectory.t[rows], {**energies, **works, "integration": unexplained - unexplained[0]})


def _energies(robot: Robot, q: Array, v: Array) -> tuple[float, float]:
    """Return kinetic and potential energy [J] at q (nq,) and v (nv,)."""
    return 0.5 * float(v @ dynamics_at(robot, q, v).M @ v), potential_energy(robot, q)


def _residuals(trajectory: Trajectory) -> Table:
    """Return what the audit of single steps leaves unexplained [J]."""
    terms = trajectory.energy
    if not {"kinetic", *FORCES} <= set(terms):
        return Table()
    return Table(trajectory.t, {"energy of a step [J]": np.abs(terms["kinetic"] - sum(terms[name] for name in FORCES))})
