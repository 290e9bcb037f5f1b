"""The columns of the changes shape, and what a user's schema may have of them."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.types import (
    ArrayType,
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
from pyspark_cdcfmt.rows.row_schemas import CORRUPT_RECORD, SOURCE, check_type, corrupt_column
from pyspark_cdcfmt.rows.values import SUPPORTED

SEQUENCE = StructType(
    [
        StructField("commit", LongType()),
        StructField("rank", IntegerType()),
        StructField("offset", LongType()),
        StructField("index", IntegerType()),
        StructField("part", IntegerType()),
    ]
)

METADATA: dict[str, DataType] = {
    "change_type": StringType(),
    "commit_version": LongType(),
    "commit_timestamp": TimestampType(),
    "sequence": SEQUENCE,
    "absent": ArrayType(StringType()),
    "invalid": ArrayType(StringType()),
    "source": SOURCE,
    "corrupt_record": CORRUPT_RECORD,
}

RESCUED = "rescued"

OF_INSTANTS = (TimestampType, StringType, VariantType)
"""As which a TIMESTAMP column needs its time zone: its wall clock comes back without."""


def metadata_fields(options: ReadOptions) -> list[StructField]:
    """The columns that changes may have besides the table's own."""
    prefix = options["metadataPrefix"]
    fields = METADATA | {RESCUED: VariantType()}
    return [StructField(prefix + name, type_) for name, type_ in fields.items()]


def changes_schema(columns: Iterable[StructField], options: ReadOptions) -> StructType:
    """A table's columns, all nullable, and the added ones.

    ``_rescued`` is one of them, unless ``onSchemaChange`` is set to something else than rescue,
    and ``_source`` under ``includeSource``.

    :raises OptionError: if a column of the table bears the name of an added one.
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


def canonical_changes(given: StructType, options: ReadOptions) -> StructType:
    """A user's schema with the added columns' own spelling, as ``_change_type``."""
    return canonical(given, [field.name for field in metadata_fields(options)])


def check_changes_schema(given: StructType, options: ReadOptions) -> None:
    """A user's schema: any columns of the table, and any of the added ones.

    :raises OptionError: for an added column of another type, a type that no column has, NOT
        NULL where a bad row is one of NULLs, and no place for what is rescued.
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
                f"column {field.name}: {field.dataType.simpleString()} is no type that a "
                "column of a table can have"
            )
