"""Messages of TiCDC's Avro that are no framed row, and the fields that it adds to rows.

Source: TiCDC's ``codec/avro``; with ``avro-enable-watermark``, which is for its own tests, the
first byte tells DDL, watermarks and deletes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cdcfmt_core.events import Op

BEFORE: Final = "_ticdc_before"
OP: Final = "_tidb_op"
COMMIT_TS: Final = "_tidb_commit_ts"
PHYSICAL_TIME: Final = "_tidb_commit_physical_time"
CHECKSUM: Final = "_tidb_row_level_checksum"
CORRUPTED: Final = "_tidb_corrupted"
CHECKSUM_VERSION: Final = "_tidb_checksum_version"
OPS: Final[Mapping[str, Op]] = {"c": "insert", "u": "update", "d": "delete", "": "upsert"}
"""Without enable-tidb-extension, an insert looks like an update."""
ADDED: Final = frozenset(
    {BEFORE, OP, COMMIT_TS, PHYSICAL_TIME, CHECKSUM, CORRUPTED, CHECKSUM_VERSION}
)
"""Fields that are no columns."""

_DDL: Final = b"\x01{"
_WATERMARK: Final = 2
_DELETE: Final = 3
_WITH_TIME: Final = 9
"""The length of a byte and a TSO."""


def is_ddl(value: bytes) -> bool:
    return value[:2] == _DDL and b'"commitTs"' in value and b'"query"' in value


def is_watermark(value: bytes) -> bool:
    return len(value) == _WITH_TIME and value[0] == _WATERMARK


def is_delete(value: bytes) -> bool:
    return len(value) == _WITH_TIME and value[0] == _DELETE


def watermark(tso: int) -> bytes:
    return bytes([_WATERMARK]) + tso.to_bytes(8, "big")


def delete(tso: int) -> bytes:
    return bytes([_DELETE]) + tso.to_bytes(8, "big")


def tso_of(value: bytes) -> int:
    """The TSO of a watermark or delete."""
    return int.from_bytes(value[1:], "big")
