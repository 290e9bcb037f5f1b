"""A FIFO topic as sink through the gRPC proxy, with the official producer.

Each partition is a message group, whose messages RocketMQ keeps in order in one queue.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import attrs

from cdcfmt_core.errors import SinkError
from cdcfmt_core.events import Message
from cdcfmt_core.texts import one_line
from cdcfmt_core.transport import Producer
from cdcfmt_rocketmq.grpc_client import LAST_ERROR, configuration, import_client
from cdcfmt_rocketmq.messages import KEYS, TAGS, checked_properties
from cdcfmt_rocketmq.settings import ConnectionSettings

_REQUEST_SECONDS: Final = 10
_HELD: Final = 1000
"""Messages of a partition to collect before sending; partitions are sent in parallel."""

_FIFO: Final = 2
"""The client's number for the type of messages with a group."""


@attrs.frozen
class ProxySink:
    """A topic of message groups.  Can be pickled; secrets are never shown."""

    topic: str
    settings: ConnectionSettings

    def partitions(self) -> int:
        """Number of queues of the topic.

        :raises SinkError: if there is no answer, or the topic does not exist or is not FIFO.
        """
        with self._client() as producer:
            return len(self._queues(producer))

    def _queues(self, producer: Any) -> list[Any]:
        try:
            # The client has no public method for the route.
            route = producer._retrieve_topic_route_data(self.topic)
        except Exception as error:
            raise self.error(error) from None
        queues = [queue for queue in route.message_queues if queue.is_writable()]
        if not all(_FIFO in queue.accept_message_types for queue in queues):
            raise SinkError(
                f"topic {self.topic}: the proxy keeps the order of messages in FIFO topics only: "
                "create it with +message.type=FIFO, or write with rocketmq.namesrv.addr"
            )
        return queues

    @contextmanager
    def open(self) -> Iterator[ProxyProducer]:
        """Open a producer; on exit, wait until all its messages are acknowledged.

        :raises SinkError: if a message is not acknowledged.
        """
        with self._client() as client:
            producer = ProxyProducer(self, client, len(self._queues(client)))
            yield producer
            producer.flush()

    @contextmanager
    def _client(self) -> Iterator[Any]:
        rocketmq = import_client()
        LAST_ERROR.text = ""
        producer = rocketmq.Producer(
            configuration(rocketmq, self.settings, _REQUEST_SECONDS),
            [self.topic],
            tls_enable=self.settings.tls is not None,
        )
        try:
            producer.startup()
        except Exception as error:
            raise self.error(error) from None
        try:
            yield producer
        finally:
            producer.shutdown()

    def error(self, error: Exception | str) -> SinkError:
        text = one_line(LAST_ERROR.text or str(error) or type(error).__name__, 300)
        return SinkError(
            f"topic {self.topic} by RocketMQ's proxy at {self.settings.endpoints}: {text}; check "
            "rocketmq.endpoints, rocketmq.accessKey and rocketmq.secretKey"
        )


class ProxyProducer(Producer):
    """Sends messages in batches, in order within each partition."""

    def __init__(self, sink: ProxySink, client: Any, partitions: int) -> None:
        self._sink = sink
        self._client = client
        self._partitions = partitions
        self._waiting: dict[int, list[Any]] = defaultdict(list)
        self._count = 0

    def send(self, message: Message) -> None:
        """Queue a message.

        :raises SinkError: if RocketMQ cannot represent it, or an earlier one could not be
            delivered.
        """
        partition = message.partition
        if partition is None:
            partition = self._count % self._partitions
        self._count += 1
        self._waiting[partition].append(self._made(message, partition))
        if len(self._waiting[partition]) >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Wait until all messages are acknowledged.

        :raises SinkError: if a message is not acknowledged.
        """
        waiting, self._waiting = self._waiting, defaultdict(list)
        if not waiting:
            return
        with ThreadPoolExecutor(len(waiting)) as threads:
            try:
                list(threads.map(self._deliver, waiting.values()))
            except Exception as error:
                raise self._sink.error(error) from None

    def _deliver(self, messages: list[Any]) -> None:
        for message in messages:
            self._client.send(message)

    def _made(self, message: Message, partition: int) -> Any:
        properties = checked_properties(message, self._sink.settings.tag, self._sink.topic)
        made = import_client().Message()
        made.topic = self._sink.topic
        made.body = message.value
        made.message_group = f"cdcfmt-{partition}"
        for name, value in properties.items():
            if name == KEYS:
                made.keys = value
            elif name == TAGS:
                made.tag = value
            else:
                made.add_property(name, value)
        return made
