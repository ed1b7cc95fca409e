"""Time has one source: of two nodes that could publish /clock, one does."""

import contextlib

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from ros.live import Client, Process, arguments, free_domain
from rosgraph_msgs.msg import Clock

MODES = {"clock_mode": "realtime", "status_rate": 10.0}


@pytest.fixture
def world(tmp_path):
    """Return a client, and a function that starts a simulator in a namespace of its domain."""
    with contextlib.ExitStack() as stack:
        client = Client(free_domain())
        stack.callback(client.close)
        clocks = client.subscribe(Clock, "/clock")

        def start(namespace, **parameters):
            words = [*arguments(**MODES, **parameters), "-r", f"__ns:=/{namespace}"]
            process = Process(tmp_path, client.node.context.get_domain_id(), "simulator", *words)
            stack.callback(process.stop)
            return process

        yield client, clocks, start


def publishers(client):
    """Return the namespaces of the nodes that publish the clock."""
    return sorted(end.node_namespace for end in client.node.get_publishers_info_by_topic("/clock"))


def is_running(client, namespace):
    """Return whether the node of a namespace offers its services and publishes its state."""
    states = client.node.get_publishers_info_by_topic(f"/{namespace}/joint_states")
    return len(states) == 1 and client.node.count_services(f"/{namespace}/constrained_sim/pause") == 1


def test_second_node_leaves_time_to_the_first(world):
    """The second one says so, and simulates all the same, whenever it discovers the first; time goes on."""
    client, clocks, start = world
    start("first")
    client.wait_for(lambda: len(clocks) > 100, "clock")
    seen = set()
    client.watchers.append(lambda: seen.update(publishers(client)))
    second = start("second")
    told = "/first/constrained_sim publishes /clock already: this node does not"
    client.wait_for(lambda: told in second.complaints, "word of the second node")
    client.wait_for(lambda: is_running(client, "second"), "second node")
    client.wait_for(lambda: publishers(client) == ["/first"], "one clock")
    count, both = len(clocks), "/second" in seen  # where the second was late to discover the first
    client.wait_for(lambda: len(clocks) > count + 100, "clock")
    times = [message.clock.sec * 10**9 + message.clock.nanosec for message in clocks[count if both else 0 :]]
    assert times == sorted(times) and times[-1] > times[0]


def test_clock_of_another_program_was_first(world):
    """Whoever offers no time of a beginning, as other simulators do, keeps the clock though it came later."""
    client, clocks, start = world
    first = start("first")
    client.wait_for(lambda: len(clocks) > 100, "clock")
    client.node.create_publisher(Clock, "/clock", 10)
    client.wait_for(lambda: publishers(client) == ["/"], "one clock")
    client.wait_for(lambda: "/client publishes /clock already" in first.complaints, "word of the node")


def test_of_two_that_begin_together_one_goes_on(world):
    """Neither saw the other's clock when it began: afterwards one of them leaves it, and says so."""
    client, _, start = world
    processes = [start(name) for name in ("first", "second")]
    client.wait_for(lambda: all(is_running(client, name) for name in ("first", "second")), "nodes")
    leaves = lambda: [process for process in processes if "publishes /clock already" in process.complaints]  # noqa: E731
    client.wait_for(leaves, "word of the one that leaves")
    client.wait_for(lambda: len(publishers(client)) == 1, "one clock")
    client.spin(2.5)
    assert len(publishers(client)) == 1
    assert len(leaves()) == 1


@pytest.mark.parametrize("together", [False, True], ids=["one after the other", "together"])
def test_namesakes_publish_one_clock(world, together):
    """Two nodes of one name in one namespace: one leaves time to the other as if they had different names."""
    client, clocks, start = world
    processes = [start("twin")]
    if not together:
        client.wait_for(lambda: len(clocks) > 100, "clock")
    processes.append(start("twin"))
    leaves = lambda: ["publishes /clock already" in process.complaints for process in processes]  # noqa: E731
    client.wait_for(lambda: any(leaves()), "word of the one that leaves")
    client.wait_for(lambda: publishers(client) == ["/twin"], "one clock")
    client.spin(2.5)
    assert publishers(client) == ["/twin"] and sum(leaves()) == 1
    assert together or leaves() == [False, True]
    count = len(clocks)
    client.wait_for(lambda: len(clocks) > count + 100, "clock")
    times = [message.clock.sec * 10**9 + message.clock.nanosec for message in clocks[count:]]
    assert times == sorted(times)


def test_a_node_that_was_killed_leaves_the_clock_to_its_successor(world):
    """DDS lists its clock for many seconds yet, but nobody hears it: the next node of the name publishes at once."""
    client, clocks, start = world
    first = start("again")
    client.wait_for(lambda: len(clocks) > 100, "clock")
    first.popen.kill()
    first.wait(10.0)
    client.spin(0.5)
    clocks.clear()
    second = start("again")
    client.wait_for(lambda: len(clocks) > 100, "clock of the second node")
    client.spin(2.5)
    assert "publishes /clock" not in second.complaints
    assert len(publishers(client)) == 2, "the first one is not listed any more: nothing was tested"


def test_the_end_of_the_clock_is_told(world):
    """The owner ends: the other, which must not let time jump, says what stands still until the owner is back."""
    client, clocks, start = world
    first = start("first")
    client.wait_for(lambda: len(clocks) > 100, "clock")
    second = start("second", start_paused=True)  # a busy machine holds no real time, which is told of in the same place
    client.wait_for(lambda: is_running(client, "second"), "second node")
    client.wait_for(lambda: publishers(client) == ["/first"], "one clock")
    heard = client.subscribe(DiagnosticArray, "/diagnostics")
    of_second = lambda: [m.status[0] for m in heard if m.status[0].name.startswith("/second/")]  # noqa: E731
    client.wait_for(lambda: of_second() and of_second()[-1].level == DiagnosticStatus.OK, "all well")
    first.stop()
    told = "nobody publishes /clock any more: nodes with use_sim_time stand still"
    client.wait_for(lambda: told in of_second()[-1].message, "word of the second node")
    assert of_second()[-1].level == DiagnosticStatus.WARN
    client.spin(2.5)
    assert second.complaints.count(told) == 1 and publishers(client) == []
    start("first")
    client.wait_for(lambda: publishers(client) == ["/first"], "clock of the first node")
    client.wait_for(lambda: of_second()[-1].level == DiagnosticStatus.OK, "all well again")


def test_user_decides(world):
    """`never` publishes no clock though nobody else does; `always` does beside another, and both warn of it."""
    client, _, start = world
    start("without", publish_clock="never")
    client.wait_for(lambda: is_running(client, "without"), "node")
    assert publishers(client) == []
    first = start("first", publish_clock="always")
    client.wait_for(lambda: publishers(client) == ["/first"], "clock")
    second = start("second", publish_clock="always")
    client.wait_for(lambda: publishers(client) == ["/first", "/second"], "two clocks")
    told = lambda: all("time jumps" in process.complaints for process in (first, second))  # noqa: E731
    client.wait_for(told, "warnings of both", timeout=10.0)
