"""A `Trajectory` as a recording: what it does not hold, positions of contacts and anchors, follows from kinematics."""

from __future__ import annotations

import numpy as np

from constrained_sim.constraints import BoundConstraint
from constrained_sim.dynamics.dynamics import Dynamics, dynamics_at, potential_energy
from constrained_sim.exceptions import InvalidValue
from constrained_sim.trajectory import Setup, Trajectory, check_robot
from constrained_sim.validation import instance
from constrained_sim.viewer.declared_contacts import DeclaredContacts
from constrained_sim.viewer.frame import Frame, ShownAnchor, ShownImpact, energies_of, split
from constrained_sim.viewer.recording_panel import Recording
from constrained_sim.viewer.source import World, events_of


class TrajectorySource(Recording):
    """Shows a run that was kept in memory or in a file."""

    def __init__(self, trajectory: Trajectory, setup: Setup | None = None) -> None:
        """Show `trajectory`, a run of what `setup` says; None: of what it says itself.

        Raises:
            InvalidValue: an empty run, one of a robot of another size, or nobody says what it was of.
        """
        setup = trajectory.setup if setup is None else instance("setup", setup, Setup, "an instance of Setup")
        if setup is None:
            raise InvalidValue("setup", None, "Setup(robot, constraints), since this run came from a file")
        robot = setup.robot
        if not len(trajectory.t):
            raise InvalidValue("trajectory", trajectory, "one of at least one step")
        check_robot(trajectory, robot)
        constraints = [*robot.constraints, *(c for c in setup.constraints if c not in robot.constraints)]
        self.world = World.of(robot, constraints, setup.collisions)
        self._run, self._robot = trajectory, robot
        self._contacts = DeclaredContacts(robot, constraints, trajectory.contact_forces)
        self._links = {c.name: c.links[0] for c in constraints if c.links}
        bound = [c.bind(robot, trajectory.q[0]) for c in constraints if c.name in self._links]
        self._anchors: list[BoundConstraint] = [c for c in bound if isinstance(c, BoundConstraint)]
        self.times = trajectory.t
        self._impacts = tuple(ShownImpact(i.t, i.energy_lost, tuple(i.impulses)) for i in trajectory.impacts)
        self.events = events_of(self._impacts)
        self._work = {name: np.cumsum(values) for name, values in trajectory.energy.items()}
        self.time = self.begin

    def frame_at(self, index: int) -> Frame:
        """Return the end of step `index`."""
        run, t = self._run, float(self.times[index])
        dynamics = dynamics_at(self._robot, run.q[index], run.v[index], t)
        kinetic = 0.5 * float(run.v[index] @ dynamics.M @ run.v[index])
        work = {name: float(values[index]) for name, values in self._work.items()}
        q, v, objects = split(self._robot, run.q[index], run.v[index])
        efforts = dict(zip(self._robot.actuated_joints, run.tau[index].tolist(), strict=False))
        return Frame(
            t,
            q,
            v,
            efforts,
            self._contacts.shown(dynamics, {name: forces[index] for name, forces in run.contact_forces.items()}),
            tuple(self._anchor(anchor, dynamics, index) for anchor in self._anchors),
            self._impacts,
            energies_of(kinetic, potential_energy(self._robot, run.q[index]), work),
            objects=objects,
        )

    def _anchor(self, anchor: BoundConstraint, dynamics: Dynamics, i: int) -> ShownAnchor:
        multipliers = np.nan_to_num(self._run.multipliers[anchor.name][i])
        wrench = anchor.wrench(dynamics, multipliers, self._links[anchor.name])
        return ShownAnchor(anchor.name, anchor.wrench_point(dynamics), wrench[:3])
