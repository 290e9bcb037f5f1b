"""A driver that writes and is killed: ``writers_driver.py FOLDER``; ``config.json`` has its jobs.

A job that is through leaves ``done/JOB``; a driver that is started again goes on with the
first one that is not.  Writes that nothing disturbs, into ``clean``, come before all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import pyspark_cdcfmt

FILES = 6
"""Of events; a stream takes one a batch."""


def session() -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        # Several batches a task, so that there is a middle to be killed in.
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    pyspark_cdcfmt.register(spark)
    return spark


def events_of(spark: SparkSession, folder: Path) -> DataFrame:
    path = folder / "events"
    if not path.exists():
        reader = spark.read.format("cdc").option("sourceTimeZone", "Asia/Shanghai")
        dump = reader.option("includeColumns", "true").load(str(folder / "dump"))
        rows = dump.where("kind = 'row'").repartition(FILES, "_source.offset")
        rows.write.parquet(str(folder / "made"))
        (folder / "made").rename(path)
    return spark.read.parquet(str(path))


def target_of(job: dict[str, Any], folder: Path) -> dict[str, str]:
    if job["target"] == "files":
        return {"path": str(folder / "out" / job["name"])}
    return {"kafka.bootstrap.servers": job["servers"], "topic": job["name"]}


def run(spark: SparkSession, events: DataFrame, folder: Path, job: dict[str, Any]) -> None:
    options = {**job["options"], **target_of(job, folder)}
    if job["kind"] == "batch":
        if job["target"] == "files":
            options |= {"txnAppId": job["name"], "txnVersion": "1"}
        events.write.format("cdc").mode("append").options(**options).save()
        return
    reader = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1)
    writer = (
        reader.parquet(str(folder / "events"))
        .writeStream.format("cdc")
        .options(**options)
        .option("checkpointLocation", str(folder / "checkpoints" / job["name"]))
        .trigger(availableNow=True)
    )
    writer.start().awaitTermination()


def main(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    spark = session()
    events = events_of(spark, folder)
    for protocol, options in config["clean"].items():
        path, done = folder / "clean" / protocol, folder / "clean" / f"{protocol}.done"
        if not done.exists():
            events.write.format("cdc").mode("append").options(**options).save(str(path))
            done.touch()
    (folder / "ready").touch()
    for job in config["jobs"]:
        done = folder / "done" / job["name"]
        if not done.exists():
            (folder / "busy").write_text(job["name"])
            run(spark, events, folder, job)
            done.touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
