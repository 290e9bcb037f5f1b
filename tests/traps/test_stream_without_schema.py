"""A stream of changes without `.schema(...)`: it first inferred one, and then refused it.

Spark does not say in `load()` whether it is about a batch or a stream; options do, where some
are given that only streams have.  Then nothing is read.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.canal_messages import INSERT, write_lines

from pyspark_cdcfmt.source import CdcDataSource

STREAMS = (
    {"maxFilesPerTrigger": "1"},
    {"maxFileAge": "1d"},
    {"onMissingSchema": "WAIT"},
    {"subscribe": "t", "kafka.bootstrap.servers": "127.0.0.1:1", "startingOffsets": "latest"},
)


@pytest.mark.parametrize("options", STREAMS, ids=lambda options: [*options][-1])
def test_options_of_streams_are_rejected_before_reading(
    options: dict[str, str], tmp_path: Path
) -> None:
    path = {} if "subscribe" in options else {"path": str(tmp_path)}
    with pytest.raises(Exception, match=r"\.schema\(\.\.\.\)"):
        CdcDataSource({"table": "shop.orders", **path, **options}).schema()


def test_other_streams_fail_on_start(spark: SparkSession, tmp_path: Path) -> None:
    write_lines(tmp_path / "orders.json", INSERT)
    options = {"table": "shop.orders", "maxFilesPerTrigger": "1"}
    with pytest.raises(PySparkException, match=r"set \.schema\(\.\.\.\), or a schemaStore"):
        spark.readStream.format("cdc").options(**options).load(str(tmp_path))
    del options["maxFilesPerTrigger"]
    frame = spark.readStream.format("cdc").options(**options).load(str(tmp_path))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
    with pytest.raises(PySparkException, match=r"set \.schema\(\.\.\.\), or a schemaStore"):
        writer.trigger(availableNow=True).start().awaitTermination()
