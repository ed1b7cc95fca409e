"""Callbacks of services, parameters, actions and events, run by an executor that is asked only if there are any."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterable
from typing import Any

from rclpy.executors import SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.waitable import NumberOfEntities, Waitable

SERVICE_PERIOD = 0.02
"""[s] of wall-clock time between two looks for something to do."""

SETTLE = 0.2
"""[s] of wall-clock time after something was ready for which there may be more to do: one call can lead to another, and
callbacks that wait go on in a turn of their own."""


class Callbacks:
    """Callbacks of a node that does its main work in a loop of its own.

    A turn of rclpy's executor builds a wait set from everything that a node has, publishers' events included: with the
    topics of the simulation that takes several control periods. Here a wait set is kept, and the executor has its turn
    only when something is ready or was so a moment ago.

    Attributes:
        executor: runs the callbacks.
    """

    def __init__(self, node: Node, polled: Iterable[Any] = ()) -> None:
        """Serve `node`, without being woken by the subscriptions in `polled`."""
        self.executor = SingleThreadedExecutor(context=node.context)
        self.executor.add_node(node)
        self._node, self._polled = node, list(polled)
        self._wait_set: Any = None
        self._sizes = (0, 0, 0)
        self._looked = self._busy_until = 0.0

    def expect(self) -> None:
        """Give the executor its turns for a moment: a future that a callback waits for is done."""
        self._busy_until = time.monotonic() + SETTLE

    def run_ready(self) -> None:
        """Let one callback run if one is ready and the last look was :data:`SERVICE_PERIOD` ago."""
        if time.monotonic() - self._looked < SERVICE_PERIOD:
            return
        self._looked = time.monotonic()
        if self._is_any_ready():
            self.expect()
        if time.monotonic() < self._busy_until:
            self._take_turn(0.0)

    def finish(self) -> None:
        """Let callbacks that waited for a future go on to their end, before there are no more turns."""
        while time.monotonic() < self._busy_until:
            self._take_turn(0.0)

    def wait(self, timeout: float) -> None:
        """Sleep until a callback has run or `timeout` [s] is over."""
        self._take_turn(timeout)

    def _take_turn(self, timeout: float) -> None:
        """Let one callback run; one that raises is told of, and the node goes on."""
        try:
            self.executor.spin_once(timeout_sec=timeout)
        except Exception:
            if not self._node.context.ok():
                raise
            self._node.get_logger().error(f"a callback failed:\n{traceback.format_exc()}")

    def _is_any_ready(self) -> bool:
        node = self._node
        subscriptions = [subscription for subscription in node.subscriptions if subscription not in self._polled]
        services, waitables = list(node.services), list(node.waitables)
        sizes = len(subscriptions), len(services), len(waitables)
        if sizes != self._sizes:
            self._sizes, self._wait_set = sizes, _wait_set(node, *sizes[:2], waitables)
        self._wait_set.clear_entities()
        for subscription in subscriptions:
            self._wait_set.add_subscription(subscription.handle)
        for service in services:
            self._wait_set.add_service(service.handle)
        for waitable in waitables:
            waitable.add_to_wait_set(self._wait_set)
        self._wait_set.wait(0)
        ready = self._wait_set.get_ready_entities
        if ready("service") or ready("subscription"):
            return True
        return any(waitable.is_ready(self._wait_set) for waitable in waitables)


def _wait_set(node: Node, subscriptions: int, services: int, waitables: list[Waitable]) -> Any:
    total = sum(
        (waitable.get_num_entities() for waitable in waitables), NumberOfEntities(subscriptions, 0, 0, 0, services)
    )
    return rclpy_implementation.WaitSet(
        total.num_subscriptions,
        total.num_guard_conditions,
        total.num_timers,
        total.num_clients,
        total.num_services,
        total.num_events,
        node.context.handle,
    )
