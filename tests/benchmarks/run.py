"""Speed of decoding, beside the minimum work of any decoder.

``python tests/benchmarks/run.py [rounds]`` (``make bench``); see README.md beside it.
"""

from __future__ import annotations

import base64
import gzip
import json
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from cdcfmt_core import default_registry
from cdcfmt_core.decoding import DECODING_OPTIONS, MessageDecoder
from cdcfmt_core.events import Corrupt, Message
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.options import validate

GOLDEN = Path(__file__).parents[1] / "golden" / "bench"
MIN_SECONDS = 0.5
"""A round repeats all messages until this long has passed."""

MEASURED = {
    "canal-json": "canal-json",
    "canal-json-default": "canal-json",
    "debezium": "debezium",
    "debezium-disable-schema": "debezium",
    "open": "open-protocol",
    "open-batched": "open-protocol",
    "simple-json": "simple",
}
"""Files of messages → their protocol."""

_ELSEWHERE = "measured elsewhere, on another machine"
ELSEWHERE = [
    ("TiCDC's Go decoder, canal-json", 29_000, _ELSEWHERE),
    ("TiCDC's Go decoder, debezium with schema", 9_000, _ELSEWHERE),
    ("TiCDC's Go decoder, open-protocol", 22_000, _ELSEWHERE),
    ("TiCDC's Go decoder, simple in JSON", 66_000, _ELSEWHERE),
    ("TiCDC's Go decoder, simple in Avro", 67_000, _ELSEWHERE),
]
"""Figures for orientation only: (what, events per second, where from)."""


def load(name: str) -> list[Message]:
    with gzip.open(GOLDEN / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        wires = [json.loads(line) for line in lines]
    return [
        Message(
            None if wire["key_b64"] is None else base64.b64decode(wire["key_b64"]),
            base64.b64decode(wire["value_b64"]),
            topic="bench",
            partition=0,
            offset=offset,
        )
        for offset, wire in enumerate(wires)
    ]


def open_cdcfmt(protocol: str) -> Callable[[Message], object]:
    """The whole way of a message to events, as every reader goes it."""
    own: dict[str, Any] = {}
    for codec in default_registry().codecs().values():
        own |= validate({}, codec.options, owner="the benchmark")
    values = {"protocol": protocol, "sourceTimeZone": "Asia/Shanghai"}
    common = validate(values, DECODING_OPTIONS, owner="the benchmark")
    return MessageDecoder(common, own, EventFilter()).decode


def documents_of(message: Message, protocol: str) -> list[bytes]:
    """The JSON documents of the events in a message."""
    data = message.value or b""
    if protocol != "open-protocol":
        return [data]
    documents, position = [], 0
    while position < len(data):
        start = position + 8
        position = start + int.from_bytes(data[position:start], "big")
        documents.append(data[start:position])
    return documents


def candidates(protocol: str) -> list[tuple[str, Callable[[Message], object]]]:
    def parse(loads: Callable[[bytes], Any]) -> Callable[[Message], object]:
        return lambda message: [loads(document) for document in documents_of(message, protocol)]

    return [
        ("orjson.loads alone", parse(orjson.loads)),
        ("json.loads alone", parse(json.loads)),
        (f"cdcfmt, protocol={protocol}", open_cdcfmt(protocol)),
        ("cdcfmt, protocol=auto", open_cdcfmt("auto")),
    ]


def check(decode: Callable[[Message], Any], messages: list[Message]) -> int:
    """The number of events; a decoder that fails is fast and worth nothing."""
    events = [event for message in messages for event in decode(message)]
    bad = [event for event in events if isinstance(event, Corrupt)]
    if bad:
        raise SystemExit(f"{len(bad)} corrupt messages, first: {bad[0].error}")
    return len(events)


def seconds_of_a_round(function: Callable[[Message], object], messages: list[Message]) -> float:
    """Seconds for all messages once, over as many repetitions as a round needs."""
    repetitions = 0
    start = time.perf_counter()
    while True:
        for message in messages:
            function(message)
        repetitions += 1
        passed = time.perf_counter() - start
        if passed >= MIN_SECONDS:
            return passed / repetitions


def measure(name: str, protocol: str, rounds: int) -> None:
    messages = load(name)
    megabytes = sum(len(message.value or b"") for message in messages) / 1e6
    contenders = candidates(protocol)
    events = check(open_cdcfmt(protocol), messages)
    print(
        f"\n{name}: {len(messages)} messages, {events} events, {megabytes:.1f} MB, "
        f"{megabytes * 1e6 / len(messages):.0f} bytes a message"
    )
    best = dict.fromkeys((label for label, _ in contenders), float("inf"))
    for turn in range(rounds):
        # All of them in every round, so that a slow machine affects them alike.
        for label, function in contenders:
            print(
                f"\r  round {turn + 1}/{rounds}: {label:<40}", end="", file=sys.stderr, flush=True
            )
            best[label] = min(best[label], seconds_of_a_round(function, messages))
    print("\r" + " " * 70 + "\r", end="", file=sys.stderr, flush=True)
    floor = best[contenders[0][0]]
    print(f"  {'best of ' + str(rounds):<40}{'events/s':>12}{'MB/s':>8}{'time':>8}")
    for label, seconds in best.items():
        print(
            f"  {label:<40}{events / seconds:>12,.0f}{megabytes / seconds:>8.0f}"
            f"{seconds / floor:>7.1f}x"
        )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}, "
        f"orjson {orjson.__version__}; one core, best of {rounds} rounds"
    )
    for name, protocol in MEASURED.items():
        measure(name, protocol, rounds)
    print()
    for what, rate, origin in ELSEWHERE:
        print(f"for orientation: {what}: {rate:,} events/s ({origin})")


if __name__ == "__main__":
    main()
