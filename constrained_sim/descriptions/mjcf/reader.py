"""MJCF: bodies, joints, springs, equalities, efforts of actuators and collision geometry, as MuJoCo means them."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
import pinocchio as pin

from constrained_sim.descriptions.description import Description, check_size
from constrained_sim.descriptions.document import Tag, descend, parse_xml, read_text, where
from constrained_sim.descriptions.mjcf.actuators import Actuators
from constrained_sim.descriptions.mjcf.bodies import Bodies
from constrained_sim.descriptions.mjcf.equalities import Scenery, read_equalities
from constrained_sim.descriptions.mjcf.geoms import Geoms
from constrained_sim.descriptions.mjcf.model import ModelBuilder, settle_masses
from constrained_sim.descriptions.mjcf.settings import Compiler, Defaults, flags_of
from constrained_sim.descriptions.mjcf.tendons import read_tendons
from constrained_sim.descriptions.mjcf.vocabulary import MJCF
from constrained_sim.descriptions.vocabulary import Ignored, numbers
from constrained_sim.exceptions import ModelError
from constrained_sim.robot import WORLD

MOST_INCLUDES = 100


def read_mjcf(xml: str, folder: Path | None = None) -> Description:
    """Read an MJCF.

    Positions of joints are MuJoCo's ``qpos``, that of a free body is its pose in the world. In the neutral
    configuration those of joints are 0, and free bodies are where the file places them. Equalities hold in the
    configuration of the file. Joints that no actuator moves are passive, if there are actuators. Of what has no name
    gets one, such as ``joint 2``.

    Args:
        xml: the text.
        folder: of its file, where included files and meshes are looked up.

    Raises:
        ModelError: not an MJCF, or something in it that is not supported; the message names it and its line.
    """
    root, ignored = parse_xml(xml, "MJCF"), Ignored()
    if root.tag != "mujoco":
        raise ModelError(f"not a valid MJCF: got the root <{root.tag}>, allowed: <mujoco>")
    _include(root, folder or Path())
    MJCF.check(root, ignored)
    compiler, defaults, disabled = Compiler.of(root), Defaults.of(root), flags_of(root)
    geoms = Geoms(root, compiler, defaults, folder, ignored)
    read = Bodies(root, compiler, defaults, geoms, ignored)
    bodies = read.bodies
    joints = {entry.name: entry for body in bodies for entry in body.joints}
    check_size("MJCF", len(bodies), len(joints))
    settle_masses(bodies, compiler)
    built = ModelBuilder(bodies, compiler, disabled, ignored)
    types = {name: entry.type for name, entry in joints.items()}
    tendons = read_tendons(root, compiler, defaults, types, ignored)
    efforts = Actuators(root, compiler, defaults, types, tendons, ignored).efforts
    built.limit_efforts(efforts, joints)
    built.model.name = root.get("model", "")
    built.model.gravity = pin.Motion(_gravity(root, disabled), np.zeros(3))
    sites = built.sites | {name: (WORLD, placement) for name, placement in read.world_sites.items()}
    positions = {name: entry.reference for name, entry in joints.items() if entry.type in ("hinge", "slide")}
    scenery = Scenery(built.placements, sites, positions, tendons)
    constraints = () if "equality" in disabled else read_equalities(root, defaults, scenery, ignored)
    driven = {} if "actuation" in disabled else efforts
    acting = root.find("actuator/*") is not None
    passive = tuple(name for name, kind in types.items() if kind == "free" or (acting and name not in driven))
    elements = tuple(element for body in bodies for element in geoms.collisions(body.name, body.geoms))
    return Description(
        built.model,
        constraints,
        bool(bodies) and next(iter(types.values()), "") == "free",
        passive,
        built.springs,
        collisions=elements,
        ignored=ignored.lines(),
        effort_ranges=built.effort_ranges,
        visuals=tuple(visual for body in bodies for visual in geoms.visuals(body.name, body.geoms)),
        free_poses=built.free_poses,
    )


def _gravity(root: Element, disabled: frozenset[str]) -> np.ndarray:
    """Return gravity (3,) [m/s^2]."""
    given = [option for option in root.findall("option") if option.get("gravity") is not None]
    if "gravity" in disabled:
        return np.zeros(3)
    return np.array(numbers(given[-1], "gravity") if given else (0.0, 0.0, -9.81))


def _include(root: Tag, folder: Path) -> None:
    """Put the content of included files where they are included.

    Raises:
        ModelError: a file that cannot be read, is included twice, or is not XML.
    """
    seen: set[str] = set()
    while True:
        found = [(element, parent) for element, parent in descend(root) if element.tag == "include"]
        if not found:
            return
        for element, parent in found:
            name = element.get("file", "")
            if not name or name in seen or parent is None or len(seen) >= MOST_INCLUDES:
                raise ModelError(f"{where(element)}: got the file {name!r}, allowed: a file, each once")
            seen.add(name)
            included = parse_xml(read_text(folder / name), "MJCF")
            for tag, _ in descend(included):
                tag.file = tag.file or name  # type: ignore[attr-defined]
            place = list(parent).index(element)
            parent[place : place + 1] = list(included)
