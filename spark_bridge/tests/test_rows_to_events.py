"""Rows of the events shape back to events, over the golden messages of every format."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs
import pytest
from support.golden_data import load_variant, native_messages

from cdcfmt_core import default_registry
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Event, Image, Message, RowChange, SchemaChange, TableSchema
from cdcfmt_core.types import Bit, Enum, Int, Json, LogicalType, Set, Timestamp, Unknown
from cdcfmt_core.types import Decimal as DecimalType
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.schemas import find_schemas
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.event_values import json_text
from pyspark_cdcfmt.rows.input_tables import InputTables
from pyspark_cdcfmt.rows.json_values import parse_json_column
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.rows.rows_to_events import EventInput, located

TICDC = [
    ("canal-json", "default"),
    ("canal-json", "tidb-extension"),
    ("canal-json", "only-output-updated-columns"),
    ("canal-json", "handle-key-only"),
    ("open", "default"),
    ("open", "batched"),
    ("debezium", "tidb-extension"),
    ("debezium", "disable-schema"),
]
NATIVE = ["canal/canal_flat", "debezium/schema_default", "dts/dts"]


def _messages(case: tuple[str, str] | str) -> list[Message]:
    if isinstance(case, str):
        return list(native_messages(case))
    return [golden.message for golden in load_variant(*case).messages]


def _round_trip(messages: list[Message], **given: str) -> Iterator[tuple[str | None, Event, Event]]:
    """Every event of the messages with its round trip, and its format."""
    options = parse_options({"sourcetimezone": "Asia/Shanghai", "includecolumns": "true", **given})
    schema = events_schema(options)
    policy = ValuePolicy("text", "replace")
    rows = EventRows(ReadTask(schema, options), policy)
    decoder = open_decoder(
        options, options.event_filter(), schemas=find_schemas(options, lambda _: messages)
    )
    builder = BatchBuilder(schema)
    events: list[tuple[str | None, Event]] = []
    batches = []
    for message in messages:
        for event in decoder.decode(message):
            events.append((decoder.protocol, event))
            batches += builder.add(list(rows.rows(message, event, decoder.protocol)), 0)
    batches += builder.flush()
    tables = InputTables(default_registry(), type_map=None, by_values=False)
    found = [read.event for read in EventInput(schema, tables).events(batches)]
    assert len(found) == len(events)
    for (protocol, event), back in zip(events, found, strict=True):
        yield protocol, event, back


@pytest.mark.parametrize("case", [*TICDC, *NATIVE], ids=str)
def test_golden_events_round_trip(case: tuple[str, str] | str) -> None:
    rows = 0
    for protocol, event, back in _round_trip(_messages(case)):
        assert type(back) is type(event)
        if isinstance(event, RowChange):
            rows += 1
            assert isinstance(back, RowChange)
            own = protocol == "dts-avro"
            assert _schema(back.table, types=not own) == _schema(event.table, types=not own)
            for one, other in ((event.before, back.before), (event.after, back.after)):
                assert _image(other, event.table) == _image(one, event.table)
                assert one is None or other is None or other.complete == one.complete
        elif isinstance(event, SchemaChange):
            assert isinstance(back, SchemaChange)
            assert back.table_schema is None or event.table_schema is not None
        assert _rest(back) == _rest(event)
    assert rows > 0


def _schema(table: TableSchema, *, types: bool) -> tuple[Any, ...]:
    columns = [
        (column.name, column.source_type, column.nullable, _type(column.type) if types else None)
        for column in table.columns
    ]
    return table.database, table.schema, table.table, table.key_columns, columns


def _type(type_: LogicalType) -> LogicalType:
    # Debezium has the width of BIT and the names of ENUM only in its own schema.
    return type(type_)() if isinstance(type_, Bit | Enum | Set) else type_


def _image(image: Image | None, table: TableSchema) -> Any:
    """The values as they can come back: JSON as a value, not as text."""
    if image is None:
        return None
    types = {column.name: column.type for column in table.columns}
    return {name: _value(value, types[name]) for name, value in image.values.items()}


def _value(value: Any, type_: Any) -> Any:
    if isinstance(type_, Json) and isinstance(value, str):
        return parse_json_column(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace" if value.isascii() else "surrogateescape").decode(
            "utf-8", "replace"
        )
    return value


def _rest(event: Any) -> dict[str, Any]:
    left_out = {"table", "before", "after", "table_schema", "previous_table_schema"}
    left_out |= {"error"}
    values = attrs.asdict(event, filter=lambda field, _: field.name not in left_out, recurse=False)
    if isinstance(getattr(event, "table", None), str):
        values["table"] = event.table
    return values


KEY = ("shop", None, "orders")


def _columns(**types: str) -> tuple[Any, ...]:
    nothing = (None,) * len(types)
    return tuple(types), tuple(types.values()), nothing, nothing


def _table_of(by_values: bool = False) -> InputTables:
    return InputTables(default_registry(), type_map=None, by_values=by_values)


def test_a_value_that_is_not_of_its_source_type() -> None:
    tables = _table_of()
    columns = _columns(id="int", name="varchar(20)")
    with pytest.raises(EncodeError, match=r"'x' is not an integer.*source type is 'int'") as caught:
        tables.images(KEY, (), columns, None, (None, {"id": "x", "name": "a"}))
    assert caught.value.column == "id"
    with pytest.raises(EncodeError, match="does not list") as caught:
        tables.images(KEY, (), columns, None, (None, {"other": 1}))
    assert caught.value.column == "other"


def test_null_names() -> None:
    names, *others = _columns(id="int")
    for keys, columns, where in (
        ((None,), (names, *others), "key_columns"),
        ((), ((None,), *others), "columns"),
    ):
        with pytest.raises(EncodeError, match="is NULL") as caught:
            _table_of().images(KEY, keys, columns, None, (None, {"id": 1}))  # type: ignore[arg-type]
        assert caught.value.column == where


def test_numbers_and_types_derived_from_values() -> None:
    tables = _table_of()
    columns = _columns(n="bigint", t="an unknown type", s="another")
    time = datetime(2024, 1, 1, tzinfo=UTC)
    for cells in ({"n": 1, "t": None, "s": "x"}, {"n": Decimal(2**64), "t": time, "s": "x"}):
        table, _, after = tables.images(KEY, (), columns, None, (None, cells))
        assert after is not None
        assert after.values == cells
    types = [type(column.type) for column in table.columns]
    assert types == [DecimalType, Timestamp, Unknown]


def test_rows_without_columns() -> None:
    with pytest.raises(EncodeError, match="includeColumns=true, or set typesFrom=values"):
        _table_of().images(KEY, (), None, None, (None, {"id": 1}))
    cells = {"id": 1, "j": {"a": [1, Decimal("1.50")]}, "n": None}
    table, _, after = _table_of(by_values=True).images(KEY, ("id",), None, None, (None, cells))
    assert after is not None
    assert after.values == {"id": 1, "j": '{"a":[1,1.50]}', "n": None}
    assert [type(column.type) for column in table.columns] == [Int, Json, Unknown]
    assert table.columns[0].key


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("abc", '"abc"'),
        ('{"a": 1e100}', '{"a": 1e100}'),
        ("[1e100]", "[1e100]"),
    ],
)
def test_text_in_json_columns(text: str, kept: str) -> None:
    assert json_text(text) == kept


def test_text_in_a_json_column_that_may_be_a_number() -> None:
    with pytest.raises(EncodeError, match="jsonAs=string"):
        json_text("1e100")


def test_json_numbers_keep_their_digits() -> None:
    text = '{"a":[1.50,12345678901234567890123,-1,"é",null,true]}'
    assert json_text(parse_json_column(text)) == text


def test_error_has_the_qualified_table_name() -> None:
    row = {"database": "shop", "schema": "public", "table": "orders"}
    assert located(EncodeError("bad"), row, {}).table == "shop.public.orders"
    assert located(EncodeError("bad"), row | {"schema": None}, {}).table == "shop.orders"
    assert located(EncodeError("bad"), {}, {}).table is None
