"""Speed of encoding rows in a task, without Spark: both shapes, in processor time.

``python tests/benchmarks/write.py [rounds]``.  The rows are those of the golden Canal-JSON
messages as the reader gives them, in Arrow batches; of a round all of it is counted, from
the batches to the messages: by the compiled kernel, and by the reference.  Beside it stands the
encoder alone, over the same events.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from encode import best_seconds
from input_rows import TABLE, ZONE, input_rows

from cdcfmt_core.events import RowChange
from pyspark_cdcfmt.write.encoding import EventWriter, open_encoder, open_input
from pyspark_cdcfmt.write_options import parse_write_options


def measure(label: str, rounds: int, read: dict[str, str], write: dict[str, str]) -> None:
    schema, batches = input_rows(**read)
    options = parse_write_options(
        {**ZONE, "protocol": "canal-json", "enableTidbExtension": "true", **write}
    )
    events = [read.event for read in open_input(schema, options).events(batches)]
    changes = [event for event in events if isinstance(event, RowChange)]

    def reference() -> EventWriter:
        return EventWriter(schema, options, by_kernel=False)

    def per_change(function: Callable[[], object]) -> float:
        return best_seconds(function, rounds) / len(changes) * 1e6

    kernel = per_change(
        lambda: list(EventWriter(schema, options).parts(batches, line_format="auto"))
    )
    whole = per_change(lambda: list(reference().parts(batches)))
    rows = per_change(lambda: list(open_input(schema, options).events(batches)))
    encoder = open_encoder(options, None)
    encoding = per_change(lambda: [encoder.encode(change) for change in changes])
    print(f"{label:<12}{kernel:>12.1f}{whole:>12.1f}{rows:>18.1f}{encoding:>12.1f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"microseconds a change, one core, best of {rounds} rounds")
    print(f"{'shape':<12}{'by kernel':>12}{'whole':>12}{'rows to events':>18}{'encoding':>12}")
    measure("events", rounds, {}, {})
    measure("changes", rounds, {"table": TABLE}, {"table": TABLE, "keyColumns": "id"})


if __name__ == "__main__":
    main()
