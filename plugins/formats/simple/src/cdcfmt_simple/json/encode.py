"""Encoder of JSON messages in TiCDC's form: Go's ``encoding/json``, names in order of bytes."""

from __future__ import annotations

from typing import Any, Final

import orjson

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Op, SchemaChange, TableSchema
from cdcfmt_core.types import Binary, Geometry, Timestamp
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import Wire
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.json_output import escape_for_go, go_order, valid_text
from cdcfmt_toolkit.message_writer import MessageWriter
from cdcfmt_toolkit.row_messages import (
    MYSQL_TEXT,
    Checksum,
    ColumnTemplate,
    ExtraValue,
    ImageTemplate,
    Number,
    Part,
    Placeholder,
    RowMessage,
)

_BASE64: Final = Encoding("base64")


class JsonForm:
    """Writes messages as JSON."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context
        self._zone, self._location = zone_with_location(context)

    def writer(self, table: TableSchema) -> MessageWriter:
        return MessageWriter(
            "json", self._context, dumps=orjson.dumps, table=table, time_zone=self._zone
        )

    def rows(
        self, table: TableSchema, version: int, checksum: Checksum | None
    ) -> dict[Op, RowMessage]:
        writer = self.writer(table)
        columns = {
            column.name: self._template(column, writer) for column in go_order(table.columns)
        }
        names = writer.names(database=table.database, table=table.table)
        version_head = ',"schemaVersion":'
        checksum_parts: tuple[Part, ...] = () if checksum is None else (',"checksum":', checksum)

        def message(word: str) -> RowMessage:
            return RowMessage(
                (
                    f'{{"version":1,{names}',
                    ExtraValue("table_id", "integer", "", '"tableID":', ",", zero=""),
                    f'"type":"{word}","commitTs":',
                    Number("commit_ts"),
                    ',"buildTs":',
                    Number("emit_millis"),
                    ExtraValue(
                        "schema_version",
                        "integer",
                        f"{version_head}{version}",
                        version_head,
                        zero="",
                    ),
                    Placeholder(),
                    *checksum_parts,
                    ImageTemplate("after", columns, ',"data":{', missing=""),
                    ImageTemplate("before", columns, ',"old":{', missing=""),
                    "}",
                )
            )

        return {
            "insert": message("INSERT"),
            "update": message("UPDATE"),
            "delete": message("DELETE"),
        }

    def _template(self, column: Column, writer: MessageWriter) -> ColumnTemplate:
        if isinstance(column.type, Geometry):
            raise EncodeError("the Simple Protocol has no geometry", column=column.name)
        label = writer.name(column.name) + ":"
        if isinstance(column.type, Timestamp):
            location = writer.json(self._location)
            return ColumnTemplate(label, MYSQL_TEXT, f'{{"location":{location},"value":', "}")
        return ColumnTemplate(label, _BASE64 if isinstance(column.type, Binary) else MYSQL_TEXT)

    def mark(self, claim_check: str) -> bytes:
        mark = b',"handleKeyOnly":true'
        if claim_check:
            mark = b',"claimCheckLocation":' + escape_for_go(orjson.dumps(claim_check)) + mark
        return mark

    def checksum(self, wire: Wire) -> bytes:
        return orjson.dumps(wire)

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        return b'{"version":1,"type":"BOOTSTRAP","commitTs":0,"buildTs":%d,"tableSchema":%b}' % (
            build_ts,
            self._text(table),
        )

    def watermark(self, commit_ts: int, build_ts: int) -> bytes:
        return b'{"version":1,"type":"WATERMARK","commitTs":%d,"buildTs":%d}' % (
            commit_ts,
            build_ts,
        )

    def ddl(
        self, event: SchemaChange, build_ts: int, table: Wire | None, previous: Wire | None
    ) -> bytes:
        data = b'{"version":1,"type":"%b","sql":%b,"commitTs":%d,"buildTs":%d' % (
            event.ddl_type.encode(),
            self._text(event.query),
            event.commit_ts or 0,
            build_ts,
        )
        for field, schema in ((b"tableSchema", table), (b"preTableSchema", previous)):
            if schema is not None:
                data += b',"%b":%b' % (field, self._text(schema))
        return data + b"}"

    def _text(self, value: Any) -> bytes:
        try:
            data = orjson.dumps(value)
        except TypeError:
            data = orjson.dumps(_valid(value, self._context))
        return escape_for_go(data)


def _valid(value: Any, context: EncoderContext) -> Any:
    """A value in which all texts, also in lists and objects, are valid UTF-8."""
    if isinstance(value, str):
        return valid_text(value, context)
    if isinstance(value, list):
        return [_valid(item, context) for item in value]
    if isinstance(value, dict):
        return {name: _valid(item, context) for name, item in value.items()}
    return value
