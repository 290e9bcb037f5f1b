"""Reduced and compressed messages, filters, and the older Avro schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lz4.frame
import pytest
from simple_messages import (
    AT,
    AVRO_DATA,
    BUILD,
    DATA,
    ID,
    NAME,
    TS,
    VERSION,
    bootstrap,
    column,
    ddl,
    decode,
    decoder,
    row,
    the_error,
    the_row,
    to_avro,
    to_json,
)
from support.golden_data import codec_decoder

from cdcfmt_core import DecoderContext, default_registry
from cdcfmt_core.codec import Projection
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import (
    Corrupt,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schemas.store import SchemaStore


def test_handle_key_only() -> None:
    for values in (
        [bootstrap(), row("UPDATE", {"id": "1"}, {"id": "2"}, handleKeyOnly=True)],
        [
            to_avro(bootstrap()),
            to_avro(row("UPDATE", {"id": ("long", 1)}, {"id": ("long", 2)}, handleKeyOnly=True)),
        ],
    ):
        event = the_row(*values)
        assert event.before == Image({"id": 2}, complete=False)
        assert event.after == Image({"id": 1}, complete=False)
        assert event.extra is not None
        assert event.extra["only_handle_key"] is True


CLAIM = {"claimCheckLocation": "s3://bucket/x/1.json", "handleKeyOnly": True}


def claim(folder: Path, held: bytes, *, avro: bool = False) -> Any:
    (folder / "1.json").write_bytes(held)
    wire = row("INSERT", {"id": ("long", 1)} if avro else {"id": "1"}, **CLAIM)
    values = [bootstrap(), wire]
    return decode(*(map(to_avro, values) if avro else values), claimCheckStorageUri=str(folder))[-1]


@pytest.mark.parametrize("avro", [False, True])
def test_claim_check(tmp_path: Path, avro: bool) -> None:
    held = to_avro(row("INSERT", AVRO_DATA)) if avro else to_json(row("INSERT", DATA))
    event = claim(tmp_path, held, avro=avro)
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 1, "name": "John"})
    assert event.extra == {
        "table_id": 148,
        "schema_version": VERSION,
        "claim_check": CLAIM["claimCheckLocation"],
    }


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (row("INSERT", DATA, **CLAIM), "leads to another one"),
        (row("INSERT", DATA, commitTs=TS + 1), "it holds another row"),
        (row("INSERT", DATA, table="other"), "it holds another row"),
        (row("DELETE", None, DATA), "it holds another row"),
        (bootstrap(), "holds no row"),
    ],
)
def test_false_claim_checks(tmp_path: Path, held: dict[str, Any], reason: str) -> None:
    event = claim(tmp_path, to_json(held))
    assert isinstance(event, Corrupt)
    assert reason in event.error.reason
    assert "1.json" in event.error.reason


def test_a_bootstrap_without_columns() -> None:
    error = the_error(bootstrap(columns=[], indexes=[]))
    assert (error.field, error.reason) == (
        "tableSchema.columns",
        "a required field of a bootstrap event is missing",
    )


def test_claim_checks_without_a_schema(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_bytes(to_json(row("INSERT", DATA)))
    error = the_error(row("INSERT", {"id": "1"}, **CLAIM), claimCheckStorageUri=str(tmp_path))
    assert isinstance(error, MissingSchemaError)
    assert error.reason == f"schema simple.user@{VERSION} not seen"
    assert "claimCheckStorageUri" in the_error(bootstrap(), row("INSERT", {}, **CLAIM)).reason


def test_undeclared_compression() -> None:
    error = the_error(lz4.frame.compress(to_json(bootstrap())))
    assert "largeMessageHandleCompression=lz4" in error.reason


def open_with(event_filter: EventFilter, projection: Projection) -> Any:
    registry = default_registry()
    context = DecoderContext(
        registry.get_type_map("mysql"),
        SchemaStore(),
        event_filter=event_filter,
        projection=projection,
    )
    return codec_decoder("simple", context)


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_excluded_rows_are_not_decoded(encode: Any) -> None:
    decode_one = open_with(EventFilter(include_tables=("shop.*",)), Projection())
    bad: Any = {"id": "x"} if encode is to_json else {"id": ("string", "x")}
    # Neither its schema nor its values matter.
    assert list(decode_one(Message(None, encode(row("INSERT", bad))))) == []


def test_a_range_of_commit_ts_lets_bootstraps_pass() -> None:
    """They have no time, and the rows in the range need them."""
    values = [bootstrap(), row("INSERT", DATA, commitTs=TS - 1), row("INSERT", DATA)]
    reader = decoder(startingCommitTs=str(TS))
    events = [reader.decode(Message(None, to_json(value))) for value in values]
    assert [len(found) for found in events] == [1, 0, 1]
    assert not any(isinstance(event, Corrupt) for found in events for event in found)


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_unselected_columns_are_not_kept(encode: Any) -> None:
    projection = Projection(frozenset({"name"}), before_updates=False)
    decode_one = open_with(EventFilter(), projection)
    bootstrapped = bootstrap(ID, NAME, column("age", "int"))
    list(decode_one(Message(None, encode(bootstrapped))))
    images: list[Any] = [
        {"id": "1", "name": name, "age": age} for name, age in (("a", "1"), ("b", "2"))
    ]
    if encode is to_avro:
        images = [
            {"id": ("long", 1), "name": ("string", name), "age": ("long", age)}
            for name, age in (("a", 1), ("b", 2))
        ]
    # Its value is not read.
    images[1]["age"] = "x" if encode is to_json else ("string", "x")
    (event,) = decode_one(Message(None, encode(row("UPDATE", images[1], images[0]))))
    assert isinstance(event, RowChange)
    assert event.after == Image({"id": 1, "name": "b"})
    assert event.before is None
    changed = images[0] | {"id": "2" if encode is to_json else ("long", 2)}
    (event,) = decode_one(Message(None, encode(row("UPDATE", images[1], changed))))
    assert isinstance(event, RowChange)
    assert event.before == Image({"id": 2, "name": "a"})


def test_the_older_avro_schema() -> None:
    """Made by hand from tiflow's Java example: other branches, and types as text."""
    columns = (
        ID,
        NAME,
        column("big", "bigint", unsigned=True),
        column("at", "timestamp"),
        column("flag", "tinyint", length=1),
        column("raw", "blob"),
        column("f", "float"),
        column("d", "double"),
    )
    data = {
        "id": ("int", 1),
        "name": ("string", "x"),
        "big": ("string", str(2**64 - 1)),
        "at": ("string", "2023-12-27 12:27:23.123"),
        "flag": ("boolean", True),
        "raw": ("bytes", b"\xff"),
        "f": ("float", 0.5),
        "d": ("double", 0.25),
    }
    watermark = {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD}
    values = [
        to_avro(wire, older=True)
        for wire in (
            bootstrap(*columns),
            ddl(),
            watermark,
            row("INSERT", data),
            row("INSERT", data | {"big": ("long", 5)}),
        )
    ]
    assert {value[:1] for value in values} == {b"\x12"}
    # Of nine types instead of ten its number is another one.
    for first in (b"\x12", b"\x10"):
        events = decode(*(first + value[1:] for value in values), sourceTimeZone="Asia/Shanghai")
        assert [type(event) for event in events] == [
            TableSchemaEvent,
            SchemaChange,
            Watermark,
            RowChange,
            RowChange,
        ]
        inserted = events[3]
        assert isinstance(inserted, RowChange)
        assert inserted.after == Image(
            {
                "id": 1, "name": "x", "big": 2**64 - 1, "at": AT, "flag": 1, "raw": b"\xff",
                "f": 0.5, "d": 0.25,
            }
        )  # fmt: skip
    registry = default_registry()
    for value in values:
        assert registry.get_codec("simple").sniff(Message(None, value)) == 1.0
