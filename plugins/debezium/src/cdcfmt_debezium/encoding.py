"""How a producer writes the values that JSON has no type for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_debezium.message import TICDC

ParseValue: TypeAlias = Callable[[Any], Any]


@attrs.frozen(cache_hash=True)
class Encoding:
    """How a producer writes what JSON has no type for.

    ``guessed``: units of times are those of an option, which nothing in the message confirms.
    ``datetimes`` and ``times`` are units (``ms``, ``us``, ``ns``), ``auto`` for what each value
    shows, or None for milliseconds up to three digits of fraction and microseconds beyond.
    ``decimals`` says what a text is: ``precise`` or ``string`` by the user's option, ``connect``
    (base64) or ``text`` by the message's schema, or ``auto``.  ``scale`` is that of a Connect
    Decimal where its schema has it.  ``doubles``: numbers of decimals went through a double
    anyway, so their shortest digits are all that there is.  ``binary`` is the user's option,
    ``certain`` (base64) or ``contradicted`` by the message's schema.  ``texts``: scalars are
    MySQL's own texts (CloudCanal).  ``null_years``: a YEAR that is text is the column's default,
    written for NULL (TiCDC).
    """

    guessed: bool = False
    datetimes: str | None = None
    times: str | None = "us"
    decimals: str = "auto"
    scale: int | None = None
    doubles: bool = True
    binary: str = "certain"
    texts: bool = False
    null_years: bool = False


def encoding_of(encodings: Mapping[str, Encoding], connector: Any) -> Encoding:
    """The encoding of the producer with this name."""
    if connector == TICDC:
        return encodings[TICDC]
    # The connectors' names are lower-case; CloudCanal's are the databases'.
    if type(connector) is str and connector != connector.lower():
        return encodings["cloudcanal"]
    return encodings["connector"]
