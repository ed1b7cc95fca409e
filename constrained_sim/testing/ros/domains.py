"""DDS domains for tests."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

DOMAINS = 100
"""Domains 1 to 100 have ports below those that Linux gives to clients."""

_taken = itertools.count()


def free_domain() -> int:
    """Return a DDS domain that nobody uses on this machine; each process of tests begins its search elsewhere.

    A participant of domain d listens at UDP ports from 7400 + 250 d on (DDSI-RTPS 2.5, section 9.6.2.3).

    Raises:
        RuntimeError: all are in use.
    """
    lines = [line.split() for table in ("udp", "udp6") for line in _lines(Path("/proc/net") / table)[1:]]
    ports = {int(fields[1].rpartition(":")[2], 16) for fields in lines}
    begin = os.getpid() * 37 + next(_taken)
    for candidate in range(begin, begin + DOMAINS):
        domain = 1 + candidate % DOMAINS
        if ports.isdisjoint(range(7400 + 250 * domain, 7650 + 250 * domain)):
            return domain
    raise RuntimeError("all DDS domains are in use")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else [""]
