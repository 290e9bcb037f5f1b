"""dts-avro beside fastavro, which only reads the record and types nothing.

``python tests/benchmarks/dts_avro.py [rounds]``; the messages are the golden ones.
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
from run import check, open_cdcfmt, seconds_of_a_round

from cdcfmt_core.events import Message

GOLDEN = Path(__file__).parents[1] / "golden" / "native" / "dts"


def load() -> list[Message]:
    with gzip.open(GOLDEN / "dts.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [Message(None, base64.b64decode(json.loads(line)["value_b64"])) for line in lines]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    messages = load()
    schema: Any = fastavro.parse_schema(json.loads((GOLDEN / "Record.avsc").read_text("utf-8")))
    read = fastavro.schemaless_reader
    contenders: dict[str, Callable[[Message], object]] = {
        "fastavro.schemaless_reader alone": lambda m: read(
            io.BytesIO(m.value or b""), schema, None
        ),
        "cdcfmt, protocol=dts-avro": open_cdcfmt("dts-avro"),
        "cdcfmt, protocol=auto": open_cdcfmt("auto"),
    }
    events = check(open_cdcfmt("dts-avro"), messages)
    size = sum(len(message.value or b"") for message in messages) / len(messages)
    print(
        f"{platform.python_implementation()} {platform.python_version()}, fastavro "
        f"{fastavro.__version__}; {len(messages)} messages, {events} events, {size:.0f} bytes each"
    )
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for label, function in contenders.items():
            best[label] = min(best[label], seconds_of_a_round(function, messages))
    floor = next(iter(best.values()))
    for label, seconds in best.items():
        print(f"  {label:<40}{len(messages) / seconds:>10,.0f} messages/s{floor / seconds:>8.2f}x")


if __name__ == "__main__":
    main()
