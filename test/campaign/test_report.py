"""The report, and the statistics in it."""

import html
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from campaign.studies import leg_study
from scipy.stats import spearmanr

from constrained_sim.campaign.statistics import partial_rank_correlations


def test_partial_rank_correlations():
    """Of two columns by the closed form; of a confounded column nothing is left."""
    random = np.random.default_rng(0)
    x, y, noise = random.standard_normal((3, 500))
    measure = np.exp(x) + 0.5 * noise
    first, second = partial_rank_correlations(np.column_stack([x, y]), measure)
    xy, xm, ym = (spearmanr(a, b).statistic for a, b in ((x, y), (x, measure), (y, measure)))
    expected = (xm - xy * ym) / np.sqrt((1 - xy**2) * (1 - ym**2))
    assert first.value == pytest.approx(expected, abs=1e-12)
    assert first.p < 1e-100 and second.p > 0.01
    shadow = x + 0.3 * y
    by_itself = partial_rank_correlations(shadow[:, None], measure)[0].value
    beside = partial_rank_correlations(np.column_stack([x, shadow]), measure)[1].value
    assert by_itself > 0.8 and abs(beside) < 0.1
    constant, _ = partial_rank_correlations(np.column_stack([np.ones(500), x]), measure)
    assert constant == (0.0, 1.0)


def test_what_fails_both_ways_is_found():
    """Failing grows with the distance from the middle: its value says nothing, its distance much; noise neither."""
    pytest.importorskip("matplotlib")
    from constrained_sim.campaign.report import influences

    random = np.random.default_rng(1)
    half = random.normal(size=400)
    columns = {"push": np.concatenate([half, -half]), "noise": random.normal(size=800)}
    columns["passed"] = np.abs(columns["push"]) < 1.0
    results = SimpleNamespace(study=SimpleNamespace(variations=["noise", "push"]), column=columns.__getitem__)
    found = influences(results)
    assert list(found) == ["push", "noise"]
    assert abs(found["push"].growth.value) < 0.1 and found["push"].departure.value > 0.7
    assert found["noise"].strength < 0.1


def test_one_of_two_values_that_fails_is_found():
    """However often each is: their distance from the median says what the value says, and does not hide it."""
    pytest.importorskip("matplotlib")
    from constrained_sim.campaign.report import influences

    random = np.random.default_rng(2)
    kind = np.where(random.random(60) < 0.25, "new", "old").astype(object)
    columns = {"kind": kind, "noise": random.normal(size=60), "passed": kind == "old"}
    results = SimpleNamespace(study=SimpleNamespace(variations=["noise", "kind"]), column=columns.__getitem__)
    found = influences(results)
    assert list(found) == ["kind", "noise"]
    assert found["kind"].growth.value < -0.99 and found["kind"].growth.p < 1e-6


@pytest.mark.xdist_group("campaign")
def test_a_report_names_what_matters_and_what_to_replay(tmp_path):
    """With texts and lists among the values, and runs that came to no end."""
    for library in ("psutil", "pyarrow", "matplotlib"):
        pytest.importorskip(library)
    from constrained_sim.campaign.report import influences

    study = leg_study(
        controller="laws.py:Misbehaves",
        variations={
            "controller.trouble": {"choice": ["fails", "none"]},
            "contacts.foot.normal": {"choice": [[0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]},
        },
        runs=20,
        passed="not fell",
    )
    file = tmp_path / "leg of mine.yaml"
    results = replace(study, file=file).run(directory=tmp_path / "results")
    page = tmp_path / "report.html"
    results.report(page)
    text = page.read_text()
    assert next(iter(influences(results))) == "controller.trouble"
    assert f"{results.passed} of 20 runs passed" in text and "the knee is on fire" in text
    interval = results.interval()
    assert interval.lower < results.share_passed < interval.upper
    assert f"{interval.lower:.4g} to {interval.upper:.4g}" in text
    for run in results.worst(10):
        assert f"href='#again-{run}'" in text and f"id=again-{run}>" in text
        assert html.escape(f"campaign replay '{file}' {run} -n 20 --view") in text
    assert "[0.1, 0, 1]" in text
    assert text.count("data:image/png") == 2


@pytest.mark.parametrize(("trouble", "each"), [("fails", "failed"), ("none", "passed")])
def test_a_report_of_one_outcome_compares_nothing(tmp_path, trouble, each):
    """Neither correlations nor pictures of nothing."""
    for library in ("psutil", "pyarrow", "matplotlib"):
        pytest.importorskip(library)
    varied = {"contacts.foot.friction": {"uniform": [0.5, 1.0]}}
    controller = {"use": "laws.py:Misbehaves", "trouble": trouble}
    study = leg_study(controller=controller, variations=varied, pushes={}, runs=3, passed="not fell")
    page = tmp_path / "report.html"
    study.run(directory=tmp_path / "results").report(page)
    text = page.read_text()
    assert f"nothing to compare: all runs {each}" in text
    assert ("No run came to a measure" in text) == (trouble == "fails")
    assert text.count("data:image/png") == (trouble == "none")
