"""Connections by the stream protocol, for code that is not asynchronous.

The client library runs on asyncio.  One thread has its loop, so that heartbeats go on while a
task does something else.  Frames with messages are handed over as they come and read by the
caller: a frame that cannot be read is then the caller's error, where the library's own consumer
logs it and goes on behind it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar

import attrs

from cdcfmt_rabbitmq.settings import Settings
from cdcfmt_rabbitmq.trouble import TroubleError, of_stream

ANSWER_SECONDS: Final = 10.0
"""How long one question to a broker may take."""

_FRAME_BYTES: Final = 1 << 20
_HEARTBEAT_SECONDS: Final = 60
_MOST_SUBSCRIPTIONS: Final = 250

Start = Literal["first", "last"] | tuple[Literal["offset", "time"], int]
"""Where a subscription begins: an offset, or a time in milliseconds."""

_T = TypeVar("_T")


class _Secrets(logging.Filter):
    """Drops the library's debug lines of frames that hold a login."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not any(type(part).__name__ == "SaslAuthenticate" for part in record.args or ())


logging.getLogger("rstream.client").addFilter(_Secrets())


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cdcfmt-rabbitmq", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        # Tasks that end by an error of the connection are no news: callers see it.
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.run_forever()
        self._loop.close()

    def call(self, work: Coroutine[Any, Any, _T], seconds: float = ANSWER_SECONDS) -> _T:
        """The result of a coroutine.

        :raises TroubleError: if it fails, or takes longer.
        """
        waiting = asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), self._loop)
        try:
            return waiting.result(seconds + 1)
        except Exception as error:
            waiting.cancel()
            raise of_stream(error) from None

    def stop(self, last: Coroutine[Any, Any, Any]) -> None:
        """End the thread after ``last``; does not wait for it."""

        async def end() -> None:
            with suppress(Exception):
                await asyncio.wait_for(last, ANSWER_SECONDS)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)


@attrs.define
class Subscription:
    """The chunks of a stream, from its start on; one is on its way for each credit."""

    link: Link
    id: int
    chunks: queue.SimpleQueue[Any] = attrs.field(factory=queue.SimpleQueue)

    def next(self, seconds: float) -> Any:
        """The next chunk, a ``Deliver`` frame; None if none comes in time.

        :raises TroubleError: if the connection is lost, or the stream gone.
        """
        try:
            chunk = self.chunks.get(timeout=seconds) if seconds > 0 else self.chunks.get_nowait()
        except queue.Empty:
            self.link.check()
            return None
        if isinstance(chunk, TroubleError):
            raise chunk
        return chunk

    def next_at_once(self) -> Any:
        """The next chunk if the stream has one; None at its end.

        A broker works on what one connection asks in its order: it sends what there is before it
        answers another question.
        """
        if self.chunks.empty():
            self.link.ask_anything()
        return self.next(0)

    def credit(self) -> None:
        """Ask for one more chunk."""
        self.link.send_credit(self.id)

    def close(self) -> None:
        self.link.unsubscribe(self.id)


