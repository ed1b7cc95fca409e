"""Names of message types, and types that another package may or may not bring."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

from constrained_sim.msg import Transforms

try:
    from tf2_msgs.msg import TFMessage
except ImportError:
    TFMessage = None


class StandIn(NamedTuple):
    """A type of this package with the layout of one of another package.

    Attributes:
        own: the type here.
        name: of the other one; recordings hold it.
        published: the other one; None: its package is not installed, and messages are only recorded.
    """

    own: type
    name: str
    published: type | None


TRANSFORMS = StandIn(Transforms, "tf2_msgs/msg/TFMessage", TFMessage)
STAND_INS = (TRANSFORMS,)


def type_name(kind: type) -> str:
    """Return the name under which messages of `kind` are published and recorded, as ``std_msgs/msg/String``."""
    own = f"{kind.__module__.split('.')[0]}/msg/{kind.__name__}"
    return next((other.name for other in STAND_INS if other.own is kind), own)


def published_type(kind: type) -> type | None:
    """Return the type that messages of `kind` are published as; None: they cannot be."""
    return next((other.published for other in STAND_INS if other.own is kind), kind)


def message_type(name: str) -> Any:
    """Return the class of the message ``package/Name`` or ``package/msg/Name``, or the one that stands in for it."""
    package, _, kind = name.partition("/")
    stand_in = next((other.own for other in STAND_INS if other.name == name), None)
    return stand_in or getattr(import_module(f"{package}.msg"), kind.rpartition("/")[2])
