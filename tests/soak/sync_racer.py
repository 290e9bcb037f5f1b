"""One of several processes that write the same targets at the same time.

``sync_racer.py FOLDER SERVERS TOPIC CHECKPOINT STORE``: a sync of all that is in the topic; its
halted tables with their reasons, and its error, are in ``FOLDER/CHECKPOINT-….json``.

``sync_racer.py FOLDER others STORE``: what users do to targets, again and again, until the file
``FOLDER/end`` exists: OPTIMIZE, VACUUM, an append and a DELETE of rows of their own.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from support.spark_settings import CHEAP
from support.sync_app import delta_session

from pyspark_cdcfmt.sync import status, sync

OTHERS_ID = 1_000_000
"""The lowest id of rows that others insert."""


def run(
    spark: SparkSession, folder: Path, servers: str, topic: str, checkpoint: str, store: str
) -> None:
    found: dict[str, object] = {"error": "", "halted": {}}
    try:
        query = sync(
            spark,
            source={
                "kafka.bootstrap.servers": servers,
                "subscribe": topic,
                "maxOffsetsPerTrigger": "60",
                "protocol": "canal-json",
            },
            into=f"{folder}/{store}/{{table}}",
            store=store,
            checkpoint=f"{folder}/checkpoints/{checkpoint}",
            trigger={"availableNow": True},
        )
        (folder / f"{checkpoint}.busy").touch()
        query.awaitTermination()
    except StreamingQueryException as error:
        found["error"] = str(error)
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    with suppress(Exception):
        rows = status(spark, f"{folder}/checkpoints/{checkpoint}").where("halted IS NOT NULL")
        found["halted"] = {row.source: row.halted for row in rows.collect()}
    name = f"{checkpoint}-{time.time_ns()}.json"
    (folder / name).write_text(json.dumps(found))


def meddle(spark: SparkSession, targets: Path, end: Path) -> None:
    times = 0
    while not end.exists():
        for path in [*targets.glob("*")] if targets.exists() else []:
            own = f"SELECT * FROM delta.`{path}` LIMIT 1"
            statements = [
                f"OPTIMIZE delta.`{path}`",
                f"VACUUM delta.`{path}`",
                f"DELETE FROM delta.`{path}` WHERE id >= {OTHERS_ID}",
            ]
            try:
                row = spark.sql(own).selectExpr("* EXCEPT (id, _sequence)", f"{OTHERS_ID} AS id")
                row.write.format("delta").mode("append").save(str(path))
                for statement in statements:
                    spark.sql(statement)
                    times += 1
            except PySparkException as error:
                print(str(error)[:200], flush=True)
    print(f"{times} statements", flush=True)


def main(folder: str, *more: str) -> None:
    spark = delta_session(CHEAP)
    if more[0] == "others":
        meddle(spark, Path(folder, more[1]), Path(folder, "end"))
    else:
        servers, topic, checkpoint, store = more
        run(spark, Path(folder), servers, topic, checkpoint, store)


if __name__ == "__main__":
    main(*sys.argv[1:])
