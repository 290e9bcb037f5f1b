"""Spark columns, SQL and types, for tables, keys and positions of changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
)

from cdcfmt_toolkit.decimal_digits import MAX_PRECISION
from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.names import FIELDS, TableName, quote, text_literal

_KEY_FORMAT = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

Position: TypeAlias = tuple[int, ...]
"""The cells of a ``_sequence`` up to ``part``."""

COMPARED = SEQUENCE.names.index("part") + 1
"""Number of fields of ``_sequence`` that compare from left to right."""


class At(NamedTuple):
    """A position among the changes of a table: the parts of ``_sequence`` that a message has."""

    epoch: int
    commit: int
    partition: int
    offset: int

    @classmethod
    def of(cls, sequence: Position) -> At:
        epoch, commit, _, partition, offset, *_ = sequence
        return cls(epoch, commit, partition, offset)

    def sequence(self, index: int = 0) -> Position:
        """The ``_sequence`` of a delete at this position."""
        return self.epoch, self.commit, 0, self.partition, self.offset, index, 0

    def shifted(self, epochs: int) -> At:
        """The same position that many epochs later; a commit_ts is of no epoch."""
        is_ordered = self.commit > 0 and not (self.partition or self.offset)
        return self if is_ordered else self._replace(epoch=self.epoch + epochs)


LogPosition: TypeAlias = tuple[int, str, int]
"""A position in the source's log: length and name of the file (``binlog.1000000`` is after
``binlog.999999``), and the offset in the file."""

_OF_SNAPSHOT = 0

_INTEGERS = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
"""Integer types from narrow to wide, with the decimal digits that Delta needs for them."""


@attrs.frozen
class LogPlace:
    """Position of events in the source's log (:func:`~cdcfmt_toolkit.row_changes.log_position`).

    :ivar servers: ids of the servers that wrote a binlog; 0 for rows of a snapshot, and for logs of
        other databases.
    :ivar last: the last position.
    """

    servers: frozenset[int]
    last: LogPosition

    @classmethod
    def of(cls, servers: Iterable[int], file: str, pos: int) -> LogPlace:
        return cls(frozenset(servers), (len(file), file, pos))

    def is_before(self, other: LogPlace | None) -> bool:
        """Whether this position is ``other`` or earlier; False for incomparable logs."""
        return (
            other is not None
            and self.servers <= other.servers | {_OF_SNAPSHOT}
            and self.last <= other.last
        )

    def is_before_all(self, first: LogPlace | None) -> bool:
        """Whether all events from ``first`` on are later; False for incomparable logs."""
        return (
            first is not None
            and first.servers <= self.servers | {_OF_SNAPSHOT}
            and self.last < first.last
        )


def is_of(name: TableName) -> Column:
    """Whether an event belongs to a table."""
    database, schema, table = ("NULL" if part is None else text_literal(part) for part in name)
    # One SQL text, since each part of an expression is a call to the JVM.
    return f.expr(f"`database` = {database} AND `schema` <=> {schema} AND `table` = {table}")


_OF = [f"of_{name}" for name in FIELDS]
IS_OF = " AND ".join(f"{name} <=> of_{name}" for name in FIELDS)
"""SQL condition: the event belongs to the table that the columns ``of_…`` name."""


def of_tables(events: DataFrame, rows: Iterable[tuple[Any, ...]], columns: str) -> DataFrame:
    """Events, or blocks, of some tables, joined with ``columns`` by table.

    :param rows: per table its name in three parts, then the values of ``columns``.
    """
    # One condition per table overflows the stack of Spark's parser at some hundred tables.
    schema = ", ".join([*(f"{name} STRING" for name in _OF), columns])
    known = f.broadcast(events.sparkSession.createDataFrame([*rows], schema))
    return events.join(known, f.expr(IS_OF)).drop(*_OF)


def first_place(rows: DataFrame, source: str = "_source") -> str:
    """The position of the first row as text; ``source`` is the column with the positions."""
    parts = ("topic", "path", "partition", "offset")
    places = rows.select(*(f"{source}.{part}" for part in parts))
    place = places.orderBy(*places.columns).first()
    found = {} if place is None else place.asDict()
    return ", ".join(f"{name} {part}" for name, part in found.items() if part is not None)


def sequence_commit() -> Column:
    """The commit of an event without a commit_ts, if its protocol can derive one."""
    return f.try_variant_get("extra", "$.sequence_commit", "bigint")


def key_text(keys: Sequence[str]) -> Column:
    """The key of a row as text, independent of the session's settings."""
    return f.to_json(f.struct(*map(quote, keys)), _KEY_FORMAT)


def key_text_now(keys: Sequence[str], columns: StructType) -> Column:
    """The column ``key``, a text of :func:`key_text`, converted to the current column types.

    A wider type may print more digits: ``8.5`` is ``8.50`` as DECIMAL(7,2).
    """
    fields = [StructField(name, columns[name].dataType) for name in keys]
    if not any(isinstance(field.dataType, DecimalType | DoubleType) for field in fields):
        return f.col("key")
    return f.to_json(f.from_json("key", StructType(fields), _KEY_FORMAT), _KEY_FORMAT)


def literal(sequence: Sequence[int]) -> str:
    """A ``_sequence`` as a SQL literal; missing last fields are NULL."""
    values = [*sequence[:COMPARED], *["NULL"] * len(SEQUENCE.fields)]
    cells = ", ".join(
        f"CAST({value} AS {field.dataType.simpleString()}) AS {quote(field.name)}"
        for value, field in zip(values, SEQUENCE.fields, strict=False)
    )
    return f"struct({cells})"


