"""Batches and row events, with old values, keys, flags and filters."""

from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from open_messages import (
    DDL_KEY,
    ID,
    NAME,
    RESOLVED_KEY,
    ROW_KEY,
    TS,
    VERSION,
    decode,
    decode_row,
    frames,
    message,
    open_decoder,
)

from cdcfmt_core import DecoderContext, default_registry, types
from cdcfmt_core.codec import Projection
from cdcfmt_core.events import (
    Column,
    Image,
    Message,
    RowChange,
    SchemaChange,
    Watermark,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.schemas.store import SchemaStore


def test_several_events_in_one_message() -> None:
    events = decode(
        [ROW_KEY, DDL_KEY, RESOLVED_KEY, {**ROW_KEY, "tbl": "t2"}],
        [{"u": {"id": ID}}, {"q": "drop table t1", "t": 4}, b"", {"d": {"id": ID, "n": NAME}}],
    )
    assert [type(event) for event in events] == [RowChange, SchemaChange, Watermark, RowChange]
    assert [getattr(event, "index", None) for event in events] == [0, 1, 2, 3]


@pytest.mark.parametrize("value", [b"", None])
def test_a_message_without_events(value: bytes | None) -> None:
    assert open_decoder().decode(Message(VERSION, value)) == []


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\0" * 8, b"\0" * 16, b"\0" * 24, frames([b"\0" * 8, b"", b""])],
    ids=["missing", "empty", "one length", "two lengths", "three lengths", "zeros"],
)
def test_resolved_events(value: bytes | None) -> None:
    # [java] has three of them in one message.
    keys = [{"ts": TS + i, "t": 3} for i in range(3)]
    events = open_decoder().decode(Message(VERSION + frames(keys), value))
    assert events == [Watermark(TS + i, index=i) for i in range(3)]


def test_resolved_events_without_values_among_others() -> None:
    keys = [RESOLVED_KEY, DDL_KEY, RESOLVED_KEY, ROW_KEY]
    events = decode(keys, [{"q": "drop table t1", "t": 4}, {"u": {"id": ID}}])
    assert [type(event) for event in events] == [Watermark, SchemaChange, Watermark, RowChange]


def test_tombstones_yield_only_watermarks() -> None:
    counts: Counter[str] = Counter()
    decoder = open_decoder(counts=counts)
    keys = [ROW_KEY, RESOLVED_KEY, DDL_KEY]
    assert decoder.decode(Message(VERSION + frames(keys[1:2]), None)) == [Watermark(TS)]
    assert counts == {}
    assert decoder.decode(Message(VERSION + frames(keys), None)) == [Watermark(TS, index=1)]
    assert decoder.decode(Message(None, None)) == []
    assert counts == {"tombstones": 2}


def test_insert() -> None:
    # [doc] logs 5 to 8, of a version without flags
    row = decode_row({"u": {"id": {"t": 3, "h": True, "v": 1}, "val": {"t": 15, "v": "YWE="}}})
    assert (row.op, row.commit_ts, row.before) == ("insert", TS, None)
    # It may be text or bytes, and so it may be base64.
    assert row.after == Image({"id": 1, "val": "YWE="})
    assert row.table.database == "test"
    assert row.table.table == "t1"
    assert row.table.columns == (
        Column("id", "int", types.Int(64), None, key=True),
        Column("val", "varchar/varbinary", types.Unknown("varchar/varbinary")),
    )
    assert row.table.key_columns == ("id",)
    assert row.extra is None


def test_update_and_delete() -> None:
    row = decode_row({"u": {"id": ID, "n": NAME}, "p": {"id": ID, "n": {**NAME, "v": None}}})
    assert row.op == "update"
    assert row.before == Image({"id": 1, "n": None})
    assert row.after == Image({"id": 1, "n": "aa"})
    row = decode_row({"d": {"id": ID, "n": NAME}})
    assert (row.op, row.after) == ("delete", None)
    assert row.before == Image({"id": 1, "n": "aa"})


@pytest.mark.parametrize(
    ("option", "alone", "beside_an_update"),
    [("true", "insert", "insert"), ("false", "upsert", "upsert"), ("auto", "upsert", "insert")],
)
def test_operation_of_rows_without_old_values(
    option: str, alone: str, beside_an_update: str
) -> None:
    new = {"u": {"id": ID}}
    assert decode_row(new, oldValue=option).op == alone
    both = decode([ROW_KEY, ROW_KEY], [new, {"u": {"id": ID}, "p": {"id": ID}}], oldValue=option)
    assert [event.op for event in both if isinstance(event, RowChange)] == [
        beside_an_update,
        "update",
    ]


