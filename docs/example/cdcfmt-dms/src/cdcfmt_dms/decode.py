"""DMS messages to events.

Source: https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.Kafka.html, real messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError, MissingSchemaError
from cdcfmt_core.events import (
    DdlType,
    Event,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
)
from cdcfmt_core.schemas.versions import Position
from cdcfmt_dms.schemas import encodings_of, metadata_of, place_of, schema_of, time_of
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.plans import Plans, TablePlan, encoded_plan
from cdcfmt_toolkit.wire_json import instant_of, loads_exact, object_of, text_of

Wire = Mapping[str, Any]

OPS: Final[Mapping[str, Op]] = {
    "load": "read",
    "insert": "insert",
    "update": "update",
    "delete": "delete",
}
DDL_TYPES: Final[Mapping[str, DdlType]] = {
    "create-table": "CREATE",
    "drop-table": "ERASE",
    "rename-table": "RENAME",
    "add-column": "ALTER",
    "drop-column": "ALTER",
    "rename-column": "ALTER",
    "change-columns": "ALTER",
    "column-type-change": "ALTER",
}
TAKEN: Final = frozenset(
    {"timestamp", "record-type", "operation", "schema-name", "table-name", "commit-timestamp"}
)
"""Members of `metadata` that have a field in events."""
_TABLE: Final = "metadata.table-name"
_COLUMN_BYTES: Final = 400


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._before = options["beforeImageField"]
        self._absent_is_null = options["absentIsNull"]
        self._tables = Plans(self._make_table, _COLUMN_BYTES)

    def decode(self, message: Message) -> list[Event]:
        if message.value is None:
            return []
        wire = loads_exact(message.value)
        metadata = metadata_of(wire, message.value)
        record_type = text_of(metadata, "record-type", "metadata.")
        if record_type == "control":
            return [self._control(wire, metadata)]
        if record_type == "data":
            return self._row(wire, metadata)
        raise DecodeError(
            "is neither data nor control", field="metadata.record-type", sample=record_type
        )

    # Control records

    def _control(self, wire: Wire, metadata: Wire) -> Event:
        control = object_of(wire, "control") or {}
        record = schema_of(control, metadata)
        self._context.schemas.add(record)
        table = record.table if record.table.columns else None
        operation = text_of(metadata, "operation", "metadata.")
        extra = extra_of(wire, metadata, "control") | {"ddl_type": operation}
        more = {name: value for name, value in control.items() if name != "table-def"}
        if more:
            extra["control"] = more
        times = times_of(metadata)
        if operation == "create-table" and table is not None:
            # DMS also sends it whenever a task starts.
            return TableSchemaEvent(table, **times, extra=extra)
        return SchemaChange(
            "",
            DDL_TYPES.get(operation, "QUERY"),
            *place_of(metadata),
            table_schema=table,
            **times,
            extra=extra,
        )

    # Rows

    def _row(self, wire: Wire, metadata: Wire) -> list[Event]:
        operation = text_of(metadata, "operation", "metadata.")
        if operation not in OPS:
            raise DecodeError(
                "is not an operation of DMS", field="metadata.operation", sample=operation
            )
        op, place = OPS[operation], place_of(metadata)
        if not self._context.event_filter.wants("row", *place, None, op, None):
            return []  # Skipped without decoding, as in the kernel.
        times = times_of(metadata)
        if not self._context.event_filter.wants_source_time("row", None, times["source_time"]):
            return []
        data, before = object_of(wire, "data"), object_of(wire, self._before)
        if not data:
            raise DecodeError("a required field of a row is missing", field="data")
        table = self._table(place, (time_of(metadata),), {*data, *(before or ())})
        old = new = None
        if op == "delete":
            old = deleted_image(data, table)
        else:
            new = self._image(data, table)
        if op == "update" and before and table.reads_before(before, data):
            old = image(before, table, self._before)
        extra = extra_of(wire, metadata, "data", self._before) or None
        return [RowChange(op, table.schema, old, new, **times, extra=extra)]

    def _table(self, place: tuple[str, str], position: Position, names: set[str]) -> TablePlan:
        """The table with the newest schema before a row.

        :raises MissingSchemaError: if there is none, or it lacks columns of the row.
        """
        schema = self._context.schemas.find(*place, position)
        if schema is None or not names <= set(schema.column_names):
            reason = (
                f"no control record before it has the columns of {'.'.join(filter(None, place))}: "
                "the endpoint needs IncludeControlDetails, and IncludeTableAlterOperations"
            )
            raise MissingSchemaError(*place, position, exact=False, reason=reason, field=_TABLE)
        return self._tables.find(schema)

    def _make_table(self, schema: TableSchema) -> TablePlan:
        return encoded_plan(schema, self._context, encodings_of(schema))

    def _image(self, data: Wire, table: TablePlan) -> Image:
        new = image(data, table, "data")
        if self._absent_is_null and not new.complete:
            return Image({name: new.values.get(name) for name in table.readers})
        return new


def image(row: Wire, table: TablePlan, path: str) -> Image:
    """The image of a row; columns that the message lacks are absent."""
    values = read_image(row, table.readers, path)
    return Image(values, complete=len(row) == len(table.schema.columns))


def deleted_image(data: Wire, table: TablePlan) -> Image:
    """The image of a deleted row; DMS writes null for values that the source's log lacks."""
    keys = table.schema.key_columns
    return image(
        {name: value for name, value in data.items() if value is not None or name in keys},
        table,
        "data",
    )


def times_of(metadata: Wire) -> dict[str, Any]:
    """Commit time of the source (if the endpoint sends transactions), and time of the message."""
    return {
        "source_time": instant_of(metadata, "commit-timestamp", "metadata."),
        "emit_time": time_of(metadata),
    }


def extra_of(wire: Wire, metadata: Wire, *taken: str) -> dict[str, Any]:
    """Data that has no field in an event."""
    more = {name: wire[name] for name in wire if name not in ("metadata", *taken)}
    return {name: metadata[name] for name in metadata if name not in TAKEN} | more
