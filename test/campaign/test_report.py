"""The report, and the statistics in it."""

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


@pytest.mark.xdist_group("campaign")
def test_a_report_names_what_matters_and_what_to_replay(tmp_path):
    """With a grid, texts among the values, and runs that came to no end."""
    for library in ("psutil", "pyarrow", "matplotlib"):
        pytest.importorskip(library)
    from constrained_sim.campaign.report import influences

    study = leg_study(
        controller="laws.py:Misbehaves",
        variations={
            "controller.trouble": {"choice": ["fails", "none"]},
            "initial.positions.slider": {"uniform": [0.32, 0.34]},
        },
        runs=20,
        passed="not fell",
    )
    results = study.run(directory=tmp_path)
    page = tmp_path / "report.html"
    results.report(page)
    text = page.read_text()
    assert next(iter(influences(results))) == "controller.trouble"
    assert f"{results.passed} of 20 runs passed" in text and "the knee is on fire" in text
    interval = results.interval()
    assert interval.lower < results.share_passed < interval.upper
    assert f"{interval.lower:.4g} to {interval.upper:.4g}" in text
    assert all(f"campaign replay STUDY {run} --view" in text for run in results.worst(10))
    assert text.count("data:image/png") == 2
