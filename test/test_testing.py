"""Closed-loop tests of controllers without ROS: what a test sees is what the simulator does."""

import subprocess
import sys
import warnings
from itertools import pairwise

import numpy as np
import pytest
from mechanisms import ROOT

from constrained_sim import Wrench, load_config
from constrained_sim.contact_solvers.status import ContactStatus
from constrained_sim.exceptions import (
    BeyondLimits,
    ConfigError,
    InvalidValue,
    MovedByAssembly,
    SimulationFailed,
    UnknownName,
    ViolatedConstraint,
)
from constrained_sim.ros.world import World
from constrained_sim.step_result import ContactForce
from constrained_sim.testing import DirectRobot, assert_throughout, required_friction

CONFIG = ROOT / "config" / "leg.yaml"
POSTURE = np.array([0.6, -1.2])


def stand(t, q, v):
    """Hold the posture of the leg."""
    return 60.0 * (POSTURE - q[1:]) - 1.5 * v[1:]


def leg(controller=stand, **parameters):
    return DirectRobot(CONFIG, controller, {name.replace("__", "."): value for name, value in parameters.items()})


def same(snapshots, others):
    """Return whether two sequences of snapshots agree in every bit of state and efforts."""
    return all(
        (a.t, a.q.tobytes(), a.v.tobytes(), a.tau.tobytes()) == (b.t, b.q.tobytes(), b.v.tobytes(), b.tau.tobytes())
        for a, b in zip(snapshots, others, strict=True)
    )


def test_robot_is_the_simulator():
    """States, efforts, forces and impacts are those of Simulator.run, bit by bit."""
    trajectory = load_config(CONFIG).simulator().run(0.4, stand)
    with leg() as robot:
        snapshots = robot.run(0.4)
    assert [s.t for s in snapshots] == trajectory.t.tolist()
    assert np.array_equal([s.q for s in snapshots], trajectory.q)
    assert np.array_equal([s.v for s in snapshots], trajectory.v)
    assert np.array_equal([s.tau for s in snapshots], trajectory.tau)
    assert np.array_equal([s.contacts["foot"].force for s in snapshots], trajectory.contact_forces["foot"])
    assert robot.impacts and len(robot.impacts) == len(trajectory.impacts)
    for seen, recorded in zip(robot.impacts, trajectory.impacts, strict=True):
        assert seen.t == pytest.approx(recorded.t, abs=1e-9)
        assert np.array_equal(seen.v_plus, recorded.v_plus)


def test_names_of_joints():
    """Positions, velocities and efforts by name are the entries of q, v and tau."""
    with leg() as robot:
        now = robot.step(150)
    assert list(now.position) == list(now.velocity) == ["slider", "hip", "knee"]
    assert list(now.position.values()) == now.q.tolist()
    assert list(now.velocity.values()) == now.v.tolist()
    assert now.effort == dict(zip(["hip", "knee"], now.tau.tolist(), strict=True))


def test_names_that_are_not_there_are_refused():
    """With those that are; else positions, velocities, efforts and contacts are mappings as others."""
    now = DirectRobot(CONFIG, stand).run(0.01)[-1]
    for values, given, kind, known in (
        (now.position, "joint9", "joint with one degree of freedom", ("slider", "hip", "knee")),
        (now.velocity, "joint9", "joint with one degree of freedom", ("slider", "hip", "knee")),
        (now.effort, "slider", "actuated joint with one degree of freedom", ("hip", "knee")),
        (now.contacts, "feet", "contact", ("foot",)),
    ):
        with pytest.raises(UnknownName, match=f"unknown {kind} '{given}', allowed: {', '.join(known)}"):
            values[given]
        assert given not in values and values.get(given) is None
        assert tuple(values) == known and len(values) == len(known)


def test_controller_is_asked_once_in_each_period():
    """With four steps in a period efforts hold for four steps, and forces are the mean over them."""
    asked = []

    def controller(t, q, v):
        asked.append(t)
        return stand(t, q, v)

    with leg(controller, control_period=0.004) as robot:
        snapshots = robot.run(0.2)
    assert asked == [0.0, *(s.t for s in snapshots[:-1])]
    trajectory = load_config(CONFIG).simulator().run(0.2, stand, sample_period=0.004)
    assert np.array_equal([s.q for s in snapshots], trajectory.q[3::4])
    means = trajectory.contact_forces["foot"].reshape(-1, 4, 3).mean(axis=1)
    assert np.allclose([s.contacts["foot"].force for s in snapshots], means, rtol=1e-14, atol=0.0)


