"""``stats --html``: the numbers as one self-contained page."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from string import Template

from cdcfmt_cli.json_text import lossless, time_text, to_json
from cdcfmt_cli.printing import number, printable, size, span_text
from cdcfmt_cli.statistics import Statistics

WORDS = ("insert", "read", "update", "upsert", "delete", "truncate", "ddl", "schema", "corrupt")
"""Series of the chart and of the tables' bars, from the bottom up; each is a CSS class."""

_COLUMNS = 96
_CHART = (960, 240)
_LINES = 4
_MAX_TABLES = 200
_MAX_REASONS = 100


def page(statistics: Statistics, paths: Sequence[str]) -> str:
    template = resources.files("cdcfmt_cli").joinpath("page.html").read_text("utf-8")
    # Text from the wire must not close the script element that contains it.
    data = to_json(lossless(statistics.as_json())).replace("<", "\\u003c")
    json.loads(data)
    return Template(template).substitute(
        title=_text(", ".join(paths)),
        command=_text(f"cdcfmt stats {shlex.join(paths)}"),
        when=_text((time_text(statistics.now // 1_000_000 * 1_000_000) or "").replace("T", " ")),
        tiles="".join(_tiles(statistics)),
        chart=_chart(statistics) if statistics.times else "",
        tables=_tables(statistics) if statistics.tables else "",
        partitions=_partitions(statistics) if len(statistics.partitions) > 1 else "",
        corrupt=_reasons(statistics) if statistics.reasons else "",
        data=data,
    )


def _tiles(statistics: Statistics) -> Iterable[str]:
    total = statistics.key_bytes + statistics.value_bytes
    yield _tile("messages", number(statistics.messages), size(total))
    kinds = ", ".join(
        f"{number(n)} {k}" for k, n in statistics.kinds.most_common() if k != "corrupt"
    )
    yield _tile("events", number(statistics.events), kinds)
    formats = ", ".join(f"{name} {number(n)}" for name, n in statistics.protocols.most_common())
    yield _tile("tables", number(len(statistics.tables)), formats or "no format recognised")
    bad = statistics.corrupt
    yield _tile(
        "corrupt", number(bad), "see below" if bad else "all good", "bad" if bad else "good"
    )
    if statistics.first_time is not None and statistics.last_time is not None:
        span = span_text(statistics.last_time - statistics.first_time)
        yield _tile("time span", span, _from_to(statistics.first_time, statistics.last_time))
    lag = statistics.producer_lag
    if lag.count:
        largest = f"half of the events; the latest {span_text(lag.largest)}"
        yield _tile("written within", span_text(lag.median()), largest)
    watermark = statistics.watermark()
    if watermark is not None:
        late = statistics.late_rows
        rest = f"{number(late)} rows came late" if late else "no row came late"
        day, _, clock = _time((watermark >> 18) * 1000).partition(" ")
        yield _tile("watermark", clock, f"{day} · {watermark} · {rest}")


def _tile(name: str, value: str, more: str, style: str = "") -> str:
    return (
        f'<div class="tile {style}"><h2>{_text(name)}</h2><b>{_text(value)}</b>'
        f"<p>{_text(more)}</p></div>"
    )


def _chart(statistics: Statistics) -> str:
    """Stacked columns over time, as SVG; hovering over a column shows its numbers."""
    start, width, columns = statistics.times.columns(_COLUMNS)
    words = [word for word in WORDS if any(column[word] for column in columns)]
    top = max(column.total() for column in columns)
    step = _round_step(top)
    highest = -(-top // step) * step
    chart_width, height = _CHART
    parts = []
    for value in range(0, highest + 1, step):
        y = height - value * height / highest
        parts.append(f'<line class="grid" x1="0" x2="{chart_width}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="-8" y="{y + 4:.1f}">{number(value)}</text>')
    wide = chart_width / len(columns)
    for index, counts in enumerate(columns):
        if counts:
            parts.append(_column(counts, index, wide, highest, height, start + index * width))
    for share in (0.0, 0.5, 1.0):
        at = start + int(width * len(columns) * share)
        anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[share]
        parts.append(
            f'<text class="time" x="{chart_width * share:.0f}" y="{height + 22}" '
            f'text-anchor="{anchor}">{_text(_time(at))}</text>'
        )
    legend = "".join(
        f'<li><i class="{word}"></i>{word} '
        f"<span>{number(statistics.ops[word] or statistics.kinds[word])}</span></li>"
        for word in words
    )
    return (
        f'<section id="times"><h2>Over time <small>one column is {_text(span_text(width))}</small>'
        f'</h2><ul class="legend">{legend}</ul><div class="scroll"><svg role="img" '
        f'aria-label="events over time, by operation" '
        f'viewBox="-64 -10 {chart_width + 72} {height + 40}">{"".join(parts)}</svg></div></section>'
    )


def _column(
    counts: Counter[str], index: int, wide: float, highest: int, height: int, time: int
) -> str:
    lines = "\n".join(f"{number(counts[word])} {word}" for word in WORDS if counts[word])
    x, gap, y = index * wide, min(wide * 0.15, 2), float(height)
    parts = [
        f'<g class="column"><rect class="hover" x="{x:.2f}" y="0" width="{wide:.2f}" '
        f'height="{height}"/><title>{_text(_time(time, exact=True))}\n{lines}</title>'
    ]
    for word in WORDS:
        if counts[word]:
            # At least one pixel, so that every count is visible.
            bar = max(counts[word] * height / highest, 1.0)
            y -= bar
            parts.append(
                f'<rect class="{word}" x="{x + gap / 2:.2f}" y="{y:.2f}" '
                f'width="{wide - gap:.2f}" height="{bar:.2f}"/>'
            )
    return "".join([*parts, "</g>"])


def _tables(statistics: Statistics) -> str:
    tables = statistics.sorted_tables()
    words = [word for word in WORDS if any(counts[word] for _, counts in tables)]
    most = tables[0][1].total()
    rows = []
    for name, counts in tables[:_MAX_TABLES]:
        bars = "".join(
            f'<i class="{word}" style="width:{100 * counts[word] / most:.3f}%"></i>'
            for word in words
            if counts[word]
        )
        cells = "".join(
            f"<td>{number(counts[word])}</td>" if counts[word] else '<td class="none">–</td>'
            for word in words
        )
        last = statistics.last_changes.get(name)
        time = "–" if last is None else _text(_time(last))
        rows.append(
            f"<tr><th>{_text(name)}</th>{cells}<td>{time}</td>"
            f'<td class="bar"><div>{bars}</div></td></tr>'
        )
    heads = "".join(f"<th>{head}</th>" for head in ("table", *words, "last change"))
    more = f"… {number(len(tables))} tables in all" if len(tables) > _MAX_TABLES else ""
    return _section("tables", f'{heads}<th class="bar"></th>', rows, more)


def _partitions(statistics: Statistics) -> str:
    """The table of each partition's or file's progress."""
    rows = []
    partitions = statistics.sorted_partitions()
    for (name, which), partition in partitions[:_MAX_TABLES]:
        place = name if which is None else f"{name}[{which}]"
        last, behind = partition.last_time, statistics.behind(partition)
        cells = (
            number(partition.messages),
            "–" if partition.last_offset is None else str(partition.last_offset),
            "–" if last is None else _time(last),
            "–" if behind is None else span_text(behind),
        )
        rows.append(
            f"<tr><th>{_text(place)}</th>{''.join(f'<td>{_text(c)}</td>' for c in cells)}</tr>"
        )
    heads = "partition", "messages", "last offset", "last event", "behind"
    more = f"… {number(len(partitions))} in all" if len(partitions) > _MAX_TABLES else ""
    return _section("partitions", "".join(f"<th>{head}</th>" for head in heads), rows, more)


def _reasons(statistics: Statistics) -> str:
    rows = (
        f"<tr><td>{number(reason.count)}</td><th>{_text(reason.text)}"
        f"<small>{_text(printable(reason.error, 400))}</small></th></tr>"
        for reason in statistics.reasons.most_frequent()[:_MAX_REASONS]
    )
    return _section("corrupt", "<th>count</th><th>reason, and the first one</th>", rows)


def _section(name: str, heads: str, rows: Iterable[str], more: str = "") -> str:
    """A section with one table."""
    more = more and f"<p class='more'>{more}</p>"
    return (
        f'<section id="{name}"><h2>{name.capitalize()}</h2><div class="scroll"><table><thead><tr>'
        f"{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>{more}</section>"
    )


def _round_step(top: int) -> int:
    """A step of 1, 2 or 5 times a power of ten that gives at most :data:`_LINES` lines."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power * _LINES >= top:
                return factor * power
        power *= 10


def _time(microseconds: int, *, exact: bool = False) -> str:
    if not exact:
        microseconds = microseconds // 1_000_000 * 1_000_000
    return (time_text(microseconds) or "").replace("T", " ").removesuffix("Z")


def _from_to(first: int, last: int) -> str:
    """A time range; the day is printed once if both times share it."""
    (day, _, begin), (other, _, end) = (_time(time).partition(" ") for time in (first, last))
    return f"{day} {begin} – {end}" if day == other else f"{day} {begin} – {other} {end}"


def _text(text: str) -> str:
    return escape(printable(text))
