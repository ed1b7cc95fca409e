"""Files that nobody needs and somebody sends: each is refused with one clear line, and nothing is exhausted."""

import os
from pathlib import Path

import pytest
from mechanisms import joint, link, urdf

from constrained_sim import Robot, load_config
from constrained_sim.exceptions import ConstrainedSimError, ModelError

LEG = Path(__file__).parents[1] / "urdf" / "leg.urdf"
ROBOT = f'robot: {{urdf: "{LEG}"}}\n'


def bomb(first: str, line: str, levels: int = 12) -> str:
    """Return YAML each level of which stands for nine of the level before."""
    lines = [f"a0: &a0 {first}"]
    lines += [line.format(this=i, others=", ".join([f"*a{i - 1}"] * 9)) for i in range(1, levels)]
    return "\n".join(lines)


PARAMETER_FILES = {
    "alias bomb": (bomb("[x, x, x]", "a{this}: &a{this} [{others}]"), "aliases written out"),
    "merge bomb": (bomb("{k: 1, l: 2}", "a{this}: &a{this}\n  <<: [{others}]"), "aliases written out"),
    "many keys": ("".join(f"k{i}: {i}\n" for i in range(300_000)), "bytes"),
    "many values": ("- 1\n" * 100_000, "more than"),
    "deep lists": ("a: " + "[" * 100_000, "levels"),
    "deep mappings": ("a: " + "{a: " * 30_000, "levels"),
    "deep dashes": ("- " * 100_000 + "x", "levels"),
    "alias in itself": ("a: &a [*a]", "alias inside"),
    "key twice": (ROBOT + "dt: 0.001\ndt: 0.002\n", "'dt' is there twice"),
    "key twice inside": ("robot:\n  urdf: a\n  urdf: b\n", "'urdf' is there twice"),
    "no date": (ROBOT + "dt: 2001-99-99", "dt"),
    "sexagesimal": (ROBOT + "dt: 1:30", "'1:30'"),
    "no whole number": (ROBOT + 'dt: !!int ""', "cannot be read"),
    "no number": (ROBOT + "dt: !!float x", "cannot be read"),
    "no boolean": (ROBOT + "dt: !!bool x", "cannot be read"),
    "5000 digits": (ROBOT + "dt: " + "1" * 5000, "cannot be read"),
    "400 digits": (ROBOT + "dt: " + "1" * 400, "dt"),
    "400 digits in a list": (ROBOT + "initial: {base_pose: [" + "1" * 400 + ", 0, 0, 0, 0, 0, 1]}", "base"),
    "object": (ROBOT + "dt: !!python/object:os.system {}", "constructor"),
    "list as key": (ROBOT + "? [1, 2]\n: 3", "unhashable"),
    "number as key": (ROBOT + "3: 3", "key 3"),
    "nothing as key": (ROBOT + "null: 3", "key None"),
    "NUL in a path": ('robot: {urdf: "a\\0b"}', "null byte"),
    "NUL in a package": ('robot: {urdf: "package://a\\0b/c"}', "package"),
    "two documents": ("a: 1\n---\nb: 2\n", "single document"),
    "long text": (ROBOT + "dt: " + "x" * 400_000, "a number"),
    "tab": ("a:\n\t- b\n", "not valid YAML"),
}


@pytest.mark.parametrize("name", PARAMETER_FILES)
def test_parameter_files(tmp_path, name: str) -> None:  # type: ignore[no-untyped-def]
    """The refusal is one line that a terminal can show."""
    text, words = PARAMETER_FILES[name]
    (tmp_path / "file.yaml").write_text(text)
    with pytest.raises(ConstrainedSimError) as refusal:
        load_config(tmp_path / "file.yaml")
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 1500


def test_aliases_and_merges_of_ordinary_size(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """They are read; a key beside a merge takes the place of what is merged."""
    text = f"robot: &robot {{urdf: '{LEG}'}}\ndt: &dt 1e-3\ncontrol_period: *dt\n"
    more = "contacts:\n  foot: &foot {link: foot, friction: 0.8}\n  other: {<<: *foot, friction: 0.1}\n"
    (tmp_path / "file.yaml").write_text(text + more)
    config = load_config(tmp_path / "file.yaml")
    assert config.node.control_period == config.simulation.dt == 1e-3
    assert [contact.friction for contact in config.constraints] == [0.8, 0.1]


def test_what_is_no_regular_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Pipes, devices and directories are named as what they are; nobody waits for a writer."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero", "/dev/urandom", "a\0b", tmp_path / "missing"):
        with pytest.raises(ConstrainedSimError, match="the path of a file" if path == "a\0b" else "cannot read"):
            load_config(path)
        for read in (Robot.from_urdf, Robot.from_sdf, Robot.from_mjcf):
            with pytest.raises(ModelError, match="cannot read"):
                read(path)


