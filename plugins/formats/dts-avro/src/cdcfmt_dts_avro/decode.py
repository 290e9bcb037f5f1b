"""Reference decoder: DTS records to events.

Sources: ``Record.avsc`` and ``AvroRecordParser`` of the DTS subscription SDK.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    Transaction,
)
from cdcfmt_dts_avro.message import EARLIEST_BORN, OP_OF_OPERATION, STATUS_OF_OPERATION
from cdcfmt_dts_avro.plans import TablePlan, TablePlans
from cdcfmt_dts_avro.record import Envelope, read_envelope
from cdcfmt_mysql.ddl import ddl_type_of
from cdcfmt_toolkit.wire_avro import read_block, read_choice, read_long, read_text

_DDL = "DDL"


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it caches the table schemas that it has seen."""
    return _Decoder(context).decode


class _Decoder:
    def __init__(self, context: DecoderContext) -> None:
        self._filter = context.event_filter
        self._plans = TablePlans()

    def decode(self, message: Message) -> list[Event]:
        data = message.value
        if data is None:
            return []
        if not data:
            raise DecodeError("the value is empty")
        try:
            return self._event(data)
        except IndexError:
            raise DecodeError("the record is truncated", sample=data) from None

    def _event(self, data: bytes) -> list[Event]:
        envelope = read_envelope(data)
        operation = envelope.operation
        op = OP_OF_OPERATION.get(operation)
        if op is not None and envelope.wire["objectName"]:
            database, schema, table = envelope.names
            if not self._filter.wants("row", database, table, schema, op):
                return []
            if self._filter.has_source_times and not self._filter.wants_source_time(
                "row", None, envelope.source_time
            ):
                return []
        plan, at = self._plans.read(envelope, data)
        if plan is None:
            before, at = _read_text_image(data, at, "beforeImages")
            after, at = _read_text_image(data, at, "afterImages")
            extra = _finish(envelope, data, at)
            return [_plain_event(envelope, before, after, extra)]
        old, new, at = plan.read_images(data, at)
        extra = _finish(envelope, data, at)
        if old is None and new is None:
            return [_plain_event(envelope, None, None, extra)]
        return [_row(envelope, plan, op, old, new, extra)]


def _row(
    envelope: Envelope,
    plan: TablePlan,
    op: Op | None,
    before: Image | None,
    after: Image | None,
    extra: dict[str, Any],
) -> RowChange:
    operation = envelope.operation
    if op is None:
        if operation == _DDL or operation in STATUS_OF_OPERATION:
            raise DecodeError(f"{operation} has rows", field="operation")
        op = "upsert" if after is not None else "delete"
        extra["operation"] = operation
    schema = plan.table_schema
    if not schema.table:
        raise DecodeError("a row event names no table", field="objectName")
    if op == "delete":
        if before is None:
            raise DecodeError("a required field of a deleted row is missing", field="beforeImages")
        after = None
    elif after is None:
        raise DecodeError(
            f"a required field of a row event is missing ({operation})", field="afterImages"
        )
    elif op != "update":
        before = None
    return RowChange(op, schema, before, after, source_time=envelope.source_time, extra=extra)


def _plain_event(
    envelope: Envelope, before: str | None, after: str | None, extra: dict[str, Any]
) -> Event:
    """The event of a record without rows."""
    operation = envelope.operation
    time = envelope.source_time
    if operation == _DDL:
        if not after:
            raise DecodeError("a DDL record has no statement", field="afterImages")
        database, schema, table = envelope.names
        return SchemaChange(
            query=after,
            ddl_type=ddl_type_of(after),
            database=database,
            table=table,
            schema=schema,
            source_time=time,
            extra=extra,
        )
    if before or after:
        raise DecodeError(f"{operation} has text for images", sample=before or after)
    if envelope.wire["objectName"]:
        extra["object_name"] = envelope.wire["objectName"]
    status = STATUS_OF_OPERATION.get(operation)
    if status is not None:
        if operation == "ABORT":
            extra["operation"] = operation
        extra.pop("transaction_id", None)
        return Transaction(
            status, envelope.wire["sourceTxid"] or None, source_time=time, extra=extra
        )
    if operation in ("INSERT", "UPDATE", "DELETE"):
        raise DecodeError(f"{operation} has no row", field="fields")
    extra["operation"] = operation
    return Heartbeat(source_time=time, extra=extra)


def _read_text_image(data: bytes, at: int, field: str) -> tuple[str | None, int]:
    """Read an image of a record without fields: null or text."""
    branch, at = read_choice(data, at, 3, "branch")
    if branch == 0:
        return None, at
    if branch == 1:
        return read_text(data, at)
    count, at = read_block(data, at)
    if count:
        raise DecodeError("has values, but there are no fields", field=field)
    return None, at


def _finish(envelope: Envelope, data: bytes, at: int) -> dict[str, Any]:
    """The rest of the record, which must end with the message, as ``extra``."""
    extra = envelope.extra()
    if at < len(data):
        born, end = read_long(data, at)
        if end != len(data) or 0 != born < EARLIEST_BORN:
            raise DecodeError(f"{len(data) - at} bytes follow the record", sample=data[at:])
        extra["born_timestamp"] = born
    elif at > len(data):
        raise IndexError
    return extra