def test_operation_without_old_values_is_independent_of_filters() -> None:
    keys = [ROW_KEY, {**ROW_KEY, "tbl": "t2"}]
    values = [{"u": {"id": ID}}, {"u": {"id": ID}, "p": {"id": ID}}]
    wanted = EventFilter(table=("test", "t1"))
    (row,) = decode(keys, values, oldValue="auto", event_filter=wanted)
    assert isinstance(row, RowChange)
    assert row.op == "insert"
    # A column named p is not an old row.
    (row,) = decode([ROW_KEY], [{"u": {"p": ID}}], oldValue="auto")
    assert isinstance(row, RowChange)
    assert row.op == "upsert"


def test_only_updated_columns() -> None:
    key = {**ROW_KEY, "rid": 1}
    new = {"id": ID, "n": NAME, "o": {"t": 3, "f": 65, "v": None}}
    row = decode_row({"u": new, "p": {"n": {**NAME, "v": "bb"}}}, key)
    assert row.before == Image({"id": 1, "n": "bb", "o": None}, True, ("id", "o"))
    row = decode_row({"u": new, "p": {}}, key)
    assert (row.op, row.before) == (
        "update",
        Image({"id": 1, "n": "aa", "o": None}, True, ("id", "n", "o")),
    )
    # NULL is a value; a row reduced to its handle key lacks the other columns.
    row = decode_row({"u": new, "p": {"n": {**NAME, "v": None}}}, key)
    assert row.before is not None
    assert row.before.values["n"] is None
    row = decode_row({"u": {"id": ID, "n": NAME}, "p": {"id": ID}}, {**key, "ohk": True})
    assert row.before == Image({"id": 1}, False)


def test_columns_only_in_the_old_row() -> None:
    row = decode_row({"u": {"b": ID}, "p": {"a": NAME, "b": ID}})
    assert row.before == Image({"a": "aa", "b": 1})
    assert row.after == Image({"b": 1})
    assert row.table.column_names == ("b", "a")


def test_a_delete_of_the_handle_key() -> None:
    assert decode_row({"d": {"id": ID}}).before == Image({"id": 1}, False)
    whole = {"d": {"id": ID, "n": NAME}}
    assert decode_row(whole).before == Image({"id": 1, "n": "aa"})
    option = {"deleteOnlyOutputHandleKeyColumns": True}
    assert decode_row(whole, **option).before == Image({"id": 1, "n": "aa"}, False)
    # Without a handle key nothing was cut off.
    assert decode_row({"d": {"n": NAME}}).before == Image({"n": "aa"})


def test_the_handle_key() -> None:
    cells = {
        "a": {"t": 3, "f": 0, "v": 1},
        "b": {"t": 3, "h": True, "f": 0, "v": 1},
        "c": {"t": 3, "f": 2, "v": 1},
        "d": {"t": 3, "h": False, "f": 8, "v": 1},
    }
    assert decode_row({"u": cells}).table.key_columns == ("b", "c")


def test_flags() -> None:
    # [doc] 85 and 46
    row = decode_row({"u": {"a": {"t": 15, "f": 85, "v": ""}, "b": {"t": 15, "f": 46, "v": ""}}})
    a, b = row.table.columns
    assert a.flags == ("BinaryFlag", "GeneratedColumnFlag", "UniqueKeyFlag", "NullableFlag")
    assert (a.nullable, a.key, a.type) == (True, False, types.Binary())
    assert b.flags == ("HandleKeyFlag", "GeneratedColumnFlag", "PrimaryKeyFlag", "MultipleKeyFlag")
    assert (b.nullable, b.key, b.type) == (False, True, types.Text())


def test_extra() -> None:
    key = {**ROW_KEY, "rid": -5, "ptn": 108, "ohk": True, "new": [1], "none": None}
    row = decode_row({"u": {"id": ID}, "w": {}}, key)
    assert row.extra == {
        "row_id": -5,
        "partition_id": 108,
        "new": [1],
        "only_handle_key": True,
        "w": {},
    }
    assert row.table.table == "t1"
    assert row.after == Image({"id": 1}, False)
    assert decode_row({"u": {"id": ID}}, {**ROW_KEY, "ohk": False, "ccl": ""}).extra is None


