"""The exact JSON parser: input that fast parsers reject or round."""

from __future__ import annotations

import json
import sys
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdcfmt_core.errors import DecodeError
from cdcfmt_toolkit.wire_json import dumps_exact, instant_of, loads_exact, names_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.10", Decimal("1.10")),
        ("12345678901234567890.123", Decimal("12345678901234567890.123")),
        ("-0.0", Decimal("-0.0")),
        ("1E2", Decimal("1E+2")),
        ("1e1000", Decimal("1e1000")),
        ("-1.5e-1000", Decimal("-1.5e-1000")),
        ("-7", -7),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("9" * 1_000, int("9" * 1_000)),
        ('"1.10"', "1.10"),
        ("true", True),
        ("null", None),
        ('{"a":1,"b":2,"a":3}', {"a": 3, "b": 2}),
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\ud800"', "\ud800"),
        (" [ ] ", []),
    ],
)
def test_values(text: str, value: object) -> None:
    parsed = loads_exact(text.encode())
    assert parsed == value
    assert type(parsed) is type(value)
    assert str(parsed) == str(value)
    again = loads_exact(dumps_exact([parsed]))[0]
    assert (type(again), str(again)) == (type(value), str(value))


@given(
    st.lists(
        st.sampled_from(["a", "\xc3", "\xa9", "\xff", "\\ud83d", "\\udc80", "\\udcc3", "\\udca9"])
    )
)
@example(["\xc3", "\\udca9"])
@example(["\\ud83d", "\xc3", "\\udca9", "\xff"])
@example(["\\udcc3", "\\udca9"])
def test_lone_surrogates_round_trip(parts: list[str]) -> None:
    data = b'{"%b":["%b"]}' % (("".join(parts).encode("latin-1"),) * 2)
    parsed = loads_exact(data)
    assert loads_exact(dumps_exact(parsed)) == parsed
    if not any(part.startswith("\\u") for part in parts):
        assert dumps_exact(parsed) == data


def test_deep_values_are_written() -> None:
    deep = b"[" * 900 + b'{"a":1.0}' + b"]" * 900
    assert dumps_exact(loads_exact(deep)) == deep


@pytest.mark.parametrize("value", [Decimal("NaN"), float("inf"), b"x", object()])
def test_non_json_values_are_rejected_by_the_writer(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        dumps_exact({"a": [value]})


def test_json_is_written_compactly() -> None:
    value = {"a": [1, Decimal("1.50"), None, True, "中\n"], "b": {"c": ()}, "d": 1.5}
    assert dumps_exact(value) == '{"a":[1,1.50,null,true,"中\\n"],"b":{"c":[]},"d":1.5}'.encode()


def test_invalid_utf8_is_preserved() -> None:
    parsed = loads_exact(b'{"a":"x\xff\xfey \xe4\xb8\xad \xe4\xb8"}')
    assert parsed["a"].encode("utf-8", "surrogateescape") == b"x\xff\xfey \xe4\xb8\xad \xe4\xb8"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"  ", "not JSON"),
        (b"{", "JSON ends at byte 1: truncated"),
        (b'{"a":1}x', "not JSON"),
        (b"[1,]", "not JSON"),
        (b"NaN", "NaN is not JSON"),
        (b'{"a":[Infinity]}', "Infinity is not JSON"),
        (b"-Infinity", "-Infinity is not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON"),
        (b'"\x01"', "not JSON"),
        (b'"\\x"', "not JSON"),
        (b"01", "not JSON"),
        (b"9" * 150_001, "a number of 150001 characters"),
        (b"0." + b"1" * 5_000_000, "a number of 5000002 characters"),
        (b"1e" + b"9" * 100, "a number out of range: 1e999"),
        (b"1e999999999", "a number out of range: 1e999999999"),
        (b"[-1e-999999999]", "a number out of range: -1e-999999999"),
        (b"0e999999999", "a number out of range"),
        (b"1e1001", "a number out of range"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_invalid_json_is_rejected(data: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as caught:
        loads_exact(data)
    assert len(str(caught.value)) < 1_200


def test_many_brackets_are_not_deep() -> None:
    assert len(loads_exact(b"[" + b"[{}]," * 100_000 + b"[]]")) == 100_001


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python's own limit is lower")
@pytest.mark.parametrize("depth", [1_025, 2_000])
def test_json_too_deep_to_walk_is_rejected(depth: int) -> None:
    with pytest.raises(DecodeError, match="nested too deeply"):
        loads_exact(b"[" * depth + b"]" * depth)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)


@given(JSON)
def test_json_without_fractions_equals_the_standard_parser(value: object) -> None:
    assert loads_exact(json.dumps(value).encode()) == value


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4))
def test_fractions_keep_every_digit(value: Decimal) -> None:
    assert str(loads_exact(f"[{value:f}]".encode())[0]) == f"{value:f}"


