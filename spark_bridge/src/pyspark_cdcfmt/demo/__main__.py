"""The tour: what is in the messages, one table typed, a file, a picture."""

from __future__ import annotations

import os
import sys
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_cdcfmt.demo import picture
from pyspark_cdcfmt.demo.session import quiet_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "golden.upd_cols"
SHOWN = ("id", "a", "b", "c", "d", "f", "k", "_change_type", "_commit_version")
TIME_ZONE = "Asia/Shanghai"
OUTPUT = Path("demo-output")


def main() -> None:
    started = time.monotonic()
    if hasattr(sys.stdout, "reconfigure"):
        # Terminals speak UTF-8, also where the locale does not say so.
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    data = resources.files("pyspark_cdcfmt.demo") / "data" / "canal-json.jsonl.gz"
    with resources.as_file(data) as path:
        say("starting Spark (some 10 s) ...")
        with quiet_spark() as spark:
            say(f"reading {path.name}: Canal-JSON as TiCDC's own encoder wrote it ...\n")
            events = spark.read.format("cdc").load(str(path)).cache()
            show_summary(events)
            write_changes(spark, path)
            show_picture(events)
    say(f"\ndone in {time.monotonic() - started:.0f} s. To go on, paste this into {python()}:\n")
    for line in next_lines(path):
        say(line)


def say(text: str) -> None:
    print(text, flush=True)


def show_summary(events: DataFrame) -> None:
    from pyspark.sql import functions as f

    rows = events.groupBy("kind", "op").count().orderBy("kind", "op").collect()
    say(f"{sum(row['count'] for row in rows)} events:")
    for row in rows:
        say(f"  {row['kind']:<10} {row['op'] or '':<7} {row['count']:>4}")
    of_rows = events.where("kind = 'row'")
    tables = of_rows.select("database", "table").distinct().count()
    last = (
        events.where("kind = 'watermark'")
        .agg(f.max("commit_ts").alias("ts"), f.max("commit_time").cast("string").alias("time"))
        .first()
    )
    assert last is not None
    say(f"rows of {tables} tables; everything before watermark {last['ts']} has come")
    say(f"  (that is {last['time']} UTC)\n")


def write_changes(spark: SparkSession, path: Path) -> None:
    changes = (
        spark.read.format("cdc")
        .option("table", TABLE)
        .option("images", "after")
        .option("sourceTimeZone", TIME_ZONE)
        .load(str(path))
    )
    say(f"the changes of {TABLE}, typed from the messages alone:")
    shown = changes.orderBy("_sequence").select(*SHOWN)
    say("  " + ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in shown.schema.fields[:7]))
    say("  (d is decimal(10,2); this wire says only decimal, and a guess could lose digits:")
    say("  .schema(...) declares it)")
    shown.show(truncate=False)
    # A variant column goes into Parquet as it is.
    changes.write.mode("overwrite").parquet(str(OUTPUT))
    say(f"written as Parquet, all {len(changes.columns)} columns: {OUTPUT.absolute()}\n")


def show_picture(events: DataFrame) -> None:
    rows = (
        events.where("kind in ('row', 'ddl') and table <> ''")
        .orderBy("commit_ts", "_source.offset")
        .selectExpr("concat(database, '.', table) as name", "op")
        .collect()
    )
    say("where the changes are:")
    for line in picture.draw([(row["name"], row["op"]) for row in rows]):
        say("  " + line)


def python() -> str:
    """How to start this Python with the Java that was used."""
    home = os.environ.get("JAVA_HOME")
    return f"JAVA_HOME={home} {sys.executable}" if home else sys.executable


def next_lines(path: Path) -> list[str]:
    """Three lines that run in a fresh Python."""
    return [
        'import os, sys; os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = '
        "sys.executable",
        "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()",
        f'spark.read.format("cdc").option("table", "golden.pk_change").load({str(path)!r}).show()',
    ]


if __name__ == "__main__":
    main()
