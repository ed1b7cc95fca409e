"""Which tests go to the same process where several run side by side (``pytest -n 4 --dist loadgroup``)."""

from collections.abc import Generator
from pathlib import Path

import pytest

from constrained_sim.compilation.background import BACKGROUND

BACKGROUND.compile_here()  # bits are compared

RECORDED = {"dropped", "standing", "at_work", "hopping", "hopping_in_real_time"}
"""Fixtures that run complete simulations once, whose bags many tests read."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Keep together what shares running nodes or bags; any other test may go anywhere.

    Raises:
        pytest.UsageError: pytest-xdist does not keep groups together, and all that is shared would be made twice.
    """
    for item in items:
        if Path(item.path).parent.name == "ros":
            parameters = getattr(getattr(item, "callspec", None), "params", {}).values()  # some are names of fixtures
            used = {*getattr(item, "fixturenames", ()), *(name for name in parameters if isinstance(name, str))}
            item.add_marker(pytest.mark.xdist_group("bags" if RECORDED & used else Path(item.path).stem))
    yield
    if getattr(config.option, "loadgroup", False):
        lost = [item.nodeid for item in items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid]
        if lost:
            raise pytest.UsageError(f"pytest {pytest.__version__} and pytest-xdist: {lost[0]} is in no group")


@pytest.fixture(scope="session")
def browser():
    """A Chromium without a window, driven by playwright."""
    driver = pytest.importorskip("playwright.sync_api", reason="pages are tested with playwright")
    from constrained_sim.exceptions import MissingProgram
    from constrained_sim.viewer.browser import browser_arguments, browser_program

    try:
        program = browser_program()
    except MissingProgram as error:
        pytest.skip(str(error))
    with driver.sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=program, args=browser_arguments())
        yield chromium
        chromium.close()
