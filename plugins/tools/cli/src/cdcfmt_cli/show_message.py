"""Prints the explanation of a message on the terminal."""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from rich.cells import set_cell_size as set_width
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table
from rich.text import Text

from cdcfmt_cli.explain import Explanation
from cdcfmt_cli.json_text import clean, plain_value, time_text, to_json
from cdcfmt_cli.printing import (
    facts_grid,
    kind_text,
    number,
    plain_table,
    printable,
    share_width,
    type_name,
)
from cdcfmt_cli.records import table_name
from cdcfmt_cli.tables import cell
from cdcfmt_core.events import (
    KIND_OF,
    Column,
    Corrupt,
    Event,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
)
from cdcfmt_toolkit.row_changes import extra_of

_MAX_PARTS = 60
_ABSENT = Text("absent", "faint")


def show_explanation(explanation: Explanation, out: Console) -> None:
    decoded = explanation.decoded
    title = Text(f"message {number(decoded.number + 1)}", "head")
    out.rule(title, style="faint", align="left")
    facts = facts_grid()
    for name, value in _position(decoded.message):
        facts.add_row(name, value)
    facts.add_row("format", _format(explanation))
    out.print(facts)
    if explanation.parts:
        heading("on the wire", out)
        _show_parts(explanation, out)
    reasons = {e.error.reason for e in decoded.events if isinstance(e, Corrupt)}
    if explanation.broken and explanation.broken not in reasons:
        out.print(Text(f"  broken: {explanation.broken}", "bad"), soft_wrap=True)
    if explanation.diagnosis:
        _show_diagnosis(explanation, out)
    if not decoded.events:
        heading("no event", out)
        out.print("  " + _why_none(explanation))
    for index, event in enumerate(decoded.events, 1):
        heading(f"event {index} of {len(decoded.events)}", out)
        _show_event(event, out)


def _position(message: Message) -> Iterator[tuple[str, str]]:
    if message.path is not None:
        yield "file", printable(message.path)
    if message.topic is not None:
        yield "topic", printable(message.topic)
    places = [
        f"{name} {value}"
        for name in ("partition", "offset")
        if (value := getattr(message, name)) is not None
    ]
    if places:
        yield "position", ", ".join(places)
    if message.timestamp is not None:
        yield "timestamp", time_text(message.timestamp * 1000) or str(message.timestamp)
    sizes = [
        f"{name} {'null' if data is None else f'{number(len(data))} bytes'}"
        for name, data in (("key", message.key), ("value", message.value))
    ]
    yield "frame", ", ".join(sizes)
    for name, value in message.headers:
        yield "header", f"{printable(name)} = {cell(shown_bytes(value), 80)}"


def _format(explanation: Explanation) -> Text:
    codec = explanation.codec
    if codec is None:
        return Text("not recognised", "warn")
    sure = explanation.recognised.get(codec.name, 0.0)
    others = [f"{n} {s:.0%}" for n, s in explanation.recognised.items() if n != codec.name]
    beside = f", others: {', '.join(others)}" if others else ""
    return Text.assemble((codec.name, "name"), (f"  recognised with {sure:.0%}{beside}", "faint"))


