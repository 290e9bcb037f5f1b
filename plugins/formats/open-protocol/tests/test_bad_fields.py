"""Bad fields of keys, rows and cells: an error that names each."""

from __future__ import annotations

from typing import Any

import pytest
from open_bad_input import INSERT, UPDATE
from open_messages import (
    DDL_KEY,
    ID,
    RESOLVED_KEY,
    ROW_KEY,
    cell_error,
    decode,
    message,
    open_decoder,
    the_error,
)

from cdcfmt_core.events import Corrupt, RowChange, Watermark


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("ts", value) for value in (None, "1", 1.5, True, -1, 1 << 63, 1 << 64, 10**30, [], {})),
        *(("t", value) for value in (None, "1", 1.0, True, 0, 4, -1, [], {})),
        *(("scm", value) for value in (1, True, [], {})),
        *(("tbl", value) for value in (None, "", 1, True, [], {})),
        *(("rid", value) for value in ("1", 1.5, True, [], {}, 10**30)),
        *(("ptn", value) for value in ("1", 1.5, True, [], {})),
        *(("ohk", value) for value in ("true", 1, [], {})),
        *(("ccl", value) for value in (1, True, [], {})),
    ],
    ids=repr,
)
def test_a_field_of_a_key(field: str, value: Any) -> None:
    bad, good = decode([ROW_KEY | {field: value}, ROW_KEY], [INSERT, INSERT])
    assert isinstance(bad, Corrupt)
    assert (bad.error.field, bad.index) == (f"key[0].{field}", 0)
    assert isinstance(good, RowChange)


@pytest.mark.parametrize("ts", [0, 1, (1 << 63) - 1])
def test_a_tso_at_its_bounds(ts: int) -> None:
    assert decode([{"ts": ts, "t": 3}], [b""]) == [Watermark(ts)]


@pytest.mark.parametrize(
    ("value", "field", "reason"),
    [
        (b"", "value[1]", "is empty"),
        (b"null", "value[1]", "not a JSON object"),
        (b"[]", "value[1]", "not a JSON object"),
        (b'{"u":', "value[1]", "JSON ends at byte 5: truncated"),
        (b"{}{}", "value[1]", "not JSON"),
        (b'\x04"M\x18rest', "value[1]", "set largeMessageHandleCompression=lz4"),
        (b'{"u":{"c":{"t":5,"f":0,"v":NaN}}}', "value[1]", "NaN is not JSON"),
        (b'{"u":{"c":{"t":5,"f":0,"v":-Infinity}}}', "value[1]", "Infinity is not JSON"),
        ({}, "value[1]", "neither new nor deleted columns"),
        ({"u": {}}, "value[1]", "neither new nor deleted columns"),
        ({"p": {"id": ID}}, "value[1]", "neither new nor deleted columns"),
        ({"u": []}, "value[1].u", "is not an object"),
        ({"u": "x"}, "value[1].u", "is not an object"),
        ({"d": 1}, "value[1].d", "is not an object"),
        ({"u": {"id": ID}, "p": []}, "value[1].p", "is not an object"),
        ({"u": {"id": ID}, "d": {"id": ID}}, "value[1].d", "a deleted row also has"),
        ({"p": {"id": ID}, "d": {"id": ID}}, "value[1].d", "a deleted row also has"),
        ({"d": {"id": 1}}, "value[1].d.id", "is not a column"),
        ({"u": {"id": ID}, "p": {"id": [1]}}, "value[1].p.id", "is not a column"),
        ({"u": {"id": ID}, "p": {"id": {**ID, "t": 8}}}, "value[1].p.id", "has another type"),
        ({"u": {"id": ID}, "p": {"id": {**ID, "v": "x"}}}, "value[1].p.id.v", "not an integer"),
        ({"u": {"id": ID}, "p": {"x": {"t": 3}}}, "value[1].p.x.v", "has no value"),
    ],
)
def test_a_bad_row_among_good_ones(value: Any, field: str, reason: str) -> None:
    for _ in range(2):
        first, bad, last = decode([ROW_KEY] * 3, [INSERT, value, UPDATE])
        assert isinstance(first, RowChange)
        assert isinstance(last, RowChange)
        assert isinstance(bad, Corrupt)
        assert (bad.error.field, bad.index) == (field, 1)
        assert reason in bad.error.reason


