"""The standard services of the package simulation_interfaces, where it is installed, as its files specify them."""

import math

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from geometry_msgs.msg import Pose, Twist
from mechanisms import GRAVITY
from nav_msgs.msg import Odometry
from rclpy.action import ActionClient
from ros.live import NODE, PERIOD, START_TIME, nanoseconds, stamp
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from constrained_sim.exceptions import InvalidValue
from constrained_sim.msg import Contact
from constrained_sim.ros.entities import posix_pattern
from constrained_sim.ros.replay import replay
from constrained_sim.srv import AddContact, ListContacts, Reset, SetSolver, Step

pytest.importorskip("simulation_interfaces")
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import Bounds, EntityCategory, EntityFilters, Result, SimulationState, SimulatorFeatures
from simulation_interfaces.srv import (
    GetEntities,
    GetEntitiesStates,
    GetEntityInfo,
    GetEntityState,
    GetSimulationState,
    GetSimulatorFeatures,
    ResetSimulation,
    SetEntityState,
    SetSimulationState,
    StepSimulation,
)

START = round(START_TIME * 1e9)
FEEDBACK = f"{NODE}/simulate_steps/_action/feedback"
STOPPED, PLAYING = SimulationState.STATE_STOPPED, SimulationState.STATE_PLAYING
PAUSED, QUITTING = SimulationState.STATE_PAUSED, SimulationState.STATE_QUITTING
TIME, STATE = ResetSimulation.Request.SCOPE_TIME, ResetSimulation.Request.SCOPE_STATE
ALREADY = SetSimulationState.Response.ALREADY_IN_TARGET_STATE
OK, FAILED = Result.RESULT_OK, Result.RESULT_OPERATION_FAILED
UNSUPPORTED, NOT_FOUND = Result.RESULT_FEATURE_UNSUPPORTED, Result.RESULT_NOT_FOUND
INVALID_POSE = getattr(SetEntityState.Response, "INVALID_POSE", FAILED)
"""Version 1.0.0 has no code for it."""

HAS_FLAGS = hasattr(SetEntityState.Request(), "set_pose")
"""From version 2.1 on, a request says what it sets."""

BODY = """
<robot name="body_1">
  <link name="base">
    <inertial><mass value="2.0"/><inertia ixx="0.1" iyy="0.2" izz="0.25" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <link name="arm">
    <inertial><origin xyz="0 0 0.3"/><mass value="1.0"/>
      <inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="10" velocity="10"/>
  </joint>
</robot>
"""

CONFIG = """
/**:
  ros__parameters:
    robot: {urdf: body.urdf, floating_base: true}
    initial: {positions: {shoulder: 0.5}, base_pose: [0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]}
    contacts: {foot: {link: base, point: [0.0, 0.0, -0.1], normal: [0.0, 0.0, 1.0], friction: 0.5}}
    dt: 0.001
"""


@pytest.fixture(scope="module")
def body_config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("body")
    (folder / "body.urdf").write_text(BODY)
    (folder / "body.yaml").write_text(CONFIG)
    return folder / "body.yaml"


@pytest.fixture(scope="module")
def _body(simulate, body_config):
    with simulate(config=body_config, clock_mode="fast", start_paused=True) as simulation:
        simulation.odometry = simulation.client.subscribe(Odometry, "/odom")
        simulation.meet()
        yield simulation


@pytest.fixture
def body(_body):
    """A floating base with an arm, 2 m above the ground, paused and just reset."""
    _body.pause()
    _body.reset()
    _body.forget()
    return _body


def code(sim, kind, service, **fields):
    """Return the result code of a call, which has a text exactly where it is not OK."""
    result = sim.call(kind, service, timeout=60.0, **fields).result
    assert (result.result == OK) == (result.error_message == ""), result
    return result.result


def set_state(sim, state):
    return code(sim, SetSimulationState, "set_simulation_state", state=SimulationState(state=state))


def state_of(sim):
    answer = sim.call(GetSimulationState, "get_simulation_state")
    assert answer.result.result == OK
    return answer.state.state


def reset_scope(sim, scope):
    return code(sim, ResetSimulation, "reset_simulation", scope=scope)


def last_state(sim, at):
    """Return the state with stamp `at` [ns], once it has arrived."""
    sim.wait_for(lambda: sim.states and stamp(sim.states[-1]) == at, "state")
    return sim.states[-1]


