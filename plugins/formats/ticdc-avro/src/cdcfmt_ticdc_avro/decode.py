"""Reference decoder of TiCDC's Avro.

A message is a row in the schema of its table; a delete is its key alone.  Source: "TiCDC Avro
Protocol", and TiCDC's ``codec/avro``.

A key alone has no commit_ts.  If only other rows had one, it would order them after all deletes, so
they have it in ``extra``; with ``avro-include-before-value``, deletes have it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cdcfmt_core import Decode, DecoderContext
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import (
    Corrupt,
    Event,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    Watermark,
)
from cdcfmt_core.schema_registry import Framed, Part
from cdcfmt_mysql.ddl import TYPES_OF_TIDB, ddl_type_of
from cdcfmt_ticdc_avro.checksum import Verifier
from cdcfmt_ticdc_avro.message import (
    BEFORE,
    CHECKSUM,
    CHECKSUM_VERSION,
    COMMIT_TS,
    CORRUPTED,
    OP,
    OPS,
    PHYSICAL_TIME,
    is_ddl,
    is_delete,
    is_watermark,
    tso_of,
)
from cdcfmt_ticdc_avro.plans import TablePlan, TablePlans
from cdcfmt_toolkit.foreign import framing_of
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.json_size import check_values
from cdcfmt_toolkit.wire_json import commit_ts_of, loads_object, milliseconds_of, text_of

_NO_KEY: Final = (
    "a delete without key: the table has no primary key, and TiCDC does not write which row it "
    "was; set avro-include-before-value=true in TiCDC"
)
_NO_ID: Final = "the key of a delete has no schema id"
_DDL_FIELDS: Final = frozenset({"query", "type", "schema", "table", "commitTs"})


def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
    """A decoder for one reader; it caches the plans of the schemas that it has seen."""
    return _Decoder(options, context).decode


class _Decoder:
    def __init__(self, options: Mapping[str, Any], context: DecoderContext) -> None:
        self._context = context
        self._filter = context.event_filter
        self._plans = TablePlans(context)
        verify = options["verifyChecksum"]
        self._verifier = None if verify == "false" else Verifier(context, fails=verify == "fail")

    def decode(self, message: Message) -> list[Event]:
        value = message.value
        if value is None:
            return self._delete(message, None)
        if is_delete(value):
            return self._delete(message, _commit_ts(value))
        if is_watermark(value):
            return [Watermark(_commit_ts(value))]
        if is_ddl(value):
            return self._ddl(value)
        framed = self._split(message, "value")
        if framed is None:
            raise DecodeError("the value has no schema id", sample=value)
        key = self._split(message, "key")
        keys = () if key is None else self._plans.find(key.schema, None).schema.key_columns
        return self._row(self._plans.find(framed.schema, keys), bytes(framed.payload))

    def _split(self, message: Message, part: Part) -> Framed | None:
        schemas = self._context.writer_schemas
        data = message.key if part == "key" else message.value
        if data is None:
            return None
        if schemas is None:
            raise DecodeError(
                "the schema is in a schema registry: set schema.registry.url", sample=data
            )
        return schemas.split(data, message.headers, part)

    def _row(self, plan: TablePlan, data: bytes) -> list[Event]:
        wire = plan.read(data)
        op = OPS.get(text_of(wire, OP))
        if op is None:
            raise DecodeError("is not an operation of TiCDC", field=OP, sample=wire[OP])
        tso = commit_ts_of(wire, COMMIT_TS) or None
        commit_ts = tso if BEFORE in wire else None
        table = plan.schema
        if not self._filter.wants("row", table.database, table.table, None, op, commit_ts):
            return []
        extra = _of_tso(tso, commit_ts) | self._verified(plan, wire, op)
        row = Image(read_image(wire, plan.readers, "value"), complete=True)
        before: Image | None = None
        after: Image | None = row
        old = wire.get(BEFORE)
        if op == "delete":
            # The columns hold the old row.
            before, after = row, None
        elif old is not None and plan.reads_before(old, wire):
            before = Image(read_image(old, plan.readers, BEFORE), complete=True)
        source_time = milliseconds_of(wire, PHYSICAL_TIME) or None
        if source_time is None and tso is not None:
            source_time = _time_of(tso)
        return [
            RowChange(
                op,
                table,
                before,
                after,
                commit_ts=commit_ts,
                source_time=source_time,
                extra=extra or None,
            )
        ]

    def _verified(self, plan: TablePlan, wire: dict[str, Any], op: Op) -> dict[str, Any]:
        """The row's checksum; TiCDC leaves it empty if TiDB has not written one."""
        text = text_of(wire, CHECKSUM)
        if not text:
            return {}
        if not (text.isascii() and text.isdigit() and len(text) <= 10):
            raise DecodeError("is not a number", field=CHECKSUM, sample=text)
        checksum = {
            "version": wire.get(CHECKSUM_VERSION),
            "corrupted": wire.get(CORRUPTED),
            "previous" if op == "delete" else "current": int(text),
        }
        extra: dict[str, Any] = {"checksum": checksum}
        if self._verifier is not None:
            mismatch = self._verifier.verify(plan.schema, wire, int(text))
            if mismatch is not None:
                extra["checksum_mismatch"] = mismatch
        return extra

    def _delete(self, message: Message, tso: int | None) -> list[Event]:
        # A bad row, and no error: an error would say that the message has another format.
        if message.key is None and self._context.writer_schemas is not None:
            return [Corrupt(DecodeError(_NO_KEY))]
        if self._context.writer_schemas is None and (framing := framing_of(message.key or b"")):
            return [Corrupt(DecodeError(f"the key is {framing}", sample=message.key))]
        key = self._split(message, "key")
        if key is None:
            raise DecodeError(_NO_KEY if message.key is None else _NO_ID, sample=message.key)
        plan = self._plans.find(key.schema, None)
        table = plan.schema
        if not self._filter.wants("row", table.database, table.table, None, "delete", None):
            return []
        values = read_image(plan.read(bytes(key.payload)), plan.readers, "key")
        source_time = None if tso is None else _time_of(tso)
        row, extra = Image(values, complete=False), _of_tso(tso, None)
        return [RowChange("delete", table, row, None, source_time=source_time, extra=extra or None)]

    def _ddl(self, value: bytes) -> list[Event]:
        check_values(value, self._context.max_message_bytes)
        wire = loads_object(value[1:])
        query, commit_ts = text_of(wire, "query"), commit_ts_of(wire, "commitTs")
        if not query or commit_ts is None:
            missing = "commitTs" if query else "query"
            raise DecodeError("a required field of a DDL event is missing", field=missing)
        database, table = text_of(wire, "schema"), text_of(wire, "table")
        if not self._filter.wants("ddl", database, table, None, None, commit_ts):
            return []
        extra = {name: each for name, each in wire.items() if name not in _DDL_FIELDS}
        code: Any = wire.get("type")
        if type(code) is int:
            extra["ddl_type"] = code
        return [
            SchemaChange(
                query=query,
                ddl_type=TYPES_OF_TIDB.get(code) or ddl_type_of(query),
                database=database,
                table=table,
                commit_ts=commit_ts,
                source_time=_time_of(commit_ts),
                extra=extra or None,
            )
        ]


def _of_tso(tso: int | None, commit_ts: int | None) -> dict[str, Any]:
    """``extra`` with a commit_ts that must not order the rows."""
    return {} if tso is None or commit_ts is not None else {"commit_ts": tso}


def _commit_ts(value: bytes) -> int:
    found = commit_ts_of({"commitTs": tso_of(value)}, "commitTs")
    assert found is not None
    return found


def _time_of(commit_ts: int) -> int:
    """The physical part of a TSO, in microseconds."""
    return (commit_ts >> 18) * 1000
