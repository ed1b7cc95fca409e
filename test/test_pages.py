"""Every block of code of the README and of the documentation runs, and every link in them leads somewhere."""

import re
from pathlib import Path

import pytest
from mechanisms import ROOT
from pages import blocks, check_shell, run_page

README = ROOT / "README.md"
DOCS = ROOT / "docs"
ELSEWHERE = {"textbook.md", "tutorial.md"}
"""Pages with a test of their own; that of the tutorial needs ROS."""

PAGES = sorted(
    page
    for page in [ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
    if page.name not in ELSEWHERE and not {"generated", "_build"} & set(page.parts)
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    """In the order of the page, in an empty folder; commands that need ROS name what exists."""
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_readme_is_short():
    """And its commands name what exists; test/bare and test/ros run its Python."""
    assert len(README.read_text().splitlines()) <= 150
    for block in blocks(README):
        assert block.language in ("python", "bash")
        if block.language == "bash":
            check_shell(block.text, f"README.md, line {block.line}")


@pytest.mark.parametrize("page", [README, *PAGES, *map(DOCS.joinpath, sorted(ELSEWHERE))], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    """To a file, and to a heading of it where one is named."""
    text = re.sub(r"`[^`]*`", "", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists() or "generated" in Path(path).parts, f"{page.name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in headings(file), f"{page.name}: {target}"


@pytest.mark.parametrize("page", ["theory.md", "notation.md"])
def test_modules_that_a_page_names_exist(page):
    """In the folder of the package."""
    named = re.findall(r"`([\w/]+(?:\.py|/))`", (DOCS / page).read_text())
    assert len(named) > 5
    assert all((ROOT / "constrained_sim" / name.removeprefix("constrained_sim/")).exists() for name in named)


def headings(page: Path) -> set[str]:
    """Return the anchors of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
