"""Findings of mutants about the compiled kernel, each in its smallest form."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import attrs
import pytest
from kernel.test_canal_json import USUAL, check_events, update
from kernel.test_debezium import message as of_debezium
from kernel.test_debezium import payload
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)
from support.golden_data import load_variant, native_messages, reading_options

from cdcfmt_core.events import Message
from pyspark_cdcfmt.rows.row_schemas import events_schema, metadata_fields
from pyspark_cdcfmt.rows.variant import decode_variant
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]


def test_layouts_of_one_format_take_turns(capfd: pytest.CaptureFixture[str]) -> None:
    """A plan of one layout is no guess for another one, whose schema key has other parts."""
    types = {"a": "varchar(20)"}
    first = [update(at, types, {"a": USUAL["varchar(20)"]}, {"a": "1"}) for at in range(0, 20, 2)]
    other = []
    for message in first:
        wire = json.loads(message.value or b"")
        value = json.dumps({"data": wire.pop("data"), **wire}, separators=(",", ":")).encode()
        other.append(attrs.evolve(message, value=value, offset=(message.offset or 0) + 1))
    both = [message for pair in zip(first, other, strict=True) for message in pair]
    result = check_events(both, imageFormat="json")
    assert (result.by_kernel, result.by_reference) == (18, 2)
    assert "panicked" not in capfd.readouterr().err


@pytest.mark.parametrize("number", ["1e1001", "-1e-9999", "1" * 150_001])
def test_a_key_that_the_reference_cannot_read_is_counted(number: str) -> None:
    options = parsed({"protocol": "debezium", "imageFormat": "json"})
    schema = events_schema(options)
    messages = [attrs.evolve(m, topic=None) for m in native_messages("debezium/noschema_default")]
    (place,) = (
        at
        for at, message in enumerate(messages)
        if b'"table":"tmp_drop"' in (message.value or b"") and message.key == b'{"id":1}'
    )
    good = messages[place]
    before = [*messages[:place], good, good]
    odd = attrs.evolve(good, key=f'{{"id":{number}}}'.encode())
    by_good, by_odd = (check_equal([*before, m], schema, options) for m in (good, odd))
    assert by_good.by_kernel > 1
    assert by_odd.by_kernel == by_good.by_kernel - 1
    counts = by_odd.counts - by_good.counts
    assert counts["keys that are not a JSON object"] == 1


def test_tombstone_after_skipped_messages_has_their_format() -> None:
    """A tombstone under protocol=auto, behind messages that the reference never saw."""
    options = parsed({"protocol": "auto", "imageFormat": "json", "includeTables": "no.such"})
    rows = list(native_messages("debezium/noschema_default"))[-40:]
    odd, tombstone = attrs.evolve(rows[0], value=b"{}"), attrs.evolve(rows[0], value=None)
    messages = [*rows, odd, *rows, tombstone]
    result = check_equal(messages, events_schema(options), options)
    without = check_equal(messages[:-1], events_schema(options), options)
    assert result.counts - without.counts == {"tombstones": 1}


def test_bad_unread_image_is_accepted() -> None:
    """Whether the reference has read a good row of the table or not."""
    variant = load_variant("simple-json", "handle-key-only")
    messages = [message.message for message in variant.messages]
    parts = b'"table":"large_t"', b'"type":"UPDATE"', b'"handleKeyOnly":true'
    good = next(m for m in messages if all(part in (m.value or b"") for part in parts))
    value = (good.value or b"").replace(b'"old":{', b'"old":{"zz":"1",')
    odd = attrs.evolve(good, value=value)
    schemas = [m for m in messages if b"tableSchema" in (m.value or b"")]
    for images, kind in (("after", "row"), ("both", "corrupt")):
        options = parsed({**reading_options(variant), "imageFormat": "json", "images": images})
        for some in ([odd], [good, odd], [odd, good, good, odd]):
            result = check_equal([*schemas, *some], events_schema(options), options)
            assert result.rows.column("kind").to_pylist()[-1] == kind


@pytest.mark.parametrize("same", ['{"x": 1}', "1", None])
@pytest.mark.parametrize("new", [None, "1", '{"z": 3}'])
def test_json_only_in_the_before_image(same: str | None, new: str | None) -> None:
    """Members of JSON are numbers of names, which are not those of the image behind it."""
    types = {"a": "json", "b": "json"}
    old = {"a": same, "b": '{"y": {"x": 2}}'}
    messages = [update(at, types, {"a": same, "b": new}, old) for at in range(3)]
    result = check_events(messages)
    assert result.by_kernel == 2
    for row in result.rows.column("before").to_pylist():
        parsed_json = None if same is None else json.loads(same)
        assert decode_variant(**row) == {"a": parsed_json, "b": {"y": {"x": 2}}}


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("decimal(38,0)", "9" * 38, "9" * 38),
        ("decimal(38,2)", "-" + "9" * 36 + ".99", "-" + "9" * 36 + ".99"),
        ("decimal(10,2)", "0E+64", "0.00"),
        ("decimal(10,2)", "1E+5", "100000.00"),
    ],
)
def test_decimals_at_the_limits_of_their_columns(type_: str, text: str, value: str) -> None:
    """Of the kernel and of the reference, which reads members of one name."""
    read = parsed({"protocol": "canal-json", "table": "shop.orders"})
    types = {"a": type_, "b": "json"}
    odd = {"a": text, "b": '{"x": 1, "x": 2}'}
    messages = [update(at, types, {"a": "1", "b": "1"}, {"a": "2"}) for at in range(2)]
    messages += [update(2, types, {"a": text, "b": "1"}, {"a": "2"}), update(3, types, odd, {})]
    schema = inferred_schema(messages, read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    assert result.rows.column("a").to_pylist()[-3:] == [Decimal(value)] * 3


@pytest.mark.parametrize(
    ("declared", "held", "lossy"),
    [
        (FloatType(), [999999, 44843000000], 16777217),
        (DoubleType(), [16777217, 2**53], 2**53 + 1),
    ],
)
def test_untyped_integers_are_exact_as_floats_or_rejected(
    declared: DataType, held: list[int], lossy: int
) -> None:
    read = parsed({"protocol": "debezium", "table": "shop.orders"})
    numbers = [7, *held, lossy]
    messages = [
        of_debezium(at, payload("c", None, {"id": 1, "a": number}), {"id": 1})
        for at, number in enumerate(numbers)
    ]
    schema = StructType([*metadata_fields(read), StructField("a", declared)])
    result = check_equal(messages, schema, read, inferred=False)
    assert result.by_kernel
    *rows, bad = result.rows.to_pylist()
    assert f"'{lossy}' does not fit in a" in bad["_corrupt_record"]["reason"]
    assert [row["a"] for row in rows] == pytest.approx([7, *held])


def test_images_before_the_names_of_their_table() -> None:
    """The previous table's plan does not affect another table's image."""

    def of_table(offset: int, table: str, columns: str) -> Message:
        types, row = dict.fromkeys(columns, "varchar(20)"), {name: f"{name}!" for name in columns}
        wire = json.loads(update(offset, types, row, row).value or b"")
        value = json.dumps({"data": wire.pop("data"), **wire, "table": table})
        return Message(None, value.encode(), offset=offset)

    names = [("t", "ab"), ("u", "ba"), ("t", "ab"), ("u", "ba"), ("t", "ba"), ("u", "ab")]
    result = check_events(
        [of_table(at, *name) for at, name in enumerate(names)], imageFormat="json"
    )
    assert result.by_kernel == 4
    assert set(result.rows.column("after").to_pylist()) == {'{"a":"a!","b":"b!"}'}


def test_columns_are_shown_in_the_order_of_their_own_row() -> None:
    """ALTER … FIRST changes it, and no type."""
    types = {"a": "int", "b": "int"}
    messages = [update(at, types, {"a": "1", "b": "2"}, {"a": "3"}) for at in range(4)]
    messages += [update(at, types, {"b": "2", "a": "1"}, {"a": "3"}) for at in range(4, 8)]
    result = check_events(messages, includeColumns="true")
    assert (result.by_kernel, result.by_reference) == (6, 2)
    assert check_events(messages).by_kernel == 7


@pytest.mark.parametrize(
    ("type_", "declared", "values"),
    [
        ("varchar(9)", DecimalType(10, 2), {"1.5": Decimal("1.50"), "1_0": None, "\u0663": None}),
        ("vector", ArrayType(FloatType()), {"[1.5]": [1.5], "[1e39]": None}),
        ("vector", ArrayType(DoubleType()), {"[1e39]": [1e39]}),
        ("vector", ArrayType(IntegerType()), {"[1.5]": None}),
        ("vector", ArrayType(StringType()), {"[1.5]": ["1.5"]}),
    ],
)
def test_value_outside_the_declared_type_is_a_bad_row(
    type_: str, declared: DataType, values: dict[str, Any]
) -> None:
    read = parsed({"protocol": "canal-json", "table": "shop.orders", "images": "after"})
    schema = StructType([*metadata_fields(read), StructField("a", declared)])
    messages = [update(at, {"a": type_}, {"a": text}, {}) for at, text in enumerate(values)]
    rows = check_equal(messages, schema, read, inferred=False).rows.to_pylist()
    assert [row["a"] for row in rows] == list(values.values())
    assert [row["_corrupt_record"] is None for row in rows] == [
        value is not None for value in values.values()
    ]
