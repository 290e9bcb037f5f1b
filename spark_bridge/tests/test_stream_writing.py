"""``writeStream.format("cdc")`` to files, through restarts."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from support.canal_messages import COMMIT_TS, row_message, watermark_message, write_lines


def run(spark: SparkSession, schema: StructType, source: Path, out: Path, checkpoint: Path) -> None:
    """One availableNow run of a stream of events out of Parquet."""
    query = (
        spark.readStream.schema(schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .writeStream.format("cdc")
        .option("protocol", "canal-json")
        .option("enableTidbExtension", True)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start(str(out))
    )
    query.awaitTermination()


def test_repeated_batch_is_written_once(spark: SparkSession, tmp_path: Path) -> None:
    dump, source = tmp_path / "dump", tmp_path / "events"
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    dump.mkdir()
    for number in range(2):
        write_lines(dump / "a.jsonl", row_message("INSERT", {"id": str(number)}))
        events = spark.read.format("cdc").option("includeColumns", True).load(str(dump))
        events.coalesce(1).write.mode("append").parquet(str(source))
    run(spark, events.schema, source, out, checkpoint)
    written = spark.read.format("cdc").load(str(out)).selectExpr("after:id::int id")
    assert sorted(row.id for row in written.collect()) == [0, 1]

    # Spark died after our commit of batch 1, before its own.
    for path in (checkpoint / "commits").glob("*1*"):
        path.unlink()
    before = {path.name for path in out.iterdir()}
    run(spark, events.schema, source, out, checkpoint)
    assert {path.name for path in out.iterdir()} == before
    assert sorted(row.id for row in written.collect()) == [0, 1]
    assert len(list((out / "_cdcfmt/commits").iterdir())) == 2
    assert list((out / "_cdcfmt/staged").iterdir()) == []

    # It died before our commit of batch 1 was through: files moved, but no manifest.
    for path in [*(checkpoint / "commits").glob("*1*"), *(out / "_cdcfmt/commits").glob("*1.json")]:
        path.unlink()
    again = spark.read.format("cdc").load(str(out)).selectExpr("after:id::int id")
    assert len(again.collect()) == 1
    run(spark, events.schema, source, out, checkpoint)
    again = spark.read.format("cdc").load(str(out)).selectExpr("after:id::int id")
    assert sorted(row.id for row in again.collect()) == [0, 1]

    # A query of its own: another checkpoint, other batches.
    shutil.rmtree(checkpoint)
    run(spark, events.schema, source, out, checkpoint)
    again = spark.read.format("cdc").load(str(out))
    assert again.count() == 4


def test_lagging_partition_holds_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    source, out, checkpoint = (tmp_path / name for name in ("events", "out", "checkpoint"))
    # By batch: watermarks of the partitions of a topic.
    for number, watermarks in enumerate([{0: 10, 1: 7}, {0: 30}, {1: 20}]):
        dump = tmp_path / "dump"
        dump.mkdir(exist_ok=True)
        for partition in (0, 1):
            messages = [row_message("INSERT", {"id": str(number)})]
            if partition in watermarks:
                messages.append(watermark_message(COMMIT_TS + watermarks[partition]))
            write_lines(dump / f"{partition}.jsonl", *(messages if partition in watermarks else []))
        read = spark.read.format("cdc").option("includeColumns", True)
        # As if read from Kafka.
        (
            read.load(str(dump))
            .withColumn("place", f.regexp_extract("_source.path", r"(\d)\.jsonl", 1).cast("int"))
            .withColumn(
                "_source",
                f.col("_source").withField("path", f.lit(None).cast("string"))
                .withField("topic", f.lit("orders")).withField("partition", f.col("place")),
            )
            .drop("place").coalesce(1).write.mode("append").parquet(str(source))
        )  # fmt: skip
    run(spark, read.load(str(dump)).schema, source, out, checkpoint)
    written = spark.read.format("cdc").load(str(out))
    watermarks = written.where("kind = 'watermark'").orderBy("commit_ts").collect()
    # The second batch had none of the partition that lags.
    assert [row.commit_ts - COMMIT_TS for row in watermarks] == [7, 20]
    assert len(list((checkpoint / "cdcfmt-watermarks").glob("*.json"))) == 3
