"""The live table: what it tells of the messages that the simulator sends, within 80 columns."""

from pathlib import Path

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, PoseWithCovariance, Quaternion, Vector3, Wrench
from mechanisms import solo12
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import Log
from rich.console import Console
from ros.live import URDF
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

from constrained_sim.descriptions.urdf.writer import urdf_of
from constrained_sim.msg import ConstraintForce, ConstraintForces, ContactForce, ContactForces, Impact, SimulationStatus
from constrained_sim.ros.live_table import BARS, WIDTH, live_line, live_table, sparkline
from constrained_sim.ros.live_values import SAMPLES, LiveValues
from constrained_sim.ros.process import COMPILING

LEG = ["slider", "hip", "knee"]


def header(seconds):
    """Return a header whose stamp is `seconds` after the start, which is stamped 1 s."""
    return Header(stamp=Time(sec=1 + int(seconds), nanosec=round(seconds % 1 * 1e9)))


def status(time=0.0, state=SimulationStatus.RUNNING, **fields):
    """Return a status."""
    return SimulationStatus(header=header(time), time=time, step=round(time / 1e-3), state=state, **fields)


def states(time, names=LEG):
    """Return joint states with the angles 0, 0.1, ..."""
    angles = [0.1 * i for i in range(len(names))]
    return JointState(header=header(time), name=names, position=angles, velocity=[2.0] * len(names), effort=angles)


def contact(name, link, normal, side=0.0, mode=ContactForce.STICKING):
    """Return a contact of level ground."""
    return ContactForce(
        name=name, link=link, status=mode, normal_force=normal, wrench=Wrench(force=Vector3(x=side, z=normal))
    )


def values(*messages):
    """Return what is known after `messages`."""
    known = LiveValues()
    for message in messages:
        known.keep(message)
    return known


def text(known, is_there=True, waited=3.0):
    """Return the table as a terminal of 80 columns has it."""
    console = Console(width=WIDTH, record=True, file=Path("/dev/null").open("w"))
    console.print(live_table(known, is_there, waited))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= WIDTH
    return "\n".join(line.rstrip() for line in lines)


def row(shown, name):
    """Return the value beside `name`."""
    (value,) = (line.removeprefix(name).strip() for line in shown.splitlines() if line.startswith(name))
    return value


def test_phases_of_the_start():
    """Nobody there, loading, compiling, waiting for the first command, running; each names itself."""
    known = values()
    assert row(text(known, is_there=False), "state") == "waiting for a simulator (3 s)"
    assert row(text(known), "state") == "the simulator loads its kernels (3 s)"
    known.keep(Log(name="a.constrained_sim", msg=COMPILING))
    assert COMPILING in " ".join(text(known).split())
    waiting = SimulationStatus.WAITING
    known.keep(status(state=waiting, message="waiting for a command"))
    assert row(text(known), "state") == "waiting for a command"
    known.keep(status(0.1))
    assert row(text(known), "state") == "running"
    known.keep(status(0.2, state=SimulationStatus.FROZEN, message="step 200: not finite"))
    assert row(text(known), "state") == "frozen: step 200: not finite"


def test_time_counts_from_zero():
    """Stamps begin at 1 s, or wherever a reset left them; the table at zero."""
    known = values(status(2.0, real_time_factor=0.5), states(2.25))
    assert row(text(known), "time") == "2.250 s from zero, 0.50 of real time"
    after_reset = SimulationStatus(header=header(3.0), time=0.0)
    assert values(status(2.0), after_reset, states(3.5)).time == pytest.approx(0.5)


def test_energy_and_largest_residual():
    """What there is, what came and went, what is left; the largest residual by its name."""
    known = values(
        status(
            1.0,
            kinetic_energy=1.5,
            potential_energy=2.5,
            work_actuators=3.0,
            impact_losses=0.5,
            energy_residual=2e-15,
            dynamics_residual=1e-15,
            constraint_residual=3e-12,
            position_error=4e-9,
        )
    )
    shown = text(known)
    assert row(shown, "energy") == "kinetic 1.5, potential 2.5 J, balance open by 2.0e-15 J"
    assert row(shown, "since zero") == "actuators +3, impacts -0.5 J"
    assert row(shown, "residual") == "3.0e-12 of constraints, position off by 4.0e-09 m, rad"


def test_impacts_are_counted_over_a_second_and_anew_after_a_reset():
    """Three within the last second, four since the table knows the simulation; none after a reset."""
    struck = [Impact(header=header(time), energy_lost=0.5) for time in (0.5, 1.6, 1.9, 2.0)]
    known = values(status(0.25), *struck, status(2.0), states(2.1))
    assert row(text(known), "impacts") == "3 per second, 4 since 0.250 s took 2 J"
    known.keep(status(0.0))
    assert row(text(known), "impacts") == "0 per second, 0 since zero took 0 J"


