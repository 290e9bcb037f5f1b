"""Streams of a process of their own, to be killed: ``killed_writer_app.py FOLDER POINT...``.

Each writes ``FOLDER/events`` to ``FOLDER/POINT``, and stops in the commit of its second batch:
before it, or when the files are moved.  It then makes ``FOLDER/POINT.stuck``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import NoReturn

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pyspark_cdcfmt import DefaultSource
from pyspark_cdcfmt.write.writers import CdcStreamWriter


class Stuck(DefaultSource):
    """The source itself, apart from what its driver does in a commit."""

    @classmethod
    def name(cls) -> str:
        return "stuck"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        writer = super().streamWriter(schema, overwrite)
        assert isinstance(writer, CdcStreamWriter)
        return StuckWriter(writer.schema, writer.options, writer.sink)


class StuckWriter(CdcStreamWriter):
    """The writer of :class:`Stuck`."""

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        from cdcfmt_files.sinks import files

        path = Path(str(self.options["path"]))

        def stick(*_: object) -> NoReturn:
            path.with_suffix(".stuck").touch()
            while not (path.parent / "killed").exists():
                time.sleep(0.05)
            os._exit(1)

        if batchId == 1 and path.name == "before":
            stick()
        if batchId == 1 and path.name == "moved":
            files.create = stick
        super().commit(messages, batchId)


def main(folder: Path, points: list[str]) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    spark.dataSource.register(Stuck)
    schema = spark.read.parquet(str(folder / "events")).schema
    queries = [
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder / "events"))
        .writeStream.format("stuck")
        .option("protocol", "canal-json")
        .option("checkpointLocation", str(folder / f"{point}.checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / point))
        for point in points
    ]
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
