"""Blocks of all golden messages yield the events of the messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest
from support.golden_data import (
    CODECS,
    load_variant,
    native_messages,
    reading_options,
    variant_names,
)
from support.turns import in_turn

from cdcfmt_core.events import Message
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_toolkit.schema_directory import SchemaDirectory
from pyspark_cdcfmt.blocks.dataframes import read_events
from pyspark_cdcfmt.blocks.packing import blocks_of_messages
from pyspark_cdcfmt.options import ReadOptions, parse_options
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema

pytestmark = pytest.mark.slow

NATIVE = {
    "canal/canal_flat": {"protocol": "canal-json", "sourceTimeZone": "UTC"},
    "debezium/schema_default": {"protocol": "debezium", "sourceTimeZone": "UTC"},
    "debezium/noschema_strings": {"protocol": "debezium"},
    "debezium/noschema_default": {
        "protocol": "debezium",
        "timePrecisionMode": "adaptive_time_microseconds",
    },
    "dts/dts": {"protocol": "dts-avro"},
}
LEARN = ("simple", "debezium")
"""Formats whose rows take types from other messages, at least in part."""
VARIANTS = [
    ("canal-json", "tidb-extension"),
    ("open", "batched"),
    *in_turn(
        ((of, name) for of in CODECS if CODECS[of] in LEARN for name in variant_names(of)), of=3
    ),
]


@attrs.frozen
class Stream:
    """Runs over the same messages, one after the other, with the schemas of all before."""

    messages: Sequence[Message]
    options: ReadOptions
    folder: Path

    def engine(self, name: str) -> Engine:
        store = SchemaStore(persistence=SchemaDirectory(str(self.folder / name)))
        return Engine(ReadTask(events_schema(self.options), self.options, schemas=store))

    def events(self) -> Counter[str]:
        return shown(self.engine("events").batches(iter(self.messages)))

    def blocks(self) -> list[dict[str, pa.Scalar]]:
        packed = blocks_of_messages(self.engine("blocks"), iter(self.messages))
        return [
            {name: batch.column(name)[row] for name in batch.schema.names}
            for batch in packed
            for row in range(batch.num_rows)
        ]


def shown(batches: Any) -> Counter[str]:
    return Counter(repr(row) for batch in batches for row in batch.to_pylist())


def check(messages: Sequence[Message], options: dict[str, str], folder: Path) -> None:
    given = {name.lower(): value for name, value in options.items()} | {"includecolumns": "true"}
    parsed = parse_options(given, of_dataframe=True).in_stream()
    located = [
        attrs.evolve(message, topic="t", partition=1, offset=offset, timestamp=1_700_000_000_123)
        for offset, message in enumerate(messages)
    ]
    stream = Stream(located, parsed, folder)
    for run in (1, 2):
        blocks = stream.blocks()
        read = read_events(blocks, events_schema(parsed), parsed)
        assert shown(batch for events in read for batch in events) == stream.events()
        forms = {block["form"].as_py() for block in blocks if block["kind"].as_py() == "row"}
        assert "messages" in forms
        assert len(forms) == 1 or (run == 1 and options["protocol"] in LEARN)


@pytest.mark.parametrize(("protocol", "name"), VARIANTS)
def test_messages_of_ticdc(tmp_path: Path, protocol: str, name: str) -> None:
    variant = load_variant(protocol, name)
    check([each.message for each in variant.messages], dict(reading_options(variant)), tmp_path)


@pytest.mark.parametrize("path", in_turn(NATIVE, of=2))
def test_messages_of_native_producers(tmp_path: Path, path: str) -> None:
    check([*native_messages(path)], NATIVE[path], tmp_path)
