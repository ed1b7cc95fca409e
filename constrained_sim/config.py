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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

from constrained_sim.constraints import (
    Constraint,
    FrameAnchor,
    JointCoupling,
    JointLimit,
    JointVelocity,
    PointAnchor,
    PointContact,
)
from constrained_sim.contact import METHODS, Law, Plane, make_law
from constrained_sim.contact.collision import Collisions
from constrained_sim.contact.scene import Box, Mesh, SceneBody, Sphere
from constrained_sim.drift import Baumgarte, Projection, Stabilization
from constrained_sim.exceptions import ConfigError, InvalidValue, UnknownName
from constrained_sim.integrators import INTEGRATORS
from constrained_sim.parameter_file import load_parameters
from constrained_sim.robot import WORLD, Robot
from constrained_sim.sensors import SENSORS, Sensor, SensorSet
from constrained_sim.simulator import Simulator
from constrained_sim.solvers import SOLVERS, Solver, make_solver
from constrained_sim.steppers import STEPPERS
from constrained_sim.validation import Array, directions, finite_array, lookup, number


def at_least(default: float, lower: float) -> Any:
    """Return a field for a number that is not below `lower`."""
    return field(default=default, metadata={"lower": lower, "open": False})


def above(default: float, lower: float) -> Any:
    """Return a field for a number that is above `lower`."""
    return field(default=default, metadata={"lower": lower, "open": True})


def one_of(default: str, *others: str) -> Any:
    """Return a field for a name among several."""
    return field(default=default, metadata={"allowed": tuple(dict.fromkeys((default, *others)))})


def _check_options(options: Any) -> None:
    """Check the values of a dataclass against what its fields allow.

    Raises:
        InvalidValue: one that is not allowed.
    """
    for option in fields(options):
        value, limits = getattr(options, option.name), option.metadata
        if "lower" in limits:
            number(option.name, value, limits["lower"], open_lower=limits["open"])
        elif "allowed" in limits and value not in limits["allowed"]:
            raise InvalidValue(option.name, value, ", ".join(limits["allowed"]))


