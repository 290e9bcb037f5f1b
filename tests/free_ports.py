"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket


def free_ports(count: int) -> list[int]:
    """Ports below those that systems hand out to clients: a restart must find them free."""
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.add(port)
    return list(found)
