"""Debezium's own messages, replayed: they end in the rows that the database dumped."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import attrs
import pytest
from support.golden_data import (
    Loss,
    Losses,
    dumped_tables,
    dumped_value,
    native_messages,
    open_decoder,
    same,
    scan_schemas,
)
from support.native_workload import ALTERED, Row

from cdcfmt_core.events import Event, Message, RowChange, SchemaChange, Transaction
from cdcfmt_core.types import Unknown
from cdcfmt_toolkit.wire_json import loads_exact

OPTIONS = {
    "schema_default": {},
    "noschema_default": {"timePrecisionMode": "adaptive_time_microseconds"},
    # Its decimals as text and its bytes as base64 are recognised.
    "noschema_strings": {"timePrecisionMode": "connect"},
    "schema_unwrap_rewrite": {"flattened": "true"},
}
"""The options required by each connector."""

_CONNECT = "time.precision.mode=connect has milliseconds, and no TIME outside of a day"
LOSSES = {
    "noschema_strings": [
        *(Loss("wide", column, "time of day", _CONNECT) for column in ("c_time", "c_time3")),
        Loss("wide", "c_time6", "time of day", _CONNECT),
        Loss("wide", "c_time6", "microseconds", _CONNECT),
        Loss("wide", "c_dt6", "microseconds", _CONNECT),
    ],
}

NEVER_TRUNCATED = 6
"""Rows of ``uk`` that TRUNCATE removed: Debezium never reports that statement."""

SNAPSHOT_DIGITS = {"c_float"}
"""MariaDB prints a FLOAT with six digits, and the snapshot reads what it prints."""

UNTOUCHED = {("sentinel", (1,))}
"""Rows missing in ``noschema_strings``, which has no snapshot."""


@attrs.define
class Replay:
    """The rows of each table by key, and those of ``nopk`` counted."""

    has_snapshot: bool
    flattened: bool
    keyed: dict[str, dict[tuple[Any, ...], Row]] = attrs.field(factory=dict)
    keyless: Counter[tuple[tuple[str, Any], ...]] = attrs.field(factory=Counter)

    def apply(self, event: Event) -> None:
        if isinstance(event, SchemaChange):
            self._apply_ddl(event)
        elif isinstance(event, RowChange):
            assert (event.after is None) == (event.op == "delete")
            if event.table.table == "nopk":
                self._apply_keyless(event)
            else:
                self._apply_keyed(event)

    def _apply_keyed(self, event: RowChange) -> None:
        keys = event.table.key_columns
        rows = self.keyed[event.table.table]
        if event.before is not None:
            assert event.before.complete
            before = event.before.values
            known = rows.pop(tuple(before[name] for name in keys), None)
            assert known is not None or not self.has_snapshot
            if known is not None:
                differing = {name for name in before if before[name] != known[name]}
                assert differing <= SNAPSHOT_DIGITS
                assert before.keys() == known.keys()
        if event.after is not None:
            assert event.after.complete
            after = event.after.values
            key = tuple(after[name] for name in keys)
            # uk keeps its rows: its TRUNCATE was not reported.
            assert self.flattened or key not in rows or event.table.table == "uk"
            rows[key] = after

    def _apply_keyless(self, event: RowChange) -> None:
        assert event.table.key_columns == ()
        if event.before is not None:
            self.keyless[tuple(event.before.values.items())] -= 1
        if event.after is not None:
            self.keyless[tuple(event.after.values.items())] += 1

    def _apply_ddl(self, event: SchemaChange) -> None:
        if event.ddl_type == "CREATE":
            self.keyed[event.table] = {}
        elif event.ddl_type == "ERASE":
            self.keyed.pop(event.table, None)
        elif event.ddl_type == "RENAME":
            assert event.query == "RENAME TABLE later TO later2"
            self.keyed[event.table] = self.keyed.pop("later")
        elif event.ddl_type == "ALTER":
            for row in self.keyed[event.table].values():
                ALTERED[event.query](row)
        elif event.query == "DROP DATABASE other":
            assert self.keyed.pop("o")


def _binlog_order(event: Event) -> tuple[int, int]:
    assert event.extra is not None
    return event.extra["pos"], isinstance(event, RowChange)


def events_of(name: str, counts: Counter[str] | None = None) -> list[tuple[Message, Event]]:
    decoder = open_decoder(counts, protocol="debezium", **OPTIONS[name])
    return [
        (message, event)
        for message in native_messages(f"debezium/{name}")
        for event in decoder.decode(message)
    ]


def dump() -> dict[str, list[Row]]:
    return {
        table: [{name: dumped_value(*cell) for name, cell in row.items()} for row in rows]
        for table, rows in dumped_tables().items()
    }


@pytest.mark.parametrize("name", OPTIONS)
def test_replay_equals_the_dump(name: str) -> None:
    has_snapshot = name != "noschema_strings"
    replay = Replay(has_snapshot, "flattened" in OPTIONS[name])
    events = [e for _, e in events_of(name) if isinstance(e, RowChange | SchemaChange)]
    for event in sorted(events, key=_binlog_order):
        replay.apply(event)

    losses = Losses(LOSSES.get(name, []), ["wide"])
    expected = dump()
    keyless = Counter(tuple(row.items()) for row in expected.pop("nopk"))
    if replay.flattened:
        # An update of a keyless row has no image of the row before it.
        assert not keyless - replay.keyless
    elif has_snapshot:
        assert +replay.keyless == keyless
    assert replay.keyed.pop("nopk") == {}
    tables = {table for table in replay.keyed if not table.startswith(("maxwell", "later"))}
    for table, rows in expected.items():
        replayed = replay.keyed[table]
        keys = {tuple(row.values())[: len(next(iter(replayed)))]: row for row in rows}
        missing = {(table, key) for key in keys.keys() - replayed.keys()}
        assert missing <= UNTOUCHED if not has_snapshot else not missing
        more = replayed.keys() - keys.keys()
        assert len(more) == (NEVER_TRUNCATED if table == "uk" else 0)
        for key in keys.keys() & replayed.keys():
            assert (
                list(replayed[key]) == list(keys[key]) or replayed[key].keys() == keys[key].keys()
            )
            for column, value in keys[key].items():
                _check_value(table, column, value, replayed[key][column], losses)
        tables.discard(table)
    losses.assert_all_seen("time of day", "microseconds")


def _check_value(table: str, column: str, expected: Any, actual: Any, losses: Losses) -> None:
    if same(expected, actual):
        return
    place = f"{table}.{column}: {actual!r} is not {expected!r}"
    if isinstance(expected, timedelta) and not timedelta() <= expected < timedelta(days=1):
        assert losses.covers(table, column, "time of day"), place
        assert actual is None, place
    else:
        assert losses.covers(table, column, "microseconds"), place
        assert isinstance(expected, datetime | timedelta)
        assert timedelta() < expected - actual < timedelta(milliseconds=1), place


def test_all_streams_are_equal() -> None:
    """With and without schemas: the same changes, in each table's order."""
    outlines = []
    for name in ("schema_default", "noschema_default"):
        rows = [e for _, e in events_of(name) if isinstance(e, RowChange)]
        outlines.append(
            [
                (e.op, e.table.database, e.table.table, e.table.key_columns, e.before, e.after)
                for e in rows
            ]
        )
        types = {column.type for e in rows for column in e.table.columns}
        assert not any(isinstance(type_, Unknown) for type_ in types)
    assert outlines[0] == outlines[1]


