"""Messages that are waited for and taken without an executor."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from constrained_sim.nanoseconds import nanoseconds_of


class Inbox:
    """Subscriptions of a node that a loop of its own serves.

    rclpy's executor builds a wait set from everything that a node has, at every turn, which takes a good part of a
    control period; here one is kept.
    """

    def __init__(self, node: Node) -> None:
        """Subscribe to nothing yet."""
        self._node = node
        self._subscriptions: list[tuple[Any, Callable[[bytes], None], int]] = []
        self._wait_set: Any = None

    @property
    def subscriptions(self) -> list[Any]:
        """Those that are taken from here."""
        return [subscription for subscription, _, _ in self._subscriptions]

    def subscribe(
        self, kind: type, topic: str, take: Callable[[Any], None], qos: QoSProfile, serialised: bool = False
    ) -> None:
        """Hand each message of `topic` to `take`; all topics are subscribed to before the first :meth:`wait`.

        Args:
            kind: of the messages.
            topic: their topic.
            take: gets them.
            qos: of the subscription.
            serialised: hand on their bytes, whatever they are; else a warning tells of bytes that are no message.
        """

        def take_message(data: bytes) -> None:
            try:
                message = deserialize_message(data, kind)
            except RuntimeError:
                text = f"refused: {len(data)} bytes on {topic} that are no {kind.__name__}"
                self._node.get_logger().warning(text, throttle_duration_sec=1.0)
                return
            take(message)

        handle = take if serialised else take_message
        subscription = self._node.create_subscription(kind, topic, handle, qos, raw=True)
        self._subscriptions.append((subscription, handle, qos.depth))

    @property
    def publishers(self) -> list[int]:
        """Number of publishers of each topic."""
        return [subscription.get_publisher_count() for subscription in self.subscriptions]

    def wait(self, timeout: float) -> None:
        """Sleep until a message arrives or `timeout` [s] is over."""
        if self._wait_set is None:
            sizes = (len(self._subscriptions), 0, 0, 0, 0, 0)
            self._wait_set = rclpy_implementation.WaitSet(*sizes, self._node.context.handle)
        self._wait_set.clear_entities()
        for subscription in self.subscriptions:
            self._wait_set.add_subscription(subscription.handle)
        self._wait_set.wait(nanoseconds_of(timeout))

    def take_all(self) -> None:
        """Hand on everything that has arrived; what arrives meanwhile may wait for the next time."""
        for subscription, handle, depth in self._subscriptions:
            for _ in range(depth):
                taken = subscription.handle.take_message(subscription.msg_type, True)
                if taken is None:
                    break
                self._hand_on(taken[0], handle)

    def _hand_on(self, data: bytes, handle: Callable[[bytes], None]) -> None:
        """Hand on a message; one that was not foreseen is told of, and the others come."""
        try:
            handle(data)
        except Exception:
            text = f"a message of {len(data)} bytes failed:\n{traceback.format_exc()}"
            self._node.get_logger().error(text, throttle_duration_sec=1.0)
