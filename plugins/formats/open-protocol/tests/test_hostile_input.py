"""Hostile messages: monstrous numbers, deep nesting, bombs, ever new tables."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from typing import Any

import cramjam
import lz4.frame
import pytest
from open_bad_input import INSERT, checked
from open_messages import (
    DDL_KEY,
    ROW_KEY,
    VERSION,
    cell_error,
    data_of,
    decode,
    frames,
    message,
    open_decoder,
    the_error,
)
from support.golden_data import scan_schemas

from cdcfmt_core import types
from cdcfmt_core.events import Corrupt, Image, RowChange


def test_invalid_utf8_is_preserved() -> None:
    key = b'{"ts":1,"scm":"d\xff","tbl":"t","t":1}'
    (event,) = decode([key], [b'{"u":{"c\xfe":{"t":15,"f":64,"v":"\xc3("}}}'])
    assert isinstance(event, RowChange)
    assert event.table.database == "d\udcff"
    assert event.after == Image({"c\udcfe": "\udcc3("})
    error = cell_error(b'{"t":254,"f":65,"v":"\xff"}'.decode("latin-1"))
    assert error.field == "value[0].u.c"
    raw = b'{"u":{"c":{"t":254,"f":65,"v":"\xff"}}}'
    assert "not escaped" in the_error([ROW_KEY], [raw]).reason


@pytest.mark.parametrize("digits", [65, 66, 4_000, 1_000_000])
def test_huge_numbers(digits: int) -> None:
    number = "9" * digits
    for code, good in ((246, digits < 147_456), (8, False), (99, digits < 147_456)):
        value = f'{{"u":{{"c":{{"t":{code},"f":65,"v":{number}}}}}}}'
        (event,) = decode([ROW_KEY], [value])
        assert isinstance(event, RowChange if good else Corrupt)


@pytest.mark.parametrize("depth", [100, 900, 1_100, 10_000, 1_000_000])
@pytest.mark.parametrize(("head", "tail"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting(depth: int, head: str, tail: str) -> None:
    nested = head * depth + "1" + tail * depth
    row = f'{{"u":{{"c":{{"t":99,"f":0,"v":{nested}}}}}}}'
    key = f'{{"ts":1,"scm":"d","tbl":"t","t":1,"x":{nested}}}'
    old = f'{{"u":{{"c":{{"t":15,"f":64,"v":null}}}},"p":{{"t":15,"f":64,"v":{nested}}}}}'
    for keys, values in (([ROW_KEY], [row]), ([key], [INSERT]), ([ROW_KEY], [old])):
        (event,) = checked(VERSION + frames(keys), frames(values))
        if depth > 1_024:
            assert isinstance(event, Corrupt)


@pytest.mark.slow
def test_very_many_columns() -> None:
    """The maximum number of values."""
    cells = {f"c{i}": {"t": 3, "f": 2, "h": True, "v": i} for i in range(40_000)}
    old = {f"c{i}": {"t": 3, "f": 2, "h": True, "v": None} for i in range(0, 40_000, 2)}
    (event,) = checked(VERSION + frames([ROW_KEY]), frames([{"u": cells, "p": old}]))
    assert isinstance(event, RowChange)
    assert len(event.table.key_columns) == 40_000
    assert event.before is not None
    assert len(event.before.completed) == 20_000


@pytest.mark.slow
def test_very_many_cells_without_a_name() -> None:
    columns = 20_000
    new = {f"c{i}": {"t": i, "f": 64, "v": None} for i in range(columns)}
    nameless = ",".join(f'"t":{i},"f":64,"v":"5"' for i in range(columns))
    value = f'{{"u":{json.dumps(new)},"p":{{{nameless}}}}}'
    start = time.process_time()
    (event,) = checked(VERSION + frames([ROW_KEY]), frames([value]))
    assert time.process_time() - start < 20
    assert event is not None


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
def test_a_batch_of_bombs(compression: str) -> None:
    bomb = b'{"u":{"c":{"t":15,"f":64,"v":"' + b"x" * 1_000_000 + b'"}}}'
    packed = (
        lz4.frame.compress(bomb)
        if compression == "lz4"
        else bytes(cramjam.snappy.compress_raw(bomb))
    )
    count = 50
    events = decode(
        [ROW_KEY] * count,
        [packed] * count,
        largeMessageHandleCompression=compression,
        maxMessageBytes=5_000_000,
        oldValue="auto",
    )
    kinds = [type(event) for event in events]
    assert kinds == [RowChange] * 4 + [Corrupt] * (count - 4)
    last = events[-1]
    assert isinstance(last, Corrupt)
    assert "the batch decompresses to more than 5000000 bytes" in last.error.reason
    assert last.error.field == f"value[{count - 1}]"


@pytest.mark.parametrize("compression", ["lz4", "snappy"])
def test_uncompressed_data_is_rejected(compression: str) -> None:
    for value in (b"", b"{}", data_of(INSERT), b"\xff" * 40):
        error = the_error([ROW_KEY], [value], largeMessageHandleCompression=compression)
        assert error.field == "value[0]"
        assert compression in error.reason.lower()


@pytest.mark.slow
def test_memory_is_bounded_for_endless_new_tables_and_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cdcfmt_core.caches.MAX_CACHE_BYTES", 1 << 20)
    own = open_decoder()

    def feed(start: int, end: int) -> int:
        for i in range(start, end):
            cells = {"c" * 6_000 + str(i): {"t": 1_000 + i, "f": 0, "v": 1}}
            (event,) = own.decode(message([{**ROW_KEY, "tbl": f"t{i}"}], [{"u": cells}]))
            assert isinstance(event, RowChange)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        empty = feed(0, 0)
        few = feed(0, 10)
        full = feed(10, 300)
        more = feed(300, 900)
    finally:
        tracemalloc.stop()
    assert few - empty > 10 * 6_000
    # Without a bound, each of 600 more tables takes as much again.
    assert more - full < 60 * 6_000


def test_null_type_code_keeps_the_json_value() -> None:
    (event,) = decode([ROW_KEY], [{"u": {"c": {"t": 6, "f": 0, "v": {"a": [1, 1.5]}}}}])
    assert isinstance(event, RowChange)
    assert event.after == Image({"c": {"a": [1, 1.5]}})
    assert event.table.columns[0].type == types.Unknown("null")


@pytest.mark.parametrize("query", [["ALTER"], {"a": 1}, 7, "", None])
def test_invalid_statement_does_not_end_the_schema_scan(query: Any) -> None:
    bad = message([DDL_KEY], [{"q": query, "t": 3}])
    good = message([DDL_KEY], [{"q": "CREATE TABLE t1 (id decimal(10,2))", "t": 3}])
    store = scan_schemas([bad, good], protocol="open-protocol")
    assert [table.table for table in store.statements.tables()] == ["t1"]
