"""Row images, for both message encodings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from cdcfmt_core.events import Image, TableSchema
from cdcfmt_core.toolkit.images import key_changed

WireImage: TypeAlias = Mapping[str, Any] | None
"""An undecoded image."""

Row: TypeAlias = tuple[TableSchema, Image | None, Image | None, dict[str, int] | None]
"""The schema of a row's columns, its before and after image, and the computed checksums that
differ from those in the message, by their names (None if there are none)."""


def wanted_old(
    new: WireImage, old: WireImage, key_columns: tuple[str, ...], *, before_updates: bool
) -> WireImage:
    """The before image if it must be decoded: always, except for updates with the same key and
    ``before_updates`` off."""
    if new is None or old is None or before_updates or key_changed(old, new, key_columns):
        return old
    return None
