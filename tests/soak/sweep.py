"""Hostile messages of every size through Spark: ``python tests/soak/sweep.py --sizes 20k,1m,64m``.

A query for each wire, shape and mode. It prints a table and exits with 1 where a worker takes more
than MAX_MEGABYTES, or where a query ends that has to go on.
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import attrs
from hostile import DATABASE, TABLE, WIRES, Hostile, hostile
from processes import peak_memory
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt import CORRUPT_RECORD

MAX_MEGABYTES = 600
SHAPES: dict[str, dict[str, str]] = {
    "changes": {
        "table": f"{DATABASE}.{TABLE}",
        "incompleteRows": "emit",
        "onSchemaChange": "corrupt",
        "onTruncate": "row",
        "requireTables": "false",
    },
    "json": {"imageFormat": "json"},
    "variant": {"imageFormat": "variant"},
    "columns": {"includeColumns": "true", "includeHeaders": "true"},
    "after": {"images": "after", "imageFormat": "json", "includeHeaders": "true"},
    "none": {"images": "none", "includeHeaders": "true"},
}
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
SCHEMA = (
    "a INT, b STRING, _change_type STRING, _absent ARRAY<STRING>, "
    f"_corrupt_record {CORRUPT_RECORD.simpleString()}"
)


@attrs.frozen
class Run:
    """A query: the largest worker's megabytes, and its fault."""

    name: str
    messages: int
    rows: int
    megabytes: float
    seconds: float
    trouble: str | None

    def __str__(self) -> str:
        return (
            f"{self.name:48} {self.messages:9} {self.rows:9} {self.megabytes:7.0f} "
            f"{self.seconds:8.1f}  {self.trouble or 'ok'}"
        )


HEAD = f"{'wire, size, shape, mode':48} {'messages':>9} {'rows':>9} {'MB':>7} {'seconds':>8}"


Cases = dict[tuple[int, str], list[tuple[str, str]]]
"""Size and wire → shapes and modes."""


def run(spark: SparkSession, folder: Path, cases: Cases, until: float) -> Iterator[Run]:
    """A query for each case; the messages are written to ``folder`` once for a size and wire."""
    for (size, wire), queries in cases.items():
        path = folder / f"{wire}-{size}"
        path.mkdir()
        count = 0
        protocol, options = "", {}
        for number, each in enumerate(hostile(size, (wire,))):
            write(path / f"{number:04}.json", each)
            count += 1
            protocol, options = each.protocol, each.options
            if each.files:
                options = options | {"claimCheckStorageUri": str(claims_of(path))}
        for shape, mode in queries:
            name = f"{wire}, {size >> 10} KiB, {shape}, {mode}"
            yield query(spark, name, path, count, protocol, options | SHAPES[shape], mode)
            if time.monotonic() > until:
                return
        # 64 MiB each are gigabytes together.
        shutil.rmtree(path)
        shutil.rmtree(claims_of(path), ignore_errors=True)


def cases_of(
    sizes: Sequence[int], wires: Sequence[str], shapes: Sequence[str], modes: Sequence[str]
) -> Cases:
    """All of them, in order."""
    queries = list(product(shapes, modes))
    return dict.fromkeys(product(sizes, wires), queries)


def sample(cases: Cases) -> Cases:
    """All in random order, with one query each: any part of it is of every kind."""
    chosen = [(case, [random.choice(queries)]) for case, queries in cases.items()]
    random.shuffle(chosen)
    return dict(chosen)


def claims_of(messages: Path) -> Path:
    """The folder for claim checks of a folder of messages."""
    return messages.with_name(f"{messages.name}-claims")


def write(path: Path, each: Hostile) -> None:
    """A file of a message and those before it, as whole messages, and those of claim checks."""
    for name, body in each.files:
        claims = claims_of(path.parent)
        claims.mkdir(exist_ok=True)
        (claims / name).write_bytes(body)
    with path.open("wb") as file:
        for message in each.messages:
            file.write(wrap_line(message) + b"\n")


def query(
    spark: SparkSession,
    name: str,
    path: Path,
    messages: int,
    protocol: str,
    options: dict[str, str],
    mode: str,
) -> Run:
    """One query, all rows of which are counted by their bytes."""
    reader = spark.read.format("cdc").options(**options, protocol=protocol, mode=mode)
    if "table" in options:
        reader = reader.schema(SCHEMA)
    rows, trouble = 0, None
    started = time.perf_counter()
    with peak_memory() as peak:
        try:
            df = reader.load(str(path))
            # Corrupt rows are not checked, only counted.
            (row,) = df.select(f.count("*"), f.max(f.length("_corrupt_record.value"))).collect()
            rows = row[0]
        except Exception as error:
            if mode != "FAILFAST":
                trouble = " ".join(str(error).split())[-300:]
    if peak() > MAX_MEGABYTES:
        trouble = f"over {MAX_MEGABYTES} MB{'' if trouble is None else '; ' + trouble}"
    return Run(name, messages, rows, peak(), time.perf_counter() - started, trouble)


def main(arguments: Sequence[str] | None = None) -> int:
    """The sweep from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="20k,1m,64m")
    parser.add_argument("--wires", default=",".join(WIRES))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--seconds", type=float, help="a random sample, for so long")
    given = parser.parse_args(arguments)
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "3g")
        .config("spark.python.worker.reuse", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    print(HEAD, flush=True)
    sizes = [int(text[:-1]) << {"k": 10, "m": 20}[text[-1]] for text in given.sizes.split(",")]
    lists = (getattr(given, name).split(",") for name in ("wires", "shapes", "modes"))
    cases = cases_of(sizes, *lists)
    until = math.inf
    if given.seconds is not None:
        cases, until = sample(cases), time.monotonic() + given.seconds
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for each in run(spark, Path(folder), cases, until):
            print(each, flush=True)
            runs.append(each)
    spark.stop()
    bad = sum(each.trouble is not None for each in runs)
    print(f"{len(runs)} queries, {bad} violations, {max(each.megabytes for each in runs):.0f} MB")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
