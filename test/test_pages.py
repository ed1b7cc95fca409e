"""Every block of code of the README and of the documentation runs, and every link in them leads somewhere."""

import re
from pathlib import Path

import pytest
from mechanisms import ROOT
from pages import ALL_PAGES, BLOCK, blocks, page_commands, run_page
from shell_blocks import NOT_RUN, listed, run_here

README = ROOT / "README.md"
DOCS = ROOT / "docs"
ELSEWHERE = {"textbook.md", "tutorial.md"}
"""Pages with a test of their own; that of the tutorial needs ROS."""

PAGES = [page for page in ALL_PAGES if page.name not in {*ELSEWHERE, README.name}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    """In the order of the page, in an empty folder; test/ros runs the commands that need ROS."""
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_readme_is_short():
    """And all its blocks are run: test/bare and test/ros run Python, test/ros what needs it."""
    assert len(README.read_text().splitlines()) <= 150
    assert {block.language for block in blocks(README)} == {"python", "bash"}
    for words in page_commands(README):
        run_here(words, README.name)


def test_commands_that_are_not_run_are_on_a_page():
    """Each entry of the list is needed: a page has a command that begins so."""
    assert {entry for page in ALL_PAGES for words in page_commands(page) if (entry := listed(words))} == set(NOT_RUN)


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_commands_stand_in_blocks_of_a_language(page):
    """An indented line that is a command would be run by nobody."""
    outside = BLOCK.sub("", page.read_text())
    programs = r"\$|make|pip|ros2|sudo|scripts/\w+|python3?|pytest|constrained_sim|colcon"
    assert not re.findall(rf"^ {{4}}(?:{programs}) .*", outside, re.MULTILINE)


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
