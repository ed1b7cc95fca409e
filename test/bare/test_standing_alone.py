"""What is installed is complete: files of the package, physics, and words for what is missing."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import constrained_sim
from constrained_sim import PointAnchor, Robot, constrained_acceleration, load_config
from constrained_sim.contact_solvers import METHODS, ContactProblem, solve_contacts
from constrained_sim.exceptions import MissingLibrary
from constrained_sim.package_paths import resolve_path
from constrained_sim.shipped import share_folder, shipped_robots
from constrained_sim.solvers import make_solver

OURS = "leg", "four_bar"
WITH_ROBOTS = "quadruped", "cassie"


def test_robots_are_there():
    """Each shipped robot has its parameter file, and ``package://constrained_sim`` finds it."""
    robots = shipped_robots()
    assert set(robots) == {*OURS, *WITH_ROBOTS}
    for name, file in robots.items():
        assert resolve_path(f"package://constrained_sim/config/{name}.yaml", share_folder()).samefile(file)


@pytest.mark.parametrize("name", OURS)
def test_our_robots_are_complete(name, tmp_path, monkeypatch):
    """Wherever one is, they are read without anything else."""
    monkeypatch.chdir(tmp_path)
    assert load_config(shipped_robots()[name]).robot.nv == 3


@pytest.mark.parametrize("name", WITH_ROBOTS)
def test_other_robots_are_there_or_their_package_is_named(name):
    """The quadruped and Cassie come from a package that not everybody has."""
    try:
        config = load_config(shipped_robots()[name])
    except MissingLibrary as error:
        assert "pip install example-robot-data" in str(error)
    else:
        assert config.robot.floating_base


def test_a_description_is_found_by_its_package():
    """Robot.from_urdf takes ``package://`` too."""
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf")
    assert list(leg.joint_names) == ["slider", "hip", "knee"]


def test_bounds_of_joints_are_read():
    """Pinocchio's names for them differ between its versions."""
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf", actuated_joints=["hip", "knee"])
    np.testing.assert_array_equal(leg.effort_limits, [12.0, 12.0])
    np.testing.assert_array_equal(leg.velocity_limits, [10.0, 40.0, 40.0])
    damped = leg.with_joints({"hip": {"friction": 0.1, "effort": 3.0, "velocity": 5.0}})
    np.testing.assert_array_equal(damped.dry_friction, [0.0, 0.1, 0.0])
    np.testing.assert_array_equal(damped.effort_limits, [3.0, 12.0])
    np.testing.assert_array_equal(damped.velocity_limits, [10.0, 5.0, 40.0])


def test_the_command_line_knows_its_options(tmp_path):
    """Of any version of typer: those that are written out, and those with a value."""
    words = "run leg --duration 0.01 --set dt=0.0005 --output run.npz --json".split()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "constrained_sim", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["steps"] == 20
    assert (tmp_path / "run.npz").is_file()


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("direct", {"factorization": kind}) for kind in ("lu", "qr", "qr_pivoting", "ldlt")),
        *((name, {}) for name in ("range_space", "null_space", "kokkevis", "projected")),
    ],
)
def test_a_held_foot_carries_the_weight(name, options, twice):
    """M a + h = S^T tau + J^T lam and J a + gamma = 0, on any version of any library, also where rows are dependent."""
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf")
    q = leg.configuration({"slider": 0.2641, "hip": 0.6, "knee": -1.2})
    axes = [(1, 0, 0), (0, 0, 1)]
    held = [PointAnchor(name, "foot", (0, 0, 0), normals=axes) for name in ("foot", "again")[: 1 + twice]]
    v, solver = np.array([0.1, -0.4, 0.7]), make_solver(name, **options)
    motion = constrained_acceleration(leg, q, v, np.zeros(leg.nu), held, solver)
    assert abs(motion.dynamics_residual) < 1e-12
    assert abs(motion.constraint_residual) < 1e-10
    assert motion.rank == 2


def test_proximal_iterations_hold_a_foot_as_others_do():
    """Pinocchio's factorisation has another name in version 3."""
    leg = Robot.from_urdf("package://constrained_sim/urdf/leg.urdf")
    q = leg.configuration({"slider": 0.2641, "hip": 0.6, "knee": -1.2})
    ours, theirs = (
        constrained_acceleration(
            leg, q, [0.1, -0.4, 0.7], np.zeros(leg.nu), [PointAnchor("foot", "foot", (0, 0, 0))], make_solver(name)
        )
        for name in ("range_space", "proximal")
    )
    np.testing.assert_allclose(theirs.a, ours.a, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(theirs.lam, ours.lam, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_finds_the_impulse_on_a_mass_that_slides(method):
    """Coulomb's law for 1 kg that hits the ground at 1 m/s and slides at 1 m/s; `admm` is Pinocchio's."""
    problem = ContactProblem(np.eye(3), np.array([1.0, 0.0, -1.0]), np.array([0.3]), np.zeros((1, 2)))
    np.testing.assert_allclose(solve_contacts(problem, method).impulse, [-0.3, 0.0, 1.0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("threads", ["", "1"])
def test_without_threadpoolctl_a_variable_bounds_the_threads(threads, tmp_path):
    """The apt packages of ROS 2 do not have the library; who has not set the variable is told what depends on it."""
    script = f"""
import sys
sys.modules["threadpoolctl"] = None
from constrained_sim import load_config
print(load_config({str(shipped_robots()["four_bar"])!r}).simulator().run(0.01).q[-1])
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": threads}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True, env=environment
    )
    expected = load_config(shipped_robots()["four_bar"]).simulator().run(0.01).q[-1]
    assert done.stdout == f"{expected}\n"
    assert done.stderr.count("ThreadsNotBounded:") == (threads != "1")


@pytest.mark.parametrize(
    ("library", "code"),
    [
        ("rich", "sim.run(0.01, progress=True)"),
        ("proxsuite", "sim.set_solver('gauss')"),
        ("matplotlib", "sim.run(0.01).plot('a.pdf')"),
        ("rosbags", "from constrained_sim.trajectory_bag import *; write_bag(sim.run(0.01), config, Path('bag'))"),
    ],
)
def test_a_missing_library_is_named(library, code, tmp_path):
    """With how to install it, wherever it is needed."""
    script = f"""
import sys
sys.modules[{library!r}] = None
from pathlib import Path
from constrained_sim import load_config
from constrained_sim.exceptions import MissingLibrary
config = load_config({str(shipped_robots()["four_bar"])!r})
sim = config.simulator()
try:
    {code}
except MissingLibrary as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert f"pip install {library}" in done.stdout, done.stderr
    assert not list(tmp_path.iterdir())


def test_errors_are_explained_without_the_sources(tmp_path):
    """The command at the end of a message finds the paragraph in every way of installing."""
    command = [sys.executable, "-P", "-m", "constrained_sim", "why", "ContactNotSolved"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith("ContactNotSolved\n\n") and "contact forces" in said


def test_the_package_shows_its_public_names_alone():
    """And Python suggests them where a name is misspelled."""
    names = [name for name in dir(constrained_sim) if not name.startswith("__")]
    assert names == sorted(constrained_sim.__all__)
    with pytest.raises(AttributeError) as error:
        _ = constrained_sim.Simulatr
    assert (error.value.name, error.value.obj) == ("Simulatr", constrained_sim)
