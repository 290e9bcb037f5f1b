"""The findings of a campaign as a row; the table of a run, and its place in docs/reliability.md."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- soak: begin -->", "<!-- soak: end -->"
MAX_CPU = 1.0
"""CPU seconds of a message; more is a hang."""

_STARTED = time.monotonic()


@attrs.define(kw_only=True)
class Row:
    """A campaign on one format and target.

    Attributes:
        runs: mutants, restarts, batches or writes: whatever the campaign repeats.
        events: rows that were compared with what they must be.
        different: rows or messages that are not what they must be, errors of the wrong sort.
        max_cpu: CPU seconds of the slowest message, where the campaign measures it.
        max_rss: largest resident memory of a worker, in MB, and ``rss_bound`` its limit.
    """

    campaign: str
    format: str = "all"
    target: str = ""
    runs: int = 0
    kills: int = 0
    events: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    hangs: int = 0
    max_cpu: float | None = None
    max_rss: float | None = None
    rss_bound: float | None = None
    seconds: float = 0.0
    notes: list[str] = attrs.field(factory=list)
    """Failures in words, each with the file that repeats it."""

    def failures(self) -> list[str]:
        """Why this row fails the run; nothing where it passes."""
        found = [
            f"{count} {name}"
            for name in ("lost", "doubled", "different", "hangs")
            if (count := getattr(self, name))
        ]
        if self.max_rss and self.rss_bound and self.max_rss > self.rss_bound:
            found.append(f"{self.max_rss:.0f} MB of memory, more than {self.rss_bound:.0f}")
        if not self.runs:
            found.append("nothing was run")
        return found


def progress(campaign: str, text: str) -> None:
    """A line on stderr with the minutes and seconds since the start."""
    minutes, seconds = divmod(int(time.monotonic() - _STARTED), 60)
    print(f"[{minutes:3}:{seconds:02}] {campaign}: {text}", file=sys.stderr, flush=True)


_HEADER = (
    *("campaign", "format", "target", "runs", "kills", "events", "lost", "doubled", "different"),
    *("hangs", "max CPU a message", "max RSS", "seconds"),
)


def _cells(row: Row) -> list[str]:
    return [
        row.campaign,
        row.format,
        row.target,
        *(f"{count:,}" for count in (row.runs, row.kills, row.events)),
        *(f"{count:,}" for count in (row.lost, row.doubled, row.different, row.hangs)),
        "" if row.max_cpu is None else f"{row.max_cpu:.2f} s",
        "" if row.max_rss is None else f"{row.max_rss:.0f} MB",
        f"{row.seconds:,.0f}",
    ]


def as_text(rows: Iterable[Row]) -> str:
    """The table for a terminal."""
    return _aligned([list(_HEADER), *map(_cells, rows)])


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def about(minutes: float) -> str:
    """Date, duration, machine and versions, in one sentence."""
    versions: dict[str, Any] = {
        name: importlib.metadata.version(name)
        for name in ("cdcfmt-core", "pyspark", "pyarrow", "confluent-kafka")
    }
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {minutes:g} minutes on {os.cpu_count()} "
        f"cores, {platform.python_implementation()} {platform.python_version()}, "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
    )


def write_page(rows: Iterable[Row], minutes: float, page: Path = PAGE) -> None:
    """Put the table between the markers of the page."""
    text = page.read_text(encoding="utf-8")
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"{page} lacks the markers {BEGIN} and {END}")
    lines = [
        f"| {' | '.join(cells)} |"
        for cells in (_HEADER, ["---"] * len(_HEADER), *map(_cells, rows))
    ]
    table = "\n".join(lines)
    page.write_text(
        f"{head}{BEGIN}\n\n{about(minutes)}.\n\n{table}\n\n{END}{tail}", encoding="utf-8"
    )
