"""Files of recorded runs: only what save wrote is read, and nothing is lost by writing."""

import csv
import os
import pickle
import stat
import zipfile

import numpy as np
import pytest
from mechanisms import leg, leg_config
from test_objects import DOOR

from constrained_sim import JointVelocity, Robot, Simulator, Trajectory
from constrained_sim.exceptions import InvalidValue, UnknownName
from constrained_sim.trajectory import Setup


@pytest.fixture
def run():
    """Return the leg landing."""
    config = leg_config()
    return Simulator(leg(), config.constraints, q=config.q + np.array([0.01, 0, 0])).run(0.06)


def saved(path, **changes):
    """Write an archive like one of ours, with other arrays in places; None: without."""
    n = 2
    arrays = {
        "t": np.arange(float(n)),
        "q": np.zeros((n, 3)),
        "v": np.zeros((n, 3)),
        "tau": np.zeros((n, 2)),
        **{
            f"impacts/{name}": np.zeros((0, 3)[: 1 + (name[0] == "v")])
            for name in ("t", "energy_lost", "v_minus", "v_plus")
        },
        "multipliers/foot": np.zeros((n, 3)),
    }
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


def test_the_archive_that_the_others_vary_is_read(tmp_path):
    """Else the refusals would prove nothing."""
    assert len(Trajectory.load(saved(tmp_path / "run.npz")).t) == 2


STRANGE = {
    "no q": {"q": None},
    "no impacts": {"impacts/t": None},
    "objects": {"t": np.array([object(), 1.0], dtype=object)},
    "text": {"tau": np.array([["a", "b"], ["c", "d"]])},
    "integers": {"t": np.array([0, 1])},
    "a number": {"t": np.float64(0.0)},
    "another length": {"v": np.zeros((3, 3))},
    "another length of a group": {"multipliers/foot": np.zeros((1, 3))},
    "one dimension": {"q": np.zeros(2)},
    "impacts that do not fit": {"impacts/t": np.zeros(2)},
    "impulses that do not fit": {"impulses/foot": np.zeros((4, 3))},
    "impulses of text": {"impulses/foot": np.zeros((0, 3), dtype=str)},
}


@pytest.mark.parametrize("what", STRANGE)
def test_archives_that_are_not_ours_are_refused(what, tmp_path):
    """By one line that names the file or the table, and never tells anyone to load it unsafely."""
    path = saved(tmp_path / "other.npz", **STRANGE[what])
    with pytest.raises(InvalidValue) as refusal:
        Trajectory.load(path)
    refused(refusal, "trajectory")


def refused(refusal, name):
    """Assert that a refusal is clear."""
    message = str(refusal.value)
    assert name in message
    assert "pickle" not in message
    assert "unsafe" not in message
    assert "\n" not in message


