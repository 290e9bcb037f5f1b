"""Changes of one table from events that were decoded, and perhaps stored, earlier.

A row of the events shape becomes an event of the core, which is then handled like a message under
the option ``table``.  The column's source type restores types that a variant does not keep: TIME
is text there, JSON is parsed, a bigint unsigned is a decimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import attrs
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f

from cdcfmt_core import types as logical
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column as TableColumn
from cdcfmt_core.events import Corrupt, Event, Image, Message, RowChange, SchemaChange, TableSchema
from cdcfmt_core.filters import split_name
from cdcfmt_core.registry import default_registry
from cdcfmt_core.schemas.store import Statements
from cdcfmt_core.types import GeometryValue, InvalidValue, LogicalType
from cdcfmt_mysql.members import enum_name, set_names
from cdcfmt_mysql.statement_tables import refined_types
from cdcfmt_mysql.temporal import parse_time
from pyspark_cdcfmt.rows.event_values import event_value
from pyspark_cdcfmt.rows.policy import BadValue
from pyspark_cdcfmt.rows.values import ParsedJson
from pyspark_cdcfmt.rows.variant import decode_variant

Restore: TypeAlias = Callable[[Any], Any]

STORED_COLUMNS = (
    *("kind", "op", "database", "schema", "table", "commit_ts", "source_time", "key_columns"),
    *("columns", "before", "after", "ddl", "extra", "_source", "_corrupt_record"),
)
"""The columns of events that :class:`StoredEvents` needs."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@attrs.define
class StoredMessage(Message):
    """The parts of an event's message that the events shape keeps."""

    event: dict[str, Any] = attrs.field(factory=dict)


class StoredEvents:
    """Decodes rows of the events shape; has the interface of a MessageDecoder.

    :param statements: exact types for rows of formats whose types are incomplete.
    """

    def __init__(self, type_map: str | None, statements: Statements | None = None) -> None:
        self._type_map = type_map
        self._statements = statements
        self._tables: Cache[Any, _Table] = Cache()
        self.protocol: str | None = None

    def decode(self, message: Message) -> list[Event]:
        """The event of a :class:`StoredMessage`; a Corrupt one if it cannot be restored."""
        assert isinstance(message, StoredMessage)
        row = message.event
        source = row["_source"]
        self.protocol = source["protocol"]
        index = source["index"] or 0
        try:
            if row["kind"] == "row":
                return [self._row_change(row, index)]
            if row["kind"] == "ddl":
                return [_schema_change(row, index)]
            record = row["_corrupt_record"] or {}
            return [Corrupt(StoredError(record.get("reason") or "unknown"), index)]
        except Exception as error:
            reason = f"the event cannot be restored: {type(error).__name__}: {error}"
            return [Corrupt(DecodeError(reason).at(protocol=self.protocol), index)]

    def schema_of(self, row: Mapping[str, Any], protocol: str | None) -> TableSchema:
        """The table schema of a row's ``columns``."""
        self.protocol = protocol
        return self._table(row).schema

    def _row_change(self, row: Mapping[str, Any], index: int) -> RowChange:
        extra = _python(row["extra"]) or {}
        table = self._table(row, extra.get("sequence_commit"))
        partial = extra.get("partial", ())
        return RowChange(
            row["op"],
            table.schema,
            table.image(row["before"], "before" not in partial),
            table.image(row["after"], "after" not in partial),
            extra.get("sequence_commit"),
            commit_ts=row["commit_ts"],
            source_time=row["source_time"],
            index=index,
            extra=extra,
        )

    def _table(self, row: Mapping[str, Any], commit: int | None = None) -> _Table:
        columns = tuple(
            (column["name"], column["source_type"], column["nullable"], column["key"])
            for column in row["columns"] or ()
        )
        keys = tuple(row["key_columns"] or ())
        registry = default_registry()
        exact = None
        if self._statements and registry.get_codec(self.protocol or "").scan_statements:
            position = commit if row["commit_ts"] is None else row["commit_ts"]
            exact = self._statements.find(row["database"] or "", row["table"], position)
        names = row["database"], row["schema"], row["table"]
        key = (self.protocol, *names, columns, keys, exact and id(exact))
        table = self._tables.get(key)
        if table is None:
            type_map = self._type_map or registry.get_codec(self.protocol or "").type_map
            resolve = registry.get_type_map(type_map)
            known = {column.name.lower(): column for column in exact.columns} if exact else {}
            pairs = [(name, source_type) for name, source_type, _, _ in columns]
            types = refined_types(pairs, known, resolve)
            schema = TableSchema(
                row["database"],
                row["table"],
                tuple(
                    TableColumn(name, *type_, nullable, key)
                    for (name, _, nullable, key), type_ in zip(columns, types, strict=True)
                ),
                keys,
                row["schema"],
            )
            table = self._tables.add(key, _Table(schema), table_size(schema, 200))
        return table


