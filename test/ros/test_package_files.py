"""What the tools of ROS read of the package: its manifest and its changelog."""

import tomllib

import pytest
from catkin_pkg.changelog import Changelog, populate_changelog_from_rst
from catkin_pkg.package import parse_package
from ros.live import ROOT


def test_the_manifest_is_valid_and_agrees_with_pip():
    """Version, licence and people are the same in package.xml and pyproject.toml."""
    package = parse_package(str(ROOT))
    package.validate()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (package.name, package.version) == (project["name"], project["version"])
    assert package.licenses[0] == project["license"]
    assert [(author.name, author.email) for author in package.authors] == [
        (author["name"], author["email"]) for author in project["authors"]
    ]


@pytest.mark.filterwarnings("ignore:nodes.Node.traverse:DeprecationWarning")
def test_the_changelog_is_one_that_the_tools_of_a_release_read():
    """Once the section that is forthcoming has a number and a date, its entries are found under them."""
    text = (ROOT / "CHANGELOG.rst").read_text()
    released = text.replace("Forthcoming\n-----------", "0.1.0 (2026-12-01)\n------------------")
    changelog = populate_changelog_from_rst(Changelog("constrained_sim"), released)
    assert [version for version, _, _ in changelog.foreach_version()] == ["0.1.0"]
    assert "servo" in "".join(map(str, changelog.get_content_of_version("0.1.0"))).lower()