def chain(count: int, star: bool = False, kind: str = "fixed") -> str:
    """Return a URDF of links in a row, or all on one."""
    parts = ['<link name="l0"/>']
    for i in range(1, count + 1):
        parent = "l0" if star or i == 1 else f"l{i - 1}"
        parts += [link(f"l{i}", 1.0), joint(f"j{i}", "continuous" if i == 1 else kind, parent, f"l{i}")]
    return urdf(*parts)


def sdf(count: int, kind: str) -> str:
    """Return an SDF of links in a row."""
    parts = ['<link name="l0"/>']
    for i in range(1, count + 1):
        ends = f"<parent>l{i - 1}</parent><child>l{i}</child><axis><xyz>0 1 0</xyz></axis>"
        parts.append(f'<link name="l{i}"/><joint name="j{i}" type="{kind}">{ends}</joint>')
    return f'<sdf version="1.9"><model name="m">{"".join(parts)}</model></sdf>'


DESCRIPTIONS = {
    "6000 fixed links in a row": (Robot.from_urdf, lambda: chain(6000), "links"),
    "2000 fixed links in a row": (Robot.from_urdf, lambda: chain(2000), "in a row"),
    "20000 links on one": (Robot.from_urdf, lambda: chain(20_000, star=True), "elements"),
    "6000 moving links": (Robot.from_urdf, lambda: chain(6000, kind="continuous"), "allowed"),
    "600 joints on one link": (Robot.from_urdf, lambda: chain(600, True, "continuous"), "600 moving joints"),
    "10 MB": (Robot.from_urdf, lambda: urdf("<link name='a'/>", "x" * 10_000_000), "characters"),
    "many elements": (Robot.from_urdf, lambda: urdf("<a/>" * 1_500_000), "elements"),
    "many attributes": (
        Robot.from_urdf,
        lambda: "<robot " + " ".join(f"a{i}='1'" for i in range(50_000)) + "/>",
        "attributes",
    ),
    "deep elements": (Robot.from_urdf, lambda: urdf("<a>" * 100_000), "inside each other"),
    "entities": (Robot.from_urdf, lambda: '<!DOCTYPE r [<!ENTITY a "ha">]><robot name="&a;"/>', "entity 'a'"),
    "surrogate": (Robot.from_urdf, lambda: '<robot name="\ud800"/>', "surrogates"),
    "NUL": (Robot.from_urdf, lambda: '<robot name="\0"/>', "line 1"),
    "no end": (Robot.from_urdf, lambda: "<robot>\n<link", "line 2"),
    "1500 moving links of an SDF": (Robot.from_sdf, lambda: sdf(1500, "revolute"), "1500 moving joints"),
    "3000 fixed links of an SDF": (Robot.from_sdf, lambda: sdf(3000, "fixed"), "in a row"),
    "poses of an SDF in a row": (
        Robot.from_sdf,
        lambda: (
            "<sdf><model name='m'>"
            + "".join(f"<frame name='f{i}'><pose relative_to='f{i + 1}'/></frame>" for i in range(40_000))
            + "</model></sdf>"
        ),
        "allowed",
    ),
    "bodies of an MJCF in a row": (
        Robot.from_mjcf,
        lambda: "<mujoco><worldbody>" + "<body>" * 6000 + "</body>" * 6000 + "</worldbody></mujoco>",
        "inside each other",
    ),
    "many bodies of an MJCF": (
        Robot.from_mjcf,
        lambda: "<mujoco><worldbody>" + "<body><joint/><geom size='1'/></body>" * 6000 + "</worldbody></mujoco>",
        "allowed",
    ),
    "device included by an MJCF": (
        Robot.from_mjcf,
        lambda: "<mujoco><include file='/dev/zero'/></mujoco>",
        "regular file",
    ),
}


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_descriptions(name: str) -> None:
    """Too deep, too long or no XML: refused, where libraries behind the readers would end the process."""
    read, text, words = DESCRIPTIONS[name]
    with pytest.raises(ModelError) as refusal:
        read(text())
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value) and len(str(refusal.value)) < 1500
