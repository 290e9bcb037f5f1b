"""What both encodings do to the images of a row."""

from __future__ import annotations

import attrs

from cdcfmt_core.codec import Projection
from cdcfmt_core.events import Image, TableSchema


@attrs.define
class Row:
    """The images of a row, and the schema of its columns.

    ``mismatch`` are the checksums that are not what the message says, by their names there.
    """

    schema: TableSchema
    before: Image | None
    after: Image | None
    mismatch: dict[str, int] | None = None


class OtherColumns(Exception):
    """A row has other columns than the plan that it was read with."""


def wanted_columns(schema: TableSchema, projection: Projection) -> frozenset[str] | None:
    """The only columns to parse; None for all."""
    if projection.columns is None:
        return None
    return projection.columns.union(projection.key_columns or schema.key_columns)
