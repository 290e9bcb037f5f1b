"""Decoder of ``data`` and ``old`` of JSON messages.

Values are text, except for TIMESTAMP objects.  Source: TiCDC's ``simple/message.go``,
``encodeValue``.  Binary values are base64; ENUM, SET and BIT are numbers (names of ENUM and SET in
TiCDC 7.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, TableSchema
from cdcfmt_core.mysql import json_value_parser
from cdcfmt_core.toolkit.images import ReadValue, read_image
from cdcfmt_core.toolkit.wire_json import parse_base64
from cdcfmt_core.types import Binary, LogicalType, Timestamp, Unknown
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import Row, WireImage, wanted_old
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.message import Wire
from cdcfmt_simple.plans import TablePlans


class JsonPlan:
    """Readers for rows with these columns; values are in the table's order."""

    def __init__(self, schema: TableSchema, context: DecoderContext, zones: Zones) -> None:
        self.schema = schema
        self.key_columns, wanted = context.projection.of(schema)
        self._readers: dict[str, ReadValue] = {
            column.name: _reader(column.type, schema, context, zones)
            for column in schema.columns
            if column.name in wanted
        }

    def read(self, row: WireImage, field: str, *, complete: bool) -> Image | None:
        """An image, which may lack columns.

        :raises DecodeError: for an invalid value; ``field`` is the path of the image.
        """
        if row is None:
            return None
        ordered = {name: row[name] for name in self._readers if name in row}
        values = read_image(ordered, self._readers, field)
        return Image(values, complete and len(row) == len(self.schema.columns))


def _reader(
    logical: LogicalType, schema: TableSchema, context: DecoderContext, zones: Zones
) -> ReadValue:
    zone, counts = context.time_zone, context.counts
    read = json_value_parser(logical, time_zone=zone, counts=counts)
    if isinstance(logical, Unknown):
        return read
    if isinstance(logical, Binary):
        return lambda value: parse_base64(value) if type(value) is str else read(value)
    if isinstance(logical, Timestamp):
        open_parser = zones.opener(schema)
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


class JsonRows:
    """Decodes the rows of JSON messages."""

    def __init__(self, context: DecoderContext, zones: Zones, verifier: Verifier | None) -> None:
        self._before_updates = context.projection.before_updates
        self._verifier = verifier
        self._plans = TablePlans(context, lambda schema: JsonPlan(schema, context, zones), 1_000)

    def read(
        self, wire: Wire, op: Op, database: str, table: str, version: int, *, complete: bool
    ) -> Row:
        """The images of a row.

        :raises MissingSchemaError: if its table's schema is not known.
        """
        data, old = wire.get("data"), wire.get("old")
        if op == "insert":
            old = None
        elif op == "delete":
            data = None
        field, first = ("old", old) if op == "delete" else ("data", data)
        if first is None:
            raise DecodeError(
                f"a required field of a row event is missing ({wire['type']})", field=field
            )
        if type(first) is not dict or not (old is None or type(old) is dict):
            field, value = (field, first) if type(first) is not dict else ("old", old)
            raise DecodeError("is not an object", field=field, sample=value)
        plan = self._plans.find(database, table, version, frozenset(first))
        read = wanted_old(data, old, plan.key_columns, before_updates=self._before_updates)
        if read is not None and data is not None and not read.keys() <= data.keys():
            plan = self._plans.find(database, table, version, frozenset(data | read))
        after = plan.read(data, "data", complete=complete)
        before = plan.read(read, "old", complete=complete)
        mismatch = None
        if self._verifier is not None and complete and wire.get("checksum") is not None:
            mismatch = self._verifier.verify(wire, plan.schema, data, old)
        return plan.schema, before, after, mismatch
