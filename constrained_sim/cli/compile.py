"""`constrained_sim compile`: everything that a simulation would compile when it first needs it."""

import time

from constrained_sim.cli.progress_bar import progress_bar
from constrained_sim.cli.texts import Json, say, write_json


def compile_command(as_json: Json = False) -> None:
    """Compile all kernels beforehand, for images of containers and for CI.

    What is compiled already stays.

    Examples:
        $ constrained_sim compile
    """
    from constrained_sim.precompile import compile_kernels

    begin, compiled = time.monotonic(), 0
    with progress_bar("compiling") as show:

        def report(done: int, total: int, what: str) -> None:
            nonlocal compiled
            compiled = done
            show(done, total, what)

        compile_kernels(report)
    seconds = time.monotonic() - begin
    if as_json:
        write_json({"compiled": compiled, "seconds": round(seconds, 3)})
    else:
        say(f"{compiled} kernels compiled in {seconds:.1f} s" if compiled else "all kernels are there already")
