"""An update that changes the key is a delete and an insert."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from cdcfmt_core.events import Column, Image, Op, RowChange, TableSchema
from cdcfmt_core.toolkit.row_changes import split_key_update
from cdcfmt_core.types import Int

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
        # No key, or none that both images have.
        ({"id": 1}, {"id": 2}, []),
        ({"a": 1}, {"id": 2, "a": 2}, ["id"]),
        ({"id": 1, "a": 1}, {"a": 2}, ["id"]),
    ],
)
def test_what_stays_whole(before: dict[str, Any], after: dict[str, Any], keys: list[str]) -> None:
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