def contacts(sim):
    return [contact.name for contact in sim.call(ListContacts, "list_contacts").contacts]


def add_toe(sim):
    toe = Contact(name="toe", link="foot", offset=-0.5)
    toe.normal.z = 1.0
    assert sim.call(AddContact, "add_contact", contact=toe).success


def features(sim):
    return list(sim.call(GetSimulatorFeatures, "get_simulator_features").features.features)


# -- what there is


def test_features_are_those_that_work(stepped):
    """Exactly what the other tests show is announced."""
    names = "SIMULATION_STATE_GETTING SIMULATION_STATE_SETTING SIMULATION_STATE_PAUSE SIMULATION_RESET "
    names += "SIMULATION_RESET_TIME SIMULATION_RESET_STATE STEP_SIMULATION_SINGLE STEP_SIMULATION_MULTIPLE "
    names += "STEP_SIMULATION_ACTION ENTITY_CATEGORIES ENTITY_INFO_GETTING ENTITY_STATE_GETTING "
    names += "ENTITY_STATE_SETTING ENTITY_BOUNDS ENTITY_BOUNDS_BOX SPAWNING SPAWNING_RESOURCE_STRING DELETING "
    names += "SPAWNABLES SIMULATION_RESET_SPAWNED"
    names += " SPAWNING_ENTITIES" if hasattr(SimulatorFeatures, "SPAWNING_ENTITIES") else ""  # from 2.1 on
    assert features(stepped) == sorted(getattr(SimulatorFeatures, name) for name in names.split())


def test_services_are_private_and_in_snake_case(stepped):
    """What this simulator cannot do has none."""
    found = stepped.client.node.get_service_names_and_types()
    names = {name for name, kinds in found if any(kind.startswith("simulation_interfaces/srv/") for kind in kinds)}
    wanted = "get_simulator_features get_simulation_state set_simulation_state reset_simulation step_simulation "
    wanted += "get_entities get_entity_info get_entity_state get_entities_states set_entity_state "
    wanted += "get_entity_bounds spawn_entity delete_entity get_spawnables"
    wanted = {f"{NODE}/{name}" for name in wanted.split()}
    wanted |= {f"{NODE}/spawn_entities"} if hasattr(SimulatorFeatures, "SPAWNING_ENTITIES") else set()
    assert names == wanted


# -- states of the simulation


def test_states_and_their_transitions(stepped):
    """Every transition that SimulationState.msg describes, with its code."""
    assert state_of(stepped) == PAUSED
    assert set_state(stepped, PAUSED) == ALREADY
    assert set_state(stepped, PLAYING) == OK
    stepped.wait_for(lambda: len(stepped.states) > 20, "states of the running simulation")
    assert state_of(stepped) == PLAYING
    assert set_state(stepped, PLAYING) == ALREADY
    assert set_state(stepped, STOPPED) == OK
    assert state_of(stepped) == STOPPED
    assert list(last_state(stepped, START).position) == [0.32, 0.60, -1.20]
    assert set_state(stepped, STOPPED) == ALREADY
    assert set_state(stepped, PAUSED) == OK
    assert state_of(stepped) == PAUSED
    stepped.forget()
    assert set_state(stepped, STOPPED) == OK
    assert set_state(stepped, PLAYING) == OK
    stepped.wait_for(lambda: len(stepped.states) > 20, "states of the running simulation")
    assert set_state(stepped, PAUSED) == OK
    assert state_of(stepped) == PAUSED


def test_states_follow_the_services_of_the_node(stepped):
    """~/pause and ~/step are the same switch; a step ends a stop, a reset does not begin one."""
    assert set_state(stepped, STOPPED) == OK
    assert stepped.call(Step, "step", periods=1).success
    assert state_of(stepped) == PAUSED
    stepped.reset()
    assert state_of(stepped) == PAUSED
    assert stepped.call(SetBool, "pause", data=False).success
    assert state_of(stepped) == PLAYING


def test_stopped_simulation_stands_still_and_stays_stopped_by_a_reset(stepped):
    """No clock ticks; ResetSimulation leaves it stopped."""
    stepped.step(3)
    assert set_state(stepped, STOPPED) == OK
    last_state(stepped, START)
    stepped.settle()
    stepped.forget()
    stepped.client.spin(0.3)
    assert not stepped.states and not stepped.clock
    assert reset_scope(stepped, ResetSimulation.Request.SCOPE_ALL) == OK
    assert state_of(stepped) == STOPPED


