"""A continuous feed of golden messages into topics, and the expected tables."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import framed
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaException, Producer
from encode import converted
from pyspark.sql.types import StructType, VariantType
from run import load
from support.golden_data import SOURCE_ZONE, load_variant, native_messages, open_decoder
from support.kafka_broker import Broker
from support.schema_registry import OfflineRegistry
from topics import of_topic

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.events import Message, RowChange
from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import inferred_schema, parsed, read

TABLE = ("bench", "orders")
MAX_AHEAD = 3
"""Batches; a driver that is down for long has the rest to read."""
GARBAGE = b'{"garbage": '

WIRES = {
    "canal-json": ("canal-json", "tidb-extension"),
    "open": ("open-batched", "default"),
    "debezium": ("debezium", "tidb-extension"),
    "simple-json": ("simple-json", "default"),
    "simple-avro": ("simple-avro", "default"),
    "cloudcanal-json": (None, None),
    "dts-avro": (None, None),
    **dict.fromkeys(framed.WIRES, (None, None)),
}
"""Topic → messages of the benchmark's table, and golden ones of every type of column."""
PROTOCOLS = {"open": "open-protocol", "simple-json": "simple", "simple-avro": "simple"} | {
    wire: protocol for wire, (protocol, *_) in framed.WIRES.items()
}
SEQUENCED = frozenset(
    {"canal-json", "open", "debezium", "simple-json", "simple-avro", "debezium-avro"}
)
"""Where a change that is sent twice has the same ``_sequence``."""


Place: TypeAlias = tuple[str | None, int | None, int | None]
"""Topic, partition and offset."""


def place_of(message: Message) -> Place:
    return message.topic, message.partition, message.offset


def partitions_of(wire: str) -> int:
    """Several where a schema may stand in another partition than its rows."""
    return 2 if wire in ("canal-json", "simple-json", "simple-avro") else 1


def topic_of(wire: str) -> str:
    return f"soak-{wire}"


@attrs.frozen
class Stream:
    """One query: its target and options, and the schema of its table."""

    name: str
    target: str
    texts: dict[str, str]

    @property
    def options(self) -> ReadOptions:
        return parsed(self.texts)

    def schema(self) -> StructType:
        if "table" not in self.texts:
            # Columns without equality are left out; images are JSON.
            fields = events_schema(self.options).fields
            return StructType([field for field in fields if field.dataType != VariantType()])
        inferring = parsed({**self.texts, "jsonAs": "string", "includeSource": "true"})
        schema = inferred_schema(load("canal-json"), inferring)
        assert schema is not None
        # An enum: some wires have its names, some its numbers.
        return StructType([field for field in schema.fields if field.name != "status"])


STREAMS = (
    Stream("events", "parquet", {"sourceTimeZone": SOURCE_ZONE, "imageFormat": "json"}),
    Stream(
        "changes",
        "delta",
        {
            "sourceTimeZone": SOURCE_ZONE,
            "table": ".".join(TABLE),
            **dict.fromkeys(("incompleteRows", "onSchemaChange", "onTruncate"), "corrupt"),
        },
    ),
)


def golden_of(wire: str, registry: OfflineRegistry) -> list[Message]:
    """Messages of the benchmark's table among others, over the partitions of a topic."""
    bench, golden = WIRES[wire]
    if wire in framed.WIRES:
        messages = framed.messages_of(wire, registry)
    elif bench is None or golden is None:
        messages = converted(wire)[:2_000]
        if wire == "dts-avro":
            messages = [*native_messages("dts/dts"), *messages]
    else:
        others = [each.message for each in load_variant(wire, golden).messages]
        rows = load(bench)[: 250 if wire == "open" else 2_000]
        # In turns, so that a short run has both.
        pairs = zip_longest(rows, others)
        messages = [message for pair in pairs for message in pair if message is not None]
    # Simple's schemas stand in partition 0 alone, rows in all.
    decode = decoder_of(wire, registry).decode
    are_rows = [any(isinstance(e, RowChange) for e in decode(message)) for message in messages]
    return [
        attrs.evolve(
            message,
            topic=topic_of(wire),
            partition=number % partitions_of(wire) if is_row else 0,
            offset=None,
            timestamp=None,
            headers=(),
        )
        for number, (message, is_row) in enumerate(zip(messages, are_rows, strict=True))
    ]


def decoder_of(wire: str, registry: OfflineRegistry) -> MessageDecoder:
    """The reference decoder of a topic."""
    options = {"schema.registry.url": registry.url} if wire in framed.WIRES else {}
    protocol = PROTOCOLS.get(wire, wire)
    return open_decoder(protocol=protocol, sourceTimeZone=SOURCE_ZONE, **options)


