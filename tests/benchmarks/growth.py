"""Whether the cost of a byte is constant when something grows.

``python tests/benchmarks/growth.py [rounds]``.  The messages are Canal-JSON of the golden table
with one thing about it changed, or files of them; both images, CPU time of one core.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from decoding import open_engine
from processes import own_peak
from samples import SAMPLES

from cdcfmt_core.events import Message
from cdcfmt_files.sources import FileSplit, read_lines
from pyspark_cdcfmt.read.engine import Engine

_MESSAGES = 2_000
_BYTES = 12_000_000
"""As much is decoded at a time, or as many times as that takes."""
_INPUTS = (10, 100, 1_000)
_ALL_TABLES = "tables, all of them as events"


def _rewritten(change: Callable[[int, dict[str, Any]], None], count: int) -> list[Message]:
    rows = []
    golden = [message for message in SAMPLES[0].messages()[2:] if message.value]
    for number in range(count):
        wire = json.loads(golden[number % len(golden)].value or b"")
        change(number, wire)
        text = json.dumps(wire, ensure_ascii=False, separators=(",", ":"))
        rows.append(Message(None, text.encode(), offset=number))
    return rows


def _images(wire: dict[str, Any]) -> list[dict[str, Any]]:
    return [image for name in ("data", "old") for image in wire[name] or ()]


def of_tables(tables: int) -> list[Message]:
    """So many tables in turn, each of them twice at least."""

    def change(number: int, wire: dict[str, Any]) -> None:
        if number % tables:
            wire["table"] = f"orders_{number % tables}"

    return _rewritten(change, max(_MESSAGES, 2 * tables))


def of_columns(times: int) -> list[Message]:
    """So many times the table's columns."""

    def change(number: int, wire: dict[str, Any]) -> None:
        for values in (*_images(wire), wire["mysqlType"], wire["sqlType"]):
            for name, value in list(values.items()):
                values.update((f"{name}_{copy}", value) for copy in range(1, times))

    return _rewritten(change, max(_MESSAGES // times, 200))


def of_size(size: int) -> list[Message]:
    """Messages of about so many bytes: of few columns, or with one large text."""
    kept = ("id",) if size < 500 else ("id", "remark")

    def change(number: int, wire: dict[str, Any]) -> None:
        for values in (*_images(wire), wire["mysqlType"], wire["sqlType"]):
            for name in list(values):
                if name not in kept:
                    del values[name]
        if "remark" in kept:
            room = max(size - 350, 100) // len(_images(wire))
            for image in _images(wire):
                image["remark"] = ("please deliver before noon; " * (room // 28 + 1))[:room]

    return _rewritten(change, max(min(_MESSAGES, _BYTES // size), 100))


GROWTHS: dict[str, list[tuple[str, Callable[[], list[Message]]]]] = {
    "tables, one of them read": [
        (f"{count}", lambda count=count: of_tables(count))  # type: ignore[misc]
        for count in (1, 2, 10, 100, 1000)
    ],
    _ALL_TABLES: [
        (f"{count}", lambda count=count: of_tables(count))  # type: ignore[misc]
        for count in (1, 10, 100, 1_000, 10_000)
    ],
    "columns": [
        (f"{16 * times}", lambda times=times: of_columns(times))  # type: ignore[misc]
        for times in (1, 3, 10, 31)
    ],
    "KB of a message": [
        (f"{size / 1000:g}", lambda size=size: of_size(size))  # type: ignore[misc]
        for size in (300, 1_000, 3_000, 10_000, 30_000, 100_000)
    ],
}


def measure(rounds: int) -> list[dict[str, Any]]:
    """Records of what grows, how far, and nanoseconds a byte."""
    records = measure_input(rounds)
    for what, steps in GROWTHS.items():
        runs = []
        for step, make in steps:
            messages = make()
            size = sum(len(message.value or b"") for message in messages)
            case = "events, images as JSON" if what == _ALL_TABLES else "changes"
            engine = open_engine(messages, SAMPLES[0], case, by_kernel=True)
            # It has seen every table then.
            for _ in engine.batches(messages):
                pass
            seen = _ways(engine)
            runs.append((step, messages, size, engine, seen, max(1, _BYTES // size)))
        seconds: dict[str, list[float]] = {}
        for _ in range(rounds):
            for step, messages, size, engine, _, times in runs:
                start = time.process_time()
                for _ in range(times):
                    for _ in engine.batches(messages):
                        pass
                each = (time.process_time() - start) / times / size
                seconds.setdefault(step, []).append(each)
        for step, messages, size, engine, seen, _ in runs:
            records.append(
                {
                    "what": what,
                    "step": step,
                    "bytes": size / len(messages),
                    "ns": statistics.median(seconds[step]) * 1e9,
                    "by_kernel": _by_kernel(engine, seen),
                }
            )
    return records


def measure_input(rounds: int) -> list[dict[str, Any]]:
    """Records of whole files of golden messages, with the peak of this process's memory, in MB."""
    messages = SAMPLES[0].messages()
    lines = b"".join((message.value or b"") + b"\n" for message in messages[2:])
    engine = open_engine(messages, SAMPLES[0], "changes", by_kernel=True)
    seconds: dict[int, list[float]] = {megabytes: [] for megabytes in _INPUTS}
    memory = dict.fromkeys(_INPUTS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        splits = {size: _file_of(lines, size, Path(folder)) for size in _INPUTS}
        for _ in range(rounds):
            for size, split in splits.items():
                with own_peak() as peak:
                    start = time.process_time()
                    for _ in engine.batches(read_lines(split)):
                        pass
                    seconds[size].append(time.process_time() - start)
                    memory[size] = max(memory[size], peak())
    return [
        {
            "what": "MB of input, from a file",
            "step": f"{size}",
            "bytes": len(lines) / (len(messages) - 2),
            "ns": statistics.median(seconds[size]) / size * 1e3,
            "by_kernel": _by_kernel(engine),
            "memory": memory[size],
        }
        for size in _INPUTS
    ]


def _file_of(lines: bytes, megabytes: int, folder: Path) -> FileSplit:
    """These lines again and again."""
    times, rest = divmod(megabytes * 1_000_000, len(lines))
    path = folder / f"{megabytes}.jsonl"
    with path.open("wb") as file:
        for _ in range(times):
            file.write(lines)
        file.write(lines[: lines.rfind(b"\n", 0, rest) + 1])
    return FileSplit(str(path), 0, None, None)


def _ways(engine: Engine) -> tuple[int, int]:
    """Messages by the kernel so far, and those of the reference."""
    chunks = engine.chunks
    assert chunks is not None
    return chunks.by_kernel, chunks.by_reference


def _by_kernel(engine: Engine, seen: tuple[int, int] = (0, 0)) -> float:
    """The part of the messages that was read by the kernel since these were seen."""
    columns, reference = (now - before for now, before in zip(_ways(engine), seen, strict=True))
    return columns / (columns + reference)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for record in measure(rounds):
        print(
            f"  {record['what']:<28}{record['step']:>8}{record['bytes']:>10,.0f} bytes each"
            f"{record['ns']:>8.2f} ns a byte{record['ns'] * record['bytes'] / 1000:>9.2f} µs a "
            f"message{record['by_kernel']:>7.1%} by the kernel"
            + (f", at most {record['memory']:.0f} MB" if "memory" in record else "")
        )


if __name__ == "__main__":
    main()
