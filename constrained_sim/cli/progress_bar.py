"""The progress bar of commands that take a while."""

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(what: str, shown: bool = True) -> Iterator[Callable[..., None]]:
    """Show a bar on the standard error stream, beside `what` is done; yield ``report(done, total, description="")``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as bar:
        task = bar.add_task("", total=None)

        def report(done: int, total: int, description: str = "") -> None:
            bar.update(task, completed=done, total=total, description=description)

        yield report
