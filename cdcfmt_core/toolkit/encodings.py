"""Value encodings: how the values of a column stand on a wire, as data.

Readers are in :mod:`cdcfmt_core.toolkit.value_readers`, printers in
:mod:`cdcfmt_core.toolkit.value_printers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from cdcfmt_core.types import Bit, LogicalType, Text, Unknown


@attrs.frozen
class Encoding:
    """A value encoding: how a column's values stand on the wire.

    - ``mysql-text``: MySQL's text of the column's logical type (``cdcfmt_core/mysql/text.py``);
      binary values are ``padded`` with zeros to so many bytes.
    - ``mysql-json``: as ``mysql-text``, or a number or boolean instead of text
      (``cdcfmt_core/mysql/json_values.py``).
    - ``base64``: bytes in padded base64.
    - ``base64-text``: text in padded base64.
    - ``hex``: bytes in hexadecimal, with or without ``0x``.
    - ``go-quoted``: bytes as Go's ``strconv.Quote`` writes them.
    - ``detected-bytes``: bytes as Latin-1, base64 or hexadecimal, whichever alone fits: they are
      ``exact`` or at most ``longest`` bytes, where that is known.
    - ``bytes-text``: bytes in base64 or hexadecimal, by ``form``; ``auto`` is whichever alone fits.
    - ``zoned-text``: an object of a zone's name and of a TIMESTAMP's text, as ``Layout.zoned``, or
      text in the source's own zone.
    - ``text``: as it stands, but for ``aliases``; ``json-value``: any value, of an unknown type,
      whose fractions are decimals, or ``doubles``.
    - ``json-number``: a number; ``wraps``: one without a sign, of which 64 bits with a sign were
      made; ``signless``: ``extra`` names the column of one below zero; ``doubles``: a decimal that
      went through a double, and a FLOAT that Avro has as one; writers give exponents of floats
      ``exponent_digits`` at least.  ``json-boolean``: true or false.
    - ``iso-text``: as ``mysql-text``, perhaps with a ``Z`` behind it; ``iso-instant``:
      ``2024-01-01T00:00:00.5Z``.
    - ``epoch-days``: since 1970; ``epoch-millis``, ``epoch-micros``, ``epoch-nanos``: since 1970,
      or since midnight; ``epoch-guessed``: in the unit of most columns, if it can be no other one.
    - ``connect-decimal``: an integer in base64 of its big-endian bytes, with ``scale``, or the
      type's; ``guessed-decimal``: the same or a decimal's text, whichever alone fits.
    - ``little-endian-bits``: BIT in base64 of its little-endian bytes; one bit may be a boolean.
    - ``charset-text``: text as its bytes in a ``charset`` (a Python codec), one character each.
    - ``integer-text``: an integer's text that is a decimal for want of a type with room for either
      sign.
    - ``calendar-parts``: a list of year, month, day, hour, minute, second and microsecond, some of
      them null; or text, as ``mysql-text``.
    - ``epoch-pair``: a list of the seconds since 1970 and of microseconds.
    - ``other``: none of these, so NULL is all that the kernel reads.

    Values equal to ``noted`` are counted under ``note``.  ``branches`` are those of a union of
    Avro's that have this encoding, by names, each with what fields beside the value must hold: one
    of some values.
    """

    name: Literal[
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
        "epoch-days",
        "epoch-millis",
        "epoch-micros",
        "epoch-nanos",
        "epoch-guessed",
        "connect-decimal",
        "guessed-decimal",
        "little-endian-bits",
        "charset-text",
        "integer-text",
        "calendar-parts",
        "epoch-pair",
        "other",
    ]
    padded: int = 0
    exact: int | None = None
    longest: int | None = None
    form: Literal["auto", "base64", "hex"] = "auto"
    wraps: bool = False
    signless: bool = False
    doubles: bool = False
    exponent_digits: int = 1
    scale: int | None = None
    charset: str = ""
    aliases: Mapping[str, str] = attrs.field(factory=dict)
    noted: str | int | float | bool | None = None
    note: str = ""
    branches: Mapping[str, Mapping[str, tuple[str | int, ...]]] = attrs.field(factory=dict)


Encodings: TypeAlias = Mapping[str, Encoding]
"""Encodings by the columns' names."""

ONLY_OF: Mapping[str, type[LogicalType]] = {
    "json-value": Unknown,
    "charset-text": Text,
    "base64-text": Text,
    "little-endian-bits": Bit,
}
"""Encodings that the kernel reads as one logical type."""
