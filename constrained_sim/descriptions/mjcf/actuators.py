"""Actuators of an MJCF: which joints they drive, within which efforts. Their gains are the controller's business."""

from __future__ import annotations

from math import inf
from xml.etree.ElementTree import Element

from constrained_sim.descriptions.document import Tag, where
from constrained_sim.descriptions.mjcf.settings import Compiler, Defaults, word_of
from constrained_sim.descriptions.mjcf.tendons import Tendons
from constrained_sim.descriptions.vocabulary import Ignored, numbers
from constrained_sim.exceptions import ModelError

Range = tuple[float, float]

UNBOUNDED = (-inf, inf)


class Actuators:
    """Reads all actuators of a file.

    Attributes:
        efforts: least and largest effort [N m, N] of each joint that an actuator drives.
    """

    def __init__(
        self,
        root: Element,
        compiler: Compiler,
        defaults: Defaults,
        joints: dict[str, str],
        tendons: Tendons,
        ignored: Ignored,
    ) -> None:
        """Read them.

        Args:
            root: of the file.
            compiler: its settings.
            defaults: its classes.
            joints: types by name.
            tendons: of the file.
            ignored: takes what is not used.

        Raises:
            ModelError: an actuator of what does not exist.
        """
        self.efforts: dict[str, Range] = {}
        self._compiler, self._defaults, self._joints, self._ignored = compiler, defaults, joints, ignored
        self._tendons = tendons
        for element in root.iterfind("actuator/*"):
            self._read(element.tag, defaults.applied(element))

    def _read(self, kind: str, element: Tag) -> None:
        targets = [key for key in ("joint", "jointinparent", "tendon", "site", "body", "cranksite") if element.get(key)]
        if len(targets) != 1:
            given = " and ".join(targets) or "nothing"
            raise ModelError(f"{where(element)}: got {given} to act on, allowed: one thing")
        target = element.get(targets[0], "")
        force = self._force(kind, element)
        if targets[0] in ("joint", "jointinparent"):
            if target not in self._joints:
                raise ModelError(f"{where(element)}: got joint {target!r}, allowed: {', '.join(self._joints)}")
            self._drive(element, target, numbers(element, "gear", (1.0,))[0], force)
        elif targets[0] == "tendon" and target not in self._tendons:
            raise ModelError(f"{where(element)}: got tendon {target!r}, allowed: {', '.join(self._tendons) or 'none'}")
        elif targets[0] == "tendon" and self._tendons[target]:
            self._ignored.add("tendon of an actuator", element, "each of its joints takes an effort of its own")
            for joint, ratio in self._tendons[target].items():
                self._drive(element, joint, ratio * numbers(element, "gear", (1.0,))[0], force)
        else:
            self._ignored.add(f"actuator on a {targets[0]}", element, "apply a wrench in its place")

    def _drive(self, element: Element, joint: str, gear: float, force: Range) -> None:
        """Add the efforts of an actuator to those of a joint."""
        before = self.efforts.get(joint, (0.0, 0.0))
        if self._joints[joint] not in ("hinge", "slide"):
            if force != UNBOUNDED:
                self._ignored.add("force limits of actuators on ball and free joints", element)
            force = UNBOUNDED
        ends = sorted(gear * end if gear else 0.0 for end in force)
        self.efforts[joint] = before[0] + ends[0], before[1] + ends[1]

    def _force(self, kind: str, element: Tag) -> Range:
        """Return the least and the largest force of an actuator."""
        lower, upper = UNBOUNDED
        gain = self._constant_gain(kind, element)
        if self._compiler.is_limited(element, "ctrllimited", "ctrlrange"):
            control = numbers(element, "ctrlrange")
            if gain is None:
                self._ignored.add(f"ctrlrange of <{kind}>", element, "it bounds set points, not forces")
            else:
                lower, upper = sorted(gain * end for end in control)
        if self._compiler.is_limited(element, "forcelimited", "forcerange"):
            least, largest = numbers(element, "forcerange")
            lower, upper = min(max(lower, least), largest), max(min(upper, largest), least)
        return lower, upper

    def _constant_gain(self, kind: str, element: Tag) -> float | None:
        """Return force per control where it is proportional; None elsewhere."""
        if kind == "motor":
            return 1.0
        if kind != "general":
            self._ignored.add(f"law of <{kind}>", element, "its joint takes the effort that the controller gives")
            return None
        gain = word_of(element, "gaintype", ("affine", "muscle", "dcmotor", "so3", "pid", "user", "fixed"))
        bias = word_of(element, "biastype", ("affine", "muscle", "dcmotor", "so3", "user", "none"))
        if gain != "fixed" or bias != "none" or element.get("dyntype", "none") == "integrator":
            self._ignored.add("gains of <general>", element, "they are the controller's business")
            return None
        return numbers(element, "gainprm", (1.0,))[0]
