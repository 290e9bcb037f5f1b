"""A consumer group of the gRPC proxy as a queue: acknowledged messages are not delivered again.

It reads topics if only the proxy can be reached, but no name server or broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Final

import attrs

from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.texts import one_line
from cdcfmt_rocketmq.grpc_client import LAST_ERROR, configuration, import_client
from cdcfmt_rocketmq.messages import MESSAGE_ID, TAGS
from cdcfmt_rocketmq.settings import ConnectionSettings

_AT_A_TIME: Final = 32
"""Maximum number of messages in an answer of the proxy."""

_MOST: Final = 10_000
_POLL_SECONDS: Final = 5
_REQUEST_SECONDS: Final = 6
"""The proxy needs a wait of at least five seconds, and uses part of it itself."""

_WAITING: Final = 4
"""Concurrent requests: each asks one broker, and waits if that has no messages."""

_ACKNOWLEDGING: Final = 8
_TRIES: Final = 5


@contextmanager
def open_drain(values: Mapping[str, Any], client: Mapping[str, str]) -> Iterator[GroupDrain]:
    """Open a consumer of a topic's messages.

    :raises OptionError: without a topic or a group.
    :raises SourceError: if the proxy does not answer, or rejects the request.
    """
    settings = ConnectionSettings.of(client)
    # On the command line the address is the proxy's.
    settings = attrs.evolve(settings, endpoints=settings.endpoints or settings.address)
    LAST_ERROR.text = ""
    topics = values["subscribe"]
    if len(topics) != 1:
        raise OptionError("option subscribe: drain needs exactly one topic")
    if not settings.consumer_group:
        raise OptionError(
            "option rocketmq.consumer.group is missing: the group whose messages are taken; "
            "messages that it acknowledged are not delivered again"
        )
    if not settings.endpoints:
        raise OptionError("option rocketmq.endpoints is missing: the gRPC proxy, as host:port")
    rocketmq = import_client()
    _keep_places(rocketmq)
    consumer = rocketmq.SimpleConsumer(
        configuration(rocketmq, settings, _REQUEST_SECONDS),
        settings.consumer_group,
        {topics[0]: rocketmq.FilterExpression()},
        await_duration=_POLL_SECONDS,
        tls_enable=settings.tls is not None,
    )
    where = f"topic {topics[0]} by RocketMQ's proxy at {settings.endpoints}"
    try:
        consumer.startup()
    except Exception as error:
        raise _problem(where, error) from None
    hold = values["invisibleDuration"].total_seconds()
    try:
        drain = GroupDrain(f"{settings.consumer_group} of {topics[0]}", hold, where, consumer)
        try:
            yield drain
        finally:
            drain.close()
    finally:
        consumer.shutdown()


class GroupDrain:
    """A :class:`cdcfmt_core.transport.Drain`.

    Messages have the header ``UNIQ_KEY``: the id from their producer.
    """

    def __init__(self, queue: str, hold_seconds: float, where: str, consumer: Any) -> None:
        self.queue = queue
        self.hold_seconds = hold_seconds
        self._where = where
        self._consumer = consumer
        self._taken: list[Any] = []
        self._ordered = False
        self._asking: set[Future[list[Any]]] = set()
        self._threads = ThreadPoolExecutor(_WAITING + _ACKNOWLEDGING)

    @property
    def most(self) -> int:
        # A message group delivers nothing more until these messages are acknowledged.
        return len(self._taken) if self._ordered and self._taken else _MOST

    def take(self, seconds: float) -> Sequence[Message]:
        """See :class:`cdcfmt_core.transport.Drain`.

        :raises SourceError: if the proxy does not answer, or rejects the request.
        """
        while len(self._asking) < _WAITING:
            self._asking.add(self._threads.submit(self._receive))
        done, self._asking = wait(self._asking, seconds, return_when=FIRST_COMPLETED)
        found: list[Any] = []
        for future in done:
            try:
                found += future.result()
            except Exception as error:
                raise _problem(self._where, error) from None
        self._taken += found
        self._ordered = any(message.message_group for message in self._taken)
        return [_message_of(message) for message in found]

    def acknowledge(self) -> None:
        """See :class:`cdcfmt_core.transport.Drain`.

        :raises SourceError: if a message cannot be acknowledged, as it was held for too long.
        """
        try:
            list(self._threads.map(self._consumer.ack, self._taken))
        except Exception as error:
            raise _problem(self._where, error) from None
        self._taken.clear()

    def identity(self, message: Message) -> bytes | None:
        return dict(message.headers).get(MESSAGE_ID) or None

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _receive(self) -> list[Any]:
        for left in reversed(range(_TRIES)):
            try:
                found: list[Any] = self._consumer.receive(_AT_A_TIME, int(self.hold_seconds))
                return found
            except Exception as error:
                if '"settings" is null' not in str(error) or not left:
                    raise
                # The proxy does not know the client yet.
                time.sleep(0.5)
        raise AssertionError


def _keep_places(rocketmq: Any) -> None:
    """Patch the client's messages to keep their positions, and their keys in order."""
    message = rocketmq.Message
    if hasattr(message, "system"):
        return
    read = message.fromProtobuf

    def read_and_keep(self: Any, wire: Any) -> Any:
        self.system = wire.system_properties
        return read(self, wire)

    message.system = None
    message.fromProtobuf = read_and_keep


def _message_of(taken: Any) -> Message:
    system = taken.system
    headers = [(name, value.encode()) for name, value in sorted(taken.properties.items())]
    if taken.tag:
        headers.append((TAGS, taken.tag.encode()))
    headers.append((MESSAGE_ID, taken.message_id.encode()))
    keys = " ".join(system.keys)
    time_ = system.store_timestamp
    return Message(
        keys.encode() if keys else None,
        taken.body,
        tuple(headers),
        taken.topic,
        system.queue_id,
        system.queue_offset,
        time_.seconds * 1000 + time_.nanos // 1_000_000,
    )


def _problem(where: str, error: Exception) -> SourceError:
    text = one_line(LAST_ERROR.text or str(error) or type(error).__name__, 300)
    return SourceError(
        f"{where}: {text}; check rocketmq.endpoints, rocketmq.consumer.group, rocketmq.accessKey "
        "and rocketmq.secretKey"
    )
