"""A stream of its own process, to be killed: ``topic_stream_app.py FOLDER OPTION=VALUE…``.

Ends once all that was in the topic at its start is read.
"""

from __future__ import annotations

import sys
from pathlib import Path

from support.kafka_orders import SCHEMA
from support.stream_app import session, write


def main(folder: str, *options: str) -> None:
    spark = session(tasks=2)
    query = (
        spark.readStream.format("cdc")
        .options(**dict(option.split("=", 1) for option in options))
        .option("startingOffsets", "earliest")
        .option("table", "shop.orders")
        .schema(SCHEMA)
        .load()
        .writeStream.foreachBatch(lambda frame, n: write(frame, n, Path(folder), Path(folder)))
        .option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
