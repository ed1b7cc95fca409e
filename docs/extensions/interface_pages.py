"""The pages of messages and services: the text of msg/ and srv/ as it is compiled."""

from itertools import takewhile
from pathlib import Path

from constrained_sim.shipped import share_folder

SERVICES = """# Services

Of the node `constrained_sim`, under its private name `~` (`/constrained_sim/add_contact`, ...). Each refuses with a
message, or takes effect whole at the next boundary of a control period.

"""

MESSAGES = """# Messages

SI units. Vectors are in the world frame unless stated. Forces and impulses act on the robot.

"""

COMMON = (
    "# SI units. Vectors are in header.frame_id, the world frame, unless stated. Forces and impulses act on the robot.",
    "# A field in newtons never contains an impulse.",
    "# SI units.",
)
"""Comment that stands in every file; the page says it once."""


def interface(file: Path) -> str:
    """Return the section of one file: its first comment as a sentence, its fields as they stand."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line not in COMMON]
    comment = list(takewhile(lambda line: line.startswith("#"), lines))
    about = " ".join(line.removeprefix("#").strip() for line in comment)
    fields = "\n".join(lines[len(comment) :]).strip("\n")
    return f"## {file.stem}\n\n{about}\n\n```text\n{fields}\n```\n\n"


def messages() -> str:
    """Return the page of the messages."""
    return MESSAGES + "".join(map(interface, sorted((share_folder() / "msg").glob("*.msg"))))


def services() -> str:
    """Return the page of the services."""
    return SERVICES + "".join(map(interface, sorted((share_folder() / "srv").glob("*.srv"))))
