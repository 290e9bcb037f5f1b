"""The layouts of row messages, for the compiled kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_debezium.envelope import position_of
from cdcfmt_debezium.message import OP_OF_WORD, SOURCE_TAKEN, TICDC
from cdcfmt_debezium.options import profiles
from cdcfmt_debezium.unavailable import Unavailable
from cdcfmt_debezium.value_encodings import column_encodings
from cdcfmt_toolkit.layout import Extra, Layout, Members
from cdcfmt_toolkit.wire_json import text_of

_SOURCE: Members = {
    "version": "passed",
    "connector": "same",
    "name": "same",
    "ts_ms": "source_time",
    "snapshot": "extra",
    "db": "database",
    "sequence": "extra",
    "schema": "schema",
    "table": "table",
    "server_id": "extra",
    "gtid": "extra",
    "file": "same",
    "pos": "position",
    "row": "extra",
    "thread": "extra",
    "query": "extra",
    "commit_ts": "commit_ts",
    "start_ts": "extra",
    "cluster_id": "extra",
}
_PAYLOAD: Members = {
    "before": "before",
    "after": "after",
    "source": _SOURCE,
    "transaction": "extra",
    "op": "op",
    "ts_ms": "other_time",
}
# Newer connectors write each time in three units; the finest is used.
_FINER: Mapping[str, Any] = {"ts_ms": "passed", "ts_ns": "passed"}

_TIMES = (0, MAX_TIMESTAMP // 1000, 1000)
_FINER_TIMES = (0, MAX_TIMESTAMP, 1)


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layouts of messages with envelope; none for compressed values."""
    if options["largeMessageHandleCompression"] != "none" or options["flattened"]:
        return ()
    layout = Layout(
        members=_PAYLOAD,
        ops={word: op for word, op in OP_OF_WORD.items() if op != "truncate"},
        encodings=column_encodings(profiles(options)),
        times=_TIMES,
        lacks=Unavailable(options["unavailableValuePlaceholder"] or "").marks,
        connect=True,
        keyed=True,
        log=(("source", "server_id"), ("source", "file"), ("source", "pos")),
        limits=_limits,
        extra=_extra,
    )
    finer = {
        **_PAYLOAD,
        **_FINER,
        "ts_us": "other_time",
        "source": {**_SOURCE, **_FINER, "ts_us": "source_time"},
    }
    return (layout, attrs.evolve(layout, members=finer, times=_FINER_TIMES))


def _extra(envelope: Mapping[str, Any]) -> dict[tuple[str, ...], Extra]:
    """The known members in the ``extra`` of :func:`~cdcfmt_debezium.envelope.extra_of`."""
    without: tuple[Any, ...] = (None, "")
    if envelope["source"].get("connector") == TICDC:
        without += (0, False)
    parts: dict[tuple[str, ...], Extra] = {
        ("source", name): Extra(name, without) for name in _SOURCE if name not in SOURCE_TAKEN
    }
    parts["source", "snapshot"] = Extra("snapshot", (*without, "false", False))
    parts["transaction",] = Extra("transaction", (None, "", 0, False, [], {}))
    return parts


def _limits(
    envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]] | None:
    """The position range in which a DDL's schema is valid: up to the stream's next DDL."""
    source = envelope["source"]
    position = position_of(source)
    schema, stream = text_of(source, "schema") or None, text_of(source, "name")
    database, table = text_of(source, "db"), text_of(source, "table")
    if position is None:
        newest = schemas.find(database, table, None, schema=schema, stream=stream)
        return {} if newest is None else None
    low, high = schemas.span(database, table, position, schema=schema, stream=stream)
    if low is None and high is None:
        return {}
    # Rows of one plan have the same binlog file.
    last = "commit_ts" if len(position) == 1 else "pos"
    first_one, last_one = 0, (1 << 63) - 1
    for end in (low, high):
        if end is not None and len(end) != len(position):
            return None
    if low is not None and low[:-1] == position[:-1]:
        first_one = max(first_one, low[-1])
    if high is not None and high[:-1] == position[:-1]:
        last_one = min(last_one, high[-1] - 1)
    return {("source", last): (first_one, last_one)}
