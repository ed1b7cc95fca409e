"""Hashes of message types, by which ROS tells whether two definitions are the same."""

from __future__ import annotations

import functools
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory

from constrained_sim.ros.message_definitions import STAND_INS


@functools.cache
def type_hash(type_name: str) -> str:
    """Return the hash of a message type, as ``RIHS01_`` and 64 digits.

    It is the SHA-256 of the description of the type and of all types in it, without comments and default values.

    Source: ROS enhancement proposal 2016, "ROS 2 interface type descriptions".
    """
    package, _, message = STAND_INS.get(type_name, type_name).split("/")
    file = Path(get_package_share_directory(package)) / "msg" / f"{message}.json"
    described = json.loads(file.read_text())["type_description_msg"]
    described["type_description"]["type_name"] = type_name
    return "RIHS01_" + sha256(json.dumps(_without_defaults(described)).encode()).hexdigest()


def _without_defaults(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _without_defaults(value) for key, value in part.items() if key != "default_value"}
    return [_without_defaults(item) for item in part] if isinstance(part, list) else part
