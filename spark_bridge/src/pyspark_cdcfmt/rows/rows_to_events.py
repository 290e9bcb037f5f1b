"""Conversion of events rows to events, the inverse of :mod:`pyspark_cdcfmt.rows.event_rows`.

The events shape lacks the list of completed columns of a before image, flags of columns, and the
schema before a DDL statement.  An image is complete if it has all of the row's ``columns``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, get_args

import attrs
import pyarrow as pa
from pyspark.sql.types import StructType

from cdcfmt_core.errors import DecodeError, EncodeError, join_names
from cdcfmt_core.events import (
    Corrupt,
    DdlType,
    Event,
    Heartbeat,
    Image,
    LogicalMessage,
    Message,
    Op,
    RowChange,
    SchemaChange,
    TableSchema,
    TableSchemaEvent,
    Transaction,
    Watermark,
)
from cdcfmt_core.texts import qualified
from pyspark_cdcfmt.rows.columns import ColumnCells, cells, column_cells, variant_cell
from pyspark_cdcfmt.rows.event_rows import ADDED_EXTRA
from pyspark_cdcfmt.rows.input_tables import InputTables

Source: TypeAlias = tuple[str | None, str | None, int | None]
"""Topic, path and partition that an event was read from."""

_OPS: frozenset[Op] = frozenset(get_args(Op))
_WANTED = {"delete": 0, "truncate": None}
"""The required image by op; the after image by default."""

_DDL_TYPES = frozenset(get_args(DdlType))
_IGNORED = frozenset({"commit_time", "headers"})
_STATUSES = frozenset({"begin", "commit", "rollback"})
_PLACE = ("topic", "path", "partition", "offset")
_NO_SOURCE: dict[str, Any] = {}


@attrs.define
class InputEvent:
    """An event to write, its source, and its order.

    :ivar order: compared among events with the same key and ``order_by``.
    """

    event: Event
    source: Source
    order_by: Any = None
    order: Any = None
    offset: int | None = None

    def encoded(self, encode: Callable[[Event], list[Message]]) -> list[Message]:
        """The messages of the event; errors name the position that it was read from."""
        try:
            return encode(self.event)
        except EncodeError as error:
            place = _place(*self.source, self.offset)
            if self.order_by == "_sequence":
                place = f" (_sequence {self.order})"
            raise error.at(reason=error.reason + place) from error


class EventInput:
    """Converts record batches to events.

    :param schema: checked by :func:`~pyspark_cdcfmt.rows.columns.check_events`.
    :param key_columns: override those of the rows.
    """

    def __init__(
        self, schema: StructType, tables: InputTables, key_columns: tuple[str, ...] = ()
    ) -> None:
        self._types = {field.name: field.dataType for field in schema.fields}
        self._tables = tables
        self._key_columns = key_columns
        tables.keys_are_an_option = bool(key_columns)

    def events(self, batches: Iterable[pa.RecordBatch]) -> Iterator[InputEvent]:
        """The events of the rows, in order.

        :raises EncodeError: for an invalid row, with table, column and position.
        """
        for batch in batches:
            yield from self._of_batch(batch)

    def flush(self) -> Iterator[InputEvent]:
        """No events, as each row is a complete event."""
        return iter(())

    @property
    def revision(self) -> int:
        """A number that grows when types of columns change."""
        return self._tables.revision

    def _of_batch(self, batch: pa.RecordBatch) -> Iterator[InputEvent]:
        names = [
            name for name in self._types if name in batch.schema.names and name not in _IGNORED
        ]
        columns = [
            column_cells(batch) if name == "columns" else cells(batch, name, self._types[name])
            for name in names
        ]
        for values in zip(*columns, strict=True):
            row = dict(zip(names, values, strict=True))
            source = row.get("_source") or _NO_SOURCE
            try:
                yield self._event(row, source)
            except EncodeError as error:
                raise located(error, row, source) from error

    def _event(self, row: dict[str, Any], source: dict[str, Any]) -> InputEvent:
        kind = row["kind"]
        make = _MAKERS.get(kind)
        if make is None:
            raise EncodeError(f"kind {kind!r} is not one of {join_names(_MAKERS)}")
        event = make(self, row, source)
        place = (source.get("topic"), source.get("path"), source.get("partition"))
        offset = source.get("offset")
        if kind == "row":
            if row.get("commit_ts") is not None:
                return InputEvent(event, place, "commit_ts", row["commit_ts"], offset)
            if offset is not None:
                return InputEvent(event, place, place, (offset, source.get("index") or 0), offset)
        return InputEvent(event, place, offset=offset)

    def _row(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        op = row.get("op")
        if op not in _OPS:
            raise EncodeError(f"op {op!r} is not one of {join_names(_OPS)}")
        table, before_image, after_image = self._images(op, row, source)
        common = _common(row, source)
        added = _take_added_extra(common)
        partial = added.get("partial", ())
        for name, made in (("before", before_image), ("after", after_image)):
            if made is not None and name in partial:
                made.complete = False
        return RowChange(
            op, table, before_image, after_image, added.get("sequence_commit"), **common
        )

    def _images(
        self, op: str, row: dict[str, Any], source: dict[str, Any]
    ) -> tuple[TableSchema, Image | None, Image | None]:
        name, protocol = _table_of(row), source.get("protocol")
        keys = self._key_columns or tuple(row.get("key_columns") or ())
        columns = row.get("columns")
        wanted = _WANTED.get(op, 1)
        images = variant_cell(row.get("before")), variant_cell(row.get("after"))
        for image, which in zip(images, ("before", "after"), strict=True):
            if image is not None and not isinstance(image, dict):
                raise EncodeError("the image is a variant, but not an object", column=which)
        if wanted is not None and images[wanted] is None:
            which = ("before", "after")[wanted]
            raise EncodeError(f"the row has no {which} image, which {op} needs; read with images")
        if not columns and op == "truncate":
            columns = ((), (), (), ())
        return self._tables.images(name, keys, columns or None, protocol, images)

    def _ddl(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        ddl = row.get("ddl") or {}
        if ddl.get("query") is None or ddl.get("type") not in _DDL_TYPES:
            raise EncodeError("a ddl event needs its query and one of Canal's types", column="ddl")
        common = _common(row, source)
        added = _take_added_extra(common)
        return SchemaChange(
            ddl["query"],
            ddl["type"],
            row.get("database") or "",
            row.get("table") or "",
            row.get("schema"),
            self._table_schema(row, source),
            sequence_commit=added.get("sequence_commit"),
            **common,
        )

    def _schema(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        schema = self._table_schema(row, source)
        if schema is None:
            raise EncodeError("a schema event needs its table_schema", column="table_schema")
        return TableSchemaEvent(table_schema=schema, **_common(row, source))

    def _table_schema(self, row: dict[str, Any], source: dict[str, Any]) -> TableSchema | None:
        given = row.get("table_schema")
        if given is None:
            return None
        columns = given.get("columns") or ()
        described: ColumnCells = (
            tuple(column["name"] for column in columns),
            tuple(column.get("source_type") or "" for column in columns),
            tuple(column.get("nullable") for column in columns),
            tuple(column.get("key") for column in columns),
        )
        return self._tables.schema(
            (given.get("database") or "", given.get("schema"), given.get("table") or ""),
            tuple(given.get("key_columns") or ()),
            described,
            source.get("protocol"),
        )

    def _watermark(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        if row.get("commit_ts") is None:
            raise EncodeError("a watermark needs its commit_ts", column="commit_ts")
        return Watermark(**_common(row, source))

    def _transaction(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        common = _common(row, source)
        extra = dict(common["extra"] or {})
        status = extra.pop("status", None)
        if status not in _STATUSES:
            raise EncodeError(
                f"a transaction needs its status, one of {join_names(_STATUSES)}", column="extra"
            )
        transaction_id = extra.pop("transaction_id", None)
        return Transaction(status, transaction_id, **{**common, "extra": extra or None})

    def _message(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        common = _common(row, source)
        extra = dict(common["extra"] or {})
        prefix, content = extra.pop("prefix", None), extra.pop("content", None)
        if not isinstance(prefix, str):
            raise EncodeError("a message needs its prefix", column="extra")
        return LogicalMessage(prefix, content, **{**common, "extra": extra or None})

    def _corrupt(self, row: dict[str, Any], source: dict[str, Any]) -> Event:
        record = row.get("_corrupt_record") or {}
        return Corrupt(DecodeError(record.get("reason") or "a corrupt message"))


_MAKERS: dict[str, Callable[[EventInput, dict[str, Any], dict[str, Any]], Event]] = {
    "row": EventInput._row,
    "ddl": EventInput._ddl,
    "schema": EventInput._schema,
    "watermark": EventInput._watermark,
    "transaction": EventInput._transaction,
    "heartbeat": lambda _, row, source: Heartbeat(**_common(row, source)),
    "message": EventInput._message,
    "corrupt": EventInput._corrupt,
}


def _common(row: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    extra = variant_cell(row.get("extra"))
    return {
        "commit_ts": row.get("commit_ts"),
        "source_time": row.get("source_time"),
        "emit_time": row.get("emit_time"),
        "index": source.get("index") or 0,
        "extra": extra if isinstance(extra, dict) else None,
    }


def _take_added_extra(common: dict[str, Any]) -> dict[str, Any]:
    """The parts of ``extra`` that ``includeColumns`` added."""
    extra = common["extra"] or {}
    added = {name: extra[name] for name in ADDED_EXTRA if name in extra}
    if added:
        others = {name: value for name, value in extra.items() if name not in added}
        common["extra"] = others or None
    return added


def _table_of(row: dict[str, Any]) -> tuple[str, str | None, str]:
    name = row.get("table")
    if name is None:
        raise EncodeError("a row change needs its table", column="table")
    return row.get("database") or "", row.get("schema"), name


def located(error: EncodeError, row: dict[str, Any], source: dict[str, Any]) -> EncodeError:
    """The error with the table and the position of the row."""
    names = row.get("database"), row.get("schema"), row.get("table")
    return error.at(
        table=error.table or (qualified(*names) if names[-1] else None),
        commit_ts=row.get("commit_ts"),
        reason=error.reason + _place(*map(source.get, _PLACE)),
    )


def _place(*given: str | int | None) -> str:
    """The end of an error's text, with the values of ``_PLACE`` that are known."""
    known = [f"{name} {v}" for name, v in zip(_PLACE, given, strict=True) if v is not None]
    return f" (read from {', '.join(known)})" if known else ""
