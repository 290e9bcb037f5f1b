"""Bad JSON and checksums: an error that names the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simple_bad_input import AVRO_FULL, CHECKSUM, FULL, TOLD
from simple_messages import (
    DATA,
    ID,
    PRIMARY,
    bootstrap,
    column,
    ddl,
    decode,
    row,
    the_error,
    the_row,
    to_avro,
    to_json,
)
from support.bad_input import check_row, patient

from cdcfmt_core.events import Corrupt, RowChange, SchemaChange, TableSchemaEvent
from cdcfmt_core.schemas import store


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"commitTs": ...}, "commitTs"),
        ({"commitTs": -1}, "commitTs"),
        ({"commitTs": 1 << 63}, "commitTs"),
        ({"commitTs": "1"}, "commitTs"),
        ({"table": ""}, "table"),
        ({"table": ...}, "table"),
        ({"database": 5}, "database"),
        ({"schemaVersion": -1}, "schemaVersion"),
        ({"schemaVersion": 1 << 64}, "schemaVersion"),
        ({"schemaVersion": "1"}, "schemaVersion"),
        ({"handleKeyOnly": "yes"}, "handleKeyOnly"),
        ({"buildTs": "now"}, "buildTs"),
        ({"buildTs": 1 << 62}, "buildTs"),
        ({"data": []}, "data"),
        ({"data": ...}, "data"),
        ({"type": 5}, "type"),
        ({"type": "UPSERT"}, "sql"),
        ({"data": DATA | {"id": "x"}}, "data.id"),
        ({"data": DATA | {"id": 1.5}}, "data.id"),
        ({"data": DATA | {"name": 5}}, "data.name"),
        ({"data": DATA | {"name": {"a": 1}}}, "data.name"),
    ],
)
def test_fields_of_rows(change: dict[str, Any], field: str) -> None:
    wire = {name: value for name, value in (row("INSERT", DATA) | change).items()
            if value is not ...}  # fmt: skip
    assert the_error(bootstrap(), wire).field == field


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"location": "Asia/Nowhere", "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "../../etc/passwd", "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "x" * 5_000, "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "a\0b", "value": "2023-12-27 12:27:23"}, "is not a time zone"),
        ({"location": "UTC", "value": "yesterday"}, "not a datetime"),
        ({"location": "UTC"}, "not an object of location and value"),
        ({"value": "2023-12-27 12:27:23"}, "not an object of location and value"),
        ({"location": 5, "value": "2023-12-27 12:27:23"}, "not an object of location and value"),
        ({}, "not an object of location and value"),
        ([], "an array is not a value of this type"),
        (5, "a number is not a value of this type"),
        ("yesterday", "not a datetime"),
    ],
)
def test_timestamps(value: Any, reason: str) -> None:
    error = the_error(TOLD, row("INSERT", FULL | {"at": value}))
    assert reason in error.reason
    assert error.field == "data.at"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda schema: schema.update(columns=5), "tableSchema.columns"),
        (lambda schema: schema.update(columns=[5]), "tableSchema.columns[0]"),
        (lambda schema: schema.update(columns=[ID, ID]), "tableSchema.columns"),
        (lambda schema: schema["columns"][0].update(name=""), "tableSchema.columns[0].name"),
        (
            lambda schema: schema["columns"][0].update(dataType=[]),
            "tableSchema.columns[0].dataType",
        ),
        (lambda schema: schema["columns"][0].update(nullable=1), "tableSchema.columns[0].nullable"),
        (lambda schema: schema["columns"][0].update(default=[]), "tableSchema.columns[0].default"),
        (
            lambda schema: schema["columns"][0].update(
                default="x" * 9, dataType={"mysqlType": "bit"}
            ),
            "tableSchema.columns[0].default",
        ),
        (
            lambda schema: schema["columns"][0]["dataType"].update(length="x"),
            "tableSchema.columns[0].length",
        ),
        (lambda schema: schema.update(table=""), "tableSchema.table"),
        (lambda schema: schema.update(version=-1), "tableSchema.version"),
        (lambda schema: schema.update(indexes={}), "tableSchema.indexes"),
        (lambda schema: schema.update(indexes=[5]), "tableSchema.indexes[0]"),
        (
            lambda schema: schema.update(indexes=[PRIMARY | {"columns": ["x"]}]),
            "tableSchema.indexes",
        ),
        (lambda schema: schema.update(indexes=[PRIMARY | {"columns": [5]}]), "tableSchema.columns"),
    ],
)
def test_fields_of_schemas(change: Callable[[dict[str, Any]], None], field: str) -> None:
    wire = json.loads(to_json(bootstrap()))
    change(wire["tableSchema"])
    assert the_error(wire).field == field
    # A bad schema is ignored: its rows lack a schema.
    assert "not seen" in the_error(wire, row("INSERT", DATA)).reason
    # A statement is kept without it.
    (event,) = decode(ddl(tableSchema=wire["tableSchema"]))
    assert isinstance(event, SchemaChange)
    assert (event.query, event.table_schema) == (ddl()["sql"], None)
    assert event.extra is not None
    assert event.extra["schema_error"].startswith(f"{field}: ")
    assert event.table in ("user", "")


def test_a_default_of_half_a_character() -> None:
    bootstrapped = bootstrap(column("b", "bit", length=4, default="@"))
    value = to_json(bootstrapped).replace(b'"@"', b'"\\ud800"')
    assert the_error(value).field == "tableSchema.columns[0].default"


def test_missing_schemas_and_statements() -> None:
    assert the_error({"type": "BOOTSTRAP"}).field == "tableSchema"
    assert the_error(ddl(sql="")).field == "sql"
    assert the_error({"type": "WATERMARK"}).field == "commitTs"
    assert the_error({}).field == "type"


def test_rows_without_columns() -> None:
    for image in ({}, None):
        assert decode(bootstrap(), row("INSERT", image))[1] is not None
        assert isinstance(decode(bootstrap(), row("INSERT", image))[1], Corrupt)
    assert "has no columns" in the_error(bootstrap(), row("INSERT", {})).reason


def test_deep_nesting() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = (opening * 100_000 + "1" + closing * 100_000).encode()
        assert the_error(deep).reason
        inside = to_json(row("INSERT", DATA)).replace(b'"John"', deep)
        assert the_error(bootstrap(), inside).reason


@pytest.mark.parametrize("number", ["1" + "0" * 5_000, "1e400", "-1e999999999", "9" * 900])
def test_huge_numbers(number: str) -> None:
    for field in ("commitTs", "schemaVersion", "buildTs"):
        wire = row("INSERT", DATA)
        original = f'"{field}":{wire[field]}'.encode()
        value = to_json(wire).replace(original, f'"{field}":{number}'.encode())
        assert the_error(bootstrap(), value).reason
    value = to_json(row("INSERT", DATA)).replace(b'"id":"1"', f'"id":{number}'.encode())
    assert the_error(bootstrap(), value).reason
    assert the_error(bootstrap(), row("INSERT", DATA | {"id": number})).reason


TYPES = [
    "int", "double", "decimal", "datetime", "timestamp", "time", "json", "bit", "year", "set",
    "enum", "vector", "date", "blob",
]  # fmt: skip


@pytest.mark.parametrize("mysql_type", TYPES)
@given(text=st.text(max_size=30) | st.from_regex(r"[-+0-9.eE:/ ]{0,30}", fullmatch=True))
@patient
def test_any_text_in_any_column(mysql_type: str, text: str) -> None:
    members = {"elements": ["a", "b"]} if mysql_type in ("set", "enum") else {}
    bootstrapped = bootstrap(ID, column("c", mysql_type, length=10, decimal=2, **members))
    text = text.encode("utf-8", "replace").decode()
    for value in (
        to_json(row("INSERT", {"id": "1", "c": text})),
        to_avro(row("INSERT", {"id": ("long", 1), "c": ("string", text)})),
    ):
        event = decode(bootstrapped, value)[1]
        if isinstance(event, RowChange):
            check_row(event)
        else:
            assert isinstance(event, Corrupt)
            assert not event.error.reason.startswith("the decoder failed")


@pytest.mark.parametrize("encode", [to_json, to_avro])
def test_false_checksum(encode: Any) -> None:
    full = FULL if encode is to_json else AVRO_FULL
    wire = encode(row("UPDATE", full, full, checksum=CHECKSUM | {"previous": 8}))
    bootstrapped = encode(TOLD)
    assert "checksum_mismatch" not in (the_row(bootstrapped, wire).extra or {})
    event = the_row(bootstrapped, wire, verifyChecksum="true")
    assert event.extra is not None
    computed = event.extra["checksum_mismatch"]
    assert computed.keys() == {"current", "previous"}
    assert computed["current"] == computed["previous"] != 7
    assert event.extra["checksum"] == CHECKSUM | {"previous": 8}
    error = the_error(bootstrapped, wire, verifyChecksum="fail")
    assert error.field == "checksum.current"
    right = CHECKSUM | {"current": computed["current"]}
    event = the_row(
        bootstrapped, encode(row("INSERT", full, checksum=right)), verifyChecksum="fail"
    )
    assert "checksum_mismatch" not in (event.extra or {})


@pytest.mark.parametrize("checksum", [{}, {"current": "x", "previous": 0}, {"current": 1}, [], 5])
def test_checksums_of_other_shapes(checksum: Any) -> None:
    wire = row("INSERT", FULL, checksum=checksum)
    field = the_error(TOLD, wire, verifyChecksum="true").field
    assert field is not None
    assert field.startswith("checksum")
    assert the_row(TOLD, wire).extra is not None


def test_parts_of_rows_have_no_checksum() -> None:
    wire = row("INSERT", {"id": "1"}, checksum=CHECKSUM, handleKeyOnly=True)
    assert "checksum_mismatch" not in (the_row(TOLD, wire, verifyChecksum="fail").extra or {})


def test_oversized_schema_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event has the schema; the store and rows do not."""
    monkeypatch.setattr(store, "MAX_SCHEMA_BYTES", 100)
    bootstrapped, statement, corrupt = decode(bootstrap(), ddl(), row("INSERT", DATA))
    assert isinstance(bootstrapped, TableSchemaEvent)
    assert bootstrapped.table_schema.column_names == ("id", "name")
    assert isinstance(statement, SchemaChange)
    assert statement.table_schema is not None
    assert isinstance(corrupt, Corrupt)
    assert "raise maxCachedSchemaBytes" in corrupt.error.reason
