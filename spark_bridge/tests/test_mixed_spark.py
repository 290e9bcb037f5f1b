"""One directory with the messages of several formats, read under ``protocol=auto``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pyspark.sql import SparkSession
from support.golden_data import load_variant

from cdcfmt_files.sources import wrap_line

VARIANTS = {
    "canal-json": ("canal-json", "tidb-extension"),
    "open-protocol": ("open", "batched"),
    "debezium": ("debezium", "tidb-extension"),
}


def test_formats_side_by_side(spark: SparkSession, tmp_path: Path) -> None:
    lines: list[bytes] = []
    expected: Counter[tuple[str, str, str | None]] = Counter()
    for protocol, (folder, name) in VARIANTS.items():
        variant = load_variant(folder, name)
        for golden in variant.messages:
            lines.append(wrap_line(golden.message))
            for truth in golden.truth:
                op = truth["op"] if truth["kind"] == "row" else None
                expected[protocol, truth["kind"], op] += 1
    # In turns, so that the format changes from line to line.
    mixed = [line for start in range(3) for line in lines[start::3]]
    (tmp_path / "mixed.jsonl").write_bytes(b"\n".join(mixed))
    frame = spark.read.format("cdc").option("sourceTimeZone", "Asia/Shanghai").load(str(tmp_path))
    counted = frame.groupBy("_source.protocol", "kind", "op").count().collect()
    assert {(row[0], row[1], row[2]): row[3] for row in counted} == expected
    rows = (
        spark.read.format("cdc")
        .option("table", "golden.composite_pk")
        .option("images", "after")
        .option("mode", "FAILFAST")
        .schema("a int, b string, v string, _change_type string")
        .load(str(tmp_path))
        .groupBy("a", "b", "v", "_change_type")
        .count()
    )
    # Three producers send the same changes.
    assert {row["count"] for row in rows.collect()} == {3}
    assert rows.count() == 4
