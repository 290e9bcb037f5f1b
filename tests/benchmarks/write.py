"""How fast rows become messages in a task, without Spark: both shapes, in processor time.

``python tests/benchmarks/write.py [rounds]``.  The rows are those of the golden Canal-JSON
messages as the reader gives them, in Arrow batches; of a round all of it is counted, from
the batches to the messages.  Beside it stands the encoder alone, over the same events.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from encode import best_seconds
from pyspark.sql.types import StructType
from run import load

from cdcfmt_core.events import RowChange
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.inference import infer_columns
from pyspark_cdcfmt.rows.change_rows import ChangeRows
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import changes_schema, events_schema
from pyspark_cdcfmt.rows.types import TypeOptions
from pyspark_cdcfmt.write.encoding import EventWriter, open_encoder, open_input
from pyspark_cdcfmt.write_options import parse_write_options

TABLE = "bench.orders"
ZONE = {"sourcetimezone": "Asia/Shanghai"}


def input_rows(**given: str) -> tuple[StructType, list[pa.RecordBatch]]:
    """Schema and batches of the shape that the options ask for."""
    messages = list(load("canal-json"))
    options = parse_options({**ZONE, "protocol": "canal-json", "includecolumns": "true", **given})
    decoder = open_decoder(options, options.event_filter())
    policy = ValuePolicy("text", "replace")
    rows: Any
    if options.table is None:
        schema = events_schema(options)
        rows = EventRows(schema, options, policy)
    else:
        columns = infer_columns(
            lambda: messages,
            decoder,
            options.table,
            1000,
            TypeOptions.of(options.values),
            any_table=decoder,
        )
        schema = changes_schema(columns, options)
        rows = ChangeRows(schema, options, policy, inferred=True)
    builder = BatchBuilder(schema)
    batches = []
    for message in messages:
        for event in decoder.decode(message):
            batches += builder.add(list(rows.rows(message, event, decoder.protocol)), 0)
    return schema, [*batches, *builder.flush()]


def measure(label: str, rounds: int, read: dict[str, str], write: dict[str, str]) -> None:
    schema, batches = input_rows(**read)
    options = parse_write_options(
        {**ZONE, "protocol": "canal-json", "enableTidbExtension": "true", **write}
    )
    events = [read.event for read in open_input(schema, options).events(batches)]
    changes = [event for event in events if isinstance(event, RowChange)]

    def per_change(function: Callable[[], object]) -> float:
        return best_seconds(function, rounds) / len(changes) * 1e6

    whole = per_change(lambda: list(EventWriter(schema, options).messages(batches)))
    rows = per_change(lambda: list(open_input(schema, options).events(batches)))
    encoder = open_encoder(options, None)
    encoding = per_change(lambda: [encoder.encode(change) for change in changes])
    print(f"{label:<12}{whole:>12.1f}{rows:>18.1f}{encoding:>12.1f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"microseconds a change, one core, best of {rounds} rounds")
    print(f"{'shape':<12}{'whole':>12}{'rows to events':>18}{'encoding':>12}")
    measure("events", rounds, {}, {})
    measure("changes", rounds, {"table": TABLE}, {"table": TABLE, "keyColumns": "id"})


if __name__ == "__main__":
    main()
