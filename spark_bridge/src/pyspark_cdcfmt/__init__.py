"""``spark.read.format("cdc")``: change-data-capture messages as a Spark data source.

Spark finds :class:`DefaultSource` by itself in every installed ``pyspark_*`` module.
Where another such module is broken it finds none of them; then call :func:`register`.

Importing this module imports no format, since Spark imports it for every look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_cdcfmt.source import CdcDataSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CdcDataSource", "DefaultSource", "register"]


class DefaultSource(CdcDataSource):
    """The class that Spark looks for."""


def register(spark: SparkSession) -> None:
    """Register the format ``cdc`` in this session, without Spark's own look-up."""
    spark.dataSource.register(DefaultSource)
