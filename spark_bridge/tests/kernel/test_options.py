"""Options and filters by the kernel: the reference's rows, counts and skipped messages."""

from __future__ import annotations

import json
import random
from functools import cache

import attrs
import pyarrow as pa
import pytest
from kernel.test_golden import golden
from support.canal_messages import row_message
from support.damaged_messages import mutated_message
from support.golden_data import native_messages
from support.turns import in_turn

from cdcfmt_core.events import Message
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

CASES = (
    ("canal-json", "default"),
    ("canal-json", "tidb-extension"),
    ("debezium", "default"),
    ("debezium", "disable-schema"),
    ("simple-json", "default"),
    ("open", "default"),
)
OPTIONS: dict[str, dict[str, str]] = {
    "no images": {"images": "none"},
    "no images, keys split": {"images": "none", "splitKeyUpdates": "true", "keyColumns": "id"},
    "headers": {"includeHeaders": "true", "imageFormat": "json"},
    "nothing but headers": {"includeHeaders": "true", "images": "none"},
}


def with_damage(messages: list[Message], *, in_frames: bool) -> list[Message]:
    """The messages with headers, some of them damaged."""
    chance = random.Random(len(messages))
    found = []
    for number, message in enumerate(messages * 2):
        if chance.random() < 0.2 and message.value is not None:
            message = mutated_message(message, chance, in_frames=in_frames)
        headers = (("a\udcff", b"\xff"), ("n", b"%d" % number))[: number % 3]
        found.append(attrs.evolve(message, headers=headers))
    return found


@pytest.mark.parametrize(("protocol", "name", "options"), in_turn(CASES, OPTIONS, of=2))
def test_options(protocol: str, name: str, options: str) -> None:
    messages, given, _ = golden(protocol, name)
    messages = with_damage(messages, in_frames=protocol == "open")
    read = parsed(given | OPTIONS[options])
    result = check_equal(messages, events_schema(read), read, inferred=False)
    assert result.by_kernel > len(messages) / 4


KINDS = (None, {"row", "corrupt"}, {"ddl", "corrupt"})
OPS = (None, {"delete"}, {"insert", "truncate"}, {"upsert", "update"})


@pytest.mark.parametrize(("protocol", "name", "ops", "kinds"), in_turn(CASES, OPS, KINDS, of=3))
def test_filters(protocol: str, name: str, ops: set[str] | None, kinds: set[str] | None) -> None:
    messages, given, _ = golden(protocol, name)
    messages = with_damage(messages, in_frames=protocol == "open")
    read = parsed(given | {"imageFormat": "json"})
    wanted = attrs.evolve(
        read.event_filter(),
        ops=None if ops is None else frozenset(ops),
        kinds=None if kinds is None else frozenset(kinds),
    )
    result = check_equal(messages, events_schema(read), read, event_filter=wanted)
    if protocol == "open" and ops is not None:
        return  # an event's operation is known when its images have been read
    assert result.by_reference <= by_reference_unfiltered(protocol, name)


@cache
def by_reference_unfiltered(protocol: str, name: str) -> int:
    messages, given, _ = golden(protocol, name)
    messages = with_damage(messages, in_frames=protocol == "open")
    read = parsed(given | {"imageFormat": "json"})
    return check_equal(messages, events_schema(read), read).by_reference


