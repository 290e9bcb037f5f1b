"""Encoder: events to Canal-JSON messages of TiCDC or of Alibaba Canal, one row per message.

Sources: TiCDC Canal-JSON, "DDL Event", "DML Event", "WATERMARK Event"; the order of fields
and the escapes are those of messages of TiCDC and Canal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from cdcfmt_canal_json.encode_plans import (
    CANAL,
    CANALS_OWN,
    TICDC,
    TIMES,
    CanalRows,
    handle_of,
    parts_of,
)
from cdcfmt_canal_json.message import WATERMARK
from cdcfmt_core import Encoder, EncoderContext
from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
from cdcfmt_core.events import Event, Kind, Message, RowChange, SchemaChange, TableSchema
from cdcfmt_toolkit.images import images_of
from cdcfmt_toolkit.large_message_output import KeyValue
from cdcfmt_toolkit.row_messages import Number, Part, RowMessages
from cdcfmt_toolkit.row_rules import KernelRows

_ONLY_HANDLE_KEY: Final = b',"onlyHandleKey":true'


def open_encoder(options: Mapping[str, Any], context: EncoderContext) -> Encoder:
    """An encoder for one writer.

    :raises OptionError: if options contradict each other.
    """
    return _Encoder(options, context)


class _Encoder(KernelRows, Encoder):
    hints: ClassVar[dict[Kind, str]] = {"watermark": "set enableTidbExtension=true"}

    def __init__(self, options: Mapping[str, Any], context: EncoderContext) -> None:
        self._large = context.large_messages
        self._extension: bool = options["enableTidbExtension"]
        self._template = TICDC if options["dialect"] == "ticdc" else CANAL
        only_updated = options["onlyOutputUpdatedColumns"] or options["contentCompatible"]
        self._handle_key_deletes = options["deleteOnlyOutputHandleKeyColumns"]
        full_types = options["contentCompatible"]
        if self._template is CANAL:
            for name in ("enableTidbExtension", "deleteOnlyOutputHandleKeyColumns"):
                if options[name]:
                    raise OptionError(f"option {name}: only TiCDC's dialect has it")
            only_updated = full_types = True
        if self._large.handle != "none" and not self._extension:
            raise OptionError(
                "option largeMessageHandleOption: canal-json marks reduced messages only in the "
                "extension; set enableTidbExtension=true"
            )
        self._rows = CanalRows(
            context,
            self._template,
            extension=self._extension,
            full_types=full_types,
            only_updated=only_updated,
            cuts_deletes=self._handle_key_deletes,
        )
        self._writer = self._rows.writer()
        self.kinds = frozenset({"row", "ddl", "watermark"} if self._extension else {"row", "ddl"})
        self.needs_commit_ts = self._extension

    def row_messages(self, table: TableSchema) -> RowMessages | None:
        return self._rows.find(table).messages

    def encode(self, event: Event) -> list[Message]:
        if isinstance(event, RowChange):
            return [self._row(event)]
        if isinstance(event, SchemaChange):
            is_ddl = (event.extra or {}).get("is_ddl") is not False
            names = event.database, event.table
            value = self._other(event, event.ddl_type, *names, event.query, is_ddl=is_ddl)
        else:
            value = self._other(event, WATERMARK, time="watermarkTs")
        return [self._large.message(value)]

    def _row(self, event: RowChange) -> Message:
        rows = self._rows.find(event.table)
        mark = self._mark(event)
        key, value = rows.write(event, mark=mark)
        value = self._large.compressed(value)
        if self._large.fits(key, value):
            return Message(key, value)

        def rewrite(location: str | None) -> KeyValue:
            handle = handle_of(event.table)
            if location is not None:
                mark = f',"claimCheckLocation":{self._writer.json(location)}'.encode()
            elif handle:
                mark = _ONLY_HANDLE_KEY
            else:
                raise EncodeError(
                    "the message is larger than maxMessageBytes and the table has no key "
                    "columns to cut it down to; raise maxMessageBytes or use claim checks"
                )
            key, reduced = rows.write(event, mark=mark, only=handle)
            return key, self._large.compressed(reduced)

        return Message(*self._large.replace((key, value), rewrite))

    def _mark(self, event: RowChange) -> bytes | None:
        row, old = images_of(event)
        if row.complete and (old is None or old.complete):
            if old is not None and row.values.keys() - old.values.keys():
                raise UnsupportedEventError(
                    "the before image lacks columns, which would mean that they did not change"
                )
            return None
        if event.op == "delete" and self._handle_key_deletes:
            # A row with only its key is already in this form.
            return None
        if self._extension:
            return _ONLY_HANDLE_KEY
        if self._template is CANAL:
            raise UnsupportedEventError(
                "the row is incomplete, and those of Alibaba Canal are whole"
            )
        if event.op == "delete" and row.values.keys() <= set(handle_of(event.table)):
            return None
        raise UnsupportedEventError(
            "the row is incomplete, which canal-json marks only in its extension; set "
            "enableTidbExtension=true"
        )

    def _other(
        self,
        event: Event,
        type_: str,
        database: str = "",
        table: str = "",
        sql: str = "",
        *,
        is_ddl: bool = False,
        time: str = "commitTs",
    ) -> bytes:
        """A DDL or watermark message; ``time`` is the field name of its commit_ts."""
        extension: list[Part] = []
        if self._extension:
            extension = [f',"_tidb":{{"{time}":', Number("commit_ts"), "}"]
        slots: dict[str, Any] = {
            "database": [self._writer.name(database)],
            "table": [self._writer.name(table)],
            "isDdl": [self._writer.json(is_ddl)],
            "type": [self._writer.json(type_)],
            "sql": [self._writer.json(sql)],
            "_tidb": extension,
            **TIMES,
            **CANALS_OWN,
        }
        return self._writer.write(parts_of(self._template.other, slots), event)
