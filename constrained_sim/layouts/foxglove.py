"""A layout of Foxglove: the robot on the left, tabs of charts on the right, status and diagnostics below."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from constrained_sim.config import Config
from constrained_sim.layouts.charts import STATUS, Chart, pages_of
from constrained_sim.layouts.view import view_of

SCENE, TABS, MESSAGES, DIAGNOSTICS = "3D!robot", "Tab!charts", "RawMessages!status", "DiagnosticSummary!node"
"""Panels: the type before the exclamation mark, a name of ours behind it."""


def foxglove_text(config: Config) -> str:
    """Return the layout for the robot of `config`; its topics are those of a node without namespace."""
    panels: dict[str, Any] = {
        SCENE: _scene(config),
        MESSAGES: {"topicPath": STATUS, "diffEnabled": False, "expansion": "none"},
        DIAGNOSTICS: {"topicToRender": "/diagnostics", "minLevel": 0, "pinnedIds": [], "hardwareIdFilter": ""},
    }
    tabs = []
    for page in pages_of(config):
        names = [f"Plot!{page.title}{number}" for number in range(len(page.charts))]
        panels |= dict(zip(names, map(_plot, page.charts), strict=True))
        tabs.append({"title": page.title, "layout": _stack(names, "column")})
    panels[TABS] = {"activeTabIdx": 0, "tabs": tabs}
    below = _split(MESSAGES, DIAGNOSTICS, "row", 50)
    layout = _split(_split(SCENE, below, "column", 70), TABS, "row", 55)
    whole = {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": layout,
    }
    return json.dumps(whole, indent=2) + "\n"


def _scene(config: Config) -> dict[str, Any]:
    view = view_of(config)
    grid = {"layerId": "foxglove.Grid", "instanceId": "grid", "label": "Grid", "visible": True}
    grid |= {"size": 10, "divisions": 20}
    camera = {
        "perspective": True,
        "distance": view.distance,
        "phi": 70,
        "thetaOffset": 45,
        "targetOffset": list(view.middle),
        "target": [0, 0, 0],
        "targetOrientation": [0, 0, 0, 1],
        "fovy": 45,
        "near": 0.01,
        "far": 1000,
    }
    return {
        "cameraState": camera,
        "followMode": "follow-position",
        "followTf": view.follows,
        "scene": {"transforms": {"labelSize": 0, "axisScale": 0}},
        "topics": {name: {"visible": True} for name in ("/robot_description", "/contact_markers")},
        "layers": {"grid": grid},
    }


def _plot(chart: Chart) -> dict[str, Any]:
    paths = [
        {
            "value": signal.topic + signal.foxglove,
            "label": signal.label,
            "enabled": True,
            "timestampMethod": "headerStamp",
        }
        for signal in chart.signals
    ]
    return {
        "title": chart.title,
        "paths": paths,
        "xAxisVal": "timestamp",
        "isSynced": True,
        "showLegend": True,
        "legendDisplay": "floating",
        "showXAxisLabels": True,
        "showYAxisLabels": True,
    }


def _stack(names: Sequence[str], direction: str) -> Any:
    """Return `names` with equal shares of the space."""
    if len(names) == 1:
        return names[0]
    return _split(names[0], _stack(names[1:], direction), direction, 100 / len(names))


def _split(first: Any, second: Any, direction: str, percentage: float) -> dict[str, Any]:
    return {"direction": direction, "first": first, "second": second, "splitPercentage": round(percentage, 1)}
