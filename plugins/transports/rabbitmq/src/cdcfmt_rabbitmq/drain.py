"""Drain of classic and quorum queues for ``cdcfmt drain``, with pika."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

import attrs

from cdcfmt_core.errors import OptionError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_rabbitmq.broker_errors import BrokerError, no_answer, of_queue
from cdcfmt_rabbitmq.links import retry
from cdcfmt_rabbitmq.messages import split_key
from cdcfmt_rabbitmq.settings import ConnectionSettings, parse_settings

MESSAGE_ID: Final = "message-id"
"""Header for the property ``message_id``, which identifies duplicates."""

_OPENING_SECONDS: Final = 2.0
"""How long the broker may keep a previous consumer that was killed."""

_ANSWER_SECONDS: Final = 10.0

# Without a handler, Python would print to stderr what is raised as an error here.
logging.getLogger("pika").addHandler(logging.NullHandler())


@attrs.define
class QueueDrain:
    """The only consumer of a queue; a :class:`cdcfmt_core.transport.Drain`."""

    _name: str
    _settings: ConnectionSettings
    _key_property: str | None
    _connection: Any
    _channel: Any
    most: int
    hold_seconds: float = 1200.0
    """Brokers close a channel if messages stay unacknowledged for half an hour."""
    _come: list[Message] = attrs.field(factory=list)
    _ended: bool = False
    _last_come: int = 0
    _last_taken: int = 0

    @property
    def queue(self) -> str:
        return f"{self._settings.virtual_host}/{self._name}"

    def consume(self) -> None:
        """Start to receive messages, as the only consumer, which keeps their order."""
        self._channel.queue_declare(self._name, passive=True)
        self._channel.add_on_cancel_callback(self._note_end)
        self._channel.basic_qos(prefetch_count=self.most)
        # Streams have no priority: a consumer with one is refused, where it would begin behind the
        # last message, and what it acknowledges would stay.
        self._channel.basic_consume(
            self._name, self._note, exclusive=True, arguments={"x-priority": 0}
        )

    def take(self, seconds: float) -> Sequence[Message]:
        with failures(self._settings):
            if not self._come:
                self._connection.process_data_events(time_limit=seconds)
            if self._ended and not self._come:
                raise BrokerError(f"queue {self._name} was deleted, or moved")
        taken, self._come = self._come, []
        self._last_taken = self._last_come
        return taken

    def acknowledge(self) -> None:
        with failures(self._settings):
            self._channel.basic_ack(self._last_taken, multiple=True)
            self._connection.process_data_events(time_limit=0)

    def identity(self, message: Message) -> bytes | None:
        """The producer's ``message_id`` with the value, since an id may be used twice."""
        found = [value for name, value in message.headers if name == MESSAGE_ID]
        return b"%b\0%b" % (found[-1], message.value or b"") if found and found[-1] else None

    def _note_end(self, _: Any) -> None:
        self._ended = True

    def _note(self, _: Any, method: Any, properties: Any, body: bytes) -> None:
        key, headers = split_key(tuple(_headers(properties)), self._key_property)
        self._come.append(
            Message(key, body, headers, self._name, timestamp=_millis(properties.timestamp))
        )
        self._last_come = method.delivery_tag


def _headers(properties: Any) -> Iterator[tuple[str, bytes | None]]:
    for name, value in (properties.headers or {}).items():
        yield _text(name), _bytes(value)
    if properties.message_id is not None:
        yield MESSAGE_ID, _bytes(properties.message_id)


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "backslashreplace") if isinstance(name, bytes) else name


def _bytes(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, dict | list):
        # Brokers add such headers to dead-lettered messages.
        return json.dumps(value, default=str).encode()
    return str(value).encode("utf-8", "backslashreplace")


def _millis(timestamp: Any) -> int | None:
    """Milliseconds of a producer's timestamp, which AMQP 0-9-1 defines in seconds."""
    if isinstance(timestamp, datetime):
        return round(timestamp.replace(tzinfo=timestamp.tzinfo or UTC).timestamp() * 1000)
    return timestamp * 1000 if isinstance(timestamp, int) and 0 <= timestamp < 1 << 40 else None


@contextmanager
def failures(settings: ConnectionSettings) -> Iterator[None]:
    """:raises SourceError: for any error of the client."""
    try:
        yield
    except Exception as error:
        raise SourceError(no_answer(settings, "queues", of_queue(error))) from None


@contextmanager
def open_drain(values: Mapping[str, Any], client: Mapping[str, str]) -> Iterator[QueueDrain]:
    """The drain of a :class:`~cdcfmt_core.transport.TransportSpec`."""
    name = values["subscribe"]
    if not name:
        raise OptionError("option subscribe: name the queue, as rabbitmq://host:port/queue")
    settings = parse_settings(client)
    context = settings.ssl_context()
    connections: list[Any] = []

    def connect() -> QueueDrain:
        from pika import BlockingConnection

        try:
            connection = BlockingConnection(_parameters(settings, context))
            connections.append(connection)
            drain = QueueDrain(
                name,
                settings,
                values["keyProperty"],
                connection,
                connection.channel(),
                values["prefetch"],
            )
            drain.consume()
        except Exception as error:
            raise of_queue(error) from None
        return drain

    try:
        try:
            drain = retry(connect, _OPENING_SECONDS)
        except BrokerError as error:
            if error.missing:
                raise SourceError(
                    f"there is no queue {name} on RabbitMQ at {settings.show('queues')}, virtual "
                    f"host {settings.virtual_host}"
                ) from None
            raise SourceError(no_answer(settings, "queues", error)) from None
        yield drain
    finally:
        for connection in connections:
            # Unacknowledged messages go back into the queue.
            with suppress(Exception):
                connection.close()


def _parameters(settings: ConnectionSettings, context: Any) -> list[Any]:
    from pika import ConnectionParameters, PlainCredentials, SSLOptions
    from pika.credentials import ExternalCredentials

    login = (
        ExternalCredentials()
        if settings.external
        else PlainCredentials(settings.username, settings.password)
    )
    return [
        ConnectionParameters(
            host,
            port,
            settings.virtual_host,
            login,
            ssl_options=None if context is None else SSLOptions(context, host),
            client_properties={"connection_name": "cdcfmt drain"},
            socket_timeout=_ANSWER_SECONDS,
            stack_timeout=_ANSWER_SECONDS,
        )
        for host, port in settings.addresses("queues")
    ]
