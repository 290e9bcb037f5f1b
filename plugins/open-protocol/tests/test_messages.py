"""Messages as the document shows them and as TiCDC writes them, decoded by hand.

Origins: [doc] docs.pingcap.com/tidb/stable/ticdc-open-protocol, "Event stream output example"
and its tables; [java] the test data of TiCDC's Java demo; the rest by TiCDC's encoders.
"""

from __future__ import annotations

import base64
import json
import logging
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
from open_messages import (
    DDL_KEY,
    ID,
    NAME,
    RESOLVED_KEY,
    ROW_KEY,
    TS,
    VERSION,
    data_of,
    decode,
    decode_ddl,
    decode_row,
    frames,
    message,
    open_decoder,
    the_error,
    value_of,
)

from cdcfmt_core import DecoderContext, default_registry, types
from cdcfmt_core.codec import Projection
from cdcfmt_core.events import (
    Column,
    Corrupt,
    Image,
    Message,
    RowChange,
    SchemaChange,
    Watermark,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import InvalidValue

# Frames


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


def test_resolved_events_whose_values_are_missing_among_others() -> None:
    keys = [RESOLVED_KEY, DDL_KEY, RESOLVED_KEY, ROW_KEY]
    events = decode(keys, [{"q": "drop table t1", "t": 4}, {"u": {"id": ID}}])
    assert [type(event) for event in events] == [Watermark, SchemaChange, Watermark, RowChange]


def test_a_tombstone_says_nothing_but_what_needs_no_value() -> None:
    counts: Counter[str] = Counter()
    decoder = open_decoder(counts=counts)
    keys = [ROW_KEY, RESOLVED_KEY, DDL_KEY]
    assert decoder.decode(Message(VERSION + frames(keys[1:2]), None)) == [Watermark(TS)]
    assert counts == {}
    assert decoder.decode(Message(VERSION + frames(keys), None)) == [Watermark(TS, index=1)]
    assert decoder.decode(Message(None, None)) == []
    assert counts == {"tombstones": 2}


# Rows


def test_insert() -> None:
    # [doc] logs 5 to 8, of a version without flags
    row = decode_row({"u": {"id": {"t": 3, "h": True, "v": 1}, "val": {"t": 15, "v": "YWE="}}})
    assert (row.op, row.commit_ts, row.before) == ("insert", TS, None)
    # Whether it is text or bytes, and so whether it is base64, nobody can tell.
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
def test_what_new_values_alone_are(option: str, alone: str, beside_an_update: str) -> None:
    new = {"u": {"id": ID}}
    assert decode_row(new, oldValue=option).op == alone
    both = decode([ROW_KEY, ROW_KEY], [new, {"u": {"id": ID}, "p": {"id": ID}}], oldValue=option)
    assert [event.op for event in both if isinstance(event, RowChange)] == [
        beside_an_update,
        "update",
    ]


def test_what_new_values_alone_are_does_not_hang_on_a_filter() -> None:
    keys = [ROW_KEY, {**ROW_KEY, "tbl": "t2"}]
    values = [{"u": {"id": ID}}, {"u": {"id": ID}, "p": {"id": ID}}]
    wanted = EventFilter(table=("test", "t1"))
    (row,) = decode(keys, values, oldValue="auto", event_filter=wanted)
    assert isinstance(row, RowChange)
    assert row.op == "insert"
    # A column named p is no old row.
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
    # NULL is a value; a row cut down to its handle key says nothing of the others.
    row = decode_row({"u": new, "p": {"n": {**NAME, "v": None}}}, key)
    assert row.before is not None
    assert row.before.values["n"] is None
    row = decode_row({"u": {"id": ID, "n": NAME}, "p": {"id": ID}}, {**key, "ohk": True})
    assert row.before == Image({"id": 1}, False)


def test_columns_that_only_the_old_row_has() -> None:
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
    # A member that nobody knows changes nothing.
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


def test_what_nobody_wants_is_not_decoded() -> None:
    keys = [ROW_KEY, {**ROW_KEY, "tbl": "t2"}, {**DDL_KEY, "scm": "other"}]
    values = [b"not JSON", {"u": {"id": ID}}, b"not JSON"]
    wanted = EventFilter(include_tables=("test.t2",))
    (row,) = decode(keys, values, event_filter=wanted)
    assert isinstance(row, RowChange)
    assert (row.index, row.table.table) == (1, "t2")
    assert decode(keys, values, event_filter=EventFilter(ending_commit_ts=TS - 1)) == []


# Values


@pytest.mark.parametrize(
    ("code", "value", "expected"),
    [
        # [doc] "Column type code"
        (1, 1, 1),
        (2, 1, 1),
        (3, 123, 123),
        (4, 153.123, 153.123),
        (5, 153.123, 153.123),
        (6, None, None),
        (8, 123, 123),
        (9, 123, 123),
        (10, "2000-01-01", date(2000, 1, 1)),
        (14, "2000-01-01", date(2000, 1, 1)),
        (11, "23:59:59", timedelta(hours=23, minutes=59, seconds=59)),
        (12, "2015-12-20 23:58:58", datetime(2015, 12, 20, 23, 58, 58)),
        (7, "1973-12-30 15:30:00", datetime(1973, 12, 30, 15, 30, tzinfo=UTC)),
        (13, 1970, 1970),
        (15, "测试", "测试"),
        (253, "测试", "测试"),
        (254, "测试", "测试"),
        (16, 81, 81),
        (245, '{"key1": "value1"}', '{"key1": "value1"}'),
        (246, "129012.1230000", Decimal("129012.1230000")),
        (247, 1, 1),
        (248, 3, 3),
        (249, "5rWL6K+VdGV4dA==", "测试text"),
        (250, "5rWL6K+VdGV4dA==", "测试text"),
        (251, "5rWL6K+VdGV4dA==", "测试text"),
        (252, "5rWL6K+VdGV4dA==", "测试text"),
        # beyond the document
        (225, "[1,2.5,-3]", [1.0, 2.5, -3.0]),
        (255, "POINT(1 1)", "POINT(1 1)"),
        (255, {"any": 1}, {"any": 1}),
        (99, [1, None], [1, None]),
        (8, -(2**63), -(2**63)),
        (4, 3, 3.0),
        (5, -1.7976931348623157e308, -1.7976931348623157e308),
        (11, "-838:59:59.000000", -timedelta(hours=838, minutes=59, seconds=59)),
        (10, "0000-00-00", InvalidValue("0000-00-00")),
        (12, "2023-00-00 00:00:00", InvalidValue("2023-00-00 00:00:00")),
        (13, 0, 0),
        (252, "", ""),
        (252, "/w==", "\udcff"),
        (15, "", ""),
        (15, "\\x00", "\\x00"),
    ],
)
def test_values(code: int, value: Any, expected: Any) -> None:
    for _ in range(2):
        actual = value_of(code, value)
        assert (type(actual), actual) == (type(expected), expected)


@pytest.mark.parametrize(
    ("code", "flags", "value", "expected"),
    [
        (8, 193, 2**64 - 1, 2**64 - 1),
        (3, 193, 2**32 - 1, 2**32 - 1),
        (16, 193, 2**64 - 1, 2**64 - 1),
        (16, 193, 2**63, 2**63),
        (248, 64, 2**64 - 1, 2**64 - 1),
        # [doc] VARBINARY; the backslashes are JSON's
        (15, 65, r"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"),
        (253, 65, r"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n"),
        (254, 65, r"中文😀\x00", "中文😀\0".encode()),
        (252, 65, "iVBORw0KGgo=", b"\x89PNG\r\n\x1a\n"),
        (249, 65, "", b""),
        # without flags
        (8, None, 2**64 - 1, Decimal(2**64 - 1)),
        (1, None, 255, 255),
        (252, None, "YWE=", "YWE="),
        (15, None, r"\x00", r"\x00"),
        (246, None, "1.50", Decimal("1.50")),
    ],
)
def test_values_by_their_flags(code: int, flags: int | None, value: Any, expected: Any) -> None:
    actual = value_of(code, value, flags)
    assert (type(actual), actual) == (type(expected), expected)


@pytest.mark.parametrize(
    ("code", "flags", "source_type", "logical"),
    [
        (3, 193, "int unsigned", types.Int(32, signed=False)),
        (13, 193, "year", types.Year()),
        (16, 193, "bit", types.Bit()),
        (252, 65, "blob", types.Binary()),
        (251, 64, "longtext", types.Text()),
        (15, 65, "varbinary", types.Binary()),
        (254, 64, "char", types.Text()),
        (245, 65, "json", types.Json()),
        (255, 65, "geometry", types.Unknown("geometry")),
        (6, 65, "null", types.Unknown("null")),
        (99, 65, "type code 99", types.Unknown("type code 99")),
    ],
)
def test_types(code: int, flags: int, source_type: str, logical: types.LogicalType) -> None:
    (column,) = decode_row({"u": {"c": {"t": code, "f": flags, "v": None}}}).table.columns
    assert (column.source_type, column.type) == (source_type, logical)


def test_text_with_raw_bytes() -> None:
    """TiCDC's new architecture writes bytes that are no UTF-8 as they are."""
    value = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":1},"d":{"t":5,"f":65,"v":0.1},'
    value += b'"c":{"t":15,"f":64,"v":"a\xffb"}}}'
    row = decode_row(value)
    assert row.after == Image({"id": 1, "d": 0.1, "c": "a\udcffb"})


def test_numbers_that_a_float_cannot_hold() -> None:
    row = decode_row('{"u":{"a":{"t":246,"f":65,"v":0.12345678901234567890123}}}')
    assert row.after is not None
    assert str(row.after.values["a"]) == "0.12345678901234567890123"


# DDL


@pytest.mark.parametrize(
    ("code", "query", "word", "name"),
    [
        (1, "create database test", "QUERY", "Create Schema"),
        (3, "CREATE TABLE test.t1(id int)", "CREATE", "Create Table"),
        ("3", "CREATE TABLE test.t1(id int)", "CREATE", "Create Table"),
        ("Create Table", "CREATE TABLE test.t1(id int)", "CREATE", "Create Table"),
        (4, "DROP TABLE `test`.`t1`", "ERASE", "Drop Table"),
        (5, "alter table t add a int", "ALTER", "Add Column"),
        (7, "alter table t add index i(a)", "CINDEX", "Add Index"),
        (10, "alter table t drop foreign key f", "DINDEX", "Drop Foreign Key"),
        (11, "truncate t", "TRUNCATE", "Truncate Table"),
        (14, "rename table a to b", "RENAME", "Rename Table"),
        (21, "create view v as select 1", "QUERY", "Create View"),
        (26, "alter database d charset utf8", "QUERY", "Modify Schema Charset And Collate"),
        (16, "alter table t shard_row_id_bits = 4", "ALTER", "Shard RowID"),
        (34, "create sequence s", "QUERY", "Create Sequence"),
        (36, "drop sequence s", "QUERY", "Drop Sequence"),
        # TiDB's, not the document's
        (42, "alter table t exchange partition p with table u", "QUERY", 42),
        (57, "alter table t cache", "QUERY", 57),
        (61, "alter table t add a int, add b int", "ALTER", 61),
        ("73", "create table t like u", "CREATE", 73),
        (250, "create unique index i on t(a)", "CINDEX", 250),
        ("something", "drop table t", "ERASE", "something"),
        (None, "drop table t", "ERASE", None),
    ],
)
def test_ddl(code: int | str | None, query: str, word: str, name: int | str | None) -> None:
    value = {"q": query} | ({} if code is None else {"t": code})
    ddl = decode_ddl(value)
    assert (ddl.query, ddl.ddl_type, ddl.commit_ts) == (query, word, TS)
    assert (ddl.database, ddl.table) == ("test", "t1")
    assert ddl.extra == (None if name is None else {"ddl_type": name})


def test_every_code_of_the_document_has_a_name_and_a_word() -> None:
    words = {code: decode_ddl({"q": "?", "t": code}).ddl_type for code in range(1, 37)}
    names = [(decode_ddl({"q": "?", "t": code}).extra or {})["ddl_type"] for code in range(1, 37)]
    assert len(set(names)) == 36
    assert all(isinstance(name, str) for name in names)
    assert {code for code, word in words.items() if word == "CINDEX"} == {7, 9, 32}
    assert {code for code, word in words.items() if word == "DINDEX"} == {8, 10, 33}
    assert {words[3], words[4], words[11], words[14]} == {"CREATE", "ERASE", "TRUNCATE", "RENAME"}


@pytest.mark.parametrize("names", [{}, {"tbl": ""}, {"scm": None, "tbl": None}])
def test_ddl_without_table(names: dict[str, Any]) -> None:
    key = {"ts": TS, "t": 2, "x": 1} | names
    ddl = decode_ddl({"q": "create database d", "t": 1, "y": 2}, key)
    assert (ddl.database, ddl.table) == ("", "")
    assert ddl.extra == {"x": 1, "y": 2, "ddl_type": "Create Schema"}


# Large messages


def test_compressed_values() -> None:
    row, ddl = {"u": {"id": ID}}, {"q": "drop table t1", "t": 4}
    compressed = [lz4.frame.compress(data_of(part)) for part in (row, ddl)]
    events = decode(
        [ROW_KEY, DDL_KEY, RESOLVED_KEY],
        [*compressed, b""],
        largeMessageHandleCompression="lz4",
    )
    assert [type(event) for event in events] == [RowChange, SchemaChange, Watermark]


CLAIM_KEY = {**ROW_KEY, "ohk": False, "ccl": "file:///gone/claims/1.json"}
WHOLE = {"u": {"id": ID, "n": NAME}}


def claim_file(key: Any, values: list[Any]) -> bytes:
    wrapped = {"key": VERSION + frames([key]), "value": frames(values)}
    return json.dumps(
        {name: base64.b64encode(data).decode() for name, data in wrapped.items()}
    ).encode()


@pytest.mark.parametrize(
    "body", [claim_file(ROW_KEY, [WHOLE]), frames([WHOLE])], ids=["wrapped", "bare"]
)
def test_claim_check(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "1.json").write_bytes(body)
    # Beside a row that came whole, as TiCDC batches them.
    first, second = decode(
        [CLAIM_KEY, ROW_KEY], [{"u": {"id": ID}}, {"u": {"id": ID}}], claims=tmp_path
    )
    assert isinstance(first, RowChange)
    assert isinstance(second, RowChange)
    assert first.after == Image({"id": 1, "n": "aa"})
    assert first.extra == {"claim_check": "file:///gone/claims/1.json"}
    assert second.extra is None


@pytest.mark.parametrize(
    ("key", "values", "reason"),
    [
        ({**ROW_KEY, "ts": 1}, [WHOLE], "it holds another event"),
        ({**ROW_KEY, "tbl": "t2"}, [WHOLE], "it holds another event"),
        (CLAIM_KEY, [WHOLE], "it leads to another one"),
        (ROW_KEY, [], "it holds 0 events"),
        (ROW_KEY, [WHOLE, WHOLE], "it holds 2 events"),
    ],
)
def test_claim_checks_of_something_else(
    tmp_path: Path, key: Any, values: list[Any], reason: str
) -> None:
    (tmp_path / "1.json").write_bytes(claim_file(key, values))
    error = the_error([CLAIM_KEY], [{"u": {"id": ID}}], claims=tmp_path)
    assert error.field == "value[0]"
    assert reason in error.reason


def test_claim_checks_that_cannot_be_read(tmp_path: Path) -> None:
    keys, values = [CLAIM_KEY, ROW_KEY], [{"u": {"id": ID}}] * 2
    for claims in (None, tmp_path):
        bad, good = decode(keys, values, claims=claims)
        assert isinstance(bad, Corrupt)
        assert isinstance(good, RowChange)
        assert "claimCheckStorageUri" in bad.error.reason


# Recognising


@pytest.mark.parametrize(
    ("key", "value", "mine"),
    [
        (VERSION + frames([ROW_KEY]), frames([WHOLE]), True),
        (VERSION, b"", True),
        (VERSION, None, True),
        (VERSION + b"\xff", b"x", True),
        # Some other format's key, the number 1.
        (VERSION, b'{"id":0}', False),
        (b"\0\0\0\0\0\0\0\2" + frames([ROW_KEY]), frames([WHOLE]), False),
        (b"\0\0\0\1", b"", False),
        (b"", b"", False),
        (None, frames([WHOLE]), False),
        (b'{"id":1}', b'{"database":"d","table":"t","type":"INSERT","es":1,"data":[]}', False),
    ],
)
def test_sniffing(key: bytes | None, value: bytes | None, mine: bool) -> None:
    sniff = default_registry().get_codec("open-protocol").sniff
    assert sniff(Message(key, value)) == (1.0 if mine else 0.0)
