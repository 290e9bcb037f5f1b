"""An update that changes the key is a delete and an insert; the order of changes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cdcfmt_core.events import Column, Image, Message, Op, RowChange, TableSchema, split_key_update
from cdcfmt_core.types import Int
from cdcfmt_toolkit.row_changes import change_position

TABLE = TableSchema("shop", "orders", (Column("id", "int", Int(32), key=True),), ("id",))


def change(
    before: dict[str, Any] | None, after: dict[str, Any] | None, op: Op = "update"
) -> RowChange:
    return RowChange(
        op=op,
        table=TABLE,
        before=None if before is None else Image(before),
        after=None if after is None else Image(after),
        commit_ts=7,
        source_time=8,
        emit_time=9,
        index=3,
        extra={"gtid": "g"},
        sequence_commit=5,
    )


def test_a_changed_key_splits_in_the_order_of_ticdc() -> None:
    event = change({"id": 1, "a": "x"}, {"id": 2, "a": "x"})
    delete, insert = split_key_update(event, ["id"])
    assert (delete.op, insert.op) == ("delete", "insert")
    assert (delete.before, delete.after) == (event.before, None)
    assert (insert.before, insert.after) == (None, event.after)
    for part in (delete, insert):
        assert part.table is TABLE
        assert (part.commit_ts, part.source_time, part.emit_time) == (7, 8, 9)
        assert (part.index, part.extra, part.sequence_commit) == (3, {"gtid": "g"}, 5)
    # The event itself is left as it was.
    assert event.op == "update"


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({"id": 1, "a": "x"}, {"id": 1, "a": "y"}, ["id"]),
        ({"id": None}, {"id": None}, ["id"]),
        ({"id": Decimal("1.0")}, {"id": Decimal("1.00")}, ["id"]),
        # No key, or a key column missing in one image.
        ({"id": 1}, {"id": 2}, []),
        ({"a": 1}, {"id": 2, "a": 2}, ["id"]),
        ({"id": 1, "a": 1}, {"a": 2}, ["id"]),
    ],
)
def test_updates_with_unchanged_or_unknown_key_are_not_split(
    before: dict[str, Any], after: dict[str, Any], keys: list[str]
) -> None:
    event = change(before, after)
    (alone,) = split_key_update(event, keys)
    assert alone is event


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"id": 1, "b": 1}, {"id": 1, "b": 2}),
        ({"id": 1, "b": None}, {"id": 1, "b": 0}),
        ({"b": 1}, {"id": 1, "b": 2}),
    ],
)
def test_any_column_of_the_key_splits(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert [part.op for part in split_key_update(change(before, after), ["id", "b"])] == [
        "delete",
        "insert",
    ]


@pytest.mark.parametrize("op", ["insert", "delete", "upsert", "read", "truncate"])
def test_only_updates_split(op: Op) -> None:
    event = change({"id": 1}, {"id": 2}, op)
    assert split_key_update(event, ["id"]) == [event]


def test_an_update_with_one_image_stays_whole() -> None:
    for event in (change(None, {"id": 2}), change({"id": 1}, None)):
        assert split_key_update(event, ["id"]) == [event]


MESSAGE = Message(None, b"", topic="t", partition=3, offset=9, epoch=2)


def sequence(op: Op = "update", commit_ts: int | None = None, **extra: Any) -> dict[str, Any]:
    event = RowChange(
        op, TABLE, None, Image({"id": 1}), commit_ts=commit_ts, source_time=8, extra=extra
    )
    cells: dict[str, Any] = change_position(MESSAGE, event, "insert", ["id"])["sequence"]
    return cells


def test_a_commit_ts_orders_changes_of_any_topic() -> None:
    """A change that is sent again, to any partition, keeps its position."""
    assert [*sequence(commit_ts=7, file="a", pos=1).values()] == [0, 7, 1, 0, 0, 0, 1, *[None] * 4]


def test_changes_without_commit_ts_use_their_position() -> None:
    assert [*sequence().values()] == [2, 0, 0, 3, 9, 0, 1, 8, None, None, None]


@pytest.mark.parametrize(
    ("extra", "position"),
    [
        ({"file": "binlog.000002", "pos": 10, "server_id": 5}, (5, "binlog.000002", 10)),
        # A snapshot has no server.
        ({"file": "binlog.000002", "pos": 10}, (0, "binlog.000002", 10)),
        ({"file": "binlog.000002", "pos": 1 << 63}, (None, None, None)),
        ({"file": "", "pos": 10}, (None, None, None)),
        ({"lsn": 24023128}, (None, "", 24023128)),
        (
            {"commit_lsn": "00000027:00000758:0005", "change_lsn": "1"},
            (None, "00000027:00000758:0005/1", 0),
        ),
        (
            {"commit_lsn": "27:5", "change_lsn": "27:3", "event_serial_no": 2},
            (None, "27:5/27:3", 2),
        ),
        ({"scn": "900", "commit_scn": "1000"}, (None, "1000", 900)),
        ({"scn": "900"}, (None, "900", 900)),
        ({"commit_scn": "1000"}, (None, "1000", 1000)),
        ({"scn": "9" * 19}, (None, None, None)),
        ({"scn": "no number"}, (None, None, None)),
        ({}, (None, None, None)),
    ],
)
def test_positions_in_the_logs_of_sources(
    extra: dict[str, Any], position: tuple[int | None, str | None, int | None]
) -> None:
    found = sequence(**extra)
    assert (found["server"], found["file"], found["pos"]) == position


@pytest.mark.parametrize(
    ("extra", "file", "pos"),
    [
        ({"lsn": 24023128}, "", 24023128),
        # All changes of the commit are in the snapshot.
        ({"commit_lsn": "27:5"}, "27:5/~", 0),
        ({"scn": "900"}, "900", 900),
    ],
)
def test_rows_of_a_snapshot_have_server_0(extra: dict[str, Any], file: str, pos: int) -> None:
    found = sequence("read", **extra)
    assert (found["server"], found["file"], found["pos"]) == (0, file, pos)
