"""The cheapest look at an Avro message that no plan reads: whether it is a row, and wanted."""

from __future__ import annotations

from collections.abc import Sequence

from cdcfmt_core.avro_layout import AvroLayout, Field
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.wire_avro import read_bytes, read_choice, read_long
from pyspark_cdcfmt.columnar.looks import Kind, Look


class AvroLook:
    """From a message's value to what it is: a row, one that nobody wants, or neither.

    Images are not looked at.
    """

    def __init__(self, layout: AvroLayout, event_filter: EventFilter) -> None:
        self._fields = [field for field in layout.fields if isinstance(field, Field)]
        self._begins = layout.begins
        self._ops = layout.ops
        self._filter = event_filter
        table = event_filter.table
        self._name = b"" if table is None else table[-1].encode("utf-8", "surrogateescape")

    def takes(self, value: bytes) -> bool:
        """Whether it begins as rows do."""
        return value.startswith(self._begins)

    def mentions(self, value: bytes, key: bytes | None = None) -> bool:
        """Whether the wanted table's name is in it."""
        return self._name in value

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        if not value.startswith(self._begins):
            return "other"
        try:
            return self._judge(value)
        except Exception:
            return "other"

    def _judge(self, value: bytes) -> Kind:
        texts: dict[str, bytes] = {}
        numbers: dict[str, int] = {}
        at = len(self._begins)
        for field in self._fields:
            if field.null and value[at] == 0:
                at += 1
            elif field.null:
                _, at = read_choice(value, at, 2, "branch")
                at = _skip(field, value, at)
            elif field.form == "bytes":
                texts[field.role], at = read_bytes(value, at)
            elif field.form == "long":
                numbers[field.role], at = read_long(value, at)
            else:
                at = _skip(field, value, at)
        database, table = (
            texts[name].decode("utf-8", "surrogateescape") for name in ("database", "table")
        )
        op, commit_ts = numbers["op"], numbers["commit_ts"]
        if not 0 <= op < len(self._ops) or commit_ts < 0:
            return "other"
        wants = self._filter.wants
        wanted = not table or wants("row", database, table, None, self._ops[op], commit_ts)
        return "row" if wanted else "unwanted"


class LookByBeginning:
    """Looks at messages of several layouts; ``other`` at those that begin as none of Avro's."""

    def __init__(self, looks: Sequence[AvroLook], other: Look | None) -> None:
        self._looks = looks
        self._other = other

    def mentions(self, value: bytes, key: bytes | None = None) -> bool:
        """Whether the wanted table's name is in it: a hint only."""
        look = self._look_at(value)
        return look is None or look.mentions(value)

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        look = self._look_at(value)
        return "other" if look is None else look(value)

    def trust(self, value: bytes) -> None:
        """The reference path found nothing wrong with this message."""
        look = self._look_at(value)
        if isinstance(look, Look):
            look.trust(value)

    def _look_at(self, value: bytes) -> AvroLook | Look | None:
        for look in self._looks:
            if look.takes(value):
                return look
        return self._other


def _skip(field: Field, value: bytes, at: int) -> int:
    if isinstance(field.form, tuple):
        for inner in field.form:
            at = _skip(inner, value, at)
    elif field.form == "bytes":
        _, at = read_bytes(value, at)
    elif field.form == "long":
        _, at = read_long(value, at)
    elif field.form == "boolean" and value[at] < 2:
        at += 1
    else:
        raise ValueError("it is no row")
    return at
