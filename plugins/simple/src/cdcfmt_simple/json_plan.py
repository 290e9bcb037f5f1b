"""The values of a JSON message's images: every one is text, but for TIMESTAMP's object.

Source: TiCDC's ``simple/message.go``, ``encodeValue``.  Binary values are base64; ENUM, SET
and BIT are numbers (names of ENUM and SET in TiCDC 7.6).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.mysql import InexactNumber, json_value_parser, text_parser
from cdcfmt_core.toolkit.wire_json import parse_base64
from cdcfmt_core.types import Binary, Json, LogicalType, Text, Timestamp, Unknown
from cdcfmt_simple.images import OtherColumns, key_and_wanted
from cdcfmt_simple.instants import Zones

Values: TypeAlias = dict[str, Any]
ParseValue: TypeAlias = Callable[[Any], Any]
Step: TypeAlias = tuple[str, ParseValue | None, ParseValue]
"""A column's name and its parsers, for text (None: as it stands) and for other values."""


class JsonPlan:
    """How rows with these columns are read; values come in the table's order."""

    def __init__(self, schema: TableSchema, context: DecoderContext, zones: Zones) -> None:
        self.schema = schema
        self.names = frozenset(schema.column_names)
        self.key_columns, wanted = key_and_wanted(schema, context.projection)
        self._steps: list[Step] = [
            (column.name, *_parsers_of(column.type, schema, context, zones))
            for column in schema.columns
            if wanted is None or column.name in wanted
        ]
        self._size = len(schema.columns)
        self._reads_all = len(self._steps) == self._size

    def read(self, row: Values, field: str, *, some: bool = False) -> Values:
        """The values of an image; the error of a bad one names its path.

        ``some``: the image may lack columns.

        :raises OtherColumns: if its columns are not those of the plan.
        """
        steps = self._steps
        if some:
            steps = [step for step in steps if step[0] in row]
        # Where all are read, one that is missing is noticed below.
        elif len(row) != self._size or not (self._reads_all or row.keys() == self.names):
            raise OtherColumns
        values: Values = {}
        name = ""
        value: Any = None
        try:
            for name, parse_text, parse_other in steps:
                value = row[name]
                values[name] = _parse(value, parse_text, parse_other)
        except KeyError:
            raise OtherColumns from None
        except InexactNumber:
            raise
        except ValueError as error:
            raise DecodeError(str(error), field=f"{field}.{name}", sample=value) from error
        return values


def _parse(value: Any, parse_text: ParseValue | None, parse_other: ParseValue) -> Any:
    if type(value) is str:
        return value if parse_text is None else parse_text(value)
    return None if value is None else parse_other(value)


def _parsers_of(
    logical: LogicalType, schema: TableSchema, context: DecoderContext, zones: Zones
) -> tuple[ParseValue | None, ParseValue]:
    zone, counts = context.time_zone, context.counts
    parse_other = json_value_parser(logical, time_zone=zone, counts=counts)
    if isinstance(logical, (Text, Json)):
        return None, _located(parse_other, lambda _: str)
    if isinstance(logical, Unknown):
        return None, parse_other
    if isinstance(logical, Binary):
        return parse_base64, parse_other
    if isinstance(logical, Timestamp):
        open_parser = zones.opener(schema)
        return open_parser(""), _located(parse_other, open_parser)
    parse_text: ParseValue = text_parser(logical, time_zone=zone, counts=counts)
    # A type map may want something else of a TIMESTAMP than an instant.
    return parse_text, _located(parse_other, lambda _: parse_text)


def _located(parse_other: ParseValue, open_parser: Callable[[str], ParseValue]) -> ParseValue:
    """For ``{"location", "value"}``, and for what else is no text."""
    known: str | None = None
    parse_text: ParseValue = str

    def parse(value: Any) -> Any:
        nonlocal known, parse_text
        if type(value) is not dict:
            return parse_other(value)
        location, text = value.get("location"), value.get("value")
        if type(location) is not str or type(text) is not str:
            raise ValueError("not an object of location and value")
        if location != known:
            # It is the same one in every row.
            parse_text, known = open_parser(location), location
        return parse_text(text)

    return parse
