"""The layouts of row messages, for the compiled kernel."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from cdcfmt_canal_json.dialects import DIALECTS, SECONDS_LIMIT, Dialect
from cdcfmt_canal_json.message import MEMBERS, OP_OF_TYPE, extension_of, names_of_table
from cdcfmt_canal_json.plans import column_encodings
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import MAX_TIMESTAMP
from cdcfmt_toolkit.layout import Extra, Layout
from cdcfmt_toolkit.wire_json import commit_ts_of

_NOTHING: tuple[Any, ...] = (None, False, 0, "", [], {})
_EXTRA = {
    ("id",): Extra("id", _NOTHING),
    ("gtid",): Extra("gtid", _NOTHING),
    ("sql",): Extra("sql", _NOTHING),
    ("_tidb", "rowkey"): Extra("rowkey", _NOTHING),
}

_CANAL = Layout(
    members=MEMBERS,
    ops=OP_OF_TYPE,
    encodings=column_encodings("latin1"),
    extra=lambda _: _EXTRA,
    repeats_database=True,
    in_lists=True,
    deleted_row="after",
    completes_before=True,
    # Smaller times are seconds, larger ones exceed the 63 bits of a commit_ts.
    times=(SECONDS_LIMIT, (1 << 45) - 1, 1000),
    column_types="mysqlType",
)

# "id" is first and always 0 in TiCDC's messages; the Java producers sort their fields.
_TICDC_BEGINS = b'{"id":0,'
_SORTED_BEGINS = b'{"data":'
_FLINK_BEGINS = b'{"old":'


def open_layouts(options: Mapping[str, Any]) -> Sequence[Layout]:
    """The layouts of a dialect; none for compressed values."""
    dialect = DIALECTS[options["dialect"]]
    if options["largeMessageHandleCompression"] != "none":
        return ()
    form = options["binaryEncoding"]
    if form == "auto" and dialect.writes_latin1:
        form = "latin1"
    canal = attrs.evolve(
        _CANAL, limits=functools.partial(_limits, dialect), encodings=column_encodings(form)
    )
    if dialect.deleted_row_in_old:
        canal = attrs.evolve(canal, deleted_row="before")
    if options["deleteOnlyOutputHandleKeyColumns"]:
        # Deleted rows lack columns.
        ops = {word: op for word, op in OP_OF_TYPE.items() if op != "delete"}
        canal = attrs.evolve(canal, ops=ops)
    # Producers that write seconds send either no column types, or both kinds of them.
    seconds = attrs.evolve(canal, members={**MEMBERS, "sqlType": "same"}, column_types=None)
    if dialect.seconds:
        return (attrs.evolve(seconds, times=(0, MAX_TIMESTAMP // 1_000_000, 1_000_000)),)
    if dialect.es_is_commit_time is not None:
        return (attrs.evolve(canal, orders_by_source_time=dialect.es_is_commit_time),)
    return (
        attrs.evolve(
            canal,
            members={**MEMBERS, "id": "same"},
            begins=_TICDC_BEGINS,
            encodings=column_encodings("latin1" if form == "auto" else form),
            orders_by_source_time=True,
        ),
        attrs.evolve(canal, begins=_SORTED_BEGINS),
        # It has no types of columns.
        attrs.evolve(seconds, begins=_FLINK_BEGINS, times=canal.times),
        # Seconds are never a commit time, wherever "id" is.
        attrs.evolve(seconds, times=(0, SECONDS_LIMIT - 1, 1_000_000)),
    )


def _limits(
    dialect: Dialect, envelope: Mapping[str, Any], schemas: SchemaStore
) -> Mapping[tuple[str, ...], tuple[int, int]]:
    """The commit_ts or ``es`` range between statements in which a row's types are valid."""
    commit_ts = commit_ts_of(extension_of(envelope), "commitTs", "_tidb.")
    position = dialect.sequence_commit(envelope, None) if commit_ts is None else commit_ts
    database, table, schema = names_of_table(envelope)
    if schema is not None:
        return {}
    start, end = schemas.statements.span(database, table, position)
    if start is None and end is None:
        return {}
    first, last = start or 0, (1 << 63) - 1 if end is None else end - 1
    if commit_ts is not None:
        return {("_tidb", "commitTs"): (first, last)}
    return {("es",): (-(-first >> 18), last >> 18)}
