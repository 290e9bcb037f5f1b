"""Verification of rows' checksums, over the columns in the order of their ids.

The columns of ``tableSchema`` are in that order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import TableSchema
from cdcfmt_simple.instants import Zones
from cdcfmt_simple.message import Wire
from cdcfmt_toolkit.row_checksum import COUNTED, checksum_of, text_in_utc
from cdcfmt_toolkit.wire_json import object_of


class Verifier:
    """Recomputes checksums.

    ``fails``: a row with a different checksum is corrupt.
    """

    def __init__(self, zones: Zones, counts: Counter[str], *, fails: bool) -> None:
        self._zones = zones
        self._counts = counts
        self._fails = fails

    def verify(
        self,
        wire: Wire,
        schema: TableSchema,
        data: Mapping[str, Any] | None,
        old: Mapping[str, Any] | None,
    ) -> dict[str, int] | None:
        """The computed checksums that differ (None if there are none) for undecoded images.

        A checksum of 0 in the message means that there is none.

        :raises DecodeError: if a checksum differs, with ``fails``.
        """
        checksum = object_of(wire, "checksum") or {}
        mismatch = {}
        for field, image in (("current", data), ("previous", old)):
            expected = checksum.get(field)
            if type(expected) is not int:
                raise DecodeError("is not a number", field=f"checksum.{field}", sample=expected)
            if expected and image is not None:
                computed = self.compute(schema, image)
                if computed != expected & 0xFFFF_FFFF:
                    mismatch[field] = computed
        if mismatch:
            self._counts[COUNTED] += 1
            if self._fails:
                field, computed = next(iter(mismatch.items()))
                raise DecodeError(
                    f"the row's columns give {computed}; the row was modified in transit, or it "
                    "is a false alarm of TiCDC (verifyChecksum=true accepts it)",
                    field=f"checksum.{field}",
                    sample=checksum[field],
                )
        return mismatch or None

    def compute(self, schema: TableSchema, image: Mapping[str, Any]) -> int:
        """The checksum of an undecoded image.

        :raises DecodeError: for an invalid value.
        """
        return checksum_of(schema.columns, image, lambda value: self._in_utc(value, schema))

    def _in_utc(self, value: Any, schema: TableSchema) -> str:
        location, text = ("", value) if type(value) is str else (value["location"], value["value"])
        return text_in_utc(self._zones.opener(schema)(location)(text), text)
