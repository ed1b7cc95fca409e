"""Many steps at once, compiled: those under a feedback that is compiled too, as long as the compiled step can go on."""

from __future__ import annotations

import numpy as np

from constrained_sim.actuators import Efforts
from constrained_sim.compilation.kernel import kernel
from constrained_sim.dynamics.free_flyer import mean_acceleration
from constrained_sim.posture import feedback_efforts
from constrained_sim.steppers.borrowed import borrowed
from constrained_sim.steppers.contact_selection import closing_contacts
from constrained_sim.steppers.packed_step import state_size, unpack_outputs, unpack_state
from constrained_sim.steppers.rigid import DONE, advance
from constrained_sim.steppers.state_checks import are_finite


@kernel(nogil=True)
def run_steps(  # type: ignore[no-untyped-def]
    model, settings, law, loads, asked, t, here, acceleration, there, records
):
    """Do steps as :func:`~constrained_sim.steppers.rigid.advance` does, until one needs another way.

    Other threads of Python go on meanwhile.

    Args:
        model: what is the same in all steps.
        settings: length h of each step [s]; passes, factorisation, tolerance and steps of Newton's method, see
            ``advance``.
        law: see :class:`~constrained_sim.posture.JointFeedback`.
        loads: efforts (nu,), smallest, largest, and those that are held until the law is asked [N m, N]; and external
            wrenches and targets of the bilateral rows, see ``advance``, the same in all steps.
        asked: how many steps there are from one evaluation of the law to the next, and to the first.
        t: time [s] at the beginning.
        here: record that begins with the state there; changes to that after the last step.
        acceleration: (nv,) of the last step; changes to that of the last of these steps.
        there: another record, work space.
        records: filled, a row for each step: q (n, nq), v (n, nv), tau (n, nu), impulses of contacts and one-sided rows
            and bilateral rows (n, 3 k + l + m) [N s, N m s], means (n, k, 3, 3) of the contacts' axes, and terms of the
            audit (n, 9).

    Returns:
        How many steps were done, the time [s], and how often rows were held.
    """
    h, passes, factorization, tolerance, newton_steps = settings
    here, acceleration, there, records, loads = borrowed((here, acceleration, there, records, loads))
    normals, free_rows, sizes = borrowed(model.contacts).normals, borrowed(model.robot).free_rows, model.sizes
    least, most, tau, wrenches, targets = loads
    every, wait = asked
    begin, end = unpack_state(here, sizes), unpack_state(there, sizes)
    outputs = unpack_outputs(there, sizes)
    impulse, joint_friction, lam, energy = outputs.impulse, outputs.joint_friction, outputs.lam, outputs.energy
    all_q, all_v, all_tau, all_impulses, all_axes, all_energy = records
    closing = np.empty(begin.gaps.shape[0], dtype=np.int64)
    found = impulse, joint_friction, lam, np.zeros_like(closing), energy
    no_damping = np.zeros_like(tau)
    nothing, unknown, steps, calls = np.empty(0, dtype=np.int64), np.empty(0), 0, 0
    for i in range(all_q.shape[0]):
        closes = begin.gaps, normals, begin.s, begin.J, acceleration, h, model.options.impact_speed, closing
        if closing_contacts(*closes):
            break
        if i >= wait and (i - wait) % every == 0:
            wanted = feedback_efforts(law, begin.q, begin.v)
            if not are_finite(wanted, begin.v):
                break
            tau = np.maximum(np.minimum(wanted, most), least)
        settings = h, True, passes, factorization, tolerance, newton_steps
        acting = Efforts(tau, no_damping), wrenches, targets
        reached, _, held = advance(model, settings, begin, acceleration, acting, nothing, unknown, found, end)
        calls += held
        if reached != DONE or not are_finite(end.q, end.v):
            break
        acceleration[:] = mean_acceleration(h, begin.v, end.v, free_rows, begin.frames, end.frames)
        all_q[i], all_v[i], all_tau[i] = end.q, end.v, tau
        all_impulses[i, : impulse.shape[0]], all_impulses[i, impulse.shape[0] :] = impulse, lam
        all_axes[i], all_energy[i] = 0.5 * (begin.axes + end.axes), energy
        begin, end = end, begin
        steps, t, passes = i + 1, t + h, 1
    if steps % 2:
        size = state_size(sizes)
        here[:size] = there[:size]
    return steps, t, calls
