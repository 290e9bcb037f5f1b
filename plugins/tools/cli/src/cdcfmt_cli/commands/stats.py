"""``cdcfmt stats``: messages and events by table, operation and time."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from cdcfmt_cli.console import console, next_command, note
from cdcfmt_cli.html_page import page
from cdcfmt_cli.inputs import is_topic, open_input, public
from cdcfmt_cli.interruption import until_interrupted
from cdcfmt_cli.json_text import time_text
from cdcfmt_cli.parameters import declare, reads
from cdcfmt_cli.printing import (
    facts_grid,
    number,
    plain_table,
    print_table,
    printable,
    size,
    span_text,
)
from cdcfmt_cli.reading import Reader
from cdcfmt_cli.reasons import write_reasons
from cdcfmt_cli.settings import TABLE_OPTION, Settings
from cdcfmt_cli.statistics import Statistics
from cdcfmt_cli.writers import OutputFile, open_output, print_json

WORDS = ("insert", "read", "update", "upsert", "delete", "truncate", "ddl", "schema")
"""The counts of a table's events, in this order."""

_HEIGHTS = "▁▂▃▄▅▆▇█"
_STYLES = {"ddl": "kind.ddl", "schema": "kind.schema", "corrupt": "kind.corrupt"}
_MAX_TABLES = 25
_MAX_REASONS = 10


@declare("stats", "Counts by format, kind, table and time.")
@reads([TABLE_OPTION])
@click.option(
    "--html",
    type=OutputFile(),
    metavar="FILE",
    help="Write a self-contained HTML page instead of the text.",
)
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
def command(paths: tuple[str, ...], settings: Settings, html: Path | None, as_json: bool) -> None:
    """Count messages and events of INPUT: by format, kind, operation, table and time.

    Also: bytes, producer lag, the watermark, and corrupt messages by reason. Exit code 1 if
    INPUT has none of the requested tables.
    """
    statistics = Statistics()
    source = open_input(paths, settings)
    reader = Reader(source, settings)
    with nullcontext() if html is None else open_output(html, source) as file:
        with until_interrupted() as interruption:
            for decoded in reader:
                statistics.add(decoded)
        if interruption.happened and html is not None:
            interruption.end(f"{html} is not written")
        if file is not None:
            file.write(page(statistics, public(paths)).encode())
        if as_json:
            print_json(statistics.as_json())
        elif file is None:
            _show(statistics, paths)
        interruption.end(f"the counts are of {number(statistics.messages)} messages")
        reader.check_names()
    if html is not None:
        note(f"written: {html}")


def _show(statistics: Statistics, paths: tuple[str, ...]) -> None:
    out = console()
    _show_facts(statistics, out)
    if statistics.times:
        out.print()
        _show_times(statistics, out)
    if statistics.tables:
        out.print()
        _show_tables(statistics, out)
    live = any(map(is_topic, paths))
    if live or len(statistics.partitions) > 1:
        out.print()
        _show_partitions(statistics, out, live=live)
    if statistics.reasons:
        out.print()
        write_reasons(statistics.reasons, out, _MAX_REASONS, "--json has them")
        out.print()
        next_command(["validate"], public(paths))


def _show_facts(statistics: Statistics, out: Console) -> None:
    grid = facts_grid()
    bytes_ = statistics.key_bytes + statistics.value_bytes
    grid.add_row(
        "messages",
        f"{number(statistics.messages)}, {size(bytes_)} (largest {size(statistics.largest)})",
    )
    formats = (f"{name} {number(count)}" for name, count in statistics.protocols.items())
    grid.add_row("formats", ", ".join(formats) or "none recognised")
    kinds = Text()
    for kind, count in statistics.kinds.most_common():
        kinds.append(f"{number(count)} ").append(kind, f"kind.{kind}").append("   ")
    grid.add_row("events", kinds)
    if statistics.tombstones:
        grid.add_row("tombstones", number(statistics.tombstones))
    if statistics.first_time is not None and statistics.last_time is not None:
        span = span_text(statistics.last_time - statistics.first_time)
        first, last = time_text(statistics.first_time), time_text(statistics.last_time)
        grid.add_row("happened", f"{first} … {last}  ({span})")
    lag = statistics.producer_lag
    if lag.count:
        text = f"half within {span_text(lag.median())}, the latest {span_text(lag.largest)}"
        grid.add_row("written after", text)
    watermark = statistics.watermark()
    if watermark is not None:
        at = (watermark >> 18) * 1000
        behind = ((statistics.last_commit_ts or 0) >> 18) * 1000 - at
        text = f"{watermark}  {time_text(at)}"
        if behind > 0:
            text += f"  ({span_text(behind)} behind the newest event)"
        grid.add_row("watermark", text)
    if statistics.late_rows:
        late = f"{number(statistics.late_rows)} with a commit_ts that a watermark had passed"
        grid.add_row("late rows", Text(late, "warn"))
    out.print(grid)


