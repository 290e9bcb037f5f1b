"""Summaries of events by table: the columns of :data:`BLOCKS` except the payload."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from cdcfmt_toolkit.row_changes import AFTER_CHANGES, SCN
from pyspark_cdcfmt.blocks.schema import FILE
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.rows.variant import decode_variant

if is_installed():
    import cdcfmt_kernel

_NULL, _END = "\x01", "\x00"
_NAMES = ("kind", "protocol", "database", "schema", "table")
_LOG = ("length", "file", "pos", "server")
_POSITION = ("epoch", "commit", "partition", "offset")
_OF_TOPIC = ("epoch", "partition", "offset")
_INTEGERS = ("sequence_commit", "pos", "server_id", "lsn", "event_serial_no")
_TEXTS = ("file", "commit_lsn", "change_lsn", "scn", "commit_scn")
"""Members of ``extra`` by type."""


@attrs.frozen
class Group:
    """The events of one block; ``rows``: their row numbers in the batch, in order."""

    rows: pa.Array
    summary: Mapping[str, Any]

    @property
    def table(self) -> tuple[Any, ...]:
        """The key that :func:`is_of_group` compares."""
        return tuple(self.summary[name] for name in ("database", "schema", "table", "is_read"))


def groups_of(events: pa.RecordBatch) -> list[Group]:
    """The groups of a non-empty batch of events with all columns except images."""
    facts = _facts(events)
    facts["group"] = _numbers(events, facts)
    table = pa.table(facts)
    counted = _by_group(table)
    first, last = _ends(table, _POSITION)
    logged = table.filter(pc.is_valid(table["pos"]))
    first_logged, last_logged = _ends(logged, _LOG)
    servers = _distinct(logged, "server")
    found = []
    for number in range(len(counted)):
        rows = counted[number]["rows"]
        one = events.slice(rows[0].as_py(), 1)
        summary = {name: one.column(name)[0].as_py() for name in _NAMES if name != "protocol"}
        summary |= {name: one.column(name)[0].as_py() for name in ("columns", "key_columns")}
        summary["protocol"] = facts["protocol"][rows[0].as_py()].as_py()
        summary["is_read"] = facts["is_read"][rows[0].as_py()].as_py()
        summary |= {name: value for name, value in counted[number].items() if name != "rows"}
        summary |= {"first": first[number], "last": last[number]}
        summary |= {"first_log": first_logged.get(number), "log": last_logged.get(number)}
        summary["servers"] = servers.get(number)
        found.append(Group(rows, summary))
    return found


def _numbers(events: pa.RecordBatch, facts: Mapping[str, pa.Array]) -> pa.Array:
    """The number of each row's group, in order of appearance."""
    texts = [_text(facts[name]) for name in (*_NAMES, "is_read") if not _is_one_value(facts[name])]
    for name, text in (("columns", _version), ("key_columns", _joined)):
        if not _is_one_value(events.column(name)):
            texts.append(text(events.column(name)))
    if not texts:
        return pa.repeat(pa.scalar(0, pa.int32()), events.num_rows)
    return pc.binary_join_element_wise(*texts, _END).dictionary_encode().indices


def _is_one_value(array: pa.Array) -> bool:
    same: bool = array.slice(1).equals(array.slice(0, len(array) - 1))
    return same


def is_of_group(events: pa.RecordBatch, owners: pa.StructArray) -> pa.Array:
    """Whether each row has the table and ``is_read`` of the same row in ``owners``."""
    same = pc.equal(events.column("kind"), "row")
    for name in ("database", "schema", "table"):
        same = pc.and_(same, pc.equal(_text(events.column(name)), _text(owners.field(name))))
    return pc.and_(same, pc.equal(_is_read(events), owners.field("is_read")))


def _facts(events: pa.RecordBatch) -> dict[str, pa.Array]:
    """The values of each row that summaries aggregate."""
    source, op = events.column("_source"), events.column("op")
    commit_ts = events.column("commit_ts")
    extra = _members(events)
    commit = pc.coalesce(commit_ts, extra["sequence_commit"])
    is_ordered = pc.is_valid(commit)
    file, pos = log_of(extra)
    return {
        **{name: events.column(name) for name in _NAMES if name != "protocol"},
        "protocol": _field(source, "protocol"),
        "is_read": _is_read(events),
        "is_truncate": _is(op, "truncate"),
        "is_update": _is(op, "update"),
        "is_delete": _is(op, "delete"),
        "commit": pc.fill_null(commit, 0),
        **{name: _unless(commit_ts, _field(source, name)) for name in _OF_TOPIC},
        "latest": pc.coalesce(events.column("commit_time"), events.column("source_time")),
        "place": pc.if_else(is_ordered, pa.scalar(None, pa.string()), _places(source)),
        "length": pc.utf8_length(file),
        "file": file,
        "pos": _if(pc.invert(is_ordered), pos),
        "server": pc.fill_null(extra["server_id"], 0),
    }


