"""The value encoding ``dialect-text``: text as the type map of the source reads it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from cdcfmt_core.codec import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Timestamp, TypeMap, Unknown
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.plans import encoded_plan


def reader(type_map: str, source_type: str) -> ReadValue:
    context = DecoderContext(default_registry().get_type_map(type_map), SchemaStore())
    column = Column("c", source_type, context.resolve_type(source_type))
    table = TableSchema("d", "t", (column,))
    return encoded_plan(table, context, {"c": Encoding("dialect-text")}).readers["c"]


@pytest.mark.parametrize(
    ("source_type", "wire", "value"),
    [
        ("boolean", "t", True),
        ("boolean", False, False),
        ("numeric(10,2)", "1.50", Decimal("1.50")),
        ("numeric", Decimal("1E+3"), Decimal(1000)),
        ("integer", 7, 7),
        ("text[]", '{"a,b",NULL}', ["a,b", None]),
        ("bytea", "\\x00ff", b"\x00\xff"),
        # A domain that no map knows.
        ("email", "a@b", "a@b"),
    ],
)
def test_the_type_map_reads_values(source_type: str, wire: Any, value: object) -> None:
    assert reader("postgresql", source_type)(wire) == value


@pytest.mark.parametrize("wire", ["1.5", 1 << 40, True, [1], {}, 1.5])
def test_other_values_are_errors(wire: Any) -> None:
    with pytest.raises(ValueError, match=r"is not (text|an integer)"):
        reader("postgresql", "integer")(wire)


def test_a_map_without_readers_has_texts_of_mysql() -> None:
    assert reader("mysql", "bit(3)")("5") == 5
    assert reader("mysql", "decimal(5,2)")("1.50") == Decimal("1.50")
    with pytest.raises(ValueError, match="c is a bytea"):
        reader("mysql", "bytea")


def test_clocks_are_in_the_zone_of_the_source() -> None:
    """A map whose text has no zone, such as Oracle's TIMESTAMP WITH LOCAL TIME ZONE."""
    oracle = TypeMap(
        "clocks", lambda _: Timestamp(0), "", open_reader=lambda _: datetime.fromisoformat
    )
    context = DecoderContext(oracle, SchemaStore(), source_time_zone=ZoneInfo("Europe/Berlin"))
    table = TableSchema("d", "t", (Column("c", "TIMESTAMP", Timestamp(0)),))
    read = encoded_plan(table, context, {"c": Encoding("dialect-text")}).readers["c"]
    assert read("2024-07-01 12:00:00") == datetime(2024, 7, 1, 10, tzinfo=UTC)
    assert read("2024-07-01 12:00:00+00:00") == datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert read("2024-10-27 02:30:00") == datetime(2024, 10, 27, 0, 30, tzinfo=UTC)
    assert context.counts == {"timestamp ambiguous in Europe/Berlin": 1}


def test_unknown_types_stay_unknown() -> None:
    assert default_registry().get_type_map("postgresql")("email") == Unknown("email")