@given(st.binary())
def test_random_bytes_are_parsed_or_rejected(data: bytes) -> None:
    try:
        parsed = loads_exact(data)
    except DecodeError:
        return
    assert parsed == json.loads(data.decode("utf-8", "surrogateescape"), parse_float=Decimal)


def test_last_of_duplicate_members_counts() -> None:
    parsed = loads_exact(b'{"a":{"t":1,"t":2.50,"\xff":[]}}', make_object=tuple)
    assert parsed == (("a", (("t", 1), ("t", Decimal("2.50")), ("\udcff", []))),)


def test_truncated_json_error_has_its_position() -> None:
    """At every byte: in a word, a number, an escape, a character, or between."""
    whole = '{"a":[1,-2.5e-3,true,null,"x\\u00e9\\n\\"y 中"],"b":{"d":"\\ud83d\\ude00"} }'.encode()
    loads_exact(whole)
    for end in range(1, len(whole)):
        with pytest.raises(DecodeError, match=f"JSON ends at byte {end}: truncated"):
            loads_exact(whole[:end])


def test_error_inside_json_is_not_reported_as_truncated() -> None:
    for data, byte in ((b'{"a";1}', 4), ('{"中":tru}'.encode(), 7), (b"[1.]", 2), (b"{}{}", 2)):
        with pytest.raises(DecodeError, match=f"not JSON from byte {byte} on"):
            loads_exact(data)


@pytest.mark.parametrize(
    ("value", "microseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2025-06-21T12:06:46.087663Z", 1_750_507_606_087_663),
        ("2025-06-21T12:06:46.5Z", 1_750_507_606_500_000),
        ("2025-06-21 14:36:46.5+02:30", 1_750_507_606_500_000),
        ("2025-06-21 09:06:46-03", 1_750_507_606_000_000),
        ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        (None, None),
    ],
)
def test_instants(value: object, microseconds: int | None) -> None:
    assert instant_of({"at": value}, "at") == microseconds
    assert instant_of({"at": value}, "at", assume_utc=True) == microseconds


def test_zoneless_time_is_utc_if_the_format_declares_it() -> None:
    for text in ("2025-06-21 12:06:46.5", "2025-06-21T12:06:46.5"):
        assert instant_of({"at": text}, "at", assume_utc=True) == 1_750_507_606_500_000
    with pytest.raises(DecodeError, match="is not a time"):
        instant_of({"at": "2025-06-21"}, "at", assume_utc=True)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("1969-12-31T23:59:59Z", "is before 1970"),
        *(
            (value, "is not a time with a zone")
            for value in (
                *("2025-06-21T12:06:46", "2025-06-21T12:06:46+24", "2025-06-21T12:06:46+0800"),
                *("2025-06-21  2:06:46Z", "2025-13-21T12:06:46Z", "2025-06-21T24:00:00Z"),
                *("9999-12-31T23:59:59-01", "２025-06-21T12:06:46Z", 1_750_507_606),
            )
        ),
    ],
)
def test_errors_have_the_path_of_their_field(value: object, reason: str) -> None:
    with pytest.raises(DecodeError) as raised:
        instant_of({"at": value}, "at", "metadata.")
    assert (raised.value.field, raised.value.reason) == ("metadata.at", reason)
    with pytest.raises(DecodeError) as raised:
        names_of({"keys": [value]} if type(value) is int else {"keys": value}, "keys", "control.")
    assert raised.value.field == "control.keys"
