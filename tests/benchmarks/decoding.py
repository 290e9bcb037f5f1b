"""From messages to Arrow batches without Spark: every format, shape and path, and the floors.

``python tests/benchmarks/decoding.py [rounds] [megabytes]``.  CPU time of one core, so that
other work on the machine counts little.  Each engine has seen the table before it is measured.
"""

from __future__ import annotations

import gc
import io
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fastavro
import orjson
from samples import SAMPLES, Sample

from cdcfmt_core.events import Message
from cdcfmt_files.sources import FileSplit, read_lines, read_split
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import inferred_schema, parsed

CHANGES = {"table": "bench.orders", "jsonAs": "string"}
CASES: dict[str, dict[str, str]] = {
    "changes": CHANGES,
    "changes, images=after": CHANGES | {"images": "after"},
    "events, images as JSON": {"imageFormat": "json"},
    "events, images as variant": {},
}


def options_of(sample: Sample, case: str) -> Any:
    return parsed({"protocol": sample.protocol, "sourceTimeZone": "Asia/Shanghai"} | CASES[case])


def open_engine(messages: list[Message], sample: Sample, case: str, *, by_kernel: bool) -> Engine:
    """An engine that has seen the table; its ``chunks`` are None where no columns are read."""
    options = options_of(sample, case)
    schema = events_schema(options)
    if options.table is not None:
        inferred = inferred_schema(messages, options)
        assert inferred is not None
        schema = inferred
    engine = Engine(ReadTask(schema, options, inferred=True), by_kernel=by_kernel)
    rows = sum(batch.num_rows for batch in engine.batches(messages[:600]))
    assert rows, sample
    if engine.counts["corrupt messages and rows"]:
        raise SystemExit(f"{sample.name}: {engine.counts}")
    return engine


def contenders(sample: Sample) -> Iterator[tuple[str, str, Callable[[list[Message]], object]]]:
    """Case, path, and what decodes messages."""
    messages = sample.messages()
    for case in CASES:
        for path in ("by kernel", "reference"):
            engine = open_engine(messages, sample, case, by_kernel=path == "by kernel")
            if path == "reference" or engine.chunks is not None:
                yield case, path, lambda some, e=engine: sum(b.num_rows for b in e.batches(some))
    for name, loads in floors(sample).items():
        yield name, "floor", lambda some, f=loads: [f(m.value or b"null") for m in some]


def floors(sample: Sample) -> dict[str, Callable[[bytes], object]]:
    """What any decoder in Python must do at least, typing nothing; values of Open Protocol are
    no document of their own."""
    if sample.avsc is not None:
        schema: Any = fastavro.parse_schema(json.loads(sample.avsc.read_text("utf-8")))
        read = fastavro.schemaless_reader
        return {"fastavro": lambda value: read(io.BytesIO(value), schema, None)}
    if sample.lines:
        return {"orjson": orjson.loads}
    return {}


def row_changes(sample: Sample) -> int:
    """How many of them the golden messages hold: an update is one, whatever rows it gives."""
    options = options_of(sample, "events, images as JSON")
    engine = Engine(ReadTask(events_schema(options), options, inferred=True), by_kernel=False)
    return sum(
        kind == "row"
        for batch in engine.batches(sample.messages())
        for kind in batch.column("kind").to_pylist()
    )


def measure(sample: Sample, rounds: int, megabytes: int) -> list[dict[str, Any]]:
    """A record for each contender: microseconds and bytes of a row change."""
    messages = sample.messages()
    rows = messages[2:]  # behind the DDL
    size = sum(len(m.value or b"") + len(m.key or b"") for m in rows)
    changes = row_changes(sample)
    times = max(1, megabytes * 1_000_000 // size)
    found: dict[tuple[str, str], list[float]] = {}
    readers = list(contenders(sample))
    for _ in range(rounds):
        for case, path, read in readers:
            gc.collect()
            start = time.process_time()
            for _ in range(times):
                read(rows)
            found.setdefault((case, path), []).append(time.process_time() - start)
    return [
        {
            "sample": sample.name,
            "case": case,
            "path": path,
            "us": statistics.median(seconds) / changes / times * 1e6,
            "bytes": size / changes,
            "go": sample.go,
        }
        for (case, path), seconds in found.items()
    ]


def measure_lines(rounds: int) -> dict[str, float]:
    """Microseconds a message for cutting a file into messages, and with decoding."""
    sample = SAMPLES[0]
    messages = sample.messages()
    engine = open_engine(messages, sample, "changes", by_kernel=True)
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lines.jsonl"
        with path.open("wb") as file:
            for _ in range(16):
                file.writelines((message.value or b"") + b"\n" for message in messages[2:])
        split = FileSplit(str(path), 0, None, None)
        for _ in range(rounds):
            for name, run in {
                "lines of a file as messages": lambda: sum(1 for _ in read_split(split)),
                "a file to batches": lambda: sum(1 for _ in engine.batches(read_lines(split))),
            }.items():
                start = time.process_time()
                run()
                seconds.setdefault(name, []).append(time.process_time() - start)
    count = 16 * (len(messages) - 2)
    return {name: statistics.median(some) / count * 1e6 for name, some in seconds.items()}


def main() -> None:
    rounds, megabytes = (int(text) for text in [*sys.argv[1:], *["5", "20"][len(sys.argv) - 1 :]])
    for sample in SAMPLES:
        print(f"\n{sample.name}: CPU time of a row change, median of {rounds}")
        for record in measure(sample, rounds, megabytes):
            each = record["us"]
            beside = f"   {1e6 / each / sample.go:5.1f} x TiCDC's Go" if sample.go else ""
            print(
                f"  {record['case']:<28}{record['path']:<12}{each:>8.2f} µs{1e6 / each:>12,.0f}/s"
                f"{record['bytes'] / each:>8.0f} MB/s{beside}"
            )
    for name, each in measure_lines(rounds).items():
        print(f"  {name:<40}{each:>8.2f} µs")


if __name__ == "__main__":
    main()
