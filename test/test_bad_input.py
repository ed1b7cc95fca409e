"""Every public function and constructor with every kind of wrong value: refused by name, or taken; nothing else."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from mechanisms import ROOT, ball, leg

import constrained_sim as cs
from constrained_sim.exceptions import (
    BeyondLimits,
    CoarseStep,
    ConstrainedSimError,
    FastJoints,
    InexactContact,
    InvalidValue,
    KernelsNotKept,
    LightJoint,
    MovedByAssembly,
    NonFiniteMotion,
    ThreadsNotBounded,
    UnknownName,
    shown,
)

WRONG: dict[str, Any] = {
    "none": None,
    "text": "no such thing",
    "bytes": b"x",
    "object": object(),
    "class": int,
    "function": lambda *_: None,
    "true": True,
    "nan": float("nan"),
    "inf": float("inf"),
    "negative": -1.0,
    "zero": 0.0,
    "huge": 1e308,
    "huge_int": 10**400,
    "endless_int": 10**5000,
    "tiny": 5e-324,
    "complex": 1j,
    "empty": [],
    "ragged": [[1.0, 2.0], [3.0]],
    "texts": ["1", "2", "3"],
    "set": {1.0},
    "mapping": {"a": 1.0},
    "empty_array": np.zeros(0),
    "no_rows": np.zeros((0, 3)),
    "matrix": np.full((3, 3), 0.1),
    "large_array": np.zeros((300, 300)),
    "nans": np.full(3, np.nan),
    "huge_array": np.full(3, 1e308),
    "objects": np.array([object(), None, "x"], dtype=object),
    "text_array": np.array(["1", "2", "3"]),
    "truths": [True, False, True],
    "links": ["no", "such"],
}

Q, V, TAU, TWO = [0.3, 0.6, -1.2], [0.1, 0.2, 0.3], [1.0, 2.0], {"hip": 0.6}
M, J, F, B = np.diag([1.0, 2.0, 3.0]), np.array([[1.0, 0.5, 0.0]]), [1.0, 2.0, 3.0], [0.5]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written to a path without folder lies there."""
    monkeypatch.chdir(tmp_path)


def anchor() -> cs.PointAnchor:
    """Return what holds the foot where it is."""
    return cs.PointAnchor("hold", "foot", (0.0, 0.0, 0.0), normals=[(0.0, 0.0, 1.0)])


def own(**options: Any) -> cs.CustomConstraint:
    """Return a constraint of functions."""
    functions = {
        "phi": lambda q, v, t: [q[0] - 0.3],
        "jacobian": lambda q, v, t: [[1.0, 0, 0]],
        "gamma": lambda *_: [0.0],
    }
    return cs.CustomConstraint("own", 1, **functions, **options)  # type: ignore[arg-type]


def recorded() -> cs.Trajectory:
    """Return a short run."""
    return cs.Simulator(leg(), q=Q).run(0.002)


class Closed:
    """A function that opens a page and closes it; of the same object as the one that opens it."""

    def __init__(self, view: Callable[..., Any]) -> None:
        """Take the function that opens the page."""
        self._view, self.__self__ = view, view.__self__  # type: ignore[attr-defined]

    def __call__(self, **arguments: Any) -> None:
        """Open and close."""
        self._view(**arguments).close()


POSE = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
SOLID = {"mass": 1.0, "friction": 0.5, "pose": POSE}


