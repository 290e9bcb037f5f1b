"""The Avro encoding, written: the way back of ``avro``, which has the schema.

What JSON leaves out Avro writes as null or false.  The members of maps, whose order is
random with TiCDC, are in the order of the columns.
"""

from __future__ import annotations

from typing import Any, Final

from cdcfmt_core import EncoderContext
from cdcfmt_core.avro_output import (
    NULL,
    near_long_writer,
    write_array,
    write_boolean,
    write_long,
    write_optional,
    write_text,
)
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Op, RowChange, SchemaChange, TableSchema
from cdcfmt_core.mysql.text_output import BAD_VALUE, value_error
from cdcfmt_core.row_functions import RowFunction, Values
from cdcfmt_core.row_messages import Checksum, Members, Number, OfExtra, RowMessage, Which
from cdcfmt_simple.avro_cells import cell_of
from cdcfmt_simple.avro_schema_output import signed, write_table_schema
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
_NO_IMAGE: Final = [NULL]
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
        self._whole = 2 * len(self._columns) + 2
        """Of how many parts an image with all columns consists."""
        self._write_commit_ts = near_long_writer()
        self._write_build_ts = near_long_writer()
        self._write_table_id = near_long_writer()
        self._write_version = near_long_writer()
        self._members = {column.name: column.member for column in self._columns}
        self._cells = RowFunction(self._plain_cells, self._source)
        self._cells_again = RowFunction(self._plain_again, self._source_again, "other", "cells")

    def write(
        self,
        event: RowChange,
        table_id: int,
        version: int,
        build_ts: int,
        marks: Marks | None = None,
    ) -> bytes:
        after, before = event.after, event.before
        only = None if marks is None else marks.only
        parts = [
            self._place,
            self._write_table_id(table_id),
            _WORD_OF[event.op],
            self._write_commit_ts(event.commit_ts or 0),
            self._write_build_ts(build_ts),
            self._write_version(signed(version)),
            _NO_MARKS if marks is None else _marks(marks),
        ]
        # What an update left as it was is written once.
        cells = _NO_IMAGE if after is None else self._image(after.values, only)
        parts += cells
        if before is None:
            parts.append(NULL)
        elif after is None or len(cells) != self._whole:
            parts += self._image(before.values, only)
        else:
            parts += self._image(before.values, only, after.values, cells)
        return b"".join(parts)

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

    def _image(
        self,
        values: Values,
        only: tuple[str, ...] | None,
        other: Values | None = None,
        cells: list[bytes] | None = None,
    ) -> list[bytes]:
        """``other`` is the row's other image, whole, with its ``cells``: most are the same."""
        if only is None and len(values) == len(self._columns):
            try:
                if other is None:
                    return self._cells.call(values)
                return self._cells_again.call(values, other, cells)
            except (*BAD_VALUE, KeyError):
                pass
        return self._image_carefully(values, only)

    def _image_carefully(self, values: Values, only: tuple[str, ...] | None) -> list[bytes]:
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
        return [b"\x02", write_array(written, bytes)]

    def _plain_cells(self, values: Values) -> list[bytes]:
        cells = [self._begin]
        for column in self._columns:
            value = values[column.name]
            cells += (column.null, b"") if value is None else (column.head, column.render(value))
        cells.append(_END)
        return cells

    def _plain_again(self, values: Values, other: Values, cells: list[bytes]) -> list[bytes]:
        return self._plain_cells(values)

    def _source(self, *, again: bool = False) -> tuple[str, dict[str, Any]]:
        names: dict[str, Any] = {"begin": self._begin, "end": _END}
        parts = ["begin"]
        for number, column in enumerate(self._columns):
            names[f"head_{number}"], names[f"null_{number}"] = column.head, column.null
            names[f"render_{number}"] = column.render
            written = f"render_{number}(value)"
            if again:
                same = f"value {'==' if column.alike else 'is'} other[{column.name!r}]"
                written = f"cells[{len(parts) + 1}] if {same} else {written}"
            parts += (
                f"null_{number} if (value := row[{column.name!r}]) is None else head_{number}",
                f'b"" if value is None else {written}',
            )
        return f"[{', '.join([*parts, 'end'])}]", names

    def _source_again(self) -> tuple[str, dict[str, Any]]:
        return self._source(again=True)


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
