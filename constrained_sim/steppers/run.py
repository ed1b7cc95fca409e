"""Runs of compiled steps under a compiled feedback, as long as the compiled step can go on."""

from __future__ import annotations

import numpy as np

from constrained_sim.actuators import Efforts
from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.free_flyer import mean_acceleration
from constrained_sim.posture import feedback_efforts
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import will_close
from constrained_sim.steppers.packed_step import state_size, unpack_outputs, unpack_state
from constrained_sim.steppers.soft_rows import is_one_active
from constrained_sim.steppers.state_checks import are_finite
from constrained_sim.steppers.step_model import StepArguments, StepImpulses, StepSettings
from constrained_sim.steppers.substep import DONE, substep


@kernel(nogil=True, stage=True)
def run_steps(model, settings, law, limits, arguments, asked, states, records):
    """Do steps as :func:`~constrained_sim.steppers.substep.substep` does, until one needs another way.

    Other threads of Python go on meanwhile.

    Args:
        model: what is the same in all steps.
        settings: of the first step, see ``substep``.
        law: see :class:`~constrained_sim.posture.JointFeedback`.
        limits: efforts (nu,), smallest and largest [N m, N]; and (soft,) which soft contacts may be active: the run
            ends before others are.
        arguments: see ``substep``, the same in all steps; but its targets are (n, 2, 2, m), one for each step, or n is
            1 and they are those of all; its efforts are held until the law is asked.
        asked: steps from one evaluation of the law to the next, and steps to the first one.
        states: record that begins with the state at the beginning, and changes to that after the last step; another,
            work space; and the acceleration (nv,) of the last step, which changes to that of the last of these.
        records: filled, a row for each step: q (n, nq), v (n, nv), tau (n, nu), impulses of contacts and one-sided rows
            and bilateral rows (n, 3 k + l + m) [N s, N m s], means (n, k, 3, 3) of the contacts' axes, terms of the
            audit (n, 9), and impulses (n, e) of the rows in which contacts resist turning [N m s].

    Returns:
        How many steps were done, and how often rows were held.
    """
    states, records, arguments = borrowed(states), borrowed(records), borrowed(arguments)
    here, there, acceleration = states
    free_rows, soft, sizes = borrowed(model.robot).free_rows, borrowed(model.contacts).soft.contacts, model.sizes
    (least, most, may_act), (every, wait), h, tau = limits, asked, settings.h, arguments.efforts.constant
    efforts, wrenches, targets, excluded, user_forces = arguments
    begin, end = unpack_state(here, sizes), unpack_state(there, sizes)
    outputs = unpack_outputs(there, sizes)
    impulse, lam = outputs.impulse, outputs.lam
    all_q, all_v, all_tau, all_impulses, all_axes, all_energy, all_moments = records
    status = np.zeros(begin.gaps.shape[0], dtype=np.int64)
    found = StepImpulses(impulse, outputs.joint_friction, outputs.moments, lam, status, outputs.energy)
    _, corrects, passes, factorization, tolerance, newton_first, goes_on = settings
    unknown, steps, calls = np.empty(0), 0, 0
    for i in range(all_q.shape[0]):
        begins = is_one_active(soft, may_act, begin.distances, begin.s, h)
        if begins or will_close(model, h, begin, acceleration):
            break
        if i >= wait and (i - wait) % every == 0:
            wanted = feedback_efforts(law, begin.q, begin.v)
            if not are_finite(wanted, begin.v):
                break
            tau = np.maximum(np.minimum(wanted, most), least)
        target = targets[min(i, targets.shape[0] - 1)]
        acting = StepArguments(Efforts(tau, efforts.damping), wrenches, target, excluded, user_forces)
        this = StepSettings(h, corrects, passes, factorization, tolerance, newton_first, goes_on)
        reached, _, held = substep(model, this, begin, acceleration, acting, unknown, found, end)
        calls += held
        if reached != DONE or not are_finite(end.q, end.v):
            break
        acceleration[:] = mean_acceleration(h, begin.v, end.v, free_rows, begin.frames, end.frames)
        all_q[i], all_v[i], all_tau[i] = end.q, end.v, tau
        all_impulses[i, : impulse.shape[0]], all_impulses[i, impulse.shape[0] :] = impulse, lam
        all_axes[i], all_energy[i] = 0.5 * (begin.axes + end.axes), found.energy
        all_moments[i] = found.moments
        begin, end = end, begin
        steps, passes = i + 1, 1
    if steps % 2:
        size = state_size(sizes)
        here[:size] = there[:size]
    return steps, calls
