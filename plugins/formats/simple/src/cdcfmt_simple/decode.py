"""Reference decoder: Simple Protocol messages to events, one event per message.

Source: TiCDC Simple Protocol, "Message format".  The first byte determines the message encoding:
JSON begins with a brace, Avro with the number of a union branch.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Event,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.texts import open_logger, qualified
from cdcfmt_mysql.ddl import DDL_TYPES, ddl_type_on
from cdcfmt_simple.avro.message import EDITIONS, AvroMessage, read_message
from cdcfmt_simple.avro.rows import AVRO_ROWS, read_cells
from cdcfmt_simple.checksum import Verifier
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.json.rows import JSON_ROWS
from cdcfmt_simple.message import (
    BOOTSTRAP,
    OP_OF_TYPE,
    STREAM,
    WATERMARK,
    Wire,
    commit_ts_of,
    flag_of,
    row_extra,
    unknown_of,
)
from cdcfmt_simple.rows import Rows
from cdcfmt_simple.table_schemas import WireTable, read_table, unsigned_of
from cdcfmt_toolkit.json_messages import JsonMessages
from cdcfmt_toolkit.large_messages import claim_check_of, read_claimed
from cdcfmt_toolkit.table_changes import readable
from cdcfmt_toolkit.wire_json import milliseconds_of, text_of

logger = open_logger("cdcfmt_simple")


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it adds the table schemas that it reads to the context's."""
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._wants_all = context.event_filter == EventFilter()
        self._wants = context.event_filter.wants
        self._json = JsonMessages(
            orjson.loads, context, compression=options["largeMessageHandleCompression"]
        )
        zones = Zones(context)
        verify = options["verifyChecksum"]
        verifier = (
            Verifier(zones, context.counts, fails=verify == "fail") if verify != "false" else None
        )
        self._json_rows = Rows(JSON_ROWS, context, zones, verifier)
        self._avro_rows = Rows(AVRO_ROWS, context, zones, verifier)

    def decode(self, message: Message) -> list[Event]:
        if message.value is None:
            self._context.counts["tombstones"] += 1
            return []
        event = self._event(message.value)
        return [] if event is None else [event]

    def _event(self, value: bytes, claimant: Wire | None = None) -> Event | None:
        """``claimant`` is the message that refers to this one by a claim check."""
        value = self._json.decompressed(value)
        if value[:1] not in EDITIONS:
            read = partial(self._event_of, avro=None, claimant=claimant)
            return self._json.read_text(value, read)
        try:
            avro = read_message(value)
            return self._event_of(avro.wire, avro, claimant)
        except IndexError:
            raise DecodeError("the message is truncated", sample=value) from None

    def _event_of(self, wire: Any, avro: AvroMessage | None, claimant: Wire | None) -> Event | None:
        if type(wire) is not dict:
            raise DecodeError("not a JSON object", sample=wire)
        wire_type = wire.get("type")
        if type(wire_type) is not str:
            raise DecodeError("is not text", field="type", sample=wire_type)
        op = OP_OF_TYPE.get(wire_type)
        if op is not None:
            return self._row(wire, avro, op, claimant)
        if claimant is not None:
            raise DecodeError("a claim check holds no row", field="type", sample=wire_type)
        if wire_type == WATERMARK:
            extra = unknown_of(wire)
            return Watermark(
                commit_ts_of(wire),
                emit_time=milliseconds_of(wire, "buildTs"),
                extra=extra or None,
            )
        return self._schema_event(wire, wire_type)

    # Rows

    def _row(
        self, wire: Wire, avro: AvroMessage | None, op: Op, claimant: Wire | None
    ) -> Event | None:
        database, table = wire.get("database"), wire.get("table")
        if type(database) is not str or type(table) is not str or not table:
            database, table = _names_of(wire)
        commit_ts = commit_ts_of(wire)
        if not (self._wants_all or self._wants("row", database, table, None, op, commit_ts)):
            return None
        location = claim_check_of(wire, is_claimed=claimant is not None)
        if location is not None:
            # Such a message also has handleKeyOnly.
            return read_claimed(self._context, location, partial(self._event, claimant=wire))
        if claimant is not None:
            _check_claim(claimant, wire)
        version = unsigned_of(wire, "schemaVersion")
        complete = "handleKeyOnly" not in wire or not flag_of(wire, "handleKeyOnly")
        rows = self._json_rows if avro is None else self._avro_rows
        images = (wire.get("data"), wire.get("old")) if avro is None else read_cells(avro)
        schema, before, after, mismatch = rows.read(
            wire, images, op, database, table, version, complete=complete
        )
        claim_check = None if claimant is None else claimant["claimCheckLocation"]
        extra = row_extra(wire, version, claim_check)
        if mismatch is not None:
            extra["checksum_mismatch"] = mismatch
        return RowChange(
            op,
            schema,
            before,
            after,
            commit_ts=commit_ts,
            emit_time=milliseconds_of(wire, "buildTs"),
            extra=extra,
        )

    # Schemas

    def _schema_event(self, wire: Wire, wire_type: str) -> Event:
        emit_time = milliseconds_of(wire, "buildTs")
        resolve_type = self._context.resolve_type
        if wire_type == BOOTSTRAP:
            table = read_table(wire, "tableSchema", resolve_type)
            if table is None or not table.is_table:
                field = "tableSchema" if table is None else "tableSchema.columns"
                raise DecodeError("a required field of a bootstrap event is missing", field=field)
            extra = table.extra() | unknown_of(wire)
            return TableSchemaEvent(self._keep(table), emit_time=emit_time, extra=extra)
        query = text_of(wire, "sql")
        if not query:
            what = (
                "a required field of a DDL event is missing"
                if wire_type in DDL_TYPES
                else "neither a row nor DDL"
            )
            raise DecodeError(what, field="sql", sample=wire_type)
        unreadable: dict[str, Any] = {}
        table, previous = (
            readable(
                partial(read_table, wire, field, resolve_type), unreadable, self._context.counts
            )
            for field in ("tableSchema", "preTableSchema")
        )
        extra = (table.extra() if table else {}) | unknown_of(wire) | unreadable
        if previous is not None:
            extra["previous_table"] = previous.extra()
        word = ddl_type_on(wire_type, query)
        if word != wire_type:
            extra["ddl_type"] = wire_type
        before = self._keep(previous) if previous and previous.is_table else None
        after = self._keep(table) if table and table.is_table else None
        database, name = _names_in(wire.get("tableSchema"))
        return SchemaChange(
            query=query,
            ddl_type=word,
            database=database,
            table=name,
            table_schema=after,
            previous_table_schema=before,
            commit_ts=commit_ts_of(wire),
            emit_time=emit_time,
            extra=extra or None,
        )

    def _keep(self, table: WireTable) -> TableSchema:
        """Add the schema to the store, and return the stored one; itself if it is too large."""
        schemas, schema = self._context.schemas, table.schema
        schemas.add(table.record)
        known = schemas.at(schema.database, schema.table, (table.version,), stream=STREAM)
        if len(known) > 1:
            self._context.counts["schemas that differ from another of their version"] += 1
            _warn_of_another(qualified(schema.database, schema.table), table.version)
        return known[-1] if known else schema


@functools.lru_cache(maxsize=10_000)
def _warn_of_another(table: str, version: int) -> None:
    logger.warning(
        "%s has different schemas of version %d; a row is read with the schema that has its "
        "columns, and is corrupt if the schema is ambiguous",
        table,
        version,
    )


def _names_of(wire: Wire) -> tuple[str, str]:
    """Database and table of a row; TiCDC 7.6 calls the database ``schema``."""
    table = text_of(wire, "table")
    if not table:
        raise DecodeError("a required field of a row event is missing", field="table")
    return text_of(wire, "database") or text_of(wire, "schema"), table


def _names_in(body: Any) -> tuple[str, str]:
    """Database and table of ``tableSchema``, even if the rest of it cannot be read."""
    names = [body.get(field) if type(body) is dict else None for field in ("schema", "table")]
    database, table = (name if type(name) is str else "" for name in names)
    return database, table


def _check_claim(claimant: Wire, wire: Wire) -> None:
    """Check that the claim-check file has the row of the message that refers to it."""
    for field in ("type", "commitTs", "database", "schema", "table", "schemaVersion"):
        if claimant.get(field) != wire.get(field):
            raise DecodeError("it holds another row", field=field, sample=wire.get(field))
