"""A driver to be killed: ``streams_driver.py FOLDER``; ``FOLDER/config.json`` has the streams.

Each stream goes from Kafka into Parquet or Delta.  Once there is a file ``complete``, the
driver reads the rest, compares the tables with ``FOLDER/expected`` and writes ``result.json``.
"""

from __future__ import annotations

import json
import sys
import time
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.types import StructType
from support import spark_jars

import pyspark_cdcfmt

KEY = ("topic", "partition", "offset", "index")
"""Of ``_source``: what identifies a message's event, once and for all."""


def session() -> SparkSession:
    """Tasks are tried again, as on a cluster."""
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.jars", ",".join(spark_jars.jars(spark_jars.DELTA)))
        .config("spark.sql.extensions", spark_jars.DELTA_EXTENSIONS)
        .config("spark.sql.catalog.spark_catalog", spark_jars.DELTA_CATALOG)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    pyspark_cdcfmt.register(spark)
    return spark


def start(spark: SparkSession, folder: Path, stream: dict[str, Any]) -> StreamingQuery:
    own = folder / stream["name"]
    # Else one stream's tasks wait for all of the other's.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", stream["name"])
    reader = (
        spark.readStream.format("cdc")
        .options(**stream["options"], schemaStore=str(own / "schemas"))
        .schema(StructType.fromJson(stream["schema"]))
    )
    writer = (
        reader.load()
        .writeStream.format(stream["target"])
        .option("checkpointLocation", str(own / "checkpoint"))
        .trigger(processingTime="1 second")
    )
    return writer.start(str(own / "out"))


def main(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    spark = session()
    queries = [start(spark, folder, stream) for stream in config["streams"]]
    batches = [-1] * len(queries)
    while not (folder / "complete").exists():
        for query in queries:
            if not query.isActive:
                raise RuntimeError(f"a stream ended: {query.exception()}")
        done = [query.lastProgress for query in queries]
        last = [-1 if each is None else each.batchId for each in done]
        if all(new > old for new, old in zip(last, batches, strict=True)):
            (folder / "busy").touch()
            batches = last
        time.sleep(0.2)
    for query in queries:
        query.processAllAvailable()
        query.stop()
    found = [compare(spark, folder, stream) for stream in config["streams"]]
    (folder / "result.json").write_text(json.dumps(found))


def compare(spark: SparkSession, folder: Path, stream: dict[str, Any]) -> dict[str, Any]:
    """Per topic: rows, and how many are lost, double or different."""
    schema = StructType.fromJson(stream["schema"])
    out = spark.read.format(stream["target"]).load(str(folder / stream["name"] / "out"))
    expected = spark.read.schema(schema).parquet(str(folder / "expected" / stream["name"]))
    joined = hashed(expected, schema, "e").join(hashed(out, schema, "a"), list(KEY), "full_outer")
    e, a = f.coalesce("e", f.lit(0)), f.coalesce("a", f.lit(0))
    differ = (e == a) & ~f.col("e_rows").eqNullSafe(f.col("a_rows"))
    counted = (
        joined.groupBy("topic")
        .agg(
            f.sum(a).alias("events"),
            f.sum(f.greatest(e - a, f.lit(0))).alias("lost"),
            f.sum(f.greatest(a - e, f.lit(0))).alias("doubled"),
            f.count_if(differ).alias("different"),
        )
        .collect()
    )
    wrong = joined.where((e != a) | differ).select(*KEY).limit(3).collect()
    result = {
        "name": stream["name"],
        "topics": {row.topic: row.asDict() for row in counted},
        "samples": [
            f"{place.asDict()}: expected {texts(expected, place)}, found {texts(out, place)}"
            for place in wrong
        ],
    }
    if "_sequence" in schema.names:
        result["changes"] = distinct_changes(out)
    return result


def texts(frame: DataFrame, place: Row) -> list[str]:
    """The rows of one message, to analyse a failure."""
    of_place = [f.col(f"_source.{part}").eqNullSafe(place[part]) for part in KEY[:3]]
    rows = frame.where(reduce(Column.__and__, of_place)).toJSON()
    return [str(row) for row in rows.collect()]


def hashed(frame: DataFrame, schema: StructType, name: str) -> DataFrame:
    """Per message and event: how many rows, and all their values as hashes."""
    text = f.to_json(f.struct(*schema.names))
    return (
        frame.select(*(f.col(f"_source.{part}") for part in KEY), f.sha2(text, 256).alias("row"))
        .fillna(-1, ["index", "offset", "partition"])
        .groupBy(*KEY)
        .agg(f.count("*").alias(name), f.sort_array(f.collect_list("row")).alias(f"{name}_rows"))
    )


def distinct_changes(out: DataFrame) -> dict[str, list[int]]:
    """Per topic: changes by key and ``_sequence``, and by those and all values.

    Whatever was sent twice counts once, if it is equal to itself.
    """
    values = [
        name for name in out.columns if name not in ("_source", "_corrupt_record", "_sequence")
    ]
    rows = out.where("_change_type IS NOT NULL AND _sequence.commit > 0").select(
        "_source.topic",
        f.to_json(f.struct("id", "_sequence")).alias("change"),
        f.sha2(f.to_json(f.struct("_sequence", *values)), 256).alias("row"),
    )
    counted = rows.groupBy("topic").agg(f.count_distinct("change"), f.count_distinct("row"))
    return {row[0]: [row[1], row[2]] for row in counted.collect()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
