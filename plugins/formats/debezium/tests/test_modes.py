"""Bytes and decimals in every mode of the connectors: right or rejected, never wrong."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from decimal import Context
from decimal import Decimal as Number
from typing import Any

import pytest
from debezium_messages import (
    column,
    ddl,
    envelope_schema,
    error_of,
    message,
    open_decoder,
    row,
)
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.events import Corrupt, Event

CONNECT_DECIMAL = "org.apache.kafka.connect.data.Decimal"

BINARY = {
    "bytes": lambda data: base64.b64encode(data).decode(),
    "base64": lambda data: base64.b64encode(data).decode(),
    "base64-url-safe": lambda data: base64.urlsafe_b64encode(data).decode(),
    "hex": bytes.hex,
}
"""As Java's encoders write them; ``bytes`` is JsonConverter's."""


def decode(
    type_: dict[str, Any], wire: Any, field: dict[str, Any] | None, **options: str
) -> list[Event]:
    """The events of a row with one column: its type from DDL, ``field`` from its schema."""
    decoder = open_decoder(**options)
    decoder.decode(message(ddl("alter table orders", [column("c", **type_)])))
    value = row(after={"c": wire})
    if field is not None:
        value = {"schema": envelope_schema({"c": field}), "payload": value}
    return decoder.decode(message(value))


def value_of(events: list[Event], option: str) -> Any:
    """The value, or None if the row is rejected with the option's name."""
    (event,) = events
    if isinstance(event, Corrupt):
        assert "after.c: " in str(event.error)
        assert f"set {option} to the connector's" in str(event.error)
        return None
    return event.after.values["c"]  # type: ignore[union-attr]


