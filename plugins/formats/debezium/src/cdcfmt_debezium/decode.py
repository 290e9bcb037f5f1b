"""Reference decoder: Debezium messages in JSON and Avro to events.

Sources: Debezium MySQL connector, "Data change events", "Schema change topic", "Transaction
metadata"; TiCDC Debezium, "Message format", where op ``m`` is a watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError, MissingSchemaError
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Heartbeat,
    LogicalMessage,
    Message,
    RowChange,
    Transaction,
    Watermark,
)
from cdcfmt_debezium import mongodb
from cdcfmt_debezium.binary import binary_parser
from cdcfmt_debezium.ddl import is_schema_change, read_schema_changes
from cdcfmt_debezium.documents import Document, open_reader
from cdcfmt_debezium.envelope import extra_of, position_of, time_of
from cdcfmt_debezium.flattened import FlatReader
from cdcfmt_debezium.given_tables import OPTION as GIVEN
from cdcfmt_debezium.given_tables import GivenTables
from cdcfmt_debezium.message import (
    HEARTBEAT_SCHEMA,
    MESSAGE,
    NOTIFICATION_FIELDS,
    OP_OF_WORD,
    TICDC,
    TRANSACTION_FIELDS,
    TRANSACTION_STATUS,
)
from cdcfmt_debezium.options import profiles
from cdcfmt_debezium.plans import TablePlans
from cdcfmt_debezium.profile import profile_of
from cdcfmt_debezium.rows import RowDecoder, image_of
from cdcfmt_debezium.topic_tables import Origin
from cdcfmt_debezium.unavailable import Unavailable
from cdcfmt_debezium.wire_schema import WireSchema, fields_of
from cdcfmt_mysql import InexactNumber
from cdcfmt_toolkit.default_table import NO_TABLE, default_table
from cdcfmt_toolkit.foreign import check_record
from cdcfmt_toolkit.wire_json import (
    commit_ts_of,
    object_of,
    text_of,
)


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it caches the table schemas that it has seen."""
    return _Decoder(options, context).decode


_OLD_MONGODB: Final = (
    "messages of the MongoDB connector without source.collection, of Debezium before 1.0, are not "
    "read: their updates have a patch instead of a document"
)

_CASSANDRA: Final = "cassandra"
"""Its deleted rows are in ``after``."""

