"""Rows of golden sets of Debezium with a schema registry, beside the truth of the database."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_core.events import Event, Image, RowChange
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import read_jsonl

Truth: TypeAlias = Mapping[str, Any]
Place: TypeAlias = tuple[Any, str, str]


@attrs.frozen
class TrueRow:
    """An event as the wire has it: a change of the key is a delete and an insert."""

    op: str
    columns: tuple[Truth, ...]
    identity: str

    @property
    def sides(self) -> tuple[str, ...]:
        return {"delete": ("old",), "insert": ("new",), "read": ("new",)}.get(
            self.op, ("old", "new")
        )


_OPS = {"c": "insert", "u": "update", "d": "delete", "r": "read"}


def true_rows(folder: str, position: str) -> dict[Place, list[TrueRow]]:
    """The rows by position, schema and table; ``position``: the field that messages have, too."""
    found: dict[Place, list[TrueRow]] = defaultdict(list)
    for line in (
        *read_jsonl(f"{folder}/truth_snapshot.jsonl.gz"),
        *read_jsonl(f"{folder}/truth.jsonl.gz"),
    ):
        if line["kind"] != "row":
            continue
        op, columns = _OPS[line["op"]], tuple(line["columns"])
        identity = line.get("identity", "full")
        flag = next((f for f in ("ri", "pk") if any(c.get(f) for c in columns)), "notnull")
        changed = any(c.get(flag) and c.get("old") != c.get("new") for c in columns)
        for each in ("delete", "insert") if op == "update" and changed else (op,):
            place = line.get(position) if op != "read" else None
            found[place, line["schema"], line["table"]].append(TrueRow(each, columns, identity))
    return found


def decoded(folder: str, **options: Any) -> list[Event]:
    """The events of all messages; one that cannot be decoded fails."""
    decoder = framed_decoder("debezium", folder, **options)
    return [event for message in framed_messages(folder) for event in decoder.decode(message)]


def images_of(event: RowChange) -> Iterator[tuple[str, Image]]:
    for side, image in (("old", event.before), ("new", event.after)):
        if image is not None:
            yield side, image


def rows_of(events: Iterable[Event]) -> list[RowChange]:
    return [event for event in events if isinstance(event, RowChange)]


def adjusted(name: str) -> str:
    """A name as ``field.name.adjustment.mode=avro`` makes it."""
    # A character beyond U+FFFF is two of Java's.
    name = re.sub(r"[^\u0000-\uffff]", "__", name)
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return "_" + name if name[:1].isdigit() else name
