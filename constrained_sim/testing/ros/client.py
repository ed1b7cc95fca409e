"""An rclpy node in the test process whose every wait is bounded."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from constrained_sim.exceptions import InvalidValue, NoAnswer
from constrained_sim.ros.discovery import loopback_settings
from constrained_sim.ros.topics import REQUESTS

NODE = "/constrained_sim"
"""Name of the simulation node."""

LOOK = 0.05
"""[s] after which a wait looks again, whether something has arrived or not."""

DISCOVERY_TIME = 30.0
"""[s] for two nodes to discover each other: a moment, but many seconds where ten others compete for the processor."""

SETTLE = 0.1
"""[s] for a node that has been discovered to discover its counterpart here: DDS drops an answer that it finds no
reader of, and what is published before the subscriber knows of the publisher comes late, after the next service."""


class Client:
    """A ROS 2 node in the test process; what arrives is kept in :attr:`got`, by topic.

    Attributes:
        node: the node.
        got: messages by topic, in the order of arrival.
        watchers: called again and again while the client waits; one that raises ends the wait.
    """

    def __init__(self, domain: int, default_context: bool = False) -> None:
        """Join `domain`.

        Args:
            domain: DDS domain.
            default_context: use rclpy's default context, so that nodes which do not name a context are of it.

        Raises:
            InvalidValue: the default context is in use already.
        """
        self._context = None if default_context else Context()
        if default_context and rclpy.ok():
            raise InvalidValue("context", "rclpy's default context, in use", "one that rclpy.init() has not started")
        os.environ.update(loopback_settings())
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node("client", context=self._context)
        self.got: defaultdict[str, list[Any]] = defaultdict(list)
        self.watchers: list[Callable[[], None]] = []
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._publishers: dict[str, Publisher] = {}
        self._services: dict[str, Any] = {}

    def close(self) -> None:
        """Leave."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def add_node(self, node: Node) -> None:
        """Let `node` take part whenever the client waits."""
        self._executor.add_node(node)

    def remove_node(self, node: Node) -> None:
        """Let `node` take part no longer."""
        self._executor.remove_node(node)

    def spin(self, seconds: float) -> None:
        """Handle what arrives for this long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._executor.spin_once(timeout_sec=left)

    def wait_for(
        self,
        condition: Callable[[], Any],
        what: str,
        timeout: float = DISCOVERY_TIME,
        progress: Callable[[], object] = lambda: None,
        details: Callable[[], str] = lambda: "",
    ) -> Any:
        """Handle what arrives until `condition()` is true, and return its value.

        Args:
            condition: is tried after everything that arrives.
            what: is waited for, for the message.
            timeout: [s] of wall-clock time without progress.
            progress: a value that changes whenever there is progress; without, there is none before the end.
            details: more for the message, found when it is needed.

        Raises:
            NoAnswer: `timeout` is over.
        """
        end, seen = time.monotonic() + timeout, progress()
        while not (value := condition()):
            for watch in self.watchers:
                watch()
            if (present := progress()) != seen:
                end, seen = time.monotonic() + timeout, present
            if time.monotonic() > end:
                raise NoAnswer(": ".join(filter(None, [f"no {what} within {timeout:g} s", details()])))
            self._executor.spin_once(timeout_sec=LOOK)
        return value

    def subscribe(self, kind: type, topic: str, latched: bool = False) -> list[Any]:
        """Keep the messages of `topic`; return the list that they are appended to."""
        durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
        qos = QoSProfile(depth=5000, durability=durability)
        self.node.create_subscription(kind, topic, self.got[topic].append, qos)
        return self.got[topic]

    def publish(self, topic: str, message: Any) -> None:
        """Publish, once somebody listens.

        Raises:
            NoAnswer: nobody does.
        """
        if topic not in self._publishers:
            publisher = self.node.create_publisher(type(message), topic, QoSProfile(depth=100))
            self._publishers[topic] = publisher
            self.wait_for(lambda: publisher.get_subscription_count() > 0, f"subscriber of {topic}", DISCOVERY_TIME)
            self.spin(SETTLE)
        self._publishers[topic].publish(message)

    def ask(self, kind: Any, service: str, **fields: Any) -> Future:
        """Send a request to a service; return the future of its response.

        Raises:
            NoAnswer: there is no such service.
        """
        name = service if service.startswith("/") else f"{NODE}/{service}"
        if name not in self._services:
            client = self.node.create_client(kind, name, qos_profile=REQUESTS)
            self.wait_for(client.service_is_ready, f"service {name}", DISCOVERY_TIME)
            self.spin(SETTLE)
            self._services[name] = client
        return self._services[name].call_async(kind.Request(**fields))

    def call(self, kind: Any, service: str, timeout: float = 20.0, **fields: Any) -> Any:
        """Call a service of the simulation node and return its response.

        Raises:
            NoAnswer: there is no such service, or no answer within `timeout` [s].
        """
        future = self.ask(kind, service, **fields)
        self.wait_for(future.done, f"answer of {service}", timeout)
        return future.result()
