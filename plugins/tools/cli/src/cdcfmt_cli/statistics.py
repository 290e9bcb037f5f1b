"""The counts of ``stats``, message by message, in bounded memory."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import attrs

from cdcfmt_cli.json_text import time_text
from cdcfmt_cli.reading import Decoded
from cdcfmt_cli.reasons import OTHERS, Reasons
from cdcfmt_cli.records import table_name
from cdcfmt_core.events import KIND_OF, Corrupt, Event, Message, RowChange, Watermark

_MAX_NAMES = 100_000
_EARLIEST = 0
_NO_TABLE = "(no table)"
_MAX_SLOTS = 4096
_FINEST = 1_000


@attrs.define
class Partition:
    """The counts of one partition or file.

    - ``last_offset``: offset of the last message
    - ``last_time``: newest source time, in microseconds
    - ``watermark``: last watermark
    - ``late_rows``: rows with a commit_ts that the watermark had already passed
    """

    messages: int = 0
    last_offset: int | None = None
    last_time: int | None = None
    watermark: int | None = None
    late_rows: int = 0


@attrs.define
class Lags:
    """Durations in microseconds: the largest, and a histogram by powers of two."""

    count: int = 0
    largest: int = 0
    _by_bits: Counter[int] = attrs.field(factory=Counter)

    def add(self, lag: int) -> None:
        self.count += 1
        self.largest = max(self.largest, lag)
        self._by_bits[max(lag, 0).bit_length()] += 1

    def median(self) -> int:
        """An upper bound of the median, at most twice its value."""
        seen = 0
        for bits in sorted(self._by_bits):
            seen += self._by_bits[bits]
            if 2 * seen >= self.count:
                return min((1 << bits) - 1, self.largest)
        return 0


class Timeline:
    """Counts of names by time, in microseconds since 1970.

    Slots are one millisecond wide at first; their width doubles when there are too many.
    """

    def __init__(self) -> None:
        self._width = _FINEST
        self._slots: dict[int, Counter[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add(self, time: int, name: str) -> None:
        slot = self._slots.setdefault(time // self._width, Counter())
        slot[name] += 1
        while len(self._slots) > _MAX_SLOTS:
            self._coarsen()

    def columns(self, count: int) -> tuple[int, int, list[Counter[str]]]:
        """Start and column width (both in microseconds), and at most ``count`` columns."""
        first, last = min(self._slots), max(self._slots)
        per_column = -(-(last - first + 1) // count)
        columns: list[Counter[str]] = [
            Counter() for _ in range(-(-(last - first + 1) // per_column))
        ]
        for index, counts in self._slots.items():
            columns[(index - first) // per_column].update(counts)
        return first * self._width, per_column * self._width, columns

    def _coarsen(self) -> None:
        self._width *= 2
        merged: dict[int, Counter[str]] = {}
        for index, counts in self._slots.items():
            merged.setdefault(index // 2, Counter()).update(counts)
        self._slots = merged


@attrs.define
class Statistics:
    """``times`` counts changes by source time; ``now`` is the time of reading (µs)."""

    messages: int = 0
    events: int = 0
    tombstones: int = 0
    key_bytes: int = 0
    value_bytes: int = 0
    largest: int = 0
    protocols: Counter[str] = attrs.field(factory=Counter)
    kinds: Counter[str] = attrs.field(factory=Counter)
    ops: Counter[str] = attrs.field(factory=Counter)
    tables: dict[str, Counter[str]] = attrs.field(factory=dict)
    last_changes: dict[str, int] = attrs.field(factory=dict)
    reasons: Reasons = attrs.field(factory=Reasons)
    partitions: dict[tuple[str, int | None], Partition] = attrs.field(factory=dict)
    times: Timeline = attrs.field(factory=Timeline)
    producer_lag: Lags = attrs.field(factory=Lags)
    first_time: int | None = None
    last_time: int | None = None
    last_commit_ts: int | None = None
    now: int = attrs.field(factory=lambda: time.time_ns() // 1000)

    def add(self, decoded: Decoded) -> None:
        message = decoded.message
        self.messages += 1
        size = len(message.value or b"")
        self.key_bytes += len(message.key or b"")
        self.value_bytes += size
        self.largest = max(self.largest, size)
        self.tombstones += message.value is None and not decoded.events
        if decoded.protocol is not None and message.value is not None:
            self.protocols[decoded.protocol] += 1
        partition = self._partition(message)
        partition.messages += 1
        partition.last_offset = message.offset
        for event in decoded.events:
            self._add_event(decoded, event, partition)

    @property
    def corrupt(self) -> int:
        return self.kinds["corrupt"]

    def watermark(self) -> int | None:
        """The smallest last watermark of the partitions: every earlier event has arrived."""
        marks = [p.watermark for p in self.partitions.values() if p.watermark is not None]
        return min(marks, default=None)

    @property
    def late_rows(self) -> int:
        """Rows with a commit_ts that a watermark of their partition had already passed."""
        return sum(partition.late_rows for partition in self.partitions.values())

    def behind(self, partition: Partition) -> int | None:
        """Time from the partition's newest event to the newest one of the input (µs)."""
        if partition.last_time is None or self.last_time is None:
            return None
        return self.last_time - partition.last_time

    def as_json(self) -> dict[str, Any]:
        watermark = self.watermark()
        start, width, columns = self.times.columns(120) if self.times else (None, None, [])
        return {
            "messages": self.messages,
            "events": self.events,
            "tombstones": self.tombstones,
            "bytes": {
                "keys": self.key_bytes, "values": self.value_bytes, "largest_value": self.largest
            },
            "protocols": dict(self.protocols.most_common()),
            "kinds": dict(self.kinds.most_common()),
            "ops": dict(self.ops.most_common()),
            "tables": {name: dict(counts) for name, counts in self.sorted_tables()},
            "last_changes": {
                name: time_text(self.last_changes[name])
                for name, _ in self.sorted_tables() if name in self.last_changes
            },
            "partitions": [
                self._partition_json(*place, partition)
                for place, partition in self.sorted_partitions()
            ],
            "source_time": {
                "first": time_text(self.first_time), "last": time_text(self.last_time)
            },
            "producer_lag_ms": {
                "median": self.producer_lag.median() // 1000,
                "largest": self.producer_lag.largest // 1000,
            } if self.producer_lag.count else None,
            "watermark": None if watermark is None else {
                "commit_ts": watermark,
                "time": time_text((watermark >> 18) * 1000),
                "behind_newest_ms": max((self.last_commit_ts or 0) - watermark, 0) >> 18,
            },
            "rows_behind_watermark": self.late_rows,
            "corrupt": [
                {"reason": reason.text, "count": reason.count, "first": reason.error}
                for reason in self.reasons.most_frequent()
            ],
            "timeline": {
                "start": time_text(start), "column_ms": None if width is None else width / 1000,
                "columns": [dict(column) for column in columns],
            },
        }  # fmt: skip

    def sorted_tables(self) -> list[tuple[str, Counter[str]]]:
        """The tables; those with the most events first."""
        return sorted(self.tables.items(), key=lambda item: (-item[1].total(), item[0]))

    def sorted_partitions(self) -> list[tuple[tuple[str, int | None], Partition]]:
        """The partitions, by topic or path, then by number."""
        return sorted(self.partitions.items(), key=lambda item: (item[0][0], item[0][1] or 0))

    def _partition(self, message: Message) -> Partition:
        place = (message.topic or message.path or "", message.partition)
        if place not in self.partitions and len(self.partitions) >= _MAX_NAMES:
            place = (OTHERS, None)
        return self.partitions.setdefault(place, Partition())

    def _partition_json(
        self, name: str, number: int | None, partition: Partition
    ) -> dict[str, Any]:
        behind, last = self.behind(partition), partition.last_time
        return {
            "topic_or_path": name,
            "partition": number,
            "messages": partition.messages,
            "last_offset": partition.last_offset,
            "last_time": time_text(last),
            "behind_newest_ms": None if behind is None else behind // 1000,
            "lag_ms": None if last is None else (self.now - last) // 1000,
            "watermark": partition.watermark,
            "rows_behind_watermark": partition.late_rows,
        }

    def _add_event(self, decoded: Decoded, event: Event, partition: Partition) -> None:
        kind = KIND_OF[type(event)]
        self.kinds[kind] += 1
        if isinstance(event, Corrupt):
            self.reasons.add(decoded, event)
            timestamp = decoded.message.timestamp
            self._add_time(timestamp and timestamp * 1000, "corrupt")
            return
        self.events += 1
        name = table_name(event) or _NO_TABLE
        what: str = kind
        if isinstance(event, RowChange):
            what = event.op
            self.ops[what] += 1
        if kind in ("row", "ddl", "schema"):
            if name not in self.tables and len(self.tables) >= _MAX_NAMES:
                name = OTHERS
            self.tables.setdefault(name, Counter())[what] += 1
        self._add_position(event, partition)
        commit_ts = event.commit_ts
        happened = event.source_time if commit_ts is None else (commit_ts >> 18) * 1000
        if happened is not None and event.emit_time is not None:
            self.producer_lag.add(event.emit_time - happened)
        self._add_time(happened or event.emit_time, what)
        if happened is not None:
            partition.last_time = max(partition.last_time or happened, happened)
            if name in self.tables:
                self.last_changes[name] = max(self.last_changes.get(name, happened), happened)

    def _add_position(self, event: Any, partition: Partition) -> None:
        commit_ts = event.commit_ts
        if commit_ts is None:
            return
        if isinstance(event, Watermark):
            partition.watermark = max(partition.watermark or 0, commit_ts)
            return
        self.last_commit_ts = max(self.last_commit_ts or 0, commit_ts)
        if partition.watermark is not None and commit_ts < partition.watermark:
            partition.late_rows += isinstance(event, RowChange)

    def _add_time(self, when: int | None, what: str) -> None:
        if when is None or when <= _EARLIEST:
            return
        self.times.add(when, what)
        self.first_time = when if self.first_time is None else min(self.first_time, when)
        self.last_time = when if self.last_time is None else max(self.last_time, when)