class StoredError(DecodeError):
    """The error of a corrupt event; its text already has protocol and position."""

    def at(self, **_: Any) -> StoredError:
        return self

    def __str__(self) -> str:
        return self.reason


class _Table:
    """A table schema, and the converters of its columns' values from those of a variant."""

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self._restore = {
            column.name: restore
            for column in schema.columns
            if (restore := _restore(column.type)) is not None
        }

    def image(self, variant: Any, complete: bool) -> Image | None:
        values = _python(variant)
        if values is None:
            return None
        for name, restore in self._restore.items():
            value = values.get(name)
            if value is not None:
                values[name] = restore(value)
        return Image(values, complete)


def _schema_change(row: Mapping[str, Any], index: int) -> SchemaChange:
    extra = _python(row["extra"]) or {}
    return SchemaChange(
        row["ddl"]["query"],
        row["ddl"]["type"],
        row["database"],
        row["table"],
        row["schema"],
        sequence_commit=extra.get("sequence_commit"),
        commit_ts=row["commit_ts"],
        source_time=row["source_time"],
        index=index,
        extra=extra,
    )


def _python(variant: Mapping[str, bytes] | None) -> Any:
    if variant is None:
        return None
    # Collected rows have bytearrays.
    return decode_variant(bytes(variant["value"]), bytes(variant["metadata"]))


def _number(value: Any) -> Any:
    return value if type(value) is str else int(value)


def _decimal(type_: logical.Decimal) -> Restore:
    convert = event_value(type_)

    def restore(value: Any) -> Any:
        try:
            return convert(value)
        except BadValue:
            return InvalidValue(value)

    return restore


def _time(value: Any) -> Any:
    try:
        return parse_time(value)
    except ValueError:
        return InvalidValue(value)


def _invalid_if_text(value: Any) -> Any:
    return InvalidValue(value) if type(value) is str else value


def _geometry(value: Any) -> Any:
    return GeometryValue(**value) if type(value) is dict else value


_RESTORE: dict[type[LogicalType], Restore] = {
    logical.Int: _number,
    logical.Bit: _number,
    logical.Enum: _number,
    logical.Set: _number,
    logical.Time: _time,
    logical.Date: _invalid_if_text,
    logical.DateTime: _invalid_if_text,
    logical.Timestamp: _invalid_if_text,
    logical.Json: ParsedJson,
    logical.Geometry: _geometry,
}


def _restore(type_: LogicalType) -> Restore | None:
    if isinstance(type_, logical.Enum | logical.Set) and type_.names is not None:
        # A number, if the names were unknown when the event was decoded.
        name = (enum_name if isinstance(type_, logical.Enum) else set_names)(type_.names)
        return lambda value: value if type(value) is str else name(int(value))
    return _decimal(type_) if isinstance(type_, logical.Decimal) else _RESTORE.get(type(type_))


def is_of_table(table: tuple[str, ...]) -> Column:
    database, schema, name = split_name(table)
    return (
        (f.col("database") == database)
        & f.col("schema").eqNullSafe(f.lit(schema))
        & (f.col("table") == name)
    )


def stored_messages(batches: Iterable[pa.StructArray]) -> Iterator[StoredMessage]:
    """The rows of events as messages; times as integers."""
    for batch in batches:
        names = [field.name for field in batch.type]
        arrays = (
            array.cast(pa.int64()) if pa.types.is_timestamp(array.type) else array
            for array in batch.flatten()
        )
        for cells in zip(*(array.to_pylist() for array in arrays), strict=True):
            row = dict(zip(names, cells, strict=True))
            source, record = row["_source"], row["_corrupt_record"] or {}
            timestamp = source["timestamp"]
            yield StoredMessage(
                record.get("key"),
                record.get("value"),
                topic=source["topic"],
                path=source["path"],
                partition=source["partition"],
                offset=source["offset"],
                epoch=source["epoch"] or 0,
                timestamp=timestamp and (timestamp - _EPOCH) // timedelta(milliseconds=1),
                event=row,
            )
