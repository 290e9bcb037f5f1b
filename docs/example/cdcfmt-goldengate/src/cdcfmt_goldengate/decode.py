"""GoldenGate's messages to events.

Source: Oracle GoldenGate for Distributed Applications and Analytics, "Pluggable Formatters",
operation modeled JSON; real messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError, OptionError
from cdcfmt_core.events import Column, Event, Image, Message, Op, RowChange, TableSchema
from cdcfmt_core.types import Unknown
from cdcfmt_toolkit.encodings import Encoding, Encodings
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.plans import Plans, TablePlan, encoded_plan
from cdcfmt_toolkit.wire_json import (
    instant_of,
    loads_exact,
    loads_object,
    names_of,
    object_of,
    text_of,
)

Wire = Mapping[str, Any]
Types = Mapping[str, Mapping[str, str]]
"""Types of columns by table and column, as :data:`options.OPTIONS` has them."""

OPS: Final[Mapping[str, Op]] = {"I": "insert", "U": "update", "D": "delete", "T": "truncate"}
TAKEN: Final = frozenset({"table", "op_type", "op_ts", "primary_keys", "before", "after"})
"""Members that have a field in events."""
_COLUMN_BYTES: Final = 400


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._types = types_of(options["columnTypes"])
        self._complete = options["completeUpdates"]
        self._tables = Plans(self._make_table, _COLUMN_BYTES)

    def decode(self, message: Message) -> list[Event]:
        if message.value is None:
            return []
        wire = loads_object(message.value)
        op_type = text_of(wire, "op_type")
        if op_type not in OPS:
            raise DecodeError("is not an operation of GoldenGate", field="op_type", sample=op_type)
        op, name = OPS[op_type], text_of(wire, "table")
        database, schema, table = place_of(name)
        if not self._context.event_filter.wants("row", database, table, schema, op, None):
            return []
        # GoldenGate's clock of op_ts is UTC (goldengate.userexit.timestamp=utc, its default).
        time = instant_of(wire, "op_ts", assume_utc=True)
        if not self._context.event_filter.wants_source_time("row", None, time):
            return []
        after, before = object_of(wire, "after") or {}, object_of(wire, "before") or {}
        keys = tuple(names_of(wire, "primary_keys") or ())
        plan = self._tables.find(name, tuple({**after, **before}), keys)
        # Without types, the columns of a table are those of the message.
        whole = len(plan.schema.columns) if self._types.get(name) else None
        images = self._images(op, before, after, plan, whole)
        extra = {name: wire[name] for name in wire if name not in TAKEN} or None
        return [RowChange(op, plan.schema, *images, source_time=time, extra=extra)]

    def _images(
        self, op: Op, before: Wire, after: Wire, table: TablePlan, whole: int | None
    ) -> tuple[Image | None, Image | None]:
        """The images of a row; ``whole``: the number of columns of the table, if known."""

        def image(row: Wire, path: str, complete: bool) -> Image:
            values = read_image(row, table.readers, path)
            return Image(values, complete=complete or len(row) == whole)

        if op == "truncate":
            return None, None
        needed, row = ("before", before) if op == "delete" else ("after", after)
        if not row:
            raise DecodeError("a required field of a row is missing", field=needed)
        old = new = None
        if op == "delete" or (op == "update" and before and table.reads_before(before, after)):
            old = image(before, "before", self._complete)
        if op != "delete":
            new = image(after, "after", op == "insert" or self._complete)
        return old, new

    def _make_table(self, name: str, names: tuple[str, ...], keys: tuple[str, ...]) -> TablePlan:
        types = self._types.get(name, {})
        columns = tuple(
            self._column(column, types.get(column), key=column in keys)
            for column in dict.fromkeys((*types, *names))
        )
        database, schema, table = place_of(name)
        whole = TableSchema(database, table, columns, keys, schema=schema)
        self._context.note_zoneless_timestamps(whole)
        return encoded_plan(whole, self._context, encodings_of(whole))

    def _column(self, name: str, type_text: str | None, *, key: bool) -> Column:
        if type_text is None:
            return Column(name, "", Unknown(), key=key)
        return Column(name, type_text, self._context.resolve_type(type_text), key=key)


def encodings_of(table: TableSchema) -> Encodings:
    """Texts are the type map's; a column without a type keeps its JSON value."""
    return {
        column.name: Encoding("dialect-text" if column.source_type else "json-value")
        for column in table.columns
    }


def place_of(name: str) -> tuple[str, str | None, str]:
    """Database, schema and table of ``SCHEMA.TABLE`` or ``CONTAINER.SCHEMA.TABLE``."""
    parts = name.split(".")
    if len(parts) == 3 and all(parts):
        return parts[0], parts[1], parts[2]
    if len(parts) == 2 and all(parts):
        return parts[0], None, parts[1]
    raise DecodeError("is not SCHEMA.TABLE or CONTAINER.SCHEMA.TABLE", field="table", sample=name)


def types_of(text: str | None) -> Types:
    """The types of the option ``columnTypes``.

    :raises OptionError: for other JSON.
    """
    try:
        found = {} if text is None else loads_exact(text.encode())
    except DecodeError as error:
        raise OptionError(f"option columnTypes is not JSON: {error}") from None
    texts = type(found) is dict and all(
        type(types) is dict and all(type(each) is str for each in types.values())
        for types in found.values()
    )
    if not texts:
        raise OptionError('option columnTypes is not an object of tables, {"SHOP.T": {"ID": "…"}}')
    return found
