"""The value that MySQL stores for a column's DEFAULT, as its text."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from cdcfmt_mysql.column_type import NUMBER_BASES, TEXT_BASES, ColumnType
from cdcfmt_mysql.lexemes import Lexeme
from cdcfmt_mysql.statement_reader import StatementReader

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)").fullmatch
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch
_PLAIN: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?").fullmatch
_YEAR: Final = re.compile(r"19[0-9]{2}|20[0-9]{2}|21[0-4][0-9]|215[0-5]").fullmatch
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_TIME: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?: [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.([0-9]{1,6}))?)?"
).fullmatch
_WORDS: Final = {"TRUE": "1", "FALSE": "0"}
_INTEGERS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}


def implicit_value(type_: ColumnType) -> str | None:
    """The value of a NOT NULL column without a DEFAULT in rows from before it."""
    if type_.base in NUMBER_BASES or type_.base == "year":
        return "0"
    if type_.base in TEXT_BASES or type_.base == "set":
        return ""
    return type_.elements[0].rstrip(" ") if type_.base == "enum" and type_.elements else None


def default_text(reader: StatementReader, type_: ColumnType, value: list[Lexeme]) -> str | None:
    """The text of the stored value, for lexemes that begin behind DEFAULT.

    None if the value is not constant, or MySQL, MariaDB or TiDB may store another one.
    """
    if not value or not type_.well_formed:
        return None
    first = value[0]
    if first.upper:
        text = _WORDS.get(first.upper)
        return None if text is None or type_.base not in NUMBER_BASES else _number(text, type_)
    if first.kind == "string":
        source = reader.source(first)
        # Not b'1' or x'41'; strings side by side are one, and a backslash depends on sql_mode.
        is_plain = source[0] in "'\"" and "\\" not in source
        if not is_plain or [lexeme.kind for lexeme in value[1:2]] == ["string"]:
            return None
        return _stored(first.text, type_)
    sign = first.text if first.text in ("-", "+") else ""
    text = sign + (value[1].text if sign and len(value) > 1 else first.text)
    if type_.base in NUMBER_BASES or type_.base == "year":
        return _stored(text, type_)
    return _stored(text, type_) if type_.base in TEXT_BASES and _PLAIN(text) else None


def _stored(text: str, type_: ColumnType) -> str | None:
    if type_.base in NUMBER_BASES:
        return _number(text, type_)
    if type_.base in TEXT_BASES:
        length = type_.params[0] if type_.params else 1 if type_.base == "char" else None
        text = text.rstrip(" ") if type_.base == "char" else text
        return text if length is None or len(text) <= length else None
    if type_.base == "enum":
        return text if text in (type_.elements or ()) else None
    if type_.base == "set":
        members = text.split(",") if text else []
        names = type_.elements or ()
        known = [name for name in names if name in members]
        return ",".join(known) if {*members} <= {*names} else None
    if type_.base == "year":
        return text if _YEAR(text) else None
    if type_.base == "date":
        return text if _DATE(text) else None
    if type_.base in ("datetime", "timestamp"):
        match = _TIME(text)
        digits = type_.params[0] if type_.params else 0
        return text if match and len(match[1] or "") <= digits else None
    return text


def _number(text: str, type_: ColumnType) -> str | None:
    if type_.base in ("float", "double"):
        # With digits, as in float(7,3), the number is rounded.
        is_known = _FLOAT(text) and not type_.params and not (type_.unsigned and "-" in text)
        return text if is_known else None
    if not _NUMBER(text):
        return None
    number, scale = Decimal(text), 0
    if type_.base == "decimal":
        precision, scale = (*type_.params, 0)[:2] if any(type_.params) else (10, 0)
        if precision > 38:
            return None
        high = Decimal((0, (9,) * precision, -scale))
        low = -high
    else:
        bits = _INTEGERS[type_.base]
        low, high = Decimal(-(1 << bits - 1)), Decimal((1 << bits - 1) - 1)
        if type_.unsigned:
            high = Decimal((1 << bits) - 1)
    low = Decimal(0) if type_.unsigned else low
    if not low - 1 < number < high + 1:
        return None
    rounded = number.quantize(Decimal((0, (1,), -scale)), ROUND_HALF_UP)
    return format(rounded, "f") if low <= rounded <= high else None