@pytest.mark.parametrize("state", [4, 5, 77])
def test_states_of_worlds_are_not_supported(stepped, state):
    """One world, which is always loaded."""
    assert set_state(stepped, state) == UNSUPPORTED
    assert state_of(stepped) == PAUSED


def test_frozen_simulation_cannot_be_played_until_it_is_stopped(stepped):
    """It counts as paused; playing is a transition that fails, stopping resets it."""
    assert stepped.call(Reset, "reset", joints=JointState(name=["hip"], velocity=[1e200])).success
    assert code(stepped, StepSimulation, "step_simulation", steps=2) == FAILED
    assert state_of(stepped) == PAUSED
    assert set_state(stepped, PLAYING) == SetSimulationState.Response.STATE_TRANSITION_ERROR
    assert set_state(stepped, STOPPED) == OK
    assert set_state(stepped, PAUSED) == OK
    assert code(stepped, StepSimulation, "step_simulation", steps=2) == OK


def test_quitting_stops_the_simulation_then_ends_the_process(simulate):
    """The answer still comes; the last clock is that of the reset; the exit code is 0."""
    with simulate(clock_mode="fast", start_paused=False) as sim:
        sim.wait_for(lambda: len(sim.clock) > 20, "clock")
        assert set_state(sim, QUITTING) == OK
        assert sim.process.wait(20.0) == 0
        sim.client.spin(1.0)  # a wait would end with the process
        assert stamp(sim.clock[-1]) == START


# -- resets


@pytest.mark.parametrize("scope", [0, 255])
def test_reset_of_everything_is_a_fresh_start(stepped, scope):
    """Time, state, contacts and solver are those of the start."""
    fresh, _ = stepped.step()
    add_toe(stepped)
    assert stepped.call(SetSolver, "set_solver", solver="null_space").success
    stepped.step(20)
    assert reset_scope(stepped, scope) == OK
    assert list(last_state(stepped, START).position) == [0.32, 0.60, -1.20]
    assert contacts(stepped) == ["foot"]
    solver = stepped.call(SetSolver, "set_solver")
    assert (solver.solver, solver.factorization) == ("range_space", "")
    assert stepped.step()[0] == fresh
    assert state_of(stepped) == PAUSED


def test_reset_of_time_keeps_the_state(stepped):
    """Positions, velocities and contacts stay bit for bit; stamps begin anew."""
    add_toe(stepped)
    before, _ = stepped.step(25)
    assert before.velocity[0] != 0.0
    assert reset_scope(stepped, TIME) == OK
    after = last_state(stepped, START)
    assert (after.position, after.velocity) == (before.position, before.velocity)
    assert contacts(stepped) == ["foot", "toe"]
    falling, _ = stepped.step()
    assert stamp(falling) == START + PERIOD
    assert falling.position[0] < before.position[0]


def test_reset_of_the_state_keeps_the_time(stepped):
    """The robot is where it began; stamps go on; contacts stay."""
    add_toe(stepped)
    stepped.step(25)
    stepped.forget()
    assert reset_scope(stepped, STATE) == OK
    after = last_state(stepped, START + 25 * PERIOD)
    assert (list(after.position), list(after.velocity)) == ([0.32, 0.60, -1.20], [0.0, 0.0, 0.0])
    assert contacts(stepped) == ["foot", "toe"]
    assert stamp(stepped.step()[0]) == START + 26 * PERIOD


def test_reset_of_time_and_state_keeps_the_contacts(stepped):
    """Both bits: as two resets, one after the other."""
    add_toe(stepped)
    stepped.step(25)
    assert reset_scope(stepped, TIME | STATE) == OK
    assert list(last_state(stepped, START).position) == [0.32, 0.60, -1.20]
    assert contacts(stepped) == ["foot", "toe"]


@pytest.mark.parametrize("scope", [8, 64, 128])
def test_bits_of_a_scope_without_a_meaning_are_refused(stepped, scope):
    """Nothing changes."""
    stepped.step(5)
    assert reset_scope(stepped, scope) == UNSUPPORTED
    assert stamp(stepped.step()[0]) == START + 6 * PERIOD


# -- steps


