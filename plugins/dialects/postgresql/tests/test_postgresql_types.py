"""Type texts of PostgreSQL, as ``format_type`` prints them, and others'."""

from __future__ import annotations

import pytest

from cdcfmt_core import types
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import LogicalType
from cdcfmt_postgresql import POSTGRESQL, domain_map, open_reader, resolve_type


@pytest.mark.parametrize(
    ("text", "logical"),
    [
        ("smallint", types.Int(16)),
        ("INT4", types.Int(32)),
        ("bigserial", types.Int(64)),
        ("oid", types.Int(32, signed=False)),
        ("numeric", types.Decimal()),
        ("numeric(10,2)", types.Decimal(10, 2)),
        ("numeric(10)", types.Decimal(10, 0)),
        ("decimal( 10 , 2 )", types.Decimal(10, 2)),
        ("numeric(5,-2)", types.Decimal(7, 0)),
        ("numeric(3,5)", types.Decimal(5, 5)),
        ("float(24)", types.Float(32)),
        ("float(25)", types.Float(64)),
        ("double precision", types.Float(64)),
        ("character varying(20)", types.Text()),
        ('"char"', types.Text()),
        ("bytea", types.Binary()),
        ("bit", types.Bit(1)),
        ("bit(8)", types.Bit(8)),
        ("bit(65)", types.Text()),
        ('"bit"', types.Text()),
        ("bit varying(5)", types.Text()),
        ("date", types.Date()),
        ("timestamp(3) with time zone", types.Timestamp(3)),
        ("timestamp without time zone", types.DateTime(6)),
        ("timestamptz(0)", types.Timestamp(0)),
        ("time(3) without time zone", types.Time(3)),
        ("time with time zone", types.TimeTz(6)),
        ("interval", types.Interval()),
        ("interval day to second(2)", types.Interval()),
        ("interval year to month", types.Interval()),
        ("uuid", types.Uuid()),
        ("jsonb", types.Json()),
        ("inet", types.Text()),
        ("geometry(Point,4326)", types.Geometry()),
        ("hstore", types.Map(types.Text(), types.Text())),
        ("int4[]", types.Array(types.Int(32))),
        ("integer[3][4]", types.Array(types.Array(types.Int(32)))),
        ("character varying(20)[]", types.Array(types.Text())),
        ("timestamp(3) with time zone[]", types.Array(types.Timestamp(3))),
        ("_numeric", types.Array(types.Decimal())),
        ("int array", types.Array(types.Int(32))),
        ("int array[4]", types.Array(types.Int(32))),
        ("enum('sad', 'it''s ok', 'a,b')", types.Enum(("sad", "it's ok", "a,b"))),
        ("enum('a')[]", types.Array(types.Enum(("a",)))),
    ],
)
def test_types(text: str, logical: LogicalType) -> None:
    assert resolve_type(text) == logical
    assert open_reader(text) is not None


@pytest.mark.parametrize(
    "text",
    ["", "mood", "shop.mood", "_", "[]", "int[][][][][][][]", "enum()", "enum('a',)", "enum('a')x",
     "numeric(x)", "numeric(10,2", "x" * 100_000, "_" * 2_000, "int" + "[]" * 900],
)  # fmt: skip
def test_unknown_types(text: str) -> None:
    assert resolve_type(text) is None
    assert open_reader(text) is None


def test_domains_and_enums_of_a_database() -> None:
    own = domain_map("shop-types", {"email": "varchar(80)", "Mood": "enum('sad', 'ok')"})
    assert own.overrides == POSTGRESQL.name
    assert own.resolve("EMAIL") == types.Text()
    assert own.resolve("mood[]") == types.Array(types.Enum(("sad", "ok")))
    assert own.open_reader is not None
    read = own.open_reader("mood[]")
    assert read is not None
    assert read("{sad,NULL}") == ["sad", None]
    assert own.resolve("integer") is None
    with pytest.raises(ValueError, match="price: the base type 'acme' is unknown"):
        domain_map("bad", {"price": "acme"})


def test_the_map_is_installed() -> None:
    found = default_registry().get_type_map("postgresql")
    assert found("numeric(10,2)[]") == types.Array(types.Decimal(10, 2))
    assert found("acme") == types.Unknown("acme")
    assert found.find("boolean") == (types.Bool(), POSTGRESQL)
    assert found.find("acme") == (types.Unknown("acme"), None)
    # MySQL's values are read by their logical type.
    _, mysql = default_registry().get_type_map("mysql").find("int")
    assert mysql is not None
    assert mysql.open_reader is None
