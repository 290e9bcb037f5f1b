"""``sync`` of arrays, maps and structs whose types change within a column."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support import nested_messages
from support.nested_messages import BEFORE, CHANGED, LATER
from support.sync_lake import Lake

from pyspark_cdcfmt.sync import status


@pytest.mark.parametrize(
    "store",
    ["scd1", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("scd2", "changelog"))],
)
def test_types_within_a_column_change(delta: SparkSession, tmp_path: Path, store: str) -> None:
    options = {"into": f"{tmp_path}/lake/{{database}}/{{table}}", "store": store}
    lake = Lake(delta, tmp_path, options, {"protocol": "debezium"})
    for messages in (BEFORE, CHANGED, LATER):
        lake.run(*messages)
    nested_messages.check(lake.table("kept"), status(delta, f"{tmp_path}/checkpoint"))
