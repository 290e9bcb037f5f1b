"""Options: parsing, validation, and errors with the valid values."""

from __future__ import annotations

import contextlib
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core.decoding import DECODING_OPTIONS
from cdcfmt_core.encoding import ENCODING_OPTIONS
from cdcfmt_core.errors import OptionError
from cdcfmt_core.options import AGO, Option, OptionType, unknown_option, validate
from cdcfmt_files.sources.options import FILE_OPTIONS
from pyspark_cdcfmt.write_options import FILE_OPTIONS as WRITTEN_FILE_OPTIONS

CHOICE = Option("kind", "", type="choice", choices=("none", "LZ4", "snappy"))


@pytest.mark.parametrize(
    ("kind", "value", "parsed"),
    [
        ("string", "", ""),
        ("string", " a ", " a "),
        ("bool", True, True),
        ("bool", " TRUE ", True),
        ("bool", "1", True),
        ("bool", "no", False),
        ("bool", 0, False),
        ("int", 7, 7),
        ("int", " -7 ", -7),
        ("int", "470604474493435904", 470604474493435904),
        ("int", "1_000", 1000),
        ("bytes", 65536, 65536),
        ("bytes", "64m", 64 << 20),
        ("bytes", "2GB", 2 << 30),
        ("bytes", "10b", 10),
        ("bytes", "16 k", 16 << 10),
        ("duration", "7d", timedelta(days=7)),
        ("duration", "90 s", timedelta(seconds=90)),
        ("duration", "5MIN", timedelta(minutes=5)),
        ("duration", timedelta(hours=1), timedelta(hours=1)),
        ("list", "a, b ,,c", ("a", "b", "c")),
        ("list", '["a,b", " c "]', ("a,b", "c")),
        ("list", ["x", "y"], ("x", "y")),
        ("list", "", ()),
        ("timezone", "Asia/Shanghai", ZoneInfo("Asia/Shanghai")),
        ("timezone", "utc", UTC),
        ("timezone", "+08:00", timezone(timedelta(hours=8))),
        ("timezone", "-0330", timezone(-timedelta(hours=3, minutes=30))),
        ("timezone", UTC, UTC),
    ],
)
def test_values(kind: OptionType, value: object, parsed: object) -> None:
    option = Option("some", "", type=kind)
    assert option.parse(value) == parsed
    assert type(option.parse(value)) is type(parsed)
    assert option.parse(None) is None


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-01-31", "2024-01-31T00:00:00"),
        ("2024-01-31T10:00:00Z", "2024-01-31T10:00:00"),
        (" 2024-01-31 10:00 ", "2024-01-31T10:00:00"),
        ("2024-01-31T10:00:00.123456+08:00", "2024-01-31T02:00:00.123456"),
        ("2024-01-31 10:00:00.5-0330", "2024-01-31T13:30:00.500000"),
        ("20240131T100000Z", "2024-01-31T10:00:00"),
        # As Spark casts text to a timestamp
        ("2024-1-3 1:02:3", "2024-01-03T01:02:03"),
        ("2024-01-31 10:00:00 Asia/Shanghai", "2024-01-31T02:00:00"),
        ("2024-01-31 10:00:00 UTC", "2024-01-31T10:00:00"),
        ("2024-01-31T10:00:00+8", "2024-01-31T02:00:00"),
        (datetime(2024, 1, 31, 10), "2024-01-31T10:00:00"),
        (datetime(2024, 1, 31, 10, tzinfo=timezone(timedelta(hours=8))), "2024-01-31T02:00:00"),
    ],
)
def test_times(text: object, utc: str) -> None:
    parsed = Option("some", "", type="time").parse(text)
    assert parsed == datetime.fromisoformat(utc).replace(tzinfo=UTC)
    assert parsed.tzinfo is not None


def test_times_before_now() -> None:
    ago = {"10 minutes ago": 600, "2h": 7200, "1 Day Ago": 86_400, "5s": 5}
    for text, seconds in ago.items():
        parsed = Option("some", "", type="time").parse(text)
        assert abs(datetime.now(UTC) - timedelta(seconds=seconds) - parsed) < timedelta(minutes=1)
        assert AGO.fullmatch(text)
    assert not AGO.fullmatch("2024-01-31")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("time", "yesterday"),
        ("time", "2024-13-01"),
        ("time", "2024-01-31T10:00:00Z UTC"),
        ("time", "2024-01-31 10:00:00 Mars/Olympus"),
        ("time", "999999999 days ago"),
        # Milliseconds since 1970, which ISO reads as the year 1612
        ("time", "1612101000000"),
        ("time", 1612101000000),
        ("string", 5),
        ("bool", "maybe"),
        ("bool", 2),
        ("int", True),
        ("int", 1.0),
        ("int", "1.5"),
        ("int", ""),
        ("bytes", "64x"),
        ("duration", "7"),
        ("duration", "1.5h"),
        ("duration", "-1d"),
        ("duration", "d"),
        ("duration", "3 weeks"),
        ("duration", "99999999999d"),
        ("bytes", "kb"),
        ("bytes", "1kk"),
        ("bytes", 1.5),
        ("bytes", True),
        ("list", "[1]"),
        ("list", "[" * 100_000),
        ("list", "[a"),
        ("list", 5),
        ("list", [1]),
        ("timezone", "Mars/Olympus"),
        ("timezone", "../../etc/passwd"),
        ("timezone", "/etc/localtime"),
        ("timezone", "America"),
        ("timezone", ""),
        ("timezone", "+8"),
        ("timezone", "+25:00"),
        ("timezone", 8),
    ],
)
def test_error_of_invalid_value_lists_valid_values(kind: OptionType, value: object) -> None:
    option = Option("someOption", "", type=kind)
    with pytest.raises(OptionError) as caught:
        option.parse(value)
    assert str(caught.value) == f"option someOption: {value!r} is not {option.describe_type()}"
    assert isinstance(caught.value, ValueError)


