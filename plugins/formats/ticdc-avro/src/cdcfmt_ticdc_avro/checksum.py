"""Verification of rows' checksums (``integrity-check-level=correctness``).

The fields of a record are in the order of the columns' ids, over which TiDB computes the checksum.
The new architecture of TiCDC sums in the order of the table: after ADD COLUMN with FIRST or AFTER,
it writes another checksum for intact rows, so that a mismatch is no proof of a damaged row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdcfmt_core import DecoderContext, types
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_mysql.temporal import timestamp_parser
from cdcfmt_ticdc_avro.message import CHECKSUM
from cdcfmt_toolkit.row_checksum import COUNTED, checksum_of, text_in_utc


class Verifier:
    """Recomputes checksums; ``fails``: a row with a different one is corrupt."""

    def __init__(self, context: DecoderContext, *, fails: bool) -> None:
        self._counts = context.counts
        self._parse = timestamp_parser(context.time_zone, context.counts)
        self._fails = fails

    def verify(self, table: TableSchema, row: Mapping[str, Any], expected: int) -> int | None:
        """The computed checksum of an undecoded row if it differs; else None.

        :raises DecodeError: if it differs, with ``fails``.
        """
        image = {column.name: _number(column, row[column.name]) for column in table.columns}
        computed = checksum_of(table.columns, image, self._in_utc)
        if computed == expected:
            return None
        self._counts[COUNTED] += 1
        if self._fails:
            raise DecodeError(
                f"the row's columns give {computed}; the row was modified in transit, or a column "
                "was added with FIRST or AFTER (verifyChecksum=true accepts it)",
                field=CHECKSUM,
                sample=expected,
            )
        return computed

    def _in_utc(self, text: str) -> str:
        return text_in_utc(self._parse(text), text)


def _number(column: Column, value: Any) -> Any:
    """The number of a BIT, ENUM or SET; other values are unchanged."""
    logical = column.type
    if value is None:
        return None
    if isinstance(logical, types.Bit):
        return int.from_bytes(value, "big")
    if isinstance(logical, types.Enum) and logical.names and value in logical.names:
        return logical.names.index(value) + 1
    if isinstance(logical, types.Set) and logical.names is not None:
        return sum(1 << logical.names.index(name) for name in value.split(",") if value)
    return value
