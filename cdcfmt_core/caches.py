"""Caches bounded by bytes.

Counting entries bounds nothing: ten thousand plans of tables with two thousand columns take
gigabytes.  Sizes are estimates, which a test compares with the memory that is really taken.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, TypeAlias, TypeVar

from cdcfmt_core.events import Column, TableSchema

MAX_CACHE_BYTES = 64 << 20

_ENTRY: Final = 300
_LONGEST_NAME: Final = 200
_COLUMN: Final = 150
_TYPE_CHARACTER: Final = 12
"""ENUM and SET keep a string for each name, which is some four characters of the type."""

TableKey: TypeAlias = tuple[str, str, str | None, str]
"""Stream, database, schema and table."""

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key. Beyond ``max_bytes`` the least recently used values are dropped.

    The newest value always stays.  Values must be such as can be made again.
    """

    __slots__ = ("_bytes", "_entries", "_half", "_max_bytes")

    def __init__(self, max_bytes: int | None = None) -> None:
        self._max_bytes = max_bytes = MAX_CACHE_BYTES if max_bytes is None else max_bytes
        self._half = max_bytes // 2
        self._bytes = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """The sizes of all values together."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """The value; it becomes the most recently used one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        # What was used while the cache is half empty goes no later than what was not.
        if self._bytes > self._half:
            self._entries.move_to_end(key)
        return entry[0]

    def add(self, key: K, value: V, size: int) -> V:
        """Keep a value of about ``size`` bytes, in place of the one of this key if any."""
        known = self._entries.pop(key, None)
        self._bytes += size - (known[1] if known else 0)
        self._entries[key] = value, size
        while self._bytes > self._max_bytes and len(self._entries) > 1:
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed
        return value

    def __iter__(self) -> Iterator[K]:
        return iter(self._entries)

    def discard(self, key: K) -> None:
        """Forget the value of this key, if there is one."""
        known = self._entries.pop(key, None)
        self._bytes -= known[1] if known else 0

    def clear(self) -> None:
        """Forget all."""
        self._entries.clear()
        self._bytes = 0


def text_size(*texts: str | bytes | None) -> int:
    """About the bytes that an entry of these texts takes."""
    return _ENTRY + sum(len(text) for text in texts if text)


def short_key(key: TableKey) -> TableKey:
    """The key with digests in place of long names, for entries that outlive a table's schemas."""
    stream, database, schema, table = key
    return _short(stream), _short(database), schema and _short(schema), _short(table)


def _short(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def columns_size(columns: Iterable[Column], each: int = 0) -> int:
    """About the bytes that columns take; ``each`` is what is kept beside each of them."""
    return sum(
        [_COLUMN + each + len(c.name) + _TYPE_CHARACTER * len(c.source_type) for c in columns]
    )


def table_size(table: TableSchema, each: int = 0) -> int:
    """About the bytes that a table schema takes, with ``each`` beside each column."""
    names = text_size(table.database, table.schema, table.table)
    return names + columns_size(table.columns, each)


def parsers_size(source_type: str) -> int:
    """About the bytes that parsers of a type take."""
    return 2_000 + 3 * _TYPE_CHARACTER * len(source_type)


class Variants(Generic[K, V]):
    """Several values per key, of which the caller picks one, such as the variants of a table.

    The oldest goes where a key has more than ``limit``, and a key's values go together.
    """

    __slots__ = ("_cache", "_limit", "_max_bytes")

    def __init__(self, limit: int = 100, max_bytes: int | None = None) -> None:
        self._limit = limit
        self._max_bytes = MAX_CACHE_BYTES if max_bytes is None else max_bytes
        self._cache: Cache[K, tuple[list[V], list[int]]] = Cache(max_bytes)

    @property
    def bytes(self) -> int:
        """The sizes of all values together."""
        return self._cache.bytes

    def of(self, key: K) -> Sequence[V]:
        """The key's values, the oldest first."""
        found = self._cache.get(key)
        return () if found is None else found[0]

    def add(self, key: K, value: V, size: int) -> V:
        """Keep one more value of about ``size`` bytes."""
        values, sizes = self._cache.get(key) or ([], [])
        values.append(value)
        sizes.append(size)
        total = sum(sizes)
        while len(values) > 1 and (len(values) > self._limit or total > self._max_bytes):
            total -= sizes.pop(0)
            del values[0]
        self._cache.add(key, (values, sizes), total)
        return value
