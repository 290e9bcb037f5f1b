"""What holds for every format that writes."""

from __future__ import annotations

from typing import Any

import pytest
from golden_data import open_decoder
from golden_encoding import open_encoder

from cdcfmt_core import default_registry
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import (
    Column,
    Image,
    Message,
    RowChange,
    SchemaChange,
    TableSchema,
    Watermark,
)
from cdcfmt_core.types import Bool, Int, LogicalType, Text, Unknown

OPTIONS: dict[str, dict[str, Any]] = {
    "canal-json": {"enableTidbExtension": True},
    "cloudcanal-json": {},
    "debezium": {"enableTidbExtension": True},
    "dts-avro": {},
    "open-protocol": {"maxBatchSize": 1},
    "simple": {},
}
EVERY = pytest.mark.parametrize("protocol", sorted(OPTIONS))


def table(logical: LogicalType, source_type: str = "") -> TableSchema:
    columns = (Column("id", "int", Int(32), key=True), Column("c", source_type, logical))
    return TableSchema("shop", "t", columns, ("id",))


def row(op: Any, schema: TableSchema, before: Any, after: Any) -> RowChange:
    images = [None if values is None else Image(values) for values in (before, after)]
    return RowChange(op, schema, *images, commit_ts=7 << 18, source_time=7_000_000)


def write(protocol: str, events: list[Any], **more: Any) -> list[Message]:
    encoder = open_encoder(protocol, **OPTIONS[protocol] | more)
    messages = [message for event in events for message in encoder.encode(event)]
    return messages + encoder.flush()


def read_rows(protocol: str, messages: list[Message]) -> list[RowChange]:
    decoder = open_decoder(protocol=protocol)
    events = [event for message in messages for event in decoder.decode(message)]
    return [event for event in events if isinstance(event, RowChange)]


def test_no_format_is_left_out() -> None:
    codecs = default_registry().codecs().items()
    assert set(OPTIONS) == {name for name, spec in codecs if spec.open_encoder}


@EVERY
def test_booleans_are_numbers_of_mysql(protocol: str) -> None:
    schema = table(Bool(), "boolean")
    values = [{"id": number, "c": value} for number, value in enumerate((True, False, None))]
    back = read_rows(protocol, write(protocol, [row("insert", schema, None, v) for v in values]))
    assert [event.after and event.after.values for event in back] == values
    with pytest.raises(EncodeError, match="column c"):
        write(protocol, [row("insert", schema, None, {"id": 1, "c": "1"})])


@EVERY
def test_a_column_of_unknown_type_is_an_error(protocol: str) -> None:
    event = row("insert", table(Unknown("money"), "money"), None, {"id": 1, "c": "5"})
    with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c.*not known"):
        write(protocol, [event])


@EVERY
@pytest.mark.parametrize("value", [5, b"x", 1.5, [1]])
def test_a_value_of_another_type_is_an_error(protocol: str, value: Any) -> None:
    """Also from a plan that has been compiled."""
    schema = table(Text(), "varchar(9)")
    events = [row("insert", schema, None, {"id": n, "c": "x"}) for n in range(40)]
    bad = row("insert", schema, None, {"id": 1, "c": value})
    for before in ([], events):
        with pytest.raises(EncodeError, match=rf"{protocol} table shop\.t, column c"):
            write(protocol, [*before, bad])


@EVERY
def test_an_update_is_one_message_and_rows_of_one_key_share_a_partition(protocol: str) -> None:
    schema = table(Text(), "varchar(9)")
    partitions = set()
    for number in range(20):
        old, new = {"id": number, "c": "a"}, {"id": number, "c": None}
        changes = [
            row("insert", schema, None, old),
            row("update", schema, old, new),
            row("delete", schema, new, None),
        ]
        messages = write(protocol, changes, partitions=4)
        back = read_rows(protocol, messages)
        assert [event.op for event in back] == ["insert", "update", "delete"]
        assert (back[1].before and back[1].before.values) == old
        (partition,) = {message.partition for message in messages}
        partitions.add(partition)
    assert partitions == {0, 1, 2, 3}


@EVERY
def test_ddl_and_watermarks_reach_every_partition(protocol: str) -> None:
    ddl = SchemaChange(
        "create table t (id int)", "CREATE", "shop", "t", commit_ts=7 << 18, source_time=7_000_000
    )
    messages = write(protocol, [ddl], partitions=3)
    first_alone = protocol == "canal-json"
    assert [message.partition for message in messages] == ([0] if first_alone else [0, 1, 2])
    if "watermark" in (default_registry().get_codec(protocol).emits):
        messages = write(protocol, [Watermark(8 << 18, emit_time=1_000)], partitions=3)
        assert [message.partition for message in messages] == [0, 1, 2]
    else:
        with pytest.raises(EncodeError, match="no watermark"):
            write(protocol, [Watermark(8 << 18)])
