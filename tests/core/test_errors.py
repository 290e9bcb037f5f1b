"""Errors: picklable, with a position, and short for large values."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdcfmt_core import errors
from cdcfmt_core.codec import DecoderContext
from cdcfmt_core.errors import (
    CdcfmtError,
    DecodeError,
    EncodeError,
    MissingSchemaError,
    SourceError,
    join_names,
    show,
)
from cdcfmt_core.events import Column, Corrupt, TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_core.types import Timestamp, Unknown

ALL = [
    value
    for value in vars(errors).values()
    if isinstance(value, type)
    and issubclass(value, CdcfmtError)
    and value is not MissingSchemaError
]


class ForeignError(DecodeError):
    """As a plugin might write it: with another constructor."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}", field="f", sample="s")
        self.code = code


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_is_picklable(cls: type[CdcfmtError], protocol: int) -> None:
    error = cls("the text")
    copy = pickle.loads(pickle.dumps(error, protocol))
    assert type(copy) is cls
    assert str(copy) == str(error) == "the text"
    assert copy.args == error.args


def test_missing_schema_error_has_the_table_and_position() -> None:
    error = MissingSchemaError("shop", "orders", (447984074911121426,)).at(partition=3)
    assert error.reason == "schema shop.orders@447984074911121426 not seen"
    assert str(error) == f"partition 3: {error.reason}"
    for copy in (pickle.loads(pickle.dumps(error.at(offset=4))), error.at(offset=4)):
        assert type(copy) is MissingSchemaError
        assert (copy.database, copy.schema, copy.table) == ("shop", None, "orders")
        assert copy.position == (447984074911121426,)
        assert (copy.reason, copy.partition, copy.offset) == (error.reason, 3, 4)
    named = MissingSchemaError("shop", "orders", (6, "bin.01", 4), schema="public")
    assert named.reason == "schema shop.public.orders@6:bin.01:4 not seen"


FULL = DecodeError("is not a number", field="data[0].price", sample=b"\xff" * 1000).at(
    protocol="canal-json",
    topic="orders",
    path="s3://b/f.json",
    partition=3,
    offset=0,
)


def test_complete_decode_error_is_picklable() -> None:
    copy = pickle.loads(pickle.dumps(FULL))
    assert str(copy) == str(FULL)
    assert repr(copy) == repr(FULL)
    assert vars(copy) == vars(FULL)
    # Twice is like once: the sample is not quoted again.
    assert vars(pickle.loads(pickle.dumps(copy))) == vars(FULL)


def test_text_has_position_and_reason() -> None:
    text = str(FULL)
    assert text.startswith(
        "canal-json topic orders, file s3://b/f.json, partition 3, offset 0: "
        "data[0].price: is not a number; got b'\\xff\\xff"
    )
    assert FULL.summary.startswith("data[0].price: is not a number; got b'")
    assert str(DecodeError("plain")) == "plain"
    assert str(DecodeError("plain").at(topic="t")) == "topic t: plain"
    assert str(DecodeError("plain").at(protocol="p")) == "p: plain"
    assert str(DecodeError("plain", sample="")) == "plain; got ''"


def test_at_adds_missing_positions_only() -> None:
    error = DecodeError("bad", field="f", sample="it's").at(offset=7)
    there = error.at(protocol="p", topic="t", partition=0, offset=None)
    assert (there.protocol, there.topic, there.partition, there.offset) == ("p", "t", 0, 7)
    assert (there.reason, there.field, there.sample) == ("bad", "f", '"it\'s"')
    assert str(error) == 'offset 7: f: bad; got "it\'s"'
    assert there.at(offset=8).offset == 8


def test_errors_of_plugins_keep_their_class() -> None:
    error = ForeignError(7)
    error.add_note("a note")
    for copy in (error.at(topic="t"), pickle.loads(pickle.dumps(error.at(topic="t")))):
        assert isinstance(copy, ForeignError)
        assert copy.code == 7
        assert str(copy) == "topic t: f: code 7; got 's'"
        assert copy.__notes__ == ["a note"]


@pytest.mark.parametrize("cls", ALL)
def test_every_text_is_encodable(cls: type[CdcfmtError]) -> None:
    # Names from the wire may hold any characters, and these make Spark hang.
    error = cls("no column a\ud800 in 表\udcff")
    assert str(error) == "no column a\\ud800 in 表\\udcff"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_every_part_of_a_text_is_encodable() -> None:
    part = "x\udfff"
    error = DecodeError(part, field=part, sample=part).at(protocol=part, topic=part, path=part)
    for text in (str(error), str(error.at(offset=1)), repr(error)):
        assert text.encode("utf-8").count(b"x\\") >= 6
    assert error.field == "x\\udfff"


