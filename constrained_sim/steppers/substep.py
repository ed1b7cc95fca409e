"""Parts of a step of time stepping between which nothing closes, interpreted."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from constrained_sim.actuators import Efforts
from constrained_sim.constrained_dynamics import NOTHING_KNOWN, ContactRows, solve_constrained_dynamics
from constrained_sim.contact.compliance import SoftRows, slide_springs, soft_rows
from constrained_sim.dynamics import free_flyer
from constrained_sim.dynamics.dynamics import Dynamics, integrate
from constrained_sim.dynamics.free_flyer import generalized_momentum
from constrained_sim.energy import EnergyTerms
from constrained_sim.exceptions import FINE, CoarseStep
from constrained_sim.integrators import Integrator, SteppingScheme
from constrained_sim.robot import Robot
from constrained_sim.solvers import RobotSystem
from constrained_sim.stabilization import Projection, Stabilization
from constrained_sim.steppers.contact_selection import active_set, allow_approach, candidate_rows, held_rows, spread
from constrained_sim.steppers.midpoint_friction import correct_midpoint_friction, predict_midpoint_friction
from constrained_sim.steppers.state_checks import exceeds, largest_drift
from constrained_sim.steppers.step_energy import attribute_friction_work, attribute_work, energy_of
from constrained_sim.steppers.stepper import NO_CONTACT, Evaluation, Stepper
from constrained_sim.steppers.substep_result import Prediction, StepInputs, SubstepResult
from constrained_sim.validation import Array
from constrained_sim.wrench import external_effort

REST_SPEED = 1e-7
"""Largest velocity [rad/s, m/s] whose square, and so all that the second half of a step corrects, is below rounding."""

PASSES_AFTER_JUMP = 2
"""Passes over a step whose predecessor's acceleration is unknown: the first finds it to O(h), as exactly as needed."""

PROJECTED = EnergyTerms(projection=1.0).as_array()
"""Terms of the energy audit per joule that a projection brings in."""

ACTIVATION_DISTANCE = 1e-3
"""Predicted gap [m] up to which a contact takes part in the contact problem of a step."""


