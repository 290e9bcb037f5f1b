"""Warnings on the driver of input that is read as the options say, but perhaps not as meant."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

from pyspark.sql.types import StructType, TimestampType

from cdcfmt_core.filters import table_names
from cdcfmt_core.texts import one_line, open_logger
from cdcfmt_core.types import Timestamp
from pyspark_cdcfmt.change_schema import metadata_fields
from pyspark_cdcfmt.engine import WORKER_LOGGING
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.survey import Survey

logger = open_logger("pyspark_cdcfmt")


def warn(text: str) -> None:
    """Warn the user: on the driver's stderr, or in Spark's table of logs where that is on."""
    line = one_line(f"cdc: {text}")
    if WORKER_LOGGING in os.environ:
        logger.warning(line)
    else:
        # Without a registry: Spark uses this process for other queries, which warn again.
        warnings.warn_explicit(line, UserWarning, __name__, 0)


def has_instants(options: ReadOptions, schema: StructType) -> bool:
    """Whether these changes have columns that may need ``sourceTimeZone``, which is not set."""
    return options["sourceTimeZone"] is None and bool(_instants(options, schema))


def notices(survey: Survey, options: ReadOptions, schema: StructType) -> Iterator[str]:
    """What a survey shows of the table whose changes are read."""
    if options.table is None:
        return
    schemas = survey.complete_schemas_of(options.table)
    name = table_names([options.table])
    if (options.table[0], options.table[-1]) in survey.zoneless:
        wanted = _instants(options, schema)
        columns = [
            column.name
            for column in (schemas[-1].columns if schemas else ())
            if isinstance(column.type, Timestamp) and column.name.lower() in wanted
        ]
        if columns:
            yield (
                f"{name}: the messages do not tell the time zone of TIMESTAMP columns "
                f"({', '.join(columns)}), which are read as UTC; set sourceTimeZone to the "
                "source's zone"
            )
    if len(schemas) > 1:
        known = {field.lower() for field in (*schemas[0].column_names, *schema.names)}
        later = dict.fromkeys(column for each in schemas[1:] for column in each.column_names)
        added = [column for column in later if column.lower() not in known]
        if added:
            yield (
                f"{name}: the table has gained columns that the schema lacks, and which are left "
                f"out: {', '.join(added)}; add them to the schema to read them"
            )


def _instants(options: ReadOptions, schema: StructType) -> set[str]:
    if options.table is None:
        return set()
    added = {field.name for field in metadata_fields(options)}
    return {
        field.name.lower()
        for field in schema.fields
        if isinstance(field.dataType, TimestampType) and field.name not in added
    }
