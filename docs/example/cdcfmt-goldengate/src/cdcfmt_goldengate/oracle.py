"""Oracle's types and texts: the type map ``oracle``, for any format with such type texts.

Source: Oracle Database SQL Language Reference, "Data Types"; texts as GoldenGate writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final

from cdcfmt_core import TypeMap, hookimpl, types
from cdcfmt_core.types import InvalidValue, LogicalType
from cdcfmt_toolkit.wire_json import parse_base64

Read = Callable[[str], object]

_TYPE = re.compile(r"([A-Z_]+[0-9]?)\s*(?:\(([^()]{1,20})\))?\s*([A-Z ]*)(?:\([0-9]\))?[A-Z ]*")
_TEXTS: Final = frozenset(
    {
        *("CHAR", "NCHAR", "VARCHAR", "VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB", "LONG"),
        *("ROWID", "UROWID", "XMLTYPE", "INTERVAL"),
    }
)
_BINARIES: Final = frozenset({"RAW", "BLOB"})
_INTEGERS: Final = frozenset({"INTEGER", "INT", "SMALLINT"})
_MAX_DIGITS = 38
_DIGITS = re.compile(r"\*|[0-9]{1,2}")
_SCALE = re.compile(r"-?[0-9]{1,3}")
# The date, after it a blank, T or colon, the time, a fraction of up to nine digits, and a zone.
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[ T:]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?"
    r"\s?(Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])?"
)


def resolve(type_text: str) -> LogicalType | None:
    """The logical type of a type text such as ``NUMBER(10,2)``."""
    found = _TYPE.fullmatch(type_text.strip().upper())
    if found is None:
        return None
    name, parameters, zone = found[1], found[2], found[3]
    if name in _TEXTS:
        return types.Text()
    if name in _BINARIES:
        return types.Binary()
    if name in _INTEGERS:
        return types.Decimal(_MAX_DIGITS, 0)
    if name in ("NUMBER", "DECIMAL", "NUMERIC"):
        return _number(parameters)
    if name == "TIMESTAMP":
        fsp = int(parameters) if parameters and parameters.isdecimal() else 6
        # Python's times have microseconds.
        fsp = min(fsp, 6)
        return types.Timestamp(fsp) if "TIME ZONE" in zone else types.DateTime(fsp)
    plain: dict[str, LogicalType] = {
        "DATE": types.DateTime(0),
        "FLOAT": types.Decimal(),
        "BINARY_FLOAT": types.Float(32),
        "BINARY_DOUBLE": types.Float(64),
        "BOOLEAN": types.Bool(),
        "JSON": types.Json(),
    }
    return plain.get(name)


def _number(parameters: str | None) -> LogicalType | None:
    """``NUMBER`` has any scale; that of ``NUMBER(5,-2)`` is a number of hundreds."""
    if parameters is None:
        return types.Decimal()
    digits, _, scale = (part.strip() for part in parameters.partition(","))
    if not _SCALE.fullmatch(scale or "0") or not _DIGITS.fullmatch(digits):
        return None
    precision = _MAX_DIGITS if digits == "*" else int(digits)
    places = int(scale or 0)
    return types.Decimal(max(precision - min(places, 0), places), max(places, 0))


def open_reader(type_text: str) -> Read | None:
    """The reader of a type's text; None for text like MySQL's."""
    logical = resolve(type_text)
    if isinstance(logical, types.DateTime):
        return read_datetime
    if isinstance(logical, types.Timestamp):
        return read_timestamp
    return parse_base64 if isinstance(logical, types.Binary) else None


def read_datetime(text: str) -> object:
    """``1994-09-30:15:33:00`` or ``2020-10-14 11:10:04.123456789``."""
    found = _time(text)
    if isinstance(found, datetime) and found.tzinfo is not None:
        raise ValueError("has a zone")
    return found


def read_timestamp(text: str) -> object:
    """``2020-10-14 11:10:04.123456 +02:00``; a text without a zone is in the source's."""
    found = _time(text)
    if not isinstance(found, datetime) or found.tzinfo is None:
        return found
    try:
        return found.astimezone(UTC)
    except OverflowError:
        return InvalidValue(text)


def _time(text: str) -> datetime | InvalidValue:
    """A time, with the zone that its text has; InvalidValue for nanoseconds and years BC."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ValueError("is not a time of Oracle")
    day, time, fraction, zone = (part or "" for part in found.groups())
    if fraction[6:].strip("0"):
        return InvalidValue(text)
    try:
        return datetime.fromisoformat(f"{day}T{time}.{fraction[:6]:0<6}{zone}")
    except ValueError:
        return InvalidValue(text)


@hookimpl
def cdcfmt_register_type_maps() -> Iterable[TypeMap]:
    return [TypeMap("oracle", resolve, "Oracle's types", open_reader=open_reader)]
