"""Events to DTS records.

Sources: ``Record.avsc`` of the DTS subscription SDK, and what its ``AvroRecordParser`` reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.errors import EncodeError, UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Heartbeat,
    Image,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Transaction,
)
from cdcfmt_core.toolkit.avro_output import (
    NULL,
    write_array,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.toolkit.images import NO_COLUMNS, executed_millis, images_of
from cdcfmt_core.toolkit.json_output import valid_name, valid_text
from cdcfmt_core.toolkit.row_messages import RowMessages, RowNumbers
from cdcfmt_dts_avro.encode_plans import EncodePlan, EncodePlans
from cdcfmt_dts_avro.message import (
    DEFAULT_SOURCE,
    OP_OF_OPERATION,
    OPERATIONS,
    SOURCE_TYPES,
)
from cdcfmt_dts_avro.plans import PK_TAG
from cdcfmt_dts_avro.record import DOT
from cdcfmt_dts_avro.row_parts import row_messages

_OPERATION_OF: Final[dict[Op, str]] = {op: word for word, op in OP_OF_OPERATION.items()}
_NO_HEARTBEATS: Final = frozenset(
    {"INSERT", "UPDATE", "DELETE", "DDL", "BEGIN", "COMMIT", "ROLLBACK", "ABORT"}
)
_LARGEST: Final = (1 << 63) - 1


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder.

    :raises OptionError: for large messages, of which the format has no words.
    """
    context.large_messages.require_plain("DTS Avro")
    return _Encoder(context)


@attrs.frozen
class _Known:
    """Of a table: ``objectName``, and the tags that rows have of it."""

    name: str
    tags: dict[str, str]


class _Encoder(Encoder):
    kinds = frozenset({"row", "ddl", "transaction", "heartbeat"})
    ops = frozenset({"insert", "update", "delete", "read"})

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self._plans = EncodePlans(context)
        self.row_numbers = self._numbers = RowNumbers()
        self._known: Cache[TableSchema, _Known] = Cache(8 << 20)

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            parts = self._row(event)
        elif isinstance(event, SchemaChange):
            parts = self._schema_change(event)
        else:
            assert isinstance(event, (Transaction, Heartbeat))
            parts = self._border(event)
        born = _integer(event.extra or {}, "born_timestamp")
        if born is not None:
            parts.append(write_long(born))
        return [self._context.large_messages.message(b"".join(parts))]

    def _row(self, event: RowChange) -> list[bytes]:
        row, old = images_of(event)
        if not row.values:
            raise UnsupportedEventError(NO_COLUMNS)
        before, after = (row, None) if event.op == "delete" else (old, row)
        plan = self._plans.find(event.table, source_type_of(event))
        self._check_complete(plan, before, after)
        known = self._known_of(event.table)
        tags = dict(_tags_of(event))
        if PK_TAG not in tags:
            tags |= known.tags
        return [
            *self._envelope(event, _OPERATION_OF[event.op], known.name, tags),
            plan.fields,
            NULL if before is None else plan.image(before.values),
            NULL if after is None else plan.image(after.values),
        ]

    def _check_complete(self, plan: EncodePlan, *images: Image | None) -> None:
        for image in images:
            if image is not None and not image.complete and len(image.values) == plan.size:
                raise UnsupportedEventError(
                    "the image is incomplete and lacks no column of the schema, which the format "
                    "cannot say"
                )

    def _known_of(self, table: TableSchema) -> _Known:
        known = self._known.get(table)
        if known is None:
            name = _object_name(table.database, table.schema, table.table)
            tags = {}
            if table.key_columns:
                keys = {"PRIMARY": list(map(valid_name, table.key_columns))}
                tags[PK_TAG] = json.dumps(keys, ensure_ascii=False)
            known = _Known(name, tags)
            self._known.add(table, known, text_size(name, *tags.values()))
        return known

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        if not table.columns:
            return None
        known = self._known_of(table)
        return row_messages(self._plans, table, known.name, known.tags)

    def _schema_change(self, event: SchemaChange) -> list[bytes]:
        name = _object_name(event.database, event.schema, event.table) or None
        query = write_text(valid_text(event.query, self._context))
        if not event.query:
            raise UnsupportedEventError("the DDL has no statement")
        return [
            *self._envelope(event, "DDL", name, _tags_of(event)),
            NULL,
            NULL,
            b"\x02" + query,
        ]

    def _border(self, event: Transaction | Heartbeat) -> list[bytes]:
        extra = event.extra or {}
        name = extra.get("object_name")
        said = extra.get("operation")
        if isinstance(event, Transaction):
            is_abort = event.status == "rollback" and said == "ABORT"
            operation = "ABORT" if is_abort else event.status.upper()
        else:
            known = said in OPERATIONS and said not in _NO_HEARTBEATS
            operation = str(said) if known else "HEARTBEAT"
        name = name if isinstance(name, str) else None
        return [*self._envelope(event, operation, name, _tags_of(event)), NULL, NULL, NULL]

    def _envelope(
        self, event: Any, operation: str, name: str | None, tags: Mapping[str, str]
    ) -> list[bytes]:
        extra = event.extra or {}
        transaction_id = getattr(event, "transaction_id", None) or extra.get("transaction_id")
        times = extra.get("process_timestamps")
        return [
            write_long(_integer(extra, "version") or 0),
            write_long(self._id_of(extra)),
            write_long(executed_millis(event) // 1_000),
            self._text(extra.get("source_position")),
            self._text(extra.get("safe_source_position")),
            self._text(transaction_id),
            write_long(SOURCE_TYPES.index(source_type_of(event))),
            self._text(extra.get("source_version")),
            write_long(OPERATIONS.index(operation)),
            write_optional(name, write_text),
            write_optional(
                times if isinstance(times, list) else None, lambda ts: write_array(ts, write_long)
            ),
            write_array(tags.items(), self._tag),
        ]

    def _tag(self, tag: tuple[str, str]) -> bytes:
        return self._text(tag[0]) + self._text(tag[1])

    def _id_of(self, extra: Mapping[str, Any]) -> int:
        """The record's, or one that counts."""
        id_ = _integer(extra, "id")
        if id_ is None:
            id_ = self._numbers.last + 1
            if id_ > _LARGEST:
                raise EncodeError("the event has no id, and the one before it has the largest")
        self._numbers.last = id_
        return id_

    def _text(self, value: Any) -> bytes:
        return write_text(valid_text(value, self._context) if isinstance(value, str) else "")


def source_type_of(event: Any) -> str:
    said = (event.extra or {}).get("source_type")
    return said if said in SOURCE_TYPES else DEFAULT_SOURCE


def _tags_of(event: Any) -> dict[str, str]:
    tags = (event.extra or {}).get("tags")
    return tags if isinstance(tags, dict) else {}


def _integer(extra: Mapping[str, Any], field: str) -> int | None:
    value = extra.get(field)
    return value if type(value) is int and ~_LARGEST <= value <= _LARGEST else None


def _object_name(database: str, schema: str | None, table: str) -> str:
    parts = [database, table] if schema is None else [database, schema, table]
    if not table:
        parts = [database]
    for part in parts:
        if DOT in valid_name(part):
            raise EncodeError(f"a name has {DOT}, which would be read as a dot", sample=part)
    return ".".join(part.replace(".", DOT) for part in parts)
