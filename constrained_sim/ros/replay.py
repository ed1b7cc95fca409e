"""`replay BAG`: simulates a recording again from its inputs and compares everything that follows bit by bit."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from constrained_sim import msg
from constrained_sim.compilation.background import BACKGROUND
from constrained_sim.config import read_config
from constrained_sim.exceptions import ConfigError, ConstrainedSimError
from constrained_sim.nanoseconds import seconds_of
from constrained_sim.ros.bag import Record, bag_file, read_records
from constrained_sim.ros.conversions import JointNames
from constrained_sim.ros.declarations import wrench_from_topic
from constrained_sim.ros.message_json import commands_from_json, from_json, to_plain
from constrained_sim.ros.message_types import TRANSFORMS, message_type, type_name
from constrained_sim.ros.outputs import Outputs
from constrained_sim.ros.recorded_setup import changes_since, with_former_defaults
from constrained_sim.ros.requests import Requests
from constrained_sim.ros.topic_choice import TopicChoice
from constrained_sim.ros.topics import RELIABLE, Topic
from constrained_sim.ros.world import World

if TYPE_CHECKING:
    from constrained_sim.ros.mcap_scanner import McapScanner

INPUT = type_name(msg.Input)
NOT_COMPARED = (INPUT, type_name(msg.SimulationStatus), "diagnostic_msgs/msg/DiagnosticArray")
"""What a recording holds beside what follows from the inputs: these depend on the wall clock."""

OPTIONAL = frozenset({TRANSFORMS.name, "std_msgs/msg/String", type_name(msg.ObjectDescriptions)})
"""What recordings have at their beginning, or never: transforms and descriptions, which were not made everywhere."""

PADDING = b"\0"
"""Behind the last field of messages: older recordings have more of it."""

EPILOG = (
    "example: replay recordings/leg_bag; "
    "exit codes: 0 identical; 1 refused; 2 wrong command line; 3 differs, or parts of the recording are lost"
)
DIFFERS = 3
"""Exit code, as that of `constrained_sim replay`."""


@dataclass(frozen=True)
class Comparison:
    """How a replay compares with its recording.

    Attributes:
        counts: messages that are the same, by topic.
        difference: where and how the first one differs; empty: none does.
        is_whole: whether all of the recording was there to be compared; one that differs is not read to its end.
        steps: since the last reset, where the comparison ended.
        until: stamp there [s].
        warnings: what may explain a difference.
    """

    counts: Mapping[str, int]
    difference: str
    is_whole: bool
    steps: int
    until: float
    warnings: tuple[str, ...]

    @property
    def extent(self) -> str:
        """Return how much was compared, in one line."""
        return f"compared: {sum(self.counts.values())} messages, up to step {self.steps} (stamp {self.until:.9f} s)"

    @property
    def summary(self) -> str:
        """Return the result in one line."""
        if self.difference:
            return f"differs at {self.difference}"
        return "the replay is identical, bit by bit" + (
            "" if self.is_whole else ", to what is left of the recording: parts of it are lost"
        )

    @property
    def is_proven(self) -> bool:
        """Whether nothing differs and nothing is lost."""
        return self.is_whole and not self.difference


class _Message(NamedTuple):
    """A message that the replay gives.

    Attributes:
        kind: its type.
        stamp: [ns].
        data: serialised.
    """

    kind: str
    stamp: int
    data: bytes

    def is_like(self, record: Record) -> bool:
        """Whether it may stand where `record` does."""
        return (self.kind, self.stamp) == (record.topic.type_name, record.stamp)

    def is_same(self, record: Record) -> bool:
        """Whether it is what was recorded, bit by bit."""
        return self.kind == record.topic.type_name and self.data.rstrip(PADDING) == record.data.rstrip(PADDING)


class _Produced:
    """Topics that keep what is sent until it is compared."""

    records = False
    lost = 0
    problem = ""

    def __init__(self, left_out: Set[str], recorded: TopicChoice) -> None:
        self.queue: deque[_Message] = deque()
        self._left_out, self._recorded = left_out, recorded

    def open(
        self, kind: type, name: str, qos: QoSProfile = RELIABLE, publish: bool = True, record: bool = True
    ) -> Topic:
        kind_name = type_name(kind)
        if not record or kind_name in self._left_out or name not in self._recorded:
            return Topic(None)
        return Topic(lambda data, stamp: self.queue.append(_Message(kind_name, stamp, data)))

    def check(self, name: str) -> None:
        return None  # what was recorded was allowed then

    def close(self, name: str) -> None:
        return None

    def warn(self, text: str) -> None:
        return None

    def record(self, kind: type, name: str, message: Any, stamp: int) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        return None

    def has_room(self, timeout: float) -> bool:
        return True


class Replay:
    """A simulation that is driven by the inputs of a recording.

    Attributes:
        world: that is simulated.
        missing: messages that the recording has lost, as far as they were left out here.
    """

    def __init__(
        self, parameters: Mapping[str, Any], folder: Path, left_out: Set[str] = frozenset(), namespace: str = "/"
    ) -> None:
        """Set up the configured world.

        Args:
            parameters: of the recording.
            folder: where relative paths begin.
            left_out: types of messages that the recording holds none of.
            namespace: of the node that recorded, in which the names of recorded topics are.

        Raises:
            ConstrainedSimError: a configuration that is refused here.
        """
        config = read_config(parameters, folder)
        self.world, self._topics = World(config), _Produced(left_out, TopicChoice(config.node.record_topics, namespace))
        self._outputs = Outputs(self._topics, self.world, JointNames(config.robot, config.node.joints))
        self._requests = Requests(self.world, self._outputs)
        self.missing = 0
        self._outputs.start({})

    def take(self, given: msg.Input) -> None:
        """Let an input take effect at the present boundary.

        Raises:
            ConstrainedSimError: it is refused here.
        """
        if given.name == "configuration":
            return
        if given.name == "commands":
            self.world.command(commands_from_json(given.content))
        elif given.name == "external_wrench":
            self.world.push(wrench_from_topic(from_json(WrenchStamped, given.content), self.world.link_of))
        elif given.name == "parameters":
            self._requests.change_options(json.loads(given.content))
        else:
            kind, perform = self._requests.kinds[given.name]
            perform(from_json(kind.Request, given.content), kind.Response()).publish()  # type: ignore[attr-defined]

    def next_message(self) -> _Message:
        """Return what is published next, and :meth:`drop` takes away; simulate where nothing is waiting.

        Raises:
            ConfigError: the simulation is frozen.
        """
        while not self._topics.queue:
            self._advance()
        return self._topics.queue[0]

    def drop(self) -> None:
        """Go on behind the next message."""
        self._topics.queue.popleft()

    def leave_out(self, count: int) -> None:
        """Go on behind so many messages, which the recording has lost."""
        self.missing += count
        for _ in range(count):
            self.drop()

    def skip_to_boundary(self, stamp: int) -> None:
        """Simulate up to the boundary at `stamp` [ns], where something enters; leave out what is before.

        Raises:
            ConfigError: the simulation is frozen.
        """
        while self.world.stamp < stamp:
            self.leave_out(len(self._topics.queue))
            self._advance()

    def skip_to(self, record: Record) -> None:
        """Leave out what precedes `record`, or else one that may stand in its place.

        Raises:
            ConfigError: the simulation is frozen.
        """
        while not any(message.is_same(record) for message in self._topics.queue) and self.world.stamp < record.stamp:
            self.leave_out(len(self._topics.queue))
            self._advance()
        for fits in _Message.is_same, _Message.is_like:
            found = [place for place, message in enumerate(self._topics.queue) if fits(message, record)]
            if found:
                return self.leave_out(found[0])

    def _advance(self) -> None:
        period = self.world.advance()
        if period is None:
            raise ConfigError(f"the replay is frozen: {self.world.frozen}")
        self._outputs.send_period(period)


def replay(directory: Path) -> Comparison:
    """Simulate the recording in a rosbag2 `directory` again.

    Raises:
        ConfigError: not a recording of this package.
        ConstrainedSimError: its configuration is refused here.
    """
    from constrained_sim.ros.mcap_scanner import McapScanner

    BACKGROUND.compile_here()
    scanner = McapScanner(bag_file(directory))
    records = read_records(scanner)
    beginning = list(islice(records, 10))
    configuration = _configuration(beginning)
    left_out = OPTIONAL - {record.topic.type_name for record in beginning}
    folder, namespace = Path(configuration["folder"]), configuration.get("namespace", "/")
    simulation = Replay(with_former_defaults(configuration["parameters"]), folder, left_out, namespace)
    warnings = changes_since(configuration, simulation.world.config.robot)
    counts, difference = _compare(chain(beginning, records), simulation, scanner)
    world, ends = simulation.world, bool(difference) or (scanner.is_whole and scanner.has_all_data)
    is_whole = ends and not scanner.lost_before and not simulation.missing
    losses = *_holes(scanner, simulation.missing), *_losses(scanner, difference), *scanner.damage
    return Comparison(counts, difference, is_whole, world.sim.steps, seconds_of(world.stamp), (*warnings, *losses))


def _compare(records: Iterable[Record], simulation: Replay, scanner: McapScanner) -> tuple[Counter[str], str]:
    """Return how many messages are the same, by topic, and how the first one differs; empty: none does.

    Behind a hole in the recording, the replay goes on at what follows it.
    """
    counts: Counter[str] = Counter()
    for record in records:
        if record.topic.type_name == INPUT:
            if scanner.has_holes:
                simulation.skip_to_boundary(record.stamp)
            simulation.take(deserialize_message(record.data, msg.Input))
        elif record.topic.type_name not in NOT_COMPARED:
            if scanner.has_holes and not simulation.next_message().is_same(record):
                simulation.skip_to(record)
            if difference := _difference(record, simulation):
                return counts, difference
            simulation.drop()
            counts[record.topic.name] += 1
    return counts, ""


def _holes(scanner: McapScanner, missing: int) -> tuple[str, ...]:
    """Return what is to be said of holes in a recording."""
    before = tuple(f"lost before the recording was recovered: {line}" for line in scanner.lost_before)
    text = f"{missing} messages are missing in the recording, and with them what entered the simulation there"
    return (*before, text) if missing else before


def _losses(scanner: McapScanner, difference: str) -> tuple[str, ...]:
    """Return what is to be said of the end of a recording, beside its damage, where it was read to its end."""
    if difference or (scanner.damage and not scanner.cut_off):
        return ()
    if scanner.has_all_data:
        return ("the index at the end of the recording is cut off; no message is in it",) if scanner.cut_off else ()
    rest = f"its last {scanner.cut_off} bytes are part of a message, " if scanner.cut_off else ""
    return (f"the recording is cut off: {rest}what followed is lost",)


def _configuration(beginning: Sequence[Record]) -> dict[str, Any]:
    """Return what the first input says.

    Raises:
        ConfigError: it is not a configuration, or there is no message at all.
    """
    if not beginning:
        raise ConfigError("the recording is empty: no message in it can be read")
    inputs = [deserialize_message(record.data, msg.Input) for record in beginning if record.topic.type_name == INPUT]
    if not inputs or inputs[0].name != "configuration":
        raise ConfigError(
            "the recording does not begin with a configuration, as those of the node do: it can be viewed, not replayed"
        )
    return dict(json.loads(inputs[0].content))


def _difference(record: Record, simulation: Replay) -> str:
    """Return how the next message of `simulation` differs from a recorded one; empty if it does not."""
    next_one = simulation.next_message()
    if next_one.is_same(record):
        return ""
    kind, _, data = next_one
    where = f"step {simulation.world.sim.steps} (stamp {seconds_of(record.stamp):.9f} s), {record.topic.name}"
    if simulation.missing:
        where = f"{where}, behind a hole in the recording, in which inputs may be lost"
    if kind != record.topic.type_name:
        return f"{where}: recorded a {record.topic.type_name}, the replay gives a {kind}"
    message = message_type(kind)
    recorded, replayed = (to_plain(deserialize_message(part, message)) for part in (record.data, data))
    return f"{where}: {_first_difference(recorded, replayed)}"


def _first_difference(recorded: Any, replayed: Any, path: str = "") -> str:
    """Return the path and the two values of the first field that differs."""
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        pairs = [(f"{path}.{key}".lstrip("."), recorded[key], replayed[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        pairs = [(f"{path}[{i}]", *both) for i, both in enumerate(zip(recorded, replayed, strict=True))]
    else:
        return "" if repr(recorded) == repr(replayed) else f"{path} recorded {recorded!r}, replayed {replayed!r}"
    return next((text for part in pairs if (text := _first_difference(part[1], part[2], part[0]))), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay the bag that is named on the command line; return 0, :data:`DIFFERS`, or 1 if it is refused."""
    parser = argparse.ArgumentParser(prog="replay", description=__doc__, epilog=EPILOG)
    parser.add_argument("bag", type=Path, help="rosbag2 directory that the node recorded")
    bag = parser.parse_args(arguments).bag
    try:
        comparison = replay(bag)
    except ConstrainedSimError as error:
        print(f"replay: {error}", file=sys.stderr)
        return 1
    for warning in comparison.warnings:
        print(f"note: {warning}")
    for topic, count in sorted(comparison.counts.items()):
        print(f"{count:9d}  {topic}: identical")
    print(comparison.extent)
    print(comparison.summary)
    return 0 if comparison.is_proven else DIFFERS
