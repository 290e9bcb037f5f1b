"""Counts over time, in bounded memory for any time range."""

from __future__ import annotations

from collections import Counter

_MAX_SLOTS = 4096
_FINEST = 1_000


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


def span_text(microseconds: int) -> str:
    """A duration in a suitable unit: ``250 ms``, ``3.5 s``, ``2.0 h``."""
    seconds = microseconds / 1_000_000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if abs(seconds) >= length:
            amount = seconds / length
            return f"{amount:.0f} {unit}" if amount >= 100 else f"{amount:.1f} {unit}"
    return f"{seconds * 1000:.0f} ms"
