"""The tour: a summary of the messages, typed changes of one table, a file, a chart in text."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLE = "golden.upd_cols"
SHOWN = ("id", "a", "b", "c", "d", "f", "k", "_change_type", "_commit_version")
TIME_ZONE = "Asia/Shanghai"
OUTPUT = Path("demo-output")


def main() -> None:
    started = time.monotonic()
    if hasattr(sys.stdout, "reconfigure"):
        # Terminals use UTF-8, even if the locale has another encoding.
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
    say(f"\ndone in {time.monotonic() - started:.0f} s. To go on, start Python, then read:\n")
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
    say("  (d is decimal(10,2); these messages have only decimal, and a guess could lose digits:")
    say("  declare it with .schema(...))")
    shown.show(truncate=False)
    # Parquet can store the variant column.
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
    for line in draw([(row["name"], row["op"]) for row in rows]):
        say("  " + line)


def next_lines(path: Path) -> list[str]:
    """A command that starts Python with ``spark``, and a line to try there."""
    return [
        f"{sys.executable} -i -c 'import pyspark_cdcfmt; spark = pyspark_cdcfmt.session()'",
        f'spark.read.format("cdc").option("table", "golden.pk_change").load({str(path)!r}).show()',
    ]


_SHOWN_OF_LOG = 4_000


@contextmanager
def quiet_spark() -> Iterator[SparkSession]:
    """A local session; shows Spark's output only if Spark does not start.

    :raises SystemExit: if Spark does not start, with its output and requirements.
    """
    with tempfile.TemporaryFile() as log, tempfile.TemporaryDirectory() as scratch:
        # The JVM inherits standard error, and writes its first lines before a log level can
        # be set.
        sys.stderr.flush()
        standard_error = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            spark = _start(scratch)
        except Exception as error:
            log.seek(0, os.SEEK_END)
            log.seek(max(log.tell() - _SHOWN_OF_LOG, 0))
            log_text = log.read().decode("utf-8", "replace")
            raise SystemExit(
                f"{log_text}\nSpark does not start (it needs Java 17): {error}"
            ) from None
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
        try:
            yield spark
        finally:
            spark.stop()


def _start(scratch: str) -> SparkSession:
    from pyspark_cdcfmt import session

    return session(
        config={
            "spark.master": "local[2]",
            "spark.app.name": "cdcfmt demo",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": scratch,
            "spark.sql.warehouse.dir": scratch,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
        }
    )


OPS = {"insert": "█", "update": "▓", "delete": "░"}
DDL = "◆"
BAR_WIDTH = 30
TIME_WIDTH = 48

_HEIGHTS = "▁▂▃▄▅▆▇█"


@attrs.define
class _Table:
    name: str
    ops: Counter[str] = attrs.field(factory=Counter)
    slots: Counter[int] = attrs.field(factory=Counter)
    ddl_slots: Counter[int] = attrs.field(factory=Counter)
    first: int = 0


def draw(events: Sequence[tuple[str, str | None]], *, most: int = 16) -> list[str]:
    """A header line, then one line per table, in the order of their first event.

    A line has a bar with one character per row change (or per several, if there are many), and
    a timeline of all events that shows the position of the table's events.

    :param events: (table, operation) in order; operation None is a DDL statement.
    :param most: maximum number of tables; those with the most changes.
    """
    tables: dict[str, _Table] = {}
    for place, (name, op) in enumerate(events):
        table = tables.setdefault(name, _Table(name, first=place))
        slot = place * TIME_WIDTH // len(events)
        if op is None:
            table.ddl_slots[slot] += 1
        else:
            table.ops[op] += 1
            table.slots[slot] += 1
    chosen = sorted(tables.values(), key=lambda table: table.ops.total())[-most:]
    chosen.sort(key=lambda table: table.first)
    unit = max([1.0, *(table.ops.total() / (BAR_WIDTH - len(OPS)) for table in chosen)])
    busiest = max((n for table in chosen for n in table.slots.values()), default=1)
    width = max((len(table.name) for table in chosen), default=0)
    legend = "  ".join(f"{sign} {op}" for op, sign in OPS.items())
    lines = [f"{'table':<{width}}  {legend:<{BAR_WIDTH}}  rows  in order →   {DDL} DDL"]
    for table in chosen:
        bar, total = _bar(table.ops, unit), table.ops.total()
        line = f"{table.name:<{width}}  {bar:<{BAR_WIDTH}}  {total:>4}  {_line(table, busiest)}"
        lines.append(line.rstrip())
    return lines


def _bar(ops: Counter[str], unit: float) -> str:
    # Rounded up, so that every operation is visible.
    return "".join(sign * math.ceil(ops[op] / unit) for op, sign in OPS.items())


def _line(table: _Table, busiest: int) -> str:
    return "".join(_sign(table, slot, busiest) for slot in range(TIME_WIDTH))


def _sign(table: _Table, slot: int, busiest: int) -> str:
    rows = table.slots[slot]
    if table.ddl_slots[slot] > rows:
        return DDL
    return _HEIGHTS[(rows * len(_HEIGHTS) - 1) // busiest] if rows else " "


if __name__ == "__main__":
    main()
