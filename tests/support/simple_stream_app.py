"""Streams of one live topic in one driver, to be killed: ``simple_stream_app.py FOLDER SERVERS
TOPIC STARTS``.

``STARTS`` is a JSON object: a stream's name and the offsets at which it starts.  Once there
is a file ``complete`` in the folder, it reads the rest and ends.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from support.stream_app import session, write


def start(spark: SparkSession, folder: Path, name: str, options: dict[str, str]) -> StreamingQuery:
    own = folder / name
    reader = spark.readStream.format("cdc").options(**options, schemaStore=str(own / "schemas"))
    writer = (
        reader.load()
        .writeStream.foreachBatch(lambda frame, batch: write(frame, batch, own, folder))
        .option("checkpointLocation", str(own / "checkpoint"))
        .trigger(processingTime="1 second")
    )
    while True:
        query = writer.start()
        # All at once would keep each other from starting in time.
        while query.isActive and "Initializing" in query.status["message"]:
            time.sleep(0.05)
        # Spark gives a source's process ten seconds, which a busy machine may not have.
        if "failed to connect back" not in str(query.exception()):
            return query


def main(folder: str, servers: str, topic: str, starts: str) -> None:
    # Tasks that wait for a schema hold none of the others up.
    spark = session(tasks=8)
    options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "protocol": "simple",
        "maxOffsetsPerTrigger": "60",
    }
    queries = [
        start(spark, Path(folder), name, {**options, "startingOffsets": json.dumps({topic: at})})
        for name, at in json.loads(starts).items()
    ]
    while not Path(folder, "complete").exists():
        for query in queries:
            if not query.isActive:
                raise RuntimeError(f"a stream ended: {query.exception()}")
        time.sleep(0.1)
    for query in queries:
        query.processAllAvailable()
        query.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