@pytest.mark.parametrize("steps", [1, 30])
def test_steps_are_control_periods(stepped, steps):
    """The answer comes after the last one; each is published; the simulation is paused again."""
    assert code(stepped, StepSimulation, "step_simulation", steps=steps) == OK
    assert state_of(stepped) == PAUSED
    ends = [START + k * PERIOD for k in range(1, steps + 1)]
    for messages in (stepped.states, stepped.forces, stepped.clock):
        stepped.wait_for(lambda messages=messages: len(messages) >= steps, "messages of every step")
        assert [stamp(message) for message in messages] == ends
    assert stamp(stepped.step()[0]) == ends[-1] + PERIOD


def test_steps_are_refused_unless_paused(stepped):
    """Neither a playing nor a stopped simulation is stepped, nor one by no steps; nothing moves."""
    assert code(stepped, StepSimulation, "step_simulation", steps=0) == FAILED
    assert set_state(stepped, STOPPED) == OK
    assert code(stepped, StepSimulation, "step_simulation", steps=1) == FAILED
    assert state_of(stepped) == STOPPED
    assert set_state(stepped, PLAYING) == OK
    assert code(stepped, StepSimulation, "step_simulation", steps=1) == FAILED
    assert state_of(stepped) == PLAYING


class Goal:
    """A goal of SimulateSteps and what comes back."""

    def __init__(self, sim, steps):
        """Send it and wait until it is accepted; rclpy drops feedback that comes after the result: hence the topic."""
        self._sim = sim
        if FEEDBACK not in sim.client.got:
            sim.client.subscribe(SimulateSteps.Impl.FeedbackMessage, FEEDBACK)
        self._heard = sim.client.got[FEEDBACK]
        client = ActionClient(sim.client.node, SimulateSteps, f"{NODE}/simulate_steps")
        sim.wait_for(client.server_is_ready, "action server")
        sim.client.spin(0.3)  # until its feedback reaches us
        self._heard.clear()
        future = client.send_goal_async(SimulateSteps.Goal(steps=steps))
        sim.wait_for(future.done, "acceptance")
        self._handle = future.result()
        assert self._handle.accepted
        self._result = self._handle.get_result_async()

    @property
    def feedback(self):
        return [(heard.feedback.completed_steps, heard.feedback.remaining_steps) for heard in self._heard]

    def cancel(self):
        """Cancel it, and wait for the answer."""
        future = self._handle.cancel_goal_async()
        self._sim.wait_for(future.done, "answer to the cancellation")
        assert len(future.result().goals_canceling) == 1

    def end(self):
        """Wait for the end; return the status and the result code."""
        self._sim.wait_for(self._result.done, "result of the action", timeout=60.0)
        result = self._result.result()
        assert (result.result.result.result == OK) == (result.result.result.error_message == "")
        return result.status, result.result.result.result


def test_action_reports_every_step(stepped):
    """Feedback after each of 40 steps, then success; the periods are those of the service."""
    goal = Goal(stepped, 40)
    assert goal.end() == (GoalStatus.STATUS_SUCCEEDED, OK)
    stepped.wait_for(lambda: len(goal.feedback) == 40, "feedback of every step")
    assert goal.feedback == [(k, 40 - k) for k in range(1, 41)]
    last_state(stepped, START + 40 * PERIOD)
    assert [stamp(state) for state in stepped.states] == [START + k * PERIOD for k in range(1, 41)]
    assert state_of(stepped) == PAUSED


def test_action_is_cancelled(stepped):
    """It ends at a period boundary; what was reported was simulated; then the simulation stands still, paused."""
    goal = Goal(stepped, 2**40)
    stepped.wait_for(lambda: len(goal.feedback) > 20, "feedback")
    assert state_of(stepped) == PAUSED  # services are answered meanwhile
    goal.cancel()
    assert goal.end() == (GoalStatus.STATUS_CANCELED, FAILED)
    stepped.settle()
    completed, remaining = goal.feedback[-1]
    assert completed + remaining == 2**40
    last = stamp(stepped.states[-1])
    assert last >= START + completed * PERIOD
    assert stamp(stepped.step()[0]) == last + PERIOD