@st.composite
def binary_columns(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    # Often bytes whose base64 has digits of hexadecimal alone.
    data = draw(
        st.binary(max_size=20)
        | st.text("0123456789abcdef", max_size=24)
        .filter(lambda text: len(text) % 4 == 0)
        .map(base64.b64decode)
    )
    length = draw(st.integers(max(len(data), 1), len(data) + 20))
    name = draw(st.sampled_from(["BINARY", "VARBINARY", "BLOB"]))
    if name == "BINARY":
        data = data.ljust(length, b"\0")
    return {"type_": name} | ({} if name == "BLOB" else {"length": length}), data


@given(binary_columns(), st.sampled_from(sorted(BINARY)), st.booleans())
def test_bytes(column_of: tuple[dict[str, Any], bytes], mode: str, with_schema: bool) -> None:
    type_, data = column_of
    wire = BINARY[mode](data)
    field = {"type": "bytes" if mode == "bytes" else "string"} if with_schema else None
    assert value_of(decode(type_, wire, field), "binaryHandlingMode") in (data, None)
    assert value_of(decode(type_, wire, field, binaryHandlingMode=mode), "") == data
    for other in BINARY.keys() - {mode}:
        value = value_of(decode(type_, wire, field, binaryHandlingMode=other), "binaryHandlingMode")
        if type_["type_"] == "BINARY" and "hex" in (mode, other):
            assert value == data if field == {"type": "bytes"} else value in (data, None)


UUID = bytes.fromhex("6ba7b8109dad11d180b400c04fd430c8")
BINARY_16 = {"type_": "BINARY", "length": 16}
TEXT = {"type": "string"}


@pytest.mark.parametrize("field", [None, TEXT])
def test_a_uuid_as_hexadecimal(field: dict[str, Any] | None) -> None:
    """Its 32 digits are also valid base64 of 24 bytes."""
    assert value_of(decode(BINARY_16, UUID.hex(), field), "") == UUID
    text = error_of(decode(BINARY_16, UUID.hex(), field, binaryHandlingMode="base64"))
    assert "24 bytes in a column of binary(16); set binaryHandlingMode to" in text
    text = error_of(decode({"type_": "BLOB"}, UUID.hex(), field))
    assert "hexadecimal of 16 bytes or base64 of 24; set binaryHandlingMode to" in text


def test_a_schema_of_text_is_not_the_mode_bytes() -> None:
    text = error_of(decode(BINARY_16, BINARY["base64"](UUID), TEXT, binaryHandlingMode="bytes"))
    assert "which contradicts binaryHandlingMode=bytes" in text


def test_ticdcs_bytes_are_base64_alone() -> None:
    """Its schema has ``string``; no option changes its encoding of bytes."""
    source = {"connector": "TiCDC", "commit_ts": 5}
    decoder = open_decoder(binaryHandlingMode="hex")
    decoder.decode(message(ddl("alter table orders", [column("c", "BLOB")], **source)))
    value = row(source=source, after={"c": "abcd"})
    (event,) = decoder.decode(message({"schema": envelope_schema({"c": TEXT}), "payload": value}))
    assert event.after.values["c"] == base64.b64decode("abcd")  # type: ignore[union-attr]


def connect_decimal(value: Number, scale: int) -> str:
    """``BigInteger.toByteArray``: as few bytes as hold the number and its sign."""
    unscaled = int(value.scaleb(scale, Context(prec=100)))
    size = ((unscaled if unscaled >= 0 else ~unscaled).bit_length() + 8) // 8
    return base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()


@st.composite
def decimal_columns(draw: st.DrawFn) -> tuple[int, int, Number]:
    precision = draw(st.integers(1, 65))
    scale = draw(st.integers(0, min(precision, 30)))
    # Often numbers whose base64 has digits alone.
    digits = st.text("0123456789", min_size=4, max_size=24)
    as_base64 = digits.filter(lambda text: len(text) % 4 == 0).map(base64.b64decode)
    limit = 10**precision - 1
    unscaled = draw(
        st.integers(-limit, limit)
        | as_base64.map(lambda data: int.from_bytes(data, "big", signed=True))
    )
    if abs(unscaled) > limit:
        unscaled %= limit
    return precision, scale, Number(unscaled).scaleb(-scale, Context(prec=100))


@given(decimal_columns(), st.sampled_from(["precise", "string"]), st.booleans())
def test_decimals(of: tuple[int, int, Number], mode: str, with_schema: bool) -> None:
    precision, scale, number = of
    type_ = {"type_": "DECIMAL", "length": precision, "scale": scale}
    # BigDecimal.toString is Python's str.
    wire = connect_decimal(number, scale) if mode == "precise" else str(number)
    field = None
    if with_schema:
        parameters = {"scale": str(scale), "connect.decimal.precision": str(precision)}
        precise = {"type": "bytes", "name": CONNECT_DECIMAL, "parameters": parameters}
        field = precise if mode == "precise" else TEXT
    value = value_of(decode(type_, wire, field), "decimalHandlingMode")
    assert value == number if with_schema or scale else value in (number, None)
    assert value_of(decode(type_, wire, field, decimalHandlingMode=mode), "") == number


PRICE = {"type_": "DECIMAL", "length": 10, "scale": 2}
COUNT = {"type_": "DECIMAL", "length": 10, "scale": 0}


@pytest.mark.parametrize(
    ("type_", "wire", "expected"),
    [
        (PRICE, "-1.50", "-1.50"),
        (PRICE, "0.00", "0.00"),
        (PRICE, "MDk=", "123.45"),
        # MySQL prints 1234.00.
        (PRICE, "1234", "-26588.24"),
        (COUNT, "-1234", "-1234"),
        (COUNT, "12345", "12345"),
        # The base64 of a number of 14 digits.
        (COUNT, "12345678", "12345678"),
        ({"type_": "DECIMAL", "length": 12, "scale": 10}, "0E-10", "0E-10"),
    ],
)
def test_text_of_decimals_without_a_schema(type_: dict[str, Any], wire: str, expected: str) -> None:
    assert str(value_of(decode(type_, wire, None), "")) == expected


def test_digits_that_are_also_base64_are_rejected() -> None:
    for type_ in (COUNT, {"type_": "DECIMAL"}):
        text = error_of(decode(type_, "1234", None))
        assert "text of 1234, or base64 of -2658824 without its point" in text
        assert "set decimalHandlingMode to the connector's decimal.handling.mode" in text
    text = error_of(decode(PRICE, "-1.50", None, decimalHandlingMode="precise"))
    assert "not base64" in text
    assert "set decimalHandlingMode" in text


TIME_6, DATETIME_3, DATETIME_6 = (
    {"type_": name, "length": digits}
    for name, digits in (("TIME", 6), ("DATETIME", 3), ("DATETIME", 6))
)


@pytest.mark.parametrize(
    ("type_", "wire", "expected"),
    [
        # 2023 in milliseconds, microseconds and nanoseconds.
        ({"type_": "DATETIME"}, 1_703_680_043_000, datetime(2023, 12, 27, 12, 27, 23)),
        ({"type_": "DATETIME"}, 1_703_680_043_000_000, datetime(2023, 12, 27, 12, 27, 23)),
        (DATETIME_6, 1_703_680_043_123_456, datetime(2023, 12, 27, 12, 27, 23, 123456)),
        (DATETIME_6, 1_703_680_043_123_456_000, datetime(2023, 12, 27, 12, 27, 23, 123456)),
        (DATETIME_6, 1_703_680_043_123, None),  # 1970-01-20 in microseconds
        (DATETIME_3, 253_402_300_799_000, datetime(9999, 12, 31, 23, 59, 59)),
        (DATETIME_3, 94_694_400_000_000, None),  # the year 4970, or 1973 in microseconds
        ({"type_": "DATETIME"}, 28_800_000, datetime(1970, 1, 1, 8)),
        (DATETIME_6, 28_800_000_000, datetime(1970, 1, 1, 8)),
        ({"type_": "TIME"}, 44_843_000, timedelta(seconds=44843)),  # 44.843 s in microseconds
        ({"type_": "TIME"}, 44_843_000_000, timedelta(seconds=44843)),
        ({"type_": "TIME"}, -3_020_399_000, timedelta(seconds=-3020399)),
        ({"type_": "TIME"}, 7_000_000, None),  # 7 s, or 01:56:40 in milliseconds
        (TIME_6, 44_843_123, None),
        (TIME_6, 90_000_000, timedelta(seconds=90)),
        (TIME_6, 0, timedelta()),
    ],
)  # fmt: skip
def test_units_of_times_without_a_schema(type_: dict[str, Any], wire: int, expected: Any) -> None:
    assert value_of(decode(type_, wire, None), "timePrecisionMode") == expected


def test_error_of_wrong_time_unit_names_the_option() -> None:
    """Microseconds read as milliseconds, without a schema; with one the unit is certain."""
    micros = 1_703_680_043_123_456
    for type_, wire in (("DATETIME", micros), ("TIME", 4_000_000_000_000)):
        text = error_of(decode({"type_": type_}, wire, None))
        assert "set timePrecisionMode to the connector's time.precision.mode" in text
    given = decode({"type_": "DATETIME"}, micros, None, timePrecisionMode="microseconds")
    assert value_of(given, "") == datetime(2023, 12, 27, 12, 27, 23, 123456)
