"""The conformance kit on TiCDC's messages; tests/test_golden.py has their truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import attrs
from simple_wire import read_wire
from support.golden_encoding import golden_cases

from cdcfmt_core.events import (
    Column,
    Event,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
)
from cdcfmt_core.types import Enum, Geometry, Set, Text
from cdcfmt_mysql.type_output import column_type
from cdcfmt_testing import Carries, Case, CodecTests, RoundTrip, without

REPLACED = r"TiCDC wrote \ufffd, which Go escapes only where it stands for a byte"

CARRIES = Carries(
    types=without(Geometry),
    kinds=frozenset({"row", "ddl", "watermark", "schema"}),
    times=frozenset({"commit_ts", "emit_time"}),
    ddl_tables=2,
)

WIDTHS = {"tinyint": 4, "smallint": 6, "mediumint": 9, "int": 11, "bigint": 20}


def normalise(event: Event, decoded: Any) -> Event:
    """With display widths, charset and collation, and NOT NULL for the key."""
    if isinstance(event, RowChange):
        extra = decoded.extra
        assert extra.keys() - {"checksum"} == {"schema_version", "table_id"}
        return attrs.evolve(event, table=_told(event.table), extra=extra)
    if isinstance(event, TableSchemaEvent):
        return attrs.evolve(event, table_schema=_told(event.table_schema), extra=decoded.extra)
    if isinstance(event, SchemaChange):
        assert event.table_schema is not None
        assert event.previous_table_schema is not None
        return attrs.evolve(
            event,
            table_schema=_told(event.table_schema),
            previous_table_schema=_told(event.previous_table_schema),
            extra=decoded.extra,
        )
    return event


def _told(table: TableSchema) -> TableSchema:
    return attrs.evolve(table, columns=tuple(map(_told_column, table.columns)))


def _told_column(column: Column) -> Column:
    logical = column.type
    has_charset = isinstance(logical, (Text, Enum, Set))
    parsed = column_type(column)
    source_type = column.source_type
    if parsed.base in WIDTHS:
        width = WIDTHS[parsed.base] - (parsed.unsigned and parsed.base != "bigint")
        source_type = f"{parsed.base}({width})" + " unsigned" * parsed.unsigned
    elif parsed.base == "year":
        source_type = "year(4)"
    return attrs.evolve(
        column,
        source_type=source_type,
        type=Text("utf8mb4") if isinstance(logical, Text) else logical,
        nullable=not column.key,
        flags=("charset utf8mb4", "collate utf8mb4_bin") if has_charset else (),
    )


def trip(encoding: str, *, checksums: bool) -> RoundTrip:
    return RoundTrip(
        name=f"{encoding}{' with checksums' * checksums}",
        carries=CARRIES,
        writing={"encodingFormat": encoding, "enableRowChecksum": checksums},
        reading={"verifyChecksum": "fail"},
        normalise=normalise,
    )


class TestSimple(CodecTests):
    codec = "simple"
    known_failures: ClassVar = {
        "test_errors_name_the_field": "a row whose schema was not seen names that schema, not a "
        "field",
    }
    differences: ClassVar = {
        "*: data (order)": "Go's maps have no order in Avro",
        "*: old (order)": "Go's maps have no order in Avro",
        "golden.bad_utf8: value": REPLACED,
        "golden.bad_latin1: value": REPLACED,
    }
    round_trips = (
        trip("json", checksums=False),
        trip("json", checksums=True),
        trip("avro", checksums=False),
        trip("avro", checksums=True),
    )

    @classmethod
    def content_of(cls, message: Message) -> Any:
        """JSON, or the datum as fastavro reads it."""
        return read_wire(message.value or b"")

    @classmethod
    def load_cases(cls) -> Iterable[Case]:
        yield from golden_cases("simple-json")
        yield from golden_cases("simple-avro")
