"""The Avro encoding, written: the way back of ``message``, which has the schema.

What JSON leaves out Avro writes as null or false.  The members of maps, whose order is
random with TiCDC, are in the order of the columns.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core import EncoderContext
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Image, Op, RowChange, SchemaChange, TableSchema
from cdcfmt_core.mysql.text_output import BAD_VALUE, value_error
from cdcfmt_core.toolkit.avro_output import (
    NULL,
    write_array,
    write_boolean,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.toolkit.row_messages import Checksum, Members, Number, OfExtra, RowMessage, Which
from cdcfmt_simple.avro.cells import cell_of
from cdcfmt_simple.avro.table_schemas import signed, write_table_schema
from cdcfmt_simple.encode import Marks
from cdcfmt_simple.instants import zone_with_location
from cdcfmt_simple.message import DDL_WORDS, Wire

_HEAD: Final = b"\x16"
_WATERMARK, _BOOTSTRAP, _DDL, _DML = (
    _HEAD + write_long(number) * 2 + write_long(1) for number in range(4)
)
"""Up to ``version``: the message's number in the union, its type, and that of its payload."""

_WORD_OF: Final[dict[Op, bytes]] = {
    "insert": write_long(0),
    "update": write_long(1),
    "delete": write_long(2),
}
_NO_MARKS: Final = NULL * 3
_IMAGES: Final[tuple[Which, Which]] = ("after", "before")
"""In the order of ``data`` and ``old``."""
_END: Final = b"\x00"
"""Of a map."""


class AvroForm:
    """Writes messages as Avro."""

    def __init__(self, context: EncoderContext) -> None:
        self._context = context

    def open_plan(self, schema: TableSchema) -> AvroRowPlan:
        return AvroRowPlan(schema, self._context)

    def bootstrap(self, table: Wire, build_ts: int) -> bytes:
        return _BOOTSTRAP + write_long(build_ts) + write_table_schema(table)

    def watermark(self, commit_ts: int, build_ts: int) -> bytes:
        return _WATERMARK + write_long(commit_ts) + write_long(build_ts)

    def ddl(
        self, event: SchemaChange, build_ts: int, table: Wire | None, previous: Wire | None
    ) -> bytes:
        return b"".join(
            (
                _DDL,
                write_long(DDL_WORDS.index(event.ddl_type)),
                write_text(event.query),
                write_long(event.commit_ts or 0),
                write_long(build_ts),
                write_optional(table, write_table_schema),
                write_optional(previous, write_table_schema),
            )
        )


# Rows


class AvroRowPlan:
    """How the rows of one table are written."""

    def __init__(self, schema: TableSchema, context: EncoderContext) -> None:
        self._place = _DML + write_text(schema.database) + write_text(schema.table)
        zone, location = zone_with_location(context)
        self._columns = tuple(cell_of(column, zone, location) for column in schema.columns)
        self._begin = b"\x02" + write_long(len(self._columns))
        self._members = {column.name: column.member for column in self._columns}

    def write(
        self,
        event: RowChange,
        table_id: int,
        version: int,
        build_ts: int,
        marks: Marks | None = None,
    ) -> bytes:
        only = None if marks is None else marks.only
        return b"".join(
            (
                self._place,
                write_long(table_id),
                _WORD_OF[event.op],
                write_long(event.commit_ts or 0),
                write_long(build_ts),
                write_long(signed(version)),
                _NO_MARKS if marks is None else _marks(marks),
                self._image(event.after, only),
                self._image(event.before, only),
            )
        )

    def message(self, op: Op, version: int, checksum: Checksum | None) -> RowMessage:
        images = (
            Members(which, self._members, self._begin, _END, NULL, separator="")
            for which in _IMAGES
        )
        return RowMessage(
            (
                self._place,
                OfExtra("table_id", "integer", write_long(0)),
                _WORD_OF[op],
                Number("commit_ts"),
                Number("emit_millis"),
                OfExtra("schema_version", "integer", write_long(signed(version))),
                *((_NO_MARKS,) if checksum is None else (NULL * 2 + b"\x02", checksum)),
                *images,
            ),
            wire="avro",
        )

    def _image(self, image: Image | None, only: tuple[str, ...] | None) -> bytes:
        if image is None:
            return NULL
        values = image.values
        unknown = values.keys() - {column.name for column in self._columns}
        if unknown:
            raise EncodeError("the table's schema has no such column", column=min(unknown))
        written = []
        for column in self._columns:
            name = column.name
            if name not in values or (only is not None and name not in only):
                continue
            value = values[name]
            try:
                written.append(column.null if value is None else column.head + column.render(value))
            except BAD_VALUE as error:
                raise value_error(name, value, error) from error
        return b"\x02" + write_array(written, bytes)


def _marks(marks: Marks) -> bytes:
    return (
        write_optional(marks.claim_check or None, write_text)
        + write_optional(marks.handle_key_only or None, write_boolean)
        + write_optional(marks.checksum, _checksum)
    )


def _checksum(wire: Wire) -> bytes:
    return (
        write_long(wire["version"])
        + write_boolean(wire["corrupted"])
        + write_long(wire["current"])
        + write_long(wire["previous"])
    )
