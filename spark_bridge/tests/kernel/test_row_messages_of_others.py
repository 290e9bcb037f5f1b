"""Row messages of third-party formats: the kernel equals the reference."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import attrs
import pytest
from support.written_rows import Rows, check_equal, event_rows, written

from cdcfmt_core import Encoder, EncoderContext, types
from cdcfmt_core.encoding import MessageEncoder
from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.registry import default_registry
from cdcfmt_testing.subject import Subject
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.large_message_output import LargeMessageOutput
from cdcfmt_toolkit.message_writer import MessageWriter, RowWriter
from cdcfmt_toolkit.row_messages import (
    ByLimit,
    ByPrecision,
    Choice,
    Columns,
    ColumnTemplate,
    ExtraValue,
    ImageTemplate,
    Part,
    Placeholder,
    RowMessage,
    RowMessages,
    Wire,
)
from cdcfmt_toolkit.row_rules import KernelRows

pytestmark = pytest.mark.kernel

COLUMNS = (
    Column("key", "int", types.Int(32)),
    Column("a<", "varchar(20)", types.Text()),
    Column("at", "datetime(6)", types.DateTime(6)),
)
TABLE = TableSchema("shop", "orders", COLUMNS, ("key",))
NUMBER = Encoding("json-number")


def _members(**more: Any) -> ImageTemplate:
    columns = {name: ColumnTemplate(f"{json.dumps(name)}:") for name in TABLE.column_names}
    return ImageTemplate("after", **({"columns": columns, "missing": None} | more))


SHARED = ColumnTemplate(b"\2")
SOME = ("key", "at")
MESSAGES: dict[str, RowMessage] = {
    "labels": RowMessage(('{"row":', _members(head="<", tail="&"), "}"), (_members(),)),
    "labels of jsoniter": RowMessage(('{"row":', _members(), "}"), wire="jsoniter"),
    "a row alone": RowMessage((_members(),)),
    "another first column": RowMessage((_members(columns={"a<": ColumnTemplate('"a<":')}),)),
    "one column twice": RowMessage(
        (_members(columns={"key": ColumnTemplate("k=")}),),
        (_members(columns={"key": ColumnTemplate("key:", NUMBER)}),),
    ),
    "one member": RowMessage(
        (_members(columns=dict.fromkeys(SOME, SHARED), head="", tail=""),), wire="avro"
    ),
    "a printer": RowMessage(
        (_members(columns={"key": ColumnTemplate("k:", printer=lambda value: value + 1)}),)
    ),
    "a mark": RowMessage((Columns({"key": (Placeholder(b"<"), "k"), "a<": ("a",)}),)),
    "absent": RowMessage((_members(absent=b"\0"),), wire="avro", only=SOME),
    "changed": RowMessage((_members(counted=True, changed=True),), wire="avro"),
    "cut down": RowMessage(
        (
            ByLimit("after", "a<", 0, "b", "a"),
            Choice("by", ((("x",), (_members(),)),), ("n",)),
            Columns({name: (name,) for name in TABLE.column_names}),
            ByLimit("after", "key", 1, "below", "above"),
            ByPrecision("at", "coarse", "fine"),
            ExtraValue("n", "integer", "none", column=("after", "key")),
        ),
        only=("a<",),
    ),
    "extra": RowMessage((ExtraValue("n", "json", "D", zero="Z"), ExtraValue("m", "json", "D"))),
}


class _Encoder(KernelRows, Encoder):
    ops = frozenset({"insert", "update"})

    def __init__(self, message: RowMessage, context: EncoderContext) -> None:
        writer = MessageWriter(message.wire, context, dumps=_dumps, table=TABLE)
        messages = RowMessages({"insert": message, "update": message})
        self._rows = RowWriter(TABLE, messages, writer)

    def row_messages(self, table: TableSchema) -> RowMessages:
        return self._rows.messages

    def encode(self, event: Any) -> list[Message]:
        return [Message(*self._rows.write(event))]


def _dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _rows() -> Rows:
    values = {"key": 1, "a<": "<\u2028", "at": datetime(2024, 2, 29)}
    images = [Image({**values, "key": number}) for number in range(3)]
    events: list[RowChange] = [
        RowChange("insert", TABLE, None, images[0], extra={"by": "x", "n": 0, "m": None}),
        RowChange("insert", TABLE, None, images[1], extra={"n": 1, "m": {"<": []}}),
        RowChange("update", TABLE, images[1], images[2]),
    ]
    for event in events:
        event.source_time = 1_700_000_000_000_000
    return event_rows([(Message(None, None), event) for event in events], "canal-json")


@pytest.mark.parametrize("line_format", ["auto", "message"])
@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_kernel_writes_the_references_bytes(
    monkeypatch: pytest.MonkeyPatch, message: RowMessage, line_format: str
) -> None:
    codec = attrs.evolve(
        default_registry().get_codec("canal-json"),
        encode_options=(),
        open_encoder=lambda _, context: _Encoder(message, context),
    )
    registry = Subject(codec, ()).registry

    def open_encoder(options: Any, partitions: Any, counts: Any = None) -> MessageEncoder:
        return MessageEncoder(options.values, {}, counts=counts, registry=registry)

    monkeypatch.setattr("pyspark_cdcfmt.write.encoding.open_encoder", open_encoder)
    given = {"protocol": "canal-json", "lineFormat": line_format, "ordered": "false"}
    lines, _ = check_equal(_rows(), **given)
    assert lines == 3
    found, _ = written(_rows(), by_kernel=True, **given)
    assert not isinstance(found[-1], str), found


def test_column_is_written_by_each_of_its_templates() -> None:
    def write(wire: Wire, *parts: Part) -> bytes:
        writer = MessageWriter(wire, EncoderContext(LargeMessageOutput()), table=TABLE)
        message = RowMessage(parts, wire=wire)
        rows = RowWriter(TABLE, RowMessages({"insert": message}), writer)
        return rows.write(RowChange("insert", TABLE, None, Image({"key": 5, "a<": "x"})))[1]

    key, value = (
        _members(columns={"key": ColumnTemplate(f'"{label}":', NUMBER)}) for label in "kv"
    )
    assert write("avro", key) != write("avro", value)
    shared = _members(columns=dict.fromkeys(("key", "a<"), SHARED), separator="", head="", tail="")
    assert write("avro", shared) == b"\2\0025\2\2x"
