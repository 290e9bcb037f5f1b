"""CloudCanal Json messages to events: the exact reference decoder.

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
from cdcfmt_cloudcanal_json.plans import ParseValue, Table, TablePlans
from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Heartbeat,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    Transaction,
)
from cdcfmt_core.mysql import InexactNumber
from cdcfmt_core.mysql.ddl import DDL_TYPES, ddl_type_of
from cdcfmt_core.toolkit.json_size import check_values
from cdcfmt_core.toolkit.table_changes import schema_from_table_changes
from cdcfmt_core.toolkit.wire_json import (
    list_of,
    loads_exact,
    milliseconds_of,
    names_of,
    object_of,
    text_of,
)


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it keeps the table schemas that it has seen."""
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._filter = context.event_filter
        self._max_message_bytes = context.max_message_bytes
        self._before_updates = context.projection.before_updates
        self._plans = TablePlans(options, context)

    def decode(self, message: Message) -> list[Event]:
        value = message.value
        if value is None:
            return []
        if not value:
            raise DecodeError("the value is empty")
        check_values(value, self._max_message_bytes)
        try:
            wire = orjson.loads(value)
        except orjson.JSONDecodeError:
            wire = loads_exact(value)
        try:
            return self._events(wire)
        except InexactNumber:
            return self._events(loads_exact(value))

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
            raise DecodeError("is no action of CloudCanal Json", field="action", sample=action)
        if list_of(wire, "data") or list_of(wire, "before"):
            raise DecodeError("has rows", field="entryType", sample=entry_type)
        return [_border(wire, entry_type)]

    def _schema_change(self, wire: Mapping[str, Any], action: str) -> SchemaChange:
        query = text_of(wire, "sql")
        changes = wire.get("tableChanges")
        table = _table_of(wire)
        extra = _extra_of(wire) or {}
        word = action
        if word not in DDL_TYPES:
            if action:
                extra["ddl_type"] = wire["action"]
            word = ddl_type_of(query)
        return SchemaChange(
            query=query,
            ddl_type=word,  # type: ignore[arg-type]
            database=table.database,
            table=table.table,
            schema=table.schema,
            table_schema=schema_from_table_changes(
                changes, table.database, table.table, self._plans.resolver(table), table.schema
            ),
            source_time=milliseconds_of(wire, "execTs"),
            emit_time=milliseconds_of(wire, "sendTs"),
            extra=extra or None,
        )

    def _rows(self, wire: Mapping[str, Any], op: Op) -> list[Event]:
        table = _table_of(wire)
        if not self._filter.wants("row", table.database, table.table, table.schema, op):
            return []
        if not table.table:
            raise DecodeError("a required field of a row event is missing", field="table")
        data, before = list_of(wire, "data"), list_of(wire, "before")
        field = "data"
        if op == "delete" and not data:
            # Where a deleted row stands is not documented.
            field, data = "before", before
        if not data:
            raise DecodeError(f"a row event has no rows ({wire['action']})", field=field)
        olds = before if op == "update" else None
        if olds and len(olds) != len(data):
            raise DecodeError(
                f"data has {len(data)} rows and before has {len(olds)}: which belongs to which "
                "cannot be told",
                field="before",
            )
        types = object_of(wire, "dbValType"), object_of(wire, "jdbcType"), names_of(wire, "pks")
        source_time = milliseconds_of(wire, "execTs")
        emit_time = milliseconds_of(wire, "sendTs")
        extra = _extra_of(wire, is_row=True)
        events: list[Event] = []
        for index, row in enumerate(data):
            try:
                old = olds[index] if olds else None
                names = _names(row, f"{field}[{index}]")
                if old is not None:
                    names += tuple(n for n in _names(old, f"before[{index}]") if n not in row)
                plan = self._plans.find(table, names, *types)
                image = Image(_parse(row, plan.parsers, f"{field}[{index}]"))
                old_image = None
                if old is not None and (
                    self._before_updates or _key_changed(old, row, plan.key_columns)
                ):
                    values = _parse(old, plan.parsers, f"before[{index}]")
                    old_image = Image(values, complete=row.keys() <= old.keys())
                events.append(
                    RowChange(
                        op,
                        plan.schema,
                        image if op == "delete" else old_image,
                        None if op == "delete" else image,
                        source_time=source_time,
                        emit_time=emit_time,
                        index=index,
                        extra=extra,
                    )
                )
            except DecodeError as error:
                events.append(Corrupt(error, index))
        return events


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
    # Of MySQL, which has no schemas, CloudCanal writes the database twice.
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


def _names(row: Any, field: str) -> tuple[str, ...]:
    if type(row) is not dict:
        raise DecodeError("is not a row", field=field, sample=row)
    return tuple(row)


def _key_changed(
    old: Mapping[str, Any], row: Mapping[str, Any], key_columns: tuple[str, ...]
) -> bool:
    return any(name in old and old[name] != row.get(name) for name in key_columns)


def _parse(row: Mapping[str, Any], parsers: Mapping[str, ParseValue], field: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    name = ""
    value: Any = None
    try:
        for name, value in row.items():
            if name in parsers:
                values[name] = None if value is None else parsers[name](value)
    except InexactNumber:
        raise
    except ValueError as error:
        raise DecodeError(str(error), field=f"{field}.{name}", sample=value) from error
    return values
