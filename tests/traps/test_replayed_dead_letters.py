"""Replayed dead letters.

The user kept the bad rows of a stream, mended the schema and decoded the bytes again. The
messages came back without a position: where the wire has no commit_ts `_sequence` put them before
everything else, and a merge by it took none of them.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from support.golden_data import native_messages

from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt import CORRUPT_RECORD, SEQUENCE, SOURCE, decode

# shop.pair of Canal's golden messages: on the way the source ran MODIFY n BIGINT.
OPTIONS = {"protocol": "canal-json", "table": "shop.pair", "onSchemaChange": "corrupt"}
COLUMNS = (
    "a INT, b STRING, n {n}, _change_type STRING, _commit_version BIGINT,"
    f" _sequence {SEQUENCE.simpleString()}, _source {SOURCE.simpleString()}"
)
NARROW, WIDE = COLUMNS.format(n="INT"), COLUMNS.format(n="BIGINT")


def test_repaired_rows_keep_their_position(spark: SparkSession, tmp_path: Path) -> None:
    topic, letters = str(tmp_path / "topic.jsonl"), str(tmp_path / "letters")
    lines = [wrap_line(message) + b"\n" for message in native_messages("canal/canal_flat")]
    Path(topic).write_bytes(b"".join(lines))

    def read(schema: str) -> DataFrame:
        return spark.read.format("cdc").options(**OPTIONS).schema(schema).load(topic)

    bad = read(f"{NARROW}, _corrupt_record {CORRUPT_RECORD.simpleString()}")
    bad = bad.where("_change_type IS NULL and _source.protocol = 'canal-json'")
    bad.select("_corrupt_record.*").write.parquet(letters)
    dead = spark.read.parquet(letters)
    places = {(row.source["offset"], row.source["index"]) for row in dead.collect()}
    assert places == {(199, 0), (369, 1)}

    mended = decode(dead, key="key", source="source", schema=WIDE, **OPTIONS)
    # All rows of the two messages: the good rows equal those merged before.
    expected = [row for row in read(WIDE).collect() if row._source.offset in (199, 369)]
    by_place = [row.asDict(recursive=True) for row in sorted(expected, key=lambda r: r._sequence)]
    for row in by_place:
        assert (row["_source"]["topic"], row["_source"]["partition"]) == ("canal_flat", 0)
        assert row["_sequence"]["offset"] == row["_source"]["offset"]
    again = [row.asDict(recursive=True) for row in mended.orderBy("_sequence").collect()]
    assert again == by_place
    assert [row["n"] for row in again if row["a"] == 51] == [9007199254740993] * 3
