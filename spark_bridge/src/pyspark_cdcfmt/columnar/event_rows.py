"""Decoded messages to the columns of the events shape.

In two steps, as :mod:`~pyspark_cdcfmt.columnar.rows`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count as count_from
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import astuple

from pyspark_cdcfmt.columnar.changes import cells_of, differ, find_changes, values_at
from pyspark_cdcfmt.columnar.converters import ColumnConverter
from pyspark_cdcfmt.columnar.json_tokens import Tokens, joined
from pyspark_cdcfmt.columnar.metadata import repeated
from pyspark_cdcfmt.columnar.origins import Origins, Sources
from pyspark_cdcfmt.columnar.plans import Plan
from pyspark_cdcfmt.columnar.rows import finished
from pyspark_cdcfmt.columnar.structs import UNSET
from pyspark_cdcfmt.columnar.variant_tokens import VariantTokens, assembled
from pyspark_cdcfmt.columnar.wanted import Told

_INT32, _INT64 = pa.int32(), pa.int64()
_TSO_BITS = pa.scalar(18, _INT64)
_THOUSAND = pa.scalar(1000, _INT64)
_TIMES = {"source_time": "source_time", "emit_time": "other_time"}
"""Columns → roles."""


class EventColumns:
    """The columns of events, and what they are made of.

    ``columns`` are the converters of images' cells, ``unit`` the microseconds in a time and
    ``roles`` the times that there are.  The other attributes are as in
    :class:`~pyspark_cdcfmt.columnar.rows.Gathered`.
    """

    def __init__(
        self,
        columns: Mapping[str, ColumnConverter],
        told: Told | None,
        unit: int,
        roles: Iterable[str],
    ) -> None:
        assert told is not None
        self.owners: list[int] = []
        self.unusual: set[int] = set()
        self.noted: list[tuple[int, str]] = []
        self._columns = columns
        self._told = told
        self._unit = unit
        self._tokens: dict[str, list[pa.Array]] = {name: [] for name in columns}
        self._image_owners: list[int] = []
        self._befores: list[int | None] = []
        self._afters: list[int | None] = []
        self._ops: list[str] = []
        self._index: list[int] = []
        self._sources = Sources(told.protocol)
        self._times: dict[str, list[int]] = {
            role: [] for role in ("commit_ts", *_TIMES.values()) if role in roles
        }

    def finish(self, metadata: Mapping[str, tuple[str, pa.DataType]]) -> dict[str, pa.Array]:
        """The columns of all events, by name; ``metadata`` as for changes."""
        names = sorted(self._columns)
        texts: list[tuple[str, pa.Array, bool]] = []
        variants: dict[str, tuple[VariantTokens, pa.Array]] = {}
        for name in names:
            tokens = self._columns[name]
            array, bad = finished(tokens, self._tokens[name])
            self.unusual.update(self._image_owners[row] for row in bad)
            if isinstance(tokens, Tokens):
                texts.append((name, array, tokens.quoted))
            elif isinstance(tokens, VariantTokens):
                variants[name] = (tokens, array)
        if variants:
            type_ = next(metadata[name][1] for name in ("before", "after") if name in metadata)
            images = assembled(self._told.table, variants, type_)
        else:
            images = joined(texts, len(self._image_owners))
        return {
            name: self._column(name, type_, images)
            for name, (_, type_) in metadata.items()
            if name not in ("ddl", "table_schema", "_corrupt_record")
        }

    def _column(self, name: str, type_: pa.DataType, images: pa.Array) -> pa.Array:
        told = self._told
        count = len(self.owners)
        if name in ("before", "after"):
            places = self._befores if name == "before" else self._afters
            return images.take(pa.array(places, _INT32))
        if name == "op":
            return pa.array(self._ops, type_)
        if name == "key_columns":
            return repeated(told.key_columns, count, type_)
        if name in ("commit_ts", "commit_time", *_TIMES):
            return self._time(name, type_)
        if name == "extra":
            return _variants(told.extra, count, type_)
        if name == "_source":
            return self._sources.column(type_, pa.array(self._index, _INT32))
        said = {
            "kind": "row",
            "database": told.table.database,
            "schema": told.table.schema,
            "table": told.table.table,
        }
        return pa.repeat(pa.scalar(said[name], type_), count)

    def _time(self, name: str, type_: pa.DataType) -> pa.Array:
        role = _TIMES.get(name, "commit_ts")
        if role not in self._times:
            return pa.nulls(len(self.owners), type_)
        values = pa.array(self._times[role], _INT64)
        if name == "commit_ts":
            return values
        if name == "commit_time":
            values = pc.multiply(pc.shift_right(values, _TSO_BITS), _THOUSAND)
        else:
            values = pc.multiply(values, pa.scalar(self._unit, _INT64))
        return pc.cast(values, type_)


class GatheredEvents(EventColumns):
    """Events of the messages of one plan; as :class:`~pyspark_cdcfmt.columnar.rows.Gathered`."""

    def __init__(self, plan: Plan) -> None:
        columns = {name: column for name, (_, column) in plan.columns.items()}
        super().__init__(columns, plan.event, plan.layout.times[2], plan.reader.paths)
        self._plan = plan

    def add(
        self,
        messages: Sequence[Struct],
        owners: Sequence[int],
        origins: Origins,
    ) -> None:
        """Events of some more messages, with their numbers."""
        plan = self._plan
        unusual: set[int] = set()
        changes = find_changes(plan, messages, unusual, origins=origins)
        count = len(changes.words)
        places = list(range(count)) if changes.messages is None else changes.messages
        ops = list(map(plan.layout.ops.__getitem__, changes.words))
        images = list(zip(ops, changes.befores, changes.afters, strict=True))
        moved = plan.layout.deleted_row == "after"
        befores = [
            None
            if op not in ("update", "delete")
            else after
            if moved and op == "delete"
            else before
            for op, before, after in images
        ]
        afters = [None if moved and op == "delete" else after for op, _, after in images]
        unusual.update(self._strange(ops, befores, afters, places))
        if not plan.before_updates:
            befores = [
                None if after is not None else before
                for before, after in zip(befores, afters, strict=True)
            ]
        rows, image_places = self._number(befores, afters, places)
        self._ops += ops
        cells = cells_of(plan, rows)
        for name, (at, column) in plan.columns.items():
            array, bad = column.gather(cells[at])
            self._tokens[name].append(array)
            unusual.update(image_places[row] for row in bad)
        for at in plan.signless:
            unusual.update(
                image_places[row]
                for row, cell in enumerate(cells[at])
                if type(cell) is int and cell < 0
            )
        for at, value, note in plan.noted:
            self.noted += [
                (owners[image_places[row]], note)
                for row, cell in enumerate(cells[at])
                if cell == value
            ]
        for role, values in self._times.items():
            of_messages = values_at(plan.reader.paths[role], messages)
            if changes.messages is not None:
                of_messages = [of_messages[place] for place in places]
            values += of_messages
        self._index += [0] * count if changes.index is None else changes.index
        self._sources.add(origins, None if changes.messages is None else places)
        self._image_owners += [owners[place] for place in image_places]
        self.owners += [owners[place] for place in places]
        self.unusual.update(owners[place] for place in unusual)

    def _number(
        self,
        befores: Sequence[Struct | None],
        afters: Sequence[Struct | None],
        places: Sequence[int],
    ) -> tuple[list[tuple[Any, ...]], list[int]]:
        """The images that there are, as cells, and the messages of each.

        Events get the numbers of theirs.
        """
        base = len(self._image_owners)
        rows: list[tuple[Any, ...]] = []
        image_places: list[int] = []
        for images_of, numbers in ((befores, self._befores), (afters, self._afters)):
            there = [image for image in images_of if image is not None]
            if len(there) == len(images_of):
                numbers += range(base + len(rows), base + len(rows) + len(there))
                image_places += places
            else:
                number = count_from(base + len(rows))
                numbers += [None if image is None else next(number) for image in images_of]
                image_places += [
                    place
                    for place, image in zip(places, images_of, strict=True)
                    if image is not None
                ]
            rows += map(astuple, there)
        return rows, image_places

    def _strange(
        self,
        ops: Sequence[str],
        befores: Sequence[Struct | None],
        afters: Sequence[Struct | None],
        places: Sequence[int],
    ) -> Iterator[int]:
        """Messages with changes that lack an image, have one too much, or are not one event."""
        plan = self._plan
        updates_look = plan.keys or (plan.reader.partial and plan.before_updates)
        for place, op, before, after in zip(places, ops, befores, afters, strict=True):
            if op == "delete":
                if before is None or after is not None:
                    yield place
            elif after is None:
                yield place
            elif before is not None and updates_look:
                old = astuple(before)
                if (plan.before_updates and UNSET in old) or (
                    plan.keys and differ(old, astuple(after), plan.keys, not plan.before_updates)
                ):
                    yield place


def _variants(pair: tuple[bytes, bytes] | None, count: int, type_: pa.DataType) -> pa.Array:
    if pair is None:
        return pa.nulls(count, type_)
    arrays = [pa.repeat(pa.scalar(data, pa.binary()), count) for data in pair]
    return pa.StructArray.from_arrays(arrays, fields=list(type_))
