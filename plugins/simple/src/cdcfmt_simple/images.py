"""The images of a row, in either encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from cdcfmt_core.events import Image, TableSchema
from cdcfmt_core.toolkit.images import key_changed

WireImage: TypeAlias = Mapping[str, Any] | None
"""An image as the wire has it."""

Row: TypeAlias = tuple[TableSchema, Image | None, Image | None, dict[str, int] | None]
"""The schema of a row's columns, its images before and after, and the checksums that are not
what the message says, by their names there (None where all are right)."""


def wanted_old(
    new: WireImage, old: WireImage, key_columns: tuple[str, ...], *, before_updates: bool
) -> WireImage:
    """The image before, if it is read: of an update it may be left out, unless the key changed."""
    if new is None or old is None or before_updates or key_changed(old, new, key_columns):
        return old
    return None
