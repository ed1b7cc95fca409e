"""Every tolerance and budget of the contact methods, with its unit and the reason for its value.

The machine code of kernels, see :mod:`constrained_sim.compilation.kernel`, contains these values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class ContactOptions(NamedTuple):
    """What the methods aim at, when they give up, and how they move.

    Errors are entries of the natural map [N s]. The impulse scale is the largest impulse, or what stops a row by
    itself.

    Attributes:
        accuracy: error that methods aim at, relative to the impulse scale: some hundred times the rounding of a number.
        sufficient: relative error above which the next compiled method is tried: what rounding leaves where rows nearly
            depend on each other.
        acceptable: relative error up to which a problem is solved, and no slow method is tried.
        slack: how many times its error a solution, and what follows from it, may miss the laws by.
        tolerable: relative error with which a simulation goes on, with a warning.
        max_amplification: ratio of impulses, to those that stop the rows one by one, up to which errors are judged
            relative to them. Where there is no solution impulses grow without bound, and errors relative to them fall.
        strong_friction: coefficient of contacts that stick whatever the force where this allows no motion: steeper than
            any contact is, and far from where squares of it hide a number of order 1.
        newton_budget: steps of Newton's method: it takes a few, or goes to and fro.
        interior_point_budget: steps of the interior-point method, which takes about twenty.
        gauss_seidel_budget: iterations, in all rounds.
        admm_budget: iterations.
        pivoting_budget: pyramids.
        start_iterations: Gauss-Seidel iterations before Newton's method; they take less time than two of its steps, and
            save it more than half of them.
        first_round: Gauss-Seidel iterations before Newton's method is tried from where they have led, so many that
            this takes less time than they do.
        newton_steps: steps of Newton's method from where another method has led.
        line_search: lengths of a step, each half the last, that are tried.
        decrease: part of its length by which a step has to lessen the error: far less than the whole that a step of
            Newton's would, so that long ones are taken.
        least_shift: added to the diagonal of a Newton step, whose rows are without dimension, as rounding would be.
        large_shift: the same where the step of the least does not lead nearer: where forces are indeterminate, that
            may lead far aside.
        memory: errors that a Newton step is compared with, and steps that have to halve the error; more let it wander.
        settling: Newton steps on one active set; they converge quadratically, or not at all.
        active_sets: active sets that are looked at; each step changes one contact.
        inside: part of the way to the boundary of the cones that a step of the interior-point method goes.
        short_step: part of a step below which the derivative of the slip counts `caution` times as much from then on:
            its direction is open where a contact comes to rest. It counts twice as much again after each other step.
        caution: how many times as much the derivative of the slip counts after a short step.
        centring: exponent of the part of a step that was not possible, which is what the next point keeps of mu;
            Mehrotra's is 3, for linear programs: less keeps points farther inside the cones.
        stalled: part of a step from which on no further one leads nearer.
        least_stiffness: of a row without bounds, in units of the problem, while the interior-point matrix is factored;
            a second pass takes it back.
        spread: first distance of directions beside the force that a pyramid was found with [rad]; 15 degrees, as the
            first directions are 90 degrees apart.
        refinement: how many times closer the directions are in the next pyramid.
        pivot: smallest pivot of a scaled tableau, with entries of order 1, changed some hundred times.
        pivoting_rows: rows of a problem up to which pivoting takes a second at most.
        pivots: pivots for each row: Lemke's method takes about one in practice.
        softest: first compliance, relative to the mean diagonal entry of the Delassus matrix: contacts hardly feel each
            other.
        stiff: compliance from which on the rigid limit is extrapolated, which leaves its square.
        stiffest: last compliance: what it changes is far below what is acceptable.
        stiffer: how many times stiffer the next compliance is; its root where that leads too far.
        compliances: compliances that are tried at most.
        margin: part of friction with which nothing is about to slip.
        norm_damping: of a Newton step towards least norm, per unit of the relative error that is left.
        norm_steps: most of these steps.
        norm_flatness: by how much the slope is to be less at the end of a step.
        norm_accuracy: error of the equation that forces of least norm solve, relative to the largest force: rounding.
        norm_settled: relative error from which on a step has to halve it.
        at_bound: distance from a bound, relative to the largest force, up to which a force is there.
        turns: how often the rays of what slides are turned at most; each turn halves the error, or is the last.
    """

    accuracy: float = 1e-13
    sufficient: float = 1e-11
    acceptable: float = 1e-9
    slack: float = 10.0
    tolerable: float = 1e-5
    max_amplification: float = 1e3
    strong_friction: float = 100.0
    newton_budget: int = 12
    interior_point_budget: int = 50
    gauss_seidel_budget: int = 10000
    admm_budget: int = 2000
    pivoting_budget: int = 24
    start_iterations: int = 20
    first_round: int = 300
    newton_steps: int = 20
    line_search: int = 8
    decrease: float = 0.1
    least_shift: float = 1e-9
    large_shift: float = 1e-4
    memory: int = 3
    settling: int = 8
    active_sets: int = 16
    inside: float = 0.99
    short_step: float = 0.3
    caution: float = 0.1
    centring: float = 1.5
    stalled: float = 1e-6
    least_stiffness: float = 1e-9
    spread: float = np.pi / 12.0
    refinement: float = 3.0
    pivot: float = 1e-11
    pivoting_rows: int = 100
    pivots: int = 50
    softest: float = 0.1
    stiff: float = 1e-6
    stiffest: float = 1e-10
    stiffer: float = 10.0
    compliances: int = 24
    margin: float = 1e-6
    norm_damping: float = 0.1
    norm_steps: int = 60
    norm_flatness: float = 0.03
    norm_accuracy: float = 1e-14
    norm_settled: float = 1e-6
    at_bound: float = 1e-9
    turns: int = 20


OPTIONS = ContactOptions()
