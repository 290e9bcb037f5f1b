"""Write the archive of Spark's classes that the JVMs of tests start from (:func:`java.archive`).

An application uses what most tests use, and Java writes the classes down at its end.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import pyspark_cdcfmt
from support.java import NO_WARNINGS, SHORT_LIVED, archive, of_path
from support.spark_settings import CHEAP, FEW_ROWS

_MESSAGES = Path(pyspark_cdcfmt.__file__).parent / "demo" / "data" / "canal-json.jsonl.gz"
_SECONDS = 300
"""So long Java may take to write it."""


def main() -> None:
    path = archive()
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".part")
    options = (*SHORT_LIVED, *NO_WARNINGS, of_path("ArchiveClassesAtExit", written))
    os.environ["SPARK_SUBMIT_OPTS"] = " ".join(options)
    spark = SparkSession.builder.master("local[2]").config(map=FEW_ROWS | CHEAP).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    with tempfile.TemporaryDirectory() as folder:
        use(spark, folder)
    java = spark.sparkContext._gateway.proc
    spark.stop()
    java.stdin.close()
    # Java that is stopped before its end leaves a file that no JVM starts from.
    try:
        java.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        java.kill()
        written.unlink(missing_ok=True)
    if written.exists():
        written.replace(path)
    else:
        print("cdcfmt: Java has archived no classes; the JVMs of tests start slower without")


def use(spark: SparkSession, folder: str) -> None:
    """Read, and write the result, in batches and as a stream."""
    pyspark_cdcfmt.register(spark)
    options = {"protocol": "canal-json"}
    events = spark.read.format("cdc").options(**options).load(str(_MESSAGES))
    events.write.parquet(f"{folder}/events")
    events.createOrReplaceTempView("events")
    spark.sql("SELECT kind, max(commit_ts), count(*) FROM events GROUP BY 1 ORDER BY 2").collect()
    spark.sql("SELECT * FROM events JOIN events USING (table) LIMIT 1").collect()

    def write(batch: DataFrame, number: int) -> None:
        batch.write.parquet(f"{folder}/batch={number}")

    stream = spark.readStream.format("cdc").options(**options).load(str(_MESSAGES))
    query = (
        stream.writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
