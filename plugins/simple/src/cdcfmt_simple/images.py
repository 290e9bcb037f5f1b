"""What both encodings do to the images of a row."""

from __future__ import annotations

from typing import TypeAlias

from cdcfmt_core.codec import Projection
from cdcfmt_core.events import Image, TableSchema

Row: TypeAlias = tuple[TableSchema, Image | None, Image | None, dict[str, int] | None]
"""The schema of a row's columns, its images before and after, and the checksums that are not
what the message says, by their names there (None where all are right)."""


class OtherColumns(Exception):
    """A row has other columns than the plan that it was read with."""


def key_and_wanted(
    schema: TableSchema, projection: Projection
) -> tuple[tuple[str, ...], frozenset[str] | None]:
    """The key columns, and the only columns to parse; None for all."""
    key = projection.key_of(schema.column_names, schema.key_columns)
    return key, projection.wanted_of(schema.column_names, key)
