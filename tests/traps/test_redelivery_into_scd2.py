"""SCD2 of a topic with repeated changes.

After a restart TiCDC sends again what it is not sure of. The user kept each change of a key as a
version from its `_sequence` on. The repeated changes had another `_sequence`, by their offset, and
became versions of their own, some of which ended before they began.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f
from support.golden_data import load_variant, reading_options

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line


def histories(changes: DataFrame) -> list[Row]:
    """Every version of every row, and when it ended."""
    once = changes.dropDuplicates(["id", "_sequence"])
    later = f.lead("_sequence").over(Window.partitionBy("id").orderBy("_sequence"))
    versions = once.withColumn("valid_to", later).where("_change_type <> 'delete'")
    columns = ("id", "v", "n", "_sequence", "valid_to")
    return sorted(versions.select(*columns).collect(), key=lambda row: (row.id, row._sequence))


@pytest.mark.parametrize(
    ("protocol", "name"), [("canal-json", "tidb-extension"), ("open", "default")]
)
def test_repeated_changes_are_the_same_changes(
    spark: SparkSession, tmp_path: Path, protocol: str, name: str
) -> None:
    variant = load_variant(protocol, name)
    sent = [message.message for message in variant.messages]
    rows = [
        place
        for place, message in enumerate(variant.messages)
        if any(truth["kind"] == "row" and truth["table"] == "txn_a" for truth in message.truth)
    ]
    restart, last = rows[len(rows) // 3], rows[-2]
    repeated = [*sent[: last + 1], *sent[restart:]]

    def read(folder: str, messages: list[Message]) -> DataFrame:
        lines = [
            wrap_line(Message(m.key, m.value, topic="t", partition=0, offset=offset)) + b"\n"
            for offset, m in enumerate(messages)
        ]
        (tmp_path / folder).write_bytes(b"".join(lines))
        reader = spark.read.format("cdc").options(**reading_options(variant), images="after")
        return reader.option("table", "golden.txn_a").load(str(tmp_path / folder))

    once, twice = read("once", sent), read("twice", repeated)
    assert twice.count() > once.count() + 10
    expected = histories(once)
    assert len(expected) > len({row.id for row in expected})
    assert histories(twice) == expected
