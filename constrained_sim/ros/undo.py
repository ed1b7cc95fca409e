"""Takes back what a node has opened, where the rest of it is refused."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node


def destroyer_of_news(node: Node) -> Callable[[], None]:
    """Return a function that destroys all topics and services which `node` will have opened from now on."""
    publishers, subscriptions, services = (list(kind) for kind in (node.publishers, node.subscriptions, node.services))

    def destroy() -> None:
        for publisher in set(node.publishers).difference(publishers):
            node.destroy_publisher(publisher)
        for subscription in set(node.subscriptions).difference(subscriptions):
            node.destroy_subscription(subscription)
        for service in set(node.services).difference(services):
            node.destroy_service(service)

    return destroy
