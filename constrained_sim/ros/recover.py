"""`recover BAG`: finishes a recording that was cut off, so that every tool opens it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from constrained_sim.exceptions import ConfigError
from constrained_sim.ros.bag import RecordedTopic, bag_file, read_records
from constrained_sim.ros.recorder import BagWriter

EPILOG = "example: recover recordings/leg_bag; exit codes: 0 done; 1 refused; 2 wrong command line"


def recover(directory: Path) -> int:
    """Rewrite the MCAP file of a rosbag2 `directory` with all its complete messages, an index and metadata.

    Returns:
        The number of messages.

    Raises:
        ConfigError: there is no MCAP file, or nothing in it can be read.
    """
    file = bag_file(directory)
    broken = file.rename(file.with_suffix(".broken"))
    numbers: dict[RecordedTopic, int] = {}
    count = 0
    writer = BagWriter(directory, file.name)
    for record in read_records(broken):
        number = numbers.setdefault(record.topic, len(numbers))
        writer.add_channel(number, record.topic)
        writer.add_message(number, record.stamp, record.data)
        count += 1
    writer.finish()
    broken.unlink()
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Recover the bag that is named on the command line."""
    parser = argparse.ArgumentParser(prog="recover", description=__doc__, epilog=EPILOG)
    parser.add_argument("bag", type=Path, help="rosbag2 directory that the node recorded")
    directory = parser.parse_args(arguments).bag
    try:
        count = recover(directory)
    except ConfigError as error:
        print(f"recover: {error}", file=sys.stderr)
        return 1
    print(f"{directory}: {count} messages")
    return 0