def test_one_request_of_steps_at_a_time(stepped):
    """A second one, by action or by service, is refused, and does not disturb the first."""
    first = Goal(stepped, 2**40)
    assert Goal(stepped, 5).end() == (GoalStatus.STATUS_ABORTED, FAILED)
    assert code(stepped, StepSimulation, "step_simulation", steps=1) == FAILED
    before = len(first.feedback)
    stepped.wait_for(lambda: len(first.feedback) > before, "more feedback")
    first.cancel()
    assert first.end() == (GoalStatus.STATUS_CANCELED, FAILED)


def test_action_is_aborted_unless_paused(stepped):
    """The result says why, as the service does."""
    assert set_state(stepped, PLAYING) == OK
    assert Goal(stepped, 5).end() == (GoalStatus.STATUS_ABORTED, FAILED)
    assert set_state(stepped, STOPPED) == OK
    goal = Goal(stepped, 5)
    assert goal.end() == (GoalStatus.STATUS_ABORTED, FAILED)
    assert not goal.feedback


# -- entities


def filters(pattern="", categories=(), tags=(), bounds=Bounds.TYPE_EMPTY):
    message = EntityFilters(filter=pattern)
    message.categories = [EntityCategory(category=category) for category in categories]
    message.tags.tags = list(tags)
    message.bounds.type = bounds
    return message


ROBOT, HUMAN = EntityCategory.CATEGORY_ROBOT, EntityCategory.CATEGORY_HUMAN
FILTERS = {
    "everything": (filters(), OK, ["body_1"]),
    "part of the name": (filters("od"), OK, ["body_1"]),
    "anchored": (filters("^body_[[:digit:]]$"), OK, ["body_1"]),
    "alternatives": (filters("^(leg|body)_[0-9]+$"), OK, ["body_1"]),
    "another name": (filters("^body$"), OK, []),
    "robots": (filters(categories=[HUMAN, ROBOT]), OK, ["body_1"]),
    "humans": (filters(categories=[HUMAN]), OK, []),
    "humans of that name": (filters("body", [HUMAN]), OK, []),
    "not a pattern": (filters("body("), FAILED, []),
    "unknown class": (filters("[[:vowel:]]"), FAILED, []),
    "tags": (filters(tags=["red"]), UNSUPPORTED, []),
    "box": (filters(bounds=Bounds.TYPE_BOX), FAILED, []),
    "sphere": (filters(bounds=Bounds.TYPE_SPHERE), UNSUPPORTED, []),
}


@pytest.mark.parametrize("case", FILTERS)
def test_entities_are_filtered(body, case):
    """The robot is the only one; GetEntitiesStates finds the same, each with its state."""
    wanted, expected, names = FILTERS[case]
    answer = body.call(GetEntities, "get_entities", filters=wanted)
    states = body.call(GetEntitiesStates, "get_entities_states", filters=wanted)
    assert answer.result.result == states.result.result == expected
    assert list(answer.entities) == list(states.entities) == names
    alone = body.call(GetEntityState, "get_entity_state", entity="body_1").state
    assert list(states.states) == [alone] * len(names)


def test_posix_classes():
    """Bracket expressions with several classes and characters."""
    assert posix_pattern("^[[:upper:][:space:]_]+$").search("A _B")
    assert not posix_pattern("^[^[:punct:]]+$").search("a[b")
    assert posix_pattern("^[[:punct:]]+$").search("[]^-\\`{|}~!/:@")
    with pytest.raises(InvalidValue, match="POSIX"):
        posix_pattern("[[:digits:]]")


def test_info(stepped):
    """The leg is a robot."""
    answer = stepped.call(GetEntityInfo, "get_entity_info", entity="leg")
    assert answer.result.result == OK
    assert answer.info.category.category == ROBOT
    assert "fixed base, 3 degrees of freedom" in answer.info.description
    assert code(stepped, GetEntityInfo, "get_entity_info", entity="tail") == NOT_FOUND


def test_state_of_a_fixed_base(stepped):
    """It stands in the world, at rest; it cannot be put elsewhere, and the answer says how joints are set."""
    answer = stepped.call(GetEntityState, "get_entity_state", entity="leg")
    assert answer.result.result == OK and answer.state.header.frame_id == "world"
    assert answer.state.pose == as_pose([0.0] * 6 + [1.0]) and answer.state.twist == Twist()
    assert stepped.call(GetEntitiesStates, "get_entities_states").states == [answer.state]
    refusal = stepped.call(SetEntityState, "set_entity_state", entity="leg").result
    assert refusal.result == UNSUPPORTED and "~/reset" in refusal.error_message
    assert code(stepped, GetEntityState, "get_entity_state", entity="tail") == NOT_FOUND
    assert code(stepped, SetEntityState, "set_entity_state", entity="tail") == NOT_FOUND