@dataclass(frozen=True)
class SimulationOptions:
    """How to simulate; see :class:`~constrained_sim.simulator.Simulator`.

    Attributes:
        dt: physics step [s], a whole number of nanoseconds.
        stepper: a name in ``STEPPERS``.
        integrator: a name in ``INTEGRATORS``; empty: the stepper's own choice.
        solver: a name in ``SOLVERS``.
        factorization: of the direct solver; empty: its default.
        contact_method: a name in the contact ``METHODS``.
        contact_tolerance: error of contact impulses that is good enough [N s]; 0: rounding.
        position_tolerance: [m, rad] by how much a constraint may be violated when it is added.
        projection_metric: ``mass`` or ``euclidean``.
        time_constant: of Baumgarte's feedback, in place of projection [s]; 0: projection.
        command_delay: time from an effort's command to its effect [s], a multiple of dt.
        joint_limits: stop joints at the position limits of the description.
        velocity_limits: apply no effort that drives a joint on beyond its velocity limit.
        assemble: move the initial configuration so that all bilateral constraints hold.
        sensor_seed: of the noise of sensors, >= 0.
    """

    dt: float = above(1e-3, 0.0)
    stepper: str = one_of(*STEPPERS)
    integrator: str = ""
    solver: str = one_of("direct", *SOLVERS)
    factorization: str = ""
    contact_method: str = one_of("newton", *METHODS)
    contact_tolerance: float = at_least(0.0, 0.0)
    position_tolerance: float = at_least(1e-4, 0.0)
    projection_metric: str = one_of("mass", "euclidean")
    time_constant: float = at_least(0.0, 0.0)
    command_delay: float = at_least(0.0, 0.0)
    joint_limits: bool = False
    velocity_limits: bool = False
    assemble: bool = False
    sensor_seed: int = 0

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: one that is not allowed.
            UnknownName: no such integrator or factorization.
        """
        _check_options(self)
        if self.integrator:
            lookup("integrator", self.integrator, INTEGRATORS)
        self.make_solver()

    def make_stabilization(self, stepper: str) -> Stabilization:
        """Return the configured removal of drift, for one of the ``STEPPERS``: feedback where that can do it."""
        if self.time_constant and (stepper == self.stepper or STEPPERS[stepper].does_feedback):
            return Baumgarte(self.time_constant)
        return Projection(self.projection_metric)

    def make_solver(self) -> Solver:
        """Return the configured solver.

        Raises:
            UnknownName: no such solver or factorization.
            InvalidValue: a factorization for a solver that has none.
        """
        return configured_solver(self.solver, self.factorization)


@dataclass(frozen=True)
class NodeOptions:
    """How the ROS node runs the simulation.

    Attributes:
        control_period: [s] between published states, a whole multiple of dt; 0: dt.
        clock_mode: ``realtime``, ``fast`` or ``lockstep``.
        real_time_factor: simulated seconds per second in realtime mode.
        start_time: [s] stamp of the initial state.
        start_paused: wait for ``~/pause`` or ``~/step``.
        wait_for_first_command: let no time pass until a controller has sent its first command.
        wait_for_subscriber: let no time pass until the node of this name subscribes to contact_forces; empty: none.
        duration: [s] of simulated time after which the node ends; 0: never.
        lockstep_commands: answers to a state before lockstep goes on.
        lockstep_match: ``stamp`` or ``arrival``.
        lockstep_timeout: [s] of wall-clock time without an answer before the node acts.
        lockstep_action: ``warn``, ``pause``, or ``continue`` in real time, with the last command, until one comes.
        command_timeout: [s] of simulated time since the last command before ``timeout_action`` acts; 0: never.
        timeout_action: ``zero`` effort, ``hold`` the last command, or ``damping``.
        timeout_damping: [N m s/rad, N s/m] of each actuated joint, with ``damping``.
        command_reliability: ``reliable`` or ``best_effort``.
        joints: order of the efforts in ``~/commands``; empty: the actuated joints.
        world_frame: frame_id of what is published.
        frame_prefix: put before the names of links.
        status_rate: [Hz] simulated.
        contact_wrenches: publish the wrench of every contact on its link, in the link's axes, on contact_wrenches/NAME.
        marker_rate: [Hz] simulated, of contact_markers; 0: none.
        marker_scale: [m/N] of the arrows.
        record: directory of the rosbag2 recording; empty: none.
    """

    control_period: float = at_least(0.0, 0.0)
    clock_mode: str = one_of("realtime", "fast", "lockstep")
    real_time_factor: float = above(1.0, 0.0)
    start_time: float = at_least(1.0, 0.0)
    start_paused: bool = False
    wait_for_first_command: bool = False
    wait_for_subscriber: str = ""
    duration: float = at_least(0.0, 0.0)
    lockstep_commands: int = at_least(1, 1)
    lockstep_match: str = one_of("stamp", "arrival")
    lockstep_timeout: float = above(5.0, 0.0)
    lockstep_action: str = one_of("warn", "pause", "continue")
    command_timeout: float = at_least(0.0, 0.0)
    timeout_action: str = one_of("zero", "hold", "damping")
    timeout_damping: float = at_least(1.0, 0.0)
    command_reliability: str = one_of("reliable", "best_effort")
    joints: tuple[str, ...] = ()
    world_frame: str = "world"
    frame_prefix: str = ""
    status_rate: float = above(10.0, 0.0)
    contact_wrenches: bool = False
    marker_rate: float = at_least(30.0, 0.0)
    marker_scale: float = above(0.005, 0.0)
    record: str = ""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            InvalidValue: one that is not allowed.
        """
        _check_options(self)


