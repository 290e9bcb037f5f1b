"""Decoder of ``data`` and ``old`` of JSON messages.

Values are text, except for TIMESTAMP objects.  Source: TiCDC's ``simple/message.go``,
``encodeValue``.  Binary values are base64; ENUM, SET and BIT are numbers (names of ENUM and SET in
TiCDC 7.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from cdcfmt_core import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.types import Binary, Timestamp, Unknown
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.rows import WireRows
from cdcfmt_toolkit.dialects import column_reader
from cdcfmt_toolkit.encodings import Encoding, bounded
from cdcfmt_toolkit.images import ReadValue, read_image


def _reader(
    column: Column, schema: TableSchema, context: DecoderContext, zones: Zones
) -> ReadValue:
    if isinstance(column.type, Binary):
        return column_reader(bounded(Encoding("base64"), column), column, context)
    read = column_reader(Encoding("mysql-json"), column, context)
    if isinstance(column.type, Unknown):
        return read
    if isinstance(column.type, Timestamp):
        open_parser = zones.opener(schema, column)
        return _located(read, open_parser(""), open_parser)
    # A type map may read a TIMESTAMP as another type than an instant.
    return _located(read, read, lambda _: read)


def _located(
    read: ReadValue, read_text: ReadValue, open_parser: Callable[[str], ReadValue]
) -> ReadValue:
    """A reader of text, ``{"location", "value"}``, and other JSON values."""
    known: str | None = None
    of_location: ReadValue = str

    def read_any(value: Any) -> Any:
        nonlocal known, of_location
        if type(value) is str:
            return read_text(value)
        if type(value) is not dict:
            return read(value)
        location, text = value.get("location"), value.get("value")
        if type(location) is not str or type(text) is not str:
            raise ValueError("not an object of location and value")
        if location != known:
            # Usually, every row has the same location.
            of_location, known = open_parser(location), location
        return of_location(text)

    return read_any


JSON_ROWS: Final = WireRows(_reader, read_image, lambda image: image, column_bytes=1_000)
