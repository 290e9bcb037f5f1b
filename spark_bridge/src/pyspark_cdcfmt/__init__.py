"""``spark.read.format("cdc")``: change-data-capture messages as a Spark data source.

Spark looks for a :class:`DefaultSource` in every installed ``pyspark_*`` module.  If another such
module is broken, Spark finds none; then call :func:`register`.  :func:`session` makes a local
session in which all is set.  :func:`decode` decodes messages in
a DataFrame, :func:`encode` turns events into messages, and :func:`spark_schema` returns the schema
of a table's changes.

Importing this module imports no format, since Spark imports it at every look-up.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pyspark_cdcfmt.source import CdcDataSource, check_interpreter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pyspark_cdcfmt.local import session
    from pyspark_cdcfmt.options import message_options
    from pyspark_cdcfmt.read.dataframes import KAFKA_COLUMNS, changes, decode, learn_schemas
    from pyspark_cdcfmt.read.reports import columns_schema, observed, resolved_ts, spark_schema
    from pyspark_cdcfmt.rows.row_schemas import CORRUPT_RECORD, METADATA, SEQUENCE, SOURCE
    from pyspark_cdcfmt.write.dataframes import encode

__all__ = [
    "CORRUPT_RECORD",
    "KAFKA_COLUMNS",
    "METADATA",
    "SEQUENCE",
    "SOURCE",
    "CdcDataSource",
    "DefaultSource",
    "changes",
    "columns_schema",
    "decode",
    "encode",
    "learn_schemas",
    "message_options",
    "observed",
    "register",
    "resolved_ts",
    "session",
    "spark_schema",
]

# Imported on use: these need pyarrow and the formats.
_MODULE_OF = {
    "message_options": "options",
    **dict.fromkeys(("KAFKA_COLUMNS", "changes", "decode", "learn_schemas"), "read.dataframes"),
    **dict.fromkeys(("columns_schema", "observed", "resolved_ts", "spark_schema"), "read.reports"),
    **dict.fromkeys(("CORRUPT_RECORD", "METADATA", "SEQUENCE", "SOURCE"), "rows.row_schemas"),
    "encode": "write.dataframes",
    "session": "local",
}


class DefaultSource(CdcDataSource):
    """The class that Spark looks for."""


def register(spark: SparkSession) -> None:
    """Register the format ``cdc``, or ``cdcfmt``, in this session, without Spark's look-up.

    Makes the session active in this thread, as Spark needs for writing.

    :raises MissingDependencyError: if the Python that runs Spark's data sources lacks this
        package; the error names the variables to set.
    """
    from pyspark.sql.types import StructType

    import pyspark_cdcfmt_alias

    check_interpreter(spark)
    spark.dataSource.register(DefaultSource)
    spark.dataSource.register(pyspark_cdcfmt_alias.DefaultSource)
    # Makes it active, as all methods that make a DataFrame of Python's values do.
    spark.createDataFrame([], StructType())


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