def test_other_files_are_refused(tmp_path, run):
    """Nothing there, a folder, text, one array, a picture's beginning, another archive, a pipe."""
    good = tmp_path / "run.npz"
    run.save(good)
    (tmp_path / "text").write_text("t,q,v\n0,0,0\n")
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "half.npz").write_bytes(good.read_bytes()[: len(good.read_bytes()) // 2])
    np.save(tmp_path / "one.npy", np.zeros(3))
    np.save(tmp_path / "objects.npy", np.array([object()]), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("t.npy", "no array")
    os.mkfifo(tmp_path / "pipe")
    names = ("nothing", "text", "empty", "half.npz", "one.npy", "objects.npy", "other.zip", "pipe", "")
    for name in names:
        with pytest.raises(InvalidValue) as refusal:
            Trajectory.load(tmp_path / name)
        refused(refusal, name)


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path, run):
    """A damaged file is refused, or holds what it held: never other numbers."""
    path = tmp_path / "run.npz"
    run.save(path)
    content = path.read_bytes()
    rng = np.random.default_rng(7)
    refusals = 0
    for place in rng.integers(0, len(content), 300):
        flipped = bytearray(content)
        flipped[place] ^= 0x55
        path.write_bytes(bytes(flipped))
        try:
            loaded = Trajectory.load(path)
        except InvalidValue:
            refusals += 1
        else:
            np.testing.assert_array_equal(loaded.q, run.q)
            np.testing.assert_array_equal(loaded.multipliers["foot"], run.multipliers["foot"])
    assert refusals > 100


def test_where_nothing_can_be_written_is_refused_and_loses_nothing(tmp_path, run, monkeypatch):
    """A folder that does not exist, a folder as file; what fails half-way leaves the file that was there."""
    for path in (tmp_path / "no" / "run.npz", tmp_path):
        with pytest.raises(InvalidValue, match="path of a trajectory"):
            run.save(path)
    path = tmp_path / "run.npz"
    run.save(path)
    before = path.read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(InvalidValue, match="No space left"):
        run.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["run.npz"]


@pytest.mark.parametrize("name", ["run", "run.txt", "run.npz.bak", "run.NPZ"])
def test_a_file_of_another_kind_is_refused(tmp_path, run, name):
    """Its name would not tell what it holds; commands take it for something else."""
    with pytest.raises(InvalidValue, match=r"one that ends in \.npz"):
        run.save(tmp_path / name)
    with pytest.raises(InvalidValue, match=r"one that ends in \.csv"):
        run.to_csv(tmp_path / name)
    assert not list(tmp_path.iterdir())


def read_csv(path):
    """Return names and rows of a table of text."""
    with path.open(newline="") as file:
        names, *rows = csv.reader(file)
    return names, np.array(rows, dtype=float)


def test_a_table_of_text_names_every_number(tmp_path, run):
    """With its unit, and all its digits; joints by number where nobody knows the robot."""
    run.to_csv(tmp_path / "run.csv")
    names, rows = read_csv(tmp_path / "run.csv")
    assert names[:7] == ["t [s]", "q slider [m]", "q hip [rad]", "q knee [rad]", "v slider [m/s]", *names[5:7]]
    assert names[7:9] == ["tau hip [N m]", "tau knee [N m]"]
    table = dict(zip(names, rows.T, strict=True))
    np.testing.assert_array_equal(table["t [s]"], run.t)
    np.testing.assert_array_equal(table["v knee [rad/s]"], run.v[:, 2])
    np.testing.assert_array_equal(table["force foot z [N]"], run.contact_forces["foot"][:, 2])
    np.testing.assert_array_equal(table["multiplier foot.2 [N or N m]"], run.multipliers["foot"][:, 2])
    np.testing.assert_array_equal(table["energy kinetic [J]"], run.energy["kinetic"])
    run.save(tmp_path / "run.npz")
    Trajectory.load(tmp_path / "run.npz").to_csv(tmp_path / "other.csv")
    others, same = read_csv(tmp_path / "other.csv")
    assert others[1] == "q.0 [rad or m]" and len(others) == len(names)
    np.testing.assert_array_equal(same, rows)
    with pytest.raises(InvalidValue, match="one whose configurations have 3 numbers"):
        run.to_csv(tmp_path / "wrong.csv", Setup(Robot.from_urdf(DOOR)))


def test_a_table_of_text_knows_all_joints(tmp_path):
    """A free base and a continuous joint have several numbers each."""
    wheel = (
        '<robot name="cart"><link name="base"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<link name="wheel"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="axle" type="continuous"><parent link="base"/><child link="wheel"/></joint></robot>'
    )
    sim = Simulator(Robot.from_urdf(wheel, floating_base=True))
    trajectory = sim.run(0.002)
    trajectory.to_csv(tmp_path / "run.csv")
    names, rows = read_csv(tmp_path / "run.csv")
    base = sim.robot.joint_names[0]
    assert names[1:10] == [
        *(f"q {base} {axis} [m]" for axis in "xyz"),
        *(f"q {base} q{axis} [1]" for axis in "xyzw"),
        *("q axle cos [1]", "q axle sin [1]"),
    ]
    assert names[10:17] == [
        *(f"v {base}.{i} [m/s]" for i in range(3)),
        *(f"v {base}.{i} [rad/s]" for i in range(3, 6)),
        "v axle [rad/s]",
    ]
    assert "tau axle [N m]" in names
    np.testing.assert_array_equal(rows[:, 1:10], trajectory.q)


def test_steps_that_follow_each_other_are_a_trajectory():
    """With the impacts in them: parts make up the whole again."""
    config = leg_config()
    run = Simulator(leg(), config.constraints, q=config.q + np.array([0.01, 0, 0])).run(0.2)
    assert run.impacts
    at = int(np.searchsorted(run.t, run.impacts[0].t))
    for middle in (0, 1, at, at + 1, len(run.t)):
        parts = run[:middle], run[middle:]
        assert [len(part.t) for part in parts] == [middle, len(run.t) - middle]
        whole = Trajectory.joined(parts)
        for name in ("t", "q", "v", "tau"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(run, name))
        np.testing.assert_array_equal(whole.multipliers["foot"], run.multipliers["foot"])
        assert whole.impacts == run.impacts
    part = run[-3:]
    assert part.setup is run.setup and part.energy["kinetic"].shape == (3,)
    assert len(run[at : at + 1].impacts) >= 1
    assert not run[:at].impacts
    for wrong in (3, slice(None, None, 2), "q", slice("a", None), (1, 2)):
        with pytest.raises(InvalidValue, match="steps of a trajectory"):
            run[wrong]


def test_a_saved_file_is_readable_as_any_other(tmp_path, run):
    """Its permissions are those of files that the user makes."""
    run.save(tmp_path / "run.npz")
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_a_name_that_is_not_there_is_refused_with_those_that_are(run):
    """Of forces and multipliers by name, of a run, of its copy by a pickle, and of a step; as a KeyError too."""
    step = Simulator(leg(), leg_config().constraints, q=leg_config().q).step()
    for tables in (
        run.contact_forces,
        run.multipliers,
        pickle.loads(pickle.dumps(run)).multipliers,
        step.contact_forces,
    ):
        with pytest.raises(KeyError, match=r"'fot'.*foot") as refusal:
            tables["fot"]
        assert isinstance(refusal.value, UnknownName)
        assert tables.get("fot") is None and "fot" not in tables


def test_a_pickle_has_the_setup_if_it_can(run):
    """All numbers go; functions that no pickle holds stay behind, and with them what was simulated."""
    driven = Simulator(leg(), [JointVelocity("drive", "hip", lambda t: (0.1 * t, 0.1))]).run(0.01)
    for trajectory in (run, driven):
        again = pickle.loads(pickle.dumps(trajectory))
        assert (again.setup is None) == (trajectory is driven)
        np.testing.assert_array_equal(again.q, trajectory.q)
        assert again.multipliers.keys() == trajectory.multipliers.keys()
    assert driven.setup.constraints[0].name == "drive"


class Stopped(Exception):
    """What a controller of the test raises."""


@pytest.mark.parametrize("ending", [Stopped, KeyboardInterrupt])
def test_what_ends_a_run_early_has_the_run_until_then(ending):
    """The steps that were done are those of a whole run, and the simulator stands at the end of them."""
    config = leg_config()
    sim, whole = config.simulator(), config.simulator().run(0.05, lambda t, q, v: np.array([0.3, -0.2]))

    def controller(t, q, v):
        if t > 0.0305:
            raise ending
        return np.array([0.3, -0.2])

    with pytest.raises(ending) as stopped:
        sim.run(0.05, controller)
    done = stopped.value.trajectory
    assert len(done.t) == 31
    np.testing.assert_array_equal(done.q, whole.q[:31])
    np.testing.assert_array_equal(done.q[-1], sim.state.q)
    assert done.setup.robot is sim.robot
