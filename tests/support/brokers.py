"""Shared parts of the tests' brokers: ports, start and stop."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

NOWHERE = "127.0.0.1:1"
"""An address at which nothing listens."""

_CLIENT_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_claims: list[socket.socket] = []
"""Of :func:`free_ports`."""

START_SECONDS = 300
_STOP_SECONDS = 60


class BrokerNotStartedError(Exception):
    """It ended, or it does not answer."""


class Startable(Protocol):
    """A broker in a folder of its own."""

    @property
    def folder(self) -> Path: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


_B = TypeVar("_B", bound=Startable)


def start_broker(kind: Callable[[Path], _B], folder: Path) -> _B:
    """A new broker that runs.  Another process may take a port first: then with other ones."""
    attempts = 3
    while True:
        attempts -= 1
        broker = kind(folder / str(attempts))
        broker.folder.mkdir()
        try:
            broker.start()
        except Exception as error:
            broker.stop()
            if not attempts or not isinstance(error, BrokerNotStartedError):
                raise
        else:
            return broker


def free_ports(count: int, beside: int = 0) -> list[int]:
    """Ports of 127.0.0.1 for servers that start with them, also again.

    They are below those that systems hand out to clients.  Until this process ends, no other one
    gets them from here: it holds the UDP port of the same number.

    :param beside: the distance to a second port that each server takes, which is free, too.
    """
    found: list[int] = []
    while len(found) < count:
        port = random.randrange(10_000, _first_of_clients())
        if all(_claim(each) for each in {port, port + beside}):
            found.append(port)
    return found


def _claim(port: int) -> bool:
    claim = socket.socket(type=socket.SOCK_DGRAM)
    try:
        claim.bind(("127.0.0.1", port))
        with socket.socket() as attempt:
            attempt.bind(("127.0.0.1", port))
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def _first_of_clients() -> int:
    try:
        text = _CLIENT_PORTS.read_text()
    except OSError:
        return 32_000
    return max(int(text.split()[0]), 12_000)


def answers(address: str) -> bool:
    """Whether something listens there."""
    host, _, port = address.partition(":")
    with socket.socket() as attempt:
        attempt.settimeout(1)
        return attempt.connect_ex((host, int(port))) == 0


def wait_for_start(
    ready: Callable[[], bool], process: subprocess.Popen[bytes], logs: Iterable[Path]
) -> None:
    """Wait until a broker is ready.

    :raises BrokerNotStartedError: if its process ends, or it takes too long; with its logs.
    """
    deadline = time.monotonic() + START_SECONDS
    while not ready():
        code = process.poll()
        if code is not None or time.monotonic() > deadline:
            ends = "\n".join(log.read_text()[-3000:] for log in logs)
            raise BrokerNotStartedError(f"the broker did not start (exit code {code}): {ends}")
        time.sleep(0.1)


def end_process(process: subprocess.Popen[bytes] | None, *, at_once: bool = False) -> None:
    """End a process, with the time that it needs to write what it holds, or ``at_once``."""
    if process is None:
        return
    process.send_signal(signal.SIGKILL if at_once else signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
