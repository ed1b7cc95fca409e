"""The scripts of the gallery: short, and what they assert of physics holds; with little to draw."""

from runpy import run_path

import pytest
from mechanisms import ROOT

SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))
OPTIONS = {
    "shipped_robots": {"seconds": 0.1, "names": ("leg", "four_bar")},
    "stewart_platform": {"frames": 10},
    "wiping_arm": {"seconds": 1.0},
}
"""What a script does in a test in place of all that it can do."""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_makes_its_picture(script, tmp_path):
    """And is named on the page of the gallery, with its picture."""
    assert len(script.read_text().splitlines()) <= 60
    assert f"`{script.name}`" in (ROOT / "docs" / "gallery.md").read_text()
    scope = run_path(str(script))
    scope["main"](str(tmp_path / "{}.png"), **OPTIONS.get(script.stem, {}))
    assert list(tmp_path.glob("*.png"))
    shown = scope["MODES"] if script.stem == "shipped_robots" else (script.stem,)
    assert all(f"(images/gallery/{name}.png)" in (ROOT / "docs" / "gallery.md").read_text() for name in shown)
