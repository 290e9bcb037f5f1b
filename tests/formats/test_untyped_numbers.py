"""Numbers of columns without a type keep all digits: events, images, declared types, CLI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    VariantType,
)
from support.cli_tools import run, run_lines
from support.examples import examples
from support.workspace import ROOT

from cdcfmt_core import open_decoder
from cdcfmt_core.events import Message, RowChange
from pyspark_cdcfmt.rows.row_schemas import events_schema, metadata_fields
from pyspark_cdcfmt.rows.variant import decode_variant
from pyspark_cdcfmt.testing import Result, check_equal, parsed, read

CASES = ROOT / "tests/golden/cases/71_untyped_numbers.jsonl"
LONG = Decimal("12345678901234567890.123456789012345678")
TRUTH = {
    "id": 1,
    "d": LONG,
    "e": Decimal("0.1234567890123456789"),
    "s": Decimal("1.10"),
    "big": 18446744073709551616,
}
RAW = {"onMissingSchema": "raw"}
FORMATS: list[tuple[str, str, dict[str, str]]] = [
    ("canal-json", "inv.t2", {}),
    ("debezium", "inv.t3", RAW),
    ("cloudcanal-json", "inv.t4", {}),
]
LINES = CASES.read_bytes().splitlines()


def messages_of(line: bytes) -> list[Message]:
    """The kernel reads a message only after the reference has decoded a similar one."""
    return [Message(None, line, offset=number) for number in range(3)]


def checked(messages: list[Message], options: Mapping[str, str], schema: StructType) -> Result:
    """The rows, equal by kernel and reference."""
    return check_equal(messages, schema, parsed(dict(options)), inferred=False)


def image_after(protocol: str, options: Mapping[str, str], line: bytes, image_format: str) -> Any:
    """The image after the last change."""
    given = {"protocol": protocol, "imageFormat": image_format, **options}
    rows = checked(messages_of(line), given, events_schema(parsed(given))).rows
    return rows["after"][-1].as_py()


def changed_row(
    protocol: str,
    table: str,
    options: Mapping[str, str],
    line: bytes,
    types: Mapping[str, DataType],
) -> dict[str, Any]:
    given = {"protocol": protocol, "table": table, **options}
    schema = StructType()
    for name, type_ in types.items():
        schema.add(name, type_)
    for field in metadata_fields(parsed(given)):
        schema.add(field)
    row: dict[str, Any] = checked(messages_of(line), given, schema).rows.to_pylist()[-1]
    return row


@pytest.mark.parametrize(("place", "case"), [*enumerate(FORMATS)])
def test_values_in_events(place: int, case: tuple[str, str, dict[str, str]]) -> None:
    protocol, _, options = case
    line = LINES[place]
    (event,) = open_decoder(protocol, **options).decode(Message(None, line))
    assert isinstance(event, RowChange)
    assert event.after is not None
    expected = {name: TRUTH[name] for name in event.after.values}
    assert {name: str(value) for name, value in event.after.values.items()} == {
        name: str(value) for name, value in expected.items()
    }
    text = image_after(protocol, options, line, "json")
    assert json.loads(text, parse_float=Decimal) == expected
    variant = image_after(protocol, options, line, "variant")
    found = decode_variant(variant["value"], variant["metadata"])
    assert {name: str(value) for name, value in found.items()} == {
        name: str(value) for name, value in expected.items()
    }


@pytest.mark.parametrize(("place", "case"), [*enumerate(FORMATS)])
def test_declared_types(place: int, case: tuple[str, str, dict[str, str]]) -> None:
    protocol, table, options = case
    columns = [name for name in TRUTH if name == "d" or place < 2]

    def row(type_: DataType) -> dict[str, Any]:
        types = {name: type_ for name in columns if name != "e" or type(type_) is not DecimalType}
        return changed_row(protocol, table, options, LINES[place], types)

    found = row(DecimalType(38, 18))
    assert found["d"] == LONG
    assert found.get("big", TRUTH["big"]) == TRUTH["big"]
    found = row(StringType())
    assert {name: found[name] for name in columns} == {name: str(TRUTH[name]) for name in columns}
    found = row(DoubleType())
    assert {name: found[name] for name in columns} == {name: float(TRUTH[name]) for name in columns}


def debezium(number: str, **members: str) -> bytes:
    columns = "".join(f',"{name}":{text}' for name, text in {"x": number, **members}.items())
    return (
        f'{{"before":{{"id":1{columns}}},"after":{{"id":1{columns}}},"op":"u","ts_ms":1700000000000,'
        f'"source":{{"db":"inv","table":"t","ts_ms":1700000000000}}}}'
    ).encode()


# The number on the wire, its text, and its value in a variant.
NUMBERS: list[tuple[str, str, Any]] = [
    ("0", "0", 0),
    ("-0", "0", 0),
    ("-0.0", "-0.0", Decimal("0.0")),
    ("1.50", "1.50", Decimal("1.50")),
    ("1E-7", "0.0000001", Decimal("1E-7")),
    ("1.5e3", "1500", Decimal(1500)),
    ("12345678901234567e2", "1234567890123456700", Decimal("1234567890123456700")),
    ("0e5", "0", Decimal(0)),
    ("0.000", "0.000", Decimal("0.000")),
    ("9223372036854775808", "9223372036854775808", Decimal(2**63)),
    ("18446744073709551616", "18446744073709551616", Decimal(2**64)),
    ("-18446744073709551617", "-18446744073709551617", Decimal(-(2**64) - 1)),
    ("9" * 38, "9" * 38, Decimal("9" * 38)),
    ("1" + "0" * 38, "1" + "0" * 38, "1" + "0" * 38),
    ("-" + "12" * 40, "-" + "12" * 40, "-" + "12" * 40),
    ("1" * 30 + "." + "2" * 20, "1" * 30 + "." + "2" * 20, "1" * 30 + "." + "2" * 20),
    ("0." + "0" * 37 + "1", "0." + "0" * 37 + "1", Decimal("1e-38")),
    ("1e-39", "0." + "0" * 38 + "1", 1e-39),
    ("1.0E300", "1" + "0" * 300, 1e300),
    ("1.0000000000000000000001e300", None, None),
    ("1e400", "1" + "0" * 400, "1" + "0" * 400),
    ("1.00000000000000000000000000000000000001e400", None, None),
    ("0.1234567890123456789", "0.1234567890123456789", Decimal("0.1234567890123456789")),
    ("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827",
     Decimal("0.1000000000000000055511151231257827")),
    ("1.00000000000000000001", "1.00000000000000000001", Decimal("1.00000000000000000001")),
    ("4.9E-324", "0." + "0" * 323 + "49", "0." + "0" * 323 + "49"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "text", "value"), NUMBERS)
def test_numbers_of_all_forms(number: str, text: str | None, value: Any) -> None:
    line = debezium(number, more='{"a":[' + number + "]}")
    if text is None:
        text = value = format(Decimal(number), "f")
    variant = image_after("debezium", RAW, line, "variant")
    found = decode_variant(variant["value"], variant["metadata"])
    assert type(found["x"]) is type(value)
    assert str(found["x"]) == str(value)
    assert str(found["more"]["a"][0]) == str(value)
    image = json.loads(image_after("debezium", RAW, line, "json"), parse_float=Decimal)
    assert image["x"] == (Decimal(repr(value)) if type(value) is float else value)
    types: dict[str, DataType] = {"id": LongType(), "x": StringType(), "more": VariantType()}
    row = changed_row("debezium", "inv.t", RAW, line, types)
    assert row["x"] == text


@pytest.mark.kernel
def test_the_kernel_reads_these_numbers() -> None:
    options = parsed({"protocol": "debezium", **RAW})
    for number, text, _ in NUMBERS:
        messages = messages_of(debezium(number))
        result = read(messages, events_schema(options), options, by_kernel=True)
        # It leaves numbers of hundreds of digits to the reference.
        assert result.by_kernel == 2 or text is None or len(text) > 320, (number, result.refusal)


@settings(max_examples=examples(50))
@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
)
def test_any_number_is_exact(number: str) -> None:
    line = debezium(number, more='{"b":[' + number + '],"a":1}')
    is_integer = number.lstrip("-").isdigit()
    text = str(int(number)) if is_integer else format(Decimal(number), "f")
    image = json.loads(image_after("debezium", RAW, line, "json"), parse_float=Decimal)
    assert Decimal(image["x"]) == Decimal(image["more"]["b"][0]) == Decimal(number)
    image_after("debezium", RAW, line, "variant")
    types: dict[str, DataType] = {"id": LongType(), "x": StringType(), "more": StringType()}
    assert changed_row("debezium", "inv.t", RAW, line, types)["x"] == text
    if abs(Decimal(number)) < Decimal("1e300"):
        types = {"id": LongType(), "x": DoubleType()}
        changed_row("debezium", "inv.t", {**RAW, "onSchemaChange": "corrupt"}, line, types)


@pytest.mark.parametrize("digits", [200_000, 1_000_000])
def test_numbers_beyond_all_limits_are_bad_messages(digits: int) -> None:
    for number in ("9" * digits, f"1.{'9' * digits}", f"1e{'9' * digits}", f"1e{digits}"):
        (event,) = open_decoder("debezium", **RAW).decode(Message(None, debezium(number)))
        assert "number" in str(event.error)


def test_the_command_line_prints_all_digits(tmp_path: Path) -> None:
    file = tmp_path / "numbers.jsonl"
    file.write_bytes(LINES[0] + b"\n")
    (event,) = run_lines("cat", file)
    after = event["after"]
    assert after["d"] == str(LONG)
    assert after["big"] == "18446744073709551616"
    assert after["e"] == "0.1234567890123456789"
    line = run("cat", "--numbers", "exact", file).stdout
    assert f'"d":{LONG}' in line.replace(" ", "")
