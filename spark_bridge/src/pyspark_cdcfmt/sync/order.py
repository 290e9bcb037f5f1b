"""The order of a key's changes, also from several partitions (docs/order.md).

``_sequence`` compares from left to right within one partition, and by epoch and commit anywhere.
Without a commit, two changes from different partitions are compared by their positions in the
source's log, else by its time.  If neither orders them, the query fails with :data:`UNORDERED`, and
sync halts the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import DataFrame

from pyspark_cdcfmt.sync.names import text_literal
from pyspark_cdcfmt.sync.states import TableState

UNORDERED = "cdcfmt: changes without an order"
"""Marks the error of a query with changes of a key that cannot be ordered."""

ORDER = "__sync_order"
"""The column by which :func:`with_order` orders the changes of a key."""

_SECOND = 1_000_000
_OPEN = 60 * _SECOND
"""How near to a snapshot of PostgreSQL a transaction that is not in it may have ended."""
_END = "::"
_TEXT = re.compile(f"{UNORDERED}: (.*?){_END}", re.DOTALL)

_NO_ORDER = (
    "neither a commit_ts, nor a position in the source's log, nor its time orders them; resume "
    "accepts them in the order in which they arrived"
)
_MIXED = (
    "one of them has a commit_ts, and the other one has none; resume accepts them in the order in "
    "which they arrived"
)


def is_newer(one: str, other: str, state: TableState) -> str:
    """SQL condition: whether the ``_sequence`` ``one`` is later than ``other``.

    Raises :data:`UNORDERED` if that is unknown; True for a table that is resumed.
    """
    unordered, mixed = (_raise(one, other, state, why) for why in (_NO_ORDER, _MIXED))
    newer_log = (
        f"(length({one}.file) > length({other}.file) OR (length({one}.file) = "
        f"length({other}.file) AND ({one}.file > {other}.file OR ({one}.file = {other}.file AND "
        f"{one}.pos > {other}.pos))))"
    )
    # A snapshot has no server.
    servers = f"({one}.server <=> {other}.server OR {one}.server = 0 OR {other}.server = 0)"
    # Binlogs have seconds.  Rows of a snapshot have the time of the connector.
    earlier, later = (f"floor({each}.time / {_SECOND})" for each in (one, other))
    is_odd = f"({earlier} < {later} AND {other}.server IS DISTINCT FROM 0)"
    is_odd_back = f"({earlier} > {later} AND {one}.server IS DISTINCT FROM 0)"
    # PostgreSQL's file is ''.  A transaction may write before the LSN of a snapshot and end after
    # it; only the time shows whether the snapshot has its rows.
    is_at_snapshot = (
        f"({one}.file = '' AND {other}.file = '' AND "
        f"(({one}.server IS NULL AND {other}.server = 0) OR "
        f"({one}.server = 0 AND {other}.server IS NULL)))"
    )
    return (
        # A MERGE also evaluates it for rows that match none.
        f"CASE WHEN {one} IS NULL OR {other} IS NULL THEN NULL "
        f"WHEN {one}.commit > 0 AND {one}.time IS NULL AND {one}.epoch < {other}.epoch "
        f"THEN {mixed} "
        f"WHEN {one}.epoch <> {other}.epoch THEN {one}.epoch > {other}.epoch "
        f"WHEN least({one}.commit, {other}.commit) = 0 AND greatest({one}.commit, {other}.commit) "
        f"> 0 THEN {mixed} "
        f"WHEN {one}.commit <> {other}.commit OR {one}.rank <> {other}.rank "
        f"OR {one}.partition = {other}.partition THEN {one} > {other} "
        f"WHEN {is_at_snapshot} THEN CASE "
        f"WHEN {one}.server IS NULL AND {one}.pos >= {other}.pos THEN true "
        f"WHEN {other}.server IS NULL AND {other}.pos >= {one}.pos THEN false "
        f"WHEN abs({one}.time - {other}.time) > {_OPEN} THEN {one}.time > {other}.time "
        f"ELSE {unordered} END "
        f"WHEN {servers} AND ({one}.file <> {other}.file OR {one}.pos <> {other}.pos) THEN "
        f"CASE WHEN {newer_log} THEN IF({is_odd}, {unordered}, true) "
        f"ELSE IF({is_odd_back}, {unordered}, false) END "
        f"WHEN {one}.time <> {other}.time THEN {one}.time > {other}.time "
        f"ELSE {unordered} END"
    )


def with_order(
    changes: DataFrame,
    keys: Sequence[str],
    sequence: str,
    state: TableState,
    *,
    spread: bool,
    known: str = "false",
) -> DataFrame:
    """Add the column :data:`ORDER`, by which the changes of a key are in order.

    :param keys: quoted names of columns.
    :param sequence: the quoted name of the column with the ``_sequence``.
    :param spread: whether changes of a key may be from several partitions.
    :param known: whether an earlier batch has written a change; the order of these is decided.
    """
    if not spread:
        return changes.selectExpr("*", f"{sequence} AS {ORDER}")
    key = ", ".join(keys)
    same = f"OVER (PARTITION BY {key}, {sequence}.epoch, {sequence}.commit, {sequence}.rank)"
    servers = [f"{end}(nullif({sequence}.server, 0)) {same}" for end in ("min", "max")]
    changes = changes.selectExpr(
        "*",
        f"min({sequence}.partition) {same} <> max({sequence}.partition) {same} AS __sync_spread",
        f"count({sequence}.pos) {same} = count(1) {same} AND {' <=> '.join(servers)} "
        "AS __sync_logged",
    )
    by_log, by_time = "__sync_spread AND __sync_logged", "__sync_spread AND NOT __sync_logged"
    order = (
        f"struct({sequence}.epoch, {sequence}.commit, {sequence}.rank, "
        f"IF({by_log}, struct(length({sequence}.file), {sequence}.file, {sequence}.pos, "
        f"{sequence}.server IS DISTINCT FROM 0), NULL), "
        f"IF({by_time}, {sequence}.time, NULL), {sequence}.partition, {sequence}.offset, "
        f"{sequence}.index, {sequence}.part)"
    )
    changes = changes.selectExpr("*", f"{order} AS __sync_by")
    by_key = f"OVER (PARTITION BY {key} ORDER BY __sync_by)"
    changes = changes.selectExpr(
        "*",
        f"lag({sequence}) {by_key} AS __sync_before",
        f"{known} AND lag({known}) {by_key} AS __sync_decided",
    )
    # A restarted connector repeats changes: later offsets then have earlier positions.
    repeated = f"__sync_logged AND {sequence}.partition = __sync_before.partition"
    unordered = _raise(sequence, "__sync_before", state, _NO_ORDER, accepted="__sync_by")
    is_later = is_newer(sequence, "__sync_before", state)
    checked = (
        "CASE WHEN NOT __sync_spread OR __sync_before IS NULL OR __sync_decided "
        f"OR {sequence} = __sync_before THEN __sync_by "
        f"WHEN {is_later} OR ({repeated}) THEN __sync_by ELSE {unordered} END"
    )
    added = (f"__sync_{name}" for name in ("spread", "logged", "by", "before", "decided"))
    return changes.selectExpr("*", f"{checked} AS {ORDER}").drop(*added)


def unordered_text(error: Exception) -> str | None:
    """The reason to halt in an error with :data:`UNORDERED`; None in others."""
    found = _TEXT.search(str(error))
    return None if found is None else found[1]


def _raise(one: str, other: str, state: TableState, why: str, *, accepted: str = "true") -> str:
    """SQL: fails; the value ``accepted`` for a table that is resumed."""
    if state.catching_up:
        return accepted
    places = [
        text_literal(f"{UNORDERED}: two changes of a key are at "),
        *_place(other),
        text_literal(" and "),
        *_place(one),
        text_literal(f": {why}{_END}"),
    ]
    return f"raise_error(concat({', '.join(places)}))"


def _place(sequence: str) -> list[str]:
    return [
        text_literal("partition "),
        f"{sequence}.partition",
        text_literal(", offset "),
        f"coalesce({sequence}.offset, -1)",
    ]
