"""``changes(events, table)`` against the option ``table``: every row of the golden messages.

Without Spark, whose part is tested in spark_bridge/tests/test_stored_changes.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType, VariantType
from support.golden_data import (
    Loss,
    Losses,
    about,
    load_variant,
    native_messages,
    reading_options,
    variant_names,
)

from cdcfmt_core.events import Event, Message, RowChange
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.inference import infer_columns
from pyspark_cdcfmt.read.schemas import find_schemas
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.policy import BadRow, ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import changes_schema, events_schema
from pyspark_cdcfmt.rows.stored_events import StoredEvents, StoredMessage
from pyspark_cdcfmt.rows.types import TypeOptions
from pyspark_cdcfmt.rows.variant import encode_variant

TICDC = [
    (protocol, name)
    for protocol in ("canal-json", "open", "debezium")
    for name in variant_names(protocol)
    if name != "storage-txn"
]
NATIVE = [
    "canal/canal_flat",
    "debezium/schema_default",
    "debezium/noschema_default",
    "debezium/noschema_strings",
    "dts/dts",
]
LOSSES = [
    Loss("*", "c_json", "json null", "the null of JSON and SQL's NULL are one value in a variant"),
    Loss("json_t", "j", "json null", "likewise"),
    Loss("*", "_invalid", "replaced", "events hold the replacement and not that it is one"),
    Loss("wide", "c_dec", "digits", "variants have 38 digits: zeros that do not fit are cut off"),
]
LISTED = Losses(LOSSES, {"json_t", "wide"})


def differences(
    messages: list[Message], given: dict[str, str], *, as_text: bool
) -> Iterator[tuple[str, str, Any]]:
    """Table, column, both values."""
    options = parse_options({"includeColumns": "true", "scanSchemas": "true"} | given)
    schemas = find_schemas(options, lambda _: messages)
    decoder = open_decoder(options, options.event_filter(), schemas=schemas)
    decoded = [(m, e, decoder.protocol) for m in messages for e in decoder.decode(m)]
    tables = {table for _, e, _ in decoded if isinstance(e, RowChange) and (table := _table_of(e))}
    names = events_schema(options).names
    stored_rows = EventRows(ReadTask(events_schema(options), options), ValuePolicy())
    for table in sorted(tables):
        quoted = ".".join(f"`{part}`" for part in table)
        typed = parse_options(
            given
            | {"table": quoted, "onTruncate": "row"}
            | dict.fromkeys(("incompleteRows", "onSchemaChange"), "corrupt")
        )
        own = infer_columns(
            partial(about, messages, table[-1], given),
            open_decoder(typed, typed.event_filter(), schemas=schemas),
            table,
            100_000,
            TypeOptions(),
        )
        if as_text:
            # JSON is refused: test_json_as_text_is_refused.
            others = (field for field in own if field.dataType != VariantType())
            own = [StructField(field.name, StringType()) for field in others]
        schema = changes_schema(own, typed)
        direct = ChangeRows(ReadTask(schema, typed), ValuePolicy())
        again = ChangeRows(ReadTask(schema, typed), ValuePolicy())
        stored = StoredEvents(None)
        for message, event, protocol in decoded:
            if _table_of(event) != table:
                continue
            for row in stored_rows.rows(message, event, protocol):
                cells = dict(zip(names, row, strict=True))
                for name in ("before", "after", "extra"):
                    if cells[name] is not None:
                        value, metadata = cells[name]
                        cells[name] = {"value": value, "metadata": metadata}
                held = StoredMessage(None, None, offset=message.offset, event=cells)
                (restored,) = stored.decode(held)
                expected = rows_of(direct, message, event, schema)
                actual = rows_of(again, held, restored, schema)
                assert len(actual) == len(expected), (table, event, restored)
                for one, other in zip(expected, actual, strict=True):
                    for name in one.keys() | other.keys():
                        if not same(one.get(name), other.get(name)):
                            yield table[-1], name, (one.get(name), other.get(name))


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def rows_of(rows: ChangeRows, message: Message, event: Event, schema: StructType) -> list[Any]:
    try:
        return [dict(zip(schema.names, row, strict=True)) for row in rows.rows(message, event, "x")]
    except BadRow as error:
        return [{"bad": str(error)}]


def _table_of(event: Event) -> tuple[str, ...]:
    named: Any = event.table if isinstance(event, RowChange) else event
    if not hasattr(named, "table"):
        return ()
    return tuple(part for part in (named.database, named.schema, named.table) if part is not None)


@pytest.mark.parametrize(("protocol", "name"), TICDC)
def test_ticdc(protocol: str, name: str) -> None:
    variant = load_variant(protocol, name)
    messages = [golden.message for golden in variant.messages]
    check(messages, reading_options(variant), as_text=False)
    if name == "default":
        check(messages, reading_options(variant), as_text=True)


@pytest.mark.parametrize("as_text", [False, True], ids=["types", "text"])
@pytest.mark.parametrize("path", NATIVE)
def test_native(path: str, as_text: bool) -> None:
    check(list(native_messages(path)), {"sourceTimeZone": "UTC"}, as_text)


def check(messages: list[Message], options: dict[str, str], as_text: bool) -> None:
    for table, column, (expected, actual) in differences(messages, options, as_text=as_text):
        if column == "_invalid":
            assert LISTED.covers(table, column, "replaced")
            assert set(actual) < set(expected)
            continue
        is_null = expected == encode_variant(None) and actual is None
        aspect = "json null" if is_null else "digits"
        assert LISTED.covers(table, column, aspect), (table, column, expected, actual)
        assert is_null or Decimal(expected) == Decimal(actual)


def test_every_listed_loss_occurs() -> None:
    """Runs last in this file."""
    LISTED.assert_all_seen("json null", "digits", "replaced")
