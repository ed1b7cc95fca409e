"""Which tests go to the same process where several run side by side (``pytest -n 2 --dist loadgroup``)."""

from pathlib import Path

import pytest

RECORDED = {"dropped", "standing", "hopping", "hopping_in_real_time"}
"""Fixtures that run a complete simulation once, whose bag many tests read."""


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep together what shares running nodes or bags; any other test may go anywhere."""
    for item in items:
        if Path(item.path).parent.name == "ros":
            shares_bags = RECORDED & set(getattr(item, "fixturenames", ()))
            item.add_marker(pytest.mark.xdist_group("bags" if shares_bags else Path(item.path).stem))


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
