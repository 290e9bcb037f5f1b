"""Reference decoder: CloudCanal Json messages to events.

Source: CloudCanal "MQ message formats", CloudCanal Json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from cdcfmt_cloudcanal_json.message import (
    DDL,
    KNOWN_FIELDS,
    OP_OF_ACTION,
    ROW_DATA,
    STATUS_OF_ENTRY_TYPE,
)
from cdcfmt_cloudcanal_json.plans import Table, TablePlans
from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Image,
    Message,
    Op,
    SchemaChange,
    TableSchema,
    Transaction,
)
from cdcfmt_mysql.ddl import DDL_TYPES, ddl_type_on
from cdcfmt_toolkit.flat_rows import FlatRows, Images, Row
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.json_messages import JsonMessages
from cdcfmt_toolkit.table_changes import readable, row_types, schema_from_table_changes
from cdcfmt_toolkit.wire_json import list_of, milliseconds_of, names_of, object_of, text_of


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it caches the table schemas that it has seen."""
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._filter, self._counts = context.event_filter, context.counts
        self._json = JsonMessages(orjson.loads, context)
        self._plans = TablePlans(options, context)

    def decode(self, message: Message) -> list[Event]:
        value = message.value
        if value is None:
            return []
        return self._json.read(value, self._events)

    def _events(self, wire: Any) -> list[Event]:
        if type(wire) is not dict:
            raise DecodeError("not a JSON object", sample=wire)
        if not KNOWN_FIELDS & wire.keys():
            raise DecodeError("has no field of CloudCanal Json")
        action = text_of(wire, "action").upper()
        entry_type = text_of(wire, "entryType").upper()
        if _is_ddl(wire, action, entry_type):
            return [self._schema_change(wire, action)]
        op = OP_OF_ACTION.get(action)
        if op is not None and entry_type in ("", ROW_DATA):
            return self._rows(wire, op)
        if entry_type in ("", ROW_DATA):
            raise DecodeError("is not an action of CloudCanal Json", field="action", sample=action)
        if list_of(wire, "data") or list_of(wire, "before"):
            raise DecodeError("has rows", field="entryType", sample=entry_type)
        return [_border(wire, entry_type)]

    def _schema_change(self, wire: Mapping[str, Any], action: str) -> SchemaChange:
        query = text_of(wire, "sql")
        changes = wire.get("tableChanges")
        table = _table_of(wire)
        extra = _extra_of(wire) or {}
        word = ddl_type_on(action, query)
        if action and word != action:
            extra["ddl_type"] = wire["action"]
        names, resolve = (table.database, table.table), self._plans.resolver(table)

        def read() -> TableSchema | None:
            return schema_from_table_changes(changes, *names, resolve, table.schema)

        table_schema = readable(read, extra, self._counts)
        return SchemaChange(
            query=query,
            ddl_type=word,
            database=table.database,
            table=table.table,
            schema=table.schema,
            table_schema=table_schema,
            source_time=milliseconds_of(wire, "execTs"),
            emit_time=milliseconds_of(wire, "sendTs"),
            extra=extra or None,
        )

    def _rows(self, wire: Mapping[str, Any], op: Op) -> list[Event]:
        table = _table_of(wire)
        if not self._filter.wants("row", table.database, table.table, table.schema, op):
            return []
        if self._filter.has_source_times:
            source_time = milliseconds_of(wire, "execTs")
            if not self._filter.wants_source_time("row", None, source_time):
                return []
        if not table.table:
            raise DecodeError("a required field of a row event is missing", field="table")
        data, before = list_of(wire, "data"), list_of(wire, "before")
        field = "data"
        if op == "delete" and not data:
            # CloudCanal does not document which field has a deleted row.
            field, data = "before", before
        db_types, jdbc_types = object_of(wire, "dbValType"), object_of(wire, "jdbcType")
        pks = tuple(names_of(wire, "pks") or ())

        def read(row: Row, path: str, old: Row | None, old_path: str) -> Images:
            types = row_types(row | (old or {}), db_types, jdbc_types)
            plan = self._plans.find(table, types, pks)
            image = Image(read_image(row, plan.readers, path))
            if op == "delete":
                return plan.schema, image, None
            old_image = None
            if old is not None and plan.reads_before(old, row):
                values = read_image(old, plan.readers, old_path)
                old_image = Image(values, complete=row.keys() <= old.keys())
            return plan.schema, old_image, image

        olds = before if op == "update" else None
        return FlatRows(op, wire["action"], field, data, "before", olds).decode(
            read,
            source_time=milliseconds_of(wire, "execTs"),
            emit_time=milliseconds_of(wire, "sendTs"),
            extra=_extra_of(wire, is_row=True),
        )


def _is_ddl(wire: Mapping[str, Any], action: str, entry_type: str) -> bool:
    for field in ("isDdl", "ddl"):
        if wire.get(field) not in (True, False, None):
            raise DecodeError("is not true or false", field=field, sample=wire[field])
    if wire.get("isDdl") or wire.get("ddl"):
        return True
    return DDL in (action, entry_type) or (
        action in DDL_TYPES and bool(wire.get("sql") or wire.get("tableChanges"))
    )


def _border(wire: Mapping[str, Any], entry_type: str) -> Event:
    extra = _extra_of(wire)
    source_time = milliseconds_of(wire, "execTs")
    emit_time = milliseconds_of(wire, "sendTs")
    status = STATUS_OF_ENTRY_TYPE.get(entry_type)
    if status is None:
        return Heartbeat(source_time=source_time, emit_time=emit_time, extra=extra)
    return Transaction(status, source_time=source_time, emit_time=emit_time, extra=extra)


def _table_of(wire: Mapping[str, Any]) -> Table:
    database, schema = text_of(wire, "db"), text_of(wire, "schema")
    # For MySQL, which has no schemas, CloudCanal repeats the database.
    return Table(database, schema if schema not in ("", database) else None, text_of(wire, "table"))


def _extra_of(wire: Mapping[str, Any], is_row: bool = False) -> dict[str, Any] | None:
    extra: dict[str, Any] = {}
    if wire.get("bid") is not None:
        extra["bid"] = wire["bid"]
    if wire.get("entryType") not in (None, "", ROW_DATA):
        extra["entry_type"] = wire["entryType"]
    if is_row and wire.get("sql"):
        extra["sql"] = wire["sql"]
    extra.update((name, wire[name]) for name in wire if name not in KNOWN_FIELDS)
    return extra or None
