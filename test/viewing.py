"""A headless Chromium for tests of pages."""

import contextlib
import os
import re
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

PATIENCE = 30.0
"""[s] For a page to show what it should."""

SETTLE = 0.8
"""[s] Between a change and a picture of it: some pictures of a busy browser."""

SCREENSHOTS = Path(os.environ.get("SCREENSHOTS", Path(__file__).parents[1] / "log" / "screenshots"))
"""Where tests leave pictures of the pages that they saw."""


@contextlib.contextmanager
def open_page(browser, page, width=760, height=560):
    """Open a `Page`; yield the tab, and the list of all addresses that it asks."""
    with open_url(browser, page.url, width, height) as (tab, requests):
        wait_until(lambda: page.server.get_clients())
        yield tab, requests


@contextlib.contextmanager
def open_url(browser, url, width=760, height=560):
    """Open the page at `url`; yield the tab, and the list of all addresses that it asks."""
    tab, requests = browser.new_page(viewport={"width": width, "height": height}), []
    tab.set_default_timeout(1e3 * PATIENCE)
    tab.on("request", lambda request: requests.append(request.url))
    try:
        tab.goto(url)
        tab.locator(".mantine-Notification-closeButton").click()  # it says that the processor draws
        yield tab, requests
    finally:
        tab.close()


def pixels(tab, name):
    """Return the picture (height, width, 3) of the scene; one of the whole page is kept."""
    from PIL import Image

    time.sleep(SETTLE)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    path = SCREENSHOTS / f"{name}.png"
    tab.screenshot(path=path)
    box = tab.locator("canvas").first.bounding_box()
    corners = box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]
    return np.asarray(Image.open(path).convert("RGB").crop(tuple(map(int, corners))))


def click_at(tab, page, point):
    """Click what is drawn at `point` (3,) [m], world frame."""
    (client,) = page.server.get_clients().values()
    camera, box = client.camera, tab.locator("canvas").first.bounding_box()
    w, x, y, z = camera.wxyz
    right, down, forward = pin.Quaternion(w, x, y, z).matrix().T @ (np.asarray(point) - camera.position)
    scale = 0.5 * box["height"] / (forward * np.tan(0.5 * camera.fov))
    tab.mouse.click(
        box["x"] + 0.5 * box["width"] + scale * right,
        box["y"] + 0.5 * box["height"] + scale * down,
    )


def set_number(tab, label, value):
    """Write `value` beside the slider of this label."""
    slider = tab.locator("label", has_text=re.compile(f"^{re.escape(label)}$")).get_attribute("for")
    field = tab.locator(f"[id='{slider}']").locator("..").locator("input[inputmode=decimal]")
    field.fill(str(value))
    field.press("Enter")


def choose(tab, label, option):
    """Choose `option` in the list of this label."""
    tab.get_by_label(label, exact=True).click()
    tab.get_by_role("option", name=option, exact=True).click()


def wait_until(condition):
    """Wait until `condition` holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)
