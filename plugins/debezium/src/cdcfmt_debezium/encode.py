"""Events to Debezium messages, as TiCDC writes them.

Sources: TiCDC Debezium, "Message format"; DDL messages and watermarks are not in its
document: they are as its encoder writes them (``debezium/codec.go``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final

import attrs
import orjson

from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import OptionError, UnsupportedEventError
from cdcfmt_core.events import (
    Event,
    Image,
    Kind,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_core.json_output import NO_BYTES, escape_for_go, valid_name
from cdcfmt_core.mysql.text_output import RowPrinter, column_printers
from cdcfmt_core.mysql.type_output import column_type
from cdcfmt_core.types import DateTime, is_lossless_text
from cdcfmt_debezium.connect_output import (
    DDL_KEY,
    DDL_VALUE,
    envelope_schema,
    field_of,
    key_schema,
    sanitized,
    schema_name,
)
from cdcfmt_debezium.ddl_output import table_changes
from cdcfmt_debezium.message import TICDC
from cdcfmt_debezium.values_output import renderer

_COLUMN_BYTES: Final = 600
"""Of a column of a plan, beside its schema."""
_WORDS: Final[dict[Op, str]] = {
    "insert": "c",
    "update": "u",
    "delete": "d",
    "read": "r",
    "truncate": "t",
}
_VERSION: Final = "2.4.0.Final"
"""The version of Debezium that TiCDC says it writes."""


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer.

    :raises OptionError: for large-message handling, which Debezium does not have.
    """
    return _Encoder(options, context)


@attrs.define
class _Plan:
    """A table's renderers; ``schema`` and ``key_schema`` are the ends of value and key.

    ``unsure`` are DATETIME columns whose digits nobody knows: milliseconds serve until a
    value has more.
    """

    unsure: tuple[str, ...]
    print_row: RowPrinter
    keys: tuple[str, ...]
    schema: bytes
    key_schema: bytes


