"""Unavailable values: absent from their images, which is not NULL.

Source: Debezium PostgreSQL connector, "Toasted values", and Oracle's LOBs: a column that the
change did not touch holds ``unavailable.value.placeholder``, as text, as the base64 of its
bytes, or inside of an array or map.
"""

from __future__ import annotations

import base64
from typing import Any


class Unavailable:
    """Finds the placeholder in messages and takes it out of images."""

    def __init__(self, placeholder: str) -> None:
        data = placeholder.encode("utf-8", "surrogateescape")
        encoded = base64.b64encode(data)
        # As it may stand in JSON text.
        self._bytes = (data, encoded) if placeholder else ()
        self._texts = frozenset({placeholder, encoded.decode()}) if placeholder else frozenset()

    def in_message(self, value: bytes) -> bool:
        """Whether the placeholder stands anywhere in the message."""
        return any(text in value for text in self._bytes)

    def take_from(self, row: dict[str, Any]) -> tuple[str, ...]:
        """Remove columns that are unavailable from the row; their names."""
        names = tuple(name for name, value in row.items() if self._is(value))
        for name in names:
            del row[name]
        return names

    def _is(self, value: Any) -> bool:
        if type(value) is str:
            return value in self._texts
        if type(value) is list:
            return bool(value) and all(type(v) is str and v in self._texts for v in value)
        if type(value) is dict:
            return len(value) == 1 and next(iter(value)) in self._texts
        return False