def calls(folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return what is public, by name, with arguments that are right."""
    robot, foot = leg(), cs.PointContact("floor", "foot", (0, 0, 0))
    state = {"robot": robot, "q": Q, "v": V}
    of_rows = {**state, "constraints": [anchor()]}
    sim = cs.Simulator(robot, [anchor()], q=Q)
    stepped = sim.step()
    sim.reset(Q)
    servo = cs.Servo(robot, 1.0, 1.0)
    posture, dynamics = cs.Posture(robot, Q, 1.0, 1.0), cs.ContactConsistentDynamics(M, J)
    motion = cs.constrained_acceleration(robot, Q, V, TAU, [anchor()])
    impact = cs.resolve_impact(robot, Q, V, [anchor()])
    run, file = recorded(), folder / "run.npz"
    run.save(file)
    place = {"position": (0.0, 0.0, 0.0), "rpy": (0.0, 0.0, 0.0)}
    turning = {"torsional_friction": 0.0, "rolling_friction": 0.0}
    of_contact = {"friction": 0.1, "restitution": 0.1, "restitution_law": "newton", **turning}
    description = {"gravity": (0, 0, -9.81), "actuated_joints": None}
    urdf = {"path_or_xml": robot.urdf, "floating_base": False, **description}
    sdf = {"path_or_xml": SDF, "floating_base": False, **description}
    found: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "Baumgarte": (cs.Baumgarte, {"time_constant": 0.1}),
        "Baumgarte gains": (cs.Baumgarte, {"kp": 1.0, "kd": 1.0, "kv": 1.0, "each": {"floor": 0.1}}),
        "Box": (cs.Box, {"size": (1.0, 1.0, 1.0), **place}),
        "Collisions": (
            cs.Collisions,
            {"scene": {}, "law": cs.Rigid(), "margin": 0.02, "self_collision": False, "srdf": "", **of_contact}
            | {"excluded": [], "package_dirs": []},
        ),
        "Compliant": (
            cs.Compliant,
            {"stiffness": 1e3, "damping": 1.0, "law": None, "tangential_stiffness": 1.0, "tangential_damping": 1.0},
        ),
        "ContactConsistentDynamics": (cs.ContactConsistentDynamics, {"M": M, "J": J}),
        "ContactConsistentDynamics.tau_null": (dynamics.tau_null, {"tau": F}),
        "ContactConsistentDynamics.tau_row": (dynamics.tau_row, {"tau": F}),
        "ContactSwitch": (cs.ContactSwitch, {"name": "sole", "link": "foot", "rate": 0.0, "threshold": 1.0}),
        "CustomConstraint": (
            cs.CustomConstraint,
            {"name": "own", "dim": 1, "phi": own().phi, "jacobian": own().jacobian, "gamma": own().gamma}
            | {"velocity": None, "unilateral": False, "restitution": 0.0},
        ),
        "Encoder": (
            cs.Encoder,
            {"name": "encoder", "joint": "hip", "rate": 0.0, "delay": 0.0}
            | {"resolution": 0.0, "position_noise": 0.1, "velocity_noise": 0.1},
        ),
        "ForceTorque": (
            cs.ForceTorque,
            {"name": "ft", "link": "foot", "rate": 0.0, "force_noise": 0.1}
            | {"torque_noise": 0.0, "force_bias": (0, 0, 0), "torque_bias": (0, 0, 0)},
        ),
        "FrameAnchor": (
            cs.FrameAnchor,
            {"name": "w", "link_a": "foot", "placement_a": np.eye(4), "link_b": "world", "placement_b": np.eye(4)}
            | {"axes": np.eye(6)},
        ),
        "Frictionless": (cs.Frictionless, {}),
        "HuntCrossley": (
            cs.HuntCrossley,
            {
                "stiffness": 1e3,
                "dissipation": 0.1,
                "exponent": 1.5,
                "tangential_stiffness": 0.0,
                "tangential_damping": 0.0,
            },
        ),
        "Imu": (
            cs.Imu,
            {"name": "imu", "link": "foot", "rate": 0.0, "orientation_noise": 0.1}
            | {"angular_velocity_noise": 0.0, "acceleration_noise": 0.0}
            | {"angular_velocity_bias": (0, 0, 0), "acceleration_bias": (0, 0, 0)},
        ),
        "JointCoupling": (
            cs.JointCoupling,
            {"name": "g", "joint": "hip", "reference_joint": "knee", "ratio": 2.0, "offset": 0.1},
        ),
        "JointLimit": (cs.JointLimit, {"name": "l", "joint": "hip", "lower": -1.0, "upper": 1.0, "restitution": 0.0}),
        "Twist": (cs.Twist, {"name": "twist", "link": "foot", "rate": 0.0}),
        "JointVelocity": (cs.JointVelocity, {"name": "d", "joint": "hip", "velocity": 1.0}),
        "Mesh": (cs.Mesh, {"vertices": [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], **place}),
        "Plane": (cs.Plane, {"normal": (0, 0, 1), "offset": 0.0}),
        "PointAnchor": (
            cs.PointAnchor,
            {"name": "a", "link_a": "foot", "point_a": (0, 0, 0), "link_b": "world", "point_b": (0, 0, 0)}
            | {"normals": [(0, 0, 1)]},
        ),
        "PointContact": (
            cs.PointContact,
            {"name": "c", "link": "foot", "point": (0, 0, 0), "surface": cs.Plane(), "law": cs.Rigid(), "radius": 0.0}
            | of_contact,
        ),
        "PointDistance": (
            cs.PointDistance,
            {"name": "rod", "link_a": "foot", "point_a": (0, 0, 0), "link_b": "world", "point_b": (0, 0, 0)}
            | {"distance": 1.0},
        ),
        "Posture": (cs.Posture, {"robot": robot, "q": Q, "stiffness": 1.0, "damping": 1.0, "feed_forward": 0.0}),
        "Servo": (cs.Servo, {"robot": robot, "stiffness": 1.0, "damping": 1.0}),
        "Servo.targets": (servo.targets, {"position": [0.1] * robot.nu, "velocity": [0.1] * robot.nu, "effort": 0.0}),
        "Posture.about": (posture.about, {"q": Q}),
        "Posture.efforts": (posture.efforts, {"q": np.array(Q), "v": np.array(V)}),
        "Projection": (cs.Projection, {"metric": "mass", "position_tolerance": 1e-9, "velocity_tolerance": 1e-9}),
        "RangeFinder": (
            cs.RangeFinder,
            {"name": "eye", "link": "foot", "rate": 0.0, "origin": (0, 0, 0), "direction": (1, 0, 0)}
            | {"min_range": 0.1, "max_range": 3.0, "range_noise": 0.0},
        ),
        "Lidar": (
            cs.Lidar,
            {"name": "eye", "link": "foot", "rate": 0.0, "min_angle": -1.0, "max_angle": 1.0, "beams": 5}
            | {"min_range": 0.1, "max_range": 3.0, "range_noise": 0.0},
        ),
        "Magnetometer": (
            cs.Magnetometer,
            {"name": "compass", "link": "foot", "rate": 0.0, "world_field": (0, 2e-5, -4e-5), "field_noise": 0.0}
            | {"field_bias": (0, 0, 0)},
        ),
        "Barometer": (
            cs.Barometer,
            {"name": "air", "link": "foot", "rate": 0.0, "altitude": 100.0, "pressure_noise": 0.0},
        ),
        "NavSat": (
            cs.NavSat,
            {"name": "gps", "link": "foot", "rate": 0.0, "latitude": 48.0, "longitude": 11.0, "altitude": 500.0}
            | {"horizontal_noise": 0.0, "vertical_noise": 0.0},
        ),
        "Rigid": (cs.Rigid, {}),
        "Robot": (
            cs.Robot,
            {"model": robot.model, "actuated_joints": ("hip",), "floating_base": False, "urdf": "", "constraints": ()}
            | {"springs": {}, "free_poses": {}},
        ),
        "Robot.from_urdf": (cs.Robot.from_urdf, urdf),
        "Robot.from_sdf": (cs.Robot.from_sdf, sdf),
        "Robot.from_mjcf": (cs.Robot.from_mjcf, {"path_or_xml": MJCF, **description}),
        "Robot.with_joints": (robot.with_joints, {"properties": {"hip": {"damping": 0.1}}}),
        "Robot.joint_limits": (robot.joint_limits, {"restitution": 0.0}),
        "Robot.configuration": (robot.configuration, {"joints": TWO, "base": None}),
        "Robot.checked_configuration": (robot.checked_configuration, {"q": Q}),
        "Robot.clamp": (robot.clamp, {"tau": TAU}),
        "Robot.link_point": (robot.link_point, {"link": "foot", "point": (0, 0, 0)}),
        "Robot.link_placement": (robot.link_placement, {"link": "foot"}),
        "Robot.with_objects": (robot.with_objects, {"objects": []}),
        "Robot.owner_of": (robot.owner_of, {"name": "foot"}),
        "WorldObject": (cs.WorldObject, {"name": "ball", "body": BALL, "pose": POSE}),
        "WorldObject.box": (cs.WorldObject.box, {"name": "box", "size": (1, 1, 1), **SOLID}),
        "WorldObject.sphere": (cs.WorldObject.sphere, {"name": "ball", "radius": 0.1, **SOLID}),
        "WorldObject.cylinder": (cs.WorldObject.cylinder, {"name": "tin", "radius": 0.1, "length": 0.1, **SOLID}),
        "WorldObject.placed": (cs.WorldObject("ball", BALL).placed, {"pose": POSE}),
        "Robot.with_payloads": (robot.with_payloads, {"masses": {"foot": 0.1}}),
        "Robot.summary": (robot.summary, {"dt": 1e-3}),
        "propose_contacts": (cs.propose_contacts, {"robot": robot, "q": Q, "friction": 0.8}),
        "propose_posture": (cs.propose_posture, {"robot": robot, "contacts": [foot]}),
        "set_on_ground": (cs.set_on_ground, {"robot": BALL, "q": BALL.neutral(), "contacts": [POINT]}),
        "standing_efforts": (cs.standing_efforts, {"robot": BALL, "q": BALL.neutral(), "contacts": [POINT]}),
        "suggest_gains": (
            cs.suggest_gains,
            {"robot": robot, "q": Q, "dt": 1e-3, "contacts": [foot], "frequency": 5.0},
        ),
        "Robot.within_limits": (robot.within_limits, {"q": np.array(Q)}),
        "Robot.tangent_limits": (robot.tangent_limits, {"q": np.array(Q)}),
        "SensorSet": (cs.SensorSet, {"robot": robot, "sensors": [], "period": 1e-3, "seed": 0}),
        "SensorSet.measure": (cs.SensorSet(robot, [], 1e-3).measure, {"result": stepped}),
        "Simulator": (
            cs.Simulator,
            {"robot": robot, "constraints": [foot], "stepper": "time_stepping", "solver": "direct", "dt": 1e-3}
            | {"integrator": None, "stabilization": None, "contact_method": "newton", "contact_tolerance": 0.0}
            | {"position_tolerance": 1.0, "command_delay": 0.0, "velocity_limits": False, "collisions": None}
            | {"q": Q, "v": V},
        ),
        "Simulator.add": (sim.add, {"constraint": foot, "assemble": False, "enabled": False}),
        "Simulator.with_objects": (sim.with_objects, {"objects": []}),
        "Simulator.apply": (sim.apply, {"wrench": cs.Wrench("foot"), "duration": 0.1}),
        "Simulator.check_solver": (sim.check_solver, {"solver": sim.solver}),
        "Simulator.enable": (sim.enable, {"name": "hold", "on": True}),
        "Simulator.remove": (sim.remove, {"name": "hold"}),
        "Simulator.reset": (sim.reset, {"q": Q, "v": V, "t": 0.0, "assemble": False}),
        "Simulator.run": (
            sim.run,
            {"duration": 0.002, "controller": posture, "sample_period": 1e-3, "progress": False},
        ),
        "Simulator.view": (Closed(sim.view), {"controller": posture, "port": 8080}),
        "Simulator.set_contact_method": (sim.set_contact_method, {"name": "newton", "tolerance": 0.0}),
        "Simulator.set_solver": (sim.set_solver, {"solver": "direct", "factorization": "lu"}),
        "Simulator.set_stepper": (
            sim.set_stepper,
            {"name": "time_stepping", "integrator": "midpoint", "stabilization": cs.Projection()},
        ),
        "Simulator.step": (sim.step, {"tau": TAU, "wrenches": [cs.Wrench("foot")]}),
        "SpringDamper": (
            cs.SpringDamper,
            {"link_a": "foot", "point_a": (0, 0, 0), "link_b": "world", "point_b": (0, 0, 0)}
            | {"stiffness": 1.0, "damping": 1.0, "rest_length": 0.1},
        ),
        "point_force": (cs.point_force, {**state, "link": "foot", "point": (0, 0, 0), "law": lambda p, s: [0, 0, 1]}),
        "Sphere": (cs.Sphere, {"radius": 1.0, "position": (0, 0, 0)}),
        "Sticking": (cs.Sticking, {}),
        "Trajectory": (cs.Trajectory, {name: getattr(run, name) for name in run.__dataclass_fields__}),
        "Trajectory.joined": (cs.Trajectory.joined, {"parts": [run, run]}),
        "Trajectory.load": (cs.Trajectory.load, {"path": file}),
        "Trajectory.plot": (run.plot, {"path": file.with_name("run.png"), "kinds": ["energy"], "setup": run.setup}),
        "Trajectory.save": (run.save, {"path": file}),
        "Trajectory.to_csv": (run.to_csv, {"path": file.with_name("run.csv"), "setup": run.setup}),
        "Trajectory.view": (Closed(run.view), {"setup": run.setup, "port": 8080}),
        "Wrench": (
            cs.Wrench,
            {"link": "foot", "force": (0, 0, 1), "torque": (0, 0, 0), "point": (0, 0, 0), "axes": "world"},
        ),
        "assemble": (cs.assemble, {"robot": robot, "q": Q, "constraints": [anchor()], "held": ["hip"], "t": 0.0}),
        "check_constraint": (cs.check_constraint, {**state, "constraint": anchor(), "t": 0.0}),
        "constrained_acceleration": (
            cs.constrained_acceleration,
            {**of_rows, "tau": TAU, "solver": "direct", "stabilization": None, "t": 0.0, "wrenches": ()}
            | {"refuse_inconsistent": False, "actuation": None},
        ),
        "ConstrainedAcceleration.multipliers": (motion.multipliers, {"name": "hold"}),
        "ConstrainedAcceleration.wrench": (motion.wrench, {"name": "hold", "link": "foot", "axes": "world"}),
        "constraint_system": (cs.constraint_system, {**of_rows, "t": 0.0}),
        "inverse_dynamics": (
            cs.inverse_dynamics,
            {
                **of_rows,
                "a_independent": TAU,
                "independent": ["hip", "knee"],
                "wrenches": (),
                "limited": False,
                "t": 0.0,
            },
        ),
        "kkt_inverse": (cs.kkt_inverse, {"M": M, "J": J, "method": "direct"}),
        "load_config": (cs.load_config, {"path": ROOT / "config" / "leg.yaml"}),
        "load_kernels": (cs.load_kernels, {"stepper": "time_stepping", "solver": "direct"}),
        "minimal_acceleration": (
            cs.minimal_acceleration,
            {**of_rows, "tau": TAU, "independent": ["hip", "knee"], "wrenches": (), "t": 0.0, "actuation": None},
        ),
        "project_position": (
            cs.project_position,
            {"robot": robot, "q": Q, "constraints": [anchor()], "metric": "mass", "about": None, "solver": "direct"}
            | {"t": 0.0},
        ),
        "project_velocity": (cs.project_velocity, {**of_rows, "metric": "mass", "solver": "direct", "t": 0.0}),
        "resolve_impact": (
            cs.resolve_impact,
            {**of_rows, "solver": "direct", "restitution": None, "row_velocity_plus": None, "t": 0.0}
            | {"refuse_inconsistent": False},
        ),
        "Impact.multipliers": (impact.multipliers, {"name": "hold"}),
        "Impact.wrench": (impact.wrench, {"name": "hold", "link": "foot", "axes": "world"}),
        "solve_kkt": (
            cs.solve_kkt,
            {"M": M, "J": J, "f": F, "b": B, "method": "direct", "refuse_inconsistent": False, "parents": None},
        ),
    }
    return found


SDF = """<sdf version="1.7"><model name="m"><link name="l"><inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy>
<izz>1</izz></inertia></inertial></link><joint name="j" type="revolute"><parent>world</parent><child>l</child><axis>
<xyz>0 0 1</xyz></axis></joint></model></sdf>"""

MJCF = """<mujoco><worldbody><body name="l"><joint name="j" type="hinge"/><inertial pos="0 0 0" mass="1"
diaginertia="1 1 1"/></body></worldbody></mujoco>"""

RESULTS = {"ConstraintCheck", "State", "StepResult"}
"""Made by the package, never by its users."""

INTERNAL = {
    "Posture.of",
    "Trajectory.from_results",
    "Trajectory.from_run",
    "Robot.spring_effort",
    "Robot.spring_energy",
    "Robot.with_followers",
}
"""Methods of classes that are for the package itself."""

BALL = ball()
POINT = cs.PointContact("bottom", BALL.root_link, (0.0, 0.0, -0.1))

PARTS = [(name, argument) for name, (_, arguments) in calls(Path(mkdtemp())).items() for argument in arguments]


@pytest.fixture
def public(tmp_path):
    """Return everything that is public, made anew."""
    return calls(tmp_path)


def test_everything_public_is_tried(public):
    """Each name that the package exports, and each method with arguments of what users hold in their hands."""
    registries = {name for name in cs.__all__ if isinstance(getattr(cs, name), dict)}
    tried = {name.split(".")[0].split()[0] for name in public}
    assert set(cs.__all__) - registries - RESULTS <= tried
    for kind in (
        cs.Robot,
        cs.Simulator,
        cs.Trajectory,
        cs.Posture,
        cs.Servo,
        cs.SensorSet,
        cs.ContactConsistentDynamics,
    ):
        for name, member in inspect.getmembers(kind, lambda m: inspect.isfunction(m) or inspect.ismethod(m)):
            takes_something = len(set(inspect.signature(member).parameters) - {"self"}) > 0
            if not name.startswith("_") and takes_something and f"{kind.__name__}.{name}" not in INTERNAL:
                assert f"{kind.__name__}.{name}" in public


def test_right_values_are_taken(public):
    """Else the others would prove nothing."""
    for function, arguments in public.values():
        function(**arguments)


def outcome(function: Callable[..., Any], arguments: dict[str, Any]) -> ConstrainedSimError | None:
    """Return how a call was refused, None if it was not; any other error is one of the test."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(**arguments)
        except ConstrainedSimError as error:
            return error
    return None


def entries(value: Any) -> Iterator[str]:
    """Yield what is in a list, a mapping or an array, as messages show it."""
    if isinstance(value, list | dict | np.ndarray):
        yield from map(shown, value.ravel().tolist() if isinstance(value, np.ndarray) else value)


@pytest.mark.parametrize(("name", "argument"), PARTS, ids=lambda part: part)
def test_wrong_values_are_refused_by_name(name, argument, public):
    """No error of NumPy, numba, Pinocchio or Python comes out; the message is short, and names argument or value."""
    function, arguments = public[name]
    for kind, value in WRONG.items():
        refusal = outcome(function, {**arguments, argument: value})
        assert refusal is not None or kind != "object", "anything is taken"
        if refusal is not None:
            assert 10 < len(str(refusal)) < 3000, kind
            if value is True:
                continue  # it is right for some arguments, and the refusal is of another
            named = (argument, argument.rstrip("s"), shown(value), "tau of", "finite number(s)")
            said = str(refusal)
            assert any(word in said for word in chain(named, entries(value))), (kind, said)


@pytest.mark.parametrize("name", [name for name in dict(PARTS) if name.startswith("Simulator.")])
def test_a_refused_call_changes_nothing(name, tmp_path):
    """State, settings and what is declared are those of before."""

    def snapshot(sim: cs.Simulator) -> list[Any]:
        return [
            *(part.tobytes() for part in sim.state[1:]),
            sim.state.t,
            sim.steps,
            sim.constraints,
            sim.disabled,
            (sim.solver, sim.stepper_name, sim.integrator_name, sim.contact_method),
            sim.energy,
        ]

    function, arguments = calls(tmp_path)[name]
    sim = function.__self__  # type: ignore[attr-defined]
    for argument in arguments:
        for value in WRONG.values():
            before = snapshot(sim)
            if outcome(function, {**arguments, argument: value}) is not None:
                assert snapshot(sim) == before
            else:  # it was taken: begin anew
                function, arguments = calls(tmp_path)[name]
                sim = function.__self__  # type: ignore[attr-defined]


@pytest.mark.parametrize("function", ["phi", "jacobian", "gamma", "velocity"])
def test_what_functions_of_the_user_return_is_checked(function):
    """With the name of the function and of the constraint."""
    for kind, value in WRONG.items():
        functions = {"phi": lambda *_: [0.0], "jacobian": lambda *_: [[1.0, 0, 0]], "gamma": lambda *_: [0.0]}
        constraint = cs.CustomConstraint("mine", 1, **{**functions, function: lambda *_, value=value: value})
        feedback = cs.Baumgarte(0.1)
        if kind in ("matrix", "huge"):
            continue
        with pytest.raises(InvalidValue, match=f"{function} of 'mine'"):
            cs.constrained_acceleration(leg(), Q, V, TAU, [constraint], stabilization=feedback)


@pytest.mark.parametrize("large", [1e160, 1e308])
def test_results_beyond_all_numbers_are_refused(large):
    """No call hands out infinity or NaN for values that are finite."""
    huge, robot = [large] * 3, leg()
    pinned = cs.PointAnchor("pin", "foot", (0, 0, 0), point_b=(0, 0, 0))
    with np.errstate(all="ignore"):
        for function in (
            lambda: cs.constrained_acceleration(robot, Q, huge, TAU, [anchor()]).a,
            lambda: cs.resolve_impact(robot, Q, huge, [anchor()]).energy_lost,
            lambda: cs.inverse_dynamics(robot, Q, huge, TAU, [anchor()], independent=["hip", "knee"]).tau,
            lambda: cs.minimal_acceleration(robot, Q, huge, TAU, [anchor()]),
            lambda: cs.constraint_system(robot, Q, huge, [anchor()]).h,
            lambda: cs.project_position(robot, huge, [pinned]),
            lambda: cs.project_velocity(robot, Q, huge, [anchor()]),
            lambda: cs.solve_kkt(np.eye(3), np.ones((1, 3)) * large, F, B)[1],
        ):
            try:
                assert np.isfinite(function()).all()
            except ConstrainedSimError as error:
                assert len(str(error)) < 500
        with pytest.raises(NonFiniteMotion, match="acceleration"):
            cs.constrained_acceleration(robot, Q, huge, TAU, [])


def test_text_is_no_number():
    """NumPy would read it."""
    for tau in (["1", "2"], np.array(["1", "2"]), [b"1", b"2"], [True, False]):
        with pytest.raises(InvalidValue, match="tau"):
            cs.constrained_acceleration(leg(), Q, V, tau, [])


def test_integers_and_other_real_numbers_are_numbers():
    """Of Python and of NumPy, however large."""
    from fractions import Fraction

    expected = cs.constrained_acceleration(leg(), Q, V, [1.0, 2.0], []).a
    for tau in ([1, 2], (Fraction(1), 2), np.array([1, 2], dtype=np.int8), np.float32([1.0, 2.0])):
        np.testing.assert_array_equal(cs.constrained_acceleration(leg(), Q, V, tau, []).a, expected)
    assert np.isfinite(cs.constrained_acceleration(leg(), Q, V, [10**20, 1.0], []).a).all()


def test_errors_go_through_a_pickle():
    """As between the processes of a campaign: the class, the message and the data."""
    import pickle

    warnings = (
        InexactContact(1e-7), LightJoint("wrist", 1e-9), CoarseStep("foot", 1e-3, 0.7, 0.5), KernelsNotKept(None),
        FastJoints(1e-3), ThreadsNotBounded("OPENBLAS_NUM_THREADS"), MovedByAssembly({"hip": (0.5, 0.4)}),
        BeyondLimits({"hip": (40.0, -1.0, 1.0)}),
    )  # fmt: skip
    for error in (UnknownName("link", "hand", ["foot"]), InvalidValue("tau", [1.0], "two"), cs_error(), *warnings):
        other = pickle.loads(pickle.dumps(error))
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.__dict__ == error.__dict__
    for warning in warnings:  # as test runners take warnings of other processes over
        assert str(type(warning)(*warning.args)) == str(warning)


def cs_error() -> ConstrainedSimError:
    """Return the error of a real refusal."""
    try:
        cs.Simulator(leg(), [cs.PointAnchor("far", "foot", (0, 0, 0), point_b=(1, 1, 1))], q=Q)
    except ConstrainedSimError as error:
        return error
    raise AssertionError


def test_what_is_no_list_of_wrenches_is_shown_whole():
    """A force in its place says what was given, and which entry is wrong."""
    sim = cs.Simulator(leg(), q=Q)
    with pytest.raises(InvalidValue, match=r"wrenches: got \[0, 0, 10\], .* of Wrench; entry 0 is 0"):
        sim.step(TAU, [0, 0, 10])
    with pytest.raises(InvalidValue, match=r"of Wrench; entry 1 is 'foot'"):
        sim.step(TAU, [cs.Wrench("foot"), "foot"])
    assert sim.steps == 0


def test_messages_stay_short():
    """Also where a value or a list of names is long."""
    with pytest.raises(InvalidValue) as refusal:
        cs.constrained_acceleration(leg(), np.zeros(10**6), V, TAU, [])
    assert len(str(refusal.value)) < 500
    model = pin.Model()
    parent = 0
    for i in range(200):
        parent = model.addJoint(parent, pin.JointModelRX(), pin.SE3.Identity(), f"joint{i}")
        model.appendBodyToJoint(parent, pin.Inertia.Random(), pin.SE3.Identity())
    robot = cs.Robot(model, ())
    with pytest.raises(UnknownName, match="160 more") as unknown:
        robot.configuration({"knee": 0.1})
    assert len(unknown.value.known) == 200
