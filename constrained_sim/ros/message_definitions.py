"""Definitions of messages as recordings keep them, so that a reader needs no package of ours."""

from __future__ import annotations

from pathlib import Path

from ament_index_python.packages import get_package_share_directory

STAND_INS = {"tf2_msgs/msg/TFMessage": "constrained_sim/msg/Transforms"}
"""Types with the layout of one of another package, which need not be there."""


def message_definition(type_name: str) -> str:
    """Return the definition of a message with those of all messages in it, as MCAP's ``ros2msg`` schema wants it."""
    texts: dict[str, str] = {}
    pending = [type_name]
    while pending:
        name = pending.pop(0)
        if name in texts:
            continue
        package, _, message = STAND_INS.get(name, name).split("/")
        texts[name] = (Path(get_package_share_directory(package)) / "msg" / f"{message}.msg").read_text()
        pending += _members(texts[name], package)
    separator = "=" * 80
    rest = [f"{separator}\nMSG: {name.replace('/msg/', '/')}\n{text}" for name, text in list(texts.items())[1:]]
    return "\n".join([texts[type_name], *rest])


def _members(definition: str, package: str) -> list[str]:
    """Return the full names of the message types among the fields of `definition`."""
    names = []
    for line in definition.splitlines():
        words = line.split("#")[0].split()
        if len(words) < 2:
            continue
        kind = words[0].split("[")[0].split("<")[0]
        if "/" in kind:
            names.append("/".join((kind.split("/")[0], "msg", kind.split("/")[-1])))
        elif kind[0].isupper():
            names.append(f"{package}/msg/{kind}")
    return names
