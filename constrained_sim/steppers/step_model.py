"""Constant data and work space of a step, passed to kernels as one argument."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.experimental import structref

from constrained_sim.actuators import Efforts
from constrained_sim.compilation.kernel import kernel
from constrained_sim.contact.contact_set import ContactSet
from constrained_sim.contact.features import ContactFeatures
from constrained_sim.contact.rolling import TurningRows
from constrained_sim.contact.soft_contacts import SoftContacts
from constrained_sim.dynamics.springs import SpringTable
from constrained_sim.dynamics.tree import Tree
from constrained_sim.energy import CAUSES
from constrained_sim.robot import Robot
from constrained_sim.steppers.packed_step import Sizes, State, state_size, unpack_state
from constrained_sim.validation import Array
from constrained_sim.wrench import WrenchTable


class JointModel(NamedTuple):
    """What acts in the joints of a robot, and where.

    Attributes:
        damping: (nv,) [N m s/rad, N s/m].
        stiffness: (nv,) of the springs [N m/rad, N/m].
        actuation: (nu,) velocity index of every effort.
        friction_dofs: (d,) degrees of freedom with dry friction.
        coulomb_effort: (d,) their Coulomb efforts [N m, N].
    """

    damping: Array
    stiffness: Array
    actuation: npt.NDArray[np.intp]
    friction_dofs: npt.NDArray[np.intp]
    coulomb_effort: Array


class RobotModel(NamedTuple):
    """A robot as arrays.

    Attributes:
        tree: joints and bodies; None of a robot with joints that kernels do not know.
        parents: (nv,) parent of each degree of freedom, -1 at a root.
        gravity: (3,) acceleration [m/s^2], world axes.
        mass: of all bodies [kg].
        support: (n, nv) see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        joints: what acts in them.
        springs: in joints.
        free: (r,) the free-flyers on the world.
        free_rows: (r,) the first row of each in v.
        momentum_rows: (m,) rows of M v that are known exactly, those of free-flyers and cyclic coordinates.
        parents_of_momenta: (m,) the parent of each among them.
        others: (nv - d,) degrees of freedom without dry friction.
        parents_of_others: (nv - d,) the parent of each among them, see :func:`~constrained_sim.dynamics.tree.contract`.
    """

    tree: Tree | None
    parents: npt.NDArray[np.int64]
    gravity: Array
    mass: float
    support: npt.NDArray[np.bool_]
    joints: JointModel
    springs: SpringTable
    free: npt.NDArray[np.intp]
    free_rows: npt.NDArray[np.intp]
    momentum_rows: npt.NDArray[np.int64]
    parents_of_momenta: npt.NDArray[np.int64]
    others: npt.NDArray[np.int64]
    parents_of_others: npt.NDArray[np.int64]


def robot_model(robot: Robot) -> RobotModel:
    """Return a robot as arrays."""
    free, free_rows = robot.free_joints
    others, parents_of_others = robot.frictionless_parents
    momentum_rows, parents_of_momenta = robot.momentum_parents
    return RobotModel(
        tree=robot.tree,
        parents=robot.inertia_parents,
        gravity=robot.gravity,
        mass=robot.mass,
        support=robot.support,
        joints=JointModel(robot.damping, robot.stiffness, robot.actuation, robot.friction_dofs, robot.coulomb_effort),
        springs=robot.spring_table,
        free=free,
        free_rows=free_rows,
        momentum_rows=momentum_rows,
        parents_of_momenta=parents_of_momenta,
        others=others,
        parents_of_others=parents_of_others,
    )


class Contacts(NamedTuple):
    """Contacts and one-sided rows as kernels know them.

    Attributes:
        features: of k contacts, see :class:`~constrained_sim.contact.features.ContactFeatures`.
        friction: (k,) coefficients.
        slip_friction: (k,) see :class:`~constrained_sim.contact.contact_set.ContactSet`.
        normals: (k + l,) which rows open and close.
        soft: those whose law gives a force, see :class:`~constrained_sim.contact.soft_contacts.SoftContacts`.
        turning: rows in which they resist rolling and spinning.
        shares: whether any two neighbours are of the same bodies.
    """

    features: ContactFeatures
    friction: Array
    slip_friction: Array
    normals: npt.NDArray[np.int64]
    soft: SoftContacts
    turning: TurningRows
    shares: bool


def contacts_of(contact_set: ContactSet) -> Contacts:
    """Return contacts and one-sided rows as arrays."""
    return Contacts(
        contact_set.features,
        contact_set.friction,
        contact_set.slip_friction,
        contact_set.normals,
        contact_set.soft_table,
        contact_set.resistance.table,
        contact_set.shares_bodies,
    )


class StepOptions(NamedTuple):
    """How all steps are done.

    Attributes:
        theta: of the new velocity in the mean velocity.
        position_tolerance: drift up to which positions stay as they are [m, rad].
        impact_speed: see :func:`~constrained_sim.steppers.contact_selection.closing_contacts` [m/s].
    """

    theta: float
    position_tolerance: float
    impact_speed: float


class StepArguments(NamedTuple):
    """What acts during a step, or a part of one.

    Attributes:
        efforts: of the actuators.
        wrenches: external ones, constant along their axes.
        targets: (2, 2, m) of the bilateral rows at both ends, see
            :func:`~constrained_sim.constraints.bilateral_rows.evaluate_bilateral`.
        excluded: (x,) contacts and limits that carry no force, whatever becomes of their gaps.
        user_forces: (soft, 3) or (0, 3), see :func:`~constrained_sim.steppers.soft_rows.forces_of_users`.
    """

    efforts: Efforts
    wrenches: WrenchTable
    targets: Array
    excluded: npt.NDArray[np.int64]
    user_forces: Array


class StepSettings(NamedTuple):
    """How one step, or a part of one, is done.

    Attributes:
        h: its length [s].
        corrects: whether the velocity at its end is corrected.
        passes: over its prediction, see :attr:`~constrained_sim.steppers.substeps.Substeps.memory`.
        factorization: of the rows that are held, one of :mod:`~constrained_sim.solvers.held_rows`.
        tolerance: error of impulses that is good enough [N s].
        newton_first: see :func:`~constrained_sim.contact_solvers.solve.solve_quick`.
        goes_on: whether the step goes on with contact problems that are not solved, which its caller judges; else it
            ends there.
    """

    h: float
    corrects: bool
    passes: int
    factorization: int
    tolerance: float
    newton_first: bool
    goes_on: bool


class StepImpulses(NamedTuple):
    """What a step finds; filled by its stages.

    Attributes:
        impulse: (3 k + l,) of contacts and one-sided rows [N s, N m s].
        joint_friction: (d,) of dry friction [N m s, N s].
        moments: (e,) by which contacts resist turning [N m s].
        lam: (m,) of the bilateral rows [N s, N m s].
        status: (k + l,) of contacts and one-sided rows: 0 open, 1 sticking, 2 sliding.
        energy: (9,) terms of the audit, in the order of :class:`~constrained_sim.energy.EnergyTerms`.
    """

    impulse: Array
    joint_friction: Array
    moments: Array
    lam: Array
    status: npt.NDArray[np.int64]
    energy: Array


class WorkSpace(NamedTuple):
    """Arrays that every step fills anew; their content is valid until the next step.

    Attributes:
        middle: the state where forces were evaluated, a :class:`~constrained_sim.steppers.packed_step.State`; but its
            rows move as they do at the velocity at the beginning.
        pose: there, a :class:`~constrained_sim.dynamics.tree.Pose`; of an interpreted model its
            :class:`~constrained_sim.steppers.interpreted_model.Place`.
        end_pose: at the end.
        bias: (nv,) bias forces in the middle, at constant axes, see
            :func:`~constrained_sim.dynamics.free_flyer.hold_axes`.
        impulses: (6, nv) generalised impulses [N m s, N s] of the prediction, the causes in the order of ``FORCES``.
        x: (nv,) the velocity that is predicted for the end.
    """

    middle: State
    pose: Any
    end_pose: Any
    bias: Array
    impulses: Array
    x: Array


def work_space(sizes: Sizes, pose: Any, end_pose: Any) -> WorkSpace:
    """Return the work space of steps with these `sizes`, at whose poses nothing has been computed."""
    middle = unpack_state(np.zeros(state_size(sizes)), sizes)
    return WorkSpace(middle, pose, end_pose, np.zeros(sizes.nv), np.zeros((CAUSES, sizes.nv)), np.zeros(sizes.nv))


@structref.register
class StepModelType(types.StructRef):
    """Numba's type of a :class:`StepModel`."""

    def preprocess_fields(self, fields: Any) -> Any:
        """Return the fields as they are typed whatever their present values."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class StepModel(structref.StructRefProxy):
    """All of these together. To hand them from function to function one by one takes a third of the step of a leg.

    Fields:
        robot: a :class:`RobotModel`.
        contacts: see :class:`Contacts`.
        limits: the bounds of joints, see :class:`~constrained_sim.constraints.joint_limit.Bounds`.
        bilateral: see :class:`~constrained_sim.constraints.bilateral_rows.BilateralRows`.
        options: see :class:`StepOptions`.
        sizes: of the parts of records.
        order: where each row is, in the order of declaration, among those of contacts, of limits, and bilateral ones.
        work: a :class:`WorkSpace`.
    """


FIELDS = ["robot", "contacts", "limits", "bilateral", "options", "sizes", "order", "work"]
_settings: Any = numba.config
if _settings.DISABLE_JIT:  # then no structure of the compiler's can be made
    StepModel = namedtuple("StepModel", FIELDS)  # type: ignore[misc, no-redef]
else:
    structref.define_proxy(StepModel, StepModelType, FIELDS)


@kernel
def make_step_model(robot, contacts, limits, bilateral, options, sizes, order, work):
    """Return the :class:`StepModel` with these fields."""
    return StepModel(robot, contacts, limits, bilateral, options, sizes, order, work)
