"""Files of recorded runs: only what save wrote is read, and nothing is lost by writing."""

import os
import pickle
import stat
import zipfile

import numpy as np
import pytest
from mechanisms import leg, leg_config

from constrained_sim import JointVelocity, Simulator, Trajectory
from constrained_sim.exceptions import InvalidValue, UnknownName


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
