"""A type map with readers, in every format: it reads the source's text, and nothing else does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import UTC

import pytest
from support.framed_data import framed_decoder, framed_messages
from support.golden_data import CODECS, load_variant, open_decoder, reading_options

from cdcfmt_core import TypeMap, hookimpl
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import Array, Binary, LogicalType, Text, Timestamp
from cdcfmt_mysql import text_parser
from cdcfmt_mysql.temporal import parse_datetime
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

USED: Counter[str] = Counter()
"""The logical types of texts that readers of the type map have read."""


def resolve(text: str) -> LogicalType:
    return default_registry().get_type_map("mysql")(text)


def open_reader(text: str) -> Callable[[str], object] | None:
    logical = resolve(text)
    if isinstance(logical, Binary):
        return None
    read: Callable[[str], object] = text_parser(logical, time_zone=UTC, counts=Counter())
    if isinstance(logical, Timestamp):
        read = parse_datetime

    def counted(value: str) -> object:
        USED[type(logical).__name__] += 1
        return read(value)

    return counted


class Dialects:
    """``observed``: MySQL's types and values; ``bare``: dates are arrays, without readers."""

    @hookimpl
    def cdcfmt_register_type_maps(self) -> list[TypeMap]:
        bare = TypeMap("bare", lambda text: Array(Text()) if text == "date" else resolve(text))
        return [TypeMap("observed", resolve, open_reader=open_reader), bare]


@pytest.fixture(autouse=True)
def _registered() -> None:
    default_registry().register(Dialects(), "observed")
    USED.clear()


def golden(wire: str, type_map: str | None = None) -> tuple[list[Message], dict[str, str]]:
    variant = load_variant(wire, "default")
    options = reading_options(variant)
    options |= {} if type_map is None else {"typeMap": type_map}
    return [each.message for each in variant.messages], options


def rows(messages: list[Message], options: dict[str, str]) -> list[str]:
    decoder = open_decoder(**options)
    events = [event for message in messages for event in decoder.decode(message)]
    return [
        repr([image and image.values for image in (event.before, event.after)])
        if isinstance(event, RowChange)
        else repr(event)
        for event in events
    ]


CLOCKS = {"Date", "DateTime", "Timestamp", "Time"}
OTHERS = {"Text", "Json", "Vector", "Decimal"}
TEXTS = {*CLOCKS, *OTHERS, "Enum", "Set", "Year", "Int", "Float", "Bit"}
READ: dict[str, set[str]] = {
    "canal-json": TEXTS,
    # Connect's values, not those of the database.
    "debezium": set(),
    "open": TEXTS,
    "simple-avro": {*CLOCKS, *OTHERS},
    "simple-json": TEXTS,
}


@pytest.mark.parametrize("wire", sorted(CODECS))
def test_formats_read_text_by_the_type_map(wire: str) -> None:
    usual = rows(*golden(wire))
    USED.clear()
    assert rows(*golden(wire, "observed")) == usual
    assert USED.keys() == READ[wire]


def test_avro_s_strings_are_read_by_the_type_map() -> None:
    folder = "ticdc_avro/avro/include-before-value"
    messages = framed_messages(folder)
    usual, read = (
        framed_decoder("ticdc-avro", folder, **options).decode
        for options in ({}, {"type_map": "observed"})
    )
    for message in messages:
        assert [repr(each) for each in read(message)] == [repr(each) for each in usual(message)]
    assert USED.keys() == {*CLOCKS, *OTHERS} - {"Decimal"}


@pytest.mark.kernel
@pytest.mark.parametrize("wire", sorted(CODECS))
def test_the_kernel_leaves_such_columns_to_the_type_map(wire: str) -> None:
    messages, given = golden(wire, "observed")
    read = parsed(given)
    result = check_equal(messages, events_schema(read), read)
    assert result.by_kernel + result.by_reference == len(messages)
    assert bool(USED) == bool(READ[wire])
    refusals = [each.text for each in result.refusals if "(other or dialect-text)" in each.text]
    assert refusals or not READ[wire]
    changes = parsed({**given, "table": "golden.all_types", "incompleteRows": "emit"})
    schema = inferred_schema(messages, changes)
    assert schema is not None
    check_equal(messages, schema, changes)


@pytest.mark.parametrize("wire", sorted(set(CODECS) - {"debezium"}))
def test_text_without_the_reader_of_its_type_is_an_error(wire: str) -> None:
    messages, options = golden(wire, "bare")
    decoder = open_decoder(**options)
    events = [event for message in messages for event in decoder.decode(message)]
    images = [
        image
        for event in events
        if isinstance(event, RowChange)
        for image in (event.before, event.after)
        if image is not None
    ]
    assert {image.values.get("c_date") for image in images} == {None}
    problem = (
        r"\w+(\.v)?: there is no reader of type map 'bare' for 'date', and MySQL's text has no"
    )
    errors = [str(event.error) for event in events if isinstance(event, Corrupt)]
    assert errors
    assert all(re.search(problem, error) for error in errors)
