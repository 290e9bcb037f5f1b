"""The JSON encoding, written as TiCDC does: ``encoding/json`` of Go, names in order of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Op, RowChange, SchemaChange, TableSchema
from cdcfmt_core.mysql.text_output import RowPrinter, column_printers
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.json_output import dumps_row, escape_for_go, valid_name, valid_text
from cdcfmt_core.toolkit.row_messages import (
    MYSQL_TEXT,
    Checksum,
    Member,
    Members,
    Number,
    OfExtra,
    RowMessage,
)
from cdcfmt_core.toolkit.value_printers import PrinterTools, value_printer
from cdcfmt_core.types import Binary, Geometry, LogicalType, Timestamp
from cdcfmt_simple.encode import Marks
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import Wire

_BASE64: Final = Encoding("base64")
_TYPE_OF: Final[dict[Op, bytes]] = {"insert": b"INSERT", "update": b"UPDATE", "delete": b"DELETE"}


class JsonForm:
    """Writes messages as JSON."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context

    def open_plan(self, schema: TableSchema) -> JsonRowPlan:
        return JsonRowPlan(schema, self._context)

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


class JsonRowPlan:
    """How the rows of one table are written."""

    def __init__(self, schema: TableSchema, context: EncoderContext) -> None:
        self._context = context
        # Go sorts the members of a map by their bytes.
        columns = sorted(schema.columns, key=lambda column: valid_name(column.name).encode())
        renders = _Renders(context)
        self._print_row = RowPrinter(column_printers(tuple(columns), renders))
        self._members = {column.name: renders.member(column) for column in columns}
        self._place = b""
        for field, name in ((b"database", schema.database), (b"table", schema.table)):
            if name:
                text = escape_for_go(orjson.dumps(valid_name(name)))
                self._place += b'"%b":%b,' % (field, text)
        self._before_commit_ts = {
            op: b'"type":"%b","commitTs":' % word for op, word in _TYPE_OF.items()
        }

    def write(
        self,
        event: RowChange,
        table_id: int,
        version: int,
        build_ts: int,
        marks: Marks | None = None,
    ) -> bytes:
        only = None if marks is None else marks.only
        # As Go leaves out what is empty.
        return b'{"version":1,%b%b%b%d,"buildTs":%d%b%b%b%b}' % (
            self._place,
            b'"tableID":%d,' % table_id if table_id else b"",
            self._before_commit_ts[event.op],
            event.commit_ts or 0,
            build_ts,
            b',"schemaVersion":%d' % version if version else b"",
            b"" if marks is None else _marks(marks),
            b"" if event.after is None else b',"data":' + self._image(event.after.values, only),
            b"" if event.before is None else b',"old":' + self._image(event.before.values, only),
        )

    def message(self, op: Op, version: int, checksum: Checksum | None) -> RowMessage:
        return RowMessage(
            (
                b'{"version":1,' + self._place,
                OfExtra("table_id", "integer", "", '"tableID":', ",", zero=""),
                self._before_commit_ts[op],
                Number("commit_ts"),
                ',"buildTs":',
                Number("emit_millis"),
                OfExtra(
                    "schema_version",
                    "integer",
                    f',"schemaVersion":{version}',
                    ',"schemaVersion":',
                    zero="",
                ),
                *(() if checksum is None else (',"checksum":', checksum)),
                Members("after", self._members, ',"data":{', missing=""),
                Members("before", self._members, ',"old":{', missing=""),
                "}",
            )
        )

    def _image(self, values: dict[str, Any], only: tuple[str, ...] | None) -> bytes:
        if only is not None:
            values = {name: values[name] for name in only if name in values}
        return escape_for_go(dumps_row(self._print_row(values), orjson.dumps, self._context))


def _marks(marks: Marks) -> bytes:
    said = b""
    if marks.claim_check:
        said += b',"claimCheckLocation":' + escape_for_go(orjson.dumps(marks.claim_check))
    if marks.handle_key_only:
        said += b',"handleKeyOnly":true'
    if marks.checksum is not None:
        said += b',"checksum":' + orjson.dumps(marks.checksum)
    return said


class _Renders:
    """The renderer of a type."""

    def __init__(self, context: EncoderContext) -> None:
        self._zone, self._location = zone_with_location(context)

    def __call__(self, logical: LogicalType) -> Callable[[Any], Any]:
        if isinstance(logical, Geometry):
            raise EncodeError("the Simple Protocol has no geometry")
        encoding = _encoding(logical)
        print_value = value_printer(
            encoding, logical, PrinterTools(time_zone=self._zone, dumps=orjson.dumps)
        )
        if isinstance(logical, Timestamp):
            location = self._location
            return lambda value: {"location": location, "value": print_value(value)}
        return print_value

    def member(self, column: Column) -> Member:
        """The same as data for the kernel."""
        head = tail = ""
        if isinstance(column.type, Timestamp):
            location = escape_for_go(orjson.dumps(self._location)).decode()
            head, tail = f'{{"location":{location},"value":', "}"
        label = escape_for_go(orjson.dumps(column.name)).decode() + ":"
        return Member(label, _encoding(column.type), head, tail)


def _encoding(logical: LogicalType) -> Encoding:
    return _BASE64 if isinstance(logical, Binary) else MYSQL_TEXT


def _valid(value: Any, context: EncoderContext) -> Any:
    """Texts below lists and objects, too."""
    if isinstance(value, str):
        return valid_text(value, context)
    if isinstance(value, list):
        return [_valid(item, context) for item in value]
    if isinstance(value, dict):
        return {name: _valid(item, context) for name, item in value.items()}
    return value
