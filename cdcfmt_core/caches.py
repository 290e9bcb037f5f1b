"""Caches bounded by bytes.

A limit on entries does not bound memory: ten thousand plans of tables with two thousand columns
take gigabytes.  Sizes are estimates, which a test compares with the memory really used.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeAlias, TypeVar

from cdcfmt_core.events import Column, TableSchema

MAX_CACHE_BYTES = 64 << 20

_ENTRY: Final = 300
_LONGEST_NAME: Final = 200
_COLUMN: Final = 400
_TYPE_CHARACTER: Final = 12
"""Bytes per character of a type: ENUM and SET keep a string per name, of about four characters."""

TableKey: TypeAlias = tuple[str, str, str | None, str]
"""Stream, database, schema and table."""

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key. Beyond ``max_bytes`` the least recently used values are dropped.

    The newest value always stays.  A dropped value must be reproducible.
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
        """The total size of all values."""
        return self._bytes

    def get(self, key: K) -> V | None:
        """The value, marked as most recently used; None if unknown."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        # In a half-empty cache uses are not recorded, to save time.
        if self._bytes > self._half:
            self._entries.move_to_end(key)
        return entry[0]

    def add(self, key: K, value: V, size: int) -> V:
        """Store a value of about ``size`` bytes; replaces the key's previous value."""
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
        """Remove the value of this key, if any."""
        known = self._entries.pop(key, None)
        self._bytes -= known[1] if known else 0

    def clear(self) -> None:
        """Remove all values."""
        self._entries.clear()
        self._bytes = 0


def text_size(*texts: str | bytes | None) -> int:
    """Approximate size in bytes of an entry with these texts."""
    return _ENTRY + sum(len(text) for text in texts if text)


def short_key(key: TableKey) -> TableKey:
    """The key with digests for long names, for entries that outlive a table's schemas."""
    stream, database, schema, table = key
    return _short(stream), _short(database), schema and _short(schema), _short(table)


def _short(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return name
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def columns_size(columns: Iterable[Column], each: int = 0) -> int:
    """Approximate size in bytes of columns, plus ``each`` bytes per column."""
    return sum(
        [_COLUMN + each + len(c.name) + _TYPE_CHARACTER * len(c.source_type) for c in columns]
    )


def table_size(table: TableSchema, each: int = 0) -> int:
    """Approximate size in bytes of a table schema, plus ``each`` bytes per column."""
    names = text_size(table.database, table.schema, table.table)
    return names + columns_size(table.columns, each)
