"""The links and joints of a URDF as a tree."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from constrained_sim.descriptions.description import LONGEST_CHAIN
from constrained_sim.descriptions.document import where
from constrained_sim.descriptions.vocabulary import needed
from constrained_sim.exceptions import ModelError


def named_elements(root: Element, tag: str) -> dict[str, Element]:
    """Return the links or joints by name.

    Raises:
        ModelError: none has links, or a name that is missing or there twice.
    """
    found: dict[str, Element] = {}
    for element in root.findall(tag):
        name = needed(element, "name")
        if name in found:
            raise ModelError(f"{tag} {name!r} is there twice, {where(found[name])} and {where(element)}; allowed: once")
        found[name] = element
    if not found and tag == "link":
        raise ModelError("not a valid URDF: got no <link>, allowed: at least one")
    return found


def parents_first(links: dict[str, Element], joints: dict[str, Element]) -> list[str]:
    """Return the links, parents first.

    Raises:
        ModelError: links that do not exist, have two parents, form a circle or several trees, or too long a chain.
    """
    above: dict[str, tuple[str, Element]] = {}
    for joint in joints.values():
        ends = []
        for end in ("parent", "child"):
            element = joint.find(end)
            ends.append(needed(joint if element is None else element, "link" if element is not None else end))
            if ends[-1] not in links:
                raise ModelError(f"{where(joint)}: got the {end} link {ends[-1]!r}, allowed: a <link> of this file")
        parent, child = ends
        if child in above:
            other = above[child][1]
            raise ModelError(
                f"link {child!r} is the child of two joints, {where(other)} and {where(joint)}: a loop; allowed: one "
                "parent each, loops are closed by constraints"
            )
        above[child] = parent, joint
    roots = [name for name in links if name not in above]
    if len(roots) != 1:
        raise ModelError(
            f"root links of the URDF: got {', '.join(roots[:5]) or 'none, a loop'}; allowed: one root link"
        )
    return _ordered(roots[0], links, {child: parent for child, (parent, _) in above.items()})


def _ordered(root: str, links: dict[str, Element], parents: dict[str, str]) -> list[str]:
    depths, order = {root: 1}, [root]
    children: dict[str, list[str]] = {}
    for child, parent in parents.items():
        children.setdefault(parent, []).append(child)
    for link in order:
        if depths[link] > LONGEST_CHAIN:
            raise ModelError(
                f"{where(links[link])}: got more than {LONGEST_CHAIN} links in a row, allowed: at most that"
            )
        for child in children.get(link, ()):
            depths[child] = depths[link] + 1
            order.append(child)
    lost = [name for name in links if name not in depths]
    if lost:
        raise ModelError(f"links in a loop without a root: {', '.join(lost[:5])}; allowed: one root link")
    return order