@dataclass(frozen=True, eq=False)
class Config:
    """A robot, its constraints and its initial state, and how to simulate them.

    Attributes:
        robot: the robot.
        constraints: active from the beginning.
        q: (nq,) initial configuration.
        v: (nv,) initial velocity.
        simulation: how to simulate.
        node: how the ROS node runs it.
        collisions: what the collision geometry of the robot may touch; None: nothing.
        sensors: on the robot.
    """

    robot: Robot
    constraints: tuple[Constraint, ...]
    q: Array
    v: Array
    simulation: SimulationOptions = field(default_factory=SimulationOptions)
    node: NodeOptions = field(default_factory=NodeOptions)
    collisions: Collisions | None = None
    sensors: tuple[Sensor, ...] = ()

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
            constraints: beside those of the robot itself.
            like: whose stepper, integrator, solver and contact method to use.

        Raises:
            ConstrainedSimError: a value that the simulator refuses.
        """
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
        sim.reset(self.q if q is None else q, self.v if v is None else v, assemble=options.assemble)
        for constraint in self.constraints if constraints is None else constraints:
            if constraint not in self.robot.constraints:
                sim.add(constraint, assemble=options.assemble and not constraint.is_unilateral)
        return sim

    def sensor_set(self) -> SensorSet:
        """Return the sensors, to be read once per control period from the reset on.

        Raises:
            ConstrainedSimError: a link, a rate or a seed that is not allowed.
        """
        dt = self.simulation.dt
        period = control_steps(self.node.control_period, dt) * dt
        return SensorSet(self.robot, self.sensors, period, self.simulation.sensor_seed)


def configured_solver(name: str, factorization: str = "") -> Solver:
    """Return the solver `name`; an empty `factorization` is its default.

    Raises:
        UnknownName: no such solver or factorization.
        InvalidValue: a factorization for a solver that has none.
    """
    return make_solver(name, **({"factorization": factorization} if factorization else {}))


def load_config(path: str | os.PathLike[str]) -> Config:
    """Read a configuration file.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or holds an unknown key or a value of the wrong kind.
        ConstrainedSimError: a name or value in it that is not allowed.
    """
    return read_config(load_parameters(path), Path(path).resolve().parent)


def read_config(parameters: Mapping[str, Any], base: Path | None = None) -> Config:
    """Make a Config of nested `parameters`; relative paths start at `base`.

    Raises:
        ConfigError: an unknown key, or a value of the wrong kind.
        ConstrainedSimError: a name or value that is not allowed.
    """
    top = _Section("configuration", parameters)
    simulation = SimulationOptions(**top.take_fields(SimulationOptions))
    node = NodeOptions(**top.take_fields(NodeOptions))
    robot = _read_robot(top.section("robot"), base or Path.cwd())
    constraints: list[Constraint] = [_read_contact(section) for section in top.named_sections("contacts")]
    constraints += [_read_constraint(section) for section in top.named_sections("constraints")]
    collisions = _read_collisions(top, base or Path.cwd())
    sensors = tuple(_read_sensor(section) for section in top.named_sections("sensors"))
    q, v = _read_initial(top.section("initial"), robot)
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
    config = Config(robot, tuple(constraints), q, v, simulation, node, collisions, sensors)
    config.sensor_set()  # names, rates and seeds that are not allowed are refused now
    return config


def whole_nanoseconds(what: str, seconds: float) -> int:
    """Return `seconds` in nanoseconds.

    Raises:
        InvalidValue: not positive, or not whole.
    """
    nanoseconds = round(number(what, seconds, 0.0, open_lower=True) * 1e9)
    if nanoseconds < 1 or abs(nanoseconds - seconds * 1e9) > 1e-6:
        raise InvalidValue(what, seconds, "a whole number of nanoseconds, in seconds")
    return nanoseconds


def control_steps(control_period: float, dt: float) -> int:
    """Return the number of physics steps in a control period; 0 s means one.

    Raises:
        InvalidValue: the period is not a whole multiple of dt.
    """
    if control_period == 0.0:
        return 1
    count, remainder = divmod(whole_nanoseconds("control_period", control_period), whole_nanoseconds("dt", dt))
    if remainder or not count:
        raise InvalidValue("control_period", control_period, f"a whole multiple of dt = {dt}")
    return count


def resolve_path(text: str, base: Path) -> str | Path:
    """Return the file that `text` means: XML is returned as it is; ``package://name/path`` is looked up.

    A package is looked up in the ament index where there is one, then among the parents of `base`, then among the
    Python packages of that name that bring a share folder (``example-robot-data`` from PyPI).

    Raises:
        ConfigError: no such package.
    """
    if text.lstrip().startswith("<"):
        return text
    if not text.startswith("package://"):
        return base / text
    package, _, path = text.removeprefix("package://").partition("/")
    try:
        from ament_index_python.packages import get_package_share_directory

        try:
            return Path(get_package_share_directory(package)) / path
        except (LookupError, ValueError):
            pass
    except ImportError:
        pass
    for folder in (base, *base.parents):
        manifest = folder / "package.xml"
        if manifest.is_file() and f"<name>{package}</name>" in manifest.read_text(encoding="utf-8"):
            return folder / path
    share = _share_of_wheel(package)
    if share is None:
        raise ConfigError(
            f"{text!r}: package {package!r} is neither in the ament index nor around {str(base)!r} nor installed by pip"
        )
    return share / path


def _share_of_wheel(package: str) -> Path | None:
    """Return the share folder of an installed wheel, laid out as those of Pinocchio and its relatives are."""
    try:
        share = Path(str(distribution(package).locate_file(f"cmeel.prefix/share/{package}")))
    except (PackageNotFoundError, ValueError):
        return None
    return share if share.is_dir() else None


class _Section:
    """A mapping of which every key must be taken."""

    def __init__(self, where: str, values: Any) -> None:
        if not isinstance(values, Mapping):
            raise ConfigError(f"{where}: got {values!r}, allowed: a mapping of keys to values")
        self.where = where
        self._values = dict(values)
        self._known: list[str] = []

    def take(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """Return the value of `key` as `kind` (float accepts whole numbers, tuple any list)."""
        self._known.append(key)
        if key not in self._values:
            if default is MISSING:
                raise ConfigError(f"{self.where}: the key {key!r} is missing")
            return default
        value = self._values.pop(key)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if kind is tuple and isinstance(value, (list, tuple, np.ndarray)):
            return tuple(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{self.where}.{key}: got {value!r}, allowed: a value of type {kind.__name__}")
        return value

    def take_fields(self, options: type) -> dict[str, Any]:
        """Return the values of all fields of the dataclass `options`."""
        return {f.name: self.take(f.name, type(f.default), f.default) for f in fields(options)}

    def section(self, key: str) -> _Section:
        """Return the mapping under `key`, empty if there is none."""
        self._known.append(key)
        return _Section(f"{self.where}.{key}", self._values.pop(key, {}))

    def named_sections(self, key: str) -> Iterator[_Section]:
        """Yield the mappings under `key`, one for each name in it; their `name` is that name."""
        group = self.section(key)
        for name, values in group._values.items():
            section = _Section(f"{group.where}.{name}", values)
            section.name = str(name)
            yield section

    def remaining(self) -> dict[str, Any]:
        """Return what is left: a mapping whose keys are names."""
        values, self._values = self._values, {}
        return values

    def finish(self) -> None:
        """Refuse keys that nobody took."""
        for key in self._values:
            raise ConfigError(f"{self.where}: nobody reads the key {key!r}, allowed: {', '.join(self._known)}")

    name: str = ""


def _read_robot(section: _Section, base: Path) -> Robot:
    given = [(kind, text) for kind in DESCRIPTIONS if (text := section.take(kind, str, ""))]
    if len(given) != 1:
        raise ConfigError(f"{section.where}: got {len(given)} descriptions, allowed: one of {', '.join(DESCRIPTIONS)}")
    (kind, text), options = given[0], {}
    if kind != "mjcf":
        options["floating_base"] = section.take("floating_base", bool, False)
    for option in ("gravity", "actuated_joints"):
        value = section.take(option, tuple, None)
        options |= {option: value} if value is not None else {}
    joints = {part.name: part.remaining() for part in section.named_sections("joints")}
    section.finish()
    return DESCRIPTIONS[kind](resolve_path(text, base), **options).with_joints(joints)


DESCRIPTIONS: dict[str, Callable[..., Robot]] = {
    "urdf": Robot.from_urdf,
    "sdf": Robot.from_sdf,
    "mjcf": Robot.from_mjcf,
}


def _read_collisions(top: _Section, base: Path) -> Collisions | None:
    """Read the scene and how the robot's collision geometry touches it; None where there is neither."""
    scene = {section.name: _read_body(section, base) for section in top.named_sections("scene")}
    section = top.section("collisions")
    keys: dict[str, tuple[type, Any]] = {
        "friction": (float, 0.0),
        "restitution": (float, 0.0),
        "restitution_law": (str, "newton"),
        "torsional_friction": (float, 0.0),
        "rolling_friction": (float, 0.0),
        "margin": (float, 0.02),
        "self_collision": (bool, False),
        "package_dirs": (tuple, ()),
    }
    values = {key: section.take(key, kind, default) for key, (kind, default) in keys.items()}
    law, srdf = section.take("law", str, "rigid"), section.take("srdf", str, "")
    section.finish()
    if not scene and not values["self_collision"]:
        return None
    return Collisions(scene, law=make_law(law, {}), srdf=resolve_path(srdf, base) if srdf else "", **values)


