"""Every tolerance and budget of time stepping, with its unit and the reason for its value.

The machine code of kernels, see :mod:`constrained_sim.compilation.kernel`, contains some of these values.
"""

from __future__ import annotations

from typing import NamedTuple

from constrained_sim.contact.contact_set import TOUCHING


class SteppingOptions(NamedTuple):
    """What takes part in a step, where a step is split, and how friction is followed.

    Attributes:
        activation_distance: predicted gap [m, rad] up to which a contact or a limit takes part in the contact problem.
        negligible_speed: largest velocity [rad/s, m/s] whose square, and so all that the second half of a step
            corrects, is below rounding.
        impact_depth: [m, rad] to which a closed contact or limit may come within a step before its approach is an
            impact: its force takes care of it. Less, and the feet of a humanoid that comes to rest rock from corner to
            corner, an impact in each step.
        impact_acceleration: [m/s^2, rad/s^2] that this force may give: in a short step, less than that depth is an
            impact. At 1 ms both say the same.
        passes_after_jump: passes over a step whose predecessor's acceleration is unknown: the first finds it to O(h),
            as exactly as needed.
        resolved_phase: [rad] of a soft contact's vibration within one step that is still resolved.
        projections: tangent steps onto the constraints in one step, at most; each squares the violation that is left.
        clash: part of a drift that is left, to first order, where rows whose position is to stay clash with what is to
            be taken out; without that, rounding.
        lever: most motion [rad, m] per drift [m] that is taken back for the sake of contacts.
        touchdown_gap: [m, rad] to which the instant of a touchdown is found: so small a gap counts as closed.
        touchdown_bend: how many times faster or slower than it has done a gap is expected to close: farther, parabolas
            lead astray.
        touching: contacts that touch at the instants of touchdown that split one step, in sum, before what would touch
            down in its rest does so at once, ahead of its time. So the four corners of a box land one after the other;
            of a robot that lies on many contacts, one touchdown more would cost much and change little.
        trials: lengths of a part of a step that are tried on the way to the instant of a touchdown, or at which slip
            turns back.
        first_trial: the first of these lengths as a part of the time at which slip may turn back, and of a length that
            was too long the next one: from a short one secants lead on at once, from a long one not at all.
        parts: of a step from which on slip may turn back within a part: of many contacts, one by one does.
        shortest_part: share of a step down to which parts are halved where their energy is off: each costs as much as a
            step.
        targets_ahead: steps of a run, at most, for which targets of the user's are evaluated in advance: one after an
            impact, which makes them useless, and twice as many each time after steps that were all done.
        positive_work: [J] of friction in one step that is not rounding.
        followed_slip: [m/s, rad/s] that is followed. Less is the error of contact problems solved to 1e-7 N s.
        remaining_slip: part of it that is left at the end of a step through which it goes on.
        least_share: part of a step that is worth a step of its own, since forces in it are found to three digits where
            contact problems are solved to 1e-7 N s. Slip that turns within it of either end does so there.
        clear: part by which an impulse has to be beyond the limit of friction to tell that it does not hold, and by
            which slip has to end before another to come first: of what ends at once, the first in order does.
        opposite: part of a slip that is left of its sum with the slip a step before, if it is the opposite of that.
    """

    activation_distance: float = 1e-3
    negligible_speed: float = 1e-7
    impact_depth: float = 1e-7
    impact_acceleration: float = 0.1
    passes_after_jump: int = 2
    resolved_phase: float = 0.5
    projections: int = 5
    clash: float = 1e-3
    lever: float = 1e4
    touchdown_gap: float = 0.1 * TOUCHING
    touchdown_bend: float = 2.0
    touching: int = 12
    trials: int = 8
    first_trial: float = 0.1
    parts: int = 8
    shortest_part: float = 1.0 / 16.0
    targets_ahead: int = 128
    positive_work: float = 1e-13
    followed_slip: float = 1e-6
    remaining_slip: float = 0.5
    least_share: float = 1e-4
    clear: float = 1e-6
    opposite: float = 1e-3


STEPPING = SteppingOptions()
