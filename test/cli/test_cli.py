"""The command constrained_sim: what it writes, its exit codes, and the same numbers as from Python."""

import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import urllib.request
import warnings

import numpy as np
import pytest
from test_objects import DOOR

from constrained_sim import LAWS, SENSORS, SOLVERS, STEPPERS, Trajectory, load_config
from constrained_sim.cli.view import source_of
from constrained_sim.contact_solvers import METHODS
from constrained_sim.controllers import LegController
from constrained_sim.dynamics.dynamics import kinematics_at
from constrained_sim.shipped import shipped_robots
from constrained_sim.solvers.direct import FACTORIZATIONS
from constrained_sim.testing.simulated_robot import read_parameters

ROOM = 1000
"""[bytes] Less than the least file that a command writes beside others."""

COMMANDS = "run", "check", "new", "plot", "layouts", "replay", "recover", "view", "film", "compile", "list", "version"


@pytest.fixture
def program(tmp_path):
    """Return a function that runs the command in an empty folder, in a process of its own, and returns its output."""

    def run(*words, code=0):
        command = [sys.executable, "-P", "-m", "constrained_sim", *map(str, words)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_run_gives_what_python_gives(program, tmp_path):
    """Bit by bit, in the file; the summary has its last row."""
    words = "--controller", "hop", "--duration", 0.6, "--set", "contacts.foot.friction=0.5"
    summary = json.loads(program("run", "leg", *words, "--output", "a.npz", "--json"))
    config = load_config(shipped_robots()["leg"])
    assert config.constraints[0].friction == 0.8
    config = read_parameters(shipped_robots()["leg"], {"contacts.foot.friction": 0.5})
    expected = config.simulator().run(0.6, LegController(config, "hop").efforts, config.node.control_period)
    got = Trajectory.load(tmp_path / "a.npz")
    for name in ("t", "q", "v", "tau"):
        assert np.array_equal(getattr(got, name), getattr(expected, name)), name
    assert np.array_equal(got.contact_forces["foot"], expected.contact_forces["foot"], equal_nan=True)
    assert summary["steps"] == len(expected.t)
    assert summary["q"] == expected.q[-1].tolist()
    assert summary["impacts"] == len(expected.impacts) > 0


def test_what_only_the_node_does_is_told(program):
    """A duration or a recording that is set has no effect here: the options say it."""
    sets = "--set", "duration=0.1", "--set", "record=rec"
    notes = json.loads(program("run", "leg", "--duration", 0.01, *sets, "--json"))["notes"]
    assert any("used by the node only: duration, record;" in note for note in notes)
    assert not any(
        "by the node only: dur" in n for n in json.loads(program("run", "leg", "--duration", 0.01, "--json"))["notes"]
    )


def test_a_bag_holds_the_run(cli, tmp_path):
    """States, forces and impacts with their stamps; and a picture of it can be drawn."""
    from rosbags.highlevel import AnyReader

    said = cli("run", "leg", "--duration", 0.3, "--output", "a.npz", "--bag", "bag", "--plot", "a.png").out
    written = {line.removeprefix("wrote ") for line in said.splitlines() if line.startswith("wrote ")}
    assert written == {"bag", *(path.name for path in tmp_path.glob("a*.*"))}
    run = Trajectory.load(tmp_path / "a.npz")
    with AnyReader([tmp_path / "bag"]) as reader:
        messages = [(c.topic, stamp, reader.deserialize(data, c.msgtype)) for c, stamp, data in reader.messages()]
    states = [(stamp, message) for topic, stamp, message in messages if topic == "/joint_states"]
    assert [stamp for stamp, _ in states] == [1_000_000_000 + round(t * 1e9) for t in run.t]
    assert np.array_equal([message.position for _, message in states], run.q)
    forces = [message.wrench.force for topic, _, message in messages if topic == "/contact_forces/foot"]
    assert np.array_equal([(f.x, f.y, f.z) for f in forces], run.contact_forces["foot"])
    losses = [message.data for topic, _, message in messages if topic == "/impacts/energy_lost"]
    assert losses == [impact.energy_lost for impact in run.impacts]
    impulses = [message.vector for topic, _, message in messages if topic == "/impacts/foot"]
    assert np.array_equal([(i.x, i.y, i.z) for i in impulses], [impact.impulses["foot"] for impact in run.impacts])
    assert (tmp_path / "a_contact_forces.png").read_bytes()[:4] == b"\x89PNG"
    words = "--kind", "contact_forces", "--kind", "contact_forces", "--output", "once.svg", "--json"
    assert json.loads(cli("plot", "a.npz", *words).out)["pictures"] == ["once.svg"]
    for source in ("a.npz", "bag"):
        cli("plot", source, "--kind", "contact_forces", "--output", "again.svg")
        assert b"<svg" in (tmp_path / "again.svg").read_bytes()


def test_a_bag_stands_alone(cli, tmp_path):
    """The viewer and the plots of a bag show what the run itself does, and are told by nobody else what it is of."""
    from constrained_sim.plots.reading import read
    from constrained_sim.viewer.bag_source import BagSource
    from constrained_sim.viewer.trajectory_source import TrajectorySource

    cli("run", "leg", "--controller", "hop", "--duration", 0.5, "--set", "contacts.foot.friction=0.4", "--bag", "bag")
    config = read_parameters(shipped_robots()["leg"], {"contacts.foot.friction": 0.4})
    run = config.simulator().run(0.5, LegController(config, "hop").efforts, config.node.control_period)
    bag, direct = BagSource(tmp_path / "bag"), TrajectorySource(run)
    assert len(bag.times) == len(direct.times)
    for index in range(0, len(bag.times), 50):
        (shown,), (expected,) = bag.frame_at(index).contacts, direct.frame_at(index).contacts
        assert (shown.name, shown.status, shown.friction) == (expected.name, expected.status, 0.4)
        np.testing.assert_allclose(shown.position, expected.position, atol=1e-12)
        np.testing.assert_array_equal(shown.force, expected.force)
    assert [event.text for event in bag.events] == [event.text for event in direct.events] != []
    drawn = read(tmp_path / "bag").contacts["foot"]
    np.testing.assert_array_equal(drawn.normal, run.contact_forces["foot"][:, 2])
    assert set(drawn.friction) == {0.4}


def test_a_controller_is_chosen_by_the_robot_not_by_the_name_of_its_file(cli, tmp_path):
    """A copy of the leg's file may have any name; another robot in a file called leg.yaml is refused."""
    robots = shipped_robots()
    (tmp_path / "mine.yaml").write_bytes(robots["leg"].read_bytes())
    words = "--controller", "hop", "--duration", 0.2, "--json"
    ran = [json.loads(cli("run", robot, *words).out)["q"] for robot in ("leg", "mine.yaml")]
    assert ran[0] == ran[1]
    (tmp_path / "leg.yaml").write_bytes(robots["four_bar"].read_bytes())
    assert "unknown controller of leg 'hop', allowed: turn," in cli("run", "leg.yaml", *words, code=1).err
    (tmp_path / "leg.yaml").write_text("robot: {urdf: door.urdf}")
    (tmp_path / "door.urdf").write_text(DOOR)
    assert "unknown controller of leg 'hop', allowed: none, FILE.py" in cli("run", "leg.yaml", *words, code=1).err


def test_a_picture_of_a_result_says_whose_friction_it_shows(cli, capsys):
    """A result does not hold it; a recording does."""
    cli("run", "leg", "--duration", 0.1, "--set", "contacts.foot.friction=0.4", "--output", "a.npz", "--bag", "bag")
    words = "--kind", "friction_cones", "--output", "a.svg"
    assert "friction of its contacts: that of the parameter file" in cli("plot", "a.npz", "--robot", "leg", *words).err
    assert "friction" not in cli("plot", "bag", *words).err
    assert "allowed: with --robot" in cli("plot", "a.npz", *words, code=1).err
    source_of("a.npz", "leg")
    assert "friction of its contacts: that of the parameter file" in capsys.readouterr().err
    source_of("bag")
    assert "friction" not in capsys.readouterr().err


SCENE = """
/**:
  ros__parameters:
    robot: {urdf: "package://constrained_sim/urdf/leg.urdf"}
    initial: {positions: {slider: 1.0, hip: 0.4, knee: -0.9}, velocities: {"door/hinge": 0.7}}
    contacts: {foot: {link: foot, friction: 0.8}}
    scene: {floor: {kind: plane}}
    objects:
      ball: {shape: sphere, radius: 0.1, mass: 2.0, friction: 0.5, pose: [1.0, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]}
      door: {urdf: "door.urdf", pose: [2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]}
"""


def test_a_bag_tells_of_objects_beside_the_robot(cli, tmp_path):
    """Where they are and how they move, joints too: the viewer shows what it shows of the run itself."""
    from rosbags.highlevel import AnyReader

    from constrained_sim.viewer.bag_source import BagSource
    from constrained_sim.viewer.trajectory_source import TrajectorySource

    (tmp_path / "door.urdf").write_text(DOOR.replace('"frame"', '"world"'))
    (tmp_path / "scene.yaml").write_text(SCENE)
    cli("run", "scene.yaml", "--duration", 0.3, "--bag", "bag")
    run = load_config(tmp_path / "scene.yaml").simulator().run(0.3)
    bag, direct = BagSource(tmp_path / "bag"), TrajectorySource(run)
    for index in range(0, len(run.t), 60):
        for shown, expected in zip(bag.frame_at(index).objects, direct.frame_at(index).objects, strict=True):
            assert shown.name == expected.name
            for link in ("leaf", "knob") if shown.name == "door" else (shown.body.root_link,):
                joint, inside = shown.body.link_placement(link)
                bases = [one.mount * kinematics_at(one.body, one.q).placement(joint) for one in (shown, expected)]
                np.testing.assert_allclose(*((base * inside).homogeneous for base in bases), atol=1e-12)
    with AnyReader([tmp_path / "bag"]) as reader:
        told = [reader.deserialize(data, c.msgtype) for c, _, data in reader.messages() if c.topic == "/object_states"]
    ball, door = told[99].objects
    assert run.t[99] == pytest.approx(0.1)
    assert ball.pose.position.z == pytest.approx(0.2 - 0.5 * 9.81 * 0.1**2, abs=1e-9)
    assert ball.twist.linear.z == pytest.approx(-9.81 * 0.1, abs=1e-9)
    assert door.joint_names == ["hinge", "latch"]
    hinge, latch = (run.setup.robot.joint_models[f"door/{name}"] for name in door.joint_names)
    assert door.position.tolist() == [run.q[99, hinge.idx_q], run.q[99, latch.idx_q]]
    assert door.velocity[0] == run.v[99, hinge.idx_v] != 0.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nobody"], "four_bar"),
        (["run", "leg", "--controller", "fly"], "stand"),
        (["run", "leg", "--controller", "no.py:f"], "no.py"),
        (["run", "leg", "--set", "solver=magic"], "null_space"),
        (["run", "leg", "--output", "missing/a.npz"], "missing"),
        (["view", "nobody"], "four_bar"),
        (["view", "a.npz"], "--robot"),
        (["view", "a.npz", "--controller", "hop"], "--controller"),
    ],
)
def test_bad_input_is_refused(cli, tmp_path, words, said):
    """Code 1, the reason on the last line, after notes on the robot, and nothing is written."""
    *notes, error = cli(*words, code=1).err.splitlines()
    assert all("not used" in note or "compiling kernels" in note for note in notes)
    assert said in error
    assert error.startswith("constrained_sim: ")
    assert not list(tmp_path.iterdir())


