"""The schema of a row: by its exact version, and found before decoding."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import cramjam
import lz4.frame
import pytest
from simple_messages import (
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
    table,
    the_error,
    the_row,
    to_avro,
    to_json,
)
from support.golden_data import scan_schemas

from cdcfmt_core.caches import table_size
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import (
    Corrupt,
    Image,
    Message,
    RowChange,
)


def test_the_version_is_exact() -> None:
    for version in (VERSION - 1, VERSION + 1, 0):
        error = the_error(bootstrap(), row("INSERT", DATA, schemaVersion=version))
        assert isinstance(error, MissingSchemaError)
        assert error.reason == f"schema simple.user@{version} not seen"
        assert (error.database, error.table, error.position) == ("simple", "user", (version,))
        assert (error.topic, error.partition, error.offset) == ("t", 3, 1)


def test_the_table_id_does_not_count() -> None:
    event = the_row(bootstrap(), row("INSERT", DATA, tableID=999))
    assert event.extra == {"table_id": 999, "schema_version": VERSION}


def test_names_are_exact() -> None:
    for change in ({"table": "User"}, {"database": "Simple"}):
        error = the_error(bootstrap(), row("INSERT", DATA, **change))
        assert isinstance(error, MissingSchemaError)


ANOTHER = bootstrap(ID, NAME, column("age", "int"))


RETYPED = bootstrap(ID, column("name", "int"))


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_the_same_version_with_other_columns(encode: Any, caplog: pytest.LogCaptureFixture) -> None:
    counts: Counter[str] = Counter()
    reader = decoder(counts)
    for bootstrapped in (bootstrap(), ANOTHER):
        assert reader.decode(Message(None, encode(bootstrapped)))
    assert counts["schemas that differ from another of their version"] == 1

    def read(data: dict[str, Any], **changes: Any) -> Any:
        if encode is to_avro:
            data = {name: ("long" if name != "name" else "string", value)
                    for name, value in data.items()}  # fmt: skip
        else:
            data = {name: str(value) for name, value in data.items()}
        (event,) = reader.decode(Message(None, encode(row("INSERT", data, **changes))))
        return event

    # Each row with the schema that has its columns, and no others.
    for _ in range(2):
        for data in ({"id": 1, "name": "x"}, {"id": 1, "name": "x", "age": 7}):
            event = read(data)
            assert isinstance(event, RowChange)
            assert event.table.column_names == tuple(data)
            assert event.after == Image(data)
    # Only the longer schema fits a row that lacks another column.
    assert read({"id": 1, "age": 7}).after == Image({"id": 1, "age": 7})
    # If both have the same types for a row's columns, either may be used.
    assert read({"id": 1}, handleKeyOnly=True).after == Image({"id": 1}, complete=False)
    error = read({"id": 1, "name": "x", "more": 1}).error
    assert "has more, which no schema of simple.user@" in error.reason

    # A row is not read with the last one's schema before its columns are known.
    longer = bootstrap(ID, column("name", "int"), column("age", "int"), version=5)
    shorter = bootstrap(ID, NAME, version=5)
    values: list[Any] = [{"id": "1", "name": "x"}, {"id": "1", "name": "7", "age": "3"}]
    if encode is to_avro:
        values = [
            {"id": ("long", 1), "name": ("string", "x")},
            {"id": ("long", 1), "name": ("long", 7), "age": ("long", 3)},
        ]
    rows = [encode(row("INSERT", value, schemaVersion=5)) for value in values]
    for order in (rows, rows[::-1]):
        events = decode(encode(longer), encode(shorter), *order, *order)
        assert not any(isinstance(event, Corrupt) for event in events)

    # With the same names and other types both fit, and none is certain.
    assert reader.decode(Message(None, encode(RETYPED)))
    error = read({"id": 1, "name": "5"}).error
    assert "2 different schemas of simple.user@" in error.reason
    assert read({"id": 1, "name": "x", "age": 7}).after is not None


def test_different_schemas_of_a_version_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    version = VERSION + 77
    for _ in range(3):
        decode(bootstrap(version=version), bootstrap(ID, version=version))
    text = f"simple.user has different schemas of version {version}"
    assert caplog.text.count(text) == 1


def test_no_schema_has_all_columns() -> None:
    other = bootstrap(ID, column("age", "int"))
    error = the_error(bootstrap(), other, row("INSERT", {"id": "1", "name": "x", "age": "1"}))
    assert "has columns of several schemas, which no schema of" in error.reason


def test_columns_missing_in_rows() -> None:
    """Virtual columns, and columns left out by a selector: absent, not NULL."""
    virtual = column("twice", "int")
    bootstrapped = bootstrap(ID, NAME, virtual)
    for values in (
        [bootstrapped, row("INSERT", DATA)],
        [to_avro(bootstrapped), to_avro(row("INSERT", AVRO_DATA))],
    ):
        event = the_row(*values)
        assert event.table.column_names == ("id", "name")
        assert event.after == Image({"id": 1, "name": "John"})


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_images_with_different_columns(encode: Any) -> None:
    new, old = {"id": "1", "name": "b"}, {"id": "1"}
    if encode is to_avro:
        new, old = {"id": ("long", 1), "name": ("string", "b")}, {"id": ("long", 1)}  # type: ignore[dict-item]
    event = the_row(encode(bootstrap()), encode(row("UPDATE", new, old)))
    assert event.after == Image({"id": 1, "name": "b"})
    assert event.before == Image({"id": 1}, complete=False)


def test_old_schemas_are_evicted() -> None:
    values = [bootstrap(version=version) for version in (1, 2, 3)]
    rows = [row("INSERT", DATA, schemaVersion=version) for version in (1, 2, 3)]
    # The later ones are equal, and need little memory.
    size = table_size(decode(values[0])[0].table_schema) + 700
    events = decode(*values, *rows, maxCachedSchemaBytes=str(size))
    assert [type(event) for event in events[3:]] == [Corrupt, RowChange, RowChange]
    assert "maxCachedSchemaBytes" in str(events[3].error)


@pytest.mark.parametrize("encode", [to_json, to_avro])
@pytest.mark.parametrize("compression", ["none", "lz4", "snappy"])
def test_schemas_are_found_before_decoding(encode: Any, compression: str) -> None:
    compress = {
        "none": bytes,
        "lz4": lz4.frame.compress,
        "snappy": lambda data: bytes(cramjam.snappy.compress_raw(data)),
    }[compression]
    change = ddl(tableSchema=table(version=9), preTableSchema=table(version=8))
    plain = DATA if encode is to_json else AVRO_DATA
    values = [
        row("INSERT", plain),
        {"version": 1, "type": "WATERMARK", "commitTs": TS, "buildTs": BUILD},
        change,
        bootstrap(version=7),
    ]
    messages = [Message(None, compress(encode(value))) for value in values]
    messages += [
        Message(None, None),
        Message(None, b""),
        Message(None, b"\x16\x02"),
        Message(None, b"{"),
    ]
    options = {"protocol": "simple", "largeMessageHandleCompression": compression}
    store = scan_schemas(messages, **options)
    versions = [store.at("simple", "user", (v,), stream="simple") for v in (7, 8, 9, VERSION)]
    assert [len(found) for found in versions] == [1, 1, 1, 0]


def test_row_with_schema_words_has_no_schema() -> None:
    store = scan_schemas(
        [Message(None, to_json(row("INSERT", {"tableSchema": "x"}, tableSchema=table())))],
        protocol="simple",
    )
    assert not store
