"""The changes shape as Arrow batches without Spark: by columns, by the reference path, floors.

``python tests/benchmarks/columnar.py [rounds]``; CPU time of one core, so that other work on
the machine counts little.  Each engine has seen the table before it is measured.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson
from run import load

sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcfmt_core.events import Message
from pyspark_cdcfmt.engine import Engine
from pyspark_cdcfmt.testing import inferred_schema, parsed

FILES = {
    "canal-json": "canal-json",
    "canal-json-default": "canal-json",
    "debezium-disable-schema": "debezium",
    "debezium": "debezium",
}
"""Files of messages → protocol."""

GO = {"canal-json": 29_000, "debezium": 9_000}
"""TiCDC's own Go decoders, messages a second; measured elsewhere, on another machine."""

CASES: dict[str, tuple[dict[str, str], bool]] = {
    "by columns, both images": ({}, True),
    "by columns, images=after": ({"images": "after"}, True),
    "by columns, JSON as variant": ({"jsonAs": "variant"}, True),
    "reference, both images": ({}, False),
}


def _reader(
    messages: list[Message], protocol: str, options: dict[str, str], by_columns: bool
) -> Callable[[list[Message]], object]:
    given = {
        "protocol": protocol,
        "table": "bench.orders",
        "sourceTimeZone": "Asia/Shanghai",
        "jsonAs": "string",
    }
    read_options = parsed(given | options)
    schema = inferred_schema(messages, read_options)
    assert schema is not None
    engine = Engine(schema, read_options, inferred=True, by_columns=by_columns)
    return lambda some: [batch.num_rows for batch in engine.batches(some)]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for name, protocol in FILES.items():
        messages = load(name)
        readers = {
            label: _reader(messages, protocol, options, by_columns)
            for label, (options, by_columns) in CASES.items()
        }
        readers["orjson.loads alone"] = lambda some: [
            orjson.loads(message.value or b"null") for message in some
        ]
        for read in readers.values():
            read(messages[:600])
        rows = messages[2:]
        seconds: dict[str, list[float]] = {label: [] for label in readers}
        for _ in range(rounds):
            for label, read in readers.items():
                start = time.process_time()
                read(rows)
                seconds[label].append(time.process_time() - start)
        print(f"\n{name}: CPU time of {len(rows)} messages, median of {rounds}")
        for label, some in seconds.items():
            each = statistics.median(some) / len(rows)
            beside = f"   {1 / each / GO[name]:5.1f} x TiCDC's Go" if name in GO else ""
            print(f"  {label:<30}{each * 1e6:>8.2f} µs{1 / each:>12,.0f} messages/s{beside}")


if __name__ == "__main__":
    main()
