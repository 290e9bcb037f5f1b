"""Syncs of one topic in a process of their own, to be killed.

``sync_app.py FOLDER SERVERS TOPIC [MESSAGES [STORE ...]]``: one for each store, so many messages a
batch; they end once all that was in the topic at their start is read, and what the tables hold then
is in ``FOLDER/found.json``.  ``FOLDER/source.json`` has more options of the source, if it exists.
The tables are Delta's, or with ``CDCFMT_TESTS_LAKE=iceberg`` those of an Iceberg catalog.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import attrs
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

import pyspark_cdcfmt
from pyspark_cdcfmt.sync import sync
from support import spark_jars
from support.spark_settings import CHEAP, FEW_ROWS, SMALL_DELTA

_T = TypeVar("_T")
STORES = {
    "scd1": ("id", "name"),
    "scd2": ("id", "name", "__START_AT.commit", "__END_AT.commit"),
    "changelog": ("id",),
}
"""With the columns of their tables that tests compare."""
SOURCE = "source.json"


class Lake(Protocol):
    """The tables of one sync for each store."""

    @property
    def folder(self) -> Path:
        """Where checkpoints are."""

    def session(self) -> SparkSession:
        """A session with the format."""

    def options(self, store: str) -> dict[str, Any]:
        """Of :func:`~pyspark_cdcfmt.sync.sync`."""

    def targets(self, spark: SparkSession, store: str) -> dict[str, str]:
        """The identifiers of the targets, by table."""

    def control(self, spark: SparkSession, store: str, name: str) -> str | None:
        """The identifier of a control table; None without one."""


@attrs.frozen
class DeltaLake:
    """Delta tables by path."""

    folder: Path

    def session(self) -> SparkSession:
        return delta_session(CHEAP | SMALL_DELTA)

    def options(self, store: str) -> dict[str, Any]:
        return {"into": f"{self.folder}/{store}/{{table}}"}

    def targets(self, spark: SparkSession, store: str) -> dict[str, str]:
        return {path.name: f"delta.`{path}`" for path in (self.folder / store).iterdir()}

    def control(self, spark: SparkSession, store: str, name: str) -> str | None:
        path = self.folder / f"checkpoints/{store}/sync/{name}"
        return f"delta.`{path}`" if path.exists() else None


@attrs.frozen
class IcebergLake:
    """Iceberg tables of the catalog ``lake``."""

    folder: Path

    def session(self) -> SparkSession:
        settings = CHEAP | spark_jars.iceberg_settings(self.folder)
        return _session(spark_jars.ICEBERG, spark_jars.ICEBERG_EXTENSIONS, settings)

    def options(self, store: str) -> dict[str, Any]:
        into, control = f"lake.{store}.{{table}}", f"lake.{store}_sync"
        return {"format": "iceberg", "into": into, "control": control}

    def targets(self, spark: SparkSession, store: str) -> dict[str, str]:
        rows = spark.sql(f"SHOW TABLES IN lake.{store}").collect()
        return {row.tableName: f"lake.{store}.{row.tableName}" for row in rows}

    def control(self, spark: SparkSession, store: str, name: str) -> str | None:
        table = f"lake.{store}_sync.{name}"
        return table if spark.catalog.tableExists(table) else None


LAKES: dict[str, Callable[[Path], Lake]] = {"delta": DeltaLake, "iceberg": IcebergLake}
FORMAT = "CDCFMT_TESTS_LAKE"


def _session(
    artifacts: Iterable[tuple[str, str, str]], extensions: str, settings: Mapping[str, str]
) -> SparkSession:
    spark = (
        SparkSession.builder.master("local[2]")
        .config(map={**FEW_ROWS, **settings})
        .config("spark.jars", ",".join(spark_jars.jars(artifacts)))
        .config("spark.sql.extensions", extensions)
        .getOrCreate()
    )
    pyspark_cdcfmt.register(spark)
    return spark


def delta_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    catalog = {"spark.sql.catalog.spark_catalog": spark_jars.DELTA_CATALOG}
    return _session(spark_jars.DELTA, spark_jars.DELTA_EXTENSIONS, catalog | (settings or {}))


def main(folder: str, servers: str, topic: str, messages: str = "100", *stores: str) -> None:
    lake = LAKES[os.environ.get(FORMAT, "delta")](Path(folder))
    spark = lake.session()
    queries = []
    options = Path(folder, SOURCE)
    more = json.loads(options.read_text()) if options.exists() else {}
    for store in stores or STORES:
        query = start(
            spark,
            lake,
            store,
            **{
                "kafka.bootstrap.servers": servers,
                "subscribe": topic,
                "maxOffsetsPerTrigger": messages,
                **more,
            },
        )
        queries.append(query)
        wait_for_source(query)
    (Path(folder) / "busy").touch()
    for query in queries:
        query.awaitTermination()
    found = read(spark, lake, stores or STORES)
    Path(folder, "found.json").write_text(json.dumps(found))


def repeated(run: Callable[[], _T]) -> _T:
    """Run a query, up to five times while its processes take over Spark's ten seconds to start."""
    for _ in range(4):
        try:
            return run()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error):
                raise
    return run()


def wait_for_source(query: StreamingQuery) -> None:
    """Let one query begin after the other: a source's process has ten seconds to answer Spark."""
    while query.isActive and query.status["message"].startswith("Initializing"):
        time.sleep(0.1)


def start(spark: SparkSession, lake: Lake, store: str, **source: Any) -> StreamingQuery:
    return sync(
        spark,
        source={"protocol": "canal-json", **source},
        store=store,
        consistency="resolved" if store == "scd1" else "eventual",
        checkpoint=f"{lake.folder}/checkpoints/{store}",
        trigger={"availableNow": True},
        **lake.options(store),
    )


def read(spark: SparkSession, lake: Lake, stores: Iterable[str]) -> dict[str, list[Any]]:
    """Table and columns of all rows by store; beside ``scd1``, each row at each watermark.

    ``letters`` has the reasons of dead letters, ``halts`` those of halted tables.
    """
    found: dict[str, list[Any]] = {"letters": [], "halts": []}
    for store in stores:
        if letters := lake.control(spark, store, "dead_letters"):
            found["letters"] += [(store, row.letter) for row in spark.table(letters).collect()]
        if log := lake.control(spark, store, "log"):
            halts = spark.table(log).where("action = 'halt'").collect()
            found["halts"] += [(store, row.source, row.detail) for row in halts]
        found[store] = [
            (name, *row)
            for name, table in lake.targets(spark, store).items()
            for row in spark.table(table).select(*STORES[store]).collect()
        ]
    if "scd1" in found:
        progress = lake.control(spark, "scd1", "progress")
        assert progress is not None
        found["progress"] = [
            (step.watermark, step.source, row.name)
            for step in spark.table(progress).collect()
            for row in spark.sql(
                f"SELECT name FROM {step.target} VERSION AS OF {step.version}"
            ).collect()
        ]
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
