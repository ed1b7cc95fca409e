"""What varies from run to run, what is measured, and what is refused."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from campaign.studies import FOLDER, LEG, leg_study
from mechanisms import joint, link, urdf

from constrained_sim import Posture, Robot, Simulator, load_config
from constrained_sim.campaign import Study, Uniform, do_run, read_study
from constrained_sim.campaign.distributions import read_distribution
from constrained_sim.campaign.expression import Expression
from constrained_sim.campaign.measures import EffortShare, Fell, FinishedRun, TrackingError
from constrained_sim.campaign.sampling import Draws
from constrained_sim.campaign.table import table_of
from constrained_sim.config import Config
from constrained_sim.exceptions import ConfigError, ConstrainedSimError, InvalidValue, UnknownName
from constrained_sim.parameter_file import load_parameters
from constrained_sim.shipped import shipped_robots

UNIT = {"a": read_distribution("a", {"uniform": [0.0, 1.0]}), "b": read_distribution("b", {"uniform": [0.0, 1.0]})}


@pytest.mark.parametrize("sampling", ["independent", "sobol"])
def test_values_depend_on_seed_and_run_alone(sampling):
    """Neither on the number of runs nor on their order."""
    few, many = Draws(UNIT, sampling, 3, 8), Draws(UNIT, sampling, 3, 1000)
    forth = [few.values(run) for run in range(8)]
    assert [many.values(run) for run in reversed(range(8))] == forth[::-1]
    assert Draws(UNIT, sampling, 4, 8).values(0) != forth[0]
    assert len({values["a"] for values in forth}) == 8


def test_a_variation_that_is_added_leaves_the_others():
    """Where runs are independent."""
    more = {"c": UNIT["a"], **UNIT}
    assert Draws(more, "independent", 0, 1).values(5).items() >= Draws(UNIT, "independent", 0, 1).values(5).items()


@pytest.mark.parametrize("sampling", ["sobol", "latin_hypercube"])
def test_even_samplings_have_one_run_in_each_part_of_every_edge(sampling):
    """Of 64 runs one in each 64th: that makes both what they are."""
    draws = Draws(UNIT, sampling, 1, 64)
    values = [draws.values(run) for run in range(64)]
    for name in UNIT:
        assert sorted(int(64 * value[name]) for value in values) == list(range(64))


def test_grids_go_through_all_combinations():
    """The last one fastest, beside what is random."""
    grids = {
        "x": read_distribution("x", {"grid": [1, 2]}),
        "y": read_distribution("y", {"grid": ["a", "b", "c"]}),
        "z": UNIT["a"],
    }
    draws = Draws(grids, "independent", 0, 6)
    found = [draws.values(run) for run in range(7)]
    assert [(v["x"], v["y"]) for v in found[:6]] == [(x, y) for x in (1, 2) for y in "abc"]
    assert (found[6]["x"], found[6]["y"]) == (1, "a") and found[6]["z"] != found[0]["z"]


def test_distributions_have_their_quantiles():
    """Against closed forms."""
    assert read_distribution("x", {"uniform": [2.0, 4.0]}).quantile(0.25) == 2.5
    delays = read_distribution("x", {"uniform": [0.001, 0.004, 0.001]})
    assert [delays.quantile(share) for share in (0.0, 0.24, 0.26, 0.74, 0.76, 1.0)] == pytest.approx(
        [0.001, 0.001, 0.002, 0.003, 0.004, 0.004], abs=1e-17
    )
    assert read_distribution("x", {"log_uniform": [1e-2, 1e2]}).quantile(0.75) == pytest.approx(10.0, rel=1e-14)
    normal = read_distribution("x", {"normal": [1.0, 2.0]})
    assert normal.quantile(0.5) == 1.0
    assert normal.quantile(0.8413447460685429) == pytest.approx(3.0, rel=1e-14)
    assert np.isfinite([normal.quantile(0.0), normal.quantile(1.0)]).all()
    assert [read_distribution("x", {"choice": [1, 2]}).quantile(share) for share in (0.0, 0.49, 0.5, 1.0)] == [
        1,
        1,
        2,
        2,
    ]


def test_values_arrive_where_they_are_meant_for():
    """In the configuration, also in lists; at the controller, the pushes and the noise."""
    study = leg_study(
        parameters={"contacts.foot.normal": [0.0, 0.0, 1.0]},
        variations={
            "contacts.foot.normal.0": {"choice": [0.25]},
            "robot.payloads.carriage": {"choice": [0.5]},
            "controller.stiffness": {"choice": [33.0]},
            "pushes.shove.force.1": {"choice": [5.0]},
            "noise.effort": {"choice": [0.125]},
        },
    )
    inputs = study.inputs(0)
    assert inputs.configuration["contacts"]["foot"]["normal"] == [0.25, 0.0, 1.0]
    assert inputs.options == {"damping": 1.0, "stiffness": 33.0}
    assert inputs.pushes[0].force == (0.0, 5.0, 0.0)
    assert inputs.noise == {"effort": 0.125}
    robot, before = do_run(study, 0).config.robot, load_config(shipped_robots()["leg"]).robot
    assert robot.mass == pytest.approx(before.mass + 0.5, rel=1e-15)


def test_a_run_equals_the_simulation_that_it_stands_for():
    """Bit by bit: the push comes at its time, the controller has its gains."""
    from campaign.laws import Hold

    from constrained_sim import Wrench

    study = leg_study(variations={"contacts.foot.friction": {"choice": [0.4]}})
    outcome = do_run(study, 0)
    config = outcome.config
    assert config.constraints[0].friction == 0.4
    law, sim = Hold(config, damping=1.0).efforts, config.simulator()
    parts = [sim.run(0.05, law)]
    sim.apply(Wrench("carriage"), 0.02)
    parts.append(sim.run(0.07, law))
    for name in ("t", "q", "v", "tau"):
        expected = np.concatenate([getattr(part, name) for part in parts])
        assert np.array_equal(getattr(outcome.trajectory, name), expected), name
    assert outcome.row.measures["lowest"] == outcome.trajectory.q[:, 0].min()


def test_measures_are_what_they_say():
    """Of the leg that stands: weight, effort limits, work and height by other means."""
    measures = ["required_friction", "effort", "effort_share", "tracking_error", "energy", "drift", "displacement"]
    options = {name: None for name in measures} | {"displacement": {"link": "carriage"}, "fell": {"link": "carriage"}}
    outcome = do_run(leg_study(variations={}, pushes={}, measures=options, passed="", duration=0.4), 0)
    run, found = outcome.trajectory, outcome.row.measures
    forces = run.contact_forces["foot"]
    pressed = forces[:, 2] > 0.0
    assert found["required_friction"] == np.abs(forces[pressed, 0] / forces[pressed, 2]).max()
    assert found["effort"] == np.abs(run.tau).max()
    assert found["effort_share"] == (np.abs(run.tau) / outcome.config.robot.effort_limits).max()
    error = run.q[:, 1:] - outcome.config.q[1:]
    assert found["tracking_error"] == pytest.approx(np.sqrt(np.mean(error**2)), rel=1e-14)
    assert found["energy"] == pytest.approx(np.sum(run.energy["actuators"]), rel=1e-14)
    assert 0.0 <= found["drift"] < 1e-9 and found["displacement"] == 0.0
    assert found["fell"] == bool((run.q[:, 0] < 0.16).any())


def test_measures_and_controllers_may_be_objects_of_python():
    """A function of a Trajectory; a Posture; an object, of which every run has a copy, so that order means nothing."""
    config = load_config(shipped_robots()["leg"])

    class Weakens:
        share = 1.0

        def efforts(self, t, q, v):
            self.share *= 0.99
            return 60.0 * self.share * (config.q[1:] - q[1:])

    varied = {"contacts.foot.friction": Uniform(0.2, 1.0), "initial.positions.hip": Uniform(0.5, 0.7)}
    common = {"variations": varied, "measures": {"last": lambda run: run.tau[-1, 0]}}

    def study(controller):
        return Study(load_parameters(shipped_robots()["leg"]), 0.05, controller, **common)

    for controller in (Posture(config.robot, config.q, 60.0, 1.5), Weakens(), Weakens().efforts):
        here = study(controller)
        forth = [do_run(here, run).row.measures["last"] for run in range(3)]
        assert [do_run(here, run).row.measures["last"] for run in (2, 0, 1)] == [forth[k] for k in (2, 0, 1)]
        assert len(set(forth)) == 3
        read = read_study({"robot": "leg", "duration": 0.05, "controller": controller, **common})
        assert do_run(read, 1).row.measures["last"] == forth[1]
    assert study(Posture(config.robot, config.q, 60.0, 1.5)).fingerprint != study(Weakens()).fingerprint
    assert study(Weakens()).fingerprint == study(Weakens()).fingerprint
    with pytest.raises(InvalidValue, match="a function of a Trajectory"):
        replace(study(None), measures={"last": 3.0})


def test_a_run_that_fails_has_a_trajectory_until_then():
    """Across the parts of a run with pushes, too."""

    def fails(t, q, v):
        if t > 0.0275:
            raise RuntimeError("boom")
        return [0.0, 0.0]

    study = leg_study(controller=fails, variations={}, pushes={"shove": {"link": "carriage", "at": 0.02}})
    outcome = do_run(study, 0)
    assert (outcome.row.status, outcome.row.reason) == ("raised", "RuntimeError: boom")
    np.testing.assert_allclose(outcome.trajectory.t, 1e-3 * np.arange(1, 29), atol=1e-15)
    before = do_run(leg_study(variations={}, pushes={"shove": {"link": "carriage", "at": 0.02}}), 0).trajectory
    assert before.q.shape[1:] == outcome.trajectory.q.shape[1:]


def test_a_measure_that_raises_leaves_the_trajectory():
    """The run itself came to its end."""

    def breaks(run):
        raise RuntimeError("boom")

    outcome = do_run(leg_study(variations={}, measures={"broken": breaks}, passed=""), 0)
    assert (outcome.row.status, outcome.row.reason) == ("raised", "RuntimeError: boom")
    assert len(outcome.trajectory.t) == 120


def test_lists_vary_as_a_whole():
    """Slopes, say; the table has them as lists."""
    pytest.importorskip("pyarrow")
    slopes = [[0.0, 0.0, 1.0], [0.25, 0.0, 1.0]]
    study = leg_study(
        variations={"contacts.foot.normal": {"grid": slopes}, "pushes.shove.force": {"choice": [[1, 2, 3]]}}
    )
    assert [study.inputs(run).configuration["contacts"]["foot"]["normal"] for run in (0, 1)] == slopes
    assert study.inputs(0).pushes[0].force == (1.0, 2.0, 3.0)
    outcomes = [do_run(study, run) for run in (0, 1)]
    assert table_of(study, [outcome.row for outcome in outcomes])["contacts.foot.normal"].to_pylist() == slopes
    assert outcomes[1].config.constraints[0].surface.normal[0] == pytest.approx(0.25 / np.hypot(0.25, 1.0), rel=1e-15)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"varations": {}}, "varations"),
        ({"variations": {"x": {"uniform": [1.0]}}}, "two numbers"),
        ({"variations": {"x": {"uniform": [1.0, 0.0]}}}, "upper bound"),
        ({"variations": {"x": {"uniform": [0.0, 1.0, 0.3]}}}, "whole part"),
        ({"variations": {"x": {"normal": [0.0, 1.0, 0.3]}}}, "two numbers"),
        ({"variations": {"x": {"gauss": [0.0, 1.0]}}}, "log_uniform"),
        ({"variations": {"contacts.foot.friction.2": {"choice": [1.0]}}}, "has no place there"),
        ({"variations": {"pushes.nudge.at": {"choice": [1.0]}}}, "shove"),
        ({"variations": {"pushes.shove.strength": {"choice": [1.0]}}}, "force"),
        ({"variations": {"noise.colour": {"choice": [1.0]}}}, "velocity"),
        ({"measures": {"stumbled": None}}, "fell"),
        ({"variations": {"x": {"choice": [[1.0], 2.0]}}}, "all lists of numbers"),
        ({"measures": {"fell": {"beneath": 0.1}}}, "below"),
        ({"passed": "not stumbled"}, "stumbled"),
        ({"passed": "__import__('os')"}, "abs"),
        ({"passed": "fell.real"}, "allowed: measures"),
        ({"sampling": "hammersley"}, "sobol"),
        ({"keep": "some"}, "worst"),
        ({"runs": 0}, "runs of a study"),
        ({"robot": "no such"}, "no such"),
        ({"robot": "legg"}, r"'legg' \(leg\?\) is no parameter file, .*: cassie, four_bar, leg, quadruped"),
        ({"pushes": {"shove": {"link": "carriage", "at": 0.12}}}, "at of push 'shove': got 0.12, .* 0.12 s"),
        ({"variations": {"noise.effort": {"uniform": [1.0, 0.0]}}}, r"study.variations.noise.effort: upper bound"),
        ({"variations": {"noise.effort": {"choice": [1.0, "a"]}}}, r"study.variations.noise.effort: values of choice"),
        ({"pushes": {"shove": {"force": [1.0, 0.0, 0.0]}}}, "link"),
    ],
)
def test_what_a_study_cannot_be_is_refused_by_name(change, named):
    """With what is allowed."""
    with pytest.raises(ConstrainedSimError, match=named):
        read_study({**LEG, **change}, FOLDER)


@pytest.mark.parametrize("key", ["contacts.foot.fiction", "solvr"])
def test_a_key_that_no_simulation_has_is_refused(key, tmp_path):
    """Before the study begins: each of its runs would fail. A run by itself has it as its reason."""
    study = leg_study(variations={key: {"choice": [1.0]}})
    row = do_run(study, 0).row
    assert row.status == "raised" and key.split(".")[-1] in row.reason and row.traceback
    with pytest.raises(ConfigError, match=key.split(".")[-1]):
        study.run(directory=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_push_that_varies_beyond_the_end_is_told_in_its_run():
    """Others are done."""
    pushes = {"shove": {"link": "carriage", "force": [0.0, 0.0, 1.0]}}
    study = leg_study(pushes=pushes, variations={"pushes.shove.at": {"grid": [0.1, 0.12]}}, runs=2)
    rows = [do_run(study, run).row for run in range(2)]
    assert [row.status for row in rows] == ["done", "raised"]
    assert "at of a push: got 0.12, allowed: an instant before the end" in rows[1].reason


def test_a_push_on_no_link_is_refused(tmp_path):
    """As the keys of the configuration are."""
    for wrong in ({"link": "torsoo"}, {"link": "carriage", "axes": "torsoo"}):
        with pytest.raises(UnknownName, match="torsoo"):
            leg_study(pushes={"shove": {"force": [1.0, 0.0, 0.0], **wrong}}).run(directory=tmp_path / "results")
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(("controller", "named"), [("hopp", "hopp"), ("nowhere.py:law", "nowhere")])
def test_a_controller_that_does_not_exist_is_refused(controller, named, tmp_path):
    """Before the study begins."""
    with pytest.raises(ConstrainedSimError, match=named):
        leg_study(controller=controller).run(directory=tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_a_controller_that_exits_is_a_row():
    """With its reason, also where the run is done in this process."""
    row = do_run(leg_study(controller=lambda t, q, v: sys.exit("no gains"), variations={}, pushes={}), 0).row
    assert (row.status, row.reason) == ("raised", "SystemExit: no gains")


def test_a_value_that_no_simulation_takes_is_a_row():
    """The others are done."""
    results = leg_study(
        variations={"contacts.foot.friction": {"grid": [-1.0, 0.5]}}, pushes={}, duration=0.01, runs=2
    ).run()
    assert results.column("status").tolist() == ["raised", "done"]
    assert "friction" in results.column("reason")[0]


def test_expressions():
    """Of what is known; where a measure is missing, nothing passed."""
    passed = Expression("not fell and min(a, 2) < 1 - b", ("fell", "a", "b"))
    assert passed.holds({"fell": False, "a": 0.5, "b": 0.25})
    assert not passed.holds({"fell": True, "a": 0.5, "b": 0.25})
    assert not passed.holds({"fell": None, "a": 0.5, "b": 0.25})
    with pytest.raises(UnknownName):
        Expression("c", ("a",))
    with pytest.raises(ConfigError):
        Expression("a <", ("a",))


def measured(measure, robot, trajectory, q=None):
    """Return a measure of a run that no study made."""
    config = Config(robot, (), robot.neutral() if q is None else q, np.zeros(robot.nv))
    return measure.of(FinishedRun(config, trajectory, 0.0))


def test_continuous_joints_are_compared_the_shorter_way():
    """From just below pi a wheel turns on by 5 mrad: to just above -pi."""
    robot = Robot.from_urdf(urdf('<link name="base"/>', link("wheel", 1.0), joint("w", "continuous", "base", "wheel")))
    q = np.array([np.cos(np.pi - 1e-3), np.sin(np.pi - 1e-3)])
    run = Simulator(robot, q=q, v=[0.05]).run(0.1)
    assert measured(TrackingError(), robot, run, q) == pytest.approx(5e-3 / np.sqrt(3.0), rel=0.02)
    turning = Simulator(robot, v=[4.0]).run(3.0)
    assert measured(TrackingError(lambda t: [4.0 * t]), robot, turning) < 1e-9


@pytest.mark.parametrize(
    ("limits", "effort", "share"), [("-10 1", -5, 0.5), ("-1 10", -1, 1), ("-10 0", -5, 0.5), ("-10 0", 0, 0)]
)
def test_effort_share_is_of_the_limit_on_that_side(limits, effort, share):
    """Actuators may be stronger one way; one that cannot push has no share where it does not."""
    body = '<body><joint name="j" type="slide" axis="1 0 0"/><geom type="sphere" size="0.1" mass="1"/></body>'
    motor = f'<actuator><motor joint="j" ctrlrange="{limits}" ctrllimited="true"/></actuator>'
    robot = Robot.from_mjcf(f'<mujoco><option gravity="0 0 0"/><worldbody>{body}</worldbody>{motor}</mujoco>')
    run = Simulator(robot).run(0.01, lambda t, q, v: [float(effort)])
    assert measured(EffortShare(), robot, run) == share
    assert robot.summary().joints[0].effort == 10.0


def test_what_begins_below_the_ground_has_not_fallen():
    """It falls where it loses half of the height that it had, on either side of zero."""
    robot = Robot.from_urdf(urdf(link("body", 1.0)), floating_base=True, gravity=(0, 0, 0))
    for height, v, fell in ((-0.5, 0.0, False), (-0.5, -1.0, True), (0.5, 0.0, False), (0.5, -1.0, True)):
        q = robot.configuration({}, (0, 0, height, 0, 0, 0, 1))
        run = Simulator(robot, q=q, v=[0, 0, v, 0, 0, 0]).run(0.3)
        assert measured(Fell(), robot, run, q) is fell
