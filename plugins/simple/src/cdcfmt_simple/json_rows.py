"""``data`` and ``old`` of a JSON message: every value is text, but for TIMESTAMP's object.

Source: TiCDC's ``simple/message.go``, ``encodeValue``.  Binary values are base64; ENUM, SET
and BIT are numbers (names of ENUM and SET in TiCDC 7.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, TableSchema
from cdcfmt_core.mysql import InexactNumber, json_value_parser, text_parser
from cdcfmt_core.types import Binary, Json, LogicalType, Text, Timestamp, Unknown
from cdcfmt_core.wire_json import parse_base64
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import OtherColumns, Row, wanted_columns
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.message import Wire
from cdcfmt_simple.plans import TablePlans

ParseValue: TypeAlias = Callable[[Any], Any]
Step: TypeAlias = tuple[str, ParseValue | None, ParseValue]
"""A column's name and its parsers, for text (None: as it stands) and for other values."""

_NOTHING: Mapping[str, Any] = {}


class JsonPlan:
    """How rows with these columns are read; values come in the table's order."""

    def __init__(self, schema: TableSchema, context: DecoderContext, zones: Zones) -> None:
        self.schema = schema
        self.names = frozenset(schema.column_names)
        wanted = wanted_columns(schema, context.projection)
        self.key_columns = context.projection.key_columns or schema.key_columns
        self._steps: list[Step] = [
            (column.name, *_parsers_of(column.type, schema, context, zones))
            for column in schema.columns
            if wanted is None or column.name in wanted
        ]
        self._size = len(schema.columns)
        self._reads_all = len(self._steps) == self._size

    def read(
        self,
        row: Mapping[str, Any],
        field: str,
        *,
        some: bool = False,
        other: Mapping[str, Any] = _NOTHING,
        of_other: Mapping[str, Any] = _NOTHING,
    ) -> dict[str, Any]:
        """The values of an image; the error of a bad one names its path.

        ``some``: the image may lack columns.  ``other`` is the other image of the row and
        ``of_other`` its values: what is the same text is the same value.

        :raises OtherColumns: if its columns are not those of the plan.
        """
        values: dict[str, Any] = {}
        steps = self._steps
        if some:
            steps = [step for step in steps if step[0] in row]
        # Where all are read, one that is missing is noticed below.
        elif len(row) != self._size or not (self._reads_all or row.keys() == self.names):
            raise OtherColumns
        name = ""
        value: Any = None
        try:
            if other:
                changed = []
                for step in steps:
                    name = step[0]
                    value = row[name]
                    if type(value) is str and other[name] == value:
                        values[name] = of_other[name]
                    else:
                        # Its place; the value comes below.
                        values[name] = None
                        changed.append(step)
                steps = changed
            for name, parse_text, parse_other in steps:
                value = row[name]
                if type(value) is str:
                    values[name] = value if parse_text is None else parse_text(value)
                elif value is None:
                    values[name] = None
                else:
                    values[name] = parse_other(value)
        except KeyError:
            raise OtherColumns from None
        except InexactNumber:
            raise
        except ValueError as error:
            raise DecodeError(str(error), field=f"{field}.{name}", sample=value) from error
        return values


class JsonRows:
    """Reads the rows of JSON messages."""

    def __init__(self, context: DecoderContext, zones: Zones, verifier: Verifier | None) -> None:
        self._before_updates = context.projection.before_updates
        self._verifier = verifier
        self._plans = TablePlans(context, lambda schema: JsonPlan(schema, context, zones))

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
            raise DecodeError(f"a row event has none ({wire['type']})", field=field)
        if type(first) is not dict or not (old is None or type(old) is dict):
            field, value = (field, first) if type(first) is not dict else ("old", old)
            raise DecodeError("is not an object", field=field, sample=value)
        candidates = self._plans.find(database, table, version)
        plan = candidates.usual
        try:
            if plan is None:
                raise OtherColumns
            before, after = self._read_images(plan, data, old, complete)
        except OtherColumns:
            plan = candidates.plan_for(frozenset(data or ()) | frozenset(old or ()))
            before, after = self._read_images(plan, data, old, complete, some=True)
        mismatch = None
        if self._verifier is not None and complete and wire.get("checksum") is not None:
            mismatch = self._verifier.verify(wire, plan.schema, data, old)
        return Row(plan.schema, before, after, mismatch)

    def _read_images(
        self,
        plan: JsonPlan,
        data: dict[str, Any] | None,
        old: dict[str, Any] | None,
        complete: bool,
        *,
        some: bool = False,
    ) -> tuple[Image | None, Image | None]:
        before: Image | None = None
        after: Image | None = None
        size = len(plan.names)
        if data is not None:
            after = Image(plan.read(data, "data", some=some), complete and len(data) == size)
        if old is not None and (
            data is None
            or self._before_updates
            or any(old.get(name) != data.get(name) for name in plan.key_columns)
        ):
            # Few columns of an update change.
            same = (
                {}
                if some or data is None or after is None
                else {"other": data, "of_other": after.values}
            )
            before = Image(plan.read(old, "old", some=some, **same), complete and len(old) == size)
        return before, after


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
