"""The typed changes of a table by Spark's own expressions, out of the variants of events.

It is the fast way beside :func:`pyspark_cdcfmt.changes`, which is exact for every type and value.
A table goes this way where its columns have types of :data:`_TYPES`.  A value that its column does
not hold ends the query with :data:`ODD_VALUE`, and the exact way decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as spark

from cdcfmt_core import types as logical
from cdcfmt_core.types import LogicalType
from pyspark_cdcfmt import CORRUPT_RECORD, SEQUENCE
from pyspark_cdcfmt.sync.expressions import sequence_commit

ODD_VALUE = "cdcfmt: a value is not of its column's type"
"""In the error of a query that met such a value."""

_TYPES = (
    *(logical.Bool, logical.Int, logical.Year, logical.Float, logical.Decimal, logical.Text),
    *(logical.Binary, logical.Date, logical.DateTime, logical.Timestamp),
    *(logical.Enum, logical.Set),
)

_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
"""From narrow to wide."""

_MOST_DIGITS = 38
_IMAGE, _TYPE = "__sync_image", "__sync_type"


def has_cells(type_: LogicalType, own: spark.DataType, target: spark.StructField) -> bool:
    """Whether the values of a type, whose type in Spark is ``own``, have cells in a target."""
    wanted = target.dataType
    # No path of a variant names a column with such a character.
    if {*"'\\"} & {*target.name} or not isinstance(type_, _TYPES):
        return False
    if isinstance(wanted, spark.DecimalType):
        # A wider decimal with as many whole digits tells whether digits were lost.
        return isinstance(own, spark.DecimalType) and wanted.precision < _MOST_DIGITS
    if isinstance(own, _INTEGERS) and isinstance(wanted, _INTEGERS):
        return _INTEGERS.index(type(own)) <= _INTEGERS.index(type(wanted))
    return own == wanted and not (
        isinstance(type_, logical.Decimal) and isinstance(wanted, spark.StringType)
    )


def typed_changes(
    events: DataFrame,
    own: Sequence[spark.StructField],
    keys: Sequence[str],
    added: Mapping[str, str],
    *,
    has_updates: bool,
) -> DataFrame:
    """The rows that ``changes`` gives for the row events of one table, with ``images=after``.

    :param own: columns of the target, which have the names of the source's.
    :param added: what the rows have beside them: names in the result by names of what they say
        (``change_type``, ``sequence``, ``is_read`` …).
    :param has_updates: whether an update may change a key, which is a delete and an insert then.
    """
    rows = events.where("kind = 'row' AND op <> 'truncate'")
    op, is_delete = f.col("op"), f.col("op") == "delete"
    moves = _moves([field for field in own if field.name in keys])
    change_type = (
        f.when(is_delete, "delete")
        .when((op == "update") & ~moves | (op == "upsert"), "update_postimage")
        .otherwise("insert")
    )
    image = f.when(is_delete, f.col("before")).otherwise(f.col("after"))
    new = _rows(rows, own, keys, added, image, change_type)
    if has_updates:
        old = rows.where((op == "update") & f.col("after").isNotNull() & moves)
        gone = _rows(old, own, keys, added, f.col("before"), f.lit("delete"))
        return new.unionAll(gone)
    return new


def _moves(keys: Sequence[spark.StructField]) -> Column:
    """Whether the images of an update have different keys, as far as both have them."""
    differs = [
        _raw("before", key.name).isNotNull()
        & _raw("after", key.name).isNotNull()
        & ~_cell(_raw("before", key.name), key).eqNullSafe(_cell(_raw("after", key.name), key))
        for key in keys
    ]
    return f.coalesce(reduce(or_, differs, f.lit(False)), f.lit(False))


def _rows(
    rows: DataFrame,
    own: Sequence[spark.StructField],
    keys: Sequence[str],
    added: Mapping[str, str],
    image: Column,
    change_type: Column,
) -> DataFrame:
    rows = rows.withColumns({_IMAGE: image, _TYPE: change_type}).where(f.col(_IMAGE).isNotNull())
    # Columns of their own, for Spark to look into the image once for each.
    raw = {field.name: f"__sync_raw{number}" for number, field in enumerate(own)}
    rows = rows.withColumns({raw[name]: _raw(_IMAGE, name) for name in raw})
    absent = [f.when(f.col(raw[name]).isNull(), f.lit(name)) for name in raw]
    said = {
        "change_type": f.col(_TYPE),
        "commit_version": f.col("commit_ts"),
        "commit_timestamp": f.coalesce(
            f.timestamp_millis(f.shiftright("commit_ts", 18)), "source_time"
        ),
        "sequence": _sequence(keys),
        "absent": f.array_compact(f.array(*absent)),
        "source": f.col("_source"),
        "corrupt_record": f.lit(None).cast(CORRUPT_RECORD),
        "is_read": f.col("op") == "read",
    }
    return rows.select(
        *(_cell(f.col(raw[field.name]), field).alias(field.name) for field in own),
        *(said[name].alias(alias) for name, alias in added.items()),
    )


def _sequence(keys: Sequence[str]) -> Column:
    """As ``change_position`` of the core's toolkit says it."""
    commit = f.when(f.col("commit_ts") != 0, f.col("commit_ts"))
    is_delete = f.col(_TYPE) == "delete"
    is_unique = commit.isNotNull() & f.lit(bool(keys))
    return f.struct(
        f.coalesce(commit, sequence_commit(), f.lit(0)).alias("commit"),
        f.when(commit.isNotNull() & ~is_delete, 1).otherwise(0).alias("rank"),
        f.when(is_unique, 0).otherwise(f.col("_source.offset")).alias("offset"),
        f.when(is_unique, 0).otherwise(f.coalesce("_source.index", f.lit(0))).alias("index"),
        f.when(is_delete, 0).otherwise(1).alias("part"),
    ).cast(SEQUENCE)


def _raw(image: str, name: str) -> Column:
    """The variant of a column; NULL where the image lacks the column."""
    return f.try_variant_get(image, f"$['{name}']", "variant")


def _cell(raw: Column, target: spark.StructField) -> Column:
    """The value of a column in its variant."""
    type_ = target.dataType
    value = _value(raw, type_.simpleString())
    if isinstance(type_, spark.DecimalType):
        scale = _MOST_DIGITS - type_.precision + type_.scale
        value = f.when(value == _value(raw, f"decimal({_MOST_DIGITS},{scale})"), value)
    odd = f.raise_error(f.lit(f"{ODD_VALUE}: {target.name}")).cast(type_)
    # Most values are not NULL, and need no second look.
    return f.coalesce(value, f.when(raw.isNotNull() & ~f.is_variant_null(raw), odd))


def _value(raw: Column, type_: str) -> Column:
    return f.try_variant_get(raw, "$", type_)
