"""A connection to one broker by the stream protocol.

The caller parses the frames with messages, so an unreadable frame raises an error; the library's
own consumer would log it and skip the frame.
"""

from __future__ import annotations

import itertools
import logging
import queue
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Literal, TypeVar

import attrs

from cdcfmt_rabbitmq.broker_errors import NO_ANSWER, BrokerError, of_certificate
from cdcfmt_rabbitmq.loop import ANSWER_SECONDS, Loop
from cdcfmt_rabbitmq.settings import ConnectionSettings

_FRAME_BYTES: Final = 128 << 20
"""The most that a frame may have, where the broker (``stream.frame_max``) allows it."""
_HEARTBEAT_SECONDS: Final = 60
_MAX_SUBSCRIPTIONS: Final = 250

Start = Literal["first", "last"] | tuple[Literal["offset", "timestamp"], int]
"""Start of a subscription: a chunk, an offset, or a time in milliseconds."""

_T = TypeVar("_T")


class _Secrets(logging.Filter):
    """Drops the library's debug lines about frames with a login."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not any(type(part).__name__ == "SaslAuthenticate" for part in record.args or ())


logging.getLogger("rstream.client").addFilter(_Secrets())
# Without a handler, Python would print to stderr what is raised as an error here.
logging.getLogger("rstream").addHandler(logging.NullHandler())


@attrs.define
class Subscription:
    """The chunks of a stream from a start position; the broker sends one per credit."""

    link: Link
    id: int
    chunks: queue.SimpleQueue[Any] = attrs.field(factory=queue.SimpleQueue)

    def next(self, seconds: float) -> Any:
        """The next chunk, a ``Deliver`` frame; None if none arrives in time.

        :raises BrokerError: if the connection is lost, or the stream was deleted.
        """
        try:
            chunk = self.chunks.get(timeout=seconds) if seconds > 0 else self.chunks.get_nowait()
        except queue.Empty:
            self.link.check()
            return None
        if isinstance(chunk, BrokerError):
            raise chunk
        return chunk

    def next_at_once(self) -> Any:
        """The next chunk if the stream has one; None at its end.

        A broker handles the requests of a connection in order: it sends available chunks before it
        answers another request.
        """
        if self.chunks.empty():
            self.link.metadata([])
        return self.next(0)

    def credit(self) -> None:
        """Ask for one more chunk."""
        self.link.call(self.link.client.credit(self.id, 1))

    def close(self) -> None:
        self.link.unsubscribe(self.id)


class Link:
    """A connection to one broker.

    :raises BrokerError: in every method, if the connection is lost or the broker rejects it.
    """

    def __init__(self, loop: Loop, settings: ConnectionSettings, host: str, port: int) -> None:
        from rstream.client import Client
        from rstream.constants import SlasMechanism

        self._loop = loop
        self._subscriptions: dict[int, Subscription] = {}
        self._ids = itertools.cycle(range(_MAX_SUBSCRIPTIONS))
        self._publishers: dict[str, int] = {}
        self._lost: BrokerError | None = None
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
                # The library reports a lost connection only if it knows a stream.
                client.add_stream("")
                await client.authenticate(
                    settings.virtual_host,
                    "" if external else settings.username,
                    "" if external else settings.password,
                )
            except BaseException:
                version = (client.server_properties or {}).get("version", "")
                await client.close()
                if external and (error := of_certificate(version)) is not None:
                    raise error from None
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
            # The stream was deleted, or has another leader: the broker ended its subscriptions.
            self._lose(f"stream {frame.metadata_info.stream} moved, or was deleted")

        self._deliver = deliver
        self.client.add_handler(schema.MetadataUpdate, update, name="cdcfmt")

    def _lose(self, reason: str) -> None:
        self._lost = self._lost or BrokerError(reason)
        for subscription in list(self._subscriptions.values()):
            subscription.chunks.put(self._lost)

    def check(self) -> None:
        """:raises BrokerError: if the connection is lost."""
        if self.is_lost:
            self._lose("the connection was lost")
        if self._lost is not None:
            raise self._lost

    @property
    def is_lost(self) -> bool:
        return self._lost is not None or not self.client.is_connection_alive()

    @property
    def frame_bytes(self) -> int:
        """Size of the largest frame that the broker accepts."""
        size: int = self.client.frame_max
        # 0: the broker has no limit.
        return size or _FRAME_BYTES

    def call(self, work: Coroutine[Any, Any, _T], seconds: float = ANSWER_SECONDS) -> _T:
        if self._lost is not None:
            work.close()
            raise self._lost
        try:
            return self._loop.call(work, seconds)
        except BrokerError as error:
            if error.reason == NO_ANSWER:
                # The broker may still serve this request, and then refuse its repetition.
                self._lose(NO_ANSWER)
                self._loop.start(self.client.close())
            raise

    def metadata(self, streams: list[str]) -> tuple[dict[int, Any], list[Any]]:
        """The brokers by number, and an entry per stream with its ``response_code``."""
        from rstream import schema

        async def ask() -> Any:
            frame = schema.Metadata(self.client._corr_id_seq.next(), streams=streams)
            return await self.client.sync_request(
                frame, resp_schema=schema.MetadataResponse, raise_exception=False
            )

        answer = self.call(ask())
        return {broker.reference: broker for broker in answer.brokers}, answer.metadata

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
        """Declare a publisher for a stream.

        :param note: Called in the connection's thread with message numbers and response code (1:
            confirmed).
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

    def unsubscribe(self, number: int) -> None:
        from rstream import schema

        if self._subscriptions.pop(number, None) is None or self._lost is not None:
            return

        async def ask() -> None:
            await self.client.unsubscribe(number)
            self.client.remove_handler(schema.Deliver, name=str(number))
            await self.client.stop_queue_listener_task(number)

        with suppress(BrokerError):
            self.call(ask())


def _spec(start: Start) -> Any:
    from rstream import schema
    from rstream.constants import OffsetType

    kind, value = (start, None) if isinstance(start, str) else start
    return schema.OffsetSpec.from_params(OffsetType[kind.upper()], value)
