"""A third party's layout, with combinations of encodings and types that no format here has."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from cdcfmt_core import CodecSpec, Decode, DecoderContext, default_registry, hookimpl
from cdcfmt_core import types as logical
from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_testing import Case, Subject
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import read_image
from cdcfmt_toolkit.layout import Layout, Members
from cdcfmt_toolkit.value_readers import value_reader
from cdcfmt_toolkit.wire_json import loads_exact
from pyspark_cdcfmt import testing
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, parsed

pytestmark = pytest.mark.kernel

WAYS: list[tuple[Encoding, logical.LogicalType, list[Any]]] = [
    (Encoding("json-number"), logical.Decimal(10, 2), [0, 5, 1.5, 10**9]),
    (Encoding("json-number"), logical.Decimal(65, 30), [1, 1.5]),
    (Encoding("connect-decimal"), logical.Decimal(10, 2), ["AP8=", "AA=="]),
    (Encoding("connect-decimal"), logical.Int(32), ["AP8=", "AP////8="]),
    (
        Encoding("variable-scale-decimal"),
        logical.Decimal(),
        [{"scale": scale, "value": "AP8="} for scale in (0, 2, 38, 39, 300, -1)]
        + [{"scale": 30, "value": base64.b64encode(b"\x7f" * 20).decode()}, {"scale": 1}, "1", 1],
    ),
    (Encoding("json-value"), logical.Float(64), [1, 2**53 + 1, 1.5]),
    (Encoding("json-value"), logical.Json(), ["0", "{}", [1], {"a": 1.50}]),
    (Encoding("json-value"), logical.Enum(("a", "b")), ["a", 1]),
    (Encoding("charset-text", charset="latin_1"), logical.Json(), ["0", '{"a": 1}', ""]),
    (Encoding("base64-text"), logical.Json(), ["MA==", ""]),
    (Encoding("little-endian-bits"), logical.Int(8), [1, 128, "AQ=="]),
    (Encoding("big-endian-bits"), logical.Int(8), [1, 128, "AQ=="]),
]


@pytest.fixture(autouse=True)
def fresh_registry() -> Iterator[None]:
    """What is registered here is forgotten behind it."""
    default_registry.cache_clear()
    yield
    default_registry.cache_clear()


def register(encoding: Encoding, type_: logical.LogicalType, schema: str | None = None) -> None:
    """A format whose messages have one column; with ``schema``, names have three parts."""
    table = TableSchema("d", "t", (Column("c", "", type_),), (), schema)

    def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
        zone, counts = context.time_zone, context.counts
        readers = {"c": value_reader(encoding, type_, time_zone=zone, counts=counts)}

        def decode(message: Message) -> list[RowChange]:
            wire = loads_exact(message.value or b"")
            image = Image(read_image(wire["row"], readers, "row"))
            return [RowChange("insert", table, None, image, source_time=wire["ts"] * 1000)]

        return decode

    members: Members = {"table": "table", "op": "op", "ts": "source_time", "row": "after"}
    layout = Layout(
        members={**members, "database": "database", "schema": "schema"},
        ops={"I": "insert"},
        encodings=lambda value, table: {"c": encoding},
        extra=lambda envelope: {},
    )
    spec = CodecSpec(
        name="others",
        summary="",
        spec_url="",
        open_decoder=open_decoder,
        sniff=lambda message: 0.0,
        emits=frozenset({"row"}),
        open_layouts=lambda options: [layout],
        type_map="mysql",
        api_version=1,
    )
    plugin = ModuleType("others")
    vars(plugin)["cdcfmt_register_codecs"] = hookimpl(lambda: [spec])
    assert default_registry().register(plugin, "others").error is None


def wires_of(values: list[Any], **more: str) -> list[Message]:
    wires = [
        {"database": "d", "table": "t", "op": "I", "ts": 1, **more, "row": {"c": value}}
        for value in values
    ]
    return [Message(None, json.dumps(wire).encode(), offset=at) for at, wire in enumerate(wires)]


@pytest.mark.parametrize(("encoding", "type_", "values"), WAYS)
def test_kernel_equals_the_reader_or_refuses(
    encoding: Encoding, type_: logical.LogicalType, values: list[Any]
) -> None:
    register(encoding, type_)
    messages = wires_of([None, *values])
    for form in ("variant", "json"):
        options = parsed({"protocol": "others", "imageFormat": form})
        check_equal(messages, events_schema(options), options, inferred=False)


def test_the_kit_compares_tables_with_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    # This decoder checks nothing, so it reads damaged messages differently.
    monkeypatch.setattr(testing, "damaged_messages", list)
    register(Encoding("json-number"), logical.Int(32), "public")
    case = Case("rows", tuple(wires_of([1, 2, 3], schema="public")))
    testing.check_kernel(Subject(default_registry().get_codec("others"), [case]))