def log_of(extra: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    """File and offset of :func:`~cdcfmt_toolkit.row_changes.log_position`."""
    texts = {name: _if(pc.not_equal(extra[name], ""), extra[name]) for name in _TEXTS}
    in_file = pc.and_(pc.is_valid(texts["file"]), pc.is_valid(extra["pos"]))
    change = pc.fill_null(texts["change_lsn"], AFTER_CHANGES)
    in_commit = pc.is_valid(texts["commit_lsn"])
    scn = _scn(extra["scn"])
    commit_scn = pc.coalesce(_scn(extra["commit_scn"]), scn)
    file = pc.coalesce(
        _if(in_file, texts["file"]),
        pc.binary_join_element_wise(texts["commit_lsn"], change, "/"),
        pc.cast(commit_scn, pa.string()),
        _if(pc.is_valid(extra["lsn"]), ""),
    )
    serial = pc.fill_null(extra["event_serial_no"], 0)
    pos = pc.coalesce(
        _if(in_file, extra["pos"]),
        _if(in_commit, serial),
        pc.coalesce(scn, commit_scn),
        extra["lsn"],
    )
    return file, pos


def _scn(texts: pa.Array) -> pa.Array:
    return pc.cast(_if(pc.match_substring_regex(texts, SCN), texts), pa.int64())


def _if(condition: pa.Array, values: Any) -> pa.Array:
    """The values for which the condition is true; NULL otherwise."""
    return pc.if_else(pc.fill_null(condition, False), values, None)


def _unless(commit_ts: pa.Array, place: pa.Array) -> pa.Array:
    """A part of a message's place; 0 if a commit_ts orders its events."""
    zero = pa.scalar(0, place.type)
    return pc.if_else(pc.is_valid(commit_ts), zero, pc.fill_null(place, zero))


def _field(struct: pa.StructArray, name: str) -> pa.Array:
    # NULL if the struct is NULL; ``struct.field`` would ignore that.
    return pc.struct_field(struct, name)


def _is(op: pa.Array, name: str) -> pa.Array:
    return pc.fill_null(pc.equal(op, name), False)


def _is_read(events: pa.RecordBatch) -> pa.Array:
    return _is(events.column("op"), "read")


def _places(source: pa.StructArray) -> pa.Array:
    topic = _field(source, "topic")
    partition = pc.fill_null(pc.cast(_field(source, "partition"), pa.string()), "")
    file = pc.fill_null(_field(source, "path"), "")
    return pc.if_else(
        pc.is_null(topic),
        pc.binary_join_element_wise(FILE, file, ""),
        pc.binary_join_element_wise(topic, partition, "/"),
    )


def _text(array: pa.Array) -> pa.Array:
    return pc.fill_null(pc.cast(array, pa.string()), _NULL)


def _version(columns: pa.ListArray) -> pa.Array:
    """A text per row that identifies its columns."""
    items = columns.values
    texts = [_text(items.field(number)) for number in range(items.type.num_fields)]
    joined = pc.binary_join_element_wise(*texts, _END)
    return _joined(_with_values(columns, joined))


def _with_values(lists: pa.ListArray, values: pa.Array) -> pa.ListArray:
    nulls = pc.is_null(lists) if lists.null_count else None
    return pa.ListArray.from_arrays(lists.offsets, values, mask=nulls)


def _joined(lists: pa.ListArray) -> pa.Array:
    texts = _with_values(lists, pc.fill_null(lists.values, _NULL))
    return pc.fill_null(pc.binary_join(texts, _END), _NULL)


def _by_group(table: pa.Table) -> list[dict[str, Any]]:
    """Counts, places and rows of each group."""
    flags = {"truncates": "is_truncate", "updates": "is_update", "deletes": "is_delete"}
    wanted = [(flag, "sum") for flag in flags.values()]
    wanted += [("latest", "max"), ("pos", "count"), ("group", "count")]
    counted = table.group_by("group").aggregate(cast(Any, wanted)).sort_by("group")
    places = _distinct(table, "place")
    order = pc.sort_indices(table["group"])
    found: list[dict[str, Any]] = []
    at = 0
    for row in counted.to_pylist():
        size = row["group_count"]
        found.append(
            {
                "count": size,
                **{name: row[f"{flag}_sum"] or 0 for name, flag in flags.items()},
                "latest": row["latest_max"],
                "logged": row["pos_count"],
                "places": places.get(row["group"], []),
                "rows": order.slice(at, size),
            }
        )
        at += size
    return found


def _distinct(table: pa.Table, name: str) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    pairs = table.filter(pc.is_valid(table[name])).group_by(["group", name]).aggregate([])
    for row in pairs.to_pylist():
        found.setdefault(row["group"], []).append(row[name])
    return found


def _ends(
    table: pa.Table, names: tuple[str, ...]
) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
    """The lowest and the highest tuple of several columns, by group."""
    by = [(name, "ascending") for name in ("group", *names)]
    ordered = table.select(["group", *names]).sort_by(cast(Any, by))
    counts = ordered.group_by("group", use_threads=False).aggregate([([], "count_all")])
    first, last = {}, {}
    at = 0
    for row in counts.to_pylist():
        number, size = row["group"], row["count_all"]
        first[number] = _row(ordered, names, at)
        last[number] = _row(ordered, names, at + size - 1)
        at += size
    return first, last


def _row(table: pa.Table, names: tuple[str, ...], at: int) -> dict[str, Any]:
    return {name: table[name][at].as_py() for name in names}


def _members(events: pa.RecordBatch) -> pa.RecordBatch:
    """Members of ``extra``; NULL if missing, or of another type."""
    if is_installed():
        rows = cdcfmt_kernel.variant_members(events, "extra", _INTEGERS, _TEXTS)
        return pa.record_batch(rows)
    extra = [
        {} if pair is None else decode_variant(pair["value"], pair["metadata"])
        for pair in events.column("extra").to_pylist()
    ]
    columns = [(name, pa.int64()) for name in _INTEGERS]
    columns += [(name, pa.string()) for name in _TEXTS]
    return pa.record_batch(
        {
            name: pa.array([_as(type_, row.get(name)) for row in extra], type_)
            for name, type_ in columns
        }
    )


def _as(type_: pa.DataType, value: Any) -> Any:
    return value if type(value) is (str if type_ == pa.string() else int) else None
