"""Tables, keys and positions of changes, as columns and in SQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import attrs
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f
from pyspark.sql.types import DecimalType, DoubleType, StructField, StructType

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.names import TableName, quote, text_literal

_KEY_FORMAT = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}

LogPosition: TypeAlias = tuple[int, str, int]
"""In a binlog: length and name of the file (``binlog.1000000`` comes after ``binlog.999999``), and
the offset in it."""

_OF_SNAPSHOT = 0


@attrs.frozen
class LogPlace:
    """Where events lie in the binlog of their source, as Debezium's connectors name it.

    ``servers`` are the ids of the servers that wrote it, 0 for rows of a snapshot; ``last`` is the
    last position.
    """

    servers: frozenset[int]
    last: LogPosition

    def is_before(self, other: LogPlace | None) -> bool:
        """Whether all came before ``other``, or are it.  False where binlogs are not comparable."""
        return (
            other is not None
            and self.servers <= other.servers | {_OF_SNAPSHOT}
            and self.last <= other.last
        )

    def is_before_all(self, first: LogPlace | None) -> bool:
        """Whether all came before events of which ``first`` is the first.  False as above."""
        return (
            first is not None
            and first.servers <= self.servers | {_OF_SNAPSHOT}
            and self.last < first.last
        )


def is_of(name: TableName) -> Column:
    """Whether an event is of a table."""
    database, schema, table = ("NULL" if part is None else text_literal(part) for part in name)
    # As one text, since each part of an expression is a call to the JVM.
    return f.expr(f"`database` = {database} AND `schema` <=> {schema} AND `table` = {table}")


def first_place(rows: DataFrame, source: str = "_source") -> str:
    """Where the first of some rows lies, in words; ``source`` is the column that says it."""
    parts = ("topic", "path", "partition", "offset")
    places = rows.select(*(f"{source}.{part}" for part in parts))
    place = places.orderBy(*places.columns).first()
    found = {} if place is None else place.asDict()
    return ", ".join(f"{name} {part}" for name, part in found.items() if part is not None)


def sequence_commit() -> Column:
    """The commit of an event without a commit_ts, where its protocol has one all the same."""
    return f.try_variant_get("extra", "$.sequence_commit", "bigint")


def key_text(keys: Sequence[str]) -> Column:
    """The key of a row as text: one text for each key, whatever the session's settings."""
    return f.to_json(f.struct(*map(quote, keys)), _KEY_FORMAT)


def key_text_now(keys: Sequence[str], columns: StructType) -> Column:
    """The column ``key``, a text of :func:`key_text`, with the types that the columns have now.

    A number of a wider type may have more digits: ``8.5`` is ``8.50`` as DECIMAL(7,2).
    """
    fields = [StructField(name, columns[name].dataType) for name in keys]
    if not any(isinstance(field.dataType, DecimalType | DoubleType) for field in fields):
        return f.col("key")
    return f.to_json(f.from_json("key", StructType(fields), _KEY_FORMAT), _KEY_FORMAT)


def literal(sequence: Sequence[int]) -> str:
    """A ``_sequence`` in SQL."""
    cells = ", ".join(
        f"CAST({value} AS {field.dataType.simpleString()}) AS {quote(field.name)}"
        for value, field in zip(sequence, SEQUENCE.fields, strict=True)
    )
    return f"struct({cells})"


def log_column() -> Column:
    """The place of an event in its source's binlog, position first: the last one is found by it.

    NULL where a commit orders the event, or its message has no position.
    """
    file, pos, server = (
        f.try_variant_get("extra", f"$.{name}", type_)
        for name, type_ in (("file", "string"), ("pos", "bigint"), ("server_id", "bigint"))
    )
    place = f.struct(
        f.length(file).alias("length"),
        file.alias("file"),
        pos.alias("pos"),
        f.coalesce(server, f.lit(_OF_SNAPSHOT)).alias("server"),
    )
    is_logged = f.coalesce("commit_ts", sequence_commit()).isNull() & file.isNotNull()
    return f.when(is_logged & pos.isNotNull(), place)


def log_place(last: Row, servers: Iterable[int]) -> LogPlace:
    """A place of events, from what ``log_column`` gave."""
    return LogPlace(frozenset(servers), (last.length, last.file, last.pos))
