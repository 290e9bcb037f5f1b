"""Debezium's rows without schemas: the same events for any batches of a topic."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from zlib import crc32

import attrs
import pytest
from support.golden_data import load_variant, native_messages, open_decoder, scan_schemas
from support.kafka_broker import Broker

from cdcfmt_core.events import Event, Message, RowChange
from cdcfmt_core.offsets import OffsetRange, TopicPartition
from cdcfmt_core.options import validate
from cdcfmt_core.schema_scan import open_schema_scan
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Unknown
from cdcfmt_kafka.options import KAFKA_OPTIONS
from cdcfmt_kafka.source import KafkaSource, open_source
from cdcfmt_toolkit.schema_directory import SchemaDirectory
from cdcfmt_toolkit.topic_input import begins_around
from cdcfmt_toolkit.topics.schema_search import TopicSearch
from cdcfmt_toolkit.topics.topic_scan import TopicScan
from pyspark_cdcfmt.options import parse_options

OPTIONS = {"protocol": "debezium", "timePrecisionMode": "adaptive_time_microseconds"}

Place = tuple[str, int]
Ranges = dict[Place, tuple[int, int]]
Found = dict[tuple[str, int, int], list[str]]

_names = count()


def is_ddl(message: Message) -> bool:
    return b'"tableChanges"' in (message.value or b"")


def of_ticdc(rows_in: tuple[int, ...], ddl_in: tuple[int, ...]) -> list[Message]:
    """One topic, with each table's rows in one of these partitions and DDL in all of those."""
    topic = f"ticdc-{next(_names)}"
    messages = []
    for golden in load_variant("debezium", "disable-schema").messages:
        places = ddl_in
        if not is_ddl(golden.message):
            table = golden.truth[0]["table"].encode()
            places = (rows_in[crc32(table) % len(rows_in)],)
        messages += [attrs.evolve(golden.message, topic=topic, partition=n) for n in places]
    return messages


def of_a_connector() -> list[Message]:
    """A topic for each table, and one for the DDL of all."""
    prefix = f"connector-{next(_names)}"
    return [
        attrs.evolve(m, topic=(m.topic or "").replace("dbz_noschema_default", prefix))
        for m in native_messages("debezium/noschema_default")
    ]


CASES: dict[str, Callable[[], list[Message]]] = {
    "DDL among the rows": lambda: of_ticdc((0,), (0,)),
    "DDL in all partitions": lambda: of_ticdc((1, 2), (0, 1, 2)),
    "DDL in partition 0": lambda: of_ticdc((1, 2), (0,)),
    "DDL in another topic": of_a_connector,
}


def produce(kafka: Broker, messages: list[Message]) -> tuple[Found, dict[Place, int]]:
    """The events under full knowledge of schemas, and the number of messages per partition."""
    schemas = scan_schemas(messages, **OPTIONS)
    ends: dict[Place, int] = {}
    found: Found = {}
    for topic in {message.topic or "" for message in messages}:
        kafka.create_topic(topic, 3)
    for message in messages:
        place = (message.topic or "", message.partition or 0)
        offset = ends.get(place, 0)
        ends[place] = offset + 1
        events = open_decoder(schemas=schemas, **OPTIONS).decode(message)
        assert not any(has_unknown(event) for event in events)
        found[(*place, offset)] = shown(events)
        kafka.produce(place[0], [attrs.evolve(message, offset=None, timestamp=None)])
    return found, ends


def has_unknown(event: Event) -> bool:
    return isinstance(event, RowChange) and any(
        isinstance(column.type, Unknown) for column in event.table.columns
    )


def shown(events: list[Event]) -> list[str]:
    """With the columns of table schemas, which are equal only to themselves."""
    return [repr(event) for event in events]


@attrs.define
class Query:
    """A query of this name, with its schema store; each batch has a task for each partition."""

    source: KafkaSource
    folder: Path
    name: str
    dice: random.Random

    def batch(self, ranges: Ranges) -> Found:
        begins: dict[TopicPartition, int] = {place: start for place, (start, _) in ranges.items()}
        found: Found = {}
        places = list(ranges)
        self.dice.shuffle(places)
        for place in places:
            start, end = ranges[place]
            # As with minPartitions: two tasks, the later one first.
            middle = (start + end) // 2
            for low, high in [(middle, end), (start, middle)]:
                found |= self.task(OffsetRange(*place, low, high), begins)
        return found

    def task(self, range_: OffsetRange, begins: dict[TopicPartition, int]) -> Found:
        options = parse_options(OPTIONS)
        scan = open_schema_scan(options.values, options.codec)
        assert scan is not None
        store = SchemaStore(persistence=SchemaDirectory(str(self.folder)))
        search = store.search = TopicSearch(
            store,
            range_,
            begins_around(range_, begins),
            TopicScan(self.source, scan),
            reach=1_000_000,
            run=self.name,
        )
        decoder = open_decoder(schemas=store, **OPTIONS)
        place = range_.topic, range_.partition
        return {
            (*place, message.offset or 0): shown(decoder.decode(message))
            for message in search.follow(self.source.read(range_))
        }


@pytest.mark.parametrize("case", CASES)
def test_events_are_independent_of_batch_boundaries(
    kafka: Broker, tmp_path: Path, case: str
) -> None:
    truth, ends = produce(kafka, CASES[case]())
    assert sum("RowChange(" in event for events in truth.values() for event in events) > 200
    topics = ",".join({topic for topic, _ in ends})
    values = validate({"subscribe": topics}, KAFKA_OPTIONS, owner="the test")
    source = open_source(values, {"bootstrap.servers": kafka.servers})
    dice = random.Random(len(case))
    query = Query(source, tmp_path, case, dice)
    # It begins in the middle, and partitions do not move alike.
    first = at = {place: dice.randrange(end // 2 + 1) for place, end in ends.items()}
    batches: list[tuple[Ranges, Found]] = []
    while any(at[place] < end for place, end in ends.items()):
        ranges = {
            place: (at[place], end if len(batches) == 2 else dice.randint(at[place], end))
            for place, end in ends.items()
        }
        batches.append((ranges, query.batch(ranges)))
        at = {place: end for place, (_, end) in ranges.items()}
    found = {key: events for _, batch in batches for key, events in batch.items()}
    expected = {key: events for key, events in truth.items() if key[2] >= first[key[:2]]}
    assert found.keys() == expected.keys()
    for key, events in expected.items():
        assert found[key] == events, key
    # Again, with a complete store.
    ranges, then = batches[0]
    assert query.batch(ranges) == then
