"""How a producer writes what JSON has no type for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import attrs

from cdcfmt_debezium.message import TICDC

ParseValue: TypeAlias = Callable[[Any], Any]


@attrs.frozen(cache_hash=True)
class Encoding:
    """How a producer writes what JSON has no type for.

    ``datetimes`` and ``times`` are units (``ms``, ``us``, ``ns``), or None for milliseconds
    up to three digits of fraction and microseconds beyond.  ``decimals`` says what a text is:
    ``precise`` or ``string``.  ``scale`` is that of a Connect Decimal where its schema tells
    it.  ``doubles``: numbers of decimals went through a double anyway, so their shortest
    digits are all that there is.  ``texts``: scalars are MySQL's own texts (CloudCanal).
    """

    datetimes: str | None = None
    times: str | None = "us"
    decimals: str = "precise"
    scale: int | None = None
    doubles: bool = True
    binary: str = "base64"
    texts: bool = False


def encoding_of(encodings: Mapping[str, Encoding], connector: Any) -> Encoding:
    """That of the producer that calls itself so."""
    if connector == TICDC:
        return encodings[TICDC]
    # The connectors' names are lower-case; CloudCanal's are the databases'.
    if type(connector) is str and connector != connector.lower():
        return encodings["cloudcanal"]
    return encodings["connector"]
