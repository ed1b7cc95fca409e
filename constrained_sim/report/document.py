"""Puts a report together and writes it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import yaml

from constrained_sim.config import Config
from constrained_sim.optional import optional
from constrained_sim.plots.from_bag import BagMessages, read_messages
from constrained_sim.recorded_configuration import RecordedConfiguration
from constrained_sim.report.chart import chart
from constrained_sim.report.summary import summary, warnings
from constrained_sim.whole_file import write_texts

PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 1rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 0.15rem 1.2rem 0.15rem 0; }
th { font-weight: 600; }
pre { background: #f4f4f4; padding: 0.8rem; overflow: auto; max-height: 40rem; }
.warning { border-left: 4px solid #D55E00; padding-left: 0.7rem; }
</style>
</head>
<body>
<h1>$title</h1>
<h2>Summary</h2>
$summary
<h2>Warnings</h2>
$warnings
<h2>Plots</h2>
<p>Drag to zoom in time; all rows follow. A click on an entry of a legend hides its limb or line, a double click all
others. Of long recordings each line keeps its least and largest values.</p>
$chart
<h2>Replay</h2>
$replay
<h2>Versions</h2>
$versions
<h2>Parameters</h2>
$parameters
</body>
</html>
""")


def write_report(bag: Path, output: Path, config: Config | None = None) -> None:
    """Write the report of the rosbag2 directory `bag` into the HTML file `output`; it needs no other file.

    Args:
        bag: the recording.
        output: the file.
        config: what it is of; None: what the recording itself says, if it does.

    Raises:
        ConfigError: it is no recording, or the file cannot be written.
        InvalidValue: a `config` of another robot.
        MissingLibrary: the one that reads bags, or plotly.
    """
    write_texts({output: report(bag, read_messages(bag), config)})


def report(bag: Path, messages: BagMessages, config: Config | None = None) -> str:
    """Return the HTML of a report on the `messages` of a recording in the directory `bag`."""
    recording = messages.recording(bag.resolve().name, config)
    told = messages.configuration
    to_html = optional("plotly.io", "a report").to_html
    plotted = to_html(chart(recording), full_html=False, include_plotlyjs=True, config={"displaylogo": False})
    return PAGE.substitute(
        title=escape(recording.title),
        summary=_table(summary(recording, messages)),
        warnings=_warnings(warnings(recording, messages)),
        chart=plotted,
        replay=_replay(bag, told),
        versions=_table(told.told.get("versions", {})) if told.told else _missing("versions"),
        parameters=_parameters(told),
    )


def _table(rows: Mapping[str, Any]) -> str:
    cells = "\n".join(f"<tr><th>{escape(name)}</th><td>{escape(str(text))}</td></tr>" for name, text in rows.items())
    return f"<table>\n{cells}\n</table>"


def _warnings(texts: Iterable[str]) -> str:
    lines = "\n".join(f'<p class="warning">{escape(text)}</p>' for text in texts)
    return lines or "<p>None.</p>"


def _replay(bag: Path, told: RecordedConfiguration) -> str:
    if not told.has_inputs:
        return "<p>This recording does not hold what entered the simulation, and cannot be replayed.</p>"
    inputs = ", ".join(f"{count} {name}" for name, count in sorted(told.inputs.items())) or "none"
    command = f"ros2 run constrained_sim replay {bag.name}"
    return (
        f"<p>The recording holds all that entered the simulation: its configuration, and {escape(inputs)}.</p>"
        f"<pre>{escape(command)}</pre>"
        f"<p>simulates it again and compares every message bit by bit. It needs the versions below, and the files of "
        f"the robot; relative paths begin in {escape(str(told.told['folder']))}.</p>"
    )


def _parameters(told: RecordedConfiguration) -> str:
    if not told.told:
        return _missing("parameters")
    plain = json.loads(json.dumps(told.told["parameters"]))
    return f"<pre>{escape(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=110))}</pre>"


def _missing(what: str) -> str:
    return f"<p>This recording does not hold the {what}.</p>"
