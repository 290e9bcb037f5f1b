"""PostgreSQL's texts as Python values, for the truth of golden sets."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import attrs

from cdcfmt_core.types import GeometryValue, IntervalValue, InvalidValue
from support.golden_data import Bits

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MONTH = timedelta(days=30.4375)
_DATES = {
    "infinity": (-622191234, "+292278994-08-16"),
    "0044-03-15 BC": (-735160, "-0043-03-15"),
    "10000-01-01": (2932897, "+10000-01-01"),
}
"""Items of date[] that Python's dates do not have, as days and as isostring."""


@attrs.frozen
class Beyond:
    """A date or time that Python's types do not have; an image has an InvalidValue."""

    text: str


def postgres_value(
    column: Mapping[str, Any], true: Mapping[str, Any] | None, *, given: bool = False
) -> Any:
    """A true value as an image holds it; texts of other types are unchanged.

    ``given``: see :class:`Settings`; then bit(1) is a number, too.
    """
    if true is None:
        return None
    kind, text = true["t"], true["v"]
    if "hex" in true:
        return Bits(true["hex"], text)
    if kind == "int":
        return int(text)
    if kind == "decimal":
        return Decimal(text)
    if kind == "money":
        return Decimal(re.sub(r"[$,]", "", text))
    if kind == "bool":
        return text == "t"
    if kind == "bytes":
        return bytes.fromhex(text)
    if kind == "bits":
        is_bool = column["type"] == "bit(1)" and not given
        return text == "1" if is_bool else int(text or "0", 2)
    if kind in ("date", "timestamp", "timestamptz"):
        return _calendar(kind, text)
    if kind == "time":
        return _time(text)
    return UUID(text) if kind == "uuid" else text


def _time(text: str) -> timedelta:
    hours, minutes, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    return timedelta(
        hours=int(hours),
        minutes=int(minutes),
        seconds=int(whole),
        microseconds=int(fraction.ljust(6, "0")),
    )


def _calendar(kind: str, text: str) -> Any:
    try:
        if kind == "date":
            return date.fromisoformat(text)
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if kind == "timestamptz" else parsed
    except (ValueError, OverflowError):
        return Beyond(text)


# --- Values whose form depends on settings ----------------------------------------------


@attrs.frozen
class Settings:
    """The settings of connector and converter that change these values, as the properties name
    them.

    - ``defaults``: of columns, instead of NULL
    - ``given``: messages have no schema, and types are from the option ``tableSchemas``
    """

    time: str = "adaptive"
    decimal: str = "precise"
    interval: str = "numeric"
    hstore: str = "json"
    snapshot: str = "initial"
    defaults: bool = True
    decimal_format: str = "BASE64"
    binary: str = "bytes"
    given: bool = False


WIRE_TYPES = frozenset({"array", "hstore", "interval", "timetz", "point", "geometry", "geography"})


_GEOMETRIC = {"box", "circle", "line", "lseg", "path", "polygon"}
UNKNOWN_TYPES = frozenset(
    _GEOMETRIC | {"addr", "pg_lsn", "int4multirange", "regclass", "tsquery", "xid8"}
)
"""Types that are sent with include.unknown.datatypes alone, as bytes of their texts."""


