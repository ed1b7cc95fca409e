"""Robot: what does not change during a simulation: the Pinocchio model, its actuation, its limits and names."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from constrained_sim.dynamics.momentum import cyclic_rows
from constrained_sim.dynamics.springs import SpringTable, spring_effort, spring_energy
from constrained_sim.dynamics.tree import Tree, contract, tree_of
from constrained_sim.exceptions import InvalidValue, ModelError, UnknownName
from constrained_sim.joint_properties import JOINT_PROPERTIES, property_of
from constrained_sim.joints import (
    SPRING_PROPERTIES,
    Spring,
    check_limits,
    joint_values,
    set_property,
    with_spring,
)
from constrained_sim.late_imports import call_late
from constrained_sim.validation import (
    Array,
    finite_array,
    flag,
    float_array,
    instance,
    known,
    lookup,
    names,
    number,
    unit_pose,
)

if TYPE_CHECKING:
    from constrained_sim.descriptions.collision_element import CollisionElement
    from constrained_sim.descriptions.visual import Visual
    from constrained_sim.objects.world_object import WorldObject

WORLD = "world"

NORMALIZED = 1e-6
"""Error of the length of a quaternion or a pair (cos, sin) up to which it is taken, and normalised: six digits."""


@dataclass(frozen=True, eq=False)
class Robot:
    """A rigid-body tree with its actuation; create it with :meth:`from_urdf`, or from a ``pinocchio.Model``.

    Attributes:
        model: the ``pinocchio.Model``; not to be changed afterwards.
        actuated_joints: names of the joints that take efforts, in the order of ``tau``.
        floating_base: whether the root is a free-flyer.
        urdf: text of the description, empty if there is none.
        constraints: bilateral constraints that are part of the robot: mimicking joints, closed loops. Every function
            that takes a robot and constraints adds them, after those it is given.
        springs: linear springs in joints with one coordinate; they act in simulations, as joint damping does.
        folder: of the description's file; None where it was given as text.
        collision_elements: collision geometry that the description states; used where a simulation has ``collisions``.
        ignored: what the description says and nobody uses, or what is wrong with it, one line each.
        effort_ranges: least and largest effort [N m, N] of joints with one degree of freedom that are stronger one way;
            of all others the model's limits hold both ways.
        objects: what is beside the robot in the same tree, see :meth:`with_objects`; its joints follow the robot's own
            in q and v, and take no efforts.
        alone: the robot without `objects`; None where there are none.
        visuals: shapes that it is shown with, where `urdf` does not say.
        free_poses: where the description places what floats, position [m] and quaternion xyzw (7,) by joint; at the
            origin of the world otherwise.
    """

    model: pin.Model
    actuated_joints: tuple[str, ...]
    floating_base: bool = False
    urdf: str = ""
    constraints: tuple[Any, ...] = ()
    springs: Mapping[str, Spring] = field(default_factory=dict)
    folder: Path | None = None
    collision_elements: tuple[CollisionElement, ...] = ()
    ignored: tuple[str, ...] = ()
    effort_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    objects: tuple[WorldObject, ...] = ()
    alone: Robot | None = None
    visuals: tuple[Visual, ...] = ()
    free_poses: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no part of a robot, and joints that depend on others in Pinocchio's own way.

        Raises:
            UnknownName: an actuated joint that the model does not have.
            InvalidValue: one that is named twice, or a value of the wrong kind.
            ModelError: a mimicking joint, or joints that are not in depth-first order.
        """
        instance("model", self.model, pin.Model, "a pinocchio.Model")
        object.__setattr__(self, "actuated_joints", actuated_of(tuple(self.model.names)[1:], self.actuated_joints))
        flag("floating_base", self.floating_base)
        instance("urdf", self.urdf, str, "the text of a description")
        instance("springs", self.springs, Mapping, "a mapping from joints to springs")
        call_late("checked_constraints", self.constraints)
        poses = instance("free_poses", self.free_poses, Mapping, "a mapping from joints to poses")
        object.__setattr__(self, "free_poses", {name: self._free_pose(name, pose) for name, pose in poses.items()})
        for name, joint in zip(self.model.names, self.model.joints, strict=True):
            if "Mimic" in joint.shortname():
                raise ModelError(f"joint {name!r}: got one that mimics another, allowed: a JointCoupling in its place")
        self._check_order()

    def _free_pose(self, joint: str, pose: Any) -> Array:
        """Return a `pose` (7,) with a unit quaternion.

        Raises:
            UnknownName: no such joint.
            InvalidValue: one that is no free-flyer, or no pose.
        """
        kind = lookup("joint", joint, self.joint_models).shortname()
        if kind != "JointModelFreeFlyer":
            raise InvalidValue(f"free_poses of joint {joint!r}", kind, "a joint that floats, JointModelFreeFlyer")
        return unit_pose(f"pose of joint {joint!r}", pose)

    def _check_order(self) -> None:
        """Refuse joints that are not in depth-first order, on which Pinocchio's inertia matrix depends.

        Raises:
            ModelError: names the first of them.
        """
        parents, names, branch = self.model.parents, self.model.names, [0]
        for joint in range(1, self.model.njoints):
            while branch and branch[-1] != parents[joint]:
                branch.pop()
            if not branch:
                before, parent = names[joint - 1], names[parents[joint]]
                raise ModelError(
                    f"joint {names[joint]!r}: got it after {before!r}, allowed: joints depth-first, all that move with "
                    f"{parent!r} before those of another branch"
                )
            branch.append(joint)

    def __repr__(self) -> str:
        """Say what it is, not every number of it."""
        held = ", ".join(str(constraint.name) for constraint in self.constraints)
        return (
            f"Robot({self.model.name!r}, {self.nv} degrees of freedom, efforts of [{', '.join(self.actuated_joints)}], "
            f"constraints [{held}])"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields: what has been found from them is found again, and not all of it can be pickled."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __deepcopy__(self, memo: dict[int, Any]) -> Robot:
        """Return the robot itself, which never changes."""
        return self

    @classmethod
    def from_urdf(
        cls,
        path_or_xml: str | os.PathLike[str],
        floating_base: bool = False,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        actuated_joints: Sequence[str] | None = None,
    ) -> Robot:
        """Read a URDF; ``<mimic>`` becomes a JointCoupling, ``<dynamics>`` damping and dry friction.

        Args:
            path_or_xml: a file, also ``package://NAME/PATH``, or the XML itself.
            floating_base: put a free-flyer between the world and the root link.
            gravity: (3,) acceleration [m/s^2], world axes.
            actuated_joints: joints that take efforts, in the order of ``tau``; None: every joint but the free-flyer and
                those that mimic another.

        Raises:
            ModelError: no such file, not a URDF, or a moving joint that carries no mass.
            UnknownName: an actuated joint that does not exist.
            InvalidValue: gravity is not three finite numbers, or an actuated joint is named twice.
        """
        robot: Robot = call_late("read_robot_from_urdf", cls, path_or_xml, floating_base, gravity, actuated_joints)
        return robot

    @classmethod
    def from_sdf(
        cls,
        path_or_xml: str | os.PathLike[str],
        floating_base: bool = False,
        gravity: Sequence[float] = (0.0, 0.0, -9.81),
        actuated_joints: Sequence[str] | None = None,
    ) -> Robot:
        """Read an SDF with one model; joints that close a loop become anchors in :attr:`constraints`.

        :mod:`constrained_sim.descriptions.sdf.vocabulary` lists the elements that are read.

        Args:
            path_or_xml: a file, also ``package://NAME/PATH``, or the XML itself.
            floating_base: put a free-flyer between the world and the root link.
            gravity: (3,) acceleration [m/s^2], world axes.
            actuated_joints: joints that take efforts, in the order of ``tau``; None: as of :meth:`from_urdf`.

        Raises:
            ConstrainedSimError: as of :meth:`from_urdf`.
        """
        robot: Robot = call_late("read_robot_from_sdf", cls, path_or_xml, floating_base, gravity, actuated_joints)
        return robot

    @classmethod
    def from_mjcf(
        cls,
        path_or_xml: str | os.PathLike[str],
        gravity: Sequence[float] | None = None,
        actuated_joints: Sequence[str] | None = None,
    ) -> Robot:
        """Read an MJCF; its equalities become :attr:`constraints`.

        Geoms of the world are no part of it: they belong into the scene of a simulation.
        :mod:`constrained_sim.descriptions.mjcf.vocabulary` lists what is read, :attr:`ignored` what of it nobody uses.

        Args:
            path_or_xml: a file, also ``package://NAME/PATH``, or the XML itself.
            gravity: (3,) acceleration [m/s^2], world axes; None: the file's.
            actuated_joints: joints that take efforts, in the order of ``tau``; None: those with an actuator, or all but
                the free-flyer if there are no actuators.

        Raises:
            ModelError: no such file, not an MJCF, or a moving joint that carries no mass.
        """
        robot: Robot = call_late("read_robot_from_mjcf", cls, path_or_xml, gravity, actuated_joints)
        return robot

    def with_joints(self, properties: Mapping[str, Any]) -> Robot:
        """Return this robot with other properties of its own joints.

        Args:
            properties: by joint: ``armature`` (inertia of the rotor as seen at the joint [kg m^2, kg]), ``damping``
                [N m s/rad, N s/m], ``friction`` (Coulomb effort of dry friction [N m, N]), ``effort`` [N m, N] and
                ``velocity`` [rad/s, m/s] (limits, infinity: none), ``lower`` and ``upper`` (position limits [rad, m]),
                ``stiffness`` [N m/rad, N/m] and ``spring_reference`` (where it is relaxed [rad, m]) of a spring.

        Raises:
            UnknownName: a joint or a property that does not exist.
            InvalidValue: a negative value, NaN, an effort or velocity of zero, or position limits in the wrong order or
                of a joint with several coordinates.
        """
        if self.alone is not None:
            return self.alone.with_joints(properties).with_objects(self.objects)
        model, springs = pin.Model(self.model), dict(self.springs)
        for name, values in instance("properties", properties, Mapping, "a mapping from joints to theirs").items():
            known("joint", name, self.joint_names)
            allowed = f"a mapping of {', '.join([*JOINT_PROPERTIES, *SPRING_PROPERTIES])}"
            instance(f"properties of joint {name!r}", values, Mapping, allowed)
            for key, value in values.items():
                if key in SPRING_PROPERTIES:
                    spring = springs.get(name, Spring(0.0, 0.0))
                    springs[name] = with_spring(self.joint_models[name], name, spring, key, value)
                elif key in JOINT_PROPERTIES:
                    set_property(model, name, key, value)
                else:
                    raise UnknownName("property of a joint", key, [*JOINT_PROPERTIES, *SPRING_PROPERTIES])
            if {"lower", "upper"} & set(values):
                check_limits(model, name)
        springs = {name: spring for name, spring in springs.items() if spring.stiffness}
        ranges = {name: r for name, r in self.effort_ranges.items() if "effort" not in properties.get(name, ())}
        return replace(self, model=model, springs=springs, effort_ranges=ranges)

    def with_payloads(self, masses: Mapping[str, Any]) -> Robot:
        """Return this robot with a point mass at the origin of some of its own links.

        Args:
            masses: [kg] by link; a negative one makes the link lighter.

        Raises:
            UnknownName: a link that the robot does not have.
            InvalidValue: no finite number, a mass on what does not move, or one that leaves less than none of what a
                joint moves, or of a link whose mass the description tells apart from it.
            ModelError: a body, or what a joint moves, is left without mass or with a negative moment of inertia.
        """
        if self.alone is not None:
            return self.alone.with_payloads(masses).with_objects(self.objects)
        model = pin.Model(self.model)
        for link, mass in instance("payloads", masses, Mapping, "a mapping from links to masses").items():
            index, placement = self.link_placement(link)
            if not index:
                raise InvalidValue("link of a payload", link, "one that moves")
            payload = pin.Inertia(number(f"payload of {link!r}", mass), np.zeros(3), np.zeros((3, 3)))
            model.inertias[index] = model.inertias[index] + placement.act(payload)
            frame = model.frames[frame_with_inertia(model, self.links[link])]
            frame.inertia = frame.inertia + payload  # of the joint's inertia this link's part
        if masses:
            pairs = zip(self.model.frames, model.frames, strict=True)
            links = [after.inertia.mass for before, after in pairs if before.inertia.mass > 0.0]
            if min([*links, *(inertia.mass for inertia in list(model.inertias)[1:])]) < 0.0:
                raise InvalidValue("payloads", dict(masses), "masses that leave no link with a negative one")
            call_late("refuse_impossible_bodies", model)
            call_late("refuse_massless_joints", model)
        return replace(self, model=model)

    def with_objects(self, objects: Iterable[WorldObject]) -> Robot:
        """Return this robot with these objects beside it, and no others: one tree, in which all may touch.

        Joints, links and constraints of an object get its name as a prefix: ``box/body``. The robot's own come first,
        in q and v too, and alone take efforts.

        Args:
            objects: in the order in which their joints follow the robot's.

        Raises:
            InvalidValue: something that is no object.
            DuplicateName: two of one name, one of the robot's name, or one whose prefix the robot's own names have.
            ModelError: a constraint of an object that holds it to the world, a mesh that is not found, or too many
                degrees of freedom in all.
        """
        combined: Robot = call_late("combine", self, objects)
        return combined

    @property
    def without_objects(self) -> Robot:
        """The robot alone."""
        return self if self.alone is None else self.alone

    @cached_property
    def own_joint_models(self) -> dict[str, pin.JointModel]:
        """Pinocchio's model of every moving joint of the robot itself, by name."""
        return {name: self.joint_models[name] for name in self.without_objects.joint_names}

    def owner_of(self, name: str) -> str:
        """Return the name of the object that a link, a joint, a constraint or the like belongs to; empty: the robot.

        Args:
            name: of the link, joint, collision element, contact or constraint.

        Raises:
            InvalidValue: no string.
        """
        owner, separator, _ = instance(
            "name", name, str, "the name of a link, a joint or a collision element"
        ).partition("/")
        return owner if separator and any(entry.name == owner for entry in self.objects) else ""

    def summary(self, dt: float = 1e-3) -> Any:
        """Return what the description holds, as tables to print, with advice for steps of `dt` [s].

        That is a :class:`~constrained_sim.bringup.summary.RobotSummary`.

        Raises:
            InvalidValue: a period that is not positive.
        """
        return call_late("summarize", self, dt)

    def joint_limits(self, restitution: float = 0.0) -> tuple[Any, ...]:
        """Return a JointLimit ``<joint> limit`` for each joint that has position limits.

        Args:
            restitution: Newton's coefficient of all of them, 0 to 1.
        """
        limits: tuple[Any, ...] = call_late("joint_limits_of", self, restitution)
        return limits

    @cached_property
    def nq(self) -> int:
        """Length of a configuration."""
        return int(self.model.nq)

    @cached_property
    def nv(self) -> int:
        """Number of degrees of freedom."""
        return int(self.model.nv)

    @cached_property
    def nu(self) -> int:
        """Length of ``tau``: number of actuated velocity entries."""
        return len(self.actuation)

    @cached_property
    def is_vector_space(self) -> bool:
        """Whether configurations add up: no joint has a quaternion or a pair (cos, sin)."""
        return self.nq == self.nv

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of all moving joints, free-flyer included, in Pinocchio's order."""
        return tuple(self.model.names)[1:]

    @cached_property
    def joint_models(self) -> dict[str, pin.JointModel]:
        """Pinocchio's model of every moving joint, by name."""
        return dict(zip(self.joint_names, list(self.model.joints)[1:], strict=True))

    @cached_property
    def links(self) -> dict[str, int]:
        """Index of the Pinocchio frame of every link and fixed frame, by name, and of ``"world"``, which is 0.

        A link's name means the link, also where a joint or another frame has it too.
        """
        frames = list(enumerate(self.model.frames))[1:]  # the first is the world, under a name of Pinocchio's
        others = {f.name: i for i, f in frames if f.type not in (pin.FrameType.JOINT, pin.FrameType.BODY)}
        return {**others, **{f.name: i for i, f in frames if f.type == pin.FrameType.BODY}, WORLD: 0}

    @cached_property
    def root_link(self) -> str:
        """Name of the link that carries all others: the one that the free-flyer moves, where there is one."""
        carrier = 1 if self.floating_base else 0
        bodies = [f for f in self.model.frames if f.type == pin.FrameType.BODY and f.parentJoint == carrier]
        return str(bodies[0].name) if bodies else WORLD

    @cached_property
    def actuation(self) -> npt.NDArray[np.intp]:
        """(nu,) velocity index of every entry of ``tau``: ``S^T tau`` scatters to these."""
        joints = [self.joint_models[name] for name in self.actuated_joints]
        return np.array([joint.idx_v + k for joint in joints for k in range(joint.nv)], dtype=np.intp)

    @cached_property
    def velocity_names(self) -> tuple[str, ...]:
        """(nv) names of the velocity entries: the joint, or ``joint.i`` where a joint has several."""
        return tuple(
            name if joint.nv == 1 else f"{name}.{k}"
            for name, joint in zip(self.joint_names, list(self.model.joints)[1:], strict=True)
            for k in range(joint.nv)
        )

    @cached_property
    def free_joints(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Free-flyers on the world, and the first row of each in v: these rows of M v are a momentum.

        That of all that the joint carries. Rotors (armature) in such a joint would be in no body.
        """
        model = self.model
        free = [
            joint
            for joint in range(1, model.njoints)
            if model.joints[joint].shortname() == "JointModelFreeFlyer"
            and model.parents[joint] == 0
            and not np.any(model.armature[model.idx_vs[joint] : model.idx_vs[joint] + 6])
        ]
        return np.array(free, dtype=np.int64), np.array([model.idx_vs[joint] for joint in free], dtype=np.int64)

    @cached_property
    def momentum_parents(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows of M v that are known exactly, ascending, and the parent of each among them, -1 at a root.

        Those of free-flyers and of cyclic coordinates, see :func:`~constrained_sim.dynamics.momentum.cyclic_rows`.
        """
        _, free_rows = self.free_joints
        flyers = [np.arange(row, row + 6) for row in free_rows]
        known = np.concatenate([cyclic_rows(self.model), *flyers])
        return contract(self.inertia_parents, np.setdiff1d(np.arange(self.nv), known))

    @cached_property
    def effort_limits(self) -> Array:
        """(nu,) largest effort [N m, N]; infinite where the description gives none."""
        return self._effort_range[1]

    @cached_property
    def least_efforts(self) -> Array:
        """(nu,) least effort [N m, N]: the negative of the largest, unless an actuator is stronger one way."""
        return self._effort_range[0]

    @cached_property
    def _effort_range(self) -> tuple[Array, Array]:
        limits = property_of(self.model, "effort")[self.actuation]
        upper = np.where(limits > 0.0, limits, np.inf)
        lower = -upper
        starts = np.cumsum([0, *(self.joint_models[name].nv for name in self.actuated_joints)])
        for name, start in zip(self.actuated_joints, starts[:-1], strict=True):
            if name in self.effort_ranges:
                lower[start], upper[start] = self.effort_ranges[name]
        return lower, upper

    @cached_property
    def _tau(self) -> str:
        return f"tau of {', '.join(self.actuated_joints) or 'no joint'}"

    @cached_property
    def velocity_limits(self) -> Array:
        """(nv,) largest speed [rad/s, m/s]; infinite where the description gives none."""
        limits = property_of(self.model, "velocity")
        return np.where(limits > 0.0, limits, np.inf)

    @cached_property
    def position_limits(self) -> tuple[Array, Array]:
        """(nv,) lower and upper limits [rad, m] of joints with one degree of freedom; infinite for all others."""
        at_q, at_v = self._scalar_joints
        lower, upper = np.full(self.nv, -np.inf), np.full(self.nv, np.inf)
        lower[at_v], upper[at_v] = self.model.lowerPositionLimit[at_q], self.model.upperPositionLimit[at_q]
        given = lower <= upper
        return np.where(given, lower, -np.inf), np.where(given, upper, np.inf)

    @cached_property
    def _scalar_joints(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Indices into q and v of the joints with one coordinate."""
        joints = [joint for joint in list(self.model.joints)[1:] if joint.nq == 1]
        return np.array([j.idx_q for j in joints], dtype=np.intp), np.array([j.idx_v for j in joints], dtype=np.intp)

    @cached_property
    def damping(self) -> Array:
        """(nv,) viscous joint damping [N m s/rad, N s/m]."""
        return np.array(self.model.damping)

    @cached_property
    def dry_friction(self) -> Array:
        """(nv,) Coulomb effort of dry joint friction [N m, N]: Coulomb's, the same at rest and in motion."""
        return property_of(self.model, "friction")

    @cached_property
    def friction_dofs(self) -> npt.NDArray[np.intp]:
        """Velocity indices of the joints with dry friction."""
        return np.flatnonzero(self.dry_friction > 0.0)

    @cached_property
    def coulomb_effort(self) -> Array:
        """(d,) efforts of dry friction that the degrees of freedom in :attr:`friction_dofs` resist with [N m, N]."""
        return self.dry_friction[self.friction_dofs]

    @cached_property
    def spring_table(self) -> SpringTable:
        """The springs in joints as arrays."""
        joints = [self.joint_models[name] for name in self.springs]
        at_q = np.array([joint.idx_q for joint in joints], dtype=np.intp)
        at_v = np.array([joint.idx_v for joint in joints], dtype=np.intp)
        values = np.array(list(self.springs.values()), dtype=np.float64).reshape(-1, 2)
        return SpringTable(at_q, at_v, values[:, 0].copy(), values[:, 1].copy())

    @cached_property
    def stiffness(self) -> Array:
        """(nv,) of the springs in joints [N m/rad, N/m]."""
        stiffness = np.zeros(self.nv)
        stiffness[self.spring_table.at_v] = self.spring_table.stiffness
        return stiffness

    def spring_effort(self, q: Array) -> Array:
        """Return (nv,) the efforts of the springs in joints at q (nq,) [N m, N]."""
        return np.asarray(spring_effort(self.spring_table, q, self.nv))

    def spring_energy(self, q: Array) -> float:
        """Return the energy [J] in the springs of joints at q (nq,)."""
        return float(spring_energy(self.spring_table, q))

    @cached_property
    def gravity(self) -> Array:
        """(3,) acceleration of gravity [m/s^2], world axes."""
        return np.array(self.model.gravity.linear)

    @cached_property
    def mass(self) -> float:
        """Mass of all that moves [kg]."""
        return float(pin.computeTotalMass(self.model))

    def weightless_model(self) -> pin.Model:
        """Return a copy of the model without gravity."""
        model = pin.Model(self.model)
        model.gravity = pin.Motion.Zero()
        return model

    @cached_property
    def inertia_parents(self) -> npt.NDArray[np.int64]:
        """(nv,) parent of each degree of freedom in the tree, -1 at a root: the sparsity of M (Featherstone, 6.5)."""
        return np.array(self.model.createData().parents_fromRow, dtype=np.int64)

    @cached_property
    def frictionless_parents(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Degrees of freedom without dry friction, and the parent of each among them, -1 at a root."""
        return contract(self.inertia_parents, self.friction_dofs)

    @cached_property
    def tree(self) -> Tree | None:
        """Joints and bodies as arrays for compiled recursions; None where these do not know a joint."""
        return tree_of(self.model)

    @cached_property
    def support(self) -> npt.NDArray[np.bool_]:
        """(njoints, nv) whether a degree of freedom moves a joint's frame."""
        model = self.model
        table = np.zeros((model.njoints, model.nv), dtype=np.bool_)
        for joint in range(1, model.njoints):
            table[joint] = table[model.parents[joint]]
            table[joint, model.idx_vs[joint] : model.idx_vs[joint] + model.nvs[joint]] = True
        return table

    def link_point(self, link: str, point: Any) -> tuple[int, Array]:
        """Return the joint that carries `link`, and `point` [m, link frame] in that joint's frame.

        Raises:
            UnknownName: no such link or frame.
            InvalidValue: `point` is not three finite numbers.
        """
        joint, placement = self.link_placement(link)
        return joint, placement.act(finite_array(f"point on link {link!r}", point, (3,)))

    def link_placement(self, link: str) -> tuple[int, pin.SE3]:
        """Return the joint that carries `link`, and the link's placement in that joint's frame."""
        placement = self._placements.get(link) if isinstance(link, str) else None
        if placement is None:
            index = lookup("link", link, self.links)
            frame = self.model.frames[index]
            placement = self._placements[link] = int(frame.parentJoint), pin.SE3(frame.placement)
        return placement

    @cached_property
    def _placements(self) -> dict[str, tuple[int, pin.SE3]]:
        """Joint and placement of the links that were asked for."""
        return {}

    @cached_property
    def bound_sets(self) -> deque[tuple[tuple[Any, ...], Any]]:
        """The last sets of constraints that were bound to the robot, each after the declarations that it is of."""
        return deque(maxlen=8)

    def neutral(self) -> Array:
        """Return the neutral configuration (nq,): joints at zero, what floats where its file or its object says."""
        alone = self.without_objects
        own = pin.neutral(alone.model)
        for name, pose in self.free_poses.items():
            first = alone.joint_models[name].idx_q
            own[first : first + 7] = pose
        return np.concatenate([own, *(entry.configuration() for entry in self.objects)])

    def configuration(self, joints: Mapping[str, Any], base: Sequence[float] | None = None) -> Array:
        """Return a configuration from joint values by name; joints not named are neutral, or follow what they mimic.

        Args:
            joints: value [rad, m] by joint name; a sequence of nq values where a joint has several.
            base: (7,) position [m] and quaternion xyzw of the floating base; normalised.

        Raises:
            UnknownName: no such joint.
            InvalidValue: wrong length, not finite, a zero quaternion, or a base without floating base.
        """
        q = self.neutral()
        if base is not None:
            q[:7] = self._base_placement(base)
        for name, value in instance("joints", joints, Mapping, "a mapping from joints to values").items():
            joint = lookup("joint", name, self.joint_models)
            q[joint.idx_q : joint.idx_q + joint.nq] = joint_values(joint, name, value)
        return self.with_followers(q, joints)

    def with_followers(self, q: Array, given: Container[str], free: Container[str] = ()) -> Array:
        """Return `q` (nq,) with the joints that mimic others where these want them.

        Args:
            q: (nq,) configuration; it is not changed.
            given: names of joints that stay where they are.
            free: names of the robot's constraints that do not act.
        """
        for constraint in self.constraints:
            if constraint.name not in free:
                q = constraint.completed(self, q, given)
        return q

    def checked_configuration(self, q: Any) -> Array:
        """Return `q` (nq,), quaternions and pairs (cos, sin) normalised.

        Raises:
            InvalidValue: wrong length, NaN, infinity, or a quaternion or pair that is far from normalised.
        """
        q = finite_array("q", q, (self.nq,))
        if not pin.isNormalized(self.model, q, NORMALIZED):
            raise InvalidValue(
                "q", q.tolist(), "quaternions, and pairs (cos, sin) of continuous joints, of unit length"
            )
        return pin.normalize(self.model, q)

    def tangent_limits(self, q: Array) -> tuple[Array, Array]:
        """Return (nv,) how far each velocity entry may move `q` (nq,) down and up within the position limits."""
        at_q, at_v, q = *self._scalar_joints, float_array("q", q, (self.nq,))
        lower, upper = (limit.copy() for limit in self.position_limits)
        lower[at_v] -= q[at_q]
        upper[at_v] -= q[at_q]
        return lower, upper

    def within_limits(self, q: Array) -> Array:
        """Return `q` (nq,) with joints that are beyond their position limits moved to them.

        Raises:
            InvalidValue: no array of nq floats, NaN or infinity.
        """
        at_q, at_v = self._scalar_joints
        lower, upper = self.position_limits
        moved = float_array("q", q, (self.nq,)).copy()
        moved[at_q] = np.minimum(np.maximum(moved[at_q], lower[at_v]), upper[at_v])
        return moved

    def clamp(self, tau: Any) -> Array:
        """Return `tau` (nu,) [N m, N] limited to the effort limits.

        Raises:
            InvalidValue: wrong length or not finite.
        """
        tau = finite_array(self._tau, tau, (self.nu,))
        np.minimum(tau, self.effort_limits, out=tau)
        return np.maximum(tau, self.least_efforts, out=tau)

    def _base_placement(self, base: Sequence[float]) -> Array:
        if not self.floating_base:
            raise InvalidValue("base", base, "none: this robot has no floating base")
        return unit_pose("base", base)


def actuated_of(joints: Sequence[str], wanted: Any) -> tuple[str, ...]:
    """Return the actuated joints that are `wanted` of `joints`.

    Raises:
        UnknownName: one that does not exist.
        InvalidValue: no names, or one that is named twice.
    """
    wanted = names("actuated_joints", wanted)
    for name in wanted:
        known("joint", name, joints)
    if len(set(wanted)) != len(wanted):
        raise InvalidValue("actuated_joints", list(wanted), "each joint once")
    return wanted


def frame_with_inertia(model: pin.Model, index: int) -> int:
    """Return the frame of `model` that has the inertia of the body of frame `index`: itself, or that of its joint.

    Pinocchio's reader of URDF keeps that of a body behind a fixed joint in the joint's frame; of a body that a joint
    moves no frame has it, and this is the joint's.
    """
    frame = model.frames[index]
    holds_body = frame.parentFrame and model.frames[frame.parentFrame].type != pin.FrameType.BODY
    return int(frame.parentFrame) if frame.type == pin.FrameType.BODY and holds_body else index


def checked_robot(robot: Any) -> Robot:
    """Return `robot` if it is one.

    Raises:
        InvalidValue: it is not.
    """
    return instance("robot", robot, Robot, "a Robot")


def checked_state(robot: Any, q: Any, v: Any) -> tuple[Array, Array]:
    """Return the configuration (nq,) and the velocity (nv,) of `robot`.

    Raises:
        InvalidValue: no robot, wrong lengths, NaN or infinity, or a quaternion that is far from normalised.
    """
    q = checked_robot(robot).checked_configuration(q)
    return q, finite_array("v", v, (robot.nv,))
