"""Events to Canal-JSON messages: TiCDC's, and those of Alibaba Canal.

Sources: TiCDC Canal-JSON, "DDL Event", "DML Event", "WATERMARK Event"; the order of fields
and the escapes are those of TiCDC's and Canal's own messages.  One row is one message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import orjson

from cdcfmt_canal_json.encode_plans import EncodePlan, EncodePlans
from cdcfmt_canal_json.message import TYPE_OF_OP, WATERMARK
from cdcfmt_canal_json.templates import CANAL, TICDC, Template
from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
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
from cdcfmt_core.toolkit.images import executed_millis, images_of
from cdcfmt_core.toolkit.json_output import dumps_row, escape_for_go, valid_text
from cdcfmt_core.toolkit.large_message_output import KeyValue
from cdcfmt_core.toolkit.row_messages import (
    Member,
    Members,
    Number,
    OfExtra,
    Part,
    RowMessage,
    RowMessages,
    Which,
)

_ONLY_HANDLE_KEY = b',"onlyHandleKey":true'


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer.

    :raises OptionError: if options do not go together.
    """
    return _Encoder(options, context)


class _Encoder(Encoder):
    hints: ClassVar[dict[Kind, str]] = {"watermark": "set enableTidbExtension=true"}

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._context = context
        self._large = context.large_messages
        self._extension: bool = options["enableTidbExtension"]
        self._layout: Template = TICDC if options["dialect"] == "ticdc" else CANAL
        self._only_updated = options["onlyOutputUpdatedColumns"] or options["contentCompatible"]
        self._handle_key_deletes = options["deleteOnlyOutputHandleKeyColumns"]
        full_types = options["contentCompatible"]
        if self._layout is CANAL:
            if self._extension:
                raise OptionError("option enableTidbExtension: only TiCDC's dialect has it")
            self._only_updated = full_types = True
        if self._large.handle != "none" and not self._extension:
            raise OptionError(
                "option largeMessageHandleOption: canal-json says what was left out in the "
                "extension only; set enableTidbExtension=true"
            )
        self._plans = EncodePlans(context, self._layout, full_types=full_types)
        self.kinds = frozenset({"row", "ddl", "watermark"} if self._extension else {"row", "ddl"})
        self.needs_commit_ts = self._extension

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        plan = self._plans.find(table)
        if not table.columns:
            return None
        return RowMessages({op: RowMessage(self._parts(op, plan)) for op in TYPE_OF_OP})

    def _parts(self, op: Op, plan: EncodePlan) -> tuple[Part, ...]:
        """A message of this operation, of a row with all columns, as data for the kernel."""
        image: Which = "before" if op == "delete" else "after"
        labels = plan.labels(plan.handle if op == "delete" and self._cuts(plan) else None)
        columns = {name: Member(label) for name, label in labels.items()}
        old: Part = "null"
        if op == "update":
            old = Members("before", columns, "[{", "}]", changed=self._only_updated)
        sql_type, mysql_type = plan.type_parts(labels, image)
        extension: list[Part] = []
        if self._extension:
            extension = [',"_tidb":{"commitTs":', Number("commit_ts"), "}"]
        return self._layout.row_parts(
            {
                **{name.decode(): [text.decode()] for name, text in plan.names.items()},
                "type": [TYPE_OF_OP[op].decode()],
                "es": [Number("source_millis")],
                "ts": [Number("emit_millis")],
                "sqlType": sql_type,
                "mysqlType": mysql_type,
                "old": [old],
                "data": [Members(image, columns)],
                "_tidb": extension,
                "gtid": [OfExtra("gtid", "text", '""')],
                "id": [OfExtra("id", "integer", "0")],
            }
        )

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return [self._row(event)]
        if isinstance(event, SchemaChange):
            value = self._schema_change(event)
        else:
            assert isinstance(event, Watermark)
            value = self._watermark(event)
        return [self._large.message(value)]

    def _row(self, event: RowChange) -> Message:
        plan = self._plans.find(event.table)
        row, old = images_of(event)
        said, only_handle = b"", False
        if event.op == "delete" and self._handle_key_deletes:
            # What came with its key only is that already.
            only_handle = row.complete and self._cuts(plan)
        elif not (row.complete and (old is None or old.complete)):
            said = self._mark(event, row, plan)
        value = self._value(event, plan, row, old, only_handle, said)
        value = self._large.compressed(value)
        if self._large.fits(None, value):
            return Message(None, value)

        def rewrite(location: str | None) -> KeyValue:
            if location is None:
                said = _ONLY_HANDLE_KEY
                if not plan.handle:
                    raise EncodeError(
                        "the message is larger than maxMessageBytes and the table has no key "
                        "columns to cut it down to; raise maxMessageBytes or use claim checks"
                    )
            else:
                said = b',"claimCheckLocation":' + escape_for_go(orjson.dumps(location))
            reduced = self._value(event, plan, row, old, True, said)
            return None, self._large.compressed(reduced)

        return Message(*self._large.replace((None, value), rewrite))

    def _cuts(self, plan: EncodePlan) -> bool:
        """Whether deleted rows are cut down to their key; without one nothing can be left out."""
        return self._handle_key_deletes and bool(plan.handle)

    def _mark(self, event: RowChange, row: Image, plan: EncodePlan) -> bytes:
        """The mark of an incomplete row."""
        if self._extension:
            return _ONLY_HANDLE_KEY
        if event.op == "delete" and row.values.keys() <= set(plan.handle):
            return b""
        raise UnsupportedEventError(
            "the row is incomplete, which canal-json says in its extension only; set "
            "enableTidbExtension=true"
        )

    def _value(
        self,
        event: RowChange,
        plan: EncodePlan,
        row: Image,
        old: Image | None,
        only_handle: bool,
        said: bytes,
    ) -> bytes:
        """The message; ``said`` are more members of the extension."""
        values = row.values
        if only_handle:
            values = {name: values[name] for name in plan.handle if name in values}
        texts = plan.print_row(values)
        typed = values
        old_json = b"null"
        if old is not None:
            old_values = old.values
            if only_handle:
                old_values = {n: old_values[n] for n in plan.handle if n in old_values}
            old_texts = plan.print_row(old_values)
            if len(values) < len(plan.print_row):
                # Readers look up the types of `old`, too, and TiCDC's fails without.
                typed = old_values | values
            if self._only_updated:
                old_texts = {
                    name: text for name, text in old_texts.items() if texts.get(name, "") != text
                }
            elif texts.keys() - old_texts.keys() and not said:
                raise UnsupportedEventError(
                    "the image before the update lacks columns, which would mean that they did "
                    "not change"
                )
            old_json = b"[" + self._dumps(old_texts) + b"]"
        sql_type, mysql_type = plan.types(typed)
        return self._layout.row % {
            **plan.names,
            b"type": TYPE_OF_OP[event.op],
            b"sqlType": sql_type,
            b"mysqlType": mysql_type,
            b"old": old_json,
            b"data": self._dumps(texts),
            **self._common(event, b"commitTs", said),
        }

    def _common(self, event: Any, commit_ts_name: bytes, said: bytes = b"") -> dict[bytes, Any]:
        """The common fields; ``said`` are more members of the extension."""
        common: dict[bytes, Any] = {
            b"es": _milliseconds(event),
            b"ts": self._context.emit_millis(event),
            b"_tidb": b"",
        }
        if self._extension:
            common[b"_tidb"] = b',"_tidb":{"%b":%d%b}' % (commit_ts_name, event.commit_ts, said)
        if self._layout is CANAL:
            extra = event.extra or {}
            gtid, id_ = extra.get("gtid"), extra.get("id")
            common[b"gtid"] = orjson.dumps(gtid if isinstance(gtid, str) else "")
            common[b"id"] = id_ if type(id_) is int else 0
        return common

    def _dumps(self, texts: dict[str, Any]) -> bytes:
        return escape_for_go(dumps_row(texts, orjson.dumps, self._context))

    def _schema_change(self, event: SchemaChange) -> bytes:
        return self._layout.other % {
            b"database": self._name(event.database),
            b"table": self._name(event.table),
            b"isDdl": b"false" if (event.extra or {}).get("is_ddl") is False else b"true",
            b"type": event.ddl_type.encode(),
            b"sql": escape_for_go(orjson.dumps(valid_text(event.query, self._context))),
            **self._common(event, b"commitTs"),
        }

    def _watermark(self, event: Watermark) -> bytes:
        return self._layout.other % {
            b"database": b'""',
            b"table": b'""',
            b"isDdl": b"false",
            b"type": WATERMARK.encode(),
            b"sql": b'""',
            **self._common(event, b"watermarkTs"),
        }

    def _name(self, name: str) -> bytes:
        try:
            return escape_for_go(orjson.dumps(name))
        except TypeError:
            raise EncodeError("a name is not UTF-8", sample=name) from None


def _milliseconds(event: Any) -> int:
    """When it was executed: TiCDC's ``es`` is the time in the commit_ts."""
    return executed_millis(event) if event.commit_ts is None else int(event.commit_ts >> 18)
