"""Plans: created once per table, and looked up for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

import attrs

from cdcfmt_core import caches
from cdcfmt_core.caches import Cache, table_size
from cdcfmt_core.codec import DecoderContext
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_toolkit.dialects import column_reader, reads_text
from cdcfmt_toolkit.encodings import Encodings
from cdcfmt_toolkit.images import ReadValue


class Plan(Protocol):
    """How to read or write the rows of one table."""

    @property
    def schema(self) -> TableSchema: ...


P = ParamSpec("P")
Made = TypeVar("Made", bound=Plan)
K = TypeVar("K")
V = TypeVar("V")


class Plans(Generic[P, Made]):
    """A cache of plans, bounded by bytes; all rows of a table share one plan.

    - ``make``: creates a plan; its arguments are the key and must be hashable
    - ``column_bytes``: bytes of a plan per column, without the table schema
    """

    def __init__(self, make: Callable[P, Made], column_bytes: int) -> None:
        self._make = make
        self._column_bytes = column_bytes
        self._plans: Cache[tuple[Any, ...], Made] = Cache()

    def find(self, *args: P.args, **kwargs: P.kwargs) -> Made:
        """The plan for these arguments."""
        plan = self._plans.get(args)
        if plan is None:
            plan = self._make(*args, **kwargs)
            self._plans.add(args, plan, table_size(plan.schema, self._column_bytes))
        return plan


@attrs.define(eq=False)
class TablePlan:
    """A table schema, the readers of its wanted columns, and its key columns.

    - ``before_updates``: the before images of all updates are wanted
    """

    schema: TableSchema
    readers: dict[str, ReadValue]
    key_columns: tuple[str, ...]
    before_updates: bool

    @classmethod
    def open(
        cls,
        schema: TableSchema,
        context: DecoderContext,
        open_reader: Callable[[Column], ReadValue],
        **more: Any,
    ) -> Self:
        """The plan of a table; only wanted columns get a reader.

        ``more``: the other attributes of a subclass.
        """
        key_columns, wanted = context.projection.of(schema)
        readers = {
            column.name: open_reader(column) for column in schema.columns if column.name in wanted
        }
        return cls(schema, readers, key_columns, context.projection.before_updates, **more)

    def reads_before(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Whether to read the before image ``old`` of an update to ``new`` (wire values).

        If it is not wanted, it is read only for a changed key, which makes it two changes.
        """
        return self.before_updates or any(
            name in old and name in new and old[name] != new[name] for name in self.key_columns
        )


def encoded_plan(schema: TableSchema, context: DecoderContext, encodings: Encodings) -> TablePlan:
    """The plan of a table by the value encodings of its columns, which a layout uses, too.

    :raises ValueError: for a ``bytea`` of PostgreSQL as MySQL's text, whose characters are bytes.
    """

    def open_reader(column: Column) -> ReadValue:
        encoding = encodings[column.name]
        is_mysql = encoding.name in ("mysql-text", "mysql-json", "dialect-text")
        if (
            is_mysql
            and column.source_type.lower() == "bytea"
            and not reads_text(encoding, column, context.resolve_type)
        ):
            raise ValueError(
                f"{column.name} is a bytea, whose text \\x00ff {encoding.name} would read as six "
                "bytes: use the value encoding hex"
            )
        return column_reader(encoding, column, context)

    return TablePlan.open(schema, context, open_reader)


class Variants(Generic[K, V]):
    """Several values per key, such as the variants of a table; the caller picks one.

    Beyond ``limit`` values of a key the oldest is dropped; a full cache drops whole keys.
    """

    __slots__ = ("_cache", "_limit", "_max_bytes")

    def __init__(self, limit: int = 100, max_bytes: int | None = None) -> None:
        self._limit = limit
        self._max_bytes = caches.MAX_CACHE_BYTES if max_bytes is None else max_bytes
        self._cache: Cache[K, tuple[list[V], list[int]]] = Cache(max_bytes)

    @property
    def bytes(self) -> int:
        """The total size of all values."""
        return self._cache.bytes

    def of(self, key: K) -> Sequence[V]:
        """The key's values, oldest first."""
        found = self._cache.get(key)
        return () if found is None else found[0]

    def add(self, key: K, value: V, size: int) -> V:
        """Add a value of about ``size`` bytes."""
        values, sizes = self._cache.get(key) or ([], [])
        values.append(value)
        sizes.append(size)
        total = sum(sizes)
        while len(values) > 1 and (len(values) > self._limit or total > self._max_bytes):
            total -= sizes.pop(0)
            del values[0]
        self._cache.add(key, (values, sizes), total)
        return value
