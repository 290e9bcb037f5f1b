"""The layout of row messages, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from cdcfmt_core.events import Op, TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_open_protocol.columns import encoding_of
from cdcfmt_open_protocol.message import NAME_IN_EXTRA, ROW
from cdcfmt_toolkit.encodings import Encoding, bounded
from cdcfmt_toolkit.layout import Extra, Layout, Members, Role

_KEY: Members = {
    "ts": "commit_ts",
    "scm": "database",
    "tbl": "table",
    "ptn": "integer",
    "ohk": "must_be_false",
    "t": "row",
}
_VALUE: Members = {"u": "after", "p": "before", "d": "deleted"}

_INSERT_OPS: Mapping[str, Op] = {"true": "insert", "false": "upsert"}


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layout of rows.

    None for compressed values, or if a row's operation depends on other rows of its message.
    """
    if options["largeMessageHandleCompression"] != "none" or options["oldValue"] == "auto":
        return ()
    ops: dict[str, Op] = {"after": _INSERT_OPS[options["oldValue"]], "before": "update"}
    if not options["deleteOnlyOutputHandleKeyColumns"]:
        # With this option, deleted rows lack columns.
        ops["deleted"] = "delete"
    # Only the classic architecture has a row id; its nulls are always NULL.
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
            encodings=_encodings,
            extra=lambda _: extra,
            row_words=(ROW,),
            nulls_may_mean_unknown=architecture != "classic",
            max_events=options["maxBatchEvents"],
            completes_before=True,
            cell="v",
            limits=_limits,
        ),
    )


def _limits(
    key: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]]:
    """The commit_ts range between statements in which the types of an event are valid."""
    start, end = schemas.statements.span(key.get("scm") or "", key["tbl"], key["ts"])
    if start is None and end is None:
        return {}
    return {("ts",): (start or 0, (1 << 63) - 1 if end is None else end - 1)}


def _encodings(value: bytes, table: TableSchema) -> dict[str, Encoding]:
    cells = _cells(orjson.loads(value))
    found = {}
    for column in table.columns:
        cell = cells.get(column.name)
        if cell is None:
            continue  # only in the old row
        encoding = encoding_of(column.type, cell["t"], cell.get("f"))
        if encoding is not None:
            found[column.name] = bounded(encoding, column)
    return found


def _cells(images: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The cells of a row event; all events of its plan have the same types."""
    cells: Mapping[str, Mapping[str, Any]] = images.get("u") or images["d"]
    return cells
