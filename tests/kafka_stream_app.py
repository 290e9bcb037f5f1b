"""A stream of its own process, to be killed: ``kafka_stream_app.py SERVERS TOPIC FOLDER LIMIT``.

Each batch replaces its own folder of Parquet, so that a batch that runs again is not double.
Ends once all that was in the topic at its start is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from kafka_orders import SCHEMA
from pyspark.sql import DataFrame, SparkSession

import pyspark_cdcfmt


def main(servers: str, topic: str, folder: str, limit: str) -> None:
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )

    # Spares the look-up.
    pyspark_cdcfmt.register(spark)

    def write(frame: DataFrame, batch: int) -> None:
        frame.write.mode("overwrite").parquet(f"{folder}/out/batch={batch}")
        Path(folder, "busy").touch()

    query = (
        spark.readStream.format("cdc")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", limit)
        .option("table", "shop.orders")
        .schema(SCHEMA)
        .load()
        .writeStream.foreachBatch(write)
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
