"""The stream reader: offsets on the driver, batches on the executors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from cdcfmt_core.transport import Progress
from cdcfmt_toolkit.topics.stream_offset import INITIAL
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.batch_reader import Work, plan_tasks, read_slice
from pyspark_cdcfmt.read.checks import StreamCheck
from pyspark_cdcfmt.read.inputs import divide
from pyspark_cdcfmt.read.schemas import check_stream, open_store
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.spark_api import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)


class CdcStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Stream reader of files or topics.

    Spark keeps one on the driver for each run of a query, the only one with a client.  Executors
    get copies with the options; everything else is in the partitions of a batch.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        *,
        inferred: bool = False,
        work: Work = read_slice,
    ) -> None:
        self._input = options.require_input()
        self._input.check_stream()
        check_stream(options)
        self._options = options
        self._task = ReadTask(schema, options.in_stream(), inferred=inferred)
        self._work = work
        self._check = StreamCheck(ReadTask(schema, options, inferred=inferred))
        self._has_advanced = False
        self._end: dict[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:
        # Offsets by timestamp would lose rows: Spark calls this again if batch 0 is repeated.
        return dict(INITIAL)

    def prepareForTriggerAvailableNow(self) -> None:
        self._progress.stop_at_latest()

    def getDefaultReadLimit(self) -> ReadLimit:
        most, least = self._input.limits()
        if most is not None:
            # For files, their number.
            return ReadMaxRows(most)
        # Spark has no limit with both a minimum and a maximum; advance() applies the minimum.
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        if start is None or limit is None:
            start, limit = self._bounds()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        limited = not isinstance(limit, ReadAllAvailable)
        least = self._input.limits()[1] if limited else None
        self._has_advanced = True
        self._end = self._progress.advance(start, most, least)
        return self._end

    def _bounds(self) -> tuple[dict[str, Any], ReadLimit]:
        """Start and limit of the next batch in Spark 4.1, which passes neither.

        It calls ``latestOffset`` once for AvailableNow, which cannot be told from the first call
        for another trigger: the first batch of a run has no limit.
        """
        start = dict(INITIAL) if self._end is None else self._end
        return start, self.getDefaultReadLimit() if self._has_advanced else ReadAllAvailable()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._progress.latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self._end = end
        if start == end:
            # Spark 4.1 passes the last offset of the checkpoint at each start in this way.
            return []
        check = None if self._has_advanced else self._progress
        slices = divide(self._input, self._input.batch(start, end, check), self._options)
        self._check.check(self._input, slices)
        # Without a store, the schemas in a batch's own files would depend on its end.
        known = None
        if self._input.can_search or self._options["schemaStore"] is None:
            known = open_store(self._options)
        planned = plan_tasks(self._input, slices, self._options, known, streaming=True)
        return [*map(InputPartition, planned)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        return self._work(self._input, partition.value, self._task)

    @functools.cached_property
    def _progress(self) -> Progress:
        return self._input.open_progress()
