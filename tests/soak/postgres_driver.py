"""Syncs of a real PostgreSQL's topics in a process of their own, to be killed.

``postgres_driver.py FOLDER SERVERS PORT HOME``: they end once all that was in the topics at their
start is read.  ``FOLDER/found.json`` then has the rows of each target, and those that differ.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from postgres_workload import SOURCE, TABLES
from support.postgres_rows import different_rows
from support.postgres_server import Postgres
from support.spark_settings import CHEAP, SMALL_DELTA
from support.sync_app import delta_session, wait_for_source

from pyspark_cdcfmt.sync import log, sync

STORES = ("scd1", "scd2")


def main(folder: str, servers: str, port: str, home: str) -> None:
    spark = delta_session({**CHEAP, **SMALL_DELTA, "spark.sql.session.timeZone": "UTC"})
    queries = []
    for store in STORES:
        query = sync(
            spark,
            source={"kafka.bootstrap.servers": servers, "maxOffsetsPerTrigger": "200", **SOURCE},
            exclude="shop.public.readings_*",
            into=f"{folder}/{store}/{{table}}",
            store=store,
            checkpoint=f"{folder}/checkpoints/{store}",
            trigger={"availableNow": True},
        )
        queries.append(query)
        wait_for_source(query)
    Path(folder, "busy").touch()
    for query in queries:
        query.awaitTermination()
    server = Postgres(Path(folder), int(port), Path(home))
    found = {}
    for store in STORES:
        rows = log(spark, f"{folder}/checkpoints/{store}").where("level = 'error'").collect()
        letters = Path(folder, f"checkpoints/{store}/sync/dead_letters").exists()
        for table in TABLES:
            target = spark.read.format("delta").load(f"{folder}/{store}/{table}")
            different = [repr(pair)[:2_000] for pair in different_rows(server, table, target)]
            problems = [row.detail for row in rows] + ["dead letters"] * letters
            found[f"{store}, {table}"] = target.count(), different + problems
    Path(folder, "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
