"""How fast events are encoded, by the reference and the kernel, and their messages decoded.

``python tests/benchmarks/encode.py [rounds]`` (``make bench``); see README.md beside it.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson
from input_rows import TABLE, ZONE, input_rows
from run import MEASURED, load, open_cdcfmt

from cdcfmt_core import default_registry
from cdcfmt_core.encoding import ENCODING_OPTIONS, MessageEncoder
from cdcfmt_core.events import Corrupt, Event, Message, RowChange
from cdcfmt_core.options import validate
from pyspark_cdcfmt.write.encoding import EventWriter
from pyspark_cdcfmt.write_options import parse_write_options

AS_PRODUCED: dict[str, dict[str, Any]] = {
    "canal-json": {"enableTidbExtension": True},
    "canal-json-default": {},
    "debezium": {"enableTidbExtension": True},
    "debezium-disable-schema": {"debeziumDisableSchema": True},
    "open": {"maxBatchSize": 1},
    "open-batched": {},
    "simple-json": {},
    "simple-avro": {"encodingFormat": "avro"},
}
"""Files of messages → the options of their producer."""

TICDC = {
    "canal-json": 64_000,
    "open": 61_000,
    "debezium": 44_000,
    "simple-json": 96_000,
    "simple-avro": 120_000,
}
"""Rows per second of TiCDC's Go encoders, measured elsewhere, on another machine."""


def open_encoder(protocol: str, *, unsupported_events: str = "fail", **own: Any) -> MessageEncoder:
    codec = default_registry().get_codec(protocol)
    values = {
        "protocol": protocol,
        "sourceTimeZone": "Asia/Shanghai",
        "unsupportedEvents": unsupported_events,
    }
    return MessageEncoder(
        validate(values, ENCODING_OPTIONS, owner="the benchmark"),
        validate(own, codec.encode_options, owner="the benchmark"),
    )


def best_seconds(function: Callable[[], object], rounds: int) -> float:
    """Processor seconds of the fastest round: other processes do not count."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


MAX_BY_REFERENCE = 0.01
"""Of the kernel's rows: some of Simple come after a schema."""


def kernel_rate(name: str, protocol: str, rounds: int) -> float:
    """Rows a second from Arrow batches of typed changes to messages by the compiled kernel."""
    schema, batches = input_rows(table=TABLE)
    given = {**ZONE, "protocol": protocol, "table": TABLE, "keyColumns": "id"}
    options = parse_write_options(given | AS_PRODUCED.get(name, {}))

    def write() -> EventWriter:
        writer = EventWriter(schema, options)
        for _ in writer.parts(batches):
            pass
        return writer

    by_kernel, by_reference = write().rows_by
    if by_reference > by_kernel * MAX_BY_REFERENCE:
        raise SystemExit(f"{name}: the reference wrote {by_reference} of the rows")
    return (by_kernel + by_reference) / best_seconds(write, rounds)


def measure(name: str, protocol: str, rounds: int) -> None:
    messages = load(name)
    decode: Callable[..., Any] = open_cdcfmt(protocol)
    events: list[Event] = [event for message in messages for event in decode(message)]
    if any(isinstance(event, Corrupt) for event in events):
        raise SystemExit(f"{name} has corrupt messages")
    encoder = open_encoder(protocol, **AS_PRODUCED[name])

    def encode_all() -> int:
        written = [message for event in events for message in encoder.encode(event)]
        written += encoder.flush()
        return sum(len(message.value or b"") for message in written)

    produced = sum(len(message.value or b"") for message in messages)
    if abs(encode_all() - produced) > produced * 0.02:
        raise SystemExit(
            f"{name}: {encode_all()} bytes were written, the producer wrote {produced}"
        )
    encoding = len(events) / best_seconds(encode_all, rounds)
    decoding = len(events) / best_seconds(lambda: [decode(m) for m in messages], rounds)
    kernel = kernel_rate(name, protocol, rounds)
    line = f"{name:<28}{encoding:>12,.0f}{kernel:>12,.0f}{decoding:>12,.0f}"
    if name in TICDC:
        line += f"{TICDC[name]:>12,}{kernel / TICDC[name]:>8.2f}"
    print(line)


def events_of_simple() -> list[Event]:
    """Simple's golden messages, decoded: their rows have all types."""
    decode: Callable[..., Any] = open_cdcfmt("simple")
    return [event for message in load("simple-json") for event in decode(message)]


def converted(protocol: str) -> list[Message]:
    """The rows of Simple in a format without such golden messages.

    :raises SystemExit: unless these very rows are read back.
    """
    events = events_of_simple()
    encoder = open_encoder(protocol, unsupported_events="skip")
    messages = [message for event in events for message in encoder.encode(event)]
    decode: Callable[..., Any] = open_cdcfmt(protocol)
    again = [event for message in messages for event in decode(message)]
    bad = any(isinstance(event, Corrupt) for event in again)
    if bad or len(again) != len(messages) or _values(again) != _values(events):
        raise SystemExit(f"{len(messages)} messages of {protocol} were written, not all are read")
    return messages


def _values(events: list[Event]) -> list[Any]:
    return [
        (event.op, *(image and image.values for image in (event.before, event.after)))
        for event in events
        if isinstance(event, RowChange)
    ]


def measure_conversion(name: str, protocol: str, rounds: int) -> None:
    events, messages = events_of_simple(), converted(protocol)
    encoder = open_encoder(protocol, unsupported_events="skip")
    decode: Callable[..., Any] = open_cdcfmt(protocol)
    encoding = len(messages) / best_seconds(
        lambda: [message for event in events for message in encoder.encode(event)], rounds
    )
    decoding = len(messages) / best_seconds(lambda: [decode(m) for m in messages], rounds)
    kernel = kernel_rate(name, protocol, rounds)
    print(f"{name:<28}{encoding:>12,.0f}{kernel:>12,.0f}{decoding:>12,.0f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}, "
        f"orjson {orjson.__version__}; one core, best of {rounds} rounds, rows a second"
    )
    print(f"{'':<28}{'encoded':>12}{'by kernel':>12}{'decoded':>12}{'TiCDC (Go)':>12}{'ratio':>8}")
    for name, protocol in (MEASURED | {"simple-avro": "simple"}).items():
        measure(name, protocol, rounds)
    for protocol in ("cloudcanal-json", "dts-avro"):
        measure_conversion(f"simple as {protocol}", protocol, rounds)


if __name__ == "__main__":
    main()
