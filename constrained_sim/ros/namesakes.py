"""Other nodes of the same name, which ROS allows and whose services, parameters and topics get mixed up."""

from __future__ import annotations

from rclpy.node import Node


class Namesakes:
    """Looks for nodes of the same full name as `node`."""

    def __init__(self, node: Node) -> None:
        """Have seen none yet."""
        self._node, self._seen = node, 0

    def look(self) -> str:
        """Return what there is to say of others now, empty: nothing; a warning in the log says it when they appear."""
        mine = self._node.get_name(), self._node.get_namespace()
        others = self._node.get_node_names_and_namespaces().count(mine) - 1
        name = self._node.get_fully_qualified_name()
        text = f"{others} other node(s) of the name {name}, unless just killed: give each its own, -r __node:=NAME"
        if others > self._seen:
            self._node.get_logger().warning(text)
        self._seen = others
        return text if others > 0 else ""
