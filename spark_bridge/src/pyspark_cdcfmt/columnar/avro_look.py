"""The cheapest look at Avro messages that no plan reads: whether they are rows, and wanted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from cdcfmt_core.avro_layout import AvroLayout, Field
from cdcfmt_core.caches import Cache, text_size
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.wire_avro import read_bytes, read_choice, read_long
from pyspark_cdcfmt.columnar.avro_windows import Places, Windows
from pyspark_cdcfmt.columnar.looks import Kind, Look

_MAX_VERDICT_BYTES: Final = 32 << 20


class AvroLook:
    """From a message's value to what it is, as :class:`~.looks.Look`; images are not looked at.

    Rows begin with ``begins``, and what is quiet with one of ``quiet``.
    """

    def __init__(self, layout: AvroLayout, event_filter: EventFilter) -> None:
        self._fields = [field for field in layout.fields if isinstance(field, Field)]
        self.begins = layout.begins
        self.quiet = layout.quiet
        self._ops = layout.ops
        self._filter = event_filter
        self._verdicts: Cache[tuple[bytes, bytes, int], Kind] = Cache(_MAX_VERDICT_BYTES)

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        if not value.startswith(self.begins):
            return "quiet" if value.startswith(self.quiet) else "other"
        try:
            return self._look(value)
        except Exception:
            return "other"

    def _look(self, value: bytes) -> Kind:
        texts: dict[str, bytes] = {}
        numbers: dict[str, int] = {}
        at = len(self.begins)
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
        if not self._is_row(numbers["op"], numbers["commit_ts"]):
            return "other"
        if not self._filter.wants_commit_ts(numbers["commit_ts"]):
            return "unwanted" if texts["table"] else "row"
        return self._verdict(texts["database"], texts["table"], numbers["op"])

    def at_all(self, windows: Windows, documents: Places) -> list[Kind | None]:
        """What those documents are; None where it takes a look at each."""
        places, ends = windows.starts[documents], windows.ends[documents]
        unsure = windows.differ(places, self.begins)
        places = places + len(self.begins)
        numbers: dict[str, Places] = {}
        spans: dict[str, tuple[Places, Places]] = {}
        for field in self._fields:
            places = np.minimum(places, windows.limit)
            if field.null:
                unsure |= windows.bytes.take(places) != 0
                places = places + 1
            elif field.form == "bytes":
                begins, places, bad = windows.spans(places)
                spans[field.role] = begins, places
                unsure |= bad
            elif field.form == "long":
                numbers[field.role], places, bad = windows.longs(places)
                unsure |= bad
            else:
                return [None] * len(documents)
        unsure |= places > ends
        data = windows.data
        return [
            self._verdict(data[database:database_end], data[table:table_end], op)
            if sure and self._is_row(op, commit_ts) and self._filter.wants_commit_ts(commit_ts)
            else None
            for sure, op, commit_ts, database, database_end, table, table_end in zip(
                (~unsure).tolist(),
                numbers["op"].tolist(),
                numbers["commit_ts"].tolist(),
                *(places.tolist() for role in ("database", "table") for places in spans[role]),
                strict=True,
            )
        ]

    def _is_row(self, op: int, commit_ts: int) -> bool:
        return 0 <= op < len(self._ops) and commit_ts >= 0

    def _verdict(self, database: bytes, table: bytes, op: int) -> Kind:
        """Of rows at a time that is wanted."""
        known = self._verdicts.get((database, table, op))
        if known is None:
            wanted = not table or self._filter.wants(
                "row",
                database.decode("utf-8", "surrogateescape"),
                table.decode("utf-8", "surrogateescape"),
                op=self._ops[op],
                # One that is in the range, if there is one.
                commit_ts=self._filter.starting_commit_ts or self._filter.ending_commit_ts,
            )
            known = "row" if wanted else "unwanted"
            self._verdicts.add((database, table, op), known, text_size(database, table))
        return known


class LookByBeginning:
    """Looks at messages of several layouts; ``other`` at those that begin as none of Avro's.

    ``begins`` are all beginnings of Avro's rows.
    """

    def __init__(self, looks: Sequence[AvroLook], other: Look | None) -> None:
        self.begins = tuple(look.begins for look in looks)
        self._looks = [((look.begins, *look.quiet), look) for look in looks]
        self._other = other

    def mentions(self, value: bytes, key: bytes | None = None) -> bool:
        """Whether the wanted table's name is in it: a hint only."""
        look = self._look_at(value)
        return isinstance(look, Look) and look.mentions(value)

    def __call__(self, value: bytes, key: bytes | None = None) -> Kind:
        look = self._look_at(value)
        return "other" if look is None else look(value)

    def at_all(self, windows: Windows, documents: Places) -> list[Kind | None]:
        """What those documents are; None where it takes a look at each."""
        kinds: list[Kind | None] = [None] * len(documents)
        for _, look in self._looks:
            unknown = [at for at, kind in enumerate(kinds) if kind is None]
            if unknown:
                for at, kind in zip(unknown, look.at_all(windows, documents[unknown]), strict=True):
                    kinds[at] = kind
        return kinds

    def trust(self, value: bytes) -> None:
        """The reference path found nothing wrong with this message."""
        look = self._look_at(value)
        if isinstance(look, Look):
            look.trust(value)

    def _look_at(self, value: bytes) -> AvroLook | Look | None:
        for begins, look in self._looks:
            if value.startswith(begins):
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
