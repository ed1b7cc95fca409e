"""set_solver and the parameters of the same names: one path, all or nothing."""

import math

import pytest
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from ros.live import NODE

from constrained_sim.srv import SetSolver

NAMES = ("solver", "factorization", "stepper", "contact_method")
CONFIGURED = {"solver": "direct", "factorization": "lu", "stepper": "time_stepping", "contact_method": "newton"}
CHOICES = [
    {"solver": "direct", "factorization": "lu"},
    {"solver": "direct", "factorization": "qr_pivoting"},
    {"solver": "direct", "factorization": "qr"},
    {"solver": "direct", "factorization": "ldlt"},
    {"solver": "range_space", "factorization": ""},
    {"solver": "null_space", "factorization": ""},
]


def in_effect(answer):
    """Return what a SetSolver response says is in effect."""
    return {name: getattr(answer, name) for name in NAMES}


def ask(sim):
    """Return what is in effect: a request with empty fields keeps it."""
    answer = sim.call(SetSolver, "set_solver")
    assert answer.success, answer.message
    return in_effect(answer)


def values(sim, *names):
    """Return the values of parameters."""
    answer = sim.call(GetParameters, f"{NODE}/get_parameters", names=names)
    return [parameter_value_to_python(value) for value in answer.values]


@pytest.fixture
def stepped(stepped):
    """The paused node with the solver of CONFIGURED."""
    assert stepped.call(SetSolver, "set_solver", solver="direct", factorization="lu").success
    return stepped


@pytest.fixture(scope="module")
def fall():
    """Where 200 periods of falling and landing lead, by solver; filled by the tests."""
    return {}


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: "-".join(filter(None, choice.values())))
def test_each_solver_takes_effect_and_gives_the_same_motion(stepped, fall, choice):
    """The answer, the status and the parameters name the solver; fall and landing are those of the others."""
    answer = stepped.call(SetSolver, "set_solver", **choice)
    assert answer.success, answer.message
    assert in_effect(answer) == CONFIGURED | choice
    assert ask(stepped) == CONFIGURED | choice
    assert values(stepped, "solver", "factorization") == list(choice.values())
    state, forces = stepped.step(200)
    status = stepped.fresh_status()
    assert status.solver == choice["solver"]
    calls = status.solver_calls
    assert 0 < calls  # since the foot touched, in every step
    stepped.step(10)
    assert stepped.fresh_status().solver_calls >= calls + 10
    fall[str(choice)] = [*state.position, *state.velocity, forces.contacts[0].normal_force]
    assert fall[str(choice)] == pytest.approx(next(iter(fall.values())), rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("method", ["newton", "gauss_seidel"])
def test_each_contact_method_takes_effect(stepped, method):
    """The contact method is accepted and the leg lands with it."""
    answer = stepped.call(SetSolver, "set_solver", contact_method=method)
    assert answer.success, answer.message
    assert in_effect(answer) == CONFIGURED | {"contact_method": method}
    _, forces = stepped.step(200)
    assert forces.contacts[0].normal_force > 0.0
    assert stepped.fresh_status().complementarity_residual < 1e-9


def test_empty_fields_keep_what_is_in_effect(stepped):
    """A new factorization alone keeps the solver; a contact method alone keeps both."""
    assert stepped.call(SetSolver, "set_solver", factorization="ldlt").success
    assert stepped.call(SetSolver, "set_solver", contact_method="gauss_seidel").success
    assert ask(stepped) == CONFIGURED | {"factorization": "ldlt", "contact_method": "gauss_seidel"}


REFUSED = {
    "unknown solver": ({"solver": "magic"}, ["magic", "direct", "range_space", "null_space"]),
    "unknown factorization": ({"factorization": "svd"}, ["svd", "lu", "qr_pivoting", "qr", "ldlt"]),
    "unknown stepper": ({"stepper": "magic"}, ["magic", "time_stepping"]),
    "unknown contact method": ({"contact_method": "magic"}, ["magic", "newton", "gauss_seidel"]),
    "factorization for range_space": (
        {"solver": "range_space", "factorization": "lu"},
        ["range_space", "factorization"],
    ),
    "good solver, bad method": ({"solver": "null_space", "contact_method": "magic"}, ["magic"]),
    "good solver, bad stepper": ({"solver": "null_space", "stepper": "magic"}, ["magic"]),
    "stepper that cannot do contacts": (
        {"solver": "null_space", "contact_method": "admm", "stepper": "smooth"},
        ["smooth", "foot"],
    ),
}


@pytest.mark.parametrize("given", REFUSED, ids=str)
def test_bad_request_is_refused_and_nothing_changes(stepped, given):
    """The answer names what was given and what is allowed, and says what stays in effect."""
    fields, expected = REFUSED[given]
    answer = stepped.call(SetSolver, "set_solver", **fields)
    assert not answer.success
    for text in expected:
        assert text in answer.message
    assert in_effect(answer) == CONFIGURED
    assert ask(stepped) == CONFIGURED
    assert values(stepped, *NAMES) == list(CONFIGURED.values())


def test_factorization_alone_is_refused_for_range_space(stepped):
    """Only the direct solver has a choice of factorization."""
    assert stepped.call(SetSolver, "set_solver", solver="range_space").success
    answer = stepped.call(SetSolver, "set_solver", factorization="ldlt")
    assert not answer.success
    assert ask(stepped) == CONFIGURED | {"solver": "range_space", "factorization": ""}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", "null_space"),
        ("solver", "range_space"),
        ("factorization", "ldlt"),
        ("contact_method", "gauss_seidel"),
        ("stepper", "time_stepping"),
    ],
)
def test_parameter_takes_the_same_path(stepped, name, value):
    """Setting a parameter changes what set_solver reports and what the status says."""
    (result,) = stepped.parameters(Parameter(name, value=value))
    assert result.successful, result.reason
    assert ask(stepped)[name] == value
    assert values(stepped, name) == [value]
    stepped.step(3)
    assert stepped.fresh_status().solver == (value if name == "solver" else "direct")


