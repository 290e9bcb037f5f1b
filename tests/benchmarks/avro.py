"""The Avro formats beside fastavro, which only reads the messages and types nothing.

``python tests/benchmarks/avro.py [rounds]``; the messages are golden ones.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import run
from run import check, open_cdcfmt, seconds_of_a_round

from cdcfmt_core.events import Message

GOLDEN = Path(__file__).parents[1] / "golden"


def load_dts() -> list[Message]:
    with gzip.open(GOLDEN / "native/dts/dts.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [Message(None, base64.b64decode(json.loads(line)["value_b64"])) for line in lines]


MEASURED: dict[str, tuple[Callable[[], list[Message]], str]] = {
    "dts-avro": (load_dts, "native/dts/Record.avsc"),
    "simple": (lambda: run.load("simple-avro"), "ticdc/simple-avro/message.avsc"),
}
"""Protocol → its messages and their schema."""


def measure(protocol: str, rounds: int) -> None:
    load, avsc = MEASURED[protocol]
    messages = load()
    schema: Any = fastavro.parse_schema(json.loads((GOLDEN / avsc).read_text("utf-8")))
    read = fastavro.schemaless_reader
    contenders: dict[str, Callable[[Message], object]] = {
        "fastavro.schemaless_reader alone": lambda m: read(
            io.BytesIO(m.value or b""), schema, None
        ),
        f"cdcfmt, protocol={protocol}": open_cdcfmt(protocol),
        "cdcfmt, protocol=auto": open_cdcfmt("auto"),
    }
    events = check(open_cdcfmt(protocol), messages)
    size = sum(len(message.value or b"") for message in messages) / len(messages)
    print(f"\n{protocol}: {len(messages)} messages, {events} events, {size:.0f} bytes each")
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for label, function in contenders.items():
            best[label] = min(best[label], seconds_of_a_round(function, messages))
    floor = next(iter(best.values()))
    for label, seconds in best.items():
        print(f"  {label:<40}{len(messages) / seconds:>10,.0f} messages/s{floor / seconds:>8.2f}x")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(
        f"{platform.python_implementation()} {platform.python_version()}, fastavro "
        f"{fastavro.__version__}; one core, best of {rounds} rounds"
    )
    for protocol in MEASURED:
        measure(protocol, rounds)


if __name__ == "__main__":
    main()