def wire_value(type_: str, text: str, settings: Settings) -> Any:
    """A true value of :data:`WIRE_TYPES`, :data:`UNKNOWN_TYPES` or bit varying."""
    if type_.endswith("[]"):
        return [
            None if item is None else _item(type_.removesuffix("[]"), item, settings)
            for item in array_items(text)
        ]
    base = type_.partition("(")[0]
    if base == "hstore":
        return _hstore(text, settings)
    if base in _GEOMETRIC:
        # The text of the JDBC driver.
        text = re.sub(r"-?[0-9][0-9.]*", lambda n: repr(float(n[0])), text)
    if base in UNKNOWN_TYPES:
        data = text.encode()
        return data if settings.binary == "bytes" else text_of_bytes(data, settings)
    if base == "interval":
        return _interval(text, settings)
    if type_.startswith("time") and type_.endswith("with time zone"):
        return _zoned_time(text)
    if base == "point":
        return GeometryValue(0, struct.pack("<BIdd", 1, 1, *map(float, text[1:-1].split(","))))
    if base in ("geometry", "geography"):
        return _geometry(bytes.fromhex(text))
    if base == "bit varying":
        # Leading zeros are lost; without a length, the number may be any.
        number = int(text or "0", 2)
        if "(" in type_:
            return number
        return number.to_bytes((number.bit_length() + 7) // 8, "little")
    raise AssertionError(type_)


def text_of_bytes(data: bytes, settings: Settings) -> str:
    return data.hex() if settings.binary == "hex" else base64.b64encode(data).decode()


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|([^",{}]+)', re.DOTALL)


def array_items(text: str) -> list[str | None]:
    """The items of an array of one dimension."""
    return [
        None
        if quoted is None and bare == "NULL"
        else _unescaped(quoted)
        if quoted is not None
        else bare
        for quoted, bare in ((found[1], found[2]) for found in _QUOTED.finditer(text[1:-1]))
    ]


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _item(type_: str, text: str, settings: Settings) -> Any:
    """An item of an array, of the logical type that a column would have."""
    base = type_.partition("(")[0]
    if base in ("smallint", "integer", "bigint", "oid"):
        return int(text)
    if base == "boolean":
        return text == "t"
    if base in ("real", "double precision"):
        return _bits(text, ">f" if base == "real" else ">d")
    if base == "numeric":
        return _numeric(type_, text, settings)
    if base == "bytea":
        data = bytes.fromhex(text.removeprefix("\\x"))
        is_text = settings.binary != "bytes" and not settings.given
        return text_of_bytes(data, settings) if is_text else data
    if base == "date":
        return _day(text, settings)
    if type_.startswith("timestamp"):
        return _moment(type_, text, settings)
    if type_ == "time without time zone":
        # Items of arrays have milliseconds in every mode.
        return timedelta(milliseconds=_time(text) // timedelta(milliseconds=1))
    if type_ == "time with time zone":
        return _zoned_time(text.partition(".")[0] + re.sub(r"^[^+-]*", "", text))
    if base == "hstore":
        return _hstore(text, settings)
    return UUID(text) if base == "uuid" else text


def _bits(text: str, packing: str) -> Bits:
    return Bits(struct.pack(packing, float(text)).hex(), text)


def _numeric(type_: str, text: str, settings: Settings) -> Any:
    value = Decimal(text)
    if settings.given and settings.decimal == "string":
        return value
    if settings.given and settings.decimal == "double":
        # Java writes 1.0E30.
        shortest = Decimal(re.sub(r"^(-?\d+)e", r"\1.0e", repr(float(text))))
        return shortest.quantize(value) if "(" in type_ else shortest
    if settings.decimal == "string":
        return text
    if settings.decimal == "double":
        return _bits(text, ">d")
    if "(" in type_:
        return value
    # Without zeros at the end of the fraction.
    scale = len(f"{value:f}".partition(".")[2].rstrip("0"))
    return value.quantize(Decimal(1).scaleb(-scale), context=Context(prec=400))


def _day(text: str, settings: Settings) -> Any:
    known = _DATES.get(text)
    if known is None:
        return date.fromisoformat(text)
    days, iso = known
    return InvalidValue(iso if settings.time == "isostring" else str(days))


def _moment(type_: str, text: str, settings: Settings) -> Any:
    if type_.endswith("with time zone"):
        return datetime.fromisoformat(text).astimezone(UTC)
    value = datetime.fromisoformat(text)
    if settings.time != "connect":
        return value
    return value - timedelta(microseconds=value.microsecond % 1000)


def _zoned_time(text: str) -> time:
    """The connector writes all in UTC."""
    found = re.fullmatch(r"([0-9:]+(?:\.[0-9]+)?)([+-])([0-9]+)(?::([0-9]+))?", text)
    assert found is not None, text
    offset = timedelta(hours=int(found[3]), minutes=int(found[4] or 0))
    clock = _EPOCH + _time(found[1]) - (offset if found[2] == "+" else -offset)
    return clock.time().replace(tzinfo=UTC)


_UNITS = {"year": 12, "mon": 1}


def _interval(text: str, settings: Settings) -> IntervalValue:
    months, days, clock = 0, 0, timedelta(0)
    for number, unit in re.findall(r"([+-]?[0-9]+) (year|mon|day)s?", text):
        if unit == "day":
            days = int(number)
        else:
            months += int(number) * _UNITS[unit]
    found = re.search(r"([+-]?)([0-9]+:[0-9:.]+)", text)
    if found is not None:
        clock = _time(found[2]) * (-1 if found[1] == "-" else 1)
    if settings.interval == "numeric":
        whole = months * _MONTH + timedelta(days=days) + clock
        return IntervalValue(0, 0, whole // _MICROSECOND)
    return IntervalValue(months, days, clock // _MICROSECOND)


def _hstore(text: str, settings: Settings) -> Any:
    pairs = {
        _unescaped(key): None if null else _unescaped(value)
        for key, value, null in re.findall(
            r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|(NULL))', text, re.DOTALL
        )
    }
    if settings.hstore == "map" or settings.given:
        return pairs
    return json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))


def _geometry(data: bytes) -> GeometryValue:
    """The server prints little-endian EWKB, with the SRID where there is one."""
    kind, srid = struct.unpack_from("<II", data, 1) if len(data) > 8 else (0, 0)
    return GeometryValue(srid if kind & 0x2000_0000 else 0, data)