@pytest.mark.parametrize(("duration", "seconds"), [(0.02, 0.02), (0.0, 0.001)])
def test_push_gives_its_momentum(duration, seconds):
    """In flight a force on the carriage gives the impulse F t, whatever the joints do: with weight, (F - m g) t."""
    with leg(None) as robot, leg(None) as free:
        robot.push(Wrench("carriage", force=(0.0, 0.0, 7.0)), duration)
        momenta = [momentum(r.config.robot.model, r.run(0.05)[-1]) for r in (robot, free)]
    assert momenta[1] == pytest.approx(-2.5 * 9.81 * 0.05, rel=1e-9)
    assert momenta[0] - momenta[1] == pytest.approx(7.0 * seconds, rel=1e-9)


def momentum(model, snapshot):
    """Return the vertical momentum [N s]."""
    import pinocchio as pin

    return pin.computeCentroidalMomentum(model, model.createData(), snapshot.q, snapshot.v).linear[2]


def test_reset_is_a_fresh_start():
    """After a reset the same happens again, in every bit; the history begins anew."""
    with leg() as robot:
        robot.push(Wrench("carriage", force=(0.0, 0.0, 5.0)), 0.2)
        robot.run(0.15)
        first = robot.reset()
        assert robot.history == [first] and robot.impacts == ()
        assert first.t == 0.0 and first.q.tolist() == [0.32, 0.6, -1.2] and not first.contacts
        again = robot.run(0.3)
    with leg() as robot:
        assert same(robot.run(0.3), again)


def test_reset_to_a_state():
    """Joints that are named begin as told, the others as configured."""
    with leg() as robot:
        now = robot.reset({"slider": 0.5}, {"knee": -2.0, "slider": 1.0})
        assert now.position == {"slider": 0.5, "hip": 0.6, "knee": -1.2}
        assert now.velocity == {"slider": 1.0, "hip": 0.0, "knee": -2.0}


def test_a_reset_elsewhere_than_asked_is_told():
    """Loops have to be closed; of joints that stay where they are asked to be nobody warns."""
    with DirectRobot(ROOT / "config" / "four_bar.yaml", lambda t, q, v: np.zeros(1)) as robot:
        begin = robot.now.position
        with pytest.warns(MovedByAssembly, match="the simulation begins elsewhere than asked.*crank at ") as caught:
            now = robot.reset({"crank": begin["crank"] + 0.3})
        assert caught[0].message.positions == {"crank": (begin["crank"] + 0.3, now.position["crank"])}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            robot.reset(begin)


def test_a_reset_beyond_limits_is_told():
    """As of an initial state; the robot is there."""
    with leg() as robot, pytest.warns(BeyondLimits, match="hip at 40, limits "):
        assert robot.reset({"hip": 40.0, "slider": 2.0}).position["hip"] == 40.0


def test_refused_reset_changes_nothing():
    """Unknown joints, NaN, and a foot in the ground."""
    with leg() as robot:
        robot.step(3)
        history, now = list(robot.history), robot.now
        with pytest.raises(UnknownName, match=r"'tail'.*slider, hip, knee"):
            robot.reset({"tail": 0.0})
        with pytest.raises(InvalidValue, match="velocities of a reset"):
            robot.reset(velocities={"hip": np.nan})
        with pytest.raises(ViolatedConstraint):
            robot.reset({"slider": 0.1})
        assert robot.history == history and robot.now is now
        following = robot.run(0.01)
    with leg() as robot:
        robot.step(3)
        assert same(robot.run(0.01), following)


