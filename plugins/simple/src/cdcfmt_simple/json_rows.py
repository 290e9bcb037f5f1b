"""``data`` and ``old`` of a JSON message: every value is text, but for TIMESTAMP's object.

Source: TiCDC's ``simple/message.go``, ``encodeValue``.  Binary values are base64; ENUM, SET
and BIT are numbers (names of ENUM and SET in TiCDC 7.6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Image, Op, TableSchema
from cdcfmt_core.mysql import InexactNumber, json_value_parser, text_parser
from cdcfmt_core.types import Binary, LogicalType, Timestamp, Unknown
from cdcfmt_core.wire_json import object_of, parse_base64
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.images import Row, wanted_columns
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.message import Wire
from cdcfmt_simple.plans import TablePlans

ParseValue: TypeAlias = Callable[[Any], Any]
Step: TypeAlias = tuple[str, ParseValue, ParseValue]
"""A column's name and its parsers, for text and for any other value but null."""


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

    def read(self, row: Mapping[str, Any], field: str) -> dict[str, Any]:
        """The values of an image; the error of a bad one names its path."""
        values: dict[str, Any] = {}
        steps = self._steps
        if row.keys() != self.names:
            steps = [step for step in steps if step[0] in row]
        name = ""
        value: Any = None
        try:
            for name, parse_text, parse_other in steps:
                value = row[name]
                if type(value) is str:
                    values[name] = parse_text(value)
                elif value is None:
                    values[name] = None
                else:
                    values[name] = parse_other(value)
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
        data, old = object_of(wire, "data"), object_of(wire, "old")
        if op == "insert":
            old = None
        elif op == "delete":
            data = None
        first = old if data is None else data
        if first is None:
            field = "old" if op == "delete" else "data"
            raise DecodeError(f"a row event has none ({wire['type']})", field=field)
        candidates = self._plans.find(database, table, version)
        plan = candidates.usual
        names: AbstractSet[str] = first.keys()
        if old is not None and old.keys() != names:
            names = names | old.keys()
        if plan is None or names != plan.names:
            plan = candidates.plan_for(frozenset(names))

        before: Image | None = None
        after: Image | None = None
        if data is not None:
            after = Image(plan.read(data, "data"), complete and len(data) == len(names))
        if old is not None and (
            op == "delete"
            or self._before_updates
            or any(old.get(name) != first.get(name) for name in plan.key_columns)
        ):
            before = Image(plan.read(old, "old"), complete and len(old) == len(names))
        mismatch = None
        if self._verifier is not None and complete and wire.get("checksum") is not None:
            mismatch = self._verifier.verify(wire, plan.schema, data, old)
        return Row(plan.schema, before, after, mismatch)


def _parsers_of(
    logical: LogicalType, schema: TableSchema, context: DecoderContext, zones: Zones
) -> tuple[ParseValue, ParseValue]:
    zone, counts = context.time_zone, context.counts
    parse_other = json_value_parser(logical, time_zone=zone, counts=counts)
    parse_text: ParseValue = text_parser(logical, time_zone=zone, counts=counts)
    if isinstance(logical, Binary):
        return parse_base64, parse_other
    if isinstance(logical, Unknown):
        return parse_text, parse_other
    database, table = schema.database, schema.table

    def parse_instant(value: Any) -> Any:
        if type(value) is not dict:
            return parse_other(value)
        location, text = value.get("location"), value.get("value")
        if type(location) is not str or type(text) is not str:
            raise ValueError("not an object of location and value")
        if isinstance(logical, Timestamp):
            return zones.parser(location, database, table)(text)
        # A type map may want something else than an instant.
        return parse_text(text)

    if isinstance(logical, Timestamp):
        return (lambda text: zones.parser("", database, table)(text)), parse_instant
    return parse_text, parse_instant
