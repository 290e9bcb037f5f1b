"""Records as JSON Lines and CSV."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from rich.highlighter import JSONHighlighter

from cdcfmt_core.cli.console import console
from cdcfmt_core.cli.json_text import RawJson, clean, to_json

Record: TypeAlias = dict[str, Any]


def write_json(records: Iterable[Record], *, live: bool) -> None:
    """A line each; in colours on a terminal.  A ``live`` one is seen as soon as it comes."""
    if sys.stdout.isatty():
        out, highlight = console(), JSONHighlighter()
        for record in records:
            out.print(highlight(to_json(record)), soft_wrap=True)
        return
    for record in records:
        _write(to_json(record) + "\n", live)


def write_csv(records: Iterable[Record], columns: Sequence[str], *, live: bool) -> None:
    """RFC 4180 with LF; NULL is nothing and an empty text is ``""``, as in Spark's CSV."""
    _write(",".join(map(_quoted, columns)) + "\n", live)
    for record in records:
        _write(",".join(_csv_cell(record.get(name)) for name in columns) + "\n", live)


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if type(value) in (str, RawJson):
        return _quoted(clean(value))
    if isinstance(value, tuple) and hasattr(value, "text") and not isinstance(value.text, bytes):
        return _quoted(clean(value.text))
    text = to_json(value)
    return _quoted(text[1:-1] if text.startswith('"') else text)


def _quoted(text: str) -> str:
    if text and not any(mark in text for mark in ',"\n\r'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _write(text: str, live: bool) -> None:
    # Data is UTF-8 whatever the terminal's locale says.
    sys.stdout.buffer.write(text.encode())
    if live:
        sys.stdout.buffer.flush()
