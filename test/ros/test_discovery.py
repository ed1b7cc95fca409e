"""What processes that start together find each other by."""

from xml.etree import ElementTree

import pytest

from constrained_sim.ros.discovery import VARIABLES, discovery_settings

REPEATED = 3.0
"""[s] after which Fast DDS announces a process again by itself."""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch):
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize(("distribution", "names"), [("jazzy", VARIABLES), ("kilted", VARIABLES[:1])])
def test_announcements_do_not_pause_before_fast_dds_repeats_them(monkeypatch, distribution, names):
    """A process that starts within the first seconds of another hears of it at once; Kilted warns of the old name."""
    monkeypatch.setenv("ROS_DISTRO", distribution)
    settings = discovery_settings()
    assert settings.keys() == set(names)
    (file,) = set(settings.values())
    space = {"d": "http://www.eprosima.com"}
    announcements = ElementTree.parse(file).getroot().find(".//d:participant//d:initialAnnouncements", space)
    count, seconds, nanoseconds = (
        int(announcements.find(path, space).text) for path in ("d:count", "d:period/d:sec", "d:period/d:nanosec")
    )
    period = seconds + 1e-9 * nanoseconds
    assert period <= 0.1 and count * period > REPEATED


@pytest.mark.parametrize("variable", VARIABLES)
def test_settings_of_the_user_stay(monkeypatch, variable):
    """Whoever configures Fast DDS gets what he configures."""
    monkeypatch.setenv(variable, "/of/the/user.xml")
    assert discovery_settings() == {}
