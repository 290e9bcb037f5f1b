"""A column's type and the parser of its values, from type code and flags.

Source: TiCDC Open Protocol, "Column type code" and "Column flags".  What differs from the
JSON values of other formats:

- TEXT and BLOB (249 to 252) are base64.
- CHAR and VARCHAR (15, 253, 254) are text; BINARY and VARBINARY, which the BinaryFlag tells
  apart, are Go-quoted.
- Messages without flags (of old versions) leave open what is text and what bytes, and
  whether integers are signed: the former stay as they are, the latter get a wider type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import tzinfo
from typing import Any, Final, TypeAlias

from cdcfmt_core import DecoderContext
from cdcfmt_core.caches import Cache, parsers_size
from cdcfmt_core.events import Column
from cdcfmt_core.mysql import (
    BINARY_FLAG,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    TEXT_OR_BINARY_CODES,
    flag_names,
    json_value_parser,
    logical_from_code,
    source_type_from_code,
    text_parser,
)
from cdcfmt_core.schemas.statements import refined_type
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.value_readers import TEXT_READERS
from cdcfmt_core.types import Binary, LogicalType, Text, Unknown

ParseValue: TypeAlias = Callable[[Any], Any]
Parsers: TypeAlias = tuple[ParseValue, ParseValue]
"""For text, and for any other JSON value but null; both raise ValueError."""

_BASE64_CODES: Final = frozenset({249, 250, 251, 252})
_GEOMETRY: Final = 255


class ColumnTypes:
    """Types and parsers by type code and flags: the same for all tables."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context
        self._parsers: Cache[tuple[int, int | None, LogicalType], Parsers] = Cache(8 << 20)

    def column(
        self,
        name: str,
        code: int,
        flags: int | None,
        handle: bool | None,
        exact: Column | None = None,
    ) -> Column:
        """The column; it is part of the key where ``h`` or the HandleKeyFlag says so.

        ``exact`` is what DDL says of it.
        """
        if flags is None:
            return Column(name, *self._type(code, flags), key=bool(handle))
        source_type, logical = self._type(code, flags)
        if not isinstance(logical, Unknown):
            resolve = self._context.resolve_type
            source_type, logical = refined_type(source_type, logical, exact, resolve)
        return Column(
            name,
            source_type,
            logical,
            nullable=bool(flags & NULLABLE_FLAG),
            key=bool(handle or flags & HANDLE_KEY_FLAG),
            flags=flag_names(flags),
        )

    def parsers(self, code: int, flags: int | None, column: Column) -> Parsers:
        """Those of a column."""
        key = code, flags, column.type
        found = self._parsers.get(key)
        if found is None:
            zone, counts = self._context.time_zone, self._context.counts
            found = make_parsers(column.type, code, flags, time_zone=zone, counts=counts)
            self._parsers.add(key, found, parsers_size(column.source_type))
        return found

    def _type(self, code: int, flags: int | None) -> tuple[str, LogicalType]:
        source_type = source_type_from_code(code, flags)
        # How TiCDC would write a geometry, which TiDB does not have, nobody knows.
        if code == _GEOMETRY:
            return source_type, Unknown(source_type)
        logical = logical_from_code(code, flags)
        # A type map knows texts, not codes, and has nothing to say where the text is not
        # the whole type.
        if flags is not None and not isinstance(logical, Unknown):
            logical = self._context.resolve_type(source_type)
        return source_type, logical


def make_parsers(
    logical: LogicalType,
    code: int,
    flags: int | None,
    *,
    time_zone: tzinfo,
    counts: Counter[str],
) -> Parsers:
    """The parsers of a column of this type, which code and flags, or a type map, told."""
    parse_text = text_parser(logical, time_zone=time_zone, counts=counts)
    parse_other = json_value_parser(logical, time_zone=time_zone, counts=counts)
    if not is_encoded(code, flags):
        return parse_text, parse_other
    binary = bool((flags or 0) & BINARY_FLAG)
    encoding = _ENCODINGS[code in _BASE64_CODES, binary]
    read: ParseValue = TEXT_READERS.get(encoding.name, str)
    if isinstance(logical, Binary if binary else Text):
        return read, _refuse
    # A type map may know better what is in a column.
    if binary:
        return (lambda value: parse_text(_text(read(value)))), _refuse
    return (lambda value: parse_text(read(value))), _refuse


def encoding_of(logical: LogicalType, code: int, flags: int | None) -> Encoding | None:
    """How the values of a column are written; None where a type map knows better what they are."""
    if not is_encoded(code, flags):
        return Encoding("mysql-json")
    binary = bool((flags or 0) & BINARY_FLAG)
    if not isinstance(logical, Binary if binary else Text):
        return None
    return _ENCODINGS[code in _BASE64_CODES, binary]


def is_encoded(code: int, flags: int | None) -> bool:
    """Whether a column's texts are written in a way that its code and flags tell."""
    return code in TEXT_OR_BINARY_CODES and flags is not None


def _refuse(value: object) -> object:
    raise ValueError("is not text")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


_ENCODINGS: Final = {
    (False, False): Encoding("mysql-text"),
    (False, True): Encoding("go-quoted"),
    (True, False): Encoding("base64-text"),
    (True, True): Encoding("base64"),
}
"""By whether it is base64, and whether it is binary."""
