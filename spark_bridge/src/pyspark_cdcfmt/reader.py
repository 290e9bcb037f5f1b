"""The batch reader: splits on the driver, record batches on the executors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import attrs
from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In, InputPartition
from pyspark.sql.types import StructType

from cdcfmt_core.filters import EventFilter
from pyspark_cdcfmt.engine import Engine
from pyspark_cdcfmt.inputs import Input, Share, open_input
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.schemas import find_schemas


class CdcBatchReader(DataSourceReader):
    """Reads files or topics; the order within a partition is that of the input."""

    def __init__(self, schema: StructType, options: ReadOptions, *, inferred: bool) -> None:
        self._schema = schema
        self._options = options
        self._inferred = inferred
        self._filter = options.event_filter()
        self._input = open_input(options)

    def partitions(self) -> Sequence[InputPartition]:
        shares = self._input.plan()
        schemas = find_schemas(self._options, self._input.read_all(shares))
        return [attrs.evolve(share, schemas=schemas) for share in shares]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        # Spark turns an empty list of partitions into one without a value.
        if not isinstance(partition, Share):
            return iter(())
        return read_share(
            self._input,
            partition,
            self._schema,
            self._options,
            inferred=self._inferred,
            event_filter=self._filter,
        )


def read_share(
    source: Input,
    share: Share,
    schema: StructType,
    options: ReadOptions,
    *,
    inferred: bool = False,
    event_filter: EventFilter | None = None,
) -> Iterator[tuple[Any, ...]]:
    """What a task does: the record batches of a share."""
    engine = Engine(
        schema, options, inferred=inferred, event_filter=event_filter, schemas=share.schemas
    )
    batches = engine.batches(source.read(share, engine.counts), share.describe())
    # Spark takes record batches where its type hints say tuples.
    return cast(Iterator[tuple[Any, ...]], batches)


class PushdownReader(CdcBatchReader):
    """The reader where the user turned on ``spark.sql.python.filterPushdown.enabled``.

    Filters on kind and op only spare decoding; all of them go back to
    Spark, which applies them once more.  (With pushdown off, Spark fails every read of a
    reader that has ``pushFilters``; hence a class of its own.)
    """

    def pushFilters(self, filters: list[Filter]) -> Iterator[Filter]:
        if self._options.table is None:
            for pushed in filters:
                column, values = _wanted_values(pushed)
                if column == "kind":
                    kinds = _narrowed(self._filter.kinds, values)
                    self._filter = attrs.evolve(self._filter, kinds=kinds)
                elif column == "op":
                    ops = _narrowed(self._filter.ops, values)
                    self._filter = attrs.evolve(self._filter, ops=ops)
        yield from filters


def _wanted_values(pushed: Filter) -> tuple[str | None, frozenset[str]]:
    if isinstance(pushed, EqualTo) and len(pushed.attribute) == 1:
        return pushed.attribute[0], frozenset([pushed.value])
    if isinstance(pushed, In) and len(pushed.attribute) == 1:
        return pushed.attribute[0], frozenset(pushed.value)
    return None, frozenset()


def _narrowed(known: frozenset[str] | None, values: frozenset[str]) -> frozenset[str]:
    return values if known is None else known & values