@given(
    st.sampled_from(["string", "bool", "int", "bytes", "list", "timezone"]),
    st.text(max_size=30) | st.text("[]\"',+-:0123456789kmgbUTC/ ", max_size=30),
)
def test_any_text_is_parsed_or_rejected(kind: OptionType, text: str) -> None:
    with contextlib.suppress(OptionError):
        parsed = Option("some", "", type=kind).parse(text)
        # A parsed value is accepted as a value again.
        assert Option("some", "", type=kind).parse(parsed) == parsed


def test_a_list_of_an_iterator() -> None:
    assert Option("some", "", type="list").parse(iter(["x", "y"])) == ("x", "y")


def test_none_is_the_default() -> None:
    assert Option("some", "", type="int", default=7).parse(None) == 7


def test_choices() -> None:
    assert CHOICE.parse("lz4") == "LZ4"
    with pytest.raises(OptionError, match="'zip' is not one of none, LZ4, snappy"):
        CHOICE.parse("zip")


def test_bounds() -> None:
    option = Option("n", "", type="int", minimum=1, maximum=10)
    assert [option.parse(1), option.parse("10")] == [1, 10]
    for value in (0, "11"):
        with pytest.raises(OptionError, match=f"option n: {value} is not an integer from 1 to 10"):
            option.parse(value)
    with pytest.raises(OptionError, match="0 is not a size in bytes such as 65536 or 64m from 1"):
        Option("n", "", type="bytes", minimum=1).parse("0k")


def test_secret_values_are_never_printed() -> None:
    option = Option("password", "", type="int", hidden=True)
    with pytest.raises(OptionError) as caught:
        option.parse("hunter2")
    assert str(caught.value) == "option password: the given value is not an integer"


DECLARED = (
    Option("startingCommitTs", "", type="int"),
    Option("includeTables", "", type="list", default=()),
    CHOICE,
)


def test_validate_fills_in_defaults_and_matches_names_without_case() -> None:
    assert validate({}, DECLARED, owner="x") == {
        "startingCommitTs": None,
        "includeTables": (),
        "kind": None,
    }
    given_values: dict[str, Any] = {"STARTINGcommitts": "5", "kind": "SNAPPY"}
    assert validate(given_values, DECLARED, owner="x") == {
        "startingCommitTs": 5,
        "includeTables": (),
        "kind": "snappy",
    }


@pytest.mark.parametrize("name", ["startingcommitts_", "startngCommitTs", "STARTINGCOMMITT"])
def test_an_unknown_option_names_the_nearest(name: str) -> None:
    with pytest.raises(OptionError) as caught:
        validate({name: 1}, DECLARED, owner="format x")
    assert str(caught.value) == (
        f"format x has no option {name!r}; did you mean startingCommitTs? "
        "Options: includeTables, kind, startingCommitTs"
    )


def test_an_unknown_option_far_from_all() -> None:
    error = unknown_option("zzz", ["b", "A"], owner="it")
    assert str(error) == "it has no option 'zzz'. Options: A, b"


def test_error_of_spark_option_names_the_replacement() -> None:
    reading = [*DECODING_OPTIONS, *FILE_OPTIONS]
    writing = [*ENCODING_OPTIONS, *WRITTEN_FILE_OPTIONS]
    for name, known, words in (
        ("cleansource", reading, "no option 'cleansource': files stay where they are. Options:"),
        ("latestFirst", reading, ": a stream reads files in order of modification time."),
        ("dateFormat", reading, ": the format defines dates and times."),
        ("fetchOffset.numRetries", reading, ": kafkaConsumer.pollTimeoutMs is how long"),
        ("mode", writing, ": call .mode(...) of the writer."),
        ("format", writing, ": protocol names the format of the messages."),
    ):
        assert words in str(unknown_option(name, known, owner="it"))


def test_an_option_of_a_format_names_the_format() -> None:
    """In its spelling, as Spark hands names over in lower case."""
    for name, words in (
        ("flatteneddatabase", "; flattenedDatabase is an option of debezium."),
        ("contentcompatible", "; contentCompatible is an option of canal-json (for writing)."),
    ):
        assert words in str(unknown_option(name, ["flattened", "contentType"], owner="it"))


@given(st.lists(st.text(min_size=1).map(str.strip).filter(bool)))
def test_a_json_array_takes_any_name(names: list[str]) -> None:
    assert Option("t", "", type="list").parse(json.dumps(names)) == tuple(names)


def test_a_zone_from_text_is_usable() -> None:
    zone = Option("z", "", type="timezone").parse("America/New_York")
    assert datetime(2024, 7, 1, tzinfo=zone).utcoffset() == timedelta(hours=-4)


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ({"name": "my option"}, "option 'my option': a name may have letters"),
        ({"type": "float"}, "type 'float' is not one of string, bool"),
        ({"type": "choice"}, "type choice needs choices"),
        ({"choices": ("a",)}, "type choice needs choices"),
        ({"type": "choice", "choices": ("a",), "default": "b"}, "'b' is not one of a"),
        ({"type": "int", "minimum": 1, "default": 0}, "0 is not an integer from 1"),
        ({"minimum": 1}, "bounds need type int or bytes"),
        ({"type": "int", "minimum": 2, "maximum": 1}, "minimum <= maximum"),
        ({"type": "bytes", "default": "1k"}, "the default '1k' is not a parsed value; write 1024"),
    ],
)
def test_options_that_users_cannot_set_are_rejected(declared: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=re.escape(reason)):
        Option(**{"name": "o", "help": "", **declared})