def _read_body(section: _Section, base: Path) -> SceneBody:
    """Read a body of the scene by its kind."""
    kind = section.take("kind", str)
    pose = {"position": section.take("position", tuple, (0.0, 0.0, 0.0))} if kind != "plane" else {}
    if kind in ("box", "mesh"):
        pose["rpy"] = section.take("rpy", tuple, (0.0, 0.0, 0.0))
    body: SceneBody
    if kind == "plane":
        body = Plane(section.take("normal", tuple, (0.0, 0.0, 1.0)), section.take("offset", float, 0.0))
    elif kind == "box":
        body = Box(section.take("size", tuple), **pose)
    elif kind == "sphere":
        body = Sphere(section.take("radius", float), **pose)
    elif kind == "mesh":
        body = Mesh(resolve_path(section.take("file", str), base), **pose)
    else:
        raise UnknownName("kind of scene body", kind, ("plane", "box", "sphere", "mesh"))
    section.finish()
    return body


def _read_contact(section: _Section) -> PointContact:
    """Read a PointContact; the keys are those of constrained_sim/msg/Contact."""
    contact = PointContact(
        section.name,
        section.take("link", str),
        section.take("point", tuple, (0.0, 0.0, 0.0)),
        Plane(section.take("normal", tuple, (0.0, 0.0, 1.0)), section.take("offset", float, 0.0)),
        _read_law(section),
        section.take("friction", float, 0.0),
        section.take("restitution", float, 0.0),
        section.take("radius", float, 0.0),
        section.take("restitution_law", str, "newton"),
        section.take("torsional_friction", float, 0.0),
        section.take("rolling_friction", float, 0.0),
    )
    section.finish()
    return contact


