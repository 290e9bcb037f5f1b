"""Names of Spark's Python API that differ between its versions.

Limits of a stream's batches came with Spark 4.2 (``pyspark.sql.streaming.datasource``), which
passes ``latestOffset`` a start and a limit, and prepares AvailableNow.  Spark 4.1 calls
``latestOffset()`` without either, once only for AvailableNow.  At each start of a query with a
checkpoint, it first calls ``partitions(offset, offset)`` with the checkpoint's last offset.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxRows,
            ReadMinRows,
            SupportsTriggerAvailableNow,
        )
    except ModuleNotFoundError:
        import attrs

        class SupportsTriggerAvailableNow:
            pass

        class ReadLimit:
            pass

        class ReadAllAvailable(ReadLimit):
            pass

        @attrs.frozen
        class ReadMaxRows(ReadLimit):
            max_rows: int

        @attrs.frozen
        class ReadMinRows(ReadLimit):
            min_rows: int


__all__ = [
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "ReadMinRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
]

# Spark 4.1 has no parameter, as all its timestamps with a zone are in UTC.
_IN_UTC = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows for Spark; timestamps with a zone are in UTC."""
    return to_arrow_schema(schema, **_IN_UTC)  # type: ignore[arg-type]
