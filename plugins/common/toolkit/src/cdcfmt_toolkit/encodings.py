"""Value encodings: how a column's values are encoded in messages, as data.

Readers are in :mod:`cdcfmt_toolkit.value_readers`, printers in
:mod:`cdcfmt_toolkit.value_printers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import attrs

from cdcfmt_core.events import Column
from cdcfmt_core.texts import did_you_mean
from cdcfmt_core.types import (
    Array,
    Binary,
    Bit,
    Decimal,
    Float,
    Geometry,
    Interval,
    LogicalType,
    Map,
    Struct,
    Text,
    Unknown,
    Vector,
)
from cdcfmt_mysql.column_type import binary_lengths


def one_of(names: Any) -> Callable[[object, attrs.Attribute[Any], Any], None]:
    """An attrs validator: the value is one of the names in a ``Literal``.

    A misspelt name would otherwise have the meaning of another one.
    """
    known = get_args(names)

    def check(owner: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in known:
            near = did_you_mean(str(value), known)
            raise ValueError(
                f"{type(owner).__name__}: {attribute.name} is {value!r}, not one of "
                f"{', '.join(known)}{near}"
            )

    return check


EncodingName: TypeAlias = Literal[
    "mysql-text",
    "mysql-json",
    "base64",
    "base64-text",
    "hex",
    "go-quoted",
    "detected-bytes",
    "bytes-text",
    "zoned-text",
    "text",
    "json-value",
    "json-number",
    "json-boolean",
    "iso-text",
    "iso-instant",
    "iso-duration",
    "epoch-days",
    "epoch-millis",
    "epoch-micros",
    "epoch-nanos",
    "epoch-guessed",
    "connect-decimal",
    "variable-scale-decimal",
    "guessed-decimal",
    "little-endian-bits",
    "big-endian-bits",
    "charset-text",
    "integer-text",
    "calendar-parts",
    "epoch-pair",
    "list",
    "map",
    "struct",
    "geometry",
    "dialect-text",
    "other",
]
ByteForm: TypeAlias = Literal["auto", "base64", "hex"]


@attrs.frozen
class Encoding:
    """A value encoding: how a column's values are encoded in messages.

    - ``mysql-text``: MySQL's text of the column's logical type (``cdcfmt_mysql.text``);
      binary values are zero-``padded`` to this number of bytes.  ``or_hex``: text of hexadecimal
      digits may be hexadecimal, so that only the decoder can read it.
    - ``mysql-json``: like ``mysql-text``, or a number or boolean instead of text
      (``cdcfmt_mysql.json_values``).
    - ``base64``: bytes in padded base64.
    - ``base64-text``: text in padded base64.
    - ``hex``: bytes in hexadecimal, with or without ``0x`` or PostgreSQL's ``\\x``,
      zero-``padded``.
    - ``go-quoted``: bytes as Go's ``strconv.Quote`` writes them.
    - ``detected-bytes``: bytes as Latin-1, base64 or hexadecimal, if only one of them is possible;
      a value has ``exact`` bytes, if known.
    - ``bytes-text``: bytes in base64 or hexadecimal, by ``form``; ``auto``: the only possible one.
    - ``zoned-text``: an object with a zone's name and a TIMESTAMP's text (``Layout.zoned``), or
      text in the source's own zone.
    - ``text``: unchanged text, except ``aliases``; ``json-value``: any value of an unknown type,
      numbers with all their digits.
    - ``json-number``: a number.  ``wraps``: an unsigned number sent as signed 64 bits;
      ``signless``: ``extra`` names the columns with negative values; ``doubles``: a decimal
      converted to a double, or a FLOAT that is a double in Avro; ``exponent_digits``: minimum
      number of exponent digits to write for floats.  ``json-boolean``: true or false.
    - ``iso-text``: like ``mysql-text``, with or without a final ``Z``; ``iso-instant``:
      ``2024-01-01T00:00:00.5Z``, or with a blank or an offset, ``2024-01-01 08:00:00+08``;
      ``iso-duration``: an Interval, ``P1Y2M3DT4H5M6.5S``.
    - ``epoch-days``: since 1970; ``epoch-millis``, ``epoch-micros``, ``epoch-nanos``: since 1970,
      in UTC for a TIMESTAMP, or since midnight, or of an interval; ``epoch-guessed``: in the usual
      unit, if no other unit is possible.
    - ``connect-decimal``: an integer as base64 of its big-endian bytes, with ``scale`` or the
      type's scale, or a number (``decimal.format=NUMERIC``); ``guessed-decimal``: base64 or a
      decimal's text, if only one is possible.
    - ``variable-scale-decimal``: an object of a ``scale`` and a ``value``, an integer as base64.
    - ``little-endian-bits``, ``big-endian-bits``: BIT as base64 of its bytes, lowest or highest
      first; one bit may be a boolean.
    - ``charset-text``: text as its bytes in ``charset`` (a Python codec), one character per byte.
    - ``integer-text``: an integer's text, for a decimal used because no integer type holds both
      signs.
    - ``calendar-parts``: a list of year, month, day, hour, minute, second and microsecond, some of
      them null; or text like ``mysql-text``.
    - ``epoch-pair``: a list of seconds since 1970 and microseconds.
    - ``list``: an Array or a Vector as a list of values in the encoding ``items``, or, in an Array,
      null; ``map``: a Map as an object of such values or null.
    - ``struct``: a Struct as an object of its fields, in the encodings ``fields``, or null.
    - ``geometry``: an object of ``wkb``, bytes in base64, and ``srid``, null for 0.
    - ``dialect-text``: the source's text of the column's ``source_type``, read by its type map
      (``TypeMap.open_reader``), else like ``mysql-json``; JSON numbers and booleans are text, too.
    - ``other``: none of these.  The kernel reads only NULL of these two.

    - ``longest``: the maximum number of bytes of a binary value, if known; more are an error.
    - ``noted``, ``note``: values equal to ``noted`` are counted under ``note``.
    - ``branches``: the branches of an Avro union with this encoding, by name, each with the allowed
      values of the fields next to the value.
    """

    name: EncodingName = attrs.field(validator=one_of(EncodingName))
    padded: int = 0
    or_hex: bool = False
    exact: int | None = None
    longest: int | None = None
    form: ByteForm = attrs.field(default="auto", validator=one_of(ByteForm))
    wraps: bool = False
    signless: bool = False
    doubles: bool = False
    exponent_digits: int = 1
    scale: int | None = None
    charset: str = ""
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    noted: str | bytes | int | float | bool | None = None
    note: str = ""
    branches: Mapping[str, Mapping[str, tuple[str | int, ...]]] = attrs.field(factory=dict)
    items: Encoding | None = None
    fields: Mapping[str, Encoding] = attrs.field(factory=dict)


@attrs.frozen
class EncodedPart:
    """The items of a list, the values of a map, or a field of a struct.

    - ``name``: of a field
    - ``has_nulls``: whether values may be null
    """

    name: str
    type: LogicalType
    encoding: Encoding
    has_nulls: bool = True


def parts_of(encoding: Encoding, logical: LogicalType) -> Sequence[EncodedPart]:
    """The parts of a value of this type in this encoding; empty for values without parts.

    :raises ValueError: for a type that the encoding is not for.
    """
    fits = _NESTED.get(encoding.name)
    if fits is None:
        return ()
    if not isinstance(logical, fits):
        raise ValueError(f"the value encoding {encoding.name} is not for {logical}")
    if isinstance(logical, Struct):
        fields = dict(logical.fields)
        if fields.keys() != encoding.fields.keys():
            raise ValueError(f"the value encoding {encoding.name} has not the fields of {logical}")
        return [EncodedPart(name, type_, encoding.fields[name]) for name, type_ in fields.items()]
    if encoding.items is None:
        raise ValueError(f"the value encoding {encoding.name} lacks that of its items")
    if isinstance(logical, Vector):
        return (EncodedPart("", Float(logical.bits), encoding.items, has_nulls=False),)
    assert isinstance(logical, Array | Map)
    item = logical.element if isinstance(logical, Array) else logical.value
    return (EncodedPart("", item, encoding.items),)


def described_parts(encoding: Encoding, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Described :func:`parts_of` a value, by their member in the kernel's plans."""
    if encoding.name == "struct":
        return {"fields": parts}
    return {"items" if encoding.name == "list" else "values": parts[0]}


_NESTED: Mapping[str, tuple[type[LogicalType], ...]] = {
    "list": (Array, Vector),
    "map": (Map,),
    "struct": (Struct,),
}


def bounded(encoding: Encoding, column: Column) -> Encoding:
    """The encoding with the number of bytes that a BINARY or VARBINARY has by its type."""
    if not isinstance(column.type, Binary):
        return encoding
    return attrs.evolve(encoding, longest=binary_lengths(column.source_type)[1])


Encodings: TypeAlias = Mapping[str, Encoding]
"""Encodings by column name."""

ONLY_OF: Mapping[str, type[LogicalType]] = {
    "json-value": Unknown,
    "charset-text": Text,
    "base64-text": Text,
    "little-endian-bits": Bit,
    "big-endian-bits": Bit,
    "variable-scale-decimal": Decimal,
    "geometry": Geometry,
    "iso-duration": Interval,
}
"""Encodings that the kernel reads only as this logical type."""