def test_parameters_always_say_what_is_in_effect(stepped):
    """A change of solver by parameter may change the factorization; reading the parameters then shows so."""
    assert stepped.parameters(Parameter("factorization", value="ldlt"))[0].successful
    for solver in ("range_space", "direct"):
        (result,) = stepped.parameters(Parameter("solver", value=solver))
        assert result.successful, result.reason
        assert dict(zip(NAMES, values(stepped, *NAMES), strict=True)) == ask(stepped)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solver", "magic"),
        ("solver", 3),
        ("solver", ""),
        ("factorization", "svd"),
        ("factorization", 1.5),
        ("stepper", "magic"),
        ("stepper", ["time_stepping"]),
        ("contact_method", "magic"),
        ("contact_method", True),
        ("real_time_factor", 2.0),  # of mode realtime only
    ],
)
def test_bad_value_of_a_parameter_is_refused(stepped, name, value):
    """The result carries a reason; the parameter and the simulation keep what they had."""
    before = values(stepped, name)
    (result,) = stepped.parameters(Parameter(name, value=value))
    assert not result.successful
    assert name in result.reason or str(value) in result.reason
    assert values(stepped, name) == before
    assert ask(stepped) == CONFIGURED
    stepped.step()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dt", 0.002),
        ("clock_mode", "realtime"),
        ("control_period", 0.002),
        ("start_time", 2.0),
        ("record", "bag"),
        ("position_tolerance", math.inf),
        ("integrator", "semi_implicit_euler"),
        ("robot.urdf", "other.urdf"),
        ("contacts.foot.friction", 0.1),
        ("initial.positions.hip", 0.0),
        ("nonsense", 1),
    ],
)
def test_other_parameters_are_read_only(stepped, name, value):
    """What is fixed at the start cannot be set while the node runs, nor can a parameter that does not exist."""
    (result,) = stepped.parameters(Parameter(name, value=value))
    assert not result.successful
    assert result.reason
    if name != "nonsense":
        assert values(stepped, name) != [value]


def test_atomic_change_is_all_or_nothing(stepped):
    """Of two parameters set together, one bad value keeps the other from acting."""
    parameters = [Parameter("solver", value="null_space"), Parameter("contact_method", value="magic")]
    answer = stepped.call(
        SetParametersAtomically,
        "set_parameters_atomically",
        parameters=[parameter.to_parameter_msg() for parameter in parameters],
    )
    assert not answer.result.successful
    assert ask(stepped) == CONFIGURED
