"""The columns of both shapes, and the checks of a user's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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

from cdcfmt_core.errors import OptionError, show
from cdcfmt_toolkit.column_names import clashes
from pyspark_cdcfmt.options import SPARKS_SWITCH, ReadOptions
from pyspark_cdcfmt.rows.types import struct_of
from pyspark_cdcfmt.rows.values import SUPPORTED
from pyspark_cdcfmt.write_options import WriteOptions

_COLUMN = struct_of(
    name=StringType(), source_type=StringType(), nullable=BooleanType(), key=BooleanType()
)

_TABLE_SCHEMA = struct_of(
    database=StringType(),
    schema=StringType(),
    table=StringType(),
    columns=ArrayType(_COLUMN),
    key_columns=ArrayType(StringType()),
)

SOURCE = struct_of(
    protocol=StringType(),
    topic=StringType(),
    path=StringType(),
    partition=IntegerType(),
    offset=LongType(),
    index=IntegerType(),
    timestamp=TimestampType(),
    epoch=IntegerType(),
)

_HEADER = struct_of(key=StringType(), value=BinaryType())

CORRUPT_RECORD = struct_of(reason=StringType(), key=BinaryType(), value=BinaryType(), source=SOURCE)

_DDL = struct_of(query=StringType(), type=StringType())

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
"""Every column that events may have, in order."""


_NEEDS = {"columns": "includeColumns=true", "headers": "includeHeaders=true"} | dict.fromkeys(
    ("before", "after"), "images=both or images=after"
)
"""The options that columns of events need."""


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
    """The name of the column for bad rows; PERMISSIVE needs it in the schema."""
    prefix = "_" if options.table is None else options["metadataPrefix"]
    return f"{prefix}corrupt_record"


def _check_events(given: StructType, options: ReadOptions) -> None:
    """Check a user's schema, which may omit and reorder columns.

    :raises OptionError: for an unknown column, another type, or NOT NULL.
    """
    check_declared(given, case_sensitive=False)
    known = {field.name: field.dataType for field in events_schema(options).fields}
    for field in given.fields:
        expected = known.get(field.name)
        if field.name in EVENT_COLUMNS and expected is None:
            raise OptionError(f"events have the column {field.name} with {_NEEDS[field.name]} only")
        if expected is None:
            raise OptionError(
                f"events have no column {field.name!r} (they have {', '.join(known)}); to read "
                "the columns of one table, set the option table"
            )
        if not field.nullable:
            raise OptionError(f"column {field.name} of events may be NULL: remove NOT NULL")
        check_type(field, expected)


def check_type(given: StructField, expected: DataType) -> None:
    """Check the type of an added column; structs may have any of their fields, in any order.

    :raises OptionError: for another type.
    """
    if not _may_be(given.dataType, expected):
        some = " or some of its fields, nullable" if expected in (SOURCE, CORRUPT_RECORD) else ""
        raise OptionError(
            f"column {given.name} is declared as {given.dataType.simpleString()}; it must be "
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


SEQUENCE = struct_of(
    epoch=IntegerType(),
    commit=LongType(),
    rank=IntegerType(),
    partition=IntegerType(),
    offset=LongType(),
    index=IntegerType(),
    part=IntegerType(),
    time=LongType(),
    server=LongType(),
    file=StringType(),
    pos=LongType(),
)
"""Fields up to ``part`` compare from left to right; those after it order changes of a key from
different partitions (docs/order.md)."""

RESCUED = "rescued"

METADATA: dict[str, DataType] = {
    "change_type": StringType(),
    "commit_version": LongType(),
    "commit_timestamp": TimestampType(),
    "sequence": SEQUENCE,
    "absent": ArrayType(StringType()),
    "invalid": ArrayType(StringType()),
    "source": SOURCE,
    "corrupt_record": CORRUPT_RECORD,
    RESCUED: VariantType(),
}
"""The added columns of changes, by name without prefix."""

OF_INSTANTS = (TimestampType, StringType, VariantType)
"""Types for which a TIMESTAMP column needs its time zone."""


def metadata_fields(options: ReadOptions | WriteOptions) -> list[StructField]:
    """The columns that changes may have in addition to the table's own."""
    prefix = options["metadataPrefix"]
    return [StructField(prefix + name, type_) for name, type_ in METADATA.items()]


