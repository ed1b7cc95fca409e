"""Tables of the formats: whatever an element says is checked, refused or reported, on every path of every table."""

from collections import deque

import pytest

from constrained_sim.descriptions.document import Tag
from constrained_sim.descriptions.mjcf.vocabulary import MJCF
from constrained_sim.descriptions.sdf.vocabulary import SDF
from constrained_sim.descriptions.urdf.vocabulary import URDF
from constrained_sim.descriptions.vocabulary import Count, Ignored
from constrained_sim.exceptions import ModelError

ROOTS = {"URDF": (URDF, "robot"), "SDF": (SDF, "sdf"), "MJCF": (MJCF, "mujoco")}
RECURSIVE = ("frame", "body", "default", "model")


def paths(vocabulary, root):
    """Yield every path of tags from the root that a table allows, with the rule at its end."""
    waiting, seen = deque([((root,), vocabulary.rules[root])]), set()
    while waiting:
        path, rule = waiting.popleft()
        yield path, rule
        for tag in rule.children.split():
            if (path[-1], tag) not in seen and path.count(tag) < 1 + (tag in RECURSIVE):
                seen.add((path[-1], tag))
                waiting.append(((*path, tag), vocabulary.rule_for(path[-1], tag)))


EVERYWHERE = [
    pytest.param(vocabulary, path, rule, id=f"{vocabulary.format}-{'/'.join(path)}")
    for vocabulary, root in ROOTS.values()
    for path, rule in paths(vocabulary, root)
]


def tree(path, texts=""):
    """Return the root and the last of nested elements."""
    root = last = Tag(path[0])
    for tag in path[1:]:
        inner = Tag(tag)
        last.append(inner)
        last = inner
    for line, element in enumerate(root.iter(), 1):
        element.line = line
    last.text = texts
    return root, last


def check(vocabulary, root):
    """Return what is reported."""
    ignored = Ignored()
    vocabulary.check(root, ignored)
    return ignored.lines()


def text_for(rule):
    """Return a text that the rule allows."""
    return "" if not rule.text else " ".join(["0"] * max(Count.of(rule.text).least, 0))


@pytest.mark.parametrize(("vocabulary", "path", "rule"), EVERYWHERE)
def test_elements_that_say_nothing(vocabulary, path, rule):
    """Every element that a table knows may be empty, and is reached from the root."""
    root, _ = tree(path, text_for(rule))
    assert check(vocabulary, root) == ()


@pytest.mark.parametrize(("vocabulary", "path", "rule"), EVERYWHERE)
def test_numbers_are_numbers(vocabulary, path, rule):
    """Words, NaN, infinity where there must be none, and too many are refused with attribute and line."""
    for key, count in rule.counts.items():
        bad = ["x", "nan", "1,0", "1_0", "0x10", "0 0 0 nan"]
        bad += ["inf"] if count.is_finite else []
        bad += [" ".join(["1"] * (count.most + 1))] if count.most is not None else []
        for text in bad:
            root, last = tree(path, text_for(rule))
            last.set(key, text)
            with pytest.raises(ModelError, match=rf"'{key}' of <{path[-1]}>.*line {len(path)}"):
                check(vocabulary, root)
        root, last = tree(path, text_for(rule))
        last.set(key, " ".join(["1"] * max(count.least, 1)))
        assert check(vocabulary, root) == ()
    if rule.text:
        for text in ("x", "nan", "1 2 3 4 5 6 7 8"):
            with pytest.raises(ModelError, match=rf"<{path[-1]}>.*line {len(path)}"):
                check(vocabulary, tree(path, text)[0])


@pytest.mark.parametrize(("vocabulary", "path", "rule"), EVERYWHERE)
def test_what_is_not_used_is_reported_once(vocabulary, path, rule):
    """An attribute or an element that is read and not used gives one line, with where it stands first."""
    for key in rule.unused.split():
        root, last = tree(path, text_for(rule))
        last.set(key, "1")
        (line,) = check(vocabulary, root)
        assert line.startswith("read, not used: ")
        assert f"{key!r} of <{path[-1]}>" in line and f"line {len(path)}" in line
    for tag in rule.unused_children.split():
        root, last = tree(path, text_for(rule))
        for _ in range(3):
            last.append(Tag(tag, {"any": "thing"}))
        (line,) = check(vocabulary, root)
        assert f"<{tag}> in <{path[-1]}>" in line and "and 2 more" in line


@pytest.mark.parametrize(("vocabulary", "path", "rule"), EVERYWHERE)
def test_what_would_make_another_robot_is_refused(vocabulary, path, rule):
    """Unless its value says nothing."""
    for key, harmless in rule.refused.items():
        root, last = tree(path, text_for(rule))
        last.set(key, "0.7")
        with pytest.raises(ModelError, match=rf"'{key}' of <{path[-1]}>"):
            check(vocabulary, root)
        for value in harmless:
            last.set(key, value)
            assert check(vocabulary, root) == ()
    for tag in rule.refused_children:
        root, last = tree(path, text_for(rule))
        last.append(Tag(tag))
        last[-1].text = "something"
        with pytest.raises(ModelError, match=rf"<{tag}> in <{path[-1]}>"):
            check(vocabulary, root)


@pytest.mark.parametrize(("vocabulary", "path", "rule"), EVERYWHERE)
def test_what_nobody_knows_is_refused_or_reported(vocabulary, path, rule):
    """MuJoCo refuses attributes and elements that it does not know; URDF and SDF are extended by everybody."""
    for unknown in ("attribute", "element"):
        root, last = tree(path, text_for(rule))
        if unknown == "attribute":
            last.set("no-such", "1")
        else:
            last.append(Tag("no-such"))
        if vocabulary.is_closed or (unknown == "element" and rule.is_closed):
            with pytest.raises(ModelError, match=r"no-such.*not understood"):
                check(vocabulary, root)
        else:
            (line,) = check(vocabulary, root)
            assert "no-such" in line and f"not part of {vocabulary.format}" in line


@pytest.mark.parametrize(("vocabulary", "path", "rule"), EVERYWHERE)
def test_what_may_be_there_once_is_refused_twice(vocabulary, path, rule):
    """A second one would be dropped."""
    for tag in set(rule.children.split()) & set(vocabulary.once.split()):
        root, last = tree(path, text_for(rule))
        for _ in range(2):
            last.append(Tag(tag))
            last[-1].text = text_for(vocabulary.rule_for(path[-1], tag))
        with pytest.raises(ModelError, match=rf"2 <{tag}>"):
            check(vocabulary, root)
