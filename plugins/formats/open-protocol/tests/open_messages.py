"""Open Protocol messages built by hand, and their events."""

from __future__ import annotations

import json
import struct
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import attrs

from cdcfmt_core import opening
from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Event, Message, RowChange, SchemaChange
from cdcfmt_core.filters import EventFilter
from cdcfmt_open_protocol.frames import split_key, split_value

VERSION = b"\0\0\0\0\0\0\0\1"
TS = 415508878783938562

ROW_KEY = {"ts": TS, "scm": "test", "tbl": "t1", "t": 1}
DDL_KEY = {"ts": TS, "scm": "test", "tbl": "t1", "t": 2}
RESOLVED_KEY = {"ts": TS, "t": 3}

ID = {"t": 3, "h": True, "f": 11, "v": 1}
NAME = {"t": 15, "f": 64, "v": "aa"}


def data_of(part: Any) -> bytes:
    """Bytes as they are, text in UTF-8, anything else as JSON."""
    if isinstance(part, bytes):
        return part
    return (part if isinstance(part, str) else json.dumps(part, ensure_ascii=False)).encode()


def frames(parts: Iterable[Any]) -> bytes:
    return b"".join(
        struct.pack(">q", len(part)) + part for part in (data_of(part) for part in parts)
    )


def message(keys: Iterable[Any], values: Iterable[Any]) -> Message:
    return Message(VERSION + frames(keys), frames(values), topic="t", partition=3, offset=99)


def open_decoder(
    *,
    claims: Path | None = None,
    event_filter: EventFilter | None = None,
    counts: Counter[str] | None = None,
    protocol: str = "open-protocol",
    **options: Any,
) -> MessageDecoder:
    if claims is not None:
        options["claimCheckStorageUri"] = str(claims)
    return opening.open_decoder(protocol, options, event_filter=event_filter, counts=counts)


def decode(keys: Iterable[Any], values: Iterable[Any], **options: Any) -> list[Event]:
    return open_decoder(**options).decode(message(keys, values))


def decode_row(value: Any, key: Any = ROW_KEY, **options: Any) -> RowChange:
    (event,) = decode([key], [value], **options)
    assert isinstance(event, RowChange), event
    return event


def decode_ddl(value: Any, key: Any = DDL_KEY, **options: Any) -> SchemaChange:
    (event,) = decode([key], [value], **options)
    assert isinstance(event, SchemaChange), event
    return event


def the_error(keys: Iterable[Any], values: Iterable[Any], **options: Any) -> DecodeError:
    """The error of a message with nothing good in it."""
    (event,) = decode(keys, values, **options)
    assert isinstance(event, Corrupt), event
    return event.error


def cell_error(cell: Any, **options: Any) -> DecodeError:
    """The error of a row with this column ``c``."""
    return the_error([ROW_KEY], [{"u": {"id": ID, "c": cell}}], **options)


def value_of(code: int, value: Any, flags: int | None = 64) -> Any:
    """The decoded value of a column."""
    cell = {"t": code, "v": value} | ({} if flags is None else {"f": flags})
    row = decode_row({"u": {"c": cell}})
    assert row.after is not None
    return row.after.values["c"]


def parse_wire(message: Message) -> Any:
    """The JSON in a message's frames: that of the keys, and that of the values."""
    parts = split_key(message.key or b"", 100), split_value(message.value or b"", 100)
    return [[json.loads(part) if part else None for part in side] for side in parts]


def build_wire(message: Message, wire: Any) -> Message:
    """The message with other JSON in its frames; ValueError without frames."""
    match wire:
        case [[_, *_], [*_]]:
            pass
        case _:
            raise ValueError("no frames, or an empty batch, which is a good message")
    parts = [[b"" if part is None else json.dumps(part) for part in side] for side in wire]
    return attrs.evolve(message, key=VERSION + frames(parts[0]), value=frames(parts[1]))