@pytest.mark.parametrize(
    ("protocol", "name"), [case for case in CASES if case != ("canal-json", "default")]
)
def test_commit_ts(protocol: str, name: str) -> None:
    messages, given, _ = golden(protocol, name)
    read = parsed(given | {"imageFormat": "json"})
    rows = check_equal(messages, events_schema(read), read).rows
    known = sorted(filter(None, rows["commit_ts"].to_pylist()))
    messages = with_damage(messages, in_frames=protocol == "open")
    for start, end in ((known[0], known[len(known) // 2]), (known[-1] + 1, known[-1] + 2)):
        read = parsed(given | {"startingCommitTs": str(start), "endingCommitTs": str(end)})
        assert check_equal(messages, events_schema(read), read).skipped > 20


@pytest.mark.parametrize(("protocol", "name"), CASES)
def test_times_of_the_source(protocol: str, name: str) -> None:
    messages, given, _ = golden(protocol, name)
    check_times(messages, given)
    read = parsed(given | {"startingSourceTime": "2020-01-01", "imageFormat": "json"})
    check_equal(with_damage(messages, in_frames=protocol == "open"), events_schema(read), read)


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("canal/canal_flat", "canal-json"),
        ("debezium/noschema_default", "debezium"),
        ("debezium/schema_default", "debezium"),
        ("dts/dts", "dts-avro"),
    ],
)
def test_times_of_sources_without_commit_ts(name: str, protocol: str) -> None:
    check_times(list(native_messages(name)), {"protocol": protocol})


def check_times(messages: list[Message], given: dict[str, str]) -> None:
    """The rows of a range of times are those that all rows have in it."""
    given = given | {"imageFormat": "json"}
    read = parsed(given)
    everything = check_equal(messages, events_schema(read), read).rows.to_pylist()
    rows = [row for row in everything if row["kind"] == "row"]
    times = sorted({row["commit_time"] or row["source_time"] for row in rows})
    start, end = times[len(times) // 4], times[len(times) // 4 * 3]
    of_times = {"startingSourceTime": start.isoformat(), "endingSourceTime": end.isoformat()}
    read = parsed(given | of_times)
    result = check_equal(messages, events_schema(read), read)
    kept = [row for row in result.rows.to_pylist() if row["kind"] == "row"]
    assert kept == [r for r in rows if start <= (r["commit_time"] or r["source_time"]) < end]
    assert 0 < len(kept) < len(rows)
    assert result.skipped


@pytest.mark.parametrize(("protocol", "name"), CASES[1:])
def test_duplicates(protocol: str, name: str) -> None:
    messages, given, _ = golden(protocol, name)
    read = parsed(given | {"imageFormat": "json"})
    schema = events_schema(read)
    known = sorted(filter(None, check_equal(messages, schema, read).rows["commit_ts"].to_pylist()))
    engines = [
        Engine(ReadTask(schema, read, low_watermark=known[len(known) // 2]), by_kernel=by_kernel)
        for by_kernel in (True, False)
    ]
    actual, expected = (pa.Table.from_batches(engine.batches(messages)) for engine in engines)
    assert actual.equals(expected)
    assert engines[0].counts == engines[1].counts
    chunks = engines[0].chunks
    assert chunks is not None
    assert engines[0].counts["duplicates dropped"] > 9
    assert chunks.by_kernel > 9


@pytest.mark.parametrize("names", [["kind", "table", "op"], ["after", "key_columns"], ["extra"]])
def test_events_with_some_columns(names: list[str]) -> None:
    messages, given, _ = golden("canal-json", "tidb-extension")
    read = parsed(given)
    schema = events_schema(read)
    some = type(schema)([field for field in schema.fields if field.name in names])
    assert check_equal(messages, some, read, inferred=False).by_kernel > len(messages) / 2


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        ("canal-json", "default"),
        ("canal-json", "delete-only-handle-key"),
        ("debezium", "default"),
        ("open", "delete-only-handle-key"),
        ("simple-json", "default"),
        ("simple-avro", "default"),
    ],
)
def test_columns_of_each_table(protocol: str, name: str) -> None:
    messages, given, _ = golden(protocol, name)
    read = parsed(given | {"includeColumns": "true"})
    assert check_equal(messages, events_schema(read), read).by_kernel > len(messages) / 3


def test_table_with_only_key_columns() -> None:
    rows = [row_message(kind, {"id": "1"}) for kind in ("INSERT", "DELETE")]
    messages = [Message(None, json.dumps(row, separators=(",", ":")).encode()) for row in rows * 9]
    read = parsed({"protocol": "canal-json", "includeColumns": "true"})
    result = check_equal(messages, events_schema(read), read)
    assert "partial" in str(result.rows["extra"].to_pylist())
    assert result.by_kernel == 0
