"""DDS domains for tests."""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections import deque
from pathlib import Path

DOMAINS = 100
"""Domains 1 to 100 have ports below those that Linux gives to clients."""

FIRST_PORT, PORTS = 7400, 250
"""Of domain 0, and of each domain (DDSI-RTPS 2.5, section 9.6.2.3). The last one would be of participant 119."""

WAITING_TIME = 60.0
"""[s] that others may take to leave a domain."""

LOOK = 0.1
"""[s] between two looks whether they have."""

_taken = itertools.count()
_claims: deque[socket.socket] = deque(maxlen=8)
"""Kept while those for whom the latest domains are open their own ports; few, for every process keeps as many."""


def free_domain() -> int:
    """Return a DDS domain that nobody uses on this machine, and that no other process is about to use.

    A participant of domain d listens at UDP ports from 7400 + 250 d on. Until there is one, the last port of the domain
    is taken, so that tests that run side by side never get the same domain. Where all are in use, one is waited for.

    Raises:
        RuntimeError: all stay in use.
    """
    end = time.monotonic() + WAITING_TIME
    while (domain := _free_now()) is None:
        if time.monotonic() > end:
            raise RuntimeError("all DDS domains are in use")
        while _claims:  # whoever they were for listens by now, or has ended
            _claims.popleft().close()
        time.sleep(LOOK)
    return domain


def _free_now() -> int | None:
    """Return a domain that is free; None: there is none."""
    begin = os.getpid() * 37 + next(_taken)  # each process begins its search elsewhere
    for candidate in range(begin, begin + DOMAINS):
        domain = 1 + candidate % DOMAINS
        first = FIRST_PORT + PORTS * domain
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind(("127.0.0.1", first + PORTS - 1))
        except OSError:
            claim.close()
            continue
        if _ports_in_use().isdisjoint(range(first, first + PORTS - 1)):
            _claims.append(claim)
            return domain
        claim.close()
    return None


def _ports_in_use() -> set[int]:
    """Return the UDP ports at which somebody listens."""
    lines = [line.split() for table in ("udp", "udp6") for line in _lines(Path("/proc/net") / table)[1:]]
    return {int(fields[1].rpartition(":")[2], 16) for fields in lines}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else [""]
