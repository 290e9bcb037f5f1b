"""Logical column types: the closed set that every codec speaks (docs/events.md).

A codec turns wire types into these, an engine turns these into its own; neither sees
the other.  ``None`` for a parameter means that the wire did not send it: it is unknown
and never guessed (TiCDC's plain canal-json says ``decimal``, not ``decimal(10,4)``).

What a value of each type is in Python stands beside the type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import attrs

MAX_TIMESTAMP = 253_402_300_799_999_999
"""The end of the year 9999, in microseconds: the last that Python's and Spark's timestamps show."""
MIN_TIMESTAMP = -62_135_596_800_000_000
"""The beginning of the year 1, the first that they show."""


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
    """``float``; 32 bits are rounded to binary32 where they are stored so."""

    bits: int


@attrs.frozen
class Decimal:
    """``decimal.Decimal`` with up to 65 digits."""

    precision: int | None = None
    scale: int | None = None


@attrs.frozen
class Text:
    """``str``; bytes that its charset cannot decode are lone surrogates (surrogateescape)."""

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
    """``str`` (the name) where wire or schema have it, else ``int`` (the index, 0 = invalid)."""

    names: tuple[str, ...] | None = None


@attrs.frozen
class Set:
    """``str`` (names joined by commas) where they are known, else ``int`` (the bitmap)."""

    names: tuple[str, ...] | None = None


@attrs.frozen
class Json:
    """``str``: the JSON text as the source printed it."""


@attrs.frozen
class Vector:
    """``list[float]``."""


@attrs.frozen
class Geometry:
    """:class:`GeometryValue`."""


@attrs.frozen
class Unknown:
    """The JSON value of the wire as it stands: never a guess from its looks."""

    source_type: str = ""


LogicalType: TypeAlias = (
    Bool
    | Int
    | Float
    | Decimal
    | Text
    | Binary
    | Bit
    | Date
    | DateTime
    | Timestamp
    | Time
    | Year
    | Enum
    | Set
    | Json
    | Vector
    | Geometry
    | Unknown
)


class GeometryValue(NamedTuple):
    """A geometry: well-known binary, or well-known text where the wire sends that."""

    srid: int | None
    wkb: bytes | None
    wkt: str | None = None


class InvalidValue(NamedTuple):
    """A value that the source holds and Python's type cannot (``0000-00-00``, NaN decimals).

    It travels in an image in place of the value, and the reader's ``invalidValues``
    option decides what becomes of it.  ``text`` is the value as the wire wrote it.
    """

    text: str


@attrs.frozen
class TypeMap:
    """Source type text → logical type, for one dialect.

    ``resolve`` gets the source's type text (``decimal(10,4) unsigned``) and returns the
    logical type, or None for what it does not know.  A map with ``overrides`` stands in
    for the map of that name, and what it answers with None the overridden one answers.
    """

    name: str
    resolve: Callable[[str], LogicalType | None]
    summary: str = ""
    overrides: str | None = None


_SURROGATE = re.compile("[\ud800-\udfff]")


def is_lossless_text(value: Any) -> bool:
    """Whether a ``str`` holds only whole characters (no surrogate of an undecodable byte)."""
    # Encoding it would copy it.
    return value.isascii() or _SURROGATE.search(value) is None