def _show_times(statistics: Statistics, out: Console) -> None:
    """Print a line of bars for each operation, all on the same scale."""
    words = [w for w in (*WORDS, "corrupt") if statistics.kinds[w] or statistics.ops[w]]
    label = max(map(len, [*words, "watermark"]))
    totals = {w: statistics.ops[w] or statistics.kinds[w] for w in words}
    numbers = max((len(number(total)) for total in totals.values()), default=1)
    width = max(min(out.width - label - numbers - 4, 120), 10)
    start, column, columns = statistics.times.columns(width)
    highest = max((c[w] for c in columns for w in words), default=1) or 1
    unit = f"  one column is {span_text(column)}"
    out.print(Text.assemble(("over time", "head"), (unit, "faint")))
    for word in words:
        bar = "".join(_bar(counts[word], highest) for counts in columns)
        line = Text(f"{word:<{label}}  ", "faint").append(bar, _STYLES.get(word, f"op.{word}"))
        line.append(f"  {number(totals[word]):>{numbers + width - len(bar)}}")
        out.print(line, no_wrap=True)
    first = (time_text(start // 1_000_000 * 1_000_000) or "").rstrip("Z").replace("T", " ")
    last = time_text((start + column * len(columns)) // 1_000_000 * 1_000_000) or ""
    last = last.rstrip("Z").partition("T")[2] if last[:10] == first[:10] else last
    blanks = " " * max(len(columns) - len(first) - len(last), 1)
    out.print(Text(" " * (label + 2) + first + blanks + last, "faint"), no_wrap=True)


def _bar(count: int, highest: int) -> str:
    # Rounded up, so that every count is visible.
    return _HEIGHTS[(count * len(_HEIGHTS) - 1) // highest] if count else " "


def _show_tables(statistics: Statistics, out: Console) -> None:
    words = [w for w in WORDS if any(counts[w] for counts in statistics.tables.values())]
    timed = bool(statistics.last_changes)
    heads = [*words, *(["last change"] if timed else [])]
    table = plain_table("table", *heads, right=tuple(words))
    for column in table.columns[1:]:
        column.no_wrap = True
    tables = statistics.sorted_tables()
    for name, counts in tables[:_MAX_TABLES]:
        cells = (
            Text(number(counts[w]), _STYLES.get(w, f"op.{w}")) if counts[w] else Text("–", "faint")
            for w in words
        )
        last = [Text(_second(statistics.last_changes.get(name)), "faint")] if timed else []
        table.add_row(Text(printable(name), "name"), *cells, *last)
    print_table(table, out)
    if len(tables) > _MAX_TABLES:
        out.print(f"… {number(len(tables))} tables in all; --json has them", style="faint")


def _show_partitions(statistics: Statistics, out: Console, *, live: bool) -> None:
    """Print each partition's progress: behind now for a topic, else behind the newest event."""
    lag = "lag" if live else "behind"
    heads = ("messages", "last offset", "last event", lag)
    table = plain_table("partition", *heads, right=("messages", "last offset", lag))
    for column in table.columns[1:]:
        column.no_wrap = True
    partitions = statistics.sorted_partitions()
    for (name, which), partition in partitions[:_MAX_TABLES]:
        last = partition.last_time
        behind = statistics.now - last if live and last else statistics.behind(partition)
        table.add_row(
            Text(printable(name) + ("" if which is None else f"[{which}]"), "name"),
            number(partition.messages),
            "–" if partition.last_offset is None else str(partition.last_offset),
            Text(_second(last), "faint"),
            "–" if behind is None else span_text(behind),
        )
    print_table(table, out)
    if len(partitions) > _MAX_TABLES:
        out.print(f"… {number(len(partitions))} partitions in all; --json has them", style="faint")


def _second(microseconds: int | None) -> str:
    if microseconds is None:
        return "–"
    return (time_text(microseconds // 1_000_000 * 1_000_000) or "–").replace("T", " ")
