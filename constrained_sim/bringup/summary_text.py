"""The tables of a robot summary as text."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from constrained_sim.optional import optional

if TYPE_CHECKING:
    from constrained_sim.bringup.summary import RobotSummary

WIDTH = 100


def summary_text(summary: RobotSummary) -> str:
    """Return the tables of a summary, :data:`WIDTH` columns wide.

    Raises:
        MissingLibrary: rich is not installed.
    """
    optional("rich", "the text of a robot's summary")
    from rich.console import Console

    console = Console(file=StringIO(), width=WIDTH, force_terminal=False)
    base = "floating" if summary.floating_base else "fixed"
    console.print(f"{summary.name}: {summary.mass:.4g} kg, {summary.nv} degrees of freedom, {base} base", markup=False)
    links = [
        (link.name, link.joint, f"{link.mass:.4g}", " ".join(f"{m:.2g}" for m in link.moments), link.fault or "yes")
        for link in summary.links
    ]
    joints = [
        (j.name, j.kind, "yes" if j.actuated else "no", f"{j.lower:.3g} .. {j.upper:.3g}", f"{j.effort:.3g}",
         f"{j.damping:.3g}", f"{j.friction:.3g}", f"{j.armature:.3g}")
        for j in summary.joints
    ]  # fmt: skip
    shapes = [
        (s.link, s.kind, s.file.rpartition("/")[2] or " ".join(f"{x:.3g}" for x in s.size)) for s in summary.collision
    ]
    _table(console, "links", ("links", "moved by", "mass", "moments", "physical"), links)
    _table(console, "joints", ("name", "kind", "driven", "limits", "effort", "damping", "friction", "armature"), joints)
    _table(console, "loops and mimicking joints", ("name", "kind"), summary.loops)
    _table(console, "collision geometry", ("link", "kind", "size or file"), shapes)
    for title, lines in (
        ("frames that can be contacts", [", ".join(summary.frames)]),
        ("not used", summary.ignored),
        ("advice", summary.advice),
    ):
        console.print(f"\n{title}" + ("" if lines else ": none"), markup=False)
        for line in lines:
            console.print(f"  {line}", markup=False, highlight=False)
    return console.file.getvalue()  # type: ignore[attr-defined]


def _table(console: object, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if not rows:
        console.print(f"\n{title}: none")  # type: ignore[attr-defined]
        return
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)  # type: ignore[attr-defined]