@pytest.mark.parametrize(
    ("cell", "field"),
    [
        (None, "c"),
        (1, "c"),
        ("x", "c"),
        ([], "c"),
        ({}, "c.t"),
        *(
            ({"t": code, "f": 0, "v": None}, "c.t")
            for code in (None, "3", 3.0, True, -1, 1 << 40, [])
        ),
        *(
            ({"t": 3, "f": flags, "v": None}, "c.f")
            for flags in ("0", 0.0, True, -1, 1 << 40, [], {})
        ),
        *(({"t": 3, "f": 0, "h": h, "v": None}, "c.h") for h in ("true", 1, 0, [], {})),
        ({"t": 3, "f": 0}, "c.v"),
        ({"t": 3, "f": 0, "h": True}, "c.v"),
    ],
    ids=repr,
)
def test_a_cell(cell: Any, field: str) -> None:
    own = open_decoder()
    good = {"u": {"id": ID, "c": {"t": 3, "f": 0, "v": 5}}}
    handle = {"u": {"id": ID, "c": {"t": 1, "f": 1, "h": True, "v": 1}}}
    # A known table makes no difference, though 1.0 and true are equal to 1.
    for before in (None, good, handle):
        if before is not None:
            own.decode(message([ROW_KEY], [before]))
        (event,) = own.decode(message([ROW_KEY], [{"u": {"id": ID, "c": cell}}]))
        assert isinstance(event, Corrupt)
        assert event.error.field == f"value[0].u.{field}"


def test_equal_python_values_of_other_types_are_rejected() -> None:
    own = open_decoder()
    for code, flags in ((1, 1), (1.0, 1), (True, 1), (1, 1.0), (1, True)):
        (event,) = own.decode(message([ROW_KEY], [{"u": {"c": {"t": code, "f": flags, "v": 1}}}]))
        good = type(code) is int and type(flags) is int
        assert isinstance(event, RowChange if good else Corrupt)


@pytest.mark.parametrize(
    ("code", "flags", "value"),
    [
        (3, 65, "x"),
        (3, 65, 2**31),
        (3, 65, 1.5),
        (3, 65, []),
        (3, 193, -1),
        (8, 193, 2**64),
        (8, 65, 2**63),
        (8, 65, 10**400),
        (1, 0, {}),
        (4, 65, "x"),
        (5, 65, []),
        (246, 65, "1,5"),
        (246, 65, "9" * 147_456),
        (246, 65, True),
        (10, 65, "2024-13"),
        (12, 65, 5),
        (7, 65, "yesterday"),
        (11, 65, "25"),
        (13, 65, 3000),
        (16, 65, -1),
        (16, 65, 2**64),
        (247, 64, -1),
        (247, 64, 65_536),
        (248, 64, 2**64),
        (225, 65, "[1,x]"),
        (225, 65, [1]),
        (245, 65, {"a": 1}),
        (15, 64, 5),
        (15, 64, None),
        (15, 65, 5),
        (15, 65, r"\q"),
        (15, 65, '"'),
        (254, 65, "\x00"),
        (252, 64, "not base64"),
        (252, 65, "YQ"),
        (252, 65, "YQ=="[:3]),
        (252, 65, "YQ==\n"),
        (252, 65, "YQ==YQ=="),
        (252, 65, "中"),
        (252, 65, 5),
    ],
    ids=repr,
)
def test_a_value(code: int, flags: int, value: Any) -> None:
    if value is None:
        (event,) = decode([ROW_KEY], [{"u": {"c": {"t": code, "f": flags, "v": value}}}])
        assert isinstance(event, RowChange)
        return
    error = cell_error({"t": code, "f": flags, "v": value})
    assert error.field == "value[0].u.c.v"
    assert error.sample


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (b"", ""),
        ("x", ""),
        ([], ""),
        ({}, ".q"),
        ({"q": None, "t": 3}, ".q"),
        ({"q": "", "t": 3}, ".q"),
        ({"q": 1, "t": 3}, ".q"),
        ({"q": "drop table t", "t": 1.5}, ".t"),
        ({"q": "drop table t", "t": True}, ".t"),
        ({"q": "drop table t", "t": []}, ".t"),
        ({"q": "drop table t", "t": -1}, ".t"),
        ({"q": "drop table t", "t": 1 << 63}, ".t"),
    ],
)
def test_ddl(value: Any, field: str) -> None:
    assert the_error([DDL_KEY], [value]).field == f"value[0]{field}"


def test_a_resolved_event_with_a_value() -> None:
    error = the_error([RESOLVED_KEY], [{"u": {"id": ID}}])
    assert (error.field, error.reason) == ("value[0]", "a resolved event has no value")
