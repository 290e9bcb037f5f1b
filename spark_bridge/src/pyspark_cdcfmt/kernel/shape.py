"""The wanted columns of every table, and the filters of a read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs
import pyarrow as pa
from pyspark.sql.types import StructField

from cdcfmt_core.codec import Projection
from cdcfmt_core.column_names import lacking
from cdcfmt_core.errors import PolicyError
from cdcfmt_core.events import TableSchema
from cdcfmt_core.filters import EventFilter
from cdcfmt_core.schema_store import SchemaStore
from pyspark_cdcfmt.rows.columns import match_fields, match_keys
from pyspark_cdcfmt.rows.policy import ValuePolicy


class Unlike(Exception):
    """Such messages are for the reference."""


@attrs.frozen
class Shape:
    """What is wanted of every table.

    ``schema`` is that of the rows.  ``metadata`` are the names of its columns besides the table's
    own, with what they are without prefix; ``fields`` are the table's own.
    ``inferred``: a column that the schema lacks is a change of the table's schema.
    ``split``: an update of the key is two changes, which the reference makes.
    ``schemas`` are those that the decoder goes by.  ``events``: of the events shape, and what
    images are in it; there are no ``fields`` then.
    ``row_bytes`` are those of a row of NULLs.  Rows with a commit_ts before ``fence`` may be
    duplicates.
    """

    schema: pa.Schema
    metadata: Mapping[str, str]
    fields: Sequence[StructField]
    projection: Projection
    event_filter: EventFilter
    schemas: SchemaStore
    policy: ValuePolicy
    inferred: bool
    split: bool
    events: Literal["json", "variant"] | None = None
    row_bytes: int = 0
    fence: int = 0

    def key_of(self, table: TableSchema) -> tuple[str, ...]:
        """The key here, whether or not the table has such columns.

        :raises Unlike: if a name is not clear, which is the reference path's to say.
        """
        given = self.projection.key_columns
        if not given:
            return table.key_columns
        try:
            keys = match_keys(given, table.column_names, case_sensitive=self._case_sensitive)
        except PolicyError as error:
            raise Unlike(str(error)) from error
        reason = None if self.events else lacking(keys, table.column_names)
        if reason:
            raise Unlike(reason)
        return keys

    def keys_of(self, table: TableSchema) -> tuple[str, ...]:
        """The table's columns that are its key here."""
        return tuple(name for name in self.key_of(table) if name in table.column_names)

    def is_keyed(self, table: TableSchema) -> bool:
        """Whether the table's rows have key columns."""
        return bool(self.projection.key_columns or table.key_columns)

    def wanted_of(self, table: TableSchema) -> tuple[str, ...]:
        """The table's columns that have to be parsed."""
        looked_at = self.projection.wanted_of(table.column_names, self.keys_of(table))
        if looked_at is None:
            return table.column_names
        return tuple(name for name in table.column_names if name in looked_at)

    @property
    def _case_sensitive(self) -> bool:
        return self.projection.case_sensitive

    def own_of(self, table: TableSchema) -> dict[str, StructField]:
        """The fields by the names of the table's columns.

        :raises Unlike: if their names are not clear, which is the reference path's to say.
        """
        try:
            return match_fields(
                self.fields, table.column_names, case_sensitive=self._case_sensitive
            )
        except PolicyError as error:
            raise Unlike(str(error)) from error