def _read_law(section: _Section) -> Law:
    """Read the law of a contact; the keys of soft laws are their attributes."""
    parameters = {key: section.take(key, float, None) for key in LAW_PARAMETERS}
    name = section.take("law", str, "rigid")
    return make_law(name, {key: value for key, value in parameters.items() if value is not None})


LAW_PARAMETERS = ("stiffness", "damping", "dissipation", "exponent", "tangential_stiffness", "tangential_damping")


def _read_point_anchor(section: _Section) -> PointAnchor:
    normals = section.take("normals", tuple, None)
    return PointAnchor(
        section.name,
        section.take("link_a", str),
        section.take("point_a", tuple, (0.0, 0.0, 0.0)),
        section.take("link_b", str, WORLD),
        section.take("point_b", tuple, None),
        None if normals is None else directions(f"{section.where}.normals", normals, 3),
    )


def _read_frame_anchor(section: _Section) -> FrameAnchor:
    axes = section.take("axes", tuple, None)
    return FrameAnchor(
        section.name,
        section.take("link_a", str),
        section.take("placement_a", tuple, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)),
        section.take("link_b", str, WORLD),
        section.take("placement_b", tuple, None),
        None if axes is None else directions(f"{section.where}.axes", axes, 6),
    )


def _read_joint_coupling(section: _Section) -> JointCoupling:
    return JointCoupling(
        section.name,
        section.take("joint", str),
        section.take("reference_joint", str),
        section.take("ratio", float),
        section.take("offset", float, 0.0),
    )


def _read_joint_velocity(section: _Section) -> JointVelocity:
    return JointVelocity(section.name, section.take("joint", str), section.take("velocity", float))


def _read_joint_limit(section: _Section) -> JointLimit:
    return JointLimit(
        section.name,
        section.take("joint", str),
        section.take("lower", float, -np.inf),
        section.take("upper", float, np.inf),
        section.take("restitution", float, 0.0),
    )


def _read_constraint(section: _Section) -> Constraint:
    """Read a constraint by its kind."""
    constraint = lookup("kind of constraint", section.take("kind", str), CONSTRAINT_READERS)(section)
    section.finish()
    return constraint


CONSTRAINT_READERS = {
    PointAnchor.kind: _read_point_anchor,
    FrameAnchor.kind: _read_frame_anchor,
    JointCoupling.kind: _read_joint_coupling,
    JointVelocity.kind: _read_joint_velocity,
    JointLimit.kind: _read_joint_limit,
}


def _read_sensor(section: _Section) -> Sensor:
    """Read a sensor by its kind; the keys are its attributes."""
    kind = lookup("kind of sensor", section.take("kind", str), SENSORS)
    link = section.take("link", str)
    options = [option for option in fields(kind) if option.default is not MISSING]
    values = {option.name: section.take(option.name, type(option.default), option.default) for option in options}
    section.finish()
    return kind(section.name, link, **values)


def _read_initial(section: _Section, robot: Robot) -> tuple[Array, Array]:
    positions = section.section("positions").remaining()
    velocities = section.section("velocities").remaining()
    base = section.take("base_pose", tuple, None)
    twist = section.take("base_twist", tuple, None)
    section.finish()
    v = np.zeros(robot.nv)
    for name, value in velocities.items():
        if name not in robot.velocity_names:
            raise UnknownName("joint velocity", name, robot.velocity_names)
        v[robot.velocity_names.index(name)] = number(f"velocity of {name!r}", value)
    if twist is not None:
        if not robot.floating_base:
            raise InvalidValue("base_twist", list(twist), "none: this robot has no floating base")
        v[:6] = finite_array("base_twist", twist, (6,))
    return robot.configuration(positions, base), v