def compared(column: str, operator: str, at: str) -> str:
    """SQL that compares a ``_sequence`` with a literal, in conditions on tables.

    In arrays: Iceberg fails for a DELETE whose condition has a struct as literal.
    """
    return f"array({column}) {operator} array({at})"


def properties_sql(given: Mapping[str, str]) -> str:
    """Properties of TBLPROPERTIES."""
    return ", ".join(f"{text_literal(k)} = {text_literal(v)}" for k, v in given.items())


def union_type(old: DataType, new: DataType) -> DataType | None:
    """The type to which tables can widen both: in structs, new fields stand behind the old ones.

    None if there is none.
    """
    if isinstance(old, StructType) and isinstance(new, StructType):
        fields = {field.name: field.dataType for field in old.fields}
        for field in new.fields:
            both = union_type(fields.get(field.name, field.dataType), field.dataType)
            if both is None:
                return None
            fields[field.name] = both
        return StructType([*map(StructField, fields, fields.values())])
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        element = union_type(old.elementType, new.elementType)
        return None if element is None else ArrayType(element)
    if isinstance(old, MapType) and isinstance(new, MapType) and old.keyType == new.keyType:
        value = union_type(old.valueType, new.valueType)
        return None if value is None else MapType(old.keyType, value)
    if old == new or _widens(new, old):
        return old
    return new if _widens(old, new) else None


def is_wider(old: DataType, new: DataType) -> bool:
    """Whether tables can widen a column so."""
    # Both of itself: without what tables add to a type, such as metadata of a struct's fields.
    holds_old = union_type(new, old) == union_type(new, new)
    return holds_old and union_type(old, new) != union_type(old, old)


def type_changes(old: DataType, new: DataType, path: str) -> Iterator[tuple[str, DataType, bool]]:
    """How the type of a column becomes a wider one: paths in SQL, their types, whether new."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        has = {field.name: field.dataType for field in old.fields}
        for field in new.fields:
            inner = f"{path}.{quote(field.name)}"
            if field.name in has:
                yield from type_changes(has[field.name], field.dataType, inner)
            else:
                yield inner, field.dataType, True
    elif isinstance(old, ArrayType) and isinstance(new, ArrayType):
        yield from type_changes(old.elementType, new.elementType, f"{path}.element")
    elif isinstance(old, MapType) and isinstance(new, MapType):
        yield from type_changes(old.valueType, new.valueType, f"{path}.value")
    elif old != new:
        yield path, new, False


def names_in(type_: DataType) -> Iterator[str]:
    """The names of all fields of a type, also within others."""
    if isinstance(type_, StructType):
        for field in type_.fields:
            yield field.name
            yield from names_in(field.dataType)
    elif isinstance(type_, ArrayType):
        yield from names_in(type_.elementType)
    elif isinstance(type_, MapType):
        yield from names_in(type_.valueType)


def _widens(old: DataType, new: DataType) -> bool:
    """Whether Delta's type widening supports this change of a type without parts."""
    if isinstance(old, FloatType):
        return isinstance(new, DoubleType)
    if isinstance(old, DateType):
        return isinstance(new, TimestampNTZType)
    if isinstance(old, DecimalType):
        return (
            isinstance(new, DecimalType)
            and new.scale >= old.scale
            and new.precision - new.scale >= old.precision - old.scale
        )
    for place, (kind, digits) in enumerate(_INTEGERS.items()):
        if isinstance(old, kind):
            if isinstance(new, DecimalType):
                return new.precision - new.scale >= digits
            if isinstance(new, DoubleType):
                return not isinstance(old, LongType)
            return isinstance(new, tuple(_INTEGERS)[place + 1 :])
    return False


def common_number(one: DataType, other: DataType) -> DataType | None:
    """The type that holds all numbers of both, text beyond 38 digits; None if one is no number."""
    if isinstance(one, StringType) != isinstance(other, StringType):
        number = other if isinstance(one, StringType) else one
        return StringType() if isinstance(number, DecimalType | IntegralType) else None
    if not (isinstance(one, DecimalType) and isinstance(other, DecimalType)):
        return None
    scale = max(one.scale, other.scale)
    whole = max(each.precision - each.scale for each in (one, other))
    return DecimalType(whole + scale, scale) if whole + scale <= MAX_PRECISION else StringType()


def with_any_digits(type_: DataType, scale: int = 0) -> DataType:
    """A wider decimal for a column of numbers whose digits are no longer limited."""
    whole = type_.precision - type_.scale if isinstance(type_, DecimalType) else MAX_PRECISION - 18
    own = type_.scale if isinstance(type_, DecimalType) else 0
    wider = DecimalType(MAX_PRECISION, max(own, scale, min(18, MAX_PRECISION - whole)))
    return wider if is_wider(type_, wider) else type_


def definitions_sql(fields: Sequence[StructField]) -> str:
    """Columns of CREATE TABLE and ADD COLUMNS."""
    return ", ".join(map(_definition, fields))


def _definition(field: StructField) -> str:
    comment = field.metadata.get("comment")
    text = f"{quote(field.name)} {type_sql(field.dataType)}"
    return text if comment is None else f"{text} COMMENT {text_literal(comment)}"


def type_sql(type_: DataType) -> str:
    """A type in SQL, with names of fields as they are."""
    if isinstance(type_, StructType):
        fields = (f"{quote(field.name)}: {type_sql(field.dataType)}" for field in type_.fields)
        return f"struct<{', '.join(fields)}>"
    if isinstance(type_, ArrayType):
        return f"array<{type_sql(type_.elementType)}>"
    if isinstance(type_, MapType):
        return f"map<{type_sql(type_.keyType)}, {type_sql(type_.valueType)}>"
    return type_.simpleString()
