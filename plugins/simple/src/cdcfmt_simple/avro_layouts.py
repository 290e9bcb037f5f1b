"""How rows lie in Avro messages, for readers that go by columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final

from cdcfmt_core.avro_layout import AvroLayout, Cell, Field, Form, ImageField, Wire
from cdcfmt_core.events import Column
from cdcfmt_core.mysql import json_value_parser, text_parser
from cdcfmt_core.mysql.instants import timestamp_parser
from cdcfmt_core.types import (
    Binary,
    Bit,
    Enum,
    Float,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Timestamp,
    Unknown,
    Year,
)
from cdcfmt_simple.avro import LAYOUTS, UINT64, Layout
from cdcfmt_simple.avro_values import enum_parser
from cdcfmt_simple.instants import zone_at
from cdcfmt_simple.sniff import EARLIEST, LATEST

_FORMS: Final[dict[str, Form]] = {
    "null": "null",
    "int": "long",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "bytes",
    "boolean": "boolean",
    "bytes": "bytes",
    "Timestamp": "named",
    "UnsignedBigint": "long",
}
_CHECKSUM: Final = (
    Field("extra"),
    Field("extra", "boolean"),
    Field("extra"),
    Field("extra"),
)
_ROW: Final = b"\x06"
_WATERMARK: Final = b"\x00"


def open_layouts(options: Mapping[str, Any]) -> Sequence[AvroLayout]:
    """The layouts of Avro; none where values are compressed or checksums verified."""
    if options["largeMessageHandleCompression"] != "none" or options["verifyChecksum"] != "false":
        return ()
    return [_layout(first, layout) for first, layout in LAYOUTS.items()]


def _layout(first: bytes, layout: Layout) -> AvroLayout:
    branches = tuple(_FORMS[branch] for branch in layout.branches)
    # The number of the payload, behind that of the message's type.
    times = 2 if layout.has_message_type else 1
    return AvroLayout(
        begins=first + _ROW * times,
        quiet=(first + _WATERMARK * times,),
        fields=(
            Field("same"),  # version
            Field("database", "bytes"),
            Field("table", "bytes"),
            Field("same"),  # tableID
            Field("op"),
            Field("commit_ts"),
            Field("other_time"),
            Field("same"),  # schemaVersion
            Field("never", "bytes", null=True),  # claimCheckLocation
            Field("never", "boolean", null=True),  # handleKeyOnly
            Field("extra", _CHECKSUM, null=True),
            ImageField("after", branches),
            ImageField("before", branches),
        ),
        ops=("insert", "update", "delete"),
        cells=lambda column, _, zone, counts: _cells(layout, column, zone, counts),
        times=(EARLIEST, LATEST - 1, 1000),
        recognised=True,
    )


def _cells(layout: Layout, column: Column, zone: tzinfo, counts: Counter[str]) -> tuple[Cell, ...]:
    """What the decoder's readers do (:func:`cdcfmt_simple.avro_values.open_readers`)."""
    logical = column.type
    numbers = {name: number for number, name in enumerate(layout.branches)}
    usual = _usual_branch(logical)
    names = sorted(numbers, key=lambda name: name != usual)
    cells = [_cell(numbers[name], name, logical, zone, counts) for name in names]
    return tuple(cell for cell in cells if cell is not None)


def _usual_branch(logical: LogicalType) -> str:
    if isinstance(logical, Int):
        return "UnsignedBigint" if logical.bounds == (0, UINT64) else "long"
    if isinstance(logical, Float):
        return "float" if logical.bits == 32 else "double"
    if isinstance(logical, Timestamp):
        return "Timestamp"
    if isinstance(logical, Binary):
        return "bytes"
    return "long" if isinstance(logical, (Enum, Set, Year)) else "string"


def _cell(
    number: int, name: str, logical: LogicalType, zone: tzinfo, counts: Counter[str]
) -> Cell | None:
    parse_other = json_value_parser(logical, time_zone=zone, counts=counts)
    if name in ("int", "long"):
        if isinstance(logical, Enum) and logical.names is not None:
            parse_enum = enum_parser(logical.names)
            return Cell(number, "int64", lambda _: parse_enum)
        wire: Wire = "uint64" if isinstance(logical, (Bit, Set)) else "int64"
        return Cell(number, wire, lambda _: parse_other)
    if name == "UnsignedBigint":
        return Cell(number, "uint64", lambda _: parse_other)
    if name in ("float", "double"):
        parse_float = None if isinstance(logical, Float) else parse_other
        return Cell(number, "float64", lambda _: parse_float)
    if isinstance(logical, Binary):
        return Cell(number, "binary", lambda _: None) if name == "bytes" else None
    if isinstance(logical, (Text, Json, Unknown)):
        if name in ("string", "bytes", "Timestamp"):
            return Cell(number, "string", lambda _: str, mysql_text=True)
        return None
    if name not in ("string", "Timestamp"):
        return None
    if isinstance(logical, Timestamp):
        return Cell(
            number,
            "string",
            lambda location: timestamp_parser(zone_at(location, zone), counts),
            mysql_text=True,
            zone_of=lambda location: zone_at(location, zone),
        )
    parse_text = text_parser(logical, time_zone=zone, counts=counts)
    return Cell(number, "string", lambda _: parse_text, mysql_text=True)
