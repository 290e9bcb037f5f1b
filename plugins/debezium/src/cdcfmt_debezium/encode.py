"""Events to Debezium messages, as TiCDC writes them.

Sources: TiCDC Debezium, "Message format"; DDL messages and watermarks are not in its
document: they are as its encoder writes them (``debezium/codec.go``).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import OptionError, UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Image,
    Kind,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_core.toolkit.row_messages import RowMessages
from cdcfmt_debezium.connect_output import (
    DDL_KEY,
    DDL_VALUE,
    envelope_schema,
    key_schema_of,
    sanitized,
)
from cdcfmt_debezium.ddl_output import table_changes
from cdcfmt_debezium.encode_plans import EncodePlan, EncodePlans
from cdcfmt_debezium.payload_output import OP_WORDS, dumps, row_head, source
from cdcfmt_debezium.row_parts import row_message


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer.

    :raises OptionError: for large-message handling, which Debezium does not have.
    """
    return _Encoder(options, context)


class _Encoder(Encoder):
    needs_commit_ts = True
    ops = frozenset(OP_WORDS)
    hints: ClassVar[dict[Kind, str]] = {"watermark": "set enableTidbExtension=true"}

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._large = context.large_messages
        if self._large.handle != "none":
            raise OptionError(
                f"option largeMessageHandleOption: debezium has no {self._large.handle}"
            )
        self._extension: bool = options["enableTidbExtension"]
        self._old_values: bool = options["debeziumOutputOldValue"]
        self._cluster: str = options["clusterId"]
        self.kinds = frozenset({"row", "ddl", "watermark"} if self._extension else {"row", "ddl"})
        self._plans = EncodePlans(
            context,
            self._cluster,
            with_schema=not options["debeziumDisableSchema"],
            tidb_types=self._extension,
        )
        self._ends = {
            "ddl": (self._plans.end(DDL_KEY), self._plans.end(DDL_VALUE)),
            "watermark": (
                self._plans.end(key_schema_of(f"{sanitized(self._cluster)}.watermark", [])),
                self._plans.end(envelope_schema(f"{sanitized(self._cluster)}.watermark", [])),
            ),
        }

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        if not table.columns:
            return None
        return RowMessages(
            {
                op: row_message(op, table, self._plans, self._cluster, old_values=self._old_values)
                for op in OP_WORDS
                if op != "truncate"
            }
        )

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return [self._row(event)]
        assert isinstance(event, SchemaChange | Watermark)
        assert event.commit_ts is not None
        times = event.commit_ts, event.commit_ts >> 18
        if isinstance(event, SchemaChange):
            key: dict[str, Any] = {"databaseName": event.database}
            value = {
                "source": source(self._cluster, event.database, event.table, event.schema, *times),
                "ts_ms": self._context.emit_millis(event),
                "databaseName": event.database,
                "schemaName": event.schema,
                "ddl": event.query,
                "tableChanges": table_changes(event),
            }
            return [self._message(key, value, *self._ends["ddl"])]
        value = {
            "source": source(self._cluster, "", "", None, *times),
            "ts_ms": self._context.emit_millis(event),
            "transaction": None,
            "op": "m",
        }
        return [self._message({}, value, *self._ends["watermark"])]

    def _row(self, event: RowChange) -> Message:
        table = event.table
        assert event.commit_ts is not None
        plan = self._plans.find(table)
        if plan.unsure and self._plans.with_schema:
            # The schema has the unit of each message; without one it is milliseconds.
            fine = tuple(name for name in plan.unsure if _has_microseconds(event, name))
            if fine:
                plan = self._plans.find(table, fine)
        value = row_head(
            self._cluster,
            table,
            event.op,
            commit_ts=event.commit_ts,
            source_millis=event.commit_ts >> 18,
            emit_millis=self._context.emit_millis(event),
            transaction=(event.extra or {}).get("transaction"),
        )
        key: dict[str, Any] = {}
        if event.op == "delete":
            value["after"] = None
            before = self._deleted(event, plan)
            key = self._image(event.before, plan)
            value["before"] = key if before else None
        elif event.op == "truncate":
            value["before"] = value["after"] = None
        else:
            if event.op != "update":
                value["before"] = None
            elif self._old_values and event.before is not None:
                value["before"] = self._image(self._whole(event.before, plan), plan)
            key = value["after"] = self._image(self._whole(event.after, plan), plan)
        keys = {name: key[name] for name in plan.keys if name in key}
        return self._message(keys, value, plan.key_end, plan.value_end)

    def _deleted(self, event: RowChange, plan: EncodePlan) -> bool:
        """Whether the delete has an image, and not its key only."""
        image = event.before
        if image is not None and not image.complete and image.values.keys() == set(plan.keys):
            return False
        self._whole(image, plan)
        return True

    def _whole(self, image: Image | None, plan: EncodePlan) -> Image:
        if image is None:
            raise UnsupportedEventError("the row has no image")
        if not image.complete or len(image.values) < len(plan.print_row):
            raise UnsupportedEventError(
                "the row is incomplete, which Debezium's JSON has no mark for"
            )
        return image

    def _image(self, image: Image | None, plan: EncodePlan) -> dict[str, Any]:
        if image is None:
            raise UnsupportedEventError("the row has no image")
        return plan.print_row(image.values)

    def _message(
        self, key: dict[str, Any], value: dict[str, Any], key_end: bytes, value_end: bytes
    ) -> Message:
        message = Message(
            self._large.compressed(b'{"payload":%b%b' % (dumps(key), key_end)),
            self._large.compressed(b'{"payload":%b%b' % (dumps(value), value_end)),
        )
        self._large.check(message.key, message.value or b"")
        return message


def _has_microseconds(event: RowChange, name: str) -> bool:
    for image in (event.before, event.after):
        value = image.values.get(name) if image is not None else None
        if isinstance(value, datetime) and value.microsecond % 1_000:
            return True
    return False