def test_base_classes() -> None:
    assert issubclass(errors.OptionError, ValueError)
    assert issubclass(errors.DecodeError, ValueError)
    assert issubclass(errors.UnknownFormatError, LookupError)
    assert issubclass(errors.MissingDependencyError, ImportError)


# Samples


class Endless(list[int]):
    """A list that must not be formatted."""

    def __iter__(self) -> Iterator[int]:
        raise AssertionError("formatted")

    def __repr__(self) -> str:
        raise AssertionError("formatted")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (b"ab\x00", "b'ab\\x00'"),
        ("it's", '"it\'s"'),
        ("a\ud800\udcff", "'a\\ud800\\udcff'"),
        (True, "True"),
        (Decimal("1.10"), "Decimal('1.10')"),
        ({"a": 1}, "an object with 1 fields"),
        ([1, 2], "a list of 2"),
        (Endless([1]), "a list of 1"),
        (b"x" * 200, repr(b"x" * 200)),
        (b"x" * 201, repr(b"x" * 200) + "… (201 long)"),
        ("y" * 1_000_000, repr("y" * 200) + "… (1000000 long)"),
    ],
)
def test_show(value: object, text: str) -> None:
    assert show(value) == text


@given(st.binary() | st.text() | st.integers() | st.floats() | st.binary(min_size=300))
def test_a_sample_is_short_and_printable(value: object) -> None:
    error = DecodeError("bad", sample=value)
    assert error.sample is not None
    # At most 200 of its bytes or letters, each written with at most ten.
    assert len(error.sample) < 2_100
    assert error.sample.isprintable()
    str(error).encode()


def test_a_long_text_is_cut_in_an_error() -> None:
    assert len(str(DecodeError("bad", sample="x" * 10_000_000))) < 300


def test_join_names() -> None:
    assert join_names(["b", "a"]) == "a, b"
    assert join_names([]) == "none"


EVIL = "\x1b[2J\n\x9b2J\u202e\x7f\ud800"
OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")


def test_errors_are_short_and_on_one_line() -> None:
    name = EVIL + "x" * 5_000_000
    found: list[Any] = [
        DecodeError(f"{name} is wrong", field=name, sample=name).at(topic=name, path=name),
        DecodeError("", field="x").at(reason=name, protocol=EVIL, topic=name),
        MissingSchemaError(name, name, (1, name)).at(field=name),
        EncodeError(name, column=name, sample=name, table=name),
        pickle.loads(pickle.dumps(DecodeError(name, field=name))),
    ]
    for error in found:
        for text in (str(error), repr(error), error.reason):
            assert len(text) < 5_000
            assert OBEYED.search(text) is None
    assert "long)" in str(found[0])
    # The error keeps its complete arguments, as they select the schema.
    assert found[2].table == name
    assert OBEYED.search(str(SourceError(f"no file {EVIL}")).replace("\n", "")) is None
    again = DecodeError(name).reason
    assert DecodeError(again).reason == again


def test_quoted_text_in_logs_is_escaped(caplog: pytest.LogCaptureFixture) -> None:
    context = DecoderContext(Unknown, SchemaStore())
    forged = "t has TIMESTAMP\n2026-01-01 ERROR all is lost\x1b[2J" + "x" * 5_000_000
    columns = (Column("at", "timestamp", Timestamp()),)
    context.note_zoneless_timestamps(TableSchema(f"d{EVIL}", forged, columns))
    (line,) = (r.getMessage() for r in caplog.records if "TIMESTAMP" in r.getMessage())
    assert OBEYED.search(line) is None
    assert len(line) < 2_000
    assert "sourceTimeZone" in line


def test_a_bad_row_keeps_no_frames() -> None:
    """A message may have any number of them."""
    try:
        try:
            int("x")
        except ValueError as cause:
            raise DecodeError("bad") from cause
    except DecodeError as error:
        kept = Corrupt(error).error
    assert kept.__traceback__ is kept.__cause__ is kept.__context__ is None


def test_bad_rows_share_the_place_of_their_message() -> None:
    """A topic may have any length, and a message any number of bad rows."""
    place = {"topic": "t" * 100_000, "partition": 3, "offset": 7}
    error = DecodeError("bad").at(**place)
    held = [value for value in (*vars(error).values(), *error.args) if value not in (None, "bad")]
    assert all(any(value is each for each in place.values()) for value in held)
    assert "partition 3" in repr(error)
