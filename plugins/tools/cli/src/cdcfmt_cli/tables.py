"""Records as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdcfmt_cli.console import console
from cdcfmt_cli.json_text import RawJson, to_json
from cdcfmt_cli.printing import kind_text, plain_table, printable, share_width

_CELL = 60
_LINE = 160
_REASON = 300

_CHANGE_STYLES = {
    "insert": "op.insert",
    "update_preimage": "faint",
    "update_postimage": "op.update",
    "delete": "op.delete",
}


def write_events(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per event: position, kind, table, content."""
    out = console()
    if not records:
        out.print("nothing to show", style="faint")
        return
    with_ts = any("commit_ts" in record for record in records)
    table = plain_table("offset", "kind", "table", *(["commit_ts"] if with_ts else []), "what")
    for record in records:
        name = ".".join(record[n] for n in ("database", "schema", "table") if n in record)
        cells = [
            Text(_place(record["_source"]), "faint", justify="right"),
            kind_text(record["kind"], record.get("op")),
            Text(printable(name), "name"),
        ]
        if with_ts:
            cells.append(Text(str(record.get("commit_ts", "")), justify="right"))
        table.add_row(*cells, _what(record))
    share_width(table, out.width, fixed=len(table.columns) - 1, least=24)
    out.print(table)


def write_changes(records: Sequence[Mapping[str, Any]]) -> None:
    """Print a line per change; if too wide, the columns of each change as a list."""
    out = console(wide=True)
    if not records:
        out.print("nothing to show", style="faint")
        return
    rows = [_change_cells(record) for record in records]
    heads = list(dict.fromkeys(name for row in rows for name in row))
    heads = [h for h in heads if not h.startswith("_") or any(r.get(h) for r in records)]
    heads.sort(key=lambda name: name != "_change_type")
    numbers = tuple(name for name in heads if _all_numbers(name, records))
    table = plain_table(*map(printable, heads), right=tuple(map(printable, numbers)))
    for row in rows:
        table.add_row(*(row.get(head, Text("·", "faint")) for head in heads))
    if _fits(table, out):
        out.print(table)
    else:
        _write_stacked(rows, heads, out)


def changed_text(before: Any, after: Any) -> Text:
    """``old→new``."""
    return Text.assemble((f"{cell(before)}→", "faint"), cell(after))


def cell(value: Any, limit: int = _CELL) -> str:
    """A value on one line, cut to ``limit`` characters."""
    if value is None:
        return "NULL"
    if type(value) is str and (value != value.strip() or value.upper() in ("", "NULL")):
        # Text that would be invisible, or look like NULL.
        return f"'{printable(value, limit)}'"
    if type(value) in (str, RawJson):
        return printable(value, limit)
    text = to_json(value)
    return printable(text[1:-1] if text.startswith('"') else text, limit)


def _place(source: Mapping[str, Any]) -> str:
    offset = str(source.get("offset", ""))
    return f"{source['partition']}:{offset}" if "partition" in source else offset


def _what(record: Mapping[str, Any]) -> Text:
    if "_corrupt_record" in record:
        return Text(printable(record["_corrupt_record"]["reason"], _REASON), "bad")
    if "ddl" in record:
        return Text(printable(" ".join(record["ddl"]["query"].split()), _LINE))
    if "before" in record or "after" in record:
        return _images(record)
    return Text(printable(to_json(record["extra"]), _LINE) if "extra" in record else "", "faint")


def _images(record: Mapping[str, Any]) -> Text:
    """The key, then the changed columns, or the first columns of the row."""
    before, after = record.get("before"), record.get("after")
    keys = record.get("key_columns", ())
    image = (before if after is None else after) or {}
    names = [*(name for name in keys if name in image), *(n for n in image if n not in keys)]
    text = Text()
    for name in names:
        old = new = image[name]
        if before is not None and after is not None and name in before:
            old = before[name]
            if to_json(old) == to_json(new) and name not in keys:
                continue
        text.append(printable(name), "key" if name in keys else "name").append("=")
        same = to_json(old) == to_json(new)
        text.append_text(Text(cell(new)) if same else changed_text(old, new)).append("  ")
        if len(text) > _LINE:
            break
    return text


def _change_cells(record: Mapping[str, Any]) -> dict[str, Text]:
    cells: dict[str, Text] = {}
    for name, value in record.items():
        if name == "_change_type":
            cells[name] = Text(value, _CHANGE_STYLES.get(value, ""))
        elif name == "_corrupt_record":
            cells[name] = Text(printable(value["reason"], _REASON), "bad")
        elif name == "_absent":
            cells[name] = Text(", ".join(value), "faint")
        elif name.startswith("_commit"):
            cells[name] = Text(cell(value), "faint")
        elif name != "_sequence":
            cells[name] = Text("NULL", "null") if value is None else Text(cell(value))
    return cells


def _all_numbers(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    kinds = {type(record.get(name)) for record in records} - {type(None)}
    return bool(kinds) and kinds <= {int, float}


def _fits(table: Table, out: Console) -> bool:
    return table.__rich_measure__(out, out.options.update(width=10**6)).maximum <= out.width


def _write_stacked(rows: Sequence[Mapping[str, Text]], heads: Sequence[str], out: Console) -> None:
    width = max(map(len, heads))
    for number, row in enumerate(rows, 1):
        out.rule(Text(str(number), "faint"), style="faint", align="left")
        for head in heads:
            value = row.get(head, Text("·", "faint"))
            line = Text.assemble((f"{printable(head):>{width}}  ", "name"), value)
            out.print(line, no_wrap=True, overflow="ellipsis")
