"""Values that a reader changes without an error: to NULL, to other text, or to a guess."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from decimal import Context
from typing import Any

import attrs

from cdcfmt_cli.explain import message_parts
from cdcfmt_cli.json_text import clean
from cdcfmt_cli.reading import Decoded
from cdcfmt_cli.records import table_of
from cdcfmt_core.errors import DecodeError, show
from cdcfmt_core.events import Event, RowChange, TableSchema
from cdcfmt_core.registry import default_registry
from cdcfmt_core.types import InvalidValue, Json, Unknown
from cdcfmt_toolkit.wire_json import refuse_constant

IMPOSSIBLE = "impossible value"
NO_TEXT = "text that is not UTF-8"
NO_TYPE = "no type on the wire"
NO_VARIANT = "JSON that a variant cannot hold"
TWICE = "name that occurs twice in a JSON object"

IN_SPARK = {
    IMPOSSIBLE: "NULL; invalidValues=text keeps it in a string column, fail ends the query",
    NO_TEXT: "U+FFFD for each byte; invalidText=escape keeps the bytes, fail ends the query",
    NO_TYPE: "the unchanged JSON value, as text; a schema gives the column a type",
    NO_VARIANT: "the document's text; jsonAs=string makes the whole column text",
    TWICE: "the last one counts",
}
"""The resulting value in Spark, and the option that changes it."""

_COUNTED = ("timestamp ", "nanoseconds ")
_MAX_KINDS = 10_000
_PLACES = 3
_DIGITS = 38
_WIDE = Context(prec=400)


@attrs.define
class Change:
    """One kind of change in one column; ``places`` are the first messages with it."""

    what: str
    table: str | None
    column: str | None
    sample: str | None
    count: int = 0
    places: list[Decoded] = attrs.field(factory=list)


class Changes:
    """All changes found, by kind, table and column, in bounded memory."""

    def __init__(self, codec_options: Mapping[str, Any]) -> None:
        self._options = codec_options
        self._found: dict[tuple[str, str | None, str | None], Change] = {}
        self._table: TableSchema | None = None
        self._json: set[str] = set()
        self._untyped: list[str] = []

    def add(self, decoded: Decoded) -> None:
        for event in decoded.events:
            if isinstance(event, RowChange):
                self._add_row(decoded, event)
        for name in set(_names_twice(decoded, self._options)):
            self._add(decoded, TWICE, None, name, None)

    def found(self, counts: Counter[str]) -> list[Change]:
        """All changes, including those that the decoders counted; most frequent first."""
        counted = [
            Change(what, None, None, None, count)
            for what, count in counts.items()
            if what.startswith(_COUNTED)
        ]
        return sorted([*self._found.values(), *counted], key=lambda change: -change.count)

    def _add_row(self, decoded: Decoded, event: RowChange) -> None:
        if event.table is not self._table:
            columns = event.table.columns
            self._table = event.table
            self._json = {c.name for c in columns if type(c.type) is Json}
            untyped = (c for c in columns if type(c.type) is Unknown and not c.source_type)
            self._untyped = [column.name for column in untyped]
        for image in (event.before, event.after):
            for name, value in image.values.items() if image is not None else ():
                if type(value) is InvalidValue:
                    self._add(decoded, IMPOSSIBLE, event, name, value.text)
                elif type(value) is str:
                    if clean(value) != value:
                        self._add(decoded, NO_TEXT, event, name, value)
                    elif name in self._json and not _fits_a_variant(value):
                        self._add(decoded, NO_VARIANT, event, name, value)
        for name in self._untyped:
            self._add(decoded, NO_TYPE, event, name, None)

    def _add(
        self, decoded: Decoded, what: str, event: Event | None, column: str, sample: str | None
    ) -> None:
        names = () if event is None else filter(None, table_of(event).values())
        key: tuple[str, str | None, str | None] = (what, ".".join(names) or None, column)
        change = self._found.get(key)
        if change is None:
            if len(self._found) >= _MAX_KINDS:
                key, sample = (what, None, None), None
            text = None if sample is None else show(sample)
            change = self._found.setdefault(key, Change(what, *key[1:], text))
        change.count += 1
        if len(change.places) < _PLACES:
            change.places.append(decoded)


def _fits_a_variant(text: str) -> bool:
    try:
        json.loads(text, parse_float=_number, parse_int=_number, parse_constant=refuse_constant)
    except (ValueError, ArithmeticError, RecursionError):
        return False
    return True


def _number(text: str) -> None:
    number = _WIDE.create_decimal(text).normalize(_WIDE)
    exponent = number.as_tuple().exponent
    if not (isinstance(exponent, int) and exponent >= -_DIGITS and number.adjusted() < _DIGITS):
        refuse_constant(text)
    if len(number.as_tuple().digits) > _DIGITS:
        refuse_constant(text)


def _names_twice(decoded: Decoded, options: Mapping[str, Any]) -> list[str]:
    found: list[str] = []

    def note_twice(members: list[tuple[str, Any]]) -> None:
        if len(members) != len({name for name, _ in members}):
            found.extend(
                name for name, count in Counter(n for n, _ in members).items() if count > 1
            )

    for document in _documents(decoded, options):
        try:
            json.loads(document, object_pairs_hook=note_twice)
        except (ValueError, RecursionError):
            continue  # corrupt, which is counted elsewhere
    return found


def _documents(decoded: Decoded, options: Mapping[str, Any]) -> Iterator[str]:
    """The JSON documents of a message: its value, or the frames of a batch."""
    codec = default_registry().codecs().get(decoded.protocol or "")
    value = decoded.message.value or b""
    parts = [value]
    with suppress(DecodeError):
        if value[:1] != b"{":
            parts = [part for _, part in message_parts(decoded.message, codec, options)]
    for part in parts:
        if isinstance(part, bytes) and part[:1] == b"{":
            yield part.decode("utf-8", "surrogateescape")