_NO_ROW: Final = (
    "a delete without key and row, of a table without key: the row is unknown; send the rows of "
    "deletes (the transform's delete.tombstone.handling.mode=rewrite)"
)


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._filter = context.event_filter
        self._profiles = profiles(options)
        self._documents = open_reader(options, context)
        self._unavailable = Unavailable(options["unavailableValuePlaceholder"] or "")
        self._rows = RowDecoder(
            context,
            TablePlans(context, fail_without_schema=options["onMissingSchema"] == "fail"),
            GivenTables(options[GIVEN], context.resolve_type),
            self._unavailable,
        )
        self._default_table = default_table(options)
        self._of_mongodb = mongodb.Documents()
        self._flat = FlatReader(options, context.schemas.persistence)
        self._flattened = options["flattened"]

    def decode(self, message: Message) -> list[Event]:
        if message.value is None:
            return self._tombstone(message)
        document = self._documents.read(message)
        try:
            return self._events(document, message)
        except InexactNumber:
            return self._events(self._documents.read_exact(document), message)

    def _events(self, document: Document, message: Message) -> list[Event]:
        payload = document.payload
        if payload is None:
            return self._tombstone(message)
        if type(payload) is not dict:
            raise DecodeError("not a JSON object", sample=payload)
        op, source = payload.get("op"), payload.get("source")
        if document.schema is None:
            # Else what holds the row would look like a column.
            check_record(payload, source, payload.get("before"), payload.get("after"))
        if type(op) is str and type(source) is dict:
            return self._enveloped(document, payload, op, source, message)
        if is_schema_change(payload):
            return self._schema_changes(payload)
        if payload.keys() >= TRANSACTION_FIELDS and not (op or source):
            return [_transaction(payload)]
        if payload.keys() == {"ts_ms"} or (
            document.schema is not None and document.schema.name == HEARTBEAT_SCHEMA
        ):
            return [Heartbeat(emit_time=time_of(payload))]
        if self._flattened:
            return self._flattened_row(document, payload, message)
        if type(op) is str and source is None and payload.keys() & {"before", "after"}:
            # Flink SQL sends no source.
            return self._enveloped(document, payload, op, {}, message)
        if payload.keys() == NOTIFICATION_FIELDS:
            return [_notification(payload)]
        if type(op) is str:
            raise DecodeError("is not an object", field="source", sample=source)
        if type(source) is dict:
            raise DecodeError("is not text", field="op", sample=op)
        raise DecodeError(
            "not an envelope: it has no op; set flattened=true for messages of the transform "
            "ExtractNewRecordState",
            sample=document.value,
        )

    def _enveloped(
        self,
        document: Document,
        payload: dict[str, Any],
        word: str,
        source: dict[str, Any],
        message: Message,
    ) -> list[Event]:
        if is_schema_change(payload):
            # CloudCanal's DDL messages also have an op.
            return self._schema_changes(payload)
        commit_ts = commit_ts_of(source, "commit_ts", "source.")
        if word == MESSAGE:
            profile = profile_of(self._profiles, source.get("connector"), None)
            mode = "certain" if _has_bytes(document.schema) else profile.binary
            return [_message(payload, source, commit_ts, mode)]
        op = OP_OF_WORD.get(word)
        if op is None:
            raise DecodeError("is not an operation of Debezium", field="op", sample=word)
        # A keyspace of Vitess is its database.
        database = text_of(source, "db", "source.") or text_of(source, "keyspace", "source.")
        table = text_of(source, "table", "source.")
        schema = text_of(source, "schema", "source.") or None
        has_documents = source.get("connector") == mongodb.CONNECTOR
        if has_documents:
            table = text_of(source, "collection", "source.")
            if not table:
                raise DecodeError(_OLD_MONGODB, field="source.collection")
        if not table and self._default_table is not None:
            database, table, schema = self._default_table
        if not table:
            raise DecodeError(NO_TABLE, field="source.table" if source else "source")
        if self._flattened:
            names = text_of(source, "name"), text_of(source, "connector")
            origin = Origin(database, table, schema, *names, by_topic=False)
            self._flat.tables.learn(message.topic or "", origin)
        if not self._filter.wants("row", database, table, schema, op, commit_ts):
            return []
        if self._filter.has_source_times:
            source_time = time_of(source, "source.")
            if not self._filter.wants_source_time("row", commit_ts, source_time):
                return []
        key = self._key(message, document)[0]
        if has_documents:
            event = self._of_mongodb.decode(op, payload, (database, table), key)
            return [_completed(event, payload, source, commit_ts)]
        before, after = image_of(payload, "before"), image_of(payload, "after")
        if op == "delete" and before is None and source.get("connector") == _CASSANDRA:
            before = after
        event = self._rows.decode(
            op,
            before,
            after,
            wire=document.schema,
            place=(database, table, schema),
            stream=text_of(source, "name", "source."),
            position=position_of(source),
            profile=profile_of(self._profiles, source.get("connector"), schema),
            key=key,
            may_lack=self._may_lack(document),
        )
        return [_completed(event, payload, source, commit_ts)]

    def _tombstone(self, message: Message) -> list[Event]:
        if self._flattened:
            if message.key is None:
                return [Corrupt(DecodeError(_NO_ROW))]
            try:
                return self._flattened_row(None, None, message)
            except MissingSchemaError:
                raise
            except DecodeError as error:
                # A row of this format, if a bad one: to raise would say that it is none.
                return [Corrupt(error)]
        self._context.counts["tombstones"] += 1
        return []

    def _flattened_row(
        self, document: Document | None, payload: dict[str, Any] | None, message: Message
    ) -> list[Event]:
        key, key_schema = self._key(message, document)
        record = self._flat.read(payload, message, key)
        origin = record.origin
        database, table, schema = origin.place
        if not self._filter.wants("row", database, table, schema, record.op, None):
            return []
        if not self._filter.wants_source_time("row", None, record.source_time):
            return []
        event = self._rows.decode(
            record.op,
            record.row if record.op == "delete" else None,
            record.row,
            # The row of a tombstone is its key.
            wire=document.schema if document else self._documents.schema_of(key_schema),
            place=origin.place,
            stream=origin.stream,
            position=record.position,
            profile=profile_of(self._profiles, origin.connector, schema),
            key=key,
            may_lack=document is not None and self._may_lack(document),
        )
        event.source_time, event.emit_time = record.source_time, record.emit_time
        if record.extra:
            event.extra = (event.extra or {}) | record.extra
        return [event]

    def _schema_changes(self, payload: dict[str, Any]) -> list[Event]:
        context = self._context
        changes = read_schema_changes(payload, context.resolve_type, context.counts)
        for record in changes.records:
            self._context.schemas.add(record)
        events: list[Event] = []
        for change in changes.events:
            table = change.table
            if self._filter.wants(
                "ddl", change.database, table, change.schema, None, change.commit_ts
            ):
                events.append(change)
        return events

    def _key(
        self, message: Message, document: Document | None
    ) -> tuple[dict[str, Any] | None, Any]:
        """The key's columns and their schema; None without a key, or if it is not an object."""
        key, schema = self._documents.read_key(message, document)
        if key is None and message.key is not None:
            self._context.counts["keys that are not a JSON object"] += 1
        return key, schema

    def _may_lack(self, document: Document) -> bool:
        # In Avro, most forms of the placeholder are numbers.
        return document.is_avro or self._unavailable.in_message(document.value)


