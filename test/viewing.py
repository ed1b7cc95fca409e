"""A headless Chromium for tests of pages."""

import contextlib
import io
import os
import time
from pathlib import Path

import numpy as np

PATIENCE = 30.0
"""[s] For a page to show what it should."""

SETTLE = 0.8
"""[s] Between a change and a picture of it: some pictures of a busy browser."""


@contextlib.contextmanager
def open_page(browser, page, width=760, height=480):
    """Open a `Page`; yield the tab, and the list of all addresses that it asks."""
    tab, requests = browser.new_page(viewport={"width": width, "height": height}), []
    tab.on("request", lambda request: requests.append(request.url))
    try:
        tab.goto(page.url)
        tab.locator("canvas").first.wait_for(timeout=1e3 * PATIENCE)
        wait_until(lambda: page.server.get_clients())
        yield tab, requests
    finally:
        tab.close()


def pixels(tab, name):
    """Return the picture (height, width, 3) of the scene; it is kept where $SCREENSHOTS says."""
    from PIL import Image

    time.sleep(SETTLE)
    clip = {"x": 0, "y": 150, "width": 420, "height": 330}  # beside the panel and the notes of the page
    data = tab.screenshot(clip=clip)
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=Path(folder, f"{name}.png"))
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def wait_until(condition):
    """Wait until `condition` holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)
