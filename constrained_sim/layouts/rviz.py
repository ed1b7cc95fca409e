"""A configuration of RViz 2: robot, contact forces and frames."""

from __future__ import annotations

from typing import Any

import yaml

from constrained_sim.config import Config
from constrained_sim.layouts.view import view_of


def rviz_text(config: Config) -> str:
    """Return the configuration for the robot of `config`; its topics are relative, so a namespace is followed."""
    view = view_of(config)
    description = {
        "Description Source": "Topic",
        "Description Topic": _topic("robot_description", 1, "Transient Local"),
        "TF Prefix": config.node.frame_prefix.rstrip("/"),
    }
    displays = [
        _display("Grid", "Grid", True, {"Cell Size": 0.5, "Plane Cell Count": 20}),
        _display("RobotModel", "Robot", True, description),
        _display("TF", "Frames", False, {}),
        _display("MarkerArray", "Contact forces", True, {"Topic": _topic("contact_markers", 5)}),
    ]
    if config.robot.floating_base:
        displays.append(_display("Odometry", "Base", False, {"Keep": 1, "Topic": _topic("odom", 5)}))
    camera = {
        "Class": "rviz_default_plugins/Orbit",
        "Name": "Current View",
        "Target Frame": view.follows,
        "Distance": view.distance,
        "Focal Point": dict(zip("XYZ", view.middle, strict=True)),
        "Pitch": 0.35,
        "Yaw": 0.8,
    }
    tools = [{"Class": f"rviz_default_plugins/{name}"} for name in ("Interact", "MoveCamera", "Select")]
    manager = {
        "Class": "",
        "Displays": displays,
        "Global Options": {"Fixed Frame": config.node.world_frame, "Frame Rate": 30},
        "Tools": tools,
        "Views": {"Current": camera},
    }
    window = {"Height": 800, "Width": 1200}
    text: str = yaml.safe_dump({"Visualization Manager": manager, "Window Geometry": window}, sort_keys=False)
    return text


def _display(kind: str, name: str, enabled: bool, options: dict[str, Any]) -> dict[str, Any]:
    return {"Class": f"rviz_default_plugins/{kind}", "Name": name, "Enabled": enabled, **options}


def _topic(name: str, depth: int, durability: str = "Volatile") -> dict[str, Any]:
    return {
        "Value": name,
        "Depth": depth,
        "Durability Policy": durability,
        "History Policy": "Keep Last",
        "Reliability Policy": "Reliable",
    }
