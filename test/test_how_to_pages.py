"""The pages docs/how-to/*.md: every block of Python in them runs, in order."""

import re

import pytest
from mechanisms import ROOT

PAGES = sorted((ROOT / "docs" / "how-to").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_every_block_of_the_page_runs(page, monkeypatch, tmp_path):
    """In a folder of its own, as a reader would."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)
    assert blocks
