"""Images straight from their variants are what the way through decoded variants gives."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from golden_data import load_variant, native_messages
from hypothesis import example, given
from hypothesis import strategies as st

from cdcfmt_core import default_registry
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Message
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.read.decoding import open_decoder
from pyspark_cdcfmt.read.schemas import find_schemas
from pyspark_cdcfmt.rows.event_rows import EventRows
from pyspark_cdcfmt.rows.event_values import Misfit
from pyspark_cdcfmt.rows.input_tables import InputTable, InputTables, Pair
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.rows.rows_to_events import EventInput
from pyspark_cdcfmt.rows.variant import encode_variant
from pyspark_cdcfmt.rows.variant_reader import decode_variant

CASES = [
    ("canal-json", "tidb-extension"),
    ("canal-json", "handle-key-only"),
    ("open", "default"),
    ("debezium", "disable-schema"),
    "canal/canal_flat",
    "dts/dts",
]
TYPES = (
    "tinyint", "smallint unsigned", "int", "int unsigned", "bigint", "bigint unsigned", "year",
    "bit(64)", "float", "double", "decimal(10,2)", "decimal(65,30)", "char(3)", "text",
    "varbinary(9)", "date", "datetime(6)", "timestamp", "time(3)", "enum('a','b')",
    "set('a','b')", "json", "geometry", "nobody knows",
)  # fmt: skip
KEY = ("shop", None, "orders")


def _messages(case: tuple[str, str] | str) -> list[Message]:
    if isinstance(case, str):
        return list(native_messages(case))
    return [golden.message for golden in load_variant(*case).messages]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_golden_images(case: tuple[str, str] | str, monkeypatch: pytest.MonkeyPatch) -> None:
    messages = _messages(case)
    options = parse_options({"sourcetimezone": "Asia/Shanghai", "includecolumns": "true"})
    schema = events_schema(options)
    rows = EventRows(schema, options, ValuePolicy("text", "replace"))
    decoder = open_decoder(
        options, options.event_filter(), schemas=find_schemas(options, lambda _: messages)
    )
    builder = BatchBuilder(schema)
    batches = []
    for message in messages:
        for event in decoder.decode(message):
            batches += builder.add(list(rows.rows(message, event, decoder.protocol)), 0)
    batches += builder.flush()
    read = InputTable.read
    answers = []

    def compared(table: InputTable, pair: Pair) -> Any:
        answer = read(table, pair)
        answers.append(answer is not None)
        if answer is not None:
            cells = decode_variant(*pair)
            assert answer == table.image(cells, "after")
            assert list(answer.values) == list(cells)
        return answer

    monkeypatch.setattr(InputTable, "read", compared)
    tables = InputTables(default_registry(), type_map=None, by_values=False)
    assert list(EventInput(schema, tables).events(batches))
    # The first row of a table has to make its schema.
    assert sum(answers) > len(answers) // 2


def _table() -> InputTable:
    tables = InputTables(default_registry(), type_map=None, by_values=False)
    nothing = (None,) * len(TYPES)
    columns = tuple(f"c{number:02}" for number in range(len(TYPES))), TYPES, nothing, nothing
    tables.schema(KEY, (), columns, None)
    (identity,) = tables._tables
    table = tables._tables.get(identity)
    assert table is not None
    return table


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**65),
    st.sampled_from([-129, -128, 127, 128, 255, 256, 65535, 65536, 2**31, 2**32, 2**63, 2**64 - 1]),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3, max_value=10**20),
    st.text(max_size=80),
    st.sampled_from(["0000-00-00", "-838:59:59", "12.5", "1e9", '{"a": 1e100}', "a,b"]),
    st.binary(max_size=80),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=3),
)


@given(
    st.dictionaries(st.sampled_from([f"c{number:02}" for number in range(len(TYPES))]), VALUES),
    st.integers(0, 3),
)
@example({"c05": 2**64 - 1, "c10": Decimal("1.50"), "c12": "é", "c15": date(1, 1, 1)}, 0)
@example({"c16": datetime(9999, 12, 31, 23, 59, 59, 999_999), "c01": 65_536}, 0)
@example({"unknown": 1}, 0)
@example({}, 0)
def test_any_image(values: dict[str, Any], cut: int) -> None:
    """What the fast way answers, so does the other one; it may give up."""
    table = _table()
    value, metadata = encode_variant(values)
    pair = value[: len(value) - cut], metadata
    try:
        expected = table.image(decode_variant(*pair), "after")
    except (Misfit, EncodeError):
        assert table.read(pair) is None
        return
    answer = table.read(pair)
    assert answer is None or repr(answer) == repr(expected)
