"""Connections to the brokers that lead streams."""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from typing import TypeVar

from cdcfmt_rabbitmq.broker_errors import BrokerError, of_code
from cdcfmt_rabbitmq.link import Link
from cdcfmt_rabbitmq.loop import Loop
from cdcfmt_rabbitmq.settings import ConnectionSettings

_T = TypeVar("_T")


class Links:
    """Connections to the brokers that lead streams, opened when needed.

    Reads only from leaders, since only they know all confirmed messages.  Connections end with
    :meth:`close`, or when the object is garbage, as sources have no close.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._loop = Loop()
        self._links: dict[tuple[str, int], Link] = {}
        self._leaders: dict[str, Link] = {}
        self._end = weakref.finalize(self, _close, self._loop, self._links)
        # Threads of a process that ends are left alone.
        self._end.atexit = False

    def any(self) -> Link:
        """A connection to one of the configured brokers."""
        last = BrokerError("no host")
        for address in self._settings.addresses("streams"):
            try:
                return self._to(*address)
            except BrokerError as error:
                last = error
        raise last

    def leader(self, stream: str) -> Link:
        """A connection to the broker that leads a stream.

        :raises BrokerError: with ``missing``, if there is no such stream.
        """
        known = self._leaders.get(stream)
        if known is not None and not known.is_lost:
            return known
        link = self.any()
        brokers, (found,) = link.metadata([stream])
        if found.response_code != 1:
            raise of_code(found.response_code)
        broker = brokers.get(found.leader_ref)
        if broker is None:
            raise BrokerError(f"stream {stream} has no leader")
        if self._settings.advertised:
            link = self._to_advertised(stream, broker.host, broker.port)
        self._leaders[stream] = link
        return link

    def _to_advertised(self, stream: str, host: str, port: int) -> Link:
        try:
            return self._to(host, port)
        except BrokerError as error:
            raise BrokerError(
                f"stream {stream} is led by a broker that advertises {host}:{port}, which does not "
                f"answer from here: {error}; set its advertised_host and advertised_port to an "
                "address that clients can reach, or set rabbitmq.advertised=false",
                error.passing,
            ) from None

    def _to(self, host: str, port: int) -> Link:
        link = self._links.get((host, port))
        if link is None or link.is_lost:
            link = self._links[host, port] = Link(self._loop, self._settings, host, port)
        return link

    def close(self) -> None:
        """Close all connections, without waiting."""
        self._end()


def _close(loop: Loop, links: dict[tuple[str, int], Link]) -> None:
    async def close_all() -> None:
        clients = [link.client for link in links.values()]
        await asyncio.gather(*(client.close() for client in clients), return_exceptions=True)

    loop.stop(close_all())


def retry(question: Callable[[], _T], seconds: float, again: float = 0.25) -> _T:
    """Call ``question``, and retry while the error may be temporary.

    :raises BrokerError: the last error, if it is permanent or the time is over.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return question()
        except BrokerError as error:
            if not error.passing or time.monotonic() > deadline:
                raise
            time.sleep(again)
