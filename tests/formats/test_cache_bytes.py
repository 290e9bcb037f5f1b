"""The memory of decoders and encoders for tables is bounded by bytes, in every format.

The messages come from our encoders; their content is not tested here.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

from cdcfmt_core import caches
from cdcfmt_core.caches import Cache
from cdcfmt_core.errors import MissingSchemaError
from cdcfmt_core.events import Column, Corrupt, Image, Message, RowChange, TableSchema
from cdcfmt_core.opening import open_decoder, open_encoder
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_mysql import resolve_type
from pyspark_cdcfmt.read import schemas
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import parsed

COLUMNS = 500
FORMATS = {
    "canal-json": {},
    "cloudcanal-json": {},
    "debezium": {},
    "dts-avro": {},
    "open-protocol": {},
    "simple": {},
    "simple in Avro": {"encodingFormat": "avro"},
}
CELLS: list[tuple[str, Any]] = [
    ("int", 1),
    ("varchar(20)", "x"),
    ("decimal(10,2)", Decimal("1.50")),
    ("datetime", datetime(2024, 1, 1)),
    ("bigint unsigned", 7),
]
PLAIN_NAME = b"t00000"


def row_of(columns: int, table: str = PLAIN_NAME.decode()) -> RowChange:
    cells = [(f"column_{number}", *CELLS[number % len(CELLS)]) for number in range(columns)]
    schema = TableSchema(
        "shop",
        table,
        tuple(
            Column(name, text, resolve_type(text), number > 0, number == 0)
            for number, (name, text, _) in enumerate(cells)
        ),
        ("column_0",),
    )
    image = Image({name: value for name, _, value in cells})
    return RowChange("insert", schema, None, image, commit_ts=450000000000000000)


def messages_of(variant: str, event: RowChange) -> list[Message]:
    options = {"maxMessageBytes": "100000000", **FORMATS[variant]}
    encoder = open_encoder(variant.split()[0], options)
    return encoder.encode(event) + encoder.flush()


def renamed(message: Message, number: int) -> Message:
    """The same of another table, whose name is as long."""
    name = b"t%05d" % number
    key = None if message.key is None else message.key.replace(PLAIN_NAME, name)
    return Message(key, (message.value or b"").replace(PLAIN_NAME, name))


def taken(work: Callable[[], Any]) -> tuple[int, int]:
    """The bytes held afterwards, and the estimates of all new caches."""
    gc.collect()
    # The collector looks at new objects alone.
    gc.freeze()
    tracemalloc.start()
    try:
        kept = work()
        gc.collect()
        held = tracemalloc.get_traced_memory()[0]
        caches_made = [e for e in gc.get_objects() if isinstance(e, (Cache, SchemaStore))]
    finally:
        tracemalloc.stop()
        gc.unfreeze()
    assert kept
    return held, sum(each.bytes for each in caches_made)


@pytest.mark.slow
@pytest.mark.parametrize("variant", FORMATS)
def test_memory_estimates_of_decoders_are_accurate(variant: str) -> None:
    messages = messages_of(variant, row_of(COLUMNS))
    numbers = range(1, 4)
    tables = [[renamed(message, number) for message in messages] for number in numbers]

    def work() -> Any:
        decoder = open_decoder(variant.split()[0], {})
        for some in tables:
            for message in some:
                assert not any(type(event) is Corrupt for event in decoder.decode(message))
        return decoder

    work()  # What is learned once and for all.
    held, estimate = taken(work)
    assert held / 1.5 <= estimate <= held * 4, (held, estimate)


@pytest.mark.slow
@pytest.mark.parametrize("variant", FORMATS)
def test_memory_estimates_of_encoders_are_accurate(variant: str) -> None:
    events = [row_of(COLUMNS, f"t{number}") for number in range(3)]
    options = {"maxMessageBytes": "100000000", **FORMATS[variant]}

    def work() -> Any:
        encoder = open_encoder(variant.split()[0], options)
        for event in events:
            encoder.encode(event)
            encoder.flush()
        return encoder

    work()
    held, estimate = taken(work)
    assert held / 1.5 <= estimate <= held * 4, (held, estimate)


@pytest.mark.slow
@pytest.mark.parametrize("variant", FORMATS)
def test_memory_of_tables_is_bounded(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound by bytes it was 2.7 to 140 MB here."""
    monkeypatch.setattr(caches, "MAX_CACHE_BYTES", 256 << 10)
    messages = messages_of(variant, row_of(200))

    def work() -> Any:
        decoder = open_decoder(variant.split()[0], {"maxCachedSchemaBytes": str(256 << 10)})
        for number in range(40):
            for message in messages:
                (event,) = decoder.decode(renamed(message, number))
                assert not isinstance(event, Corrupt)
        return decoder

    assert taken(work)[0] < 1_500_000


def test_tables_without_a_schema_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_NAMES_BYTES", 64 << 10)
    options = parsed({"protocol": "simple"})

    def work() -> Any:
        missing = schemas.MissingSchemas(ReadTask(events_schema(options), options))
        for number in range(3_000):
            error = MissingSchemaError("d", f"t{number}", (1,))
            assert not missing.find(error, Message(None, b""))
        return missing

    work()
    assert taken(work)[0] < 300_000
