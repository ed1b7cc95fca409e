"""What no step of a robot under the same constraints changes, and work space: one argument of kernels, not sixty."""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.experimental import structref

from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.springs import SpringTable
from constrained_sim.dynamics.tree import Pose, Tree, contract
from constrained_sim.robot import Robot
from constrained_sim.steppers.packed_step import State
from constrained_sim.validation import Array


class RobotModel(NamedTuple):
    """A robot as kernels know it.

    Attributes:
        tree: joints and bodies.
        support: (n, nv) see :func:`~constrained_sim.dynamics.kinematics.row_jacobian`.
        damping: (nv,) of the joints [N m s/rad, N s/m].
        stiffness: (nv,) of the springs in joints [N m/rad, N/m].
        springs: these.
        actuation: (nu,) velocity index of every effort.
        friction_dofs: (d,) degrees of freedom with dry friction.
        coulomb_effort: (d,) their Coulomb efforts [N m, N].
        free: (r,) the free-flyers on the world.
        free_rows: (r,) the first row of each in v.
        others: (nv - d,) degrees of freedom without dry friction.
        parents_of_others: (nv - d,) the parent of each among them, see :func:`~constrained_sim.dynamics.tree.contract`.
    """

    tree: Tree
    support: npt.NDArray[np.bool_]
    damping: Array
    stiffness: Array
    springs: SpringTable
    actuation: npt.NDArray[np.intp]
    friction_dofs: npt.NDArray[np.intp]
    coulomb_effort: Array
    free: npt.NDArray[np.intp]
    free_rows: npt.NDArray[np.intp]
    others: npt.NDArray[np.int64]
    parents_of_others: npt.NDArray[np.int64]


def robot_model(robot: Robot) -> RobotModel | None:
    """Return what kernels know of a robot; None of one that is not for them."""
    if robot.tree is None:
        return None
    free, free_rows = robot.free_joints
    others, parents_of_others = contract(robot.tree.rows, robot.friction_dofs)
    return RobotModel(
        tree=robot.tree,
        support=robot.support,
        damping=robot.damping,
        stiffness=robot.stiffness,
        springs=robot.spring_table,
        actuation=robot.actuation,
        friction_dofs=robot.friction_dofs,
        coulomb_effort=robot.coulomb_effort,
        free=free,
        free_rows=free_rows,
        others=others,
        parents_of_others=parents_of_others,
    )


class Contacts(NamedTuple):
    """Contacts and one-sided rows as kernels know them.

    Attributes:
        features: of k contacts, see :class:`~constrained_sim.contact.features.ContactFeatures`.
        friction: (k,) coefficients.
        normals: (k + l,) which rows open and close.
        shares: whether any two neighbours are of the same bodies.
    """

    features: tuple[Any, ...]
    friction: Array
    normals: npt.NDArray[np.int64]
    shares: bool


class StepOptions(NamedTuple):
    """How steps are done.

    Attributes:
        theta: of the new velocity in the mean velocity.
        activation_distance: predicted gap up to which a contact takes part [m].
        rest_speed: velocity up to which a state is at rest [m/s, rad/s].
        position_tolerance: drift up to which positions stay as they are [m, rad].
        impact_speed: see :func:`~constrained_sim.steppers.contact_selection.closing_contacts` [m/s].
    """

    theta: float
    activation_distance: float
    rest_speed: float
    position_tolerance: float
    impact_speed: float


class WorkSpace(NamedTuple):
    """Arrays of a step that every step fills anew; what is in them after it is of interest now and then.

    Attributes:
        middle: the state where forces were evaluated, a :class:`~constrained_sim.steppers.packed_step.State`; but its
            rows move as they do at the velocity at the beginning.
        pose: there.
        end_pose: at the end.
        bias: (nv,) bias forces there, at constant axes, see :func:`~constrained_sim.dynamics.free_flyer.hold_axes`.
        impulses: (6, nv) generalised impulses [N m s, N s] of the prediction, the causes in the order of ``FORCES``.
        x: (nv,) the velocity that is predicted for the end.
        x_first: (nv,) velocity of the correction before friction is turned against the mean slip.
        row_impulses_first: (3 k + l + d,) impulses of that, or fewer.
    """

    middle: State
    pose: Pose
    end_pose: Pose
    bias: Array
    impulses: Array
    x: Array
    x_first: Array
    row_impulses_first: Array


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
def make_step_model(robot, contacts, limits, bilateral, options, sizes, order, work):  # type: ignore[no-untyped-def]
    """Return the :class:`StepModel` with these fields."""
    return StepModel(robot, contacts, limits, bilateral, options, sizes, order, work)
