"""A layout of somebody else's, with encodings beside types that no format here has beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from cdcfmt_core import CodecSpec, Decode, DecoderContext, default_registry, hookimpl
from cdcfmt_core import types as logical
from cdcfmt_core.events import Column, Image, Message, RowChange, TableSchema
from cdcfmt_core.layout import Layout
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.images import read_image
from cdcfmt_core.toolkit.value_readers import value_reader
from cdcfmt_core.toolkit.wire_json import loads_exact
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, parsed

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="the kernel was not built: it needs Rust"
)

WAYS: list[tuple[Encoding, logical.LogicalType, list[Any]]] = [
    (Encoding("json-number"), logical.Decimal(10, 2), [0, 5, 1.5, 10**9]),
    (Encoding("json-number"), logical.Decimal(65, 30), [1, 1.5]),
    (Encoding("connect-decimal"), logical.Decimal(10, 2), ["AP8=", "AA=="]),
    (Encoding("connect-decimal"), logical.Int(32), ["AP8=", "AP////8="]),
    (Encoding("json-value"), logical.Float(64), [1, 2**53 + 1, 1.5]),
    (Encoding("json-value"), logical.Json(), ["0", "{}", [1], {"a": 1.50}]),
    (Encoding("json-value"), logical.Enum(("a", "b")), ["a", 1]),
    (Encoding("charset-text", charset="latin_1"), logical.Json(), ["0", '{"a": 1}', ""]),
    (Encoding("base64-text"), logical.Json(), ["MA==", ""]),
    (Encoding("little-endian-bits"), logical.Int(8), [1, 128, "AQ=="]),
]


@pytest.fixture(autouse=True)
def fresh_registry() -> Iterator[None]:
    """What is registered here is forgotten behind it."""
    default_registry.cache_clear()
    yield
    default_registry.cache_clear()


@pytest.mark.parametrize(("encoding", "type_", "values"), WAYS)
def test_the_kernel_reads_what_the_reader_reads_or_nothing(
    encoding: Encoding, type_: logical.LogicalType, values: list[Any]
) -> None:
    table = TableSchema("", "t", (Column("c", "", type_),))

    def open_decoder(options: Mapping[str, Any], context: DecoderContext) -> Decode:
        zone, counts = context.time_zone, context.counts
        readers = {"c": value_reader(encoding, type_, time_zone=zone, counts=counts)}

        def decode(message: Message) -> list[RowChange]:
            wire = loads_exact(message.value or b"")
            image = Image(read_image(wire["row"], readers, "row"))
            return [RowChange("insert", table, None, image, source_time=wire["ts"] * 1000)]

        return decode

    layout = Layout(
        members={"table": "table", "op": "op", "ts": "source_time", "row": "after"},
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
    )
    plugin = ModuleType("others")
    vars(plugin)["cdcfmt_register_codecs"] = hookimpl(lambda: [spec])
    assert default_registry().register(plugin, "others").error is None
    wires = [{"table": "t", "op": "I", "ts": 1, "row": {"c": value}} for value in [None, *values]]
    messages = [
        Message(None, json.dumps(wire).encode(), offset=at) for at, wire in enumerate(wires)
    ]
    for form in ("variant", "json"):
        options = parsed({"protocol": "others", "imageFormat": form})
        check_equal(messages, events_schema(options), options, inferred=False)
