"""A folder of messages that ``sync`` runs over, and the Delta tables that it leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, Row, SparkSession

from pyspark_cdcfmt.sync import sync
from support.canal_messages import COMMIT_TS, row_message, write_lines


@attrs.define
class Lake:
    """Runs of one query over files of messages, and what they leave."""

    spark: SparkSession
    folder: Path
    options: dict[str, Any] = attrs.field(factory=dict)
    source: dict[str, Any] = attrs.field(factory=dict)
    runs: int = 0

    def run(self, *messages: dict[str, Any] | bytes) -> None:
        dump = self.folder / "dump"
        dump.mkdir(exist_ok=True)
        write_lines(dump / f"{self.runs}.json", *messages)
        self.runs += 1
        sync(
            self.spark,
            source={"path": str(dump), "protocol": "canal-json"} | self.source,
            trigger={"availableNow": True},
            **{
                "into": f"{self.folder}/lake/{{database}}/{{table}}",
                "checkpoint": f"{self.folder}/checkpoint",
            }
            | self.options,
        ).awaitTermination()

    def table(self, name: str = "orders") -> DataFrame:
        return self.spark.read.format("delta").load(f"{self.folder}/lake/shop/{name}")

    def rows(self, name: str = "orders") -> dict[int, tuple[str, str]]:
        rows = self.table(name).collect()
        assert len({row.id for row in rows}) == len(rows)
        return {row.id: (row.name, str(row.price)) for row in rows}

    def control(self, name: str) -> list[Row]:
        path = f"{self.folder}/checkpoint/sync/{name}"
        frame = self.spark.read.format("delta").load(path)
        return (frame.orderBy("at") if "at" in frame.columns else frame).collect()


def put(id_: int, name: str, tick: int, *, was: int | None = None, **more: Any) -> dict[str, Any]:
    row = {"id": str(id_), "name": name, "price": "1.50"}
    if was is None:
        return row_message("INSERT", row, commit_ts=COMMIT_TS + tick, **more)
    return row_message("UPDATE", row, row | {"id": str(was)}, commit_ts=COMMIT_TS + tick, **more)


def remove(id_: int, tick: int) -> dict[str, Any]:
    row = {"id": str(id_), "name": "gone", "price": "1.50"}
    return row_message("DELETE", row, commit_ts=COMMIT_TS + tick)