def changes_schema(columns: Iterable[StructField], options: ReadOptions) -> StructType:
    """A table's columns, all nullable, and the added ones.

    Includes ``_rescued``, unless ``onSchemaChange`` is set and not ``rescue``, and ``_source``
    with ``includeSource``.

    :raises OptionError: if a column of the table has the name of an added one.
    """
    added = metadata_fields(options)
    own = list(columns)
    if options["onSchemaChange"] not in (None, "rescue"):
        added = [field for field in added if not field.name.endswith(RESCUED)]
    taken = {field.name.lower() for field in added} & {field.name.lower() for field in own}
    if taken:
        raise OptionError(
            f"the table has columns named {', '.join(sorted(taken))}; set metadataPrefix"
        )
    source = options["metadataPrefix"] + "source"
    return StructType(
        own + [field for field in added if options["includeSource"] or field.name != source]
    )


def _check_changes(given: StructType, options: ReadOptions) -> None:
    """Check a user's schema: any columns of the table, and any of the added ones.

    :raises OptionError: for an added column of another type, an unsupported type, NOT NULL
        if bad rows are rows of NULLs, and a missing ``_rescued`` under ``rescue``.
    """
    rescued = options["metadataPrefix"] + RESCUED
    if options["onSchemaChange"] == "rescue" and rescued not in given.names:
        raise OptionError(
            f"onSchemaChange=rescue puts values into the column {rescued}, which the schema lacks: "
            f"add `{rescued} VARIANT` to it"
        )
    has_bad_rows = options["mode"] == "PERMISSIVE" and corrupt_column(options) in given.names
    check_declared(given, case_sensitive=options.case_sensitive)
    added = {field.name: field.dataType for field in metadata_fields(options)}
    for field in given.fields:
        if not field.nullable and has_bad_rows:
            raise OptionError(
                f"column {field.name} is NOT NULL, but in mode PERMISSIVE a bad row has NULL "
                "there: declare it nullable, or set mode to FAILFAST or DROPMALFORMED"
            )
        expected = added.get(field.name)
        if expected is not None:
            check_type(field, expected)
        elif not isinstance(field.dataType, SUPPORTED):
            raise OptionError(
                f"column {field.name}: {field.dataType.simpleString()} is not supported as a type "
                "of a table's columns: declare STRING, or the type that a read without a schema has"
            )


def check_declared(schema: StructType, *, case_sensitive: bool) -> None:
    """:raises OptionError: for duplicate names in a schema."""
    twice = [name for name in dict.fromkeys(schema.names) if schema.names.count(name) > 1]
    if twice:
        raise OptionError(f"the schema has column {show(twice[0])} twice")
    for names in () if case_sensitive else clashes(schema.names):
        alike = " and ".join(map(show, names))
        raise OptionError(
            f"the schema has columns {alike}, which differ only in case: set caseSensitive=true, "
            f"and {SPARKS_SWITCH}=true in the session"
        )


def canonical(schema: StructType, known: Sequence[str]) -> StructType:
    """The schema with names spelled as in ``known`` (added names)."""
    ours = {name.lower(): name for name in known}
    return StructType(
        [
            StructField(
                ours.get(field.name.lower(), field.name),
                field.dataType,
                field.nullable,
                field.metadata,
            )
            for field in schema.fields
        ]
    )


def canonical_schema(given: StructType, options: ReadOptions) -> StructType:
    """A user's schema with the exact spelling of the added columns."""
    ours = events_schema(options).fields if options.table is None else metadata_fields(options)
    return canonical(given, [field.name for field in ours])


def check_schema(schema: StructType, options: ReadOptions) -> StructType:
    """Check a user's schema; returns it with the exact spelling of the added columns.

    :raises OptionError: for a schema that does not fit the shape.
    """
    if not schema.fields:
        raise OptionError("the schema has no column: declare at least one")
    schema = canonical_schema(schema, options)
    check = _check_events if options.table is None else _check_changes
    check(schema, options)
    return schema
