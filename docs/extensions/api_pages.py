"""The pages of the Python API: the public names in groups, each described by its docstring."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import constrained_sim
from constrained_sim import exceptions, public, testing, textbook


class Group(NamedTuple):
    """Public names that belong together.

    Attributes:
        title: of the page.
        about: its first sentence.
        names: in the order of the page.
    """

    title: str
    about: str
    names: tuple[str, ...]


GROUPS = {
    "robot": Group(
        "Robots and states",
        "A robot is a Pinocchio model with joint properties; the rest are values.",
        ("Robot", "State", "Wrench", "Posture", "Servo"),
    ),
    "simulation": Group(
        "Simulation",
        "A simulator owns a robot, its constraints and its state.",
        ("Simulator", "StepResult", "Trajectory", "load_config", "load_kernels", "STEPPERS", "INTEGRATORS"),
    ),
    "constraints": Group(
        "Constraints",
        "What holds a robot, and what it touches at declared points.",
        (
            *("CONSTRAINTS", "PointAnchor", "FrameAnchor", "PointDistance", "JointCoupling", "JointVelocity"),
            *("JointLimit", "PointContact", "CustomConstraint", "ConstraintCheck", "check_constraint"),
        ),
    ),
    "contact": Group(
        "Contact laws and scenes",
        "What a contact may do, and the bodies that collision geometry touches.",
        (
            *("LAWS", "Rigid", "Frictionless", "Sticking", "Compliant", "HuntCrossley"),
            *("Collisions", "Plane", "Box", "Sphere", "Mesh", "WorldObject"),
        ),
    ),
    "dynamics": Group(
        "Dynamics without a simulation",
        "The constrained dynamics of one state: accelerations, impacts, efforts, projections.",
        (
            *("constrained_acceleration", "resolve_impact", "inverse_dynamics", "minimal_acceleration", "assemble"),
            *("project_position", "project_velocity", "constraint_system", "Baumgarte", "Projection"),
            *("point_force", "SpringDamper"),
        ),
    ),
    "solvers": Group(
        "Solvers",
        "Ways to solve ``M x - J^T lam = f``, ``J x = b``.",
        ("SOLVERS", "solve_kkt", "kkt_inverse", "ContactConsistentDynamics"),
    ),
    "bringup": Group(
        "Bring your robot",
        "Where a new robot touches the ground, how it stands, and with which gains.",
        ("propose_contacts", "propose_posture", "set_on_ground", "standing_efforts", "suggest_gains"),
    ),
    "sensors": Group(
        "Sensors",
        "What is measured on the robot.",
        (
            *("SENSORS", "SensorSet", "Imu", "ForceTorque", "Encoder", "ContactSwitch", "Twist", "RangeFinder"),
            *("Lidar", "Magnetometer", "Barometer", "NavSat"),
        ),
    ),
}

RST = "{title}\n{line}\n\n{about}\n\n"


def heading(title: str, about: str) -> str:
    """Return the beginning of a page in reStructuredText."""
    return RST.format(title=title, line="=" * len(title), about=about)


def first_line(member: object) -> str:
    """Return the first line of a docstring."""
    return next(iter((member.__doc__ or "").strip().splitlines()), "")


def registry(name: str) -> str:
    """Return the members of a registry: the names that options and files take."""
    members = getattr(public, name)
    rows = "\n".join(f"    * - ``{key}``\n      - {first_line(value)}" for key, value in members.items())
    return f".. data:: constrained_sim.{name}\n\n  .. list-table::\n    :widths: 25 75\n\n{rows}\n\n"


def entry(module: str, name: str, member: object) -> str:
    """Return what Sphinx needs to describe a class or function."""
    if isinstance(member, dict):
        return registry(name)
    kind = "autofunction" if not isinstance(member, type) else "autoclass"
    members = "   :members:\n" if kind == "autoclass" else ""
    return f".. {kind}:: {module}.{name}\n{members}\n"


def group_page(group: Group) -> str:
    """Return the page of a group of public names."""
    entries = (entry("constrained_sim", name, getattr(public, name)) for name in group.names)
    return heading(group.title, group.about) + "".join(entries)


def module_page(title: str, about: str, module: object, names: tuple[str, ...]) -> str:
    """Return the page of a module that users import by its own name."""
    entries = (entry(module.__name__, name, getattr(module, name)) for name in names)
    return heading(title, about) + f".. currentmodule:: {module.__name__}\n\n" + "".join(entries)


def exception_page() -> str:
    """Return the page of all exceptions and warnings, in the order of their module."""
    text = heading("Exceptions and warnings", "All errors of the package are a ``ConstrainedSimError``.")
    names = exception_names()
    return text + "".join(f".. autoexception:: constrained_sim.exceptions.{name}\n\n" for name in names)


def exception_names() -> list[str]:
    """Return the names of the exceptions and warnings of the package."""
    return [
        name
        for name, kind in vars(exceptions).items()
        if isinstance(kind, type)
        and issubclass(kind, (exceptions.ConstrainedSimError, Warning))
        and kind.__module__ == exceptions.__name__
    ]


def ungrouped() -> set[str]:
    """Return the public names that no group has, or that two have."""
    grouped = [name for group in GROUPS.values() for name in group.names]
    return set(constrained_sim.__all__) ^ set(grouped) | {name for name in grouped if grouped.count(name) > 1}


PAGES: dict[str, Callable[[], str]] = {
    **{f"api_{name}.rst": partial(group_page, group) for name, group in GROUPS.items()},
    "api_testing.rst": partial(
        module_page,
        "Tests of controllers",
        "The module ``constrained_sim.testing``; its fixtures are in ``constrained_sim.testing.fixtures``.",
        testing,
        ("DirectRobot", "SimulatedRobot", "Snapshot", "assert_throughout", "required_friction"),
    ),
    "api_textbook.rst": partial(
        module_page,
        "Formulas of the textbooks",
        "The module ``constrained_sim.textbook``; :doc:`/textbook` runs every formula.",
        textbook,
        tuple(name for name in textbook.__all__ if name not in constrained_sim.__all__),
    ),
    "exceptions.rst": exception_page,
}
