"""A data source of ready Arrow batches: the cost of Spark's transport alone."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from decoding import open_engine
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType
from samples import SAMPLES
from spark_queries import changes_schema

from pyspark_cdcfmt.rows.record_batches import MAX_ROWS
from pyspark_cdcfmt.spark_api import arrow_schema


class ReadyBatches(DataSource):
    """One batch of changes, as cdcfmt makes them, given to Spark again and again.

    Options: ``messages``, whose number of rows is that of the changes; ``tasks``.
    """

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return changes_schema()

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(schema, int(self.options["messages"]), int(self.options["tasks"]))


@functools.cache
def _ready(schema: StructType) -> tuple[pa.RecordBatch, int]:
    """A batch and its number of messages, made once in the process that plans."""
    sample = SAMPLES[0].messages()
    some = sample[2:]
    some *= MAX_ROWS // len(some)
    wanted = arrow_schema(schema)
    batch, *_ = open_engine(sample, SAMPLES[0], "changes", by_kernel=True).batches(some)
    return batch.select(wanted.names).cast(wanted), len(some)


class _Reader(DataSourceReader):
    def __init__(self, schema: StructType, messages: int, tasks: int) -> None:
        self._batch, each = _ready(schema)
        self._tasks = tasks
        self._rows = messages * self._batch.num_rows // each // tasks

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(task) for task in range(self._tasks)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for start in range(0, self._rows, self._batch.num_rows):
            yield self._batch.slice(0, self._rows - start)
