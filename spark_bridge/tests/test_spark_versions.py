"""Streams on Spark 4.1, which passes ``latestOffset`` neither a start nor a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from support.canal_messages import row_message, write_lines
from support.spark_marks import ON_SPARK_4_1

from cdcfmt_files.sources import FileOffset
from pyspark_cdcfmt import spark_api
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.sync.session import has_unfinished_batch

BAD = StructType().add("reason", "string").add("key", "binary").add("value", "binary")
SCHEMA = StructType().add("id", "integer").add("_change_type", "string").add("_corrupt_record", BAD)
NOTHING = pa.py_buffer(b"")


class Folder:
    """Files with one row each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0
        path.mkdir()

    def put(self, files: int) -> None:
        for _ in range(files):
            name = self.path / f"{self.count:03}.json"
            write_lines(name, row_message("INSERT", {"id": str(self.count)}))
            self.count += 1

    def reader(self) -> Any:
        options = {"path": str(self.path), "table": "shop.orders", "maxFilesPerTrigger": "2"}
        return CdcDataSource(options).streamReader(SCHEMA)


def files_of(reader: Any, start: Any, end: Any) -> int:
    assert reader.partitions(start, end)
    return len(FileOffset.from_json(end).batch)


def test_the_first_batch_of_a_run_has_no_limit(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "in")
    folder.put(5)
    reader = folder.reader()
    first = reader.latestOffset()
    read = [files_of(reader, reader.initialOffset(), first)]
    folder.put(5)
    ends = [first]
    for _ in range(4):
        ends.append(reader.latestOffset())
        if ends[-1] != ends[-2]:
            read.append(files_of(reader, *ends[-2:]))
    assert read == [5, 2, 2, 1]
    assert ends[-1] == ends[-2]
    # A restart: Spark passes the last offset of the checkpoint before it asks for a newer one.
    folder.put(7)
    again = folder.reader()
    assert again.partitions(ends[-1], ends[-1]) == []
    last = again.latestOffset()
    assert files_of(again, ends[-1], last) == 7
    assert again.latestOffset() == last


@pytest.mark.smoke
def test_runs_with_limits_lose_and_repeat_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "in")
    frame = (
        spark.readStream.format("cdc")
        .option("table", "shop.orders")
        .option("maxFilesPerTrigger", 2)
        .schema(SCHEMA)
        .load(str(folder.path))
    )
    for trigger in ({"processingTime": "0 seconds"}, {"availableNow": True}):
        for _ in range(2):
            folder.put(5)
            query = (
                frame.writeStream.format("parquet")
                .option("path", str(tmp_path / "out"))
                .option("checkpointLocation", str(tmp_path / "checkpoint"))
                .trigger(**trigger)  # type: ignore[arg-type]
                .start()
            )
            if "availableNow" in trigger:
                query.awaitTermination()
            else:
                query.processAllAvailable()
                folder.put(5)
                time.sleep(0.1)
                query.processAllAvailable()
                query.stop()
            rows = spark.read.parquet(str(tmp_path / "out")).collect()
            assert sorted(row.id for row in rows) == list(range(folder.count))


@pytest.mark.smoke
def test_a_run_after_a_crash_repeats_its_batch(spark: SparkSession, tmp_path: Path) -> None:
    """On Spark 4.1 a run with AvailableNow ends then, and another run reads the rest."""
    folder = Folder(tmp_path / "in")
    folder.put(2)
    frame = spark.readStream.format("cdc").option("table", "shop.orders").schema(SCHEMA)
    read: list[int] = []

    def crash(batch: DataFrame, number: int) -> None:
        raise InterruptedError(f"batch {number}")

    def collect(batch: DataFrame, number: int) -> None:
        read.extend(row.id for row in batch.collect())

    def run(work: Callable[[DataFrame, int], None]) -> None:
        writer = frame.load(str(folder.path)).writeStream.foreachBatch(work)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(StreamingQueryException, match="batch 0"):
        run(crash)
    assert has_unfinished_batch(spark, str(tmp_path / "checkpoint"))
    folder.put(3)
    run(collect)
    assert not has_unfinished_batch(spark, str(tmp_path / "checkpoint"))
    if ON_SPARK_4_1:
        assert sorted(read) == [0, 1]
        run(collect)
    assert sorted(read) == list(range(5))


def test_arrays_without_offsets_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow 18 for Java sends no offsets for strings, lists and binaries of no elements."""
    monkeypatch.setattr(spark_api, "_IS_OLD", True)
    bare = {
        type_: pa.Array.from_buffers(type_, 0, [None, NOTHING, NOTHING])
        for type_ in (pa.string(), pa.binary())
    }
    pair = pa.StructArray.from_arrays([*bare.values()], names=["key", "value"])
    lists = pa.ListArray.from_arrays([0, None, 0], pair)
    found = pa.StructArray.from_arrays(
        [lists, pa.array([1, 2])], names=["headers", "n"], mask=pa.array([False, True])
    )
    batch = pa.RecordBatch.from_struct_array(found)
    for given in (found, found.slice(1), batch):
        (repaired,) = spark_api.with_offsets(iter([given]))
        assert repaired.equals(given)
        repaired.validate(full=True)
    (repaired,) = spark_api.with_offsets(iter([batch]))
    for part in (batch, repaired):
        offsets = part.column(0).values.field(0).buffers()[1]
        assert offsets.size == (0 if part is batch else 4)
