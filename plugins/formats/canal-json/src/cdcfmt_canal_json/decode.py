"""Reference decoder: Canal-JSON messages to events.

Sources: TiCDC Canal-JSON, "DDL Event", "DML Event", "WATERMARK Event", "TiCDC Canal-JSON
and Canal compared"; Canal's ``MQMessageUtils`` for batches; CloudCanal for tableChanges.

For before images from ``old``: TiCDC Canal-JSON, "UPDATE events" and "Changes to the old field in
DELETE events"; Canal's ``MQMessageUtils.messageConverter``, which never clears its ``updateSet``: a
row's ``old`` also has columns that only an earlier row of the batch changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs
import orjson

from cdcfmt_canal_json.binary import Form, form_of
from cdcfmt_canal_json.dialects import DIALECTS, Dialect
from cdcfmt_canal_json.message import (
    OP_OF_TYPE,
    WATERMARK,
    extension_of,
    extra_of,
    names_of_table,
    time_of,
)
from cdcfmt_canal_json.plans import TablePlan, TablePlans
from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Event, Image, Message, Op, SchemaChange, TableSchema, Watermark
from cdcfmt_mysql.ddl import DDL_TYPES, ddl_type_on
from cdcfmt_toolkit.default_table import NO_TABLE, default_table
from cdcfmt_toolkit.flat_rows import FlatRows, Images, Row
from cdcfmt_toolkit.images import before_image, read_image
from cdcfmt_toolkit.json_messages import JsonMessages
from cdcfmt_toolkit.large_messages import claim_check_of, read_claimed
from cdcfmt_toolkit.table_changes import readable, row_types, schema_from_table_changes
from cdcfmt_toolkit.wire_json import commit_ts_of, list_of, names_of, object_of, text_of


@attrs.frozen
class RowDecoder:
    """Decodes ``data`` and ``old``."""

    _plans: TablePlans
    _dialect: Dialect
    _handle_key_deletes: bool

    def decode(
        self,
        wire: Mapping[str, Any],
        tidb: Mapping[str, Any],
        op: Op,
        place: tuple[str, str, str | None],
        commit_ts: int | None,
        extra: dict[str, Any] | None,
    ) -> list[Event]:
        """The events of a message's rows; ``place``: database, table and schema."""
        if not place[1]:
            raise DecodeError(NO_TABLE, field="table")
        data, old = list_of(wire, "data"), list_of(wire, "old")
        field = "data"
        if op == "delete":
            field, data = self._dialect.deleted_rows(data, old)
            old = None
        elif op != "update":
            old = None
        mysql_type, sql_type = object_of(wire, "mysqlType"), object_of(wire, "sqlType")
        pk_names = tuple(names_of(wire, "pkNames") or ())
        only_handle_key = tidb.get("onlyHandleKey") is True
        source_time = time_of(wire, "es", self._dialect)
        sequence_commit = self._dialect.sequence_commit(wire, commit_ts)
        position = sequence_commit if commit_ts is None else commit_ts
        form: Form | None = "latin1" if self._dialect.has_latin1(wire) else None

        def read(row: Row, path: str, old_row: Row | None, old_path: str) -> Images:
            nonlocal form
            names = tuple(row | (old_row or {}))
            # sqlType depends on the value (-5 or 3 for a bigint unsigned), so it is only used
            # without mysqlType.
            types = row_types(names, mysql_type, sql_type)
            plan = self._plans.find(place, types, pk_names, position)
            if form is None and plan.binary:
                form = form_of([*(data or ()), *(old or ())], plan.binary)
            readers = plan.readers_of(form)
            values = read_image(row, readers, path)
            if op == "delete":
                is_cut = only_handle_key or self._may_be_cut(names, plan, position)
                return plan.schema, Image(values, not is_cut), None
            before: Image | None = None
            if old_row is not None and plan.reads_before(old_row, row):
                old_values = read_image(old_row, readers, old_path)
                before = before_image(old_values, values, cut=only_handle_key)
            return plan.schema, before, Image(values, not only_handle_key)

        return FlatRows(op, wire["type"], field, data, "old", old).decode(
            read,
            sequence_commit=sequence_commit,
            commit_ts=commit_ts,
            source_time=source_time,
            emit_time=time_of(wire, "ts", self._dialect),
            extra=extra,
        )

    def _may_be_cut(self, names: tuple[str, ...], plan: TablePlan, position: int | None) -> bool:
        # The only sign of TiCDC's delete-only-output-handle-key-columns is a row with nothing but
        # its primary key.  Other producers, whose rows have no commit, send all columns.
        is_key = position is not None and len(names) <= len(plan.schema.key_columns)
        return self._handle_key_deletes or is_key or not names


