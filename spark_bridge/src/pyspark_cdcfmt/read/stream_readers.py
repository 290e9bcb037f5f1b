"""The stream reader over Kafka: offsets on the driver, record batches on the executors."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from cdcfmt_core.sources.kafka import KafkaClient, KafkaOptions, StreamProgress
from cdcfmt_core.sources.kafka.progress import INITIAL, StreamOffset
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read.batch_reader import read_share
from pyspark_cdcfmt.read.checks import StreamCheck
from pyspark_cdcfmt.read.kafka import KafkaInput, KafkaPartition, begins_around, share_out
from pyspark_cdcfmt.read.missing_schemas import check_stream
from pyspark_cdcfmt.read.schemas import open_store


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark keeps one on the driver for each run of a query, which alone has a client.

    Executors get copies that know the options only: all that they need of a batch is in its
    partitions.
    """

    def __init__(
        self,
        schema: StructType,
        options: ReadOptions,
        kafka: KafkaOptions,
        *,
        inferred: bool = False,
    ) -> None:
        kafka.check_stream()
        check_stream(options)
        self._schema = schema
        self._options = options
        self._kafka = kafka
        self._inferred = inferred
        self._check = StreamCheck(options, schema, inferred=inferred)

    def initialOffset(self) -> dict[str, Any]:
        # Looked-up offsets would lose rows: Spark asks again where batch 0 runs again.
        return dict(INITIAL)

    def prepareForTriggerAvailableNow(self) -> None:
        self._progress.stop_at_latest()

    def getDefaultReadLimit(self) -> ReadLimit:
        most, least = self._kafka["maxOffsetsPerTrigger"], self._kafka["minOffsetsPerTrigger"]
        if most is not None:
            return ReadMaxRows(most)
        # Spark has no limit that is both; advance() gets the least of the options.
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        limited = not isinstance(limit, ReadAllAvailable)
        least = self._kafka["minOffsetsPerTrigger"] if limited else None
        return self._progress.advance(start, most, least)

    def reportLatestOffset(self) -> dict[str, Any] | None:
        return self._progress.latest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # The end offset alone: a batch that runs again must read the same.
        offset = StreamOffset.of_json(end)
        shares = share_out(offset.ranges(), self._options, self._client)
        self._check.look(KafkaInput(self._kafka, self._options), shares)
        schemas = open_store(self._options)
        return [
            attrs.evolve(share, schemas=schemas, begins=begins_around(share, offset.starts))
            for share in shares
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, KafkaPartition)
        return read_share(
            KafkaInput(self._kafka, self._options),
            partition,
            self._schema,
            self._options,
            inferred=self._inferred,
            streaming=True,
        )

    @functools.cached_property
    def _client(self) -> KafkaClient:
        return KafkaClient(self._kafka)

    @functools.cached_property
    def _progress(self) -> StreamProgress:
        return StreamProgress(self._kafka, self._client)