class Link:
    """A connection to one broker.

    :raises TroubleError: by every method, if the connection is lost or the broker refuses.
    """

    def __init__(self, loop: Loop, settings: Settings, host: str, port: int) -> None:
        from rstream.client import Client
        from rstream.constants import SlasMechanism

        self._loop = loop
        self._subscriptions: dict[int, Subscription] = {}
        self._ids = itertools.cycle(range(_MOST_SUBSCRIPTIONS))
        self._publishers: dict[str, int] = {}
        self._lost: TroubleError | None = None
        external = settings.external
        context = settings.ssl_context()

        async def connect() -> Any:
            client = Client(
                host,
                port,
                ssl_context=context,
                frame_max=_FRAME_BYTES,
                heartbeat=_HEARTBEAT_SECONDS,
                connection_name="cdcfmt",
                connection_closed_handler=lambda _: self._lose("the connection was lost"),
                sasl_configuration_mechanism=SlasMechanism("EXTERNAL" if external else "PLAIN"),
            )
            try:
                await client.start()
                # Without one the library says nothing of a lost connection.
                client.add_stream("")
                await client.authenticate(
                    settings.virtual_host,
                    "" if external else settings.username,
                    "" if external else settings.password,
                )
            except BaseException:
                await client.close()
                raise
            return client

        self.client = loop.call(connect())
        self._listen()

    def _listen(self) -> None:
        from rstream import schema

        def deliver(frame: Any) -> None:
            subscription = self._subscriptions.get(frame.subscription_id)
            if subscription is not None:
                subscription.chunks.put(frame)

        def update(frame: Any) -> None:
            # A stream was deleted, or has another leader: its subscriptions are gone.
            self._lose(f"stream {frame.metadata_info.stream} moved, or was deleted")

        self._deliver = deliver
        self.client.add_handler(schema.MetadataUpdate, update, name="cdcfmt")

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or TroubleError(reason)
        for subscription in list(self._subscriptions.values()):
            subscription.chunks.put(self._lost)

    def check(self) -> None:
        """:raises TroubleError: if the connection is lost."""
        if self._lost is None and not self.client.is_connection_alive():
            self._lose("the connection was lost")
        if self._lost is not None:
            raise self._lost

    @property
    def frame_bytes(self) -> int:
        """The size of the largest frame that the broker takes."""
        size: int = self.client.frame_max
        return size

    def call(self, work: Coroutine[Any, Any, _T], seconds: float = ANSWER_SECONDS) -> _T:
        if self._lost is not None:
            work.close()
            raise self._lost
        return self._loop.call(work, seconds)

    def metadata(self, streams: list[str]) -> tuple[dict[int, Any], list[Any]]:
        """The brokers by number, and an entry of each stream, with its ``response_code``."""
        from rstream import schema

        async def ask() -> Any:
            frame = schema.Metadata(self.client._corr_id_seq.next(), streams=streams)
            return await self.client.sync_request(
                frame, resp_schema=schema.MetadataResponse, raise_exception=False
            )

        answer = self.call(ask())
        return {broker.reference: broker for broker in answer.brokers}, answer.metadata

    def ask_anything(self) -> None:
        self.metadata([])

    def subscribe(self, stream: str, start: Start, credit: int = 1) -> Subscription:
        from rstream import schema

        number = next(self._ids)
        subscription = self._subscriptions[number] = Subscription(self, number)

        async def ask() -> None:
            self.client.add_handler(schema.Deliver, self._deliver, name=str(number))
            await self.client.run_queue_listener_task(number, self._deliver)
            await self.client.subscribe(stream, number, _spec(start), credit)

        self.call(ask())
        return subscription

    def publish_as(self, name: str, stream: str, note: Callable[[list[int], int], object]) -> None:
        """Let a publisher send to a stream; ``note`` takes the numbers that are confirmed.

        It is called by the thread of the connection, with the response code: 1 for taken.
        """
        from rstream import schema

        number = self._publishers[name] = len(self._publishers)

        def confirm(frame: Any) -> None:
            if frame.publisher_id == number:
                note(frame.publishing_ids, 1)

        def refuse(frame: Any) -> None:
            if frame.publisher_id == number:
                for error in frame.errors:
                    note([error.publishing_id], error.response_code)

        async def declare() -> None:
            self.client.add_handler(schema.PublishConfirm, confirm, name=str(number))
            self.client.add_handler(schema.PublishError, refuse, name=str(number))
            await self.client.declare_publisher(stream, name, number)

        self.call(declare())

    def publisher_id(self, name: str) -> int:
        return self._publishers[name]

    def send_credit(self, number: int) -> None:
        self.call(self.client.credit(number, 1))

    def unsubscribe(self, number: int) -> None:
        from rstream import schema

        if self._subscriptions.pop(number, None) is None or self._lost is not None:
            return

        async def ask() -> None:
            await self.client.unsubscribe(number)
            self.client.remove_handler(schema.Deliver, name=str(number))
            await self.client.stop_queue_listener_task(number)

        with suppress(TroubleError):
            self.call(ask())


def _spec(start: Start) -> Any:
    from rstream import schema
    from rstream.constants import OffsetType

    kinds = {
        "first": OffsetType.FIRST,
        "last": OffsetType.LAST,
        "offset": OffsetType.OFFSET,
        "time": OffsetType.TIMESTAMP,
    }
    kind, value = (start, None) if isinstance(start, str) else start
    return schema.OffsetSpec.from_params(kinds[kind], value)


class Links:
    """Connections to the brokers that lead streams, made as they are needed.

    Leaders alone know all that is confirmed, so nothing is read from replicas.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = Loop()
        self._links: dict[tuple[str, int], Link] = {}
        self._leaders: dict[str, Link] = {}

    def any(self) -> Link:
        """A connection to one of the brokers that the user named."""
        trouble = TroubleError("no host")
        for address in self._settings.addresses("streams"):
            try:
                return self._to(*address)
            except TroubleError as error:
                trouble = error
        raise trouble

    def leader(self, stream: str) -> Link:
        """A connection to the broker that leads a stream.

        :raises TroubleError: with ``missing``, if there is no such stream.
        """
        known = self._leaders.get(stream)
        if known is not None and known._lost is None:
            return known
        link = self.any()
        brokers, (found,) = link.metadata([stream])
        if found.response_code != 1:
            from rstream.exceptions import ServerError

            raise of_stream(ServerError.from_code(found.response_code)())
        broker = brokers.get(found.leader_ref)
        if broker is None:
            raise TroubleError(f"stream {stream} has no leader")
        if self._settings.advertised:
            link = self._to_advertised(stream, broker.host, broker.port)
        self._leaders[stream] = link
        return link

    def _to_advertised(self, stream: str, host: str, port: int) -> Link:
        try:
            return self._to(host, port)
        except TroubleError as trouble:
            raise TroubleError(
                f"stream {stream} is led by a broker that advertises {host}:{port}, which does not "
                f"answer from here: {trouble}; set its advertised_host and advertised_port to an "
                "address that clients reach, or rabbitmq.advertised=false",
                trouble.passing,
            ) from None

    def _to(self, host: str, port: int) -> Link:
        link = self._links.get((host, port))
        if link is None or link._lost is not None or not link.client.is_connection_alive():
            link = self._links[host, port] = Link(self._loop, self._settings, host, port)
        return link

    def close(self) -> None:
        """Close all of them; does not wait for it."""
        links, self._links = list(self._links.values()), {}

        async def close_all() -> None:
            await asyncio.gather(*(link.client.close() for link in links), return_exceptions=True)

        self._loop.stop(close_all())


def retry(question: Any, seconds: float, again: float = 0.25) -> Any:
    """The answer to a question, which is asked again while trouble may pass.

    :raises TroubleError: what came last, once it cannot pass or the time is over.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            return question()
        except TroubleError as trouble:
            if not trouble.passing or time.monotonic() > deadline:
                raise
            time.sleep(again)
