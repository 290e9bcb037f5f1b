"""Layouts of rows in records, for the compiled kernel.

A column's type is that of its values, so its encoding is for the branch of that type.  The
reference decodes rows with another branch, and learns the new type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cdcfmt_core import types
from cdcfmt_core.events import Column
from cdcfmt_core.types import LogicalType
from cdcfmt_dts_avro.charsets import BINARY, codec_of
from cdcfmt_dts_avro.message import EARLIEST_BORN, OP_OF_OPERATION, SECONDS_LIMIT
from cdcfmt_dts_avro.plans import PK_TAG
from cdcfmt_dts_avro.record import ENVELOPE
from cdcfmt_dts_avro.types import overruled_number
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.layout import Avro, Extra, Layout
from cdcfmt_toolkit.wire_avro import record_schema

_LAST_MILLISECOND: Final = 253_402_300_799_999
_DATE_FLAGS: Final = [overruled_number("mysql", number, types.DateTime()) for number in (10, 14)]
_TEXT_KINDS: Final = ("enum", "set", "text", "uuid", "xml")


_PART: Final = ["null", "int"]
_VALUE: Final[list[Any]] = [
    "null",
    record_schema("Integer", precision="int", value="string"),
    record_schema("Character", charset="string", value="bytes"),
    record_schema("Decimal", value="string", precision="int", scale="int"),
    record_schema("Float", value="double", precision="int", scale="int"),
    record_schema("Timestamp", timestamp="long", millis="int"),
    record_schema(
        "DateTime",
        **dict.fromkeys(("year", "month", "day", "hour", "minute", "second", "millis"), _PART),
    ),
    record_schema("TimestampWithTimeZone", value="DateTime", timezone="string"),
    record_schema("BinaryGeometry", type="string", value="bytes"),
    record_schema("TextGeometry", type="string", value="string"),
    record_schema("BinaryObject", type="string", value="bytes"),
    record_schema("TextObject", type="string", value="string"),
    {"type": "enum", "name": "EmptyObject", "symbols": ("NULL", "NONE")},
]
# A named type is defined only once.
_NAMES: Final = ["null", *(each["name"] for each in _VALUE[1:])]
_FIELD: Final = record_schema("Field", name="string", dataTypeNumber="int")
_ROWS: Final = record_schema(
    "",
    fields=["null", "string", {"type": "array", "items": _FIELD}],
    beforeImages=["null", "string", {"type": "array", "items": _VALUE}],
    afterImages=["null", "string", {"type": "array", "items": _NAMES}],
    bornTimestamp="long",
)
_RECORD: Final = {**ENVELOPE.schema, "fields": ENVELOPE.schema["fields"] + _ROWS["fields"]}

_EXTRA: Final[dict[tuple[str, ...], Extra]] = {
    ("id",): Extra("id", ()),
    ("version",): Extra("version", (0,)),
    ("sourcePosition",): Extra("source_position", ("",)),
    ("safeSourcePosition",): Extra("safe_source_position", ("",)),
    ("sourceTxid",): Extra("transaction_id", ("",)),
    ("source", "sourceType"): Extra("source_type", ()),
    ("source", "version"): Extra("source_version", ("",)),
    ("processTimestamps",): Extra("process_timestamps", (None, ())),
    ("tags",): Extra("tags", ({},)),
    ("bornTimestamp",): Extra("born_timestamp", ()),
}


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """Two layouts: times are seconds, or milliseconds for some sources."""
    return [
        _layout((0, SECONDS_LIMIT - 1, 1_000_000)),
        _layout((SECONDS_LIMIT, _LAST_MILLISECOND, 1_000)),
    ]


def _layout(times: tuple[int, int, int]) -> Layout:
    return Layout(
        members={
            "version": "extra",
            "id": "extra",
            "sourceTimestamp": "source_time",
            "sourcePosition": "extra",
            "safeSourcePosition": "extra",
            "sourceTxid": "extra",
            "source": {"sourceType": "same", "version": "extra"},
            "operation": "op",
            "objectName": "object_name",
            "processTimestamps": "extra",
            "tags": "extra",
            "fields": "same",
            "beforeImages": "before",
            "afterImages": "after",
            "bornTimestamp": "extra",
        },
        ops=OP_OF_OPERATION,
        times=times,
        encodings=lambda _, table: {column.name: _encoding(column) for column in table.columns},
        extra=lambda _: _EXTRA,
        avro=Avro(
            _RECORD,
            values=dict.fromkeys(
                ("Integer", "Character", "Decimal", "Float", "BinaryObject", "TextObject"), "value"
            ),
            null="NULL",
            optional=("bornTimestamp",),
            least={"bornTimestamp": EARLIEST_BORN},
            key_names={"tags": (PK_TAG,)},
        ),
        reads_before=True,
        reads_all=True,
        repeats_database=True,
    )


_OTHER: Final = Encoding("other")
_INTEGER: Final = Encoding("mysql-text", branches={"Integer": {}})
_PARTS: Final = Encoding("calendar-parts", branches={"DateTime": {}})
_OF_TYPE: Final[dict[type[LogicalType], Encoding]] = {
    types.Int: _INTEGER,
    types.Bit: _INTEGER,
    types.Bool: _INTEGER,
    types.Float: Encoding("json-number", branches={"Float": {}}),
    types.Binary: Encoding(
        "mysql-text", branches={"BinaryObject": {}, "Character": {"charset": tuple(sorted(BINARY))}}
    ),
    types.Timestamp: Encoding("epoch-pair", branches={"Timestamp": {}}),
    types.Year: Encoding("calendar-parts", branches={"DateTime": {}, "Integer": {}}),
    types.Date: _PARTS,
    types.DateTime: _PARTS,
    types.Time: _PARTS,
    types.Json: Encoding("text", branches={"TextObject": {"type": ("json",)}}),
}


def _encoding(column: Column) -> Encoding:
    logical = column.type
    if isinstance(logical, types.Decimal):
        return _decimal(logical, column.source_type)
    if isinstance(logical, types.Text):
        return _text(logical)
    is_date = column.source_type == "date" or column.flags in _DATE_FLAGS
    if isinstance(logical, types.DateTime) and is_date:
        # The kernel would read midnight as a date.
        return _OTHER
    return _OF_TYPE.get(type(logical), _OTHER)


def _decimal(logical: types.Decimal, source_type: str) -> Encoding:
    if (logical.precision is None and logical.scale == 0) or source_type == "bigint":
        return Encoding("integer-text", branches={"Integer": {}})
    if logical.precision is None or logical.scale is None:
        return Encoding("other")
    beside = {"precision": (logical.precision,), "scale": (logical.scale,)}
    return Encoding("mysql-text", branches={"Decimal": beside})


def _text(logical: types.Text) -> Encoding:
    if not logical.charset:
        return Encoding("text", branches={"TextObject": {"type": _TEXT_KINDS}})
    codec = codec_of(logical.charset)
    branches = {"Character": {"charset": (logical.charset,)}}
    if codec == "utf_8":
        return Encoding("text", branches=branches)
    if codec is None or codec.startswith("utf_"):
        return Encoding("other")
    return Encoding("charset-text", charset=codec, branches=branches)
