"""Configuration: a YAML file, or the parameters of the ROS node, become objects. The only reader of the registries.

A file has the layout of a ROS 2 parameter file, so that one file serves ``load_config`` and ``--params-file``::

    /**:
      ros__parameters:
        dt: 0.001
        robot: {urdf: "package://constrained_sim/urdf/leg.urdf"}
        contacts:
          foot: {link: foot, friction: 0.8}

The wrapping ``/**: ros__parameters:`` may be left out for use without ROS. Every key is read or refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.collision.detector import Collisions
from constrained_sim.config_sections import (
    MakeRobot,
    Section,
    make_robot,
    read_collisions,
    read_constraint,
    read_contact,
    read_initial,
    read_objects,
    read_robot,
    read_sensor,
    read_servo,
)
from constrained_sim.constraints import (
    Constraint,
)
from constrained_sim.exceptions import BeyondLimits, InvalidValue, MovedByAssembly
from constrained_sim.joints import single_joints, within_a_turn
from constrained_sim.nanoseconds import control_steps, whole_nanoseconds
from constrained_sim.options import NodeOptions, SimulationOptions
from constrained_sim.package_paths import find_config
from constrained_sim.parameter_file import load_parameters
from constrained_sim.robot import Robot
from constrained_sim.sensors import Sensor, SensorSet
from constrained_sim.servo import Servo
from constrained_sim.simulator import Simulator
from constrained_sim.user_warnings import warn
from constrained_sim.validation import Array, lookup


@dataclass(frozen=True, eq=False)
class Config:
    """A robot, its constraints and its initial state, and how to simulate them.

    Attributes:
        robot: the robot, and what is beside it.
        constraints: active from the beginning.
        q: (nq,) initial configuration.
        v: (nv,) initial velocity.
        simulation: how to simulate.
        node: how the ROS node runs it.
        collisions: what the collision geometry of the robot may touch; None: nothing.
        sensors: on the robot.
        servo: follows positions and velocities that are commanded; None: efforts alone can be commanded.
        parameters: from which all of this was read; empty: from none.
        folder: where relative paths in them begin.
    """

    robot: Robot
    constraints: tuple[Constraint, ...]
    q: Array
    v: Array
    simulation: SimulationOptions = field(default_factory=SimulationOptions)
    node: NodeOptions = field(default_factory=NodeOptions)
    collisions: Collisions | None = None
    sensors: tuple[Sensor, ...] = ()
    servo: Servo | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = field(default_factory=Path.cwd)

    def simulator(
        self,
        q: Array | None = None,
        v: Array | None = None,
        constraints: Iterable[Constraint] | None = None,
        like: Simulator | None = None,
    ) -> Simulator:
        """Return a Simulator at (q, v) with `constraints`; None: as configured.

        Args:
            q: (nq,) configuration.
            v: (nv,) velocity.
            constraints: all of them, the robot's own too.
            like: whose stepper, integrator, solver and contact method to use.

        Raises:
            ConstrainedSimError: a value that the simulator refuses.
        """
        given = self.parameters.get("initial", {}).get("positions", {}) if q is None else {}
        if (beyond := self.beyond_limits(given)) is not None:
            warn(beyond)
        options = self.simulation
        stepper = options.stepper if like is None else like.stepper_name
        integrator = options.integrator or None if like is None else like.integrator_name
        sim = Simulator(
            self.robot,
            (),
            stepper,
            options.make_solver() if like is None else like.solver,
            options.dt,
            integrator,
            options.make_stabilization(stepper),
            contact_method=options.contact_method if like is None else like.contact_method,
            contact_tolerance=options.contact_tolerance,
            position_tolerance=options.position_tolerance,
            command_delay=options.command_delay,
            velocity_limits=options.velocity_limits,
            collisions=self.collisions,
        )
        own = {constraint.name for constraint in self.robot.constraints}
        wanted = self.constraints if constraints is None else tuple(constraints)
        if constraints is not None:
            for name in own - {constraint.name for constraint in wanted}:
                sim.remove(name)
        sim.reset(self.q if q is None else q, self.v if v is None else v, assemble=options.assemble)
        for constraint in wanted:
            if constraint.name not in own:
                sim.add(constraint, assemble=options.assemble and not constraint.is_unilateral)
        if (warning := self.moved_by_assembly(given, sim.state.q)) is not None:
            warn(warning)
        return sim

    @cached_property
    def _limits(self) -> dict[str, tuple[float, float]]:
        """Lower and upper limit of each joint with one degree of freedom [rad, m], by name."""
        lower, upper = self.robot.position_limits
        joints = single_joints(self.robot.joint_models)
        return {name: (float(lower[joint.v]), float(upper[joint.v])) for name, joint in joints.items()}

    def beyond_limits(self, given: Mapping[str, Any]) -> BeyondLimits | None:
        """Return the warning of joints that are asked to be beyond their limits.

        Args:
            given: positions that are asked for [rad, m], by joint; NaN: none.

        Returns:
            the warning; None: all joints with one degree of freedom are within their limits, or by rounding beyond.
        """
        beyond, tolerance = {}, self.simulation.position_tolerance
        for name in filter(self._limits.__contains__, given):
            asked, (low, up) = float(given[name]), self._limits[name]
            if asked < low - tolerance or asked > up + tolerance:
                beyond[name] = asked, low, up
        return BeyondLimits(beyond) if beyond else None

    def warnings_at(self, given: Mapping[str, Any], q: Array) -> list[UserWarning]:
        """Return what is to be said of joints that were asked to be at the positions `given` and are at `q` (nq,)."""
        warnings = self.beyond_limits(given), self.moved_by_assembly(given, q)
        return [warning for warning in warnings if warning is not None]

    def moved_by_assembly(self, given: Mapping[str, Any], q: Array) -> MovedByAssembly | None:
        """Return the warning of joints that do not begin where they were asked to, as constraints have to hold.

        Args:
            given: positions that were asked for [rad, m], by joint.
            q: (nq,) where the simulation begins.

        Returns:
            the warning; None: all joints with one degree of freedom are where they were asked to be.
        """
        joints, moved = single_joints(self.robot.joint_models), {}
        for name in given:
            if name in joints:
                asked, now = float(given[name]), joints[name].position(q)
                difference = float(within_a_turn(np.array(now - asked))) if joints[name].turns else now - asked
                if abs(difference) > self.simulation.position_tolerance:
                    moved[name] = asked, now
        return MovedByAssembly(moved) if moved else None

    def sensor_set(self) -> SensorSet:
        """Return the sensors, to be read once per control period from the reset on.

        Raises:
            ConstrainedSimError: a link, a rate or a seed that is not allowed.
        """
        dt = self.simulation.dt
        period = control_steps(self.node.control_period, dt) * dt
        return SensorSet(self.robot, self.sensors, period, self.simulation.sensor_seed)


def load_config(path: str | os.PathLike[str]) -> Config:
    """Read a configuration file.

    Args:
        path: of a YAML file, as ROS reads it, or ``package://name/path``; config/leg.yaml explains the keys.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or holds an unknown key or a value of the wrong kind.
        ConstrainedSimError: a name or value in it that is not allowed.
    """
    file = find_config(path)
    return read_config(load_parameters(file), file.resolve().parent)


def read_config(parameters: Mapping[str, Any], base: Path | None = None, make: MakeRobot = make_robot) -> Config:
    """Make a Config of nested `parameters`; relative paths start at `base`, and `make` reads the robot's description.

    Raises:
        ConfigError: an unknown key, or a value of the wrong kind.
        ConstrainedSimError: a name or value that is not allowed.
    """
    top, folder = Section("configuration", parameters), base or Path.cwd()
    simulation = SimulationOptions(**top.take_fields(SimulationOptions))
    node = NodeOptions(**top.take_fields(NodeOptions))
    robot = read_robot(top.section("robot"), folder, make)
    robot = robot.with_objects(read_objects(top, folder, make))
    constraints: list[Constraint] = [read_contact(section) for section in top.named_sections("contacts")]
    constraints += [read_constraint(section) for section in top.named_sections("constraints")]
    collisions = read_collisions(top, folder, bool(robot.objects))
    sensors = tuple(read_sensor(section) for section in top.named_sections("sensors"))
    servo = read_servo(top, robot)
    q, v = read_initial(top.section("initial"), robot)
    top.finish()
    whole_nanoseconds("dt", simulation.dt)
    control_steps(node.control_period, simulation.dt)
    joints = robot.joint_models
    commanded = {name: joints[name] for name in robot.actuated_joints if joints[name].nv == 1}
    for name in node.joints:
        lookup("actuated joint", name, commanded)
    if len(set(node.joints)) != len(node.joints):
        raise InvalidValue("joints", list(node.joints), "each joint once")
    if simulation.joint_limits:
        constraints += robot.joint_limits()
    for constraint in constraints:
        constraint.bind(robot, q)  # names that do not exist are refused now
    config = Config(robot, tuple(constraints), q, v, simulation, node, collisions, sensors, servo, parameters, folder)
    config.sensor_set()  # names, rates and seeds that are not allowed are refused now
    return config