_STATEMENTS = DDL_TYPES | {"XACOMMIT", "XAROLLBACK"}


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it caches the table schemas that it has seen."""
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._filter = context.event_filter
        self._dialect = DIALECTS[options["dialect"]]
        self._default_table = default_table(options)
        self._json = JsonMessages(
            orjson.loads, context, compression=options["largeMessageHandleCompression"]
        )
        self._rows = RowDecoder(
            TablePlans(context, options["binaryEncoding"]),
            self._dialect,
            handle_key_deletes=options["deleteOnlyOutputHandleKeyColumns"],
        )

    def decode(self, message: Message) -> list[Event]:
        if message.value is None:
            return []
        return self._json.read(message.value, self._events)

    def _events(self, wire: Any, claim_check: str | None = None) -> list[Event]:
        if type(wire) is not dict:
            raise DecodeError("not a JSON object", sample=wire)
        wire_type = wire.get("type")
        if type(wire_type) is not str:
            raise DecodeError("is not text", field="type", sample=wire_type)
        is_ddl = wire.get("isDdl")
        if is_ddl not in (True, False, None):
            raise DecodeError("is not true or false", field="isDdl", sample=is_ddl)
        if wire_type == WATERMARK:
            return [self._watermark(wire)]
        op = None if is_ddl else OP_OF_TYPE.get(wire_type)
        if op is None:
            # Other statements (official Canal: isDdl false, type QUERY or of an XA transaction)
            # have no rows either.
            if is_ddl or (wire_type in _STATEMENTS and wire.get("sql")):
                return [self._schema_change(wire, wire_type)]
            raise DecodeError("is not an event type of Canal-JSON", field="type", sample=wire_type)

        tidb = extension_of(wire)
        commit_ts = commit_ts_of(tidb, "commitTs", "_tidb.")
        place = names_of_table(wire)
        if not place[1] and self._default_table is not None:
            place = self._default_table
        if not self._filter.wants("row", *place, op, commit_ts):
            return []
        if self._filter.has_source_times:
            source_time = time_of(wire, "es", self._dialect)
            if not self._filter.wants_source_time("row", commit_ts, source_time):
                return []
        location = claim_check_of(tidb, is_claimed=claim_check is not None)
        if location is not None:
            read_events = partial(self._events, claim_check=location)
            read = partial(self._json.read, read=read_events)
            return read_claimed(self._context, location, read)
        return self._rows.decode(
            wire,
            tidb,
            op,
            place,
            commit_ts,
            extra_of(wire, tidb, claim_check),
        )

    def _watermark(self, wire: Mapping[str, Any]) -> Watermark:
        tidb = extension_of(wire)
        commit_ts = commit_ts_of(tidb, "watermarkTs", "_tidb.")
        if commit_ts is None:
            raise DecodeError(
                "a required field of a watermark is missing", field="_tidb.watermarkTs"
            )
        return Watermark(
            commit_ts,
            source_time=time_of(wire, "es", self._dialect),
            emit_time=time_of(wire, "ts", self._dialect),
            extra=extra_of(wire, tidb, None),
        )

    def _schema_change(self, wire: Mapping[str, Any], wire_type: str) -> SchemaChange:
        tidb = extension_of(wire)
        database, table, schema = names_of_table(wire)
        query = text_of(wire, "sql")
        changes = wire.get("tableChanges")
        if not query and not changes:
            raise DecodeError("a required field of a DDL event is missing", field="sql")
        extra = extra_of(wire, tidb, None, is_row=False) or {}
        word = ddl_type_on(wire_type.upper(), query)
        if word != wire_type.upper():
            extra["ddl_type"] = wire_type
        if wire.get("isDdl") is False:
            extra["is_ddl"] = False
        commit_ts = commit_ts_of(tidb, "commitTs", "_tidb.")
        source_time = time_of(wire, "es", self._dialect)
        resolve = self._context.resolve_type

        def read() -> TableSchema | None:
            return schema_from_table_changes(changes, database, table, resolve, schema)

        table_schema = readable(read, extra, self._context.counts)
        return SchemaChange(
            query=query,
            ddl_type=word,
            database=database,
            table=table,
            schema=schema,
            table_schema=table_schema,
            sequence_commit=self._dialect.sequence_commit(wire, commit_ts),
            commit_ts=commit_ts,
            source_time=source_time,
            emit_time=time_of(wire, "ts", self._dialect),
            extra=extra or None,
        )