def test_impact_at_the_beginning_of_a_period_is_in_it():
    """An impact at a boundary belongs to the period that follows, and its stamp lies in this one."""
    world = World(load_config(CONFIG))
    end = world.sim.step()
    q = end.state.q.copy()
    q[0] -= end.contact_forces["foot"].gap - 1e-12
    world.reset(q, np.array([-1.0, 0.0, 0.0]), keep_time=False, keep_constraints=True)
    begin = world.stamp
    period = world.advance()
    ((stamp, impact),) = period.impacts
    assert impact.t < 1e-11
    assert stamp == begin + 1


def test_run_until():
    """It ends with the first period in which the condition is true."""
    with leg() as robot:
        snapshots = robot.run_until(lambda now: now.contacts["foot"].normal_force > 0.0, within=0.5)
        assert [s.contacts["foot"].normal_force > 0.0 for s in snapshots] == [False] * (len(snapshots) - 1) + [True]
        assert robot.history[1:] == snapshots
        # Free fall of the foot's 5 cm takes sqrt(2 * 0.0559 / 9.81) s.
        assert robot.now.t == pytest.approx(robot.impacts[0].t, abs=2e-3)


def test_run_until_says_what_did_not_happen():
    """The message has the condition, the time and the last state."""
    with (
        leg() as robot,
        pytest.raises(AssertionError, match=r"lift-off .* 0\.05 s .* t = 0\.05 s: slider .* foot open"),
    ):
        robot.run_until(lambda now: now.position["slider"] > 1.0, within=0.05, what="lift-off")


def test_assert_throughout():
    """The first snapshot that breaks the condition is named."""
    with leg() as robot:
        snapshots = robot.run(0.1)
    assert_throughout(snapshots, lambda now: now.position["slider"] > 0.2)
    fall = next(s for s in snapshots if s.velocity["slider"] < -0.5)
    with pytest.raises(AssertionError, match=rf"slowness does not hold at t = {fall.t:.9g} s: slider"):
        assert_throughout(snapshots, lambda now: now.velocity["slider"] >= -0.5, "slowness")


def contact(force, normal=(0.0, 0.0, 1.0)):
    force, normal, zero = np.array(force), np.array(normal), np.zeros(3)
    status = ContactStatus.STICKING
    return ContactForce("foot", "foot", status, zero, normal, force, float(force @ normal), 0.8, 0.0, zero, zero)


def test_required_friction():
    """It is the tangent of the angle between force and normal."""
    assert required_friction(contact([3.0, 0.0, 4.0])) == 0.75
    assert required_friction(contact([0.0, 0.0, 4.0])) == 0.0
    assert required_friction(contact([0.0, 0.0, 0.0])) == 0.0
    assert required_friction(contact([3.0, 0.0, 0.0])) == np.inf
    slope = 0.3
    tilted = contact([0.0, 0.0, 4.0], [np.sin(slope), 0.0, np.cos(slope)])
    assert required_friction(tilted) == pytest.approx(np.tan(slope), rel=1e-14)


def test_required_friction_of_a_sliding_contact():
    """A foot that slides needs what there is; in a step in which slip turns back, and the friction with it, less."""
    with leg(contacts__foot__friction=0.02) as robot:
        feet = [state.contacts["foot"] for state in robot.run(0.3)]
    pairs = [(a, b) for a, b in pairwise(feet) if a.status == b.status == ContactStatus.SLIDING]
    goes_on = [b for a, b in pairs if a.slip @ b.slip > 0.0]
    assert len(goes_on) > 100
    assert [required_friction(c) for c in goes_on] == pytest.approx([0.02] * len(goes_on), rel=1e-9)
    assert max(required_friction(b) for _, b in pairs) < 0.02 * (1.0 + 1e-9)


@pytest.mark.parametrize("periods", [0, -1, 1.5, True])
def test_bad_number_of_periods(periods):
    with leg() as robot, pytest.raises(InvalidValue, match="periods"):
        robot.step(periods)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 0.0015, np.nan])
def test_bad_seconds(seconds):
    with leg() as robot:
        with pytest.raises(InvalidValue, match="seconds"):
            robot.run(seconds)
        assert len(robot.history) == 1


@pytest.mark.parametrize("efforts", [[1.0], [1.0, 2.0, 3.0], [np.nan, 0.0], "none", None])
def test_bad_efforts_are_refused(efforts):
    """The message names the joints; nothing is simulated."""
    with leg(lambda t, q, v: efforts) as robot:
        with pytest.raises(InvalidValue, match=r"efforts of the controller \(hip, knee\)"):
            robot.step()
        assert len(robot.history) == 1