def test_a_name_that_is_nearly_right_is_told(cli, tmp_path):
    """Of a shipped robot, or of a parameter file here."""
    assert "'lag' (leg?) is no parameter file" in cli("run", "lag", code=1).err
    (tmp_path / "mine.yaml").write_bytes(shipped_robots()["leg"].read_bytes())
    for text in ("mine", "mine.yml", "mine.urdf"):
        assert f"'{text}' (mine.yaml?) is no parameter file" in cli("run", text, code=1).err
    assert "'' is no parameter file" in cli("run", "", code=1).err


def test_overflow_is_refused_without_warnings_of_numpy(cli):
    """The one line that says what failed is enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        error = cli("run", "leg", "--set", "initial.velocities.hip=1e200", code=1).err
    assert error.splitlines()[-1].startswith("constrained_sim: step 0 (t = 0 s) failed: the equations of motion")


def test_pictures_and_reports_land_beside_a_bag_from_within_it(cli, tmp_path, monkeypatch):
    """Where the bag is the folder of the shell, too."""
    cli("run", "leg", "--duration", 0.05, "--bag", "leg.1")
    cli("plot", "leg.1")
    cli("report", "leg.1")
    drawn = {"leg.1", "leg.1.pdf", "leg.1.html"}
    assert {path.name for path in tmp_path.iterdir()} == drawn
    (tmp_path / "leg.1.pdf").unlink()
    (tmp_path / "leg.1.html").unlink()
    monkeypatch.chdir("leg.1")
    cli("plot", ".")
    cli("report", ".")
    assert {path.name for path in tmp_path.iterdir()} == drawn


@pytest.mark.parametrize("command", ["plot", "report", "film", "view"])
def test_another_robot_is_refused_in_one_line(cli, tmp_path, command):
    """By its size where a result has no names, by its joints where a recording has them."""
    cli("run", "leg", "--duration", 0.05, "--output", "run.npz", "--bag", "bag")
    before = set(tmp_path.iterdir())
    words = ["new.gif"] if command == "film" else []
    for source, allowed in (("run.npz", "one whose configurations have 3 numbers"), ("bag", "hip, knee")):
        if (command, source) != ("report", "run.npz"):
            (error,) = cli(command, source, *words, "--robot", "quadruped", code=1).err.splitlines()
            assert error.startswith("constrained_sim: robot: got Robot('solo'") and allowed in error
            assert source == "bag" or ("of foot" in error and "this one has 19, 18, 12" in error)
    assert set(tmp_path.iterdir()) == before


def test_a_bag_that_was_cut_off_is_refused_with_what_saves_it(cli, tmp_path):
    """Pictures, reports and the viewer name the command; of another folder they do not."""
    cli("run", "leg", "--duration", 0.05, "--bag", "bag")
    (tmp_path / "bag" / "metadata.yaml").unlink()
    (tmp_path / "other").mkdir()
    for command in "plot", "report", "view":
        assert "`constrained_sim recover bag` saves what is whole" in cli(command, "bag", code=1).err
        assert "recover" not in cli(command, "other", code=1).err


@pytest.mark.parametrize("compression", ["none", "lz4", "zstd"])
def test_a_damaged_bag_is_refused_with_what_saves_it(cli, tmp_path, compression):
    """Whatever compresses it: the command is named that keeps the rest."""
    from mcap.reader import make_reader

    cli("run", "leg", "--duration", 0.3, "--bag", "bag")
    (file,) = (tmp_path / "bag").glob("*.mcap")
    _compress(file, compression)
    content = bytearray(file.read_bytes())
    chunk = make_reader(io.BytesIO(content)).get_summary().chunk_indexes[0]
    middle = chunk.chunk_start_offset + chunk.chunk_length // 2
    content[middle - 100 : middle + 100] = bytes(200)
    file.write_bytes(content)
    for words in ["plot", "bag"], ["report", "bag"], ["film", "bag", "a.gif"]:
        (line,) = cli(*words, code=1).err.splitlines()
        assert line.startswith("constrained_sim: cannot read the recording 'bag': ")
        assert "`constrained_sim recover bag` saves what is whole" in line


def _compress(file, compression):
    """Write the MCAP file `file` anew, its chunks compressed."""
    from mcap.reader import make_reader
    from mcap.writer import CompressionType, Writer

    kinds = {"none": CompressionType.NONE, "lz4": CompressionType.LZ4, "zstd": CompressionType.ZSTD}
    source = make_reader(io.BytesIO(file.read_bytes()))
    with file.open("wb") as target:
        writer = Writer(target, compression=kinds[compression], chunk_size=10_000)
        writer.start("ros2")
        channels = {}
        for schema, channel, message in source.iter_messages():
            if channel.id not in channels:
                number = writer.register_schema(schema.name, schema.encoding, schema.data)
                channels[channel.id] = writer.register_channel(channel.topic, "cdr", number, channel.metadata)
            writer.add_message(channels[channel.id], message.log_time, message.data, message.publish_time)
        writer.finish()


@pytest.mark.parametrize("content", [None, b"", bytes(1000)])
def test_recover_is_advised_only_where_it_helps(cli, tmp_path, content):
    """Of a file that is gone, empty or zeros it saves nothing."""
    cli("run", "leg", "--duration", 0.05, "--bag", "bag")
    (file,) = (tmp_path / "bag").glob("*.mcap")
    file.unlink() if content is None else file.write_bytes(content)
    for command in "plot", "report":
        error = cli(command, "bag", code=1).err
        assert "cannot read the recording 'bag'" in error and "constrained_sim recover" not in error


def test_a_bag_is_not_written_over(cli, tmp_path):
    """A directory that is there stays as it is."""
    (tmp_path / "bag").mkdir()
    assert "new directory" in cli("run", "leg", "--bag", "bag", code=1).err
    assert not list((tmp_path / "bag").iterdir())


@pytest.fixture
def full_disk():
    """Return a context in which the disk takes :data:`ROOM` bytes of a file."""

    @contextlib.contextmanager
    def full():
        sizes = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, sizes[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, sizes)

    return full


@pytest.mark.parametrize(
    "words",
    [
        ["run", "leg", "--duration", 0.05, "--output", "new.npz"],
        ["run", "leg", "--duration", 0.05, "--output", "run.npz"],
        ["run", "leg", "--duration", 0.05, "--plot", "run.pdf"],
        ["run", "leg", "--duration", 0.05, "--plot", "new.png"],
        ["run", "leg", "--duration", 0.05, "--bag", "new"],
        ["plot", "bag"],
        ["report", "bag"],
        ["layouts", "leg"],
        ["new", shipped_robots()["leg"].parents[1] / "urdf" / "leg.urdf", "--name", "mine"],
    ],
)
def test_a_full_disk_is_one_line_and_leaves_all_as_it_was(cli, tmp_path, full_disk, words):
    """A file is there whole or not at all; one that is there already stays, and a folder is gone again."""
    cli("run", "leg", "--duration", 0.05, "--output", "run.npz", "--plot", "run.pdf", "--bag", "bag")
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    with full_disk():
        error = cli(*words, code=1).err.splitlines()[-1]
    assert error.startswith("constrained_sim: ") and "cannot write" in error and "File too large" in error
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")} == before


def test_a_function_of_the_user_controls(cli, tmp_path):
    """FILE.py:FUNCTION gets t, q and v."""
    (tmp_path / "law.py").write_text("def push(t, q, v):\n    return [1.0 + t, -2.0 * q[1]]\n")
    cli("run", "leg", "--controller", "law.py:push", "--duration", 0.01, "--output", "a.npz")
    run = Trajectory.load(tmp_path / "a.npz")
    assert run.tau[:, 0] == pytest.approx(1.0 + run.t - 0.001)
    assert run.tau[0, 1] == pytest.approx(-1.2)


def test_a_run_that_fails_keeps_what_was_before(cli, tmp_path):
    """The result and the bag end where the controller raised; what it raised is told."""
    lines = "def fails(t, q, v):", "    if t > 0.0055:", "        raise RuntimeError('boom')", "    return [0.1, 0.2]"
    (tmp_path / "law.py").write_text("\n".join(lines))
    words = "run", "leg", "--controller", "law.py:fails", "--duration", 0.02, "--output", "a.npz", "--bag", "b"
    with pytest.raises(RuntimeError, match="boom"):
        cli(*words)
    run = Trajectory.load(tmp_path / "a.npz")
    np.testing.assert_allclose(run.t, 1e-3 * np.arange(1, 7), atol=1e-15)
    assert (run.tau == [0.1, 0.2]).all()
    assert (tmp_path / "b" / "metadata.yaml").is_file()


def test_a_controller_that_exits_is_told(cli, tmp_path):
    """The run is not taken for one that was done; a file that exits as it is loaded neither."""
    (tmp_path / "law.py").write_text("import sys\ndef gone(t, q, v):\n    sys.exit(0)\n")
    (tmp_path / "script.py").write_text("import sys\nsys.exit(0)\n")
    words = "run", "leg", "--duration", 0.01, "--output", "a.npz", "--controller"
    assert "the controller law.py:gone called sys.exit(0), at t = 0 s" in cli(*words, "law.py:gone", code=1).err
    assert "'script.py' cannot be loaded: SystemExit: 0" in cli(*words, "script.py:f", code=1).err
    assert not (tmp_path / "a.npz").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "leg", "--velocity", 1], "No such"),
        (["list", "planets"], "planets"),
        (["run", "leg", "--set", "dt"], "NAME=VALUE"),
        (["run", "leg", "--set", "dt=1", "--set", "dt=2"], "twice"),
        (["run", "leg", "--set", "dt=["], "--set"),
        (["run", "leg", "--duration", "-1"], "duration"),
        (["run", "leg", "--duration", "inf"], "duration"),
        (["run", "leg", "--output", "a.txt"], ".npz"),
        (["run", "leg", "--plot", "a.doc"], ".png"),
        (["plot", ".", "--output", "a.jpg"], ".svg"),
        (["plot", ".", "--kind", "foo"], "friction_cones"),
        (["report", ".", "--output", "a.pdf"], ".html"),
        (["film", ".", "a.doc"], ".mp4"),
        (["film", ".", "a.doc"], "for OUTPUT"),
        (["film", ".", "a.gif", "--begin", "inf"], "--begin"),
        (["check", "a.urdf", "--dt", 0], "--dt"),
        (["check", "a.urdf", "--dt", "nan"], "more than 0"),
        (["new", "a.urdf", "--dt", -1], "--dt"),
        (["new", "a.urdf", "--name", "my robot"], "my_robot"),
        (["new", "a.urdf", "--friction", -1], "--friction"),
        (["new", "a.urdf", "--friction", "nan"], "--friction"),
        (["new", "a.urdf", "--frequency", 0], "--frequency"),
    ],
)
def test_wrong_use_is_code_2(cli, tmp_path, words, said):
    """As everywhere; the option is named with what it takes, and nothing is written."""
    assert said in cli(*words, code=2).err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example_and_the_exit_codes(cli, command):
    """Of each command."""
    text = cli(command, "--help").out
    assert f"$ constrained_sim {command}" in text
    assert "Exit codes" in text


def test_view_serves_a_page_until_ctrl_c(tmp_path):
    """It says where, and ends without complaint."""
    pytest.importorskip("viser")
    command = [sys.executable, "-P", "-m", "constrained_sim", "view", "leg", "--no-browser"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        said = next(line for line in process.stderr if "http" in line)
        url = re.search(r"http://127\.0\.0\.1:\d+", said).group()
        with urllib.request.urlopen(url, timeout=30.0) as page:
            assert b"<html" in page.read().lower()
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30.0)[1]
        assert "Traceback" not in rest
        assert process.returncode in (0, 130)
    finally:
        process.kill()


def test_ctrl_c_while_python_imports_is_one_line(tmp_path):
    """What is imported first stands for the time that this takes."""
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass\n")
    command = [sys.executable, "-P", "-m", "constrained_sim", "run", "leg"]
    there = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=there, capture_output=True, text=True, timeout=60.0, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "constrained_sim: interrupted\n")


def test_a_run_that_is_interrupted_says_how_far_it_came(tmp_path):
    """And that there is no result."""
    command = [sys.executable, "-P", "-m", "constrained_sim", "run", "leg", "--duration", "1e6", "--output", "run.npz"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        next(line for line in process.stderr if "ros2_control" in line)  # what it says before it begins
        time.sleep(5.0)
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30.0)[1]
    finally:
        process.kill()
    assert process.returncode == 130 and "Traceback" not in rest
    assert float(re.search(r"interrupted at (\S+) s of 1e\+06 s, nothing is written", rest)[1]) > 0.0
    assert not list(tmp_path.iterdir())


def test_lists_are_the_registries(cli):
    """The names are those that parameter files take."""
    registries = {"solvers": SOLVERS, "steppers": STEPPERS, "laws": LAWS, "robots": shipped_robots()}
    registries |= {"sensors": SENSORS, "contact_methods": METHODS, "factorizations": FACTORIZATIONS}
    for kind, registry in registries.items():
        listed = json.loads(cli("list", kind, "--json").out)[kind]
        assert list(listed) == list(registry)
        assert all(entry["about"] for entry in listed.values())


def test_every_error_is_explained_where_its_message_says(cli):
    """By its name; without one all are listed, and what is none is refused."""
    listed = cli("why").out.split()
    assert {"ContactNotSolved", "CoarseStep"} <= set(listed)
    for name in listed:
        said, _, text = cli("why", name).out.partition("\n\n")
        assert said == name and len(text) > 60 and "#" not in text
    assert cli("why", "contactnotsolved").out == cli("why", "ContactNotSolved").out
    assert "allowed: ContactNotSolved" in cli("why", "ContactNotSolve", code=1).err
    refusal = cli("why", "Nonsense", code=1).err
    assert "'Nonsense'" in refusal and refusal.endswith("(constrained_sim why UnknownName)\n")


def test_versions(program):
    """Those of what computes, of this process."""
    versions = json.loads(program("version", "--json"))
    assert program("--version") == f"constrained_sim {versions['constrained_sim']}\n"
    assert versions["numpy"] == np.__version__
    assert versions["python"] == ".".join(map(str, sys.version_info[:3]))
    assert versions["constrained_sim"] == "0.1.0"


def test_completion_is_offered():
    """The shell from which it is called can ask which commands there are."""
    asked = f"{sys.executable} -P -m constrained_sim --show-completion; exit $?"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=False)
    assert (done.returncode, "constrained_sim" in done.stdout) == (0, True), done.stderr
