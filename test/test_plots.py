"""Pictures of runs: what is read, what is drawn, and how it is laid out on pages."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from mechanisms import kinetic_energy, leg_config, mechanical_energy, solo12

from constrained_sim import Collisions, Plane, Posture, Robot, Simulator, Trajectory, load_config
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.palette import COLOURS
from constrained_sim.plots import from_bag
from constrained_sim.plots.contact_status import status_of
from constrained_sim.plots.figures import KINDS, make_figures
from constrained_sim.plots.from_trajectory import recording_of
from constrained_sim.plots.joints import limit_text, view
from constrained_sim.plots.limbs import Limbs, common_words
from constrained_sim.plots.page import MOST_ROWS, Panel, split_pages, split_rows
from constrained_sim.plots.recording import ContactSeries
from constrained_sim.plots.style import STATUS_SHADES, Span, line, spans, thinned
from constrained_sim.shipped import shipped_robots

OPEN, STICKING, SLIDING = ContactStatus


@pytest.fixture(scope="module")
def landing() -> Trajectory:
    """The leg falls onto its foot and is held there."""
    config = leg_config()
    sim = config.simulator()
    return sim.run(0.4, Posture(config.robot, config.q, stiffness=60.0, damping=1.5))


def test_a_run_tells_forces_limits_and_cone(landing: Trajectory) -> None:
    """What is drawn of the contact is what the run holds; it begins in flight, and the weight is carried at the end."""
    recording = recording_of(landing)
    foot, robot = recording.contacts["foot"], leg_config().robot
    assert np.array_equal(foot.normal, landing.contact_forces["foot"][:, 2])
    assert np.allclose(np.hypot(foot.tangential, foot.normal), np.linalg.norm(foot.force, axis=1), rtol=1e-14)
    assert foot.status[0] == OPEN
    assert set(foot.status) <= {OPEN, STICKING, SLIDING}
    assert np.array_equal(np.isnan(foot.cone_use), foot.normal <= 0.0)
    assert np.nanmax(foot.cone_use) <= 1.0 + 1e-9
    assert recording.joints["knee"].limits.effort == (-robot.effort_limits[1], robot.effort_limits[1])
    assert np.array_equal(recording.joints["knee"].effort, landing.tau[:, 1])
    assert np.all(recording.joints["slider"].effort == 0.0)  # it has no actuator
    assert np.array_equal(recording.impacts.t, [impact.t for impact in landing.impacts])


def test_the_friction_of_a_geom_tells_stick_from_slip() -> None:
    """Where the collisions have no coefficient of their own, that of the description counts; no name is no title."""
    slider = '<joint name="x" type="slide" axis="1 0 0"/><joint name="z" type="slide" axis="0 0 1"/>'
    box = '<geom name="box" type="box" size="0.1 0.1 0.1" mass="1" friction="0.3"/>'
    robot = Robot.from_mjcf(f'<mujoco><worldbody><body name="b">{slider}{box}</body></worldbody></mujoco>')
    sim = Simulator(robot, collisions=Collisions({"floor": Plane()}), q=[0.0, 0.1], v=[0.1, 0.0])
    recording = recording_of(sim.run(0.1))
    corner = recording.contacts["box/floor#0"]
    assert (corner.status[0], corner.status[-1], recording.title) == (SLIDING, STICKING, "robot")


def test_the_energy_audit_adds_up(landing: Trajectory) -> None:
    """Energies are those of q and v; the work of all causes and the error of integration explain how they change."""
    columns, robot, t = recording_of(landing).energy.columns, leg_config().robot, recording_of(landing).energy.t
    for k in (0, -1):
        assert columns["kinetic energy"][k] == pytest.approx(
            kinetic_energy(robot, landing.q[k], landing.v[k]), rel=1e-9
        )
        total = columns["kinetic energy"][k] + columns["potential energy"][k]
        assert total == pytest.approx(mechanical_energy(robot, landing.q[k], landing.v[k]), rel=1e-9)
    assert (t[0], t[-1]) == (landing.t[0], landing.t[-1])
    causes = [values for name, values in columns.items() if not name.endswith("energy")]
    energy = columns["kinetic energy"] + columns["potential energy"]
    assert sum(causes) - sum(causes)[0] == pytest.approx(energy - energy[0], abs=1e-12)
    assert np.abs(columns["integration"]).max() < 1e-3 * np.abs(columns["impacts"]).max()


def test_without_the_robot_there_is_no_energy_of_it(landing: Trajectory) -> None:
    """The work of causes is recorded; what gravity does is not told apart from what inertial forces do."""
    columns = recording_of(replace(landing, setup=None)).energy.columns
    assert set(columns) == {
        "actuators", "external wrenches", "joint damping and friction", "contacts", "constraints", "impacts",
        "removal of drift",
    }  # fmt: skip
    assert columns["actuators"][-1] == pytest.approx(landing.energy["actuators"].sum())


def test_penetration_is_drift(landing: Trajectory) -> None:
    """The foot does not sink: positions are held to rounding, and what is drawn as drift is below it."""
    drift = recording_of(landing).drift
    assert set(drift.columns) == {"foot"}
    assert 0.0 <= drift.columns["foot"].min() and drift.columns["foot"].max() < 1e-6


def test_what_nobody_recorded_is_not_drawn(landing: Trajectory) -> None:
    """Without a setup there are no normals, hence no cones, and joints go by their numbers."""
    bare = recording_of(replace(landing, setup=None), title="a")
    assert not bare.contacts["foot"].has_normal
    assert list(bare.joints) == ["q[0]", "q[1]", "q[2]"]
    kinds = {picture.kind for picture in make_figures(bare)}
    assert kinds == set(KINDS) - {"friction_cones"}


def test_status_follows_from_the_force() -> None:
    """On the cone a contact slides, inside it sticks; without normal force it is open."""
    normal = np.array([0.0, 0.6, 0.8])
    tangent = np.array([1.0, 0.0, 0.0])
    forces = np.array([0.0 * normal, 10.0 * normal, 10.0 * normal + 4.9 * tangent, 10.0 * normal - 5.0 * tangent])
    assert status_of(forces, normal, 0.5).tolist() == [OPEN, STICKING, STICKING, SLIDING]


def test_cone_use_is_one_on_the_cone() -> None:
    """And it is not defined without a normal force, or without friction."""
    force = np.array([[3.0, 4.0, 10.0], [0.0, 0.0, 10.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    contact = ContactSeries(force, force[:, 2], np.array([0.5, 0.5, 0.5, 0.0]), np.zeros(4, int))
    assert np.array_equal(contact.cone_use, [1.0, 0.0, np.nan, np.nan], equal_nan=True)


def test_spans_join_equal_values() -> None:
    """A value holds from the instant before to its own: that is the period which it is the mean of."""
    t = np.array([0.1, 0.2, 0.3, 0.4])
    assert spans(t, np.array([1, 1, 2, 2])) == [Span(0.1, 0.2, 1), Span(0.2, 0.4, 2)]
    assert spans(t[:0], np.zeros(0, int)) == []


def test_thin_lines_keep_their_peaks() -> None:
    """One sample that stands out of 100 000 is still there, and NaN stays a gap."""
    t, y = np.arange(1e5), np.zeros(100_000)
    y[43_210], y[76_543], y[:500] = 5.0, -3.0, np.nan
    times, values = thinned(t, y, 1000)
    assert len(times) <= 1000
    assert np.all(np.diff(times) >= 0.0)
    assert (values.max(initial=0.0, where=np.isfinite(values)), np.nanmin(values)) == (5.0, -3.0)
    assert np.isnan(values[:4]).all()


def luminance(colour: str) -> float:
    """Return the relative luminance of ``#RRGGBB``, after WCAG 2."""
    shares = [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_shades_and_lines_can_be_told_apart_without_colour() -> None:
    """Flight, stick and slip fall in lightness; no two of 28 lines look the same."""
    light = [luminance(STATUS_SHADES[status]) for status in (OPEN, STICKING, SLIDING)]
    assert light[0] > light[1] + 0.05 and light[1] > light[2] + 0.03
    assert len({line(i) for i in range(4 * len(COLOURS))}) == 4 * len(COLOURS)


def panels(*groups: tuple[str, int]) -> list[Panel]:
    """Return panels of groups with so many each."""
    return [Panel(f"{name}{i}", name, lambda axes: None) for name, count in groups for i in range(count)]


@pytest.mark.parametrize(
    "groups", [(("a", 3), ("b", 3), ("c", 3), ("d", 3)), (("a", 11), ("b", 11)), (("", 1), ("b", 30))]
)
def test_pages_hold_all_panels_in_order(groups: tuple[tuple[str, int], ...]) -> None:
    """None is lost, no page is overfull, and a group that a page holds is not divided."""
    given = panels(*groups)
    pages = split_pages(split_rows(given, 1))
    assert list(chain.from_iterable(chain.from_iterable(pages))) == given
    assert max(map(len, pages)) <= MOST_ROWS
    for name, count in groups:
        holding = [page for page in pages if any(row[0].group == name for row in page)]
        assert len(holding) == 1 or count > MOST_ROWS


def test_limbs_of_a_quadruped_and_a_biped() -> None:
    """Four legs; of Cassie two, its rods and springs among them."""
    quadruped = Limbs(solo12())
    joints = [name for name, joint in solo12().joint_models.items() if joint.nv == 1]
    assert {quadruped.of_joint(name) for name in joints} == {"FL", "FR", "HL", "HR"}
    assert all(quadruped.of_joint(name) == name[:2] for name in joints)
    assert quadruped.of_link("HL_FOOT") == "HL"
    assert quadruped.of_link("nothing") == ""
    cassie = load_config(shipped_robots()["cassie"]).robot
    limbs = Limbs(cassie)
    names = [name for name, joint in cassie.joint_models.items() if joint.nv == 1]
    assert all(limbs.of_joint(name) == name.split("-")[0] for name in names)
    assert Limbs(leg_config().robot).of_joint("knee") == ""  # an only one needs no name


def test_common_words_end_where_words_end() -> None:
    """``arm_left`` of arm and gripper, not ``arm_left_1``; ``F`` of FL and FR is no word."""
    assert common_words(["arm_left_1_joint", "arm_left_2_joint", "arm_left_3_joint", "gripper_left"]) == "arm_left"
    assert common_words(["FL_HAA", "FR_HAA"]) == ""


def test_limits_near_the_values_are_seen_and_others_told() -> None:
    """A limit at the values widens the panel; one far away stands in the corner."""
    values = np.array([0.0, 1.0])
    assert view(values, (-10.0, 1.5))[1] > 1.5
    assert view(values, (-10.0, 1.5))[0] > -1.0
    assert limit_text([-2.7, 2.7]) == "limit ±2.7"
    assert limit_text([-10.0, 4.0]) == "limits -10, 4"
    bottom, top = view(np.full(3, 0.8), (-np.inf, np.inf))
    assert bottom < 0.8 < top and top - bottom > 1e-3  # rounding of a joint at rest fills no panel


def test_pictures_become_files(landing: Trajectory, tmp_path: Path) -> None:
    """A page alone has the given name, several carry kind and number, and a PDF holds all."""
    (alone,) = landing.plot(tmp_path / "a.svg", ["contact_forces"])
    assert alone == tmp_path / "a.svg" and "normal" in alone.read_text()
    files = landing.plot(tmp_path / "b.png", ["contact_forces", "friction_cones"])
    assert [file.name for file in files] == ["b_contact_forces.png", "b_friction_cones.png"]
    assert all(file.read_bytes()[:4] == b"\x89PNG" for file in files)
    (document,) = landing.plot(tmp_path / "c.pdf", ["contact_forces", "friction_cones"])
    assert document.read_bytes().count(b"/Type /Page ") == 2


def test_bad_pictures_are_refused(landing: Trajectory, tmp_path: Path) -> None:
    """Another suffix, another kind, or nothing to draw."""
    with pytest.raises(InvalidValue, match=r"\.pdf"):
        landing.plot(tmp_path / "a.doc")
    with pytest.raises(UnknownName, match="impacts"):
        landing.plot(tmp_path / "a.png", ["magic"])
    with pytest.raises(InvalidValue, match="friction_cones"):
        replace(landing, setup=None).plot(tmp_path / "a.png", ["friction_cones"])
    assert not list(tmp_path.iterdir())


def test_the_lines_are_the_forces(landing: Trajectory) -> None:
    """What stands in the picture is what the run holds, and the impacts are marked at their instants."""
    (picture,) = make_figures(recording_of(landing), ["contact_forces"])
    normal, tangential, marks = picture.figure.axes[0].get_lines()
    force = landing.contact_forces["foot"]
    assert np.array_equal(normal.get_ydata(), force[:, 2])
    assert np.allclose(tangential.get_ydata(), np.hypot(force[:, 0], force[:, 1]), atol=1e-9)
    assert list(marks.get_xdata()) == [impact.t for impact in landing.impacts]


def test_states_without_efforts_are_states():
    """What a message leaves out is unknown; readings of encoders and commands are no states."""
    messages = from_bag.BagMessages()
    header = SimpleNamespace(stamp=SimpleNamespace(sec=1, nanosec=0))
    state = SimpleNamespace(header=header, name=["hip"], position=[0.5], velocity=[], effort=[])
    messages.add("/joint_states", from_bag.STATES, 0, state)
    assert messages._states["hip"] == [pytest.approx((1.0, 0.5, np.nan, np.nan), nan_ok=True)]
    wanted = [
        topic
        for topic in ("/joint_states", "/joint_commands", "/enc/joint_state")
        if from_bag._is_wanted(SimpleNamespace(topic=topic, msgtype=from_bag.STATES))
    ]
    assert wanted == ["/joint_states"]