def numbers(message):
    """Return the fields x, y, z and w of `message`, those that it has."""
    return np.array([getattr(message, name) for name in "xyzw" if hasattr(message, name)])


def entity(sim):
    answer = sim.call(GetEntityState, "get_entity_state", entity="body_1")
    assert answer.result.result == OK, answer.result.error_message
    return answer.state


def put(sim, pose=None, twist=None, frame="world", name="body_1"):
    """Set pose, twist or both: lists of 7 and 6 numbers, world axes; return the result code."""
    request = SetEntityState.Request(entity=name)
    request.state.header.frame_id = frame
    if HAS_FLAGS:
        request.set_pose, request.set_twist = pose is not None, twist is not None
    if pose is not None:
        request.state.pose = as_pose(pose)
    if twist is not None:
        request.state.twist = as_twist(twist)
    fields = {name: getattr(request, name) for name in request.get_fields_and_field_types()}
    return code(sim, SetEntityState, "set_entity_state", **fields)


def as_pose(values):
    pose = Pose()
    (pose.position.x, pose.position.y, pose.position.z) = values[:3]
    (pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w) = values[3:]
    return pose


def as_twist(values):
    twist = Twist()
    (twist.linear.x, twist.linear.y, twist.linear.z) = values[:3]
    (twist.angular.x, twist.angular.y, twist.angular.z) = values[3:]
    return twist


HALF = math.sqrt(0.5)
TURNED = [1.0, 2.0, 3.0, 0.0, 0.0, HALF, HALF]
"""A quarter turn about z, at (1, 2, 3)."""


