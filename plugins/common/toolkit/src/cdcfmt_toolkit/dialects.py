"""Values in the text of their database, which the type map in use reads (``open_reader``)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from decimal import Decimal
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

from cdcfmt_core.codec import DecoderContext
from cdcfmt_core.errors import INTERRUPTIONS, describe, show
from cdcfmt_core.events import Column
from cdcfmt_core.plugins import ResolvedTypes
from cdcfmt_core.types import LogicalType, Text, TypeMap, storage_of
from cdcfmt_mysql.json_values import InexactNumber
from cdcfmt_mysql.temporal import instant_finder
from cdcfmt_mysql.text import NO_TEXT
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.images import ReadValue
from cdcfmt_toolkit.value_checks import value_check
from cdcfmt_toolkit.value_readers import value_reader

ResolveType: TypeAlias = Callable[[str], LogicalType]

SOURCE_TEXTS: Final = frozenset(
    {
        *("mysql-text", "mysql-json", "dialect-text"),
        *("base64-text", "zoned-text", "detected-bytes"),
    }
)
"""Value encodings with the source's own text."""


def reads_text(encoding: Encoding, column: Column, resolve_type: ResolveType) -> bool:
    """Whether the type map reads a column in this encoding; the encoding is then dialect-text."""
    return (
        encoding.name in SOURCE_TEXTS and _open(column, _map_of(column, resolve_type)) is not None
    )


def column_reader(encoding: Encoding, column: Column, context: DecoderContext) -> ReadValue:
    """The reader of a column's values other than NULL; the source's text is read by the type map.

    :raises ValueError: for zoned and guessed encodings, which have no reader.
    """
    open_value = partial(value_reader, time_zone=context.time_zone, counts=context.counts)
    if encoding.name in SOURCE_TEXTS:
        read = dialect_reader(column, context)
        if read is not None and encoding.name == "base64-text":
            unwrap = open_value(encoding, Text())
            return lambda value: read(unwrap(value))
        if read is not None:
            return read
    if encoding.name == "dialect-text":
        encoding = Encoding("mysql-json")
    return open_value(encoding, column.type)


def dialect_reader(
    column: Column, context: DecoderContext, time_zone: tzinfo | None = None
) -> ReadValue | None:
    """The reader that the type map in use has for a column's text; None if it is like MySQL's.

    It also reads JSON numbers and booleans, as their text.  For a type that MySQL's text lacks, a
    map without a reader gives one that refuses every value.

    :param time_zone: of a Timestamp that the type map returns without a zone; by default the
        source's.
    """
    type_map = _map_of(column, context.resolve_type)
    read = _open(column, type_map)
    if read is None and not isinstance(column.type, NO_TEXT):
        return None
    owner = "the type map" if type_map is None else f"type map {type_map.name!r}"
    name = f"{owner} for {show(column.source_type)}"
    if read is None:
        return _refuser(
            f"there is no reader of {name}, and MySQL's text has no {column.type}: return one from "
            "open_reader of the type map, or set typeMap to another type map"
        )
    locate = instant_finder(time_zone or context.time_zone, context.counts)
    check = value_check(column.type, lambda clock: locate(str(clock), clock))

    def read_text(value: Any) -> object:
        text = value if type(value) is str else _text_of(value)
        try:
            found = read(text)
        except INTERRUPTIONS:
            raise
        except BaseException as error:
            if isinstance(error, ValueError) and str(error):
                raise
            raise ValueError(f"the reader of {name} failed: {describe(error)}") from error
        if found is None:
            raise ValueError(f"the reader of {name} returned None for text that is not NULL")
        try:
            return check(found)
        except ValueError as error:
            raise ValueError(f"the reader of {name} returned a wrong value: {error}") from None

    return read_text


def _text_of(value: Any) -> str:
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) in (int, Decimal):
        return f"{value:f}" if type(value) is Decimal else str(value)
    if type(value) is float:
        raise InexactNumber
    raise ValueError("is not text")


def _map_of(column: Column, resolve_type: ResolveType) -> TypeMap | None:
    """The type map that has resolved the column's type text, or None."""
    if not isinstance(resolve_type, ResolvedTypes) or not column.source_type:
        return None
    logical, type_map = resolve_type.find(column.source_type)
    # Another type has another origin, such as a type code.
    return type_map if type(storage_of(logical)) is type(column.type) else None


def _open(column: Column, type_map: TypeMap | None) -> Callable[[str], object] | None:
    """The type map's own reader of a column; None if it has none.

    If the map fails, the reader raises the ValueError that says so.
    """
    if type_map is None or type_map.open_reader is None:
        return None
    name, text = f"open_reader of type map {type_map.name!r}", show(column.source_type)
    try:
        read = type_map.open_reader(column.source_type)
    except INTERRUPTIONS:
        raise
    except BaseException as error:
        return _refuser(f"{name} failed for {text}: {describe(error)}")
    if read is not None and not callable(read):
        return _refuser(f"{name} returned {show(read)} for {text}, not a function or None")
    return read


def _refuser(reason: str) -> Callable[[Any], NoReturn]:
    def refuse(value: Any) -> NoReturn:
        raise ValueError(reason)

    return refuse
