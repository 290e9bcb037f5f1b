"""A persistent schema store, in a folder."""

from __future__ import annotations

from typing import Any, Self

from cdcfmt_core.caches import Cache, TableKey, short_key, text_size
from cdcfmt_core.schemas.store import DEFAULT_MAX_SCHEMA_BYTES, SchemaRecord, SchemaStore, Statement
from cdcfmt_core.schemas.versions import Position
from cdcfmt_toolkit.schema_directory import SchemaDirectory


class PersistentSchemaStore(SchemaStore):
    """Writes new schemas to a folder, and loads schemas from it.

    A table's schemas are loaded once, when first requested; :meth:`reload` also loads those that
    others have written since.  Every method raises SourceError if the folder cannot be read or
    written.
    """

    def __init__(
        self, directory: SchemaDirectory, max_bytes: int = DEFAULT_MAX_SCHEMA_BYTES
    ) -> None:
        super().__init__(max_bytes)
        self.directory = directory
        self._loaded: Cache[tuple[str, str | None, str], bool] = Cache(max_bytes // 4)

    def __bool__(self) -> bool:
        # The folder may have schemas that are not loaded yet.
        return True

    def add(self, record: SchemaRecord | Statement) -> None:
        super().add(record)
        if isinstance(record, SchemaRecord):
            self.directory.save(record)

    def reload(self, database: str, table: str, schema: str | None = None) -> list[SchemaRecord]:
        """Read all of the table's schemas in the folder again."""
        records = self.directory.load(database, table, schema)
        for record in records:
            self._forgotten.pop(short_key((record.stream, database, schema, table)), None)
        for record in records:
            super().add(record)
        self._loaded.add((database, schema, table), True, text_size(database, schema, table))
        return records

    def _load(self, key: TableKey) -> None:
        _, database, schema, table = key
        if not self._loaded.get((database, schema, table)):
            self.reload(database, table, schema)

    def _forgot(self, key: TableKey, position: Position) -> None:
        super()._forgot(key, position)
        # The folder still has it.
        self._loaded.discard(key[1:])
        if self._forgot_names:
            self._loaded.clear()
            self._forgot_names = False

    def __reduce__(self) -> tuple[Any, ...]:
        # Other processes read the schemas from the folder.
        made = self.directory, self._max_bytes
        return type(self), made, {"statements": self.statements}

    def copy(self) -> Self:
        made = super().copy()
        # Schemas that the copy loads are not added to this store.
        made._loaded = Cache(self._max_bytes // 4)
        return made