def test_a_schema_is_one_object() -> None:
    decoder = open_decoder()

    def table_of(**cells: Any) -> Any:
        (event,) = decoder.decode(message([ROW_KEY], [{"u": cells}]))
        assert isinstance(event, RowChange), event
        return event.table

    first = table_of(id=ID, n=NAME)
    assert table_of(id={**ID, "v": 2}, n={**NAME, "v": None}) is first
    others = [
        table_of(id=ID),
        table_of(n=NAME, id=ID),
        table_of(id=ID, m=NAME),
        table_of(id={**ID, "t": 8}, n=NAME),
        table_of(id=ID, n={**NAME, "f": 65}),
        table_of(id=ID, n={**NAME, "h": True}),
        table_of(id={"t": 3, "f": 11, "v": 1}, n=NAME),
        table_of(id=ID, n={"t": 15, "v": "aa"}),
    ]
    assert len({id(schema) for schema in [first, *others]}) == 9
    # Unknown members have no effect.
    assert table_of(id={**ID, "x": 1}, n={**NAME, "x": 1}) is first
    assert table_of(id=ID, n=NAME) is first
    assert table_of(id=ID, n={"t": 15, "v": "aa"}) is others[-1]


def test_zoneless_timestamps(caplog: pytest.LogCaptureFixture) -> None:
    cell = {"t": 7, "f": 65, "v": "1973-12-30 15:30:00"}
    key = {**ROW_KEY, "tbl": "zoneless"}
    with caplog.at_level(logging.WARNING, "cdcfmt_core"):
        row = decode_row({"u": {"c": cell}}, key)
        zoned = decode_row({"u": {"c": cell}}, key, sourceTimeZone="+08:00")
    assert row.after == Image({"c": datetime(1973, 12, 30, 15, 30, tzinfo=UTC)})
    assert zoned.after == Image({"c": datetime(1973, 12, 30, 7, 30, tzinfo=UTC)})
    assert [record.getMessage()[:13] for record in caplog.records] == ["test.zoneless"]


def test_projection() -> None:
    codec = default_registry().get_codec("open-protocol")
    new = {"id": ID, "n": NAME, "bad": {"t": 3, "f": 65, "v": "x"}}

    def decode_with(projection: Projection, old: Any) -> RowChange:
        context = DecoderContext(
            default_registry().get_type_map("mysql"), SchemaStore(), projection=projection
        )
        decoder = codec.open_decoder(validate({}, codec.options, owner="the test"), context)
        (event,) = decoder(message([ROW_KEY], [{"u": new, "p": old}]))
        assert isinstance(event, RowChange), event
        return event

    only_n = Projection(columns=frozenset({"n"}))
    for _ in range(2):
        row = decode_with(only_n, new)
        assert (row.before, row.after) == (Image({"id": 1, "n": "aa"}),) * 2
        assert row.table.column_names == ("id", "n", "bad")
    no_updates = Projection(columns=frozenset({"n"}), before_updates=False)
    assert decode_with(no_updates, new).before is None
    moved = decode_with(no_updates, {**new, "id": {**ID, "v": 7}})
    assert moved.before == Image({"id": 7, "n": "aa"})
    with pytest.raises(AssertionError, match=r"p\.id: is not a column"):
        decode_with(no_updates, {"id": 1})
    by_n = Projection(frozenset({"id"}), before_updates=False, key_columns=("n",))
    assert decode_with(by_n, {**new, "id": {**ID, "v": 7}}).before is None
    assert decode_with(by_n, {"n": {**NAME, "v": "b"}}).before == Image(
        {"id": 1, "n": "b"}, True, ("id",)
    )


def test_filtered_events_are_not_decoded() -> None:
    keys = [ROW_KEY, {**ROW_KEY, "tbl": "t2"}, {**DDL_KEY, "scm": "other"}]
    values = [b"not JSON", {"u": {"id": ID}}, b"not JSON"]
    wanted = EventFilter(include_tables=("test.t2",))
    (row,) = decode(keys, values, event_filter=wanted)
    assert isinstance(row, RowChange)
    assert (row.index, row.table.table) == (1, "t2")
    assert decode(keys, values, event_filter=EventFilter(ending_commit_ts=TS - 1)) == []
