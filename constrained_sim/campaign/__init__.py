"""Studies: one simulation thousands of times, with other values each time, on one machine or a cluster.

In Python::

    from constrained_sim.campaign import load_study

    results = load_study("leg_friction.yaml").run()
    print(results.share_passed, results.interval())

Needs the extra ``campaign``; :mod:`constrained_sim.campaign.study` explains what a study is.
"""

from constrained_sim.campaign.distributions import DISTRIBUTIONS, Choice, Grid, LogUniform, Normal, Uniform
from constrained_sim.campaign.measures import MEASURES
from constrained_sim.campaign.one_run import Outcome, Row, do_run
from constrained_sim.campaign.push import Push
from constrained_sim.campaign.reader import load_study, read_study
from constrained_sim.campaign.results import Results
from constrained_sim.campaign.sampling import SAMPLERS
from constrained_sim.campaign.study import Study

__all__ = [
    "DISTRIBUTIONS",
    "MEASURES",
    "SAMPLERS",
    "Choice",
    "Grid",
    "LogUniform",
    "Normal",
    "Outcome",
    "Push",
    "Results",
    "Row",
    "Study",
    "Uniform",
    "do_run",
    "load_study",
    "read_study",
]
