"""A producer's encoding of values for which JSON has no type."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import attrs

from cdcfmt_core.events import Column
from cdcfmt_core.types import DateTime, Interval, Time
from cdcfmt_debezium.message import TICDC, WITHOUT_UNSIGNED
from cdcfmt_toolkit.encodings import Encoding

SIGNED: Final = "signed "
"""Prefix of the profiles of databases without unsigned integers."""

BITS: Final = ("bit", "varbit")
"""How the names of types of bits begin."""
_NEGATIVE_SCALE: Final = re.compile(r"(?:numeric|decimal) *\([0-9]+, *-([0-9]{1,4})\)").fullmatch

ParseValue: TypeAlias = Callable[[Any], Any]

_EPOCHS: Final = {
    "auto": Encoding("epoch-guessed"),
    "ms": Encoding("epoch-millis"),
    "us": Encoding("epoch-micros"),
    "ns": Encoding("epoch-nanos"),
}


@attrs.frozen(cache_hash=True)
class ProducerProfile:
    """A producer's encoding of values for which JSON has no type.

    - ``guessed``: time units come from an option, and the message does not confirm them
    - ``datetimes``, ``times``: ``ms``, ``us``, ``ns``, ``auto`` (detected by value), or None:
      milliseconds up to three fractional digits, otherwise microseconds
    - ``decimals``: meaning of a text: ``precise`` or ``string`` by option, ``connect`` (base64) or
      ``text`` by the message's schema, or ``auto``
    - ``scale``: of a Connect Decimal, if its schema has it
    - ``doubles``: the producer wrote decimals as doubles, so their shortest digits are exact
    - ``binary``: the user's option; ``certain`` (base64) or ``contradicted`` by the schema
    - ``texts``: scalars are MySQL's own texts (CloudCanal)
    - ``unsigned``: the database may have unsigned integers
    - ``null_years``: a YEAR that is text is the column's default, written for NULL (TiCDC)
    """

    guessed: bool = False
    datetimes: str | None = None
    times: str | None = "us"
    decimals: str = "auto"
    scale: int | None = None
    doubles: bool = True
    binary: str = "certain"
    texts: bool = False
    unsigned: bool = True
    null_years: bool = False

    def without_schema(self, column: Column) -> ProducerProfile:
        """The profile of a column of which the message has no schema."""
        if isinstance(column.type, Interval):
            # time.precision.mode is not theirs.
            return attrs.evolve(self, times="us")
        source_type = column.source_type.lower()
        if source_type.startswith(BITS):
            # binary.handling.mode is not theirs.
            return attrs.evolve(self, binary="certain")
        if (found := _NEGATIVE_SCALE(source_type)) is not None:
            # The two's complement in 11 bits.
            return attrs.evolve(self, scale=(1 << 11) - int(found[1]))
        return self

    def epoch(self, logical: DateTime | Time | Interval) -> Encoding:
        """The encoding of numbers in this column."""
        unit = self.datetimes if isinstance(logical, DateTime) else self.times
        if unit is None and not isinstance(logical, Interval):
            unit = "us" if (logical.fsp or 0) > 3 else "ms"
        return _EPOCHS[unit or "us"]


def profile_of(
    profiles: Mapping[str, ProducerProfile], connector: Any, schema: str | None
) -> ProducerProfile:
    """The profile of the producer with this connector name; ``schema``: of the row's table."""
    if connector == TICDC:
        # A table in a schema came from another database.
        return profiles[TICDC if schema is None else SIGNED + TICDC]
    name = connector if type(connector) is str else ""
    # Debezium's connector names are lower-case; CloudCanal writes database names.
    producer = "connector" if name == name.lower() else "cloudcanal"
    # MySQL has no schemas.
    is_signed = schema is not None or name.lower() in WITHOUT_UNSIGNED
    return profiles[SIGNED + producer if is_signed else producer]