class _Encoder(Encoder):
    needs_commit_ts = True
    ops = frozenset(_WORDS)
    hints: ClassVar[dict[Kind, str]] = {"watermark": "set enableTidbExtension=true"}

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._large = context.large_messages
        if self._large.handle != "none":
            raise OptionError(
                f"option largeMessageHandleOption: debezium has no {self._large.handle}"
            )
        self._with_schema = not options["debeziumDisableSchema"]
        self._extension: bool = options["enableTidbExtension"]
        self._old_values: bool = options["debeziumOutputOldValue"]
        self._cluster: str = options["clusterId"]
        self.kinds = frozenset({"row", "ddl", "watermark"} if self._extension else {"row", "ddl"})
        self._plans: Cache[tuple[TableSchema, tuple[str, ...]], _Plan] = Cache()
        self._ends = {
            "ddl": (self._end(DDL_KEY), self._end(DDL_VALUE)),
            "watermark": (
                self._end(key_schema(f"{sanitized(self._cluster)}.watermark", [])),
                self._end(envelope_schema(f"{sanitized(self._cluster)}.watermark", [])),
            ),
        }

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return [self._row(event)]
        if isinstance(event, SchemaChange):
            key: dict[str, Any] = {"databaseName": event.database}
            value = {
                "source": self._source(event, event.database, event.table, event.schema),
                "ts_ms": self._ts(event),
                "databaseName": event.database,
                "schemaName": event.schema,
                "ddl": event.query,
                "tableChanges": table_changes(event),
            }
            return [self._message(key, value, *self._ends["ddl"])]
        assert isinstance(event, Watermark)
        value = {
            "source": self._source(event, "", "", None),
            "ts_ms": self._ts(event),
            "transaction": None,
            "op": "m",
        }
        return [self._message({}, value, *self._ends["watermark"])]

    def _row(self, event: RowChange) -> Message:
        table = event.table
        plan = self._plan(table, ())
        if plan.unsure and self._with_schema:
            # The schema tells the unit of each message; without one it is milliseconds.
            fine = tuple(name for name in plan.unsure if _has_microseconds(event, name))
            if fine:
                plan = self._plan(table, fine)
        value: dict[str, Any] = {
            "source": self._source(event, table.database, table.table, table.schema),
            "ts_ms": self._ts(event),
            "transaction": (event.extra or {}).get("transaction"),
            "op": _WORDS[event.op],
        }
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
        return self._message(keys, value, plan.key_schema, plan.schema)

    def _deleted(self, event: RowChange, plan: _Plan) -> bool:
        """Whether the delete has an image; where it has only its key, that tells the row."""
        image = event.before
        if image is not None and not image.complete and image.values.keys() == set(plan.keys):
            return False
        self._whole(image, plan)
        return True

    def _whole(self, image: Image | None, plan: _Plan) -> Image:
        if image is None:
            raise UnsupportedEventError("the row has no image")
        if not image.complete or len(image.values) < len(plan.print_row):
            raise UnsupportedEventError(
                "the row is incomplete, which Debezium's JSON has no sign for"
            )
        return image

    def _image(self, image: Image | None, plan: _Plan) -> dict[str, Any]:
        if image is None:
            raise UnsupportedEventError("the row has no image")
        return plan.print_row(image.values)

    def _plan(self, table: TableSchema, fine: tuple[str, ...]) -> _Plan:
        plan = self._plans.get((table, fine))
        if plan is None:
            plan = self._make_plan(table, fine)
            self._plans.add((table, fine), plan, table_size(table, _COLUMN_BYTES))
        return plan

    def _make_plan(self, table: TableSchema, fine: tuple[str, ...]) -> _Plan:
        fields, units = {}, {}
        for column in table.columns:
            valid_name(column.name)
            logical = column.type
            nullable = _nullable(column.nullable, column.name in table.key_columns)
            units[column.name] = (
                isinstance(logical, DateTime)
                and (logical.fsp or 0) <= 3
                and column.name not in fine
            )
            fields[column.name] = field_of(
                column,
                column_type(column),
                nullable=nullable,
                milliseconds=units[column.name],
                tidb_type=self._extension,
            )
        printers = []
        for column in table.columns:
            field = fields[column.name]
            ((name, render),) = column_printers(
                (column,),
                lambda logical, f=field, name=column.name: renderer(  # type: ignore[misc]
                    logical,
                    nullable=f["optional"],
                    milliseconds=units[name],
                    counts=self._context.counts,
                ),
            )
            printers.append((name, render))
        name = schema_name(self._cluster, valid_name(table.database), valid_name(table.table))
        # In the key they have the order of the table.
        keys = tuple(n for n in table.column_names if n in table.key_columns)
        unsure = tuple(column.name for column in table.columns if column.type == DateTime(None))
        return _Plan(
            unsure,
            RowPrinter(tuple(printers)),
            keys,
            self._end(envelope_schema(name, fields.values())),
            self._end(key_schema(name, [fields[key] for key in keys])),
        )

    def _source(self, event: Any, database: str, table: str, schema: str | None) -> dict[str, Any]:
        source = {
            "version": _VERSION,
            "connector": TICDC,
            "name": self._cluster,
            "ts_ms": event.commit_ts >> 18,
            "snapshot": "true" if getattr(event, "op", None) == "read" else "false",
            "db": database,
            "table": table,
            "server_id": 0,
            "gtid": None,
            "file": "",
            "pos": 0,
            "row": 0,
            "thread": 0,
            "query": None,
            "commit_ts": event.commit_ts,
            "cluster_id": self._cluster,
        }
        return source if schema is None else source | {"schema": schema}

    def _ts(self, event: Any) -> int:
        """When it was written, in milliseconds."""
        time = event.emit_time
        return int((self._context.now() if time is None else time) // 1_000)

    def _end(self, schema: dict[str, Any]) -> bytes:
        """What follows the payload."""
        return b',"schema":%b}' % orjson.dumps(schema) if self._with_schema else b"}"

    def _message(
        self, key: dict[str, Any], value: dict[str, Any], key_end: bytes, value_end: bytes
    ) -> Message:
        message = Message(
            self._large.compressed(b'{"payload":%b%b' % (_dumps(key), key_end)),
            self._large.compressed(b'{"payload":%b%b' % (_dumps(value), value_end)),
        )
        self._large.check(message.key, message.value or b"")
        return message


def _nullable(nullable: bool | None, is_key: bool) -> bool:
    """Where nobody knows, NULL is allowed but in a key."""
    return not is_key if nullable is None else nullable


def _has_microseconds(event: RowChange, name: str) -> bool:
    for image in (event.before, event.after):
        value = image.values.get(name) if image is not None else None
        if isinstance(value, datetime) and value.microsecond % 1_000:
            return True
    return False


def _dumps(payload: dict[str, Any]) -> bytes:
    try:
        return escape_for_go(orjson.dumps(payload), html=False)
    except TypeError:
        return escape_for_go(orjson.dumps(_with_bytes(payload)), html=False)


def _with_bytes(value: Any) -> Any:
    """Texts that are not UTF-8 as JSON with their bytes as they are, as TiCDC writes them."""
    if isinstance(value, dict):
        return {name: _with_bytes(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_bytes(inner) for inner in value]
    if isinstance(value, str) and not is_lossless_text(value):
        text = json.dumps(value, ensure_ascii=False)
        text = NO_BYTES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
        return orjson.Fragment(text.encode("utf-8", "surrogateescape"))
    return value