def _show_parts(explanation: Explanation, out: Console) -> None:
    shown = explanation.parts[:_MAX_PARTS]
    width = min(max(Text(printable(name)).cell_len for name, _ in shown), out.width // 3)
    for name, value in shown:
        line = Text("  ").append(set_width(printable(name), width), "name").append("  ")
        out.print(line.append(short(value, out.width)), no_wrap=True, overflow="ellipsis")
    if len(explanation.parts) > _MAX_PARTS:
        out.print(f"  … {len(explanation.parts)} parts in all", style="faint")


def _show_diagnosis(explanation: Explanation, out: Console) -> None:
    diagnosis = explanation.diagnosis
    assert diagnosis is not None
    before = printable(diagnosis.around[: diagnosis.caret])
    out.print(f"  {diagnosis.reason}", style="faint")
    text = Text("  " + before, "faint").append(
        printable(diagnosis.around[diagnosis.caret :]) or " ", "default"
    )
    out.print(text, no_wrap=True, overflow="crop")
    out.print(Text(" " * (Text(before).cell_len + 2) + "^", "bad"), no_wrap=True)


def _why_none(explanation: Explanation) -> str:
    if explanation.decoded.message.value is None:
        return "A message without value (a tombstone) only deletes its key from a compacted topic."
    return "The filters exclude every event of this message, or the message has no event."


def _show_event(event: Event, out: Console) -> None:
    if isinstance(event, Corrupt):
        out.print(
            Text.assemble("  ", kind_text("corrupt"), "  ", event.error.reason), soft_wrap=True
        )
        for name in ("field", "sample"):
            if (value := getattr(event.error, name)) is not None:
                out.print(
                    Text.assemble((f"  {name:<7}", "faint"), printable(value, 0)), soft_wrap=True
                )
        return
    kind = KIND_OF[type(event)]
    head = Text.assemble("  ", kind_text(kind))
    if isinstance(event, RowChange):
        head.append(" ").append_text(kind_text(kind, event.op))
    out.print(head.append("  ").append(printable(table_name(event)), "name"))
    grid = facts_grid()
    for name, value in _facts(event):
        grid.add_row("  " + name, Text(value))
    out.print(grid)
    schema = event.table if isinstance(event, RowChange) else getattr(event, "table_schema", None)
    if isinstance(schema, TableSchema):
        out.print(_columns(event, schema, out.width))


def _facts(event: Any) -> Iterator[tuple[str, str]]:
    if event.commit_ts is not None:
        yield "commit_ts", f"{event.commit_ts}  ({time_text((event.commit_ts >> 18) * 1000)})"
    for name in ("source_time", "emit_time"):
        if (text := time_text(getattr(event, name))) is not None:
            yield name, text
    if isinstance(event, SchemaChange):
        yield "ddl type", event.ddl_type
        yield "query", printable(event.query, 0)
    if isinstance(event, RowChange):
        yield "key", printable(", ".join(event.table.key_columns)) or "none on the wire"
        for name, image in (("before", event.before), ("after", event.after)):
            if image is not None and not image.complete:
                yield name, "only part of the row, according to the protocol"
            if image is not None and image.completed:
                yield name, f"{len(image.completed)} columns from after: absent means unchanged"
    for name, value in extra_of(event).items():
        yield f"extra.{printable(name)}", short(value, 200)


def _columns(event: Event, schema: TableSchema, width: int) -> Table:
    before = event.before if isinstance(event, RowChange) else None
    after = event.after if isinstance(event, RowChange) else None
    images = [(n, i) for n, i in (("before", before), ("after", after)) if i is not None]
    table = plain_table("  column", "source type", "type", *(name for name, _ in images))
    for column in schema.columns:
        key = column.key or column.name in schema.key_columns
        cells = [_value(column, image) for _, image in images]
        if len(cells) == 2 and cells[0].plain != cells[1].plain:
            cells[1].stylize("op.update")
        table.add_row(
            Text("  " + printable(column.name), "key" if key else "name"),
            Text(printable(column.source_type, 30), "faint"),
            type_name(column.type),
            *cells,
        )
    share_width(table, width, fixed=3)
    return table


def _value(column: Column, image: Image) -> Text:
    if column.name not in image.values:
        return _ABSENT.copy()
    value = image.values[column.name]
    if value is None:
        return Text("NULL", "null")
    style = "faint" if column.name in image.completed else ""
    return Text(cell(plain_value(value, column.type)), style)


_MAX_BYTES = 4096


def show_raw(message: Message, out: Console) -> None:
    """Print the raw key and value: JSON indented, other text unchanged, bytes in hex."""
    for name, data in (("key", message.key), ("value", message.value)):
        heading(f"raw {name}", out)
        if data is None:
            out.print("  null", style="null")
            continue
        text = _as_text(data)
        if text is None:
            for line in _hex_lines(data[:_MAX_BYTES]):
                out.print(line, no_wrap=True)
            if len(data) > _MAX_BYTES:
                out.print(f"  … {number(len(data))} bytes in all", style="faint")
        else:
            out.print(JSONHighlighter()(text), soft_wrap=True)


def heading(text: str, out: Console) -> None:
    """Print the heading of one part of an explanation."""
    out.print()
    out.print(Text(text, "head"))


def short(value: Any, limit: int) -> str:
    """A part of a message on one line, cut to ``limit`` characters."""
    value = shown_bytes(value)
    return printable(value if isinstance(value, str) else to_json(value), limit)


def shown_bytes(value: Any) -> Any:
    """UTF-8 bytes as text, other bytes as hex of the first 100; other values unchanged."""
    if not isinstance(value, bytes):
        return value
    text = _as_text(value, indented=False)
    return "0x" + value[:100].hex() if text is None else text


def _as_text(data: bytes, *, indented: bool = True) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if any(ord(c) < 32 and c not in "\t\r\n" for c in text):
        return None
    if indented:
        with contextlib.suppress(ValueError, RecursionError):
            # Fractions as texts keep the digits of the wire.
            mark = uuid.uuid4().hex
            wire = json.loads(text, parse_float=mark.__add__)
            text = json.dumps(wire, indent=2, ensure_ascii=False)
            text = re.sub(f'"{mark}([^"]*)"', r"\1", text)
    # A terminal would obey control characters.
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in clean(text))


def _hex_lines(data: bytes) -> Iterator[Text]:
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in row)
        yield Text.assemble((f"  {start:08x}  ", "faint"), f"{row.hex(' '):<47}  ", (shown, "name"))
