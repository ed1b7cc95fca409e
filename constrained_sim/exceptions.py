"""Exceptions of constrained_sim: every refusal says what was given and what is allowed, and carries the data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

MOST_SHOWN, MOST_NAMES = 300, 40
"""Characters of a value, and names out of a list, that a message shows at most."""


EXPLANATION = "constrained_sim why"
"""The command that explains a class of this module, by its name, as ``docs/why/index.md`` does."""

COMMAND = re.compile(rf" ?\({EXPLANATION} \w+\)")


class Explained(Exception):
    """Base class of all that is raised or warned of on purpose; its message ends with the command that explains it.

    Attributes:
        message: the text alone, without the command.
    """

    _said = ""

    def _say(self, text: str) -> None:
        """Set the text; ``args`` stay what ``__init__`` was given, of which other processes make the same again."""
        self._said = text

    @property
    def message(self) -> str:
        """Return the text alone; that of a cause may stand in it, without its command."""
        return COMMAND.sub("", self._text())

    def _text(self) -> str:
        """Return the text as it was given."""
        return self._said or " ".join(map(str, self.args))

    def __str__(self) -> str:
        """Return the text and a command: that of a cause in the text, else that of this class."""
        text = self._text()
        commands = COMMAND.findall(text) or [command_of(type(self))]
        return f"{COMMAND.sub('', text)}{commands[-1]}"


def command_of(kind: type[Explained]) -> str:
    """Return the command that explains `kind`, or the first of its bases that this module has."""
    known = next(base for base in kind.__mro__ if base.__module__ == __name__)
    return f" ({EXPLANATION} {known.__name__})"


class ConstrainedSimError(Explained):
    """Base class of all errors raised on purpose by this package; each can be pickled, as between processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made: with the message and the attributes, past ``__init__``."""
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[ConstrainedSimError], args: tuple[Any, ...], attributes: dict[str, Any]) -> Any:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


def shown(value: Any) -> str:
    """Return `value` as text for a message, cut where it is long."""
    try:
        text = " ".join(repr(value).split("\n"))
    except Exception:  # a message is not the place for the errors of other classes
        text = f"an instance of {type(value).__name__}"
    text = text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
    return f"{text} of shape {value.shape}" if hasattr(value, "shape") else text


def listed(names: Iterable[str]) -> str:
    """Return `names` as text for a message, the first of them where they are many."""
    every = tuple(map(str, names))
    more = len(every) - MOST_NAMES
    return ", ".join(every[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "") or "(none)"


class InvalidValue(ConstrainedSimError, ValueError):
    """A value of the right kind that is not allowed: NaN, a negative friction, a wrong length.

    Attributes:
        what: what the value is for, e.g. ``"friction of contact 'foot'"``.
        value: the offending value.
    """

    def __init__(self, what: str, value: Any, allowed: str) -> None:
        """Say that `what` was `value`, and what is `allowed` instead."""
        super().__init__(f"{what}: got {shown(value)}, allowed: {allowed}")
        self.what, self.value, self.allowed = what, value, allowed


class UnknownName(ConstrainedSimError, KeyError):
    """A name that does not exist: link, joint, solver, constraint, key of a configuration.

    Attributes:
        kind: what was looked up, e.g. ``"link"``.
        name: the name that was given.
        known: the names that exist.
    """

    def __init__(self, kind: str, name: Any, known: Iterable[str]) -> None:
        """Say that there is no `kind` called `name`, and list those that are `known`."""
        self.kind, self.name, self.known = kind, name, tuple(known)
        super().__init__(f"unknown {kind} {shown(name)}, allowed: {listed(self.known)}")


class DuplicateName(ConstrainedSimError, ValueError):
    """A constraint, contact or object whose name is taken already.

    Attributes:
        name: the name given twice.
    """

    def __init__(self, name: str, what: str = "contacts and constraints") -> None:
        """Say that `name` is taken among names of `what`."""
        super().__init__(f"the name {name!r} is taken already; names of {what} are unique")
        self.name = name


class ModelError(ConstrainedSimError):
    """A robot description that cannot be read or cannot be simulated (massless moving joint, ...)."""


class ConfigError(ConstrainedSimError):
    """A configuration file that cannot be read, or holds a key that nobody reads."""


class ViolatedConstraint(ConstrainedSimError):
    """A constraint that the robot does not satisfy where it should.

    Attributes:
        name: the constraint.
        violation: largest ``|phi|`` [m, rad], or depth of the penetration [m].
        tolerance: what is allowed.
        others: constraints that are violated too.
    """

    def __init__(
        self,
        name: str,
        violation: float,
        tolerance: float,
        where: str = "at this configuration",
        others: Iterable[str] = (),
        remedy: str = "",
    ) -> None:
        """Say by how much `name` is violated, and where; and what helps."""
        self.name, self.violation, self.tolerance, self.others = name, violation, tolerance, tuple(others)
        too = f"; violated too: {', '.join(map(repr, self.others))}" if self.others else ""
        what = f"{name!r} is violated by {violation:.6g} (m or rad) {where}, allowed: {tolerance:.6g}{too}"
        super().__init__(what + (f"; {remedy}" if remedy else ""))


class NonFiniteState(ConstrainedSimError):
    """A step that failed, or whose result is not finite; the state before it is kept.

    Attributes:
        step: number of the step.
        t: simulated time at its beginning [s].
    """

    def __init__(self, step: int, t: float, why: str) -> None:
        """Say which step failed, and why."""
        super().__init__(f"step {step} (t = {t:.9g} s) failed: {why}")
        self.step, self.t = step, t


class NotSupported(ConstrainedSimError, ValueError):
    """A constraint that the chosen solver or stepper cannot do.

    Attributes:
        by: the solver or stepper, e.g. ``"solver 'gauss'"``.
        constraint: name of the constraint.
    """

    def __init__(self, by: str, constraint: str, supported: str) -> None:
        """Say that `by` cannot do `constraint`, and what is `supported`."""
        super().__init__(f"{by} cannot do {constraint!r}, allowed: {supported}")
        self.by, self.constraint = by, constraint


class NonFiniteMotion(ConstrainedSimError):
    """A motion that is not finite: it goes to infinity within a step, or follows from values that are too large."""


class InconsistentConstraints(ConstrainedSimError):
    """Rows that contradict each other, where this was to be refused.

    Attributes:
        residual: ``|J x - b|`` relative to its terms.
    """

    def __init__(self, residual: float) -> None:
        """Say by how much the rows cannot be satisfied at once."""
        super().__init__(
            f"constraint rows contradict each other: no motion satisfies them all (relative residual {residual:.3g}); "
            "remove one, or allow the least-squares motion"
        )
        self.residual = residual


EXTRAS = {
    "example-robot-data": "robots",
    "distributed": "campaign",
    "imageio": "viewer",
    "imageio_ffmpeg": "viewer",
    "matplotlib": "plot",
    "mcap": "bag",
    "plotly": "report",
    "proxsuite": "gauss",
    "psutil": "campaign",
    "pyarrow": "campaign",
    "pytest": "test",
    "rosbags": "bag",
    "viser": "viewer",
    "xacro": "xacro",
}
"""Extras of this package that bring a library, by its name on PyPI."""


class MissingLibrary(ConstrainedSimError, ImportError):
    """An optional library that is not installed.

    Attributes:
        library: name on PyPI, or ``ROS 2``, which pip alone does not install.
    """

    def __init__(self, library: str, needed_for: str) -> None:
        """Say what needs `library`, and how to get it."""
        if library == "ROS 2":
            how = "source a ROS 2 workspace in which constrained_sim is built"
        else:
            extra = EXTRAS.get(library)
            how = f"pip install {library}" + (f" (it comes with constrained_sim[{extra}])" if extra else "")
        super().__init__(f"{needed_for} needs the library {library!r}: {how}")
        self.library = library


class MissingProgram(ConstrainedSimError):
    """A program of the system that is not installed.

    Attributes:
        program: its name.
    """

    def __init__(self, program: str, needed_for: str, how: str) -> None:
        """Say what needs `program`, and `how` to install it."""
        super().__init__(f"{needed_for} needs the program {program!r}: {how}")
        self.program = program


class ContactNotSolved(ConstrainedSimError):
    """A contact problem for which no method found a solution, because there is none or by rounding.

    Attributes:
        residual: relative residual of the best candidate.
    """

    def __init__(self, residual: float) -> None:
        """Say how far from a solution the best candidate was."""
        super().__init__(
            f"no solution of the contact problem was found (relative residual {residual:.3g}); there is none where "
            "constraints drive bodies into each other or a joint past its limit, and there may be none for "
            "accelerations with friction"
        )
        self.residual = residual


class InexactContact(Explained, UserWarning):
    """Contact impulses that no method found exactly, but one closely enough to go on.

    Attributes:
        residual: relative residual of the contact law.
    """

    def __init__(self, residual: float) -> None:
        """Say how far from a solution the impulses are, to the next power of ten: Python shows each text only once."""
        bound = 10.0 ** math.ceil(math.log10(residual))
        self._say(
            f"a contact problem was solved to a relative residual below {bound:.0e} only; contacts whose rows nearly "
            "depend on each other do that: contact_tolerance [N s] says what is good enough, and saves the attempts"
        )
        self.residual = residual


class UnphysicalInertia(Explained, UserWarning):
    """An inertia in a robot description that no body has, and that is used as it stands."""


class NothingCollides(Explained, UserWarning):
    """A robot whose description has no collision geometry, in a simulation with a scene that it could meet."""


class LightJoint(Explained, UserWarning):
    """A joint that moves next to nothing at this configuration: inertia times acceleration is nearly singular.

    Attributes:
        joint: its name.
        share: of the inertia that it moves while the joints behind it are locked, what is left when they give way.
    """

    def __init__(self, joint: str, share: float) -> None:
        """Say what `share` of its inertia is left to `joint`."""
        self._say(
            f"joint {joint!r} moves next to no inertia at this configuration where the joints behind it give way "
            f"({share:.1e} of what it moves while they are locked): the motion may blow up; give the links there an "
            "<inertial>, or the joints an armature (Robot.with_joints)"
        )
        self.joint, self.share = joint, share


class MovedByAssembly(Explained, UserWarning):
    """Positions of a start or a reset at which the constraints do not hold, and which ``assemble`` has moved.

    Attributes:
        positions: what was given and where the joint is now [rad, m], by joint.
    """

    def __init__(self, positions: Mapping[str, tuple[float, float]]) -> None:
        """Say which joints were moved."""
        self._say(
            "the simulation begins elsewhere than asked, as constraints have to hold (assemble: true): "
            + ", ".join(f"{name} at {now:.6g}, given {given:.6g}" for name, (given, now) in positions.items())
        )
        self.positions = dict(positions)


class BeyondLimits(Explained, UserWarning):
    """Positions beyond the limits of their joints.

    Attributes:
        positions: what was given, and lower and upper limit [rad, m], by joint.
    """

    def __init__(self, positions: Mapping[str, tuple[float, float, float]]) -> None:
        """Say which joints are beyond their limits."""
        self._say(
            "positions beyond the limits of joints: "
            + ", ".join(
                f"{name} at {at:.6g}, limits {low:.6g} to {up:.6g}" for name, (at, low, up) in positions.items()
            )
            + " [rad, m]; are these degrees?"
        )
        self.positions = dict(positions)


class WrongDerivative(Explained, UserWarning):
    """A function of a user's constraint that does not fit the others; the motion will leave the constraint.

    Attributes:
        constraint: its name.
        function: ``"jacobian"``, ``"velocity"`` or ``"gamma"``.
        given: the entry that fits worst.
        found: the same by differences.
    """

    def __init__(self, constraint: str, function: str, where: str, given: float, found: float) -> None:
        """Say which entry of `function` is `given`, and what differences give."""
        of = {"jacobian": "phi, or of velocity where there is no phi", "velocity": "phi", "gamma": "velocity"}[function]
        self._say(
            f"constraint {constraint!r}: its {function} ({where}) is {given:.6g}, differences of its {of} give "
            f"{found:.6g}; check_constraint shows all entries"
        )
        self.constraint, self.function, self.given, self.found = constraint, function, given, found


class CoarseStep(Explained, UserWarning):
    """A step that is too long to resolve the vibration of a soft contact; forces are stable, but not accurate.

    Attributes:
        contact: its name.
        dt: the step [s].
    """

    def __init__(self, contact: str, dt: float, angle: float, resolved: float) -> None:
        """Say that a step of `dt` [s] turns the vibration of `contact` by more than the `resolved` angle [rad]."""
        self._say(
            f"contact {contact!r}: its stiffness vibrates by {angle:.3g} rad within one step of {dt:.3g} s; "
            f"forces are accurate below {resolved} rad: take a shorter step, or less stiffness or damping"
        )
        self.contact, self.dt = contact, dt


class FastJoints(Explained, UserWarning):
    """Joints that turn so far within a step that no part of it is accurate: what that errs is limited by the work.

    Attributes:
        dt: the step [s].
    """

    def __init__(self, dt: float) -> None:
        """Say that this happens at steps of `dt` [s]."""
        self._say(
            f"joints or bodies turn so far within a step of {dt:.3g} s that its energy is not that of the work, even "
            "in sixteenths: the motion is not accurate there; take a shorter step, or give joints that move light "
            "links an armature or damping"
        )
        self.dt = dt


class KernelsNotKept(Explained, UserWarning):
    """Compiled kernels that the next process, or the next start of the machine, compiles again.

    Attributes:
        folder: where they lie; None: nowhere.
    """

    def __init__(self, folder: Path | None) -> None:
        """Say that kernels lie in the temporary `folder`, or are lost with this process."""
        self._say(
            "no folder for compiled kernels can be written to, neither beside the package nor the user's cache; "
            + (f"they are kept in {folder} for now" if folder else "every process compiles them again")
            + "; run `python -m constrained_sim compile` as a user who may write there, or set NUMBA_CACHE_DIR"
        )
        self.folder = folder


class ThreadsNotBounded(Explained, UserWarning):
    """Results whose last bits may depend on how many threads BLAS has."""

    def __init__(self, variable: str) -> None:
        """Name the environment `variable` that bounds them."""
        self._say(
            f"threadpoolctl is not installed: the last bits depend on the number of BLAS threads; pip install "
            f"threadpoolctl, or set {variable}=1 before Python starts"
        )


class NotFollowed(ConstrainedSimError):
    """A motion that the actuators cannot give.

    Attributes:
        directions: names of the independent velocities whose accelerations are missed.
    """

    def __init__(self, directions: Iterable[str], how: str = "") -> None:
        """Name the `directions` that cannot be followed."""
        self.directions = tuple(directions)
        super().__init__(
            f"the actuators cannot give the accelerations of {', '.join(self.directions)}{how and ' ' + how}; "
            "actuate more joints, or ask for accelerations that the others can give"
        )


class ControllerFailed(ConstrainedSimError):
    """A controller that ended by itself.

    Attributes:
        controller: what was started.
        how: it ended, e.g. ``"was killed by SIGKILL"``.
        stderr: what it wrote to standard error.
    """

    def __init__(self, controller: str, how: str, t: float, stderr: str) -> None:
        """Say how `controller` ended, at which simulated time `t` [s], and what it wrote last."""
        super().__init__(
            f"the controller {controller} {how}, at t = {t:.9g} s (simulated); "
            f"its standard error{' ends:' if stderr else ' is empty'}\n{_tail(stderr)}".rstrip()
        )
        self.controller, self.how, self.stderr = controller, how, stderr

    @classmethod
    def by_exit(cls, controller: str, t: float, error: SystemExit) -> ControllerFailed:
        """Return that `controller` called ``sys.exit`` in this process, at which simulated time `t` [s]."""
        return cls(controller, f"called sys.exit({error.code!r})", t, error.code if isinstance(error.code, str) else "")


class SimulationFailed(ConstrainedSimError):
    """A simulation that cannot go on: its state would not be finite, nobody drives it, or its process ended."""


class NoAnswer(ConstrainedSimError, TimeoutError):
    """Something that was waited for and did not come; the message names what is missing."""


class RunsFailed(ConstrainedSimError):
    """A study whose runs cannot be begun.

    Attributes:
        stderr: what their process wrote.
    """

    def __init__(self, how: str, stderr: str) -> None:
        """Say `how` it failed, and what was written last."""
        super().__init__(f"{how}; it wrote{chr(10) if stderr else ' nothing'}{_tail(stderr)}")
        self.stderr = stderr


class StudyInterrupted(ConstrainedSimError):
    """A study that did not finish; the runs that are done are kept.

    Attributes:
        directory: of the results.
        done: number of runs in it.
        runs: number of runs of the study.
    """

    def __init__(self, directory: str, done: int, runs: int, why: str) -> None:
        """Say how far it came, and `why` no further."""
        super().__init__(
            f"the study ended after {done} of {runs} runs, which are in {directory!r} (--resume does the rest): {why}"
        )
        self.directory, self.done, self.runs = directory, done, runs


TAIL_LINES = 30


def _tail(text: str) -> str:
    """Return the last lines of `text`."""
    return "\n".join(text.rstrip().splitlines()[-TAIL_LINES:])
