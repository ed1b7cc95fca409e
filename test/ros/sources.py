"""Sources of the viewer in the process of the tests."""

import time

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from constrained_sim.ros.viewer_source import NodeSource

PATIENCE = 20.0
"""[s] For a frame to come."""


@pytest.fixture
def source_of():
    """Return a function that opens the source of the node in a domain."""
    contexts, nodes = [], []

    def opened(domain):
        contexts.append(Context())
        rclpy.init(context=contexts[-1], domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        nodes.append(Node("viewer", context=contexts[-1]))
        return NodeSource(nodes[-1])

    yield opened
    for context, node in zip(contexts, nodes, strict=True):
        node.destroy_node()
        rclpy.shutdown(context=context)


def wait(source, condition):
    """Look at frames until `condition` holds for one; return it."""
    end = time.monotonic() + PATIENCE
    while (frame := source.frame()) is None or not condition(frame):
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.01)
    return frame
