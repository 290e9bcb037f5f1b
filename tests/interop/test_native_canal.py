"""Alibaba Canal's messages, replayed: they end in the rows that the database dumped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
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
)
from support.native_workload import ALTERED, Row

from cdcfmt_core.events import Event, Message, RowChange, SchemaChange

LOSSES = [
    Loss("wide", "c_gbk", "gbk", "Canal decodes every text with one charset, here UTF-8"),
    Loss("wide", "c_latin1", "cp1252", "Canal decodes every text with one charset, here UTF-8"),
    Loss("wide", "c_u16", "utf-16-be", "Canal decodes every text with one charset, here UTF-8"),
    Loss("wide", "c_dec", "trailing zeros", "Canal strips them; the number is the same"),
]

DDL = [
    ("QUERY", "shop", ""),
    ("QUERY", "shop", ""),
    ("CREATE", "shop", "sentinel"),
    ("CREATE", "shop", "wide"),
    ("CREATE", "shop", "pair"),
    ("CREATE", "shop", "nopk"),
    ("CREATE", "shop", "uk"),
    ("CREATE", "shop", "订 单"),
    ("QUERY", "maxwell", ""),
    ("QUERY", "maxwell2", ""),
    ("ALTER", "shop", "pair"),
    ("ALTER", "shop", "pair"),
    ("ALTER", "shop", "pair"),
    ("CINDEX", "shop", "pair"),
    ("CREATE", "shop", "later"),
    ("ALTER", "shop", "later"),
    ("RENAME", "shop", "later2"),
    ("TRUNCATE", "shop", "uk"),
    ("ALTER", "shop", "pair"),
    ("CREATE", "shop", "tmp_drop"),
    ("ERASE", "shop", "tmp_drop"),
    ("QUERY", "other", ""),
    ("CREATE", "other", "o"),
    ("QUERY", "other", ""),
]

UNIQUE_KEYS = {"uk": ("u",)}
"""Keys that pkNames omits; ``nopk`` has no key."""


@attrs.define
class Replay:
    """The rows of each table, by key; those without a key are counted."""

    keyed: dict[str, dict[tuple[Any, ...], Row]] = attrs.field(factory=dict)
    keyless: Counter[tuple[tuple[str, Any], ...]] = attrs.field(factory=Counter)

    def apply(self, event: Event) -> None:
        if isinstance(event, SchemaChange):
            self._apply_ddl(event)
            return
        assert isinstance(event, RowChange), event
        assert (event.before is not None) == (event.op != "insert")
        assert (event.after is not None) == (event.op != "delete")
        if event.table.table == "nopk":
            self._apply_keyless(event)
        else:
            self._apply_keyed(event)

    def _apply_keyed(self, event: RowChange) -> None:
        keys = event.table.key_columns or UNIQUE_KEYS[event.table.table]
        rows = self.keyed[event.table.table]
        if event.before is not None:
            assert event.before.complete
            before = event.before.values
            assert rows.pop(tuple(before[name] for name in keys)) == before
        if event.after is not None:
            assert event.after.complete
            after = event.after.values
            assert rows.setdefault(tuple(after[name] for name in keys), after) is after

    def _apply_keyless(self, event: RowChange) -> None:
        if event.before is not None:
            row = tuple(event.before.values.items())
            assert self.keyless[row] > 0
            self.keyless[row] -= 1
        if event.after is not None:
            self.keyless[tuple(event.after.values.items())] += 1

    def _apply_ddl(self, event: SchemaChange) -> None:
        if event.ddl_type == "CREATE":
            self.keyed[event.table] = {}
        elif event.ddl_type == "ERASE":
            assert self.keyed.pop(event.table)
        elif event.ddl_type == "TRUNCATE":
            assert self.keyed[event.table]
            self.keyed[event.table] = {}
        elif event.ddl_type == "RENAME":
            assert event.query == "RENAME TABLE later TO later2"
            self.keyed[event.table] = self.keyed.pop("later")
        elif event.ddl_type == "ALTER":
            for row in self.keyed[event.table].values():
                ALTERED[event.query](row)
        elif event.query == "DROP DATABASE other":
            assert self.keyed.pop("o")


def events_of(name: str) -> Iterator[tuple[Message, Event]]:
    decoder = open_decoder(protocol="canal-json", sourceTimeZone="UTC")
    for message in native_messages(f"canal/{name}"):
        for event in decoder.decode(message):
            yield message, event


@pytest.fixture(scope="module")
def replay() -> Replay:
    """Every before image of an update or delete is compared with the replayed row."""
    result = Replay()
    for _, event in events_of("canal_flat"):
        result.apply(event)
    return result


def test_replay_equals_the_dump(replay: Replay) -> None:
    losses = Losses(LOSSES, ["wide"])
    dump = {
        table: [{name: dumped_value(*cell) for name, cell in row.items()} for row in rows]
        for table, rows in dumped_tables().items()
    }
    assert replay.keyed.pop("nopk") == {}
    assert +replay.keyless == Counter(tuple(row.items()) for row in dump.pop("nopk"))
    assert replay.keyed.keys() == dump.keys()
    for table, rows in dump.items():
        assert len(replay.keyed[table]) == len(rows)
        for row in rows:
            replayed = _find(replay.keyed[table], row)
            assert replayed.keys() == row.keys()
            for column, expected in row.items():
                _check_value(table, column, expected, replayed[column], losses)
    losses.assert_all_seen("gbk", "cp1252", "utf-16-be", "trailing zeros")


def _find(rows: dict[tuple[Any, ...], Row], dumped: Row) -> Row:
    width = len(next(iter(rows)))
    return rows[tuple(dumped.values())[:width]]


def _check_value(table: str, column: str, expected: Any, actual: Any, losses: Losses) -> None:
    if same(expected, actual):
        return
    place = f"{table}.{column}: {actual!r} is not {expected!r}"
    if isinstance(expected, Decimal):
        assert losses.covers(table, column, "trailing zeros"), place
        assert expected == actual, place
        return
    for charset in ("gbk", "cp1252", "utf-16-be"):
        if losses.covers(table, column, charset):
            assert expected.encode(charset).decode("utf-8", "replace") == actual, place
            return
    raise AssertionError(place)


def test_ddl() -> None:
    events = [event for _, event in events_of("canal_flat") if isinstance(event, SchemaChange)]
    assert [(event.ddl_type, event.database, event.table) for event in events] == DDL
    assert all(event.query and event.commit_ts is None for event in events)


def test_positions() -> None:
    """No TSO and no order but the offset's; times in whole seconds of the source."""
    places = []
    for message, event in events_of("canal_flat"):
        assert isinstance(event, RowChange | SchemaChange)
        assert event.commit_ts is None
        assert event.source_time is not None
        assert event.emit_time is not None
        assert event.source_time % 1_000_000 == 0
        assert event.source_time <= event.emit_time
        places.append((message.offset, event.index))
        assert event.sequence_commit is None
    assert places == sorted(set(places))
    assert any(index for _, index in places)


def test_partitions_hold_the_same_changes() -> None:
    """Canal's hash spreads a key over partitions: only the multiset is the same."""
    assert Counter(map(_outline, events_of("canal_flat_hash"))) == Counter(
        map(_outline, events_of("canal_flat"))
    )
    partitions = {message.partition for message, _ in events_of("canal_flat_hash")}
    assert partitions == {0, 1, 2}


def _outline(item: tuple[Message, Event]) -> tuple[Any, ...]:
    event = item[1]
    assert isinstance(event, RowChange | SchemaChange), event
    if isinstance(event, SchemaChange):
        return event.ddl_type, event.database, event.table, event.query, event.source_time
    images = [image and repr(image.values) for image in (event.before, event.after)]
    return event.op, event.table.database, event.table.table, event.source_time, *images
