"""How most messages of rows lie, for readers that go by columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any

import orjson

from cdcfmt_core.encodings import Encoding
from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.go_quote import PLAIN, unquote, unquote_plain
from cdcfmt_core.layout import Extra, Layout, Members, Parser, Role, Split
from cdcfmt_core.schema_store import SchemaStore
from cdcfmt_core.types import LogicalType
from cdcfmt_open_protocol.columns import encoding_of, is_encoded, make_parsers
from cdcfmt_open_protocol.event_key import read_key
from cdcfmt_open_protocol.frames import single_events, split_key, split_value
from cdcfmt_open_protocol.message import NAME_IN_EXTRA, ROW

_KEY: Members = {
    "ts": "commit_ts",
    "scm": "database",
    "tbl": "table",
    "ptn": "integer",
    "ohk": "never",
    "t": "row",
}
_VALUE: Members = {"u": "after", "p": "before", "d": "deleted"}

_INSERT_OPS: Mapping[str, Op] = {"true": "insert", "false": "upsert"}


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layout of rows; none for values that are compressed.

    Nor is there one where a message's rows tell together what each of them is.
    """
    if options["largeMessageHandleCompression"] != "none" or options["oldValue"] == "auto":
        return ()
    ops: dict[str, Op] = {"after": _INSERT_OPS[options["oldValue"]], "before": "update"}
    if not options["deleteOnlyOutputHandleKeyColumns"]:
        # Deleted rows that are their key only lack columns.
        ops["deleted"] = "delete"
    split = _split(options["maxBatchEvents"])
    # With a row id nulls are NULL; of the classic architecture, which alone has it, in any case.
    architecture = options["ticdcArchitecture"]
    row_id: dict[str, dict[str, Role]] = {
        "auto": {"rid": "row_id"},
        "classic": {"rid": "integer"},
        "new": {},
    }
    key: Members = {**_KEY, **row_id[architecture]}
    extra: dict[tuple[str, ...], Extra] = {
        ("key", name): Extra(shown) for name, shown in NAME_IN_EXTRA.items() if name in key
    }
    return (
        Layout(
            members={"key": key, "value": _VALUE},
            ops=ops,
            parsers=_parsers,
            encodings=_encodings,
            extra=lambda _: extra,
            row_words=(ROW,),
            doubts_nulls=architecture != "classic",
            max_events=options["maxBatchEvents"],
            completes_before=True,
            split=split,
            tables=_tables(split),
            cell="v",
            limits=_limits,
        ),
    )


def _split(limit: int) -> Split:
    def split(
        keys: Sequence[bytes | None], values: Sequence[bytes]
    ) -> tuple[Iterable[bytes], Iterable[bytes], list[int] | None]:
        single = single_events(keys, values)
        if single is not None:
            return (*single, None)
        event_keys: list[bytes] = []
        event_values: list[bytes] = []
        counts: list[int] = []
        for key, value in zip(keys, values, strict=True):
            if key is None:
                raise ValueError("no key")
            some_keys, some_values = split_key(key, limit), split_value(value, limit)
            if len(some_keys) != len(some_values):
                raise ValueError("not as many keys as values")
            event_keys += some_keys
            event_values += some_values
            counts.append(len(some_keys))
        return event_keys, event_values, counts

    return split


def _limits(
    key: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]]:
    """Between which statements the types of an event's columns hold."""
    start, end = schemas.statements.span(key.get("scm") or "", key["tbl"], key["ts"])
    if start is None and end is None:
        return {}
    return {("ts",): (start or 0, (1 << 63) - 1 if end is None else end - 1)}


def _tables(split: Split) -> Callable[[bytes, bytes], list[tuple[str, str, int]] | None]:
    def tables(key: bytes, value: bytes) -> list[tuple[str, str, int]] | None:
        keys = [read_key(event) for event in split((key,), (value,))[0]]
        if any(event["t"] != ROW for event in keys):
            return None
        return [(event.get("scm") or "", event["tbl"], event["ts"]) for event in keys]

    return tables


def _encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    cells = _cells(orjson.loads(value))
    found = {
        column.name: encoding_of(column.type, cells[column.name]["t"], cells[column.name].get("f"))
        for column in table.columns
        if column.name in cells  # another one only the old row has
    }
    return {name: encoding for name, encoding in found.items() if encoding is not None}


def _cells(images: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Those of a row event; all others of its plan have the same types."""
    cells: Mapping[str, Mapping[str, Any]] = images.get("u") or images["d"]
    return cells


def _parsers(
    value: bytes, table: TableSchema, time_zone: tzinfo, counts: Counter[str]
) -> dict[str, Parser]:
    (data, *_) = split_value(value, len(value))
    cells = _cells(orjson.loads(data))
    return {
        column.name: _parser(column.type, cells[column.name], time_zone, counts)
        for column in table.columns
    }


def _parser(
    logical: LogicalType, cell: Mapping[str, Any], time_zone: tzinfo, counts: Counter[str]
) -> Parser:
    code, flags = cell["t"], cell.get("f")
    text, other = make_parsers(logical, code, flags, time_zone=time_zone, counts=counts)

    def parse(value: Any) -> Any:
        return text(value) if type(value) is str else other(value)

    return Parser(
        parse,
        text=text,
        mysql_text=text is str or not is_encoded(code, flags),
        plain=(PLAIN, unquote_plain) if text is unquote else None,
    )
