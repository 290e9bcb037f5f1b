"""The example of a format whose types come in other messages: docs/example/cdcfmt-dms."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from support.workspace import ROOT

from cdcfmt_core import default_registry, open_decoder
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import Corrupt, Message, RowChange, SchemaChange
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_testing import Subject
from cdcfmt_testing.cases import load_cases
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, read

DMS = ROOT / "docs/example/cdcfmt-dms"
ROW = (
    b'{"data":{"id":7,"at":%s},"metadata":{"timestamp":"2025-06-21T12:00:0%dZ",'
    b'"record-type":"data","operation":"insert","partition-key-type":"schema-table",'
    b'"schema-name":"s","table-name":"t"}}'
)
CONTROL = (
    b'{"control":%s,"metadata":{"timestamp":"2025-06-21T12:00:0%dZ",'
    b'"record-type":"control","operation":"%s","partition-key-type":"task-id",'
    b'"schema-name":"s","table-name":"t"}}'
)
FIRST = (
    b'{"table-def":{"columns":{"id":{"type":"INT32"},"at":{"type":"STRING"}},"primary-key":["id"]}}'
)
SECOND = b'{"table-def":{"columns":{"id":{"type":"INT32"},"at":{"type":"TIMESTAMP"}}}}'


@pytest.fixture(autouse=True)
def subject(monkeypatch: pytest.MonkeyPatch) -> Iterator[Subject]:
    """The format, registered during a test."""
    monkeypatch.syspath_prepend(DMS / "src")
    importlib.invalidate_caches()
    default_registry.cache_clear()
    assert default_registry().register(importlib.import_module("cdcfmt_dms"), "dms").error is None
    yield Subject(default_registry().get_codec("dms"), load_cases(DMS / "cases"))
    default_registry.cache_clear()


def found_ahead(subject: Subject, messages: list[Message]) -> SchemaStore:
    store = SchemaStore()
    scan: Any = subject.open_scan({})
    for message in messages:
        for record in scan(message):
            store.add(record)
    return store


def row(second: int, at: bytes = b'"2025-06-21T11:00:00Z"') -> Message:
    return Message(None, ROW % (at, second))


def control(second: int, table_def: bytes, operation: bytes = b"create-table") -> Message:
    return Message(None, CONTROL % (table_def, second, operation))


# A schema holds from its control record on, wherever that stands.
MESSAGES = [row(2), row(5), control(4, SECOND), row(3), row(6), control(1, FIRST), row(7)]


def test_rows_have_the_newest_schema_before_them(subject: Subject) -> None:
    decoder = open_decoder("dms", schemas=found_ahead(subject, MESSAGES))
    events = [event for message in MESSAGES for event in decoder.decode(message)]
    rows = [event for event in events if isinstance(event, RowChange)]
    types = ["Text", "Timestamp", "Text", "Timestamp", "Timestamp"]
    assert [type(each.table.columns[1].type).__name__ for each in rows] == types
    assert len({id(each.table) for each in rows}) == 2


@pytest.mark.kernel
def test_the_kernel_reads_both_schemas(subject: Subject) -> None:
    messages = [message for message in MESSAGES * 20 if b'"data":' in (message.value or b"")]
    options = parsed({"protocol": "dms"})
    schemas = found_ahead(subject, MESSAGES)
    result = check_equal(messages, events_schema(options), options, schemas=schemas)
    assert result.rows.num_rows == len(messages)
    assert result.by_kernel > len(messages) - 5, result.refusal


@pytest.mark.kernel
def test_schemas_without_limits_are_confused_by_the_kernel(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the comparison of kernel and decoder finds it."""
    layouts: Any = importlib.import_module("cdcfmt_dms.layouts")
    (layout,) = layouts.open_layouts({"beforeImageField": "before-image"})
    monkeypatch.setattr(layouts, "open_layouts", lambda _: [attrs.evolve(layout, limits=None)])
    messages = [row(2), row(3), row(5)]
    options = parsed({"protocol": "dms"})
    with pytest.raises(AssertionError, match="key_columns"):
        check_equal(
            messages, events_schema(options), options, schemas=found_ahead(subject, MESSAGES)
        )


@pytest.mark.parametrize(
    "end",
    [
        control(3, b"{}", b"drop-table"),
        control(3, b"null", b"add-column"),
        Message(None, (CONTROL % (b"{}", 3, b"create-table")).replace(b'"control":{},', b"")),
    ],
)
def test_control_record_without_types_ends_them(subject: Subject, end: Message) -> None:
    decoder = open_decoder("dms")
    _, first, changed, second = (
        decoder.decode(message)[0] for message in (control(1, FIRST), row(2), end, row(4))
    )
    assert isinstance(first, RowChange)
    assert isinstance(changed, SchemaChange)
    assert isinstance(second, Corrupt)
    assert "IncludeControlDetails" in second.error.reason


def test_drop_without_statement_has_its_type(subject: Subject) -> None:
    messages = [control(1, FIRST), row(2), control(3, b"{}", b"drop-table")]
    options = parsed({"protocol": "dms", "table": "s.t", "onTruncate": "fail"})
    schema = inferred_schema(messages, options)
    assert schema is not None
    error = read(messages, schema, options, by_kernel=False).error
    assert "s.t: the table is truncated or dropped by 'ERASE' (onTruncate=fail" in (error or "")


@pytest.mark.parametrize("message", [row(2), row(5, b'"x","new":1')])
def test_missing_schema_is_searched(message: Message) -> None:
    """The error has the table and position for the reader's search."""
    decoder = open_decoder("dms")
    if b'"new"' in (message.value or b""):
        decoder.decode(control(4, FIRST))
    (event,) = decoder.decode(message)
    assert isinstance(event, Corrupt)
    error = event.error
    assert isinstance(error, MissingSchemaError)
    second = int(json.loads(message.value or b"")["metadata"]["timestamp"][-2])
    assert (error.database, error.table, error.exact) == ("s", "t", False)
    assert error.position == (1_750_507_200_000_000 + second * 1_000_000,)


@pytest.mark.parametrize(
    ("given", "values"), [("false", {"id": 7}), ("true", {"id": 7, "at": None})]
)
def test_wires_that_omit_nulls(given: str, values: dict[str, Any]) -> None:
    decoder = open_decoder("dms", absentIsNull=given)
    decoder.decode(control(1, FIRST))
    (event,) = decoder.decode(Message(None, (ROW % (b"0", 2)).replace(b',"at":0', b"")))
    assert isinstance(event, RowChange)
    assert event.after is not None
    assert event.after.values == values
    assert event.after.complete == (given == "true")


def test_field_named_by_the_task() -> None:
    decoder = open_decoder("dms", beforeImageField="old")
    decoder.decode(control(1, FIRST))
    value = (
        (ROW % (b'"b"', 2))
        .replace(b"insert", b"update")
        .replace(b'},"meta', b'},"old":{"at":"a"},"meta')
    )
    (event,) = decoder.decode(Message(None, value))
    assert isinstance(event, RowChange)
    assert event.before is not None
    assert (event.before.values, event.before.complete) == ({"at": "a"}, False)
