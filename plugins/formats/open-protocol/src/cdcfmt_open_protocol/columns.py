"""Column types and value readers, by type code and flags.

Source: TiCDC Open Protocol, "Column type code" and "Column flags".  Differences from the JSON
values of other formats:

- TEXT and BLOB (249 to 252) are base64.
- CHAR and VARCHAR (15, 253, 254) are text; BINARY and VARBINARY, which have the BinaryFlag,
  are Go-quoted.
- Messages of old versions have no flags, so text and bytes cannot be distinguished, nor signed
  and unsigned integers: the former stay unchanged, the latter get a wider type.
"""

from __future__ import annotations

from typing import Final

from cdcfmt_core import DecoderContext
from cdcfmt_core.events import Column
from cdcfmt_core.types import Binary, LogicalType, Text, Unknown, storage_of
from cdcfmt_mysql.codes import (
    BINARY_FLAG,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    TEXT_OR_BINARY_CODES,
    flag_names,
    logical_from_code,
    source_type_from_code,
)
from cdcfmt_mysql.statement_tables import refined_type
from cdcfmt_open_protocol.message import BASE64_CODES
from cdcfmt_toolkit.dialects import column_reader
from cdcfmt_toolkit.encodings import Encoding, bounded
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.value_readers import value_reader

_GEOMETRY: Final = 255


class ColumnTypes:
    """Types and readers by type code and flags, for all tables."""

    def __init__(self, context: DecoderContext) -> None:
        self._context = context

    def column(
        self,
        name: str,
        code: int,
        flags: int | None,
        handle: bool | None,
        exact: Column | None = None,
    ) -> Column:
        """The column; ``h`` or the HandleKeyFlag makes it part of the key.

        ``exact`` is the column according to DDL.
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

    def reader(self, column: Column, code: int, flags: int | None) -> ReadValue:
        context = self._context
        encoding = encoding_of(column.type, code, flags)
        if encoding is not None:
            return column_reader(bounded(encoding, column), column, context)
        # If a type map gives a type other than text or bytes, its reader reads the text.
        binary = bool((flags or 0) & BINARY_FLAG)
        encoding = _ENCODINGS[code in BASE64_CODES, binary]
        of_wire: ReadValue = value_reader(
            encoding,
            Binary() if binary else Text(),
            time_zone=context.time_zone,
            counts=context.counts,
        )
        of_text = column_reader(Encoding("mysql-text"), column, context)
        if binary:
            return lambda value: of_text(of_wire(value).decode("utf-8", "surrogateescape"))
        return lambda value: of_text(of_wire(value))

    def _type(self, code: int, flags: int | None) -> tuple[str, LogicalType]:
        source_type = source_type_from_code(code, flags)
        # TiDB has no geometries, so their form in this format is unknown.
        if code == _GEOMETRY:
            return source_type, Unknown(source_type)
        logical = logical_from_code(code, flags)
        # A type map takes type texts, not codes, so it is not used if the text is not the
        # complete type.
        if flags is not None and not isinstance(logical, Unknown):
            logical = self._context.resolve_type(source_type)
        return source_type, logical


def encoding_of(logical: LogicalType, code: int, flags: int | None) -> Encoding | None:
    """The value encoding of a column; None if a type map gives another type."""
    if code not in TEXT_OR_BINARY_CODES or flags is None:
        return Encoding("mysql-json")
    binary = bool(flags & BINARY_FLAG)
    if not isinstance(storage_of(logical), Binary if binary else Text):
        return None
    return _ENCODINGS[code in BASE64_CODES, binary]


_ENCODINGS: Final = {
    (False, False): Encoding("mysql-text"),
    (False, True): Encoding("go-quoted"),
    (True, False): Encoding("base64-text"),
    (True, True): Encoding("base64"),
}
"""Value encodings by (is base64, is binary)."""