def test_bad_pushes_are_refused():
    with leg() as robot:
        for wrench, duration in ((Wrench("tail"), 0.1), (Wrench("foot", axes="tail"), 0.1), (Wrench("world"), 0.1)):
            with pytest.raises((UnknownName, InvalidValue)):
                robot.push(wrench, duration)
        with pytest.raises(InvalidValue, match="duration"):
            robot.push(Wrench("foot"), -0.1)


def test_error_of_a_controller_is_the_error_of_the_test():
    """It arrives as it was raised; what was simulated before stays."""

    def controller(t, q, v):
        if t > 0.0095:
            raise ZeroDivisionError("gains")
        return stand(t, q, v)

    with leg(controller) as robot:
        with pytest.raises(ZeroDivisionError, match="gains"):
            robot.run(0.1)
        assert robot.now.t == 0.01 and len(robot.history) == 11


def test_motion_that_is_not_finite():
    """The step says at which step and why; the history ends before it."""
    with leg() as robot:
        robot.reset(velocities={"knee": 1e200})
        with np.errstate(all="ignore"), pytest.raises(SimulationFailed, match=r"step 0 .* failed: .* NaN or infinity"):
            robot.step()
        assert len(robot.history) == 1


@pytest.mark.parametrize("controller", [["leg_controller"], "leg_controller", int])
def test_controllers_that_need_ros(controller):
    with pytest.raises(InvalidValue, match="without ROS, a function"):
        DirectRobot(CONFIG, controller)


def test_parameters_replace_those_of_the_file():
    solver = {"solver": "direct", "factorization": "qr"}
    with leg(robot__gravity=[0.0, 0.0, -1.62], dt=0.0005, control_period=0.001, **solver) as robot:
        robot.run(0.05)
        assert robot.config.simulation.factorization == "qr"
        assert robot.now.t == pytest.approx(0.05)
        assert momentum(robot.config.robot.model, robot.now) == pytest.approx(-2.5 * 1.62 * 0.05, rel=1e-9)


def test_bad_parameters():
    with pytest.raises(ConfigError, match="'dt' is a value"):
        leg(dt__x=1.0)
    with pytest.raises(ConfigError, match="nonsense"):
        leg(nonsense=1.0)
    with pytest.raises(ConfigError, match=r"no\.yaml"):
        DirectRobot(ROOT / "no.yaml", stand)


BLOCKED = "import sys\nfor name in ({names}): sys.modules[name] = None\n"
ROS = "'rclpy', 'sensor_msgs', 'geometry_msgs', 'std_msgs', 'rosgraph_msgs', 'builtin_interfaces', 'ament_index_python'"


def test_without_ros_and_pytest(tmp_path):
    """The direct robot runs where neither can be imported."""
    code = BLOCKED.format(names=f"{ROS}, 'pytest', '_pytest'") + (
        "from constrained_sim.testing import DirectRobot\n"
        f"with DirectRobot({str(CONFIG)!r}, lambda t, q, v: [0.0, 0.0]) as robot: print(len(robot.run(0.01)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert (run.returncode, run.stdout.strip()) == (0, "10"), run.stderr


def test_package_imports_neither_ros_nor_pytest():
    code = "import sys, constrained_sim; print({'rclpy', 'pytest', 'constrained_sim.testing'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout.strip() == "set()"


def test_ros_variant_is_skipped_without_ros(tmp_path):
    """A test for both runs with the direct robot and says what the other needs."""
    (tmp_path / "conftest.py").write_text(BLOCKED.format(names=ROS))
    (tmp_path / "test_leg.py").write_text(
        'pytest_plugins = ["constrained_sim.testing.fixtures"]\n'
        "def test_fall(simulate):\n"
        f"    assert simulate({str(CONFIG)!r}).run(0.01)[-1].velocity['slider'] < 0.0\n"
    )
    command = [sys.executable, "-m", "pytest", "-rs", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert "1 passed, 1 skipped" in run.stdout and "needs ROS 2" in run.stdout, run.stdout
