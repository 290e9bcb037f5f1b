"""Logical column types: the closed set that all codecs use (docs/events.md).

A codec maps wire types to these, an engine maps these to its own; neither sees the other.
``None`` for a parameter means that it was not sent: it is unknown and never guessed
(some wires say ``decimal``, not ``decimal(10,4)``).

The docstring of each type gives the Python type of its values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import attrs

MAX_TIMESTAMP = 253_402_300_799_999_999
"""The end of the year 9999, in microseconds: the largest timestamp of Python."""
MIN_TIMESTAMP = -62_135_596_800_000_000
"""The start of the year 1, in microseconds: its smallest timestamp."""


@attrs.frozen
class Bool:
    """``bool``."""


@attrs.frozen
class Int:
    """``int`` of ``bits`` bits (8, 16, 24, 32, 64)."""

    bits: int
    signed: bool = True

    @property
    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest value."""
        if self.signed:
            half = 1 << (self.bits - 1)
            return -half, half - 1
        return 0, (1 << self.bits) - 1


@attrs.frozen
class Float:
    """``float``; with 32 bits, rounded to binary32 if it is stored so."""

    bits: int


@attrs.frozen
class Decimal:
    """``decimal.Decimal`` of any number of digits (MySQL: 65, PostgreSQL: 147 455)."""

    precision: int | None = None
    scale: int | None = None


@attrs.frozen
class Text:
    """``str``; undecodable bytes become lone surrogates (surrogateescape)."""

    charset: str | None = None


@attrs.frozen
class Binary:
    """``bytes``."""


@attrs.frozen
class Bit:
    """``int``, unsigned, of ``bits`` bits (1 to 64)."""

    bits: int | None = None


@attrs.frozen
class Date:
    """``datetime.date``."""


@attrs.frozen
class DateTime:
    """Wall clock: naive ``datetime.datetime``."""

    fsp: int | None = None


@attrs.frozen
class Timestamp:
    """An instant: ``datetime.datetime`` in UTC."""

    fsp: int | None = None


@attrs.frozen
class Time:
    """``datetime.timedelta``, within ±838:59:59."""

    fsp: int | None = None


@attrs.frozen
class Year:
    """``int``."""


@attrs.frozen
class Enum:
    """``str`` (the name) if message or schema has it, else ``int`` (the index, 0 = invalid)."""

    names: tuple[str, ...] | None = None


@attrs.frozen
class Set:
    """``str`` (names joined by commas) if they are known, else ``int`` (the bitmap)."""

    names: tuple[str, ...] | None = None


@attrs.frozen
class Json:
    """``str``: the JSON text as the source printed it."""


@attrs.frozen
class Vector:
    """``list[float]``; ``bits`` of each number: 32 or 64."""

    bits: int = 32


@attrs.frozen
class Geometry:
    """:class:`GeometryValue`."""


@attrs.frozen
class Uuid:
    """``uuid.UUID``."""


@attrs.frozen
class Interval:
    """:class:`IntervalValue`, with 0 for the parts that are False here."""

    months: bool = True
    days: bool = True
    micros: bool = True


@attrs.frozen
class TimeTz:
    """``datetime.time`` with a UTC offset."""

    fsp: int | None = None


@attrs.frozen
class Array:
    """``list`` of the element's values, and None."""

    element: LogicalType


@attrs.frozen
class Struct:
    """``dict`` from the names of fields to their values, and None; all fields are in it."""

    fields: tuple[tuple[str, LogicalType], ...]


@attrs.frozen
class Map:
    """``dict`` from values of the key's type, never None, to values, and None."""

    key: LogicalType
    value: LogicalType


@attrs.frozen
class Unknown:
    """The unchanged JSON value of the wire; its type is never guessed."""

    source_type: str = ""


@attrs.frozen
class Extension:
    """The values of ``storage``, under a name of its author: a type that this set lacks.

    A column has both apart: its ``extension`` and its ``type`` (:class:`~.events.Column`).
    """

    name: str
    storage: LogicalType


_Number: TypeAlias = Bool | Int | Float | Decimal | Bit | Year
_Text: TypeAlias = Text | Binary | Enum | Set | Json | Vector | Geometry | Uuid
_Clock: TypeAlias = Date | DateTime | Timestamp | Time | TimeTz | Interval
_Nested: TypeAlias = Array | Struct | Map
LogicalType: TypeAlias = _Number | _Text | _Clock | _Nested | Unknown | Extension


def storage_of(logical: LogicalType) -> LogicalType:
    """The type without extensions, also inside arrays, structs and maps."""
    if isinstance(logical, Extension):
        return storage_of(logical.storage)
    if isinstance(logical, Array):
        return Array(storage_of(logical.element))
    if isinstance(logical, Struct):
        return Struct(tuple((name, storage_of(each)) for name, each in logical.fields))
    if isinstance(logical, Map):
        return Map(storage_of(logical.key), storage_of(logical.value))
    return logical


class GeometryValue(NamedTuple):
    """A geometry as well-known binary, or well-known text if the wire sends that."""

    srid: int | None
    wkb: bytes | None
    wkt: str | None = None


class IntervalValue(NamedTuple):
    """Months, days and microseconds, each with its sign: none is a number of another."""

    months: int
    days: int
    micros: int


class InvalidValue(NamedTuple):
    """A source value that Python's type cannot hold (``0000-00-00``, NaN decimals).

    It takes the value's place in an image; the reader's ``invalidValues`` option decides how to
    handle it.  ``text``: the value as the wire wrote it.
    """

    text: str


@attrs.frozen
class TypeMap:
    """Source type text → logical type, and its reader of text, for one dialect.

    - ``resolve``: takes the source's type text (``decimal(10,4) unsigned``) and returns the
      logical type, or None if it does not know the type.
    - ``open_reader``: takes a type text that ``resolve`` knows, and returns a reader of its values'
      text (ValueError for bad ones); None for text like MySQL's.
    - ``overrides``: the name of another map, which this map is asked before.
    """

    name: str
    resolve: Callable[[str], LogicalType | None]
    summary: str = ""
    overrides: str | None = None
    open_reader: Callable[[str], Callable[[str], object] | None] | None = None