def _completed(
    event: RowChange, payload: dict[str, Any], source: dict[str, Any], commit_ts: int | None
) -> RowChange:
    """The event with its times and what no field of an event holds."""
    event.commit_ts = commit_ts
    event.source_time = time_of(source, "source.")
    event.emit_time = time_of(payload)
    extra = mongodb.described(extra_of(payload, source))
    if event.extra:
        extra = event.extra | (extra or {})
    event.extra = extra
    return event


def _has_bytes(schema: WireSchema | None) -> bool:
    """Whether a logical message's content is of the type bytes: else it may be hexadecimal."""
    for field in schema.fields if schema else ():
        if field["field"] == "message" and field.get("type") == "struct":
            kinds = {each["field"]: each.get("type") for each in fields_of(field)}
            return kinds.get("content") == "bytes"
    return False


def _message(
    payload: dict[str, Any], source: dict[str, Any], commit_ts: int | None, mode: str
) -> Event:
    """TiCDC's watermark, or a logical message from the source's log.

    ``mode``: of its bytes, as of a binary column.
    """
    source_time, emit_time = time_of(source, "source."), time_of(payload)
    if source.get("connector") == TICDC:
        if commit_ts is None:
            raise DecodeError(
                "a required field of a watermark is missing", field="source.commit_ts"
            )
        return Watermark(
            commit_ts,
            source_time=source_time,
            emit_time=emit_time,
            extra=extra_of(payload, source),
        )
    body = object_of(payload, "message") or {}
    content = body.get("content")
    try:
        data: Any = None if content is None else binary_parser(mode, "longblob")(content)
    except ValueError as error:
        raise DecodeError(str(error), field="message.content", sample=content) from error
    return LogicalMessage(
        text_of(body, "prefix", "message."),
        data,
        commit_ts=commit_ts,
        source_time=source_time,
        emit_time=emit_time,
        extra=extra_of({name: payload[name] for name in payload if name != "message"}, source),
    )


def _notification(payload: dict[str, Any]) -> Event:
    """A connector's notification, such as the progress of a snapshot."""
    extra = {name: value for name, value in payload.items() if name != "aggregate_type"}
    return LogicalMessage(text_of(payload, "aggregate_type"), None, extra=extra)


def _transaction(payload: dict[str, Any]) -> Transaction:
    counts = {
        name: payload[name]
        for name in ("event_count", "data_collections")
        if payload[name] is not None
    }
    status = TRANSACTION_STATUS.get(text_of(payload, "status"))
    if status is None:
        raise DecodeError("is neither BEGIN nor END", field="status", sample=payload["status"])
    return Transaction(
        status,
        text_of(payload, "id"),
        source_time=time_of(payload),
        extra=counts or None,
    )
