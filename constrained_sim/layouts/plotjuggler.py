"""A layout of PlotJuggler: a tab for each page of charts, and the topics to subscribe to."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from constrained_sim.config import Config
from constrained_sim.layouts.charts import Chart, Page, pages_of
from constrained_sim.palette import COLOURS

STREAMER = "ROS2 Topic Subscriber"


def plotjuggler_text(config: Config) -> str:
    """Return the layout for the robot of `config`; its topics are those of a node without namespace."""
    pages = pages_of(config)
    root = Element("root")
    window = SubElement(root, "tabbed_widget", {"name": "Main Window", "parent": "main_window"})
    for page in pages:
        _tab(window, page)
    SubElement(window, "currentTabIndex", index="0")
    SubElement(root, "use_relative_time_offset", enabled="1")
    plugin = SubElement(SubElement(root, "Plugins"), "plugin", ID=STREAMER)
    SubElement(plugin, "use_header_stamp", value="true")
    selected = SubElement(plugin, "selected_topics")
    for topic in sorted({signal.topic for page in pages for chart in page.charts for signal in chart.signals}):
        SubElement(selected, "topic", name=topic)
    SubElement(root, "previouslyLoaded_Streamer", name=STREAMER)
    SubElement(root, "customMathEquations")
    SubElement(root, "snippets")
    indent(root)
    return f"<?xml version='1.0' encoding='UTF-8'?>\n{tostring(root, encoding='unicode')}\n"


def _tab(window: Element, page: Page) -> None:
    container = SubElement(SubElement(window, "Tab", tab_name=page.title, containers="1"), "Container")
    share = ";".join([f"{1.0 / len(page.charts):.6f}"] * len(page.charts))
    splitter = SubElement(container, "DockSplitter", orientation="-", sizes=share, count=str(len(page.charts)))
    for chart in page.charts:
        _plot(splitter, chart, COLOURS)


def _plot(splitter: Element, chart: Chart, colors: Sequence[str]) -> None:
    area = SubElement(splitter, "DockArea", name=chart.title)
    plot = SubElement(area, "plot", mode="TimeSeries", style="Lines", flip_x="false", flip_y="false")
    SubElement(plot, "limitY")
    for place, signal in enumerate(chart.signals):
        name, color = signal.topic + signal.plotjuggler, colors[place % len(colors)]
        SubElement(plot, "curve", name=name, color=color)
