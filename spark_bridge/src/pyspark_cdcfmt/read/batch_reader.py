"""The batch reader: splits on the driver, record batches on the executors."""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import Any, TypeAlias, cast

import attrs
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from cdcfmt_core.schema_scan import open_schema_scan
from cdcfmt_core.schemas.records import SchemaRecord, Statement
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_toolkit.inputs import Input, Slice
from pyspark_cdcfmt.kernel.batches import Item
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.checks import check_batch
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.read.inference import InferredSchema
from pyspark_cdcfmt.read.inputs import as_item, divide
from pyspark_cdcfmt.read.schemas import MissingSchemas, find_schemas, policy_of, query_id
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import canonical_schema

Work: TypeAlias = Callable[[Input, Slice, ReadTask], Iterator[tuple[Any, ...]]]
"""The record batches of a slice, for Spark."""

_LARGE = 16 << 20
"""Minimum bytes of a batch that must be released before the next message is read."""


def freeze_imports() -> None:
    """Exclude imported modules from garbage collection.

    Spark's daemon collects garbage after each task.  Visiting 67 000 objects of modules took 25 ms,
    a tenth of a task that reads 64 MB.
    """
    _freeze(len(sys.modules))


@functools.cache
def _freeze(modules: int) -> None:
    """Again for each number of ``modules``: the first task imports more while it reads."""
    gc.freeze()


def plan_tasks(
    source: Input,
    slices: Sequence[Slice],
    options: ReadOptions,
    known: SchemaStore | None = None,
    *,
    streaming: bool = False,
) -> list[Slice]:
    """The slices, each with the table schemas of all of them; ``known`` replaces the search."""
    if known is None:
        known = find_schemas(
            options, lambda scan: source.scanned(slices, scan), statements=not streaming
        )
    return [attrs.evolve(slice_, schemas=known) for slice_ in slices]


class CdcBatchReader(DataSourceReader):
    """Reads files or topics; a partition keeps the order of the input."""

    def __init__(
        self, schema: StructType, options: ReadOptions, *, inferred: InferredSchema | None = None
    ) -> None:
        self._task = ReadTask(schema, options, inferred=inferred is not None)
        self._found = inferred
        self._input = options.require_input()
        policy_of(options)

    def partitions(self) -> Sequence[InputPartition]:
        slices = divide(self._input, self._input.plan(), self._task.options)
        known = None if self._found is None else self._found.schemas_in(slices)
        planned = plan_tasks(self._input, slices, self._task.options, known)
        check_batch(self._input, planned, self._task)
        freeze_imports()
        return [*map(InputPartition, planned)]

    def __getstate__(self) -> dict[str, Any]:
        # Executors need only their partitions.
        return {**self.__dict__, "_found": None}

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        # Spark turns an empty list of partitions into one partition without a value.
        if partition is None or partition.value is None:
            return iter(())
        return read_slice(self._input, partition.value, self._task)


def open_slice(source: Input, slice_: Slice, task: ReadTask) -> tuple[Engine, Iterator[Item]]:
    """The messages of a slice, and their engine."""
    options = task.options
    schemas = stream_schemas(source, slice_, options) if options.streaming else slice_.schemas
    task = attrs.evolve(
        task,
        schema=canonical_schema(task.schema, options),
        schemas=schemas,
        low_watermark=slice_.low_watermark,
    )
    engine = Engine(task, MissingSchemas(task, slice_, source))
    freeze_imports()
    if schemas.search is not None:
        return engine, schemas.search.follow(source.read(slice_, engine.counts))
    return engine, map(as_item, source.read_many(slice_, engine.counts))


def read_slice(source: Input, slice_: Slice, task: ReadTask) -> Iterator[tuple[Any, ...]]:
    """The record batches of a slice."""
    engine, messages = open_slice(source, slice_, task)
    # Unlike a loop, this holds no batch while the next one is made.
    renamed = methodcaller("rename_columns", task.schema.names)
    batches = release_batches(map(renamed, engine.batches(messages, slice_.describe())))
    # Spark accepts record batches although its type hints demand tuples.
    return cast(Iterator[tuple[Any, ...]], batches)


def release_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Add an empty batch before and after each large one, which saves memory.

    Spark's worker keeps the first batch of a task until the end, and each batch until the next.
    """
    while (batch := next(batches, None)) is not None:
        empty = None
        if batch.nbytes >= _LARGE:
            empty = pa.RecordBatch.from_pylist([], batch.schema)
            yield empty
        yield batch
        del batch
        if empty is not None:
            yield empty


class NoSchemas(SchemaStore):
    """No-op store: each message is decoded in isolation."""

    def add(self, record: SchemaRecord | Statement) -> None:
        """Ignore the record."""


def stream_schemas(source: Input, slice_: Slice, options: ReadOptions) -> SchemaStore:
    """The schema store of a stream's task, so that all tasks use the same schemas."""
    if slice_.schemas.persistence is None:
        return NoSchemas()
    store = slice_.schemas.copy()
    scan = open_schema_scan(options.values, options.codec)
    if scan is not None:
        reach = options["schemaSearchMessages"]
        store.search = source.open_search(slice_, store, scan, reach, query_id())
    return store
