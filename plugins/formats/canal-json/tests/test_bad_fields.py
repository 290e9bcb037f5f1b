"""Bad fields and rows: an error that names each."""

from __future__ import annotations

from typing import Any

import pytest
from canal_bad_input import BATCH, UPDATE, WATERMARK, decode, text_of, the_error

from cdcfmt_core.events import (
    Corrupt,
    RowChange,
)


def test_a_tombstone_has_no_events() -> None:
    for protocol in ("canal-json", "auto"):
        assert decode(None, b"key", protocol) == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "the value is empty"),
        (b" \n", "not JSON"),
        (b"null", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"1", "not a JSON object"),
        (b"{}", "is not text"),
        (b'{"type":"INSERT"', "JSON ends at byte 16: truncated"),
        (b'{"type":"INSERT"}{"type":"INSERT"}', "not JSON"),
        (b'{"type":"INSERT",}', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"\x04\x22\x4d\x18rest", "set largeMessageHandleCompression=lz4"),
        (b'{"type":NaN}', "NaN is not JSON"),
        (b'{"type":"INSERT","es":Infinity}', "Infinity is not JSON"),
        (b'{"type":"INSERT","es":-Infinity}', "Infinity is not JSON"),
        (b'{"type":"UPSERT"}', "is not an event type of Canal-JSON"),
        (b'{"type":"insert"}', "is not an event type of Canal-JSON"),
        (b'{"type":"QUERY","isDdl":false}', "is not an event type of Canal-JSON"),
        (b'{"type":"ALTER","isDdl":true}', "a required field of a DDL event is missing"),
        (b'{"type":"TIDB_WATERMARK"}', "a required field of a watermark is missing"),
        (b'{"type":"INSERT","data":[{}]}', "a required field of a row event is missing"),
        (b'{"type":"INSERT","table":"t"}', "a row event has no rows"),
    ],
)
def test_invalid_messages_are_corrupt(value: bytes, reason: str) -> None:
    assert reason in str(the_error(value))


WRONG: dict[str, list[Any]] = {
    "type": [None, 1, True, [], {}],
    "isDdl": ["false", "true", 2, [], {}],
    "database": [1, True, [], {}],
    "table": [1, False, [], {}],
    "pkNames": ["id", 1, {}, [1], [None], [["id"]]],
    "es": ["1639633141221", 1.5, True, [], {}, -1, 1 << 62],
    "ts": ["1639633141221", 1.5, False, [], {}, -1, 1 << 62],
    "sqlType": ["4", 1, [], [4]],
    "mysqlType": ["int", 1, [], ["int"]],
    "data": ["x", 1, True, {"id": "1"}, {}],
    "old": ["x", 1, True, {"id": "1"}, {}],
    "_tidb": ["x", 1, [], [1]],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in WRONG.items() for value in values],
    ids=repr,
)
def test_a_field_of_another_type(field: str, value: Any) -> None:
    error = the_error(UPDATE | {field: value})
    assert error.field == field
    assert (error.sample is None) == (value is None)


@pytest.mark.parametrize("field", ["commitTs", "watermarkTs"])
@pytest.mark.parametrize(
    "value", [-1, 1 << 63, 1 << 64, 10**30, "429918007904436226", 1.5, True, []]
)
def test_invalid_tso_is_rejected(field: str, value: Any) -> None:
    wire = UPDATE if field == "commitTs" else WATERMARK
    error = the_error(wire | {"_tidb": {field: value}})
    assert (error.field, error.reason) == (f"_tidb.{field}", "is not a TSO")


@pytest.mark.parametrize("value", [0, 1, 1 << 62, (1 << 63) - 1])
def test_a_tso_at_its_bounds(value: int) -> None:
    (event,) = decode(text_of(UPDATE | {"_tidb": {"commitTs": value}}))
    assert isinstance(event, RowChange)
    assert event.commit_ts == value


@pytest.mark.parametrize("location", [5, [], {"a": 1}, True])
def test_claim_check_must_be_text(location: Any) -> None:
    error = the_error(UPDATE | {"_tidb": {"claimCheckLocation": location}})
    assert "claim check" in error.reason


@pytest.mark.parametrize(("rows", "olds"), [(1, 2), (2, 1), (3, 1)])
def test_data_and_old_of_different_length(rows: int, olds: int) -> None:
    wire = UPDATE | {"data": UPDATE["data"] * rows, "old": UPDATE["old"] * olds}
    error = the_error(wire)
    assert error.field == "old"
    assert f"data has {rows} rows and old has {olds}" in error.reason


@pytest.mark.parametrize(
    ("row", "field"),
    [
        (None, "data[1]"),
        ("text", "data[1]"),
        ([], "data[1]"),
        ({"id": "x"}, "data[1].id"),
        ({"id": "-1"}, "data[1].id"),
        ({"id": ""}, "data[1].id"),
        ({"id": "1", "price": "NaN!"}, "data[1].price"),
        ({"price": "1" * 66}, "data[1].price"),
        ({"raw": "中"}, "data[1].raw"),
        ({"at": "yesterday"}, "data[1].at"),
        ({"name": 5}, "data[1].name"),
        ({"name": {"a": 1}}, "data[1].name"),
        ({"id": [1]}, "data[1].id"),
    ],
)
def test_one_bad_row_among_good_ones(row: Any, field: str) -> None:
    good = UPDATE["data"][0]
    events = decode(text_of(BATCH | {"data": [good, row, good, good]}))
    assert [type(event) for event in events] == [RowChange, Corrupt, RowChange, RowChange]
    assert [event.index for event in events] == [0, 1, 2, 3]
    (bad,) = (event for event in events if isinstance(event, Corrupt))
    assert bad.error.field == field
    assert f"{field}: " in str(bad.error)
    assert (bad.error.sample is None) == (row is None)


@pytest.mark.parametrize(
    ("old", "field"), [("text", "old[0]"), ([1], "old[0]"), ({"id": "x"}, "old[0].id")]
)
def test_a_bad_old_row(old: Any, field: str) -> None:
    assert the_error(UPDATE | {"old": [old]}).field == field
