"""A simulation in the process of the tests that requests drive, as those of a recording do."""

from constrained_sim import msg
from constrained_sim.ros.message_json import to_json


def ask(node, name, request):
    """Let a request take effect on a `Replay`."""
    node.take(msg.Input(name=name, content=to_json(request)))


def messages(node, duration):
    """Simulate for a `duration` [ns], and yield what is published from now on."""
    end = node.world.stamp + duration
    while (message := node.next_message()).stamp <= end:
        yield message
        node.drop()
