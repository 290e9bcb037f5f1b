"""Bytes of a message on the terminal: UTF-8 text as text, other bytes in hex."""

from __future__ import annotations

import contextlib
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

from cdcfmt_core.cli.json_text import clean, to_json
from cdcfmt_core.cli.layout import number, printable
from cdcfmt_core.events import Message

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