class InterpretedSubstep(Stepper):
    """Does parts of a step without impact, with every constraint, contact law, spring and solver.

    What it solves, see :class:`~constrained_sim.steppers.time_stepping.TimeStepping`: a prediction first, the smooth
    problem with the momentum and the rows of an evaluation point; then, at the configuration to which that leads, drift
    is removed and the velocity corrected.
    """

    does_feedback = False
    integrator: SteppingScheme
    stabilization: Projection
    _acceleration: Array
    _passes: int

    def __init__(self, robot: Robot, dt: float, integrator: Integrator, stabilization: Stabilization) -> None:
        """Allocate the work space for steps of `dt` [s].

        Raises:
            InvalidValue: an integrator that is no stepping scheme, or a stabilization that is no projection.
        """
        super().__init__(robot, dt, integrator, stabilization)
        self._mid, self._free = Dynamics(robot), robot.free_joints
        self._judged: set[str] = set()
        self._forget()

    @property
    def memory(self) -> tuple[Array, int]:
        """The acceleration of the last step, and how many passes over the next one it makes necessary."""
        return self._acceleration, self._passes

    @memory.setter
    def memory(self, memory: tuple[Array, int]) -> None:
        self._acceleration, self._passes = memory

    @classmethod
    def takes(cls, integrator: Integrator) -> bool:
        """Return whether `integrator` is a stepping scheme."""
        return isinstance(integrator, SteppingScheme)

    def _forget(self) -> None:
        """After a jump the last acceleration says nothing: take as many passes over the next part as make up for it."""
        self._acceleration, self._passes = np.zeros(self.robot.nv), PASSES_AFTER_JUMP

    def _remember(self, part: SubstepResult) -> None:
        """Keep the acceleration of a `part` of a step for the next."""
        ends, frames = (part.begin.v, part.end.v), (part.begin.frames, part.end.frames)
        self._acceleration, self._passes = free_flyer.mean_acceleration(part.h, *ends, self._free[1], *frames), 1

    def _predict(
        self,
        begin: Evaluation,
        h: float,
        inputs: StepInputs,
        excluded: npt.NDArray[np.intp],
        start: Array = NOTHING_KNOWN,
    ) -> Prediction:
        """Solve the smooth problem over `h` [s], in as many passes as the acceleration needs; `start`: see `_solve`."""
        expected = None
        for _ in range(self._passes):
            predicted = self._solve(begin, h, inputs, excluded, expected, start)
            expected, start = predicted.motion.x, predicted.motion.impulse
        if not _moves(begin.v, predicted.motion.x) and _moves(predicted.v_mid):
            # What stopped within the last step would have forces at a velocity that it does not have.
            return self._solve(begin, h, inputs, excluded, expected, start)
        return predicted

    def _solve(
        self,
        begin: Evaluation,
        h: float,
        inputs: StepInputs,
        excluded: npt.NDArray[np.intp],
        expected: Array | None,
        start: Array,
    ) -> Prediction:
        """Solve the smooth problem over `h` [s].

        Forces are those at the velocity (nv,) `expected` at the end; None: as the last step has it. Impulses will be
        near `start`, if that is not empty.
        """
        robot, mid, (_, free_rows) = self.robot, self._mid, self._free
        theta = self.integrator.theta
        first = (1.0 - theta) * h
        q_mid, v = integrate(robot, begin.q, first * begin.v), free_flyer.turn_axes(first, begin.v, free_rows)
        if expected is None:
            memory = self._acceleration, self._passes == 1
            expected = free_flyer.expected_velocity(h, theta, begin.M, v, *memory, free_rows)
        v_mid = v + (1.0 - theta) * (expected - v)
        if self._free[0].size:
            q_mid = mid.with_com_at(q_mid, self._free[0], self._coms(begin, h))
        mid.update(q_mid, v_mid, begin.t + 0.5 * h)
        bias = free_flyer.hold_axes(mid.h.copy(), h, theta, mid.M, v, expected, free_rows)
        impulses = np.zeros((6, robot.nv))
        gravity_coriolis, actuators, external, damping, contact, constraint = impulses
        gravity_coriolis -= h * bias
        if robot.springs:
            gravity_coriolis += h * (robot.spring_effort(begin.q) - 0.25 * h * robot.stiffness * v)
        actuators[robot.actuation] = h * inputs.efforts.constant
        external += h * external_effort(inputs.wrenches, mid.placements, mid.joint_axes, robot.support)
        candidates, turning, rows, soft = self._unilateral_rows(begin, v, h, excluded)
        bilateral, b = self._bilateral_rows(begin, v, h)
        system = RobotSystem(mid, bilateral, begin.bound.bilateral.members, self._implicit(h, inputs.efforts))
        momentum = generalized_momentum(mid.M, v, impulses)
        start = start if len(start) == len(rows.offset) else NOTHING_KNOWN  # what takes part depends on h
        method = inputs.near if len(start) else inputs.method
        motion = solve_constrained_dynamics(inputs.solver, system, momentum, b, rows, method, start)
        row_impulses, joint_friction, turned = self._split(motion.impulse, len(turning))
        damping -= h * robot.damping * motion.x
        actuators[robot.actuation] -= h * inputs.efforts.damping * motion.x[robot.actuation]
        if robot.springs:
            gravity_coriolis -= 0.25 * h**2 * robot.stiffness * motion.x
        damping[robot.friction_dofs] += joint_friction
        contact += row_impulses @ rows.J[: len(row_impulses)]
        moments = np.zeros(len(begin.turning))
        if turning.size:
            contact += turned @ rows.J[-len(turned) :]
            moments[turning] = turned
        constraint += motion.lam @ bilateral
        found = motion.contact.status if motion.contact is not None else NO_CONTACT
        deflection = begin.deflection
        if soft is not None:
            row_impulses, found, pads, pad_status = _take_out(soft, len(rows.friction), row_impulses, found)
        impulse, status = np.empty_like(begin.contact.s), np.empty(len(begin.contact.gaps), dtype=np.int64)
        spread(candidates, begin.contact.normals, row_impulses, found, impulse, status)
        if soft is not None:
            contact_set = begin.bound.contacts
            impulse[soft.rows], status[contact_set.soft[soft.members]] = pads, pad_status
            deflection = slide_springs(
                contact_set, soft, pads, pad_status, 0.5 * soft.J @ (v + motion.x), deflection, h
            )
        energy = energy_of(v, motion.x, mid.M, impulses)
        return Prediction(
            h, v, q_mid, v_mid, bias, motion, impulses, impulse, joint_friction, moments, status, energy, deflection
        )

    def _end(self, begin: Evaluation, predicted: Prediction) -> Evaluation:
        """Return the state to which a prediction leads."""
        x, h, mid, (free, rows) = predicted.motion.x, predicted.h, self._mid, self._free
        second = self.integrator.theta * h
        q_plus = integrate(self.robot, predicted.q_mid, second * x)
        if free.size:
            forces = mid.M, predicted.impulses, self.robot.gravity
            flown = free_flyer.end_velocities(h, begin.M, begin.v, *forces, rows, begin.frames, mid.placements[free])
            q_plus = mid.with_com_at(q_plus, free, self._coms(begin, h) + second * flown)
        v_plus = free_flyer.turn_axes(second, x, rows)
        return self.evaluate(begin.bound, begin.t + h, q_plus, v_plus, predicted.deflection)

    def _coms(self, begin: Evaluation, h: float) -> Array:
        """Return (r, 3) where the centres of mass of what free-flyers carry are at the evaluation [m]."""
        first = (1.0 - self.integrator.theta) * h
        return np.asarray(
            free_flyer.middle_coms(first, begin.M, begin.v, begin.frames, self._free[1]), dtype=np.float64
        )

    def _held(
        self,
        begin: Evaluation,
        predicted: Prediction,
        end: Evaluation,
        inputs: StepInputs,
        excluded: npt.NDArray[np.intp],
    ) -> tuple[SubstepResult, npt.NDArray[np.int64]]:
        """Return what was predicted, held at its `end`, and which contacts carry force in it."""
        active, held = active_set(predicted.status, begin.contact.gaps, end.contact.gaps, excluded)
        return self._hold(predicted.part(begin, end), held, inputs), active

    def _finish(
        self,
        begin: Evaluation,
        predicted: Prediction,
        part: SubstepResult,
        active: npt.NDArray[np.int64],
        inputs: StepInputs,
        turned: tuple[Array, Array] | None = None,
    ) -> SubstepResult:
        """Correct the velocity at the end of a `part` that was predicted and held; `turned`: see :meth:`_correct`."""
        if not _moves(begin.v, predicted.v_mid, predicted.motion.x):
            return part
        momentum = self._end_momentum(begin, part, predicted)
        return self._correct(begin, part, momentum, active, inputs, turned)

    def _end_momentum(self, begin: Evaluation, part: SubstepResult, predicted: Prediction) -> Array:
        """Return the generalised momentum (nv,) at the end of a part of a step.

        Inertial forces are those at the velocity found, not at the one extrapolated for the prediction: on a fast robot
        the difference would feed itself.
        """
        mid, (free, rows) = self._mid, self._free
        v = predicted.v + (1.0 - self.integrator.theta) * (predicted.motion.x - predicted.v)
        C, middle = mid.inertia_rate(v), mid.placements[free]
        return free_flyer.end_momentum(
            predicted.h,
            begin.M,
            begin.v,
            mid.M,
            predicted.bias - mid.bias_at(v) + v @ C + C @ v,
            predicted.impulses,
            self.robot.gravity,
            part.end.M,
            rows,
            begin.frames,
            middle,
            part.end.frames,
        )

    def _correct(
        self,
        begin: Evaluation,
        part: SubstepResult,
        momentum: Array,
        active: npt.NDArray[np.intp],
        inputs: StepInputs,
        turned: tuple[Array, Array] | None = None,
    ) -> SubstepResult:
        """Make the momentum at the end of the step what it must be, and the row velocities there obey their laws.

        Friction of what slides on opposes the mean slip, which is of second order where the slip turns. Where slip ends
        within the step, the friction that holds at its end may be along the slip at its beginning: there it is made to
        oppose the mean slip too, so that it never does positive work.

        Args:
            begin: the state at the beginning.
            part: the step as predicted; its configuration stays.
            momentum: (nv,) generalised momentum at the end, with the constraint impulses of the prediction.
            active: contacts that carry force in the prediction.
            inputs: how to solve.
            turned: velocity (nv,) and impulses of the correction, where it is known that friction has to be turned.
        """
        end, contact_set = part.end, part.end.bound.contacts
        rows = contact_set.rows_of(active)
        turning, rolling = contact_set.resistance.of(active)
        J, predicted = (
            end.contact.J[rows],
            np.concatenate([part.impulse[rows], part.joint_friction, part.moments[turning]]),
        )
        contacts = self._with_dry_friction(ContactRows(J, np.zeros(len(J)), *contact_set.laws_of(active)), part.h)
        contacts = contacts.with_rolling(end.turning[turning], np.zeros(len(turning)), rolling)
        opening, members = (begin.contact.gaps, begin.contact.normals, begin.contact.s), len(contact_set.members)
        allow_approach(active, members, *opening, part.h, self.integrator.theta, contacts.offset)
        w = begin.turning @ begin.v
        s = np.concatenate([begin.contact.s[rows], begin.v[self.robot.friction_dofs], w[turning]])
        system = RobotSystem(self._here, end.J_bilateral, end.bound.bilateral.members)
        free = momentum - predicted @ contacts.J - part.lam @ end.J_bilateral
        b = end.J_bilateral @ end.v - end.s_bilateral
        count = len(contacts.friction), len(part.joint_friction)
        predict_midpoint_friction(s, contacts.J @ end.v, count[0], rolling, contacts.offset)
        if turned is None:
            motion = solve_constrained_dynamics(inputs.solver, system, free, b, contacts, inputs.near, predicted)
            x, row_impulses = motion.x, motion.impulse
        else:
            x, row_impulses = turned[0], turned[1][: len(predicted)]
        s_plus = contacts.J @ x
        change = part.h * contacts.J @ self._acceleration
        turns = correct_midpoint_friction(
            s, s_plus, change, *count, rolling, contacts.offset, row_impulses, inputs.method.tolerance
        )
        if turns or turned is not None:
            motion = solve_constrained_dynamics(inputs.solver, system, free, b, contacts, inputs.turned, row_impulses)
        impulse, moments, status = part.impulse.copy(), part.moments.copy(), part.status.copy()
        impulse[rows], joint_friction, moments[turning] = self._split(motion.impulse, len(turning))
        if active.size and motion.contact is not None:
            status[active] = motion.contact.status[: len(active)]
        impulses = np.zeros((6, self.robot.nv))
        impulses[0] = momentum - end.M @ end.v
        impulses[3, self.robot.friction_dofs] = joint_friction - part.joint_friction
        impulses[4] = (impulse[rows] - part.impulse[rows]) @ J + (moments - part.moments) @ end.turning
        impulses[5] = (motion.lam - part.lam) @ end.J_bilateral
        corrected = end.with_velocity(motion.x)
        energy = part.energy + energy_of(end.v, motion.x, end.M, impulses)
        held_work = 0.5 * float(motion.lam @ (begin.J_bilateral @ begin.v + end.J_bilateral @ motion.x))
        contact_work = 0.5 * float(impulse @ (begin.contact.s + corrected.contact.s))
        if moments.size:
            contact_work += 0.5 * float(moments @ (w + end.turning @ motion.x))
        attribute_work(energy, contact_work, held_work)
        if joint_friction.size:
            friction_dofs = self.robot.friction_dofs
            attribute_friction_work(
                energy,
                begin.v[friction_dofs],
                end.v[friction_dofs],
                motion.x[friction_dofs],
                part.joint_friction,
                joint_friction,
            )
        return part._replace(
            end=corrected,
            lam=motion.lam,
            impulse=impulse,
            joint_friction=joint_friction,
            moments=moments,
            status=status,
            energy=energy,
            decisive=motion,
        )

    def _hold(self, part: SubstepResult, held: npt.NDArray[np.intp], inputs: StepInputs) -> SubstepResult:
        """Project the configuration onto the bilateral rows and the contacts `held`, which press or have sunk.

        The tangential rows of sticking contacts keep their position meanwhile.
        """
        here = part.end
        if largest_drift(here.phi, here.contact.gaps, held) <= self.stabilization.position_tolerance:
            return part
        rows = held_rows(held, here.contact.normals, part.status)
        end, energy = self.hold_positions(self.stabilization, here, inputs.solver, held, rows)
        return part._replace(end=end, energy=part.energy + energy * PROJECTED)

    def _implicit(self, h: float, efforts: Efforts) -> Array | None:
        """Return (nv,) what forces that depend on the velocity at the end add to the inertia, or None.

        Damping of joints and of their feedback acts at that velocity; springs act at the mean of the positions at both
        ends, which keeps their energy whatever their frequency.
        """
        robot = self.robot
        has_feedback = efforts.damping.any()
        if not (robot.springs or robot.is_damped or has_feedback):
            return None
        added = h * robot.damping + 0.25 * h**2 * robot.stiffness
        if has_feedback:
            added[robot.actuation] += h * efforts.damping
        return added

    # -- constraints

    def _bilateral_rows(self, begin: Evaluation, v: Array, h: float) -> tuple[Array, Array]:
        """Return the rows at the evaluation point, and b such that ``J v' = b`` makes s' vanish at the end.

        With v (nv,) the velocity at the beginning, along the axes at the evaluation point.
        """
        bilateral, mid = begin.bound.bilateral, self._mid
        if not bilateral.dim:
            return begin.J_bilateral, begin.s_bilateral
        J = bilateral.jacobian(mid)
        change = bilateral.velocity(mid, v, begin.t) - begin.s_bilateral
        return J, J @ v - bilateral.velocity(mid, v, begin.t + h) - change

    def _unilateral_rows(
        self, begin: Evaluation, v: Array, h: float, excluded: npt.NDArray[np.intp]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], ContactRows, SoftRows | None]:
        """Return what may carry force within the next `h` [s]; v (nv,): see :meth:`_bilateral_rows`.

        Returns:
            The contacts and limits, the places of the rows in which they resist turning, and the rows of all that
            pushes, at the evaluation point: contacts, soft contacts (also returned by themselves, last), limits, dry
            joint friction, resistance to turning.
        """
        contact_set, contact = begin.bound.contacts, begin.contact
        if not len(contact_set):
            return NO_CONTACT, NO_CONTACT, self._with_dry_friction(ContactRows.none(self.robot.nv), h), None
        middle = contact_set.rows(self._mid, v)
        candidates, _, J, offset = candidate_rows(
            contact.gaps,
            contact.normals,
            contact.s,
            v,
            middle.J,
            excluded,
            h,
            self.integrator.theta,
            ACTIVATION_DISTANCE,
            NO_CONTACT,
        )
        rows = ContactRows(J, offset, *contact_set.laws_of(candidates))
        soft = None
        if contact_set.soft.size:
            soft = soft_rows(contact_set, contact, middle, excluded, begin.deflection, h, self.robot.mass)
            rows = rows.with_contacts(
                soft.J, soft.offset, contact_set.friction[contact_set.soft[soft.members]], soft.compliance
            )
            self._judge(begin, soft, h)
        rows = self._with_dry_friction(rows, h)
        turning, rolling = contact_set.resistance.of(candidates)
        if turning.size:
            J = contact_set.resistance.rows(self._mid, middle.axes)[turning]
            rows = rows.with_rolling(J, J @ v - begin.turning[turning] @ begin.v, rolling)
        return candidates, turning, rows, soft

    def _judge(self, begin: Evaluation, soft: SoftRows, h: float) -> None:
        """Warn, once per contact, where a step is too long for the stiffness or the damping of a soft contact.

        With the impedance ``alpha = h^2 k / 4 + h d`` and the mass m that the contact feels, a step turns an undamped
        vibration by ``2 sqrt(alpha / m)``.
        """
        names = [begin.bound.contacts.members[i].name for i in begin.bound.contacts.soft[soft.members]]
        for row, name in enumerate(names):
            if name not in self._judged:
                self._judged.add(name)
                normal = soft.J[3 * row + 2]
                angle = 2.0 * np.sqrt(normal @ np.linalg.solve(begin.M, normal) / soft.compliance[3 * row + 2])
                if angle > FINE:
                    warnings.warn(CoarseStep(name, h, float(angle)), stacklevel=2)

    def _with_dry_friction(self, rows: ContactRows, h: float) -> ContactRows:
        """Append a row for each joint with dry friction: ``|impulse| <= h tau_f``, and less only at rest."""
        friction_dofs = self.robot.friction_dofs
        if not friction_dofs.size:
            return rows
        most = h * self.robot.coulomb_effort
        return ContactRows(
            np.vstack([rows.J, np.eye(self.robot.nv)[friction_dofs]]),
            np.concatenate([rows.offset, np.zeros(len(most))]),
            rows.friction,
            rows.slip,
            np.concatenate([rows.lower, -most]),
            np.concatenate([rows.upper, most]),
            None if rows.compliance is None else np.concatenate([rows.compliance, np.zeros(len(most))]),
        )

    def _split(self, impulse: Array, turning: int) -> tuple[Array, Array, Array]:
        """Return the impulses of contacts and limits, of dry joint friction, and of `turning` rows."""
        end = len(impulse) - turning
        row_impulses = end - len(self.robot.friction_dofs)
        return impulse[:row_impulses], impulse[row_impulses:end], impulse[end:]


def _moves(*velocities: Array) -> bool:
    """Return whether any of the velocities of a step, those at which forces were evaluated too, is not slow."""
    for v in velocities:
        if exceeds(v, REST_SPEED):
            return True
    return False


def _take_out(
    soft: SoftRows, contacts: int, row_impulses: Array, status: npt.NDArray[np.int64]
) -> tuple[Array, npt.NDArray[np.int64], Array, npt.NDArray[np.int64]]:
    """Separate soft contacts, the last of `contacts`: impulses and status of all others, and theirs."""
    first = contacts - len(soft.members)
    members, rows = np.arange(first, contacts), np.arange(3 * first, 3 * contacts)
    return np.delete(row_impulses, rows), np.delete(status, members), row_impulses[rows], status[members]