def test_a_simulator_that_is_gone_does_not_run():
    """The last values stay, but no pace; a new simulator runs, and is counted from its zero."""
    known = values(status(2.0, real_time_factor=1.0), states(2.25), Impact(header=header(2.1), energy_lost=0.5))
    shown = text(known, is_there=False)
    assert row(shown, "state") == "the simulator is gone; this is the last it told"
    assert row(shown, "time") == "2.250 s from zero"
    assert row(shown, "impacts") == "1 per second, 1 since 2.000 s took 0.5 J"
    assert "state the simulator is gone" in live_line(known, is_there=False, waited=3.0)
    known.keep(status(0.0, state=SimulationStatus.WAITING))
    assert row(text(known), "state") == "waiting for the first command"
    assert row(text(known), "impacts") == "0 per second, 0 since zero took 0 J"


def test_base_of_a_floating_robot():
    """Position, and roll, pitch and yaw in degrees."""
    turned = Quaternion(z=0.5**0.5, w=0.5**0.5)
    pose = PoseWithCovariance(pose=Pose(position=Point(x=1.0, z=0.25), orientation=turned))
    shown = text(values(status(), Odometry(pose=pose)))
    assert row(shown, "base") == "x +1.000 y +0.000 z +0.250 m, roll pitch yaw +0.0 -0.0 +90.0 deg"


def test_main_force_is_that_of_the_contact_that_carries_most():
    """The newest readings of it, at most as many as there are columns; without contacts a constraint's."""
    known = values(status())
    pin = ConstraintForce(name="pin", multipliers=[3.0, 4.0])
    known.keep(ConstraintForces(constraints=[pin]))
    assert row(text(known), "force").endswith("5.0 of 5.0 N, pin")
    for size in range(SAMPLES + 10):
        known.keep(ContactForces(contacts=[contact("heel", "foot", 1.0), contact("toe", "foot", float(size))]))
    name, sizes = known.main_force()
    assert (name, len(sizes), sizes[-1]) == ("toe", SAMPLES, SAMPLES + 9.0)
    assert row(text(known), "force").endswith(f"{SAMPLES + 9.0:.1f} of {SAMPLES + 9.0:.1f} N, toe")


def test_sparkline():
    """Zero is blank, whatever is more is seen, the largest is full; no number is a question mark."""
    assert sparkline([0.0, 1e-6, 0.5, 1.0, float("nan")], 1.0) == " " + BARS[1] + BARS[4] + BARS[8] + "?"
    assert sparkline([0.0, 0.0], 0.0) == "  "


def test_few_joints_and_contacts_have_lines_of_their_own():
    """The leg: three joints and its foot."""
    known = values(String(data=URDF.read_text()), status(), states(0.0))
    known.keep(ContactForces(contacts=[contact("foot", "foot", 30.0, 4.0, ContactForce.SLIDING)]))
    shown = text(known)
    assert shown.startswith("constrained_sim: leg\n")
    assert row(shown, "knee").split() == ["+0.2000", "+2.000", "+0.20"]
    assert [line.split() for line in shown.splitlines() if line.startswith("foot")] == [
        ["foot", "sliding", "30.00", "4.00"]
    ]


def test_many_are_grouped_by_limb():
    """Solo12: a line for each leg, of its joints and of its contacts."""
    robot = solo12()
    names = list(robot.actuated_joints)
    known = values(String(data=urdf_of(robot)), status(), states(0.0, names))
    contacts = [
        contact(f"{leg}_{i}", f"{leg}_FOOT", 5.0, mode=i % 2) for leg in ("FL", "FR", "HL", "HR") for i in (0, 1)
    ]
    known.keep(ContactForces(contacts=contacts))
    shown = text(known)
    assert "FL_KFE" not in shown
    joints, contacts = (line.split() for line in shown.splitlines() if line.startswith("FL"))
    first = names.index("FL_HAA")
    assert joints == ["FL", *(f"{0.1 * (first + i):+.2f}" for i in range(3)), "+2.00", f"{0.1 * (first + 2):+.1f}"]
    assert contacts == ["FL", "1", "of", "2", "10.00", "0.00"]
    assert "FL_KFE" not in live_line(known, True, 0.0)


def test_a_description_that_cannot_be_read_is_told():
    """The joints are listed one by one, and the reason stands among the troubles."""
    shown = text(values(String(data="<robot>"), status(late_periods=2), states(0.0, [f"j{i}" for i in range(12)])))
    assert "j11" in shown
    assert row(shown, "troubles").startswith("2 late periods, joints are not grouped: ")


def test_line_without_a_terminal():
    """All that the table says above its joints, and the positions of a few."""
    line = live_line(values(status(1.0), states(1.0)), True, 0.0)
    assert line.startswith("state running | time 1.000 s from zero")
    assert line.endswith("slider +0.0000 | hip +0.1000 | knee +0.2000")
    assert "\n" not in line