def test_state_of_free_fall(body):
    """z = z0 - g t (t + dt) / 2 within the order of the step, v = -g t, a = -g, at the stamp of the last period."""
    body.step(100)
    state = entity(body)
    assert (stamp(state), state.header.frame_id) == (START + 100 * PERIOD, "world")
    np.testing.assert_allclose(numbers(state.pose.position), [0.0, 0.0, 2.0 - 0.5 * GRAVITY * 0.01], atol=1e-9)
    np.testing.assert_allclose(numbers(state.pose.orientation), [0.0, 0.0, 0.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(numbers(state.twist.linear), [0.0, 0.0, -0.1 * GRAVITY], atol=1e-9)
    np.testing.assert_allclose(numbers(state.twist.angular), np.zeros(3), atol=1e-12)
    np.testing.assert_allclose(numbers(state.acceleration.linear), [0.0, 0.0, -GRAVITY], atol=1e-8)
    np.testing.assert_allclose(numbers(state.acceleration.angular), np.zeros(3), atol=1e-8)


def test_acceleration_is_the_change_of_the_velocity(body):
    """Of a tumbling body: the difference of two velocities over a period, up to the order of the step."""
    assert put(body, TURNED, [0.3, -0.2, 0.1, 1.0, 2.0, -1.5]) == OK
    body.step(20)
    before = entity(body)
    body.step()
    after = entity(body)
    for part in ("linear", "angular"):
        change = (numbers(getattr(after.twist, part)) - numbers(getattr(before.twist, part))) / (PERIOD * 1e-9)
        given = numbers(getattr(after.acceleration, part))
        assert np.linalg.norm(given) > 0.5
        np.testing.assert_allclose(given, change, atol=0.02)


def test_body_is_put_elsewhere(body):
    """Pose and twist are those in world axes; odom has them in the base's; joints and time stay; then it flies on."""
    body.step(30)
    joints = body.states[-1]
    body.forget()
    twist = [1.0, 0.0, 0.5, 0.0, 0.0, 2.0]
    assert put(body, TURNED, twist) == OK
    published = last_state(body, START + 30 * PERIOD)
    assert (published.position, published.velocity) == (joints.position, joints.velocity)
    state = entity(body)
    np.testing.assert_allclose([*numbers(state.pose.position), *numbers(state.pose.orientation)], TURNED, atol=1e-15)
    np.testing.assert_allclose([*numbers(state.twist.linear), *numbers(state.twist.angular)], twist, atol=1e-15)
    odometry = body.wait_for(lambda: body.odometry and body.odometry[-1], "odometry")
    np.testing.assert_allclose(numbers(odometry.twist.twist.linear), [0.0, -1.0, 0.5], atol=1e-15)
    np.testing.assert_allclose(numbers(odometry.twist.twist.angular), [0.0, 0.0, 2.0], atol=1e-15)
    later, _ = body.step()
    assert stamp(later) == START + 31 * PERIOD
    moved = numbers(entity(body).pose.position) - TURNED[:3]
    np.testing.assert_allclose(moved, [1e-3, 0.0, 0.5e-3], atol=2e-5)


@pytest.mark.skipif(not HAS_FLAGS, reason="before 2.1, pose and twist are always set")
def test_what_is_not_asked_for_keeps_its_value(body):
    """A pose alone keeps the twist in world axes, a twist alone the pose; neither: nothing happens."""
    twist = [0.4, -0.3, 0.2, 0.1, 0.5, -0.6]
    assert put(body, twist=twist) == OK
    state = entity(body)
    np.testing.assert_allclose(numbers(state.pose.position), [0.0, 0.0, 2.0], atol=1e-15)
    assert put(body, pose=TURNED) == OK
    state = entity(body)
    np.testing.assert_allclose([*numbers(state.twist.linear), *numbers(state.twist.angular)], twist, atol=1e-15)
    np.testing.assert_allclose(numbers(state.pose.position), TURNED[:3], atol=1e-15)
    body.step()
    before = entity(body)
    assert put(body) == OK
    assert entity(body) == before


BAD = {
    "zero quaternion": ({"pose": [0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0]}, INVALID_POSE),
    "NaN position": ({"pose": [0.0, math.nan, 3.0, 0.0, 0.0, 0.0, 1.0]}, INVALID_POSE),
    "infinite quaternion": ({"pose": [0.0, 0.0, 3.0, 0.0, 0.0, 0.0, math.inf]}, INVALID_POSE),
    "below the ground": ({"pose": [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0]}, INVALID_POSE),
    "NaN twist": ({"twist": [0.0, math.nan, 0.0, 0.0, 0.0, 0.0]}, FAILED),
    "another frame": ({"frame": "arm"}, UNSUPPORTED),
    "another name": ({"name": "soul_1"}, NOT_FOUND),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_state_is_refused_and_nothing_changes(body, case):
    """The code says what is wrong with it."""
    body.step(7)
    before = entity(body)
    given, expected = BAD[case]
    assert put(body, **({"pose": TURNED, "twist": [0.0] * 6} | given)) == expected
    assert entity(body) == before


@pytest.mark.parametrize("frame", ["", "world"])
def test_empty_frame_is_the_world(body, frame):
    """As EntityState.msg says."""
    assert put(body, TURNED, [0.0] * 6, frame) == OK
    np.testing.assert_allclose(numbers(entity(body).pose.position), TURNED[:3], atol=1e-15)


def test_all_of_it_is_replayed(simulate, body_config, tmp_path):
    """Resets of every scope, states that are set, stops and steps are in the recording, which repeats bit by bit."""
    with simulate(config=body_config, clock_mode="fast", start_paused=True, record=tmp_path / "bag") as sim:
        sim.meet()
        sim.command(["shoulder"], [0.3])
        assert code(sim, StepSimulation, "step_simulation", steps=20) == OK
        assert put(sim, TURNED, [1.0, 0.0, 0.5, 0.0, 0.3, 2.0]) == OK
        assert code(sim, StepSimulation, "step_simulation", steps=20) == OK
        for scope in (TIME, STATE, TIME | STATE):
            assert reset_scope(sim, scope) == OK
            assert Goal(sim, 20).end() == (GoalStatus.STATUS_SUCCEEDED, OK)
        assert sim.call(SetSolver, "set_solver", solver="null_space").success
        assert code(sim, StepSimulation, "step_simulation", steps=20) == OK
        assert set_state(sim, STOPPED) == OK
        assert set_state(sim, PAUSED) == OK
        answer = sim.call(Step, "step", periods=700)  # to the ground, and an impact
        assert answer.success and nanoseconds(answer.stamp) == START + 700 * PERIOD
    comparison = replay(tmp_path / "bag")
    assert comparison.difference == ""
    assert comparison.counts["/joint_states"] >= 820
    assert comparison.counts["/impacts"] >= 1
