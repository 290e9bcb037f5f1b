"""Writing CloudCanal Json: the vendor's examples, and rejected events."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from cloudcanal_messages import DDL_EXAMPLE, DML

from cdcfmt_core import opening
from cdcfmt_core.errors import EncodeError, OptionError, UnsupportedEventError
from cdcfmt_core.events import (
    Column,
    Event,
    Image,
    Message,
    RowChange,
    TableSchema,
    Transaction,
    Watermark,
)
from cdcfmt_core.types import Enum, Int, Set, Text, Unknown

FIELDS = [
    *("action", "before", "bid", "data", "db", "dbValType", "isDdl", "entryType", "execTs"),
    *("jdbcType", "pks", "schema", "sendTs", "sql", "table"),
]
"""In the order of the document's examples."""

COLUMNS = (Column("id", "int", Int(32), key=True), Column("name", "varchar(20)", Text()))
ORDERS = TableSchema("shop", "orders", COLUMNS, key_columns=("id",))


def decode(wire: dict[str, Any]) -> list[Event]:
    decoder = opening.open_decoder("cloudcanal-json", {})
    return decoder.decode(Message(None, json.dumps(wire).encode()))


def encode(event: Event, **options: Any) -> dict[str, Any]:
    (message,) = opening.open_encoder("cloudcanal-json", options).encode(event)
    assert message.key is None
    wire: dict[str, Any] = json.loads(message.value or b"")
    return wire


@pytest.mark.parametrize(
    "example",
    [
        DML | {"action": "INSERT", "before": []},
        DML | {"action": "UPDATE"},
        DML | {"action": "DELETE", "before": []},
        DML | {"action": "UPDATE", "pks": ["col_pk"], "bid": 7, "schema": "other"},
        DDL_EXAMPLE,
    ],
)
def test_the_documents_examples(example: dict[str, Any]) -> None:
    (event,) = decode(example)
    wire = encode(event)
    assert wire == example
    assert list(wire) == FIELDS + (["tableChanges"] if "tableChanges" in example else [])


def insert(schema: TableSchema = ORDERS, **more: Any) -> RowChange:
    values: dict[str, Any] = more.pop("values", {"id": 1, "name": "a"})
    return RowChange("insert", schema, None, Image(values), source_time=5_000, **more)


def test_members_are_written_as_numbers() -> None:
    """A member may be named 0, like the empty bitmap; names would be ambiguous."""
    columns = (Column("e", "enum('1','0')", Enum(("1", "0"))), Column("s", "set('0')", Set(("0",))))
    event = insert(TableSchema("shop", "t", columns), values={"e": "0", "s": "0"})
    wire = encode(event)
    assert wire["data"] == [{"e": "2", "s": "1"}]
    (again,) = decode(wire)
    assert isinstance(again, RowChange)
    assert again.after == event.after


def test_execution_time_defaults_to_the_commit_ts() -> None:
    event = attrs.evolve(insert(), source_time=None, commit_ts=9 << 18)
    assert encode(event)["execTs"] == 9
    with pytest.raises(EncodeError, match="no source_time and no commit_ts"):
        encode(attrs.evolve(event, commit_ts=None))


def test_inexpressible_events_are_rejected() -> None:
    row = insert()
    with pytest.raises(UnsupportedEventError, match="incomplete"):
        encode(attrs.evolve(row, after=Image({"id": 1}, complete=False)))
    handle = Image({"id": 1}, complete=False)
    with pytest.raises(UnsupportedEventError, match="incomplete"):
        encode(attrs.evolve(row, op="delete", before=handle, after=None))
    cut = Image({"id": 1, "name": "a"}, complete=False)
    with pytest.raises(UnsupportedEventError, match="before image is incomplete"):
        encode(attrs.evolve(row, op="update", before=cut))
    with pytest.raises(UnsupportedEventError, match="no watermark events"):
        encode(Watermark(1))
    with pytest.raises(UnsupportedEventError, match="no rollback"):
        encode(Transaction("rollback", source_time=1))
    unknown = TableSchema("shop", "t", (Column("c", "money", Unknown("money")),))
    with pytest.raises(EncodeError, match="is not known"):
        encode(insert(unknown, values={"c": "1"}))
    with pytest.raises(EncodeError, match="raise maxMessageBytes"):
        encode(row, maxMessageBytes="100")
    with pytest.raises(OptionError, match="leave them at none"):
        encode(row, largeMessageHandleOption="handle-key-only")


def test_partial_before_image_of_an_update_stays_partial() -> None:
    before = Image({"id": 1}, complete=False)
    (event,) = decode(encode(attrs.evolve(insert(), op="update", before=before)))
    assert isinstance(event, RowChange)
    assert event.before == before


def test_invalid_utf8_is_replaced_and_counted_or_fails() -> None:
    row = insert(values={"id": 1, "name": "a\udcff"})
    assert encode(row)["data"] == [{"id": "1", "name": "a\ufffd"}]
    with pytest.raises(EncodeError, match="not UTF-8"):
        encode(row, invalidText="fail")
