"""The pages that are made from the code, without Sphinx: nothing public is missing from them."""

import pickle
import re
import sys
import warnings
from dataclasses import fields

import numpy as np
import pytest
from mechanisms import ROOT

from constrained_sim import CONSTRAINTS, LAWS, SENSORS
from constrained_sim.cli.app import app
from constrained_sim.exceptions import (
    ConfigError,
    InexactContact,
    InvalidValue,
    NonFiniteState,
    NothingCollides,
    UnknownName,
)
from constrained_sim.options import NodeOptions, SimulationOptions

sys.path.append(str(ROOT / "docs" / "extensions"))

import api_pages
import reference_pages
import theory_figures


def test_every_public_name_is_on_one_page():
    """A name that no group of pages has, or that two have, is named here."""
    assert api_pages.ungrouped() == set()


@pytest.mark.parametrize("folder, page", [("msg", "messages.md"), ("srv", "services.md")])
def test_every_field_of_an_interface_is_on_its_page(folder, page):
    """Each file has its section, and each of its lines that declares something stands there."""
    text = reference_pages.PAGES[page]()
    for file in (ROOT / folder).glob(f"*.{folder}"):
        section = text.split(f"## {file.stem}\n")[1].split("\n## ")[0]
        declared = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
        assert declared and all(line in section for line in declared)


def test_every_parameter_is_described():
    """With a meaning, not only by its name."""
    rows = [line.split(" | ") for line in reference_pages.PAGES["node.md"]().splitlines() if line.startswith("| `")]
    described = {row[0].strip("| `*"): row[2] for row in rows}
    assert set(described) == {option.name for kind in (SimulationOptions, NodeOptions) for option in fields(kind)}
    assert all(len(meaning) > 5 for meaning in described.values())


def test_the_parameter_file_has_every_kind_that_a_file_can_declare():
    """Of constraints, sensors and laws; keys of the text are those that their readers ask for."""
    text = reference_pages.PAGES["parameter_file.md"]()
    from_python_only = {"custom", "point_contact"}
    assert all(f"### {kind}\n" in text for kind in {*CONSTRAINTS, *SENSORS} - from_python_only)
    assert all(f"`{law}`" in text for law in LAWS)
    assert "| `restitution_law` | `newton` |" in text and "| `orientation_noise` | `0.0` |" in text


def test_every_command_is_described():
    """With its options."""
    text = reference_pages.PAGES["commands.md"]()
    names = {command.name for command in app.registered_commands}
    assert names >= {"run", "plot", "replay", "recover", "compile", "list", "version"}
    assert all(f"## {name}\n" in text for name in names)
    assert "`--controller`" in text


def test_every_exception_and_warning_has_its_paragraph():
    """On the page to which its message points, under its name, and no other class has one."""
    text = (ROOT / "docs" / "why" / "index.md").read_text()
    paragraphs = re.findall(
        r"^### (\w+)\n\n(\S.*?)\n(?:\n|\Z)", text.partition("## Errors")[2], re.MULTILINE | re.DOTALL
    )
    assert sorted(name for name, _ in paragraphs) == sorted(api_pages.exception_names())
    assert all(len(paragraph) > 60 for _, paragraph in paragraphs)


def test_messages_end_with_a_command():
    """It explains the class, or the cause whose text the message has; the text alone is there too, copies included."""
    unknown, command = UnknownName("link", "thumb", ["tip"]), "(constrained_sim why UnknownName)"
    assert str(unknown) == str(pickle.loads(pickle.dumps(unknown))) == f"unknown link 'thumb', allowed: tip {command}"
    assert unknown.message == "unknown link 'thumb', allowed: tip"
    assert str(ConfigError(f"{unknown}, in a file")) == f"{unknown.message}, in a file {command}"
    assert str(NonFiniteState(3, 0.5, "it ended")).endswith("it ended (constrained_sim why NonFiniteState)")
    assert str(InexactContact(1e-7)).endswith("(constrained_sim why InexactContact)")
    assert str(InvalidValue("x", 1, "2")) == "x: got 1, allowed: 2 (constrained_sim why InvalidValue)"


def test_warnings_show_their_command():
    """However they are raised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("no geometry", NothingCollides, stacklevel=1)
    assert str(caught[0].message) == "no geometry (constrained_sim why NothingCollides)"


def test_pictures_of_the_theory():
    """Each is on its page, with the file that is drawn, whose text does not differ from time to time."""
    text = (ROOT / "docs" / "theory.md").read_text()
    for name, make in theory_figures.PICTURES.items():
        assert f"(images/theory/{name})" in text and (theory_figures.FOLDER / name).exists()
        picture = make()
        assert "<svg" in picture and picture == make()


@pytest.mark.parametrize("name", theory_figures.STEPPERS)
def test_steppers_have_the_order_that_the_picture_claims(name):
    """Slope of the logarithm of the error over that of the step, over all but the longest steps."""
    steps = theory_figures.DURATION / np.array(theory_figures.COUNTS)
    slope = np.polyfit(np.log(steps[2:]), np.log(theory_figures.errors(name)[2:]), 1)[0]
    assert slope == pytest.approx(theory_figures.STEPPERS[name][1], abs=0.15)