class Feed:
    """Sends until it is over; every batch that was committed is expected in the tables."""

    def __init__(
        self, broker: Broker, registry: OfflineRegistry, folder: Path, size: int, seed: int
    ) -> None:
        self.broker = broker
        self.folder = folder
        self.size = size
        self.lock = threading.Lock()
        """PartialMessage in a transaction: after a kill in a commit its end would not be known."""
        self.sent: Counter[str] = Counter()
        self.aborted = 0
        self.repeated = 0
        self.changes: dict[str, set[object]] = {wire: set() for wire in WIRES}
        self.error: BaseException | None = None
        self.ahead = 0
        """Batches that were sent since the driver was last seen to read one."""
        self._dice = random.Random(seed)
        self._golden = {wire: cycle(golden_of(wire, registry)) for wire in WIRES}
        self._stores = {(s.name, wire): SchemaStore() for s in STREAMS for wire in WIRES}
        self._decoders = {wire: decoder_of(wire, registry) for wire in WIRES}
        self._schemas = {stream.name: stream.schema() for stream in STREAMS}
        address = {"schema.registry.url": registry.url}
        self._streams = [attrs.evolve(s, texts={**s.texts, **address}) for s in STREAMS]
        self._places: set[Place] = set()
        self._last: dict[str, list[Message]] = {}
        self._again: list[Message] = []
        self._number = 0
        for stream in STREAMS:
            (folder / "expected" / stream.name).mkdir(parents=True)

    def config(self) -> list[dict[str, object]]:
        """The streams, as the driver reads them."""
        topics = ",".join(map(topic_of, WIRES))
        servers = {"kafka.bootstrap.servers": self.broker.servers, "subscribe": topics}
        more = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(self.size * 30)}
        return [
            {
                "name": stream.name,
                "target": stream.target,
                "options": {**stream.texts, **servers, **more},
                "schema": self._schemas[stream.name].jsonValue(),
            }
            for stream in self._streams
        ]

    def run(self, over: threading.Event, pause: float) -> None:
        """Batch after batch, with a pause behind each."""
        try:
            while not over.is_set():
                if self.ahead < MAX_AHEAD:
                    self.ahead += 1
                    self.step()
                over.wait(pause)
        except BaseException as error:
            self.error = error

    def step(self) -> None:
        """A batch of every wire: plain, or in a transaction that ends well or not."""
        batch = self._again or [message for wire in WIRES for message in self._next(wire)]
        self._again = []
        way = self._dice.random()
        if way < 0.6:
            self._expect(_send(self._producer(None), batch))
            return
        with self.lock:
            producer = self._producer(f"soak-{self._number}")
            producer.init_transactions(120)
            producer.begin_transaction()
            sent = _send(producer, batch)
            if way < 0.8:
                producer.commit_transaction(120)
                self._expect(sent)
            else:
                producer.abort_transaction(120)
                self.aborted += len(batch)
                # As its producer does: a table's schema may be in it.
                self._again = batch

    def complete(self) -> None:
        """Expect what the topics hold besides.

        A producer whose broker is killed before it answers may append a batch twice.
        """
        logs = (of_topic(self.broker.servers, topic_of(wire)) for wire in WIRES)
        more = [m for log in logs for m in log if place_of(m) not in self._places]
        self.repeated += len(more)
        if more:
            self._expect(more)

    def _producer(self, transaction: str | None) -> Producer:
        settings: dict[str, object] = {
            "bootstrap.servers": self.broker.servers,
            "log_level": 0,
            "linger.ms": 5,
            "enable.idempotence": True,
        }
        if transaction is not None:
            settings["transactional.id"] = transaction
        return Producer(settings)

    def _next(self, wire: str) -> Iterator[Message]:
        some = list(islice(self._golden[wire], self.size))
        yield from some
        if self._dice.random() < 0.3 and wire in self._last:
            # As a producer does that was restarted.
            self.repeated += len(self._last[wire])
            yield from self._last[wire]
        if self._dice.random() < 0.2:
            yield Message(b"k", GARBAGE, topic=topic_of(wire), partition=0)
        self._last[wire] = some

    def _expect(self, messages: Sequence[Message]) -> None:
        """The reference path's events of the messages, in the order of sending."""
        self._number += 1
        self._places.update(map(place_of, messages))
        for stream in self._streams:
            options, schema = stream.options, self._schemas[stream.name]
            tables = [
                read(
                    [m for m in messages if m.topic == topic_of(wire)],
                    schema,
                    options,
                    by_kernel=False,
                    inferred=False,
                    schemas=self._stores[stream.name, wire],
                ).rows
                for wire in WIRES
            ]
            path = self.folder / "expected" / stream.name / f"{self._number}.parquet"
            pq.write_table(pa.concat_tables(tables), path)
        for wire in WIRES:
            own = [m for m in messages if m.topic == topic_of(wire)]
            self.sent[wire] += len(own)
            if wire in SEQUENCED:
                self._count_changes(wire, own)

    def _count_changes(self, wire: str, messages: Sequence[Message]) -> None:
        for message in messages:
            if message.value == GARBAGE:
                continue
            for event in self._decoders[wire].decode(message):
                if isinstance(event, RowChange) and event.table.table == TABLE[1]:
                    for image in (event.before, event.after):
                        if image is not None:
                            part = image is event.after
                            self.changes[wire].add(
                                (event.commit_ts, image.values["id"], event.op, part)
                            )


def _send(producer: Producer, messages: Sequence[Message]) -> list[Message]:
    """The messages with their offsets and timestamps, once all are acknowledged."""
    done: dict[int, Message] = {}

    def acknowledge(number: int) -> Callable[[Any, Any], None]:
        def acknowledged(error: Any, record: Any) -> None:
            if error is not None:
                raise KafkaException(error)
            done[number] = attrs.evolve(
                messages[number], offset=record.offset(), timestamp=record.timestamp()[1]
            )

        return acknowledged

    for number, message in enumerate(messages):
        producer.produce(
            message.topic,
            message.value,
            message.key,
            partition=message.partition,
            timestamp=int(time.time() * 1000),
            on_delivery=acknowledge(number),
        )
    left = producer.flush(240)
    if left:
        raise TimeoutError(f"{left} messages were not acknowledged in four minutes")
    return [done[number] for number in range(len(messages))]
