"""Messages that are read and written again without a change, without Spark: docs/rewriting.md.

``python tests/benchmarks/rewrite.py [rounds]``.  From messages in memory over typed changes in
Arrow batches to messages of the same format, by the compiled kernel and by the reference, in
processor time of one core.  Before it measures, it holds the rows that come back against those that
were read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from decoding import open_engine, options_of
from encode import AS_PRODUCED, best_seconds
from input_rows import TABLE, ZONE
from samples import SAMPLES, Sample

from cdcfmt_core.events import Message
from pyspark_cdcfmt.testing import inferred_schema
from pyspark_cdcfmt.write.encoding import EventWriter
from pyspark_cdcfmt.write_options import parse_write_options

NAMES = ("canal-json", "canal-json-default", "open", "simple-json", "simple-avro", "dts-avro")
"""Without other samples: Debezium's rows need `columnTypes`, as its times have units by type."""


def rewriter(
    messages: list[Message], sample: Sample, name: str, *, by_kernel: bool
) -> Callable[[], list[Any]]:
    """Reads and writes all messages, and returns the written ones."""
    engine = open_engine(messages, sample, "changes", by_kernel=by_kernel)
    schema = inferred_schema(messages, options_of(sample, "changes"))
    assert schema is not None
    given: dict[str, Any] = {"protocol": sample.protocol, "table": TABLE, "keyColumns": "id"}
    options = parse_write_options(ZONE | given | AS_PRODUCED.get(name, {}))

    def rewrite() -> list[Any]:
        writer = EventWriter(schema, options, by_kernel=by_kernel)
        return list(writer.parts(engine.batches(messages)))

    return rewrite


def messages_of(parts: list[Any]) -> list[Message]:
    """The written messages."""
    messages = []
    for part in parts:
        if isinstance(part, Message):
            messages.append(part)
        else:
            columns = part["key"].to_pylist(), part["value"].to_pylist()
            messages += [Message(key, value) for key, value in zip(*columns, strict=True)]
    return messages


def check(messages: list[Message], sample: Sample, written: list[Message]) -> None:
    """:raises SystemExit: if other rows come back."""
    engine = open_engine(messages, sample, "changes", by_kernel=True)

    def rows(some: list[Message]) -> list[Any]:
        table = pa.Table.from_batches(engine.batches(some))
        # Without a commit_ts it has the position of the message.
        return table.drop_columns("_sequence").to_pylist()

    if rows(messages) != rows(written):
        raise SystemExit(f"{sample.name}: other rows were written than were read")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"messages a second that are read and written, one core, best of {rounds} rounds")
    print(f"{'':<28}{'by kernel':>12}{'reference':>12}")
    for sample in SAMPLES:
        name = sample.name
        if name not in NAMES:
            continue
        messages = sample.messages()
        rates = []
        for by_kernel in (True, False):
            rewrite = rewriter(messages, sample, name, by_kernel=by_kernel)
            check(messages, sample, messages_of(rewrite()))
            rates.append(len(messages) / best_seconds(rewrite, rounds if by_kernel else 2))
        print(f"{name:<28}{rates[0]:>12,.0f}{rates[1]:>12,.0f}")


if __name__ == "__main__":
    main()
