"""The page docs/textbook.md: every block of it runs, in order, and every comparison in it holds."""

import re

from mechanisms import ROOT


def test_every_block_of_the_page_runs(monkeypatch):
    """From the root of the repository, as a reader would."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / "textbook.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 10
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/textbook.md", "exec"), names)
