"""`constrained_sim compile`: everything that a simulation would compile when it first needs it."""

import time

from constrained_sim.cli.texts import Json, say, write_json


def compile_command(as_json: Json = False) -> None:
    """Compile all kernels beforehand, for images of containers and for CI.

    What is compiled already stays.

    Examples:
        $ constrained_sim compile
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from constrained_sim.precompile import compile_kernels

    begin, compiled = time.monotonic(), 0
    columns = TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int, what: str) -> None:
            nonlocal compiled
            compiled = done
            bar.update(task, completed=done, total=total, description=what)

        compile_kernels(report)
    seconds = time.monotonic() - begin
    if as_json:
        write_json({"compiled": compiled, "seconds": round(seconds, 3)})
    else:
        say(f"{compiled} kernels compiled in {seconds:.1f} s" if compiled else "all kernels are there already")
