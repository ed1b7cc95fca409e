"""The report of a recording: one file that opens without a network, and what it warns of."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mechanisms import leg_config

from constrained_sim import Posture
from constrained_sim.plots.from_bag import BagMessages
from constrained_sim.plots.from_trajectory import recording_of
from constrained_sim.plots.recording import Table
from constrained_sim.recorded_configuration import INPUT
from constrained_sim.report.chart import chart, rows_of
from constrained_sim.report.document import report, write_report
from constrained_sim.report.summary import warnings

STATUS = {
    **{name: 0 for name in ("late_periods", "commands_dropped", "commands_refused", "records_lost", "early_impacts")},
    **{f"work_{name}": 1.0 for name in ("actuators", "external", "contacts", "damping")},
    **{"state": 0, "message": "", "impact_losses": 0.5, "energy_residual": 1e-12},
}


@pytest.fixture(scope="module")
def landing():
    config = leg_config()
    return config.simulator().run(0.3, Posture(config.robot, config.q, stiffness=60.0, damping=1.5))


def quiet(run):
    """Return what is drawn of `run`, as if no motor had been at its limit."""
    recording = recording_of(run)
    joints = {name: replace(joint, effort=0.0 * joint.effort) for name, joint in recording.joints.items()}
    return replace(recording, joints=joints)


def messages_with(**changes):
    """Return messages whose last status has these values."""
    messages = BagMessages()
    messages._statuses.append((0.0, SimpleNamespace(**STATUS | changes)))
    return messages


def test_report_opens_without_a_network(landing, tmp_path, browser):
    """All that is asked for is the file; the curves are drawn, and nothing goes wrong."""
    pytest.importorskip("plotly")
    pytest.importorskip("rosbags")
    from constrained_sim.trajectory_bag import write_bag

    write_bag(landing, leg_config(), tmp_path / "bag")
    write_report(tmp_path / "bag", tmp_path / "report.html", leg_config())
    context = browser.new_context(offline=True)
    tab, asked, errors = context.new_page(), [], []
    tab.on("request", lambda request: asked.append(request.url))
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto(f"file://{tmp_path}/report.html")
    tab.locator("path.js-line").first.wait_for(state="attached")
    assert asked == [f"file://{tmp_path}/report.html"]
    assert not errors
    assert tab.locator(".scatterlayer path.js-line").count() == 3 + 3 + 3 + 2  # forces and states; two motors
    assert "cannot be replayed" in tab.inner_text("body")
    context.close()


def test_report_tells_parameters_versions_and_replay():
    """As the recording has them."""
    pytest.importorskip("plotly")
    told = {"parameters": {"dt": 0.002, "robot": {"urdf": "<none>"}}, "folder": "/there", "versions": {"pin": "4.1.0"}}
    messages = messages_with(
        solver="direct", contact_method="newton", stepper="time_stepping", integrator="midpoint", dt=0.002,
        clock_mode="lockstep", real_time_factor=1.0,
        dynamics_residual=0.0, constraint_residual=0.0, complementarity_residual=0.0, position_error=0.0,
        velocity_error=0.0, kinetic_energy=0.0, potential_energy=0.0, work_constraints=0.0, projection_energy=0.0,
        integration_energy=0.0,
    )  # fmt: skip
    messages.add("/inputs", INPUT, 0, SimpleNamespace(name="configuration", content=json.dumps(told)))
    messages.add("/inputs", INPUT, 0, SimpleNamespace(name="commands", content="{}"))
    page = report(Path("recordings/a_bag"), messages, leg_config())
    assert "dt: 0.002" in page and "&lt;none&gt;" in page
    assert "<th>pin</th><td>4.1.0</td>" in page
    assert "ros2 run constrained_sim replay a_bag" in page and "1 commands" in page


def test_a_clean_run_has_no_warnings(landing):
    assert warnings(quiet(landing), messages_with()) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"late_periods": 3}, "3 control periods"),
        ({"commands_refused": 1}, "refused"),
        ({"records_lost": 2}, "not recorded"),
        ({"state": 3, "message": "step 7"}, "froze: step 7"),
        ({"energy_residual": 0.1}, "0.1 J unexplained"),
    ],
)
def test_counters_and_states_are_warned_of(landing, changes, said):
    (warning,) = warnings(quiet(landing), messages_with(**changes))
    assert said in warning


def test_efforts_at_their_limits_and_large_residuals_are_warned_of(landing):
    recording = quiet(landing)
    knee = recording.joints["knee"]
    pushed = replace(knee, effort=np.where(recording.joint_times > 0.2, knee.limits.effort[1], 0.0))
    table = Table(np.array([0.0, 0.1]), {"dynamics": np.array([1e-12, 1e-3])})
    bad = replace(recording, joints={**recording.joints, "knee": pushed}, residuals=table)
    residual, effort = warnings(bad, messages_with())
    assert "dynamics: 0.001 at 0.100 s" in residual
    assert "knee: effort at its limit" in effort and "first at 0.201 s" in effort


def test_what_is_too_large_for_short_numbers_is_drawn_without_complaint(landing, recwarn):
    """A run that blew up: its largest values stay what they are."""
    pytest.importorskip("plotly")
    recording = recording_of(landing)
    knee = recording.joints["knee"]
    values = np.where(recording.joint_times > 0.2, 1e200, np.nan)
    blown = replace(recording, joints={**recording.joints, "knee": replace(knee, velocity=values)})
    lines = [trace.y for trace in chart(blown).data if trace.name == "knee"]
    assert max(float(np.nanmax(line)) for line in lines) == 1e200
    assert np.float32 in [line.dtype for line in lines]
    assert not [str(one.message) for one in recwarn.list]


def test_rows_are_there_only_for_what_was_recorded(landing):
    titles = [row.title for row in rows_of(recording_of(landing))]
    assert titles[0] == "normal forces [N]"
    assert "contact forces along the world's axes [N]" not in titles
    bare = [row.title for row in rows_of(recording_of(replace(landing, setup=None)))]
    assert "contact forces along the world's axes [N]" in bare and "normal forces [N]" not in bare