@pytest.mark.parametrize("name", OPTIONS)
def test_positions_and_extras(name: str) -> None:
    for _, event in events_of(name):
        assert event.commit_ts is None
        if isinstance(event, Transaction):
            assert event.transaction_id
            assert event.source_time is not None
            continue
        assert isinstance(event, RowChange | SchemaChange)
        assert event.source_time is not None
        assert event.extra is not None
        assert event.extra["pos"] > 0
        if name != "schema_unwrap_rewrite":
            assert event.emit_time is not None
            assert event.extra["file"] == "binlog.000001"
            assert {"ts_ms", "db", "version"}.isdisjoint(event.extra)
        if name == "noschema_strings" and isinstance(event, RowChange):
            assert event.extra["transaction"]["id"] == event.extra["gtid"]


@pytest.mark.parametrize("name", ["noschema_default", "noschema_strings"])
def test_values_without_ddl_stay_raw(name: str) -> None:
    messages = [
        m for m in native_messages(f"debezium/{name}") if b"tableChanges" not in (m.value or b"")
    ]
    decoder = open_decoder(protocol="debezium", **OPTIONS[name])
    rows = 0
    for message in messages:
        for event in decoder.decode(message):
            if isinstance(event, Transaction):
                continue
            assert isinstance(event, RowChange)
            rows += 1
            assert {type(column.type) for column in event.table.columns} == {Unknown}
            assert message.value is not None
            wire = loads_exact(message.value)
            for image, sent in ((event.before, wire["before"]), (event.after, wire["after"])):
                assert (None if image is None else image.values) == sent
    assert rows > 400


def test_transactions() -> None:
    open_: set[str | None] = set()
    seen = Counter()
    for _, event in events_of("noschema_strings"):
        if isinstance(event, Transaction):
            seen[event.status] += 1
            if event.status == "begin":
                assert event.extra is None
                open_.add(event.transaction_id)
            else:
                assert event.extra is not None
                assert event.extra["event_count"] >= 0
                open_.remove(event.transaction_id)
    # A transaction of DDL alone, or of other databases, begins and does not end.
    assert seen == {"begin": 563, "commit": 533}
    assert len(open_) == 30


def test_tombstones_are_counted() -> None:
    counts: Counter[str] = Counter()
    deletes = sum(
        isinstance(event, RowChange) and event.op == "delete"
        for _, event in events_of("schema_default", counts)
    )
    assert counts["tombstones"] == deletes > 50


def test_the_snapshot_reads() -> None:
    ops = Counter(
        event.op for _, event in events_of("schema_default") if isinstance(event, RowChange)
    )
    assert ops == {"read": 22, "update": 190, "delete": 76, "insert": 192}


def test_schemas_are_found_before_decoding() -> None:
    """In any order of the messages: each row takes the schema of its own position."""
    messages = list(native_messages("debezium/noschema_default"))
    schemas = scan_schemas(messages, protocol="debezium")
    decoder = open_decoder(protocol="debezium", schemas=schemas, **OPTIONS["noschema_default"])
    backwards = [event for m in reversed(messages) for event in decoder.decode(m)]
    forwards = [event for _, event in events_of("noschema_default")]
    assert [e.after for e in reversed(backwards) if isinstance(e, RowChange)] == [
        e.after for e in forwards if isinstance(e, RowChange)
    ]
    texts = {
        (column.name, column.source_type)
        for e in forwards
        if isinstance(e, RowChange) and e.table.table == "pair"
        for column in e.table.columns
    }
    assert {("n", "int(11)"), ("n", "bigint"), ("extra", "decimal(12,4)")} <= texts
