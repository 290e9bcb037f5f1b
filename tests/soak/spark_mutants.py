"""Mutants through Spark: files of good and damaged messages, PERMISSIVE, against the reference."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import findings
from corpus import FORMATS, Corpus, corpora
from mutators import mutant
from paths import comparable
from processes import peak_memory
from pyspark.sql import SparkSession
from streams_driver import session
from support.golden_data import scan_schemas
from table import Row, progress

from cdcfmt_core import default_registry
from cdcfmt_core.events import Message
from cdcfmt_core.opening import decoding_options
from cdcfmt_core.schema_scan import open_schema_scan
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import parsed, read

NAME = "mutants through Spark"
MUTANTS = 900
MAX_RSS = 600.0


def batch(corpus: Corpus, dice: random.Random) -> list[Message]:
    """The messages of a corpus, which make schemas known, then mutants among good ones."""
    mutants = [mutant(corpus.messages, corpus.wire, dice) for _ in range(MUTANTS)]
    some = comparable(mutants) + dice.choices(corpus.messages, k=MUTANTS // 3)
    dice.shuffle(some)
    messages = agreeing([*corpus.messages, *some], corpus.options)
    # An offset is that of one message: schemas hold by it.
    return [attrs.evolve(message, offset=at) for at, message in enumerate(messages)]


def agreeing(messages: Sequence[Message], options: dict[str, str]) -> list[Message]:
    """The messages without a second schema for one position.

    Of two schemas neither is right; the start of a slice would decide.
    """
    scan = open_schema_scan(*decoding_options(options["protocol"], options, default_registry()))
    if scan is None:
        return list(messages)
    schemas: dict[object, object] = {}
    found = []
    for message in messages:
        records = list(scan(message))
        places = [
            (each.stream, each.table.database, each.table.table, each.position) for each in records
        ]
        shapes = [(each.table.columns, each.table.key_columns) for each in records]
        if all(schemas.setdefault(*each) == each[1] for each in zip(places, shapes, strict=True)):
            found.append(message)
    return found


def schemas_of(messages: Sequence[Message], options: dict[str, str]) -> SchemaStore | None:
    """The schemas that a batch reader finds in its input, for formats whose rows lack types."""
    codec = default_registry().get_codec(options["protocol"])
    if codec.scan_schemas is None and codec.scan_statements is None:
        return None
    return scan_schemas(messages, **options)


def one(spark: SparkSession, corpus: Corpus, dice: random.Random, folder: Path, row: Row) -> None:
    """A batch: as many rows of each kind as the reference has."""
    messages = batch(corpus, dice)
    options = {**corpus.options, "imageFormat": dice.choice(["variant", "json"])}
    (folder / "mutants.jsonl").write_bytes(b"\n".join(map(wrap_line, messages)))
    frame = spark.read.format("cdc").options(**options).load(str(folder))
    found = Counter(
        {(r["kind"], r["op"]): r["count"] for r in frame.groupBy("kind", "op").count().collect()}
    )
    given = parsed(options)
    again = [attrs.evolve(message, path=str(folder)) for message in messages]
    schemas = schemas_of(again, corpus.options)
    expected = read(again, events_schema(given), given, by_kernel=False, schemas=schemas).rows
    kinds, ops = expected["kind"].to_pylist(), expected["op"].to_pylist()
    counted = Counter(zip(kinds, ops, strict=True))
    row.runs += len(messages)
    row.events += expected.num_rows
    row.lost += sum((counted - found).values())
    row.doubled += sum((found - counted).values())
    if found != counted:
        about = {"corpus": corpus.name, "options": options, "spark": str(found)}
        path = findings.save(f"spark-{corpus.name}", messages, about | {"problem": str(counted)})
        row.notes.append(f"{corpus.name}: Spark {found}, the reference {counted}: {path}")


@contextmanager
def quiet() -> Iterator[None]:
    """What starts in the body inherits no stderr: workers log each of their tasks."""
    before = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def run(seconds: float) -> list[Row]:
    begun, seed = time.monotonic(), int(time.time())
    progress(NAME, f"seed {seed}")
    dice = random.Random(seed)
    rows = {
        name: Row(campaign=NAME, format=name, target="events", rss_bound=MAX_RSS)
        for name in FORMATS
    }
    every = {name: list(corpora(name)) for name in FORMATS}
    with quiet():
        spark = session()
    try:
        while time.monotonic() < begun + seconds or not all(row.runs for row in rows.values()):
            for name, row in rows.items():
                started = time.monotonic()
                corpus = dice.choice(every[name])
                with (
                    tempfile.TemporaryDirectory(prefix="soak-spark-") as folder,
                    peak_memory() as peak,
                ):
                    one(spark, corpus, dice, Path(folder), row)
                    row.max_rss = max(row.max_rss or 0.0, peak())
                row.seconds += time.monotonic() - started
            progress(NAME, f"{sum(row.runs for row in rows.values()):,} messages")
    finally:
        spark.stop()
    return list(rows.values())
