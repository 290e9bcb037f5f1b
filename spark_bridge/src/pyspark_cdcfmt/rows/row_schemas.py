"""The columns of the events shape, and what a user's schema may have of them."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.columns import canonical, check_declared

_COLUMN = StructType(
    [
        StructField("name", StringType()),
        StructField("source_type", StringType()),
        StructField("nullable", BooleanType()),
        StructField("key", BooleanType()),
    ]
)

_TABLE_SCHEMA = StructType(
    [
        StructField("database", StringType()),
        StructField("schema", StringType()),
        StructField("table", StringType()),
        StructField("columns", ArrayType(_COLUMN)),
        StructField("key_columns", ArrayType(StringType())),
    ]
)

SOURCE = StructType(
    [
        StructField("protocol", StringType()),
        StructField("topic", StringType()),
        StructField("path", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("index", IntegerType()),
        StructField("timestamp", TimestampType()),
    ]
)

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])

CORRUPT_RECORD = StructType(
    [
        StructField("reason", StringType()),
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("source", SOURCE),
    ]
)

_DDL = StructType([StructField("query", StringType()), StructField("type", StringType())])

EVENT_COLUMNS: dict[str, DataType] = {
    "kind": StringType(),
    "op": StringType(),
    "database": StringType(),
    "schema": StringType(),
    "table": StringType(),
    "commit_ts": LongType(),
    "commit_time": TimestampType(),
    "source_time": TimestampType(),
    "emit_time": TimestampType(),
    "key_columns": ArrayType(StringType()),
    "before": VariantType(),
    "after": VariantType(),
    "columns": ArrayType(_COLUMN),
    "ddl": _DDL,
    "table_schema": _TABLE_SCHEMA,
    "extra": VariantType(),
    "_source": SOURCE,
    "_corrupt_record": CORRUPT_RECORD,
    "headers": ArrayType(_HEADER),
}
"""Every column that events may have, in its place."""


def events_schema(options: ReadOptions) -> StructType:
    """The columns of the events shape under these options."""
    image: DataType = VariantType() if options["imageFormat"] == "variant" else StringType()
    left_out = set() if options["includeColumns"] else {"columns"}
    if not options["includeHeaders"]:
        left_out.add("headers")
    if options["images"] == "none":
        left_out |= {"before", "after"}
    return StructType(
        [
            StructField(name, image if name in ("before", "after") else type_)
            for name, type_ in EVENT_COLUMNS.items()
            if name not in left_out
        ]
    )


def corrupt_column(options: ReadOptions) -> str:
    """The name of the column for what is bad; PERMISSIVE needs it in the schema."""
    prefix = "_" if options.table is None else options["metadataPrefix"]
    return f"{prefix}corrupt_record"


def canonical_events(given: StructType, options: ReadOptions) -> StructType:
    """A user's schema with our spelling of the names."""
    return canonical(given, events_schema(options).names)


def check_events_schema(given: StructType, options: ReadOptions) -> None:
    """A user's schema may leave columns out and reorder them.

    :raises OptionError: for a column that events do not have, of another type, or NOT NULL.
    """
    check_declared(given, case_sensitive=False)
    known = {field.name: field.dataType for field in events_schema(options).fields}
    for field in given.fields:
        expected = known.get(field.name)
        if expected is None:
            raise OptionError(
                f"events have no column {field.name!r} (they have {', '.join(known)}); to read "
                "the columns of one table, set the option table"
            )
        if not field.nullable:
            raise OptionError(f"column {field.name} of events may be NULL: leave NOT NULL out")
        check_type(field, expected)


def check_type(given: StructField, expected: DataType) -> None:
    """Sources and corrupt records may have any of their fields, in any order.

    :raises OptionError: for an added column that is declared with another type.
    """
    if not _may_be(given.dataType, expected):
        some = " or some of its fields" if expected in (SOURCE, CORRUPT_RECORD) else ""
        raise OptionError(
            f"column {given.name} is declared as {given.dataType.simpleString()}, and must be "
            f"{expected.simpleString()}{some}"
        )


def _may_be(given: DataType, expected: DataType) -> bool:
    if expected not in (SOURCE, CORRUPT_RECORD) or not isinstance(given, StructType):
        return given == expected
    assert isinstance(expected, StructType)
    known = {field.name: field.dataType for field in expected.fields}
    return bool(given.fields) and all(
        field.nullable and field.name in known and _may_be(field.dataType, known[field.name])
        for field in given.fields
    )
