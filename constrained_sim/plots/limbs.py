"""Groups joints and links by limb: a leg, an arm, the trunk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from constrained_sim.exceptions import UnknownName
from constrained_sim.robot import Robot

LIMB = 3
"""Least number of joints that a branch has to have for its parent to be a place where limbs begin."""


MOST = 0.7
"""Share of the joints of a limb whose words name it: those of its hand may have others."""


class Limbs:
    """Limbs of a robot, from its tree of joints; the name of an only one is empty.

    Limbs begin at the root, and where two branches or more of at least :data:`LIMB` joints leave one link: so legs and
    arms of a humanoid are limbs, the fingers of a hand and the rods of a closed loop are parts of one.
    """

    def __init__(self, robot: Robot) -> None:
        """Look at the tree of `robot`."""
        self._robot = robot
        self._parents = [int(parent) for parent in robot.model.parents]

    def of_joint(self, name: str) -> str:
        """Return the limb of a joint."""
        return self._names[self._starts[int(self._robot.model.getJointId(name))]]

    def of_link(self, name: str) -> str:
        """Return the limb of a link; empty for a link that the robot does not have."""
        try:
            joint, _ = self._robot.link_placement(name)
        except UnknownName:
            return ""
        return self._names[self._starts[joint]] if joint else ""

    @cached_property
    def _starts(self) -> list[int]:
        """Index of the first joint of the limb, for each joint; the free-flyer's own, 0 for the world."""
        children: list[list[int]] = [[] for _ in self._parents]
        sizes = [1] * len(self._parents)
        for joint in range(len(self._parents) - 1, 0, -1):
            children[self._parents[joint]].append(joint)
            sizes[self._parents[joint]] += sizes[joint]
        root = 1 if self._robot.floating_base else 0
        forks = {root} | {j for j, c in enumerate(children) if sum(sizes[child] >= LIMB for child in c) >= 2}
        starts = [0] * len(self._parents)
        for joint in range(1, len(self._parents)):
            parent = self._parents[joint]
            starts[joint] = joint if parent in forks or joint == root else starts[parent]
        return starts

    @cached_property
    def _names(self) -> dict[int, str]:
        """Name of each limb: the words that most of its joints have in common, else its first joint."""
        members: dict[int, list[str]] = {}
        for joint, start in enumerate(self._starts):
            if joint:
                members.setdefault(start, []).append(self._robot.model.names[joint])
        found = {start: common_words(names) or names[0] for start, names in members.items()}
        if len(found) == 1:
            return dict.fromkeys(found, "")
        taken = list(found.values())
        return {s: name if taken.count(name) == 1 else self._robot.model.names[s] for s, name in found.items()}


def common_words(names: Sequence[str]) -> str:
    """Return the words with which most of `names` begin, as the first does; words end at ``_ - .`` or space."""
    if len(names) < 2:
        return ""
    ends = [match.start() for match in re.finditer(r"[_\-. ]", names[0])]
    for end in reversed(ends):
        if sum(name.startswith(names[0][: end + 1]) for name in names) >= MOST * len(names):
            return names[0][:end]
    return ""
