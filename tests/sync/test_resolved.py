"""``sync`` with ``consistency="resolved"``: held events, and their release by a watermark."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import attrs
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyspark_cdcfmt.sync.control import Batch
from pyspark_cdcfmt.sync.resolved import Resolved

EVENTS = (
    "kind STRING, commit_ts BIGINT, database STRING, schema STRING, table STRING,"
    " _source STRUCT<topic: STRING, partition: INT>"
)


@attrs.define
class Kept:
    """The control tables in memory."""

    last: dict[str, int] = attrs.field(factory=dict)
    events: list[DataFrame] = attrs.field(factory=list)

    def watermarks(self, batch: Batch) -> dict[str, int]:
        return dict(self.last)

    def note_watermarks(self, batch: Batch, watermarks: dict[str, int]) -> None:
        self.last |= watermarks

    def note_progress(self, batch: Batch, rows: Any) -> None:
        pass

    def keep_events(self, name: str, batch: Batch, part: str, events: DataFrame, _: Any) -> None:
        self.events.append(events)

    def staged(self, batch: Batch, since: int) -> DataFrame:
        first, *others = self.events[:-1]
        for other in others:
            first = first.unionByName(other)
        return first.where(f"commit_ts >= {since}")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_new_partition_holds_the_watermark(
    spark: SparkSession, tmp_path: Path, restarts: bool
) -> None:
    """Events released by an earlier watermark are not released again."""
    kept: Any = Kept()
    # Spark would read its name as a pattern.
    tmp_path = tmp_path / "{a}[b]*"
    tmp_path.mkdir()
    resolved = Resolved(kept, Mock(), str(tmp_path), 1)
    (tmp_path / "offsets").mkdir()
    found = []
    for number, events in enumerate(
        (
            [("row", 1, 0)],
            [("watermark", 2, 0)],
            [("row", 3, 1)],
            [("watermark", 5, 0)],
            [("watermark", 4, 1)],
            [("watermark", 6, 1), ("row", 5, 0)],
        )
    ):
        (tmp_path / f"offsets/{number}").write_text('{"batchTimestampMs": 0}')
        if restarts:
            resolved = Resolved(kept, Mock(), str(tmp_path), 1)
        rows = [(kind, ts, "shop", None, "orders", ("t", place)) for kind, ts, place in events]
        batch = Batch("query", number)
        released = resolved.release(spark.createDataFrame(rows, EVENTS), batch)
        found.append([row.commit_ts for row in released.where("kind = 'row'").collect()])
        resolved.step(batch, [], set())
    assert found == [[], [1], [], [], [3], []]
    assert resolved.resolved == 5
