"""Types under the name of an author: formats, kernel and bridge take what they are over."""

from __future__ import annotations

from typing import Any

import pytest
from support.golden_data import CODECS, load_variant, open_decoder, reading_options

from cdcfmt_core import TypeMap, hookimpl
from cdcfmt_core.events import Column, Event, Message, RowChange, TableSchema
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import (
    Array,
    Decimal,
    Extension,
    Int,
    LogicalType,
    Map,
    Struct,
    Text,
    storage_of,
)
from pyspark_cdcfmt.read.inference import merge_columns
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.rows.types import EXTENSION, TypeOptions
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

MONEY = Extension("acme.money", Decimal(19, 4))


class Extended:
    """A type map with MySQL's types, each under a name."""

    @hookimpl
    def cdcfmt_register_type_maps(self) -> list[TypeMap]:
        mysql = default_registry().get_type_map("mysql")

        def resolve(text: str) -> LogicalType:
            return Extension(f"acme.{text}", mysql(text))

        return [TypeMap("extended", resolve)]


@pytest.fixture(scope="module")
def extended() -> str:
    default_registry().register(Extended(), "extended")
    return "extended"


def test_a_column_has_name_and_storage() -> None:
    column = Column("price", "money", MONEY)
    assert (column.type, column.extension) == (Decimal(19, 4), "acme.money")
    assert Column("price", "money", Decimal(19, 4)).extension is None
    nested = Array(Struct((("a", MONEY), ("b", Map(Text(), Extension("x", MONEY))))))
    assert storage_of(nested) == Array(
        Struct((("a", Decimal(19, 4)), ("b", Map(Text(), Decimal(19, 4)))))
    )
    assert Column("c", "", nested).type == storage_of(nested)


def test_the_name_is_metadata_of_the_field() -> None:
    table = TableSchema("d", "t", (Column("price", "money", MONEY), Column("n", "int", Int(32))))
    price, n = merge_columns([table], TypeOptions())
    assert (price.dataType.simpleString(), price.metadata) == (
        "decimal(19,4)",
        {EXTENSION: "acme.money"},
    )
    assert n.metadata == {}


def decoded(messages: list[Message], options: dict[str, str]) -> list[Event]:
    decoder = open_decoder(**options)
    return [event for message in messages for event in decoder.decode(message)]


def about(event: Event) -> Any:
    """An event without its table, and the columns of that without names of extensions."""
    table = getattr(event, "table", None)
    if not isinstance(event, RowChange) or not isinstance(table, TableSchema):
        return type(event)
    columns = [(column.name, column.source_type, column.type) for column in table.columns]
    images = [image and repr(image.values) for image in (event.before, event.after)]
    return event.op, table.name, columns, images


@pytest.mark.parametrize("wire", sorted(CODECS))
def test_formats_read_what_a_type_is_over(wire: str, extended: str) -> None:
    variant = load_variant(wire, "default")
    messages = [each.message for each in variant.messages]
    options = reading_options(variant)
    usual = decoded(messages, options)
    named = decoded(messages, {**options, "typeMap": extended})
    assert [*map(about, named)] == [*map(about, usual)]
    columns = [
        column for event in named if isinstance(event, RowChange) for column in event.table.columns
    ]
    # Debezium's schema has more than the text of a type, and is merged with it.
    assert any(column.extension for column in columns) == (wire != "debezium")
    assert not any(isinstance(column.type, Extension) for column in columns)


@pytest.mark.kernel
def test_the_kernel_reads_what_a_type_is_over(extended: str) -> None:
    variant = load_variant("canal-json", "content-compatible")
    messages = [each.message for each in variant.messages]
    options = {**reading_options(variant), "typeMap": extended}
    events = check_equal(messages, events_schema(parsed(options)), parsed(options))
    assert events.by_kernel > 100
    changes = parsed({**options, "table": "golden.all_types"})
    schema = inferred_schema(messages, changes)
    assert schema is not None
    assert schema["c_int"].metadata == {EXTENSION: "acme.int(11)"}
    assert check_equal(messages, schema, changes).by_kernel > 0
