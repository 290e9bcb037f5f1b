"""Fields, enumerations and union branches of a DTS record.

Source: ``Record.avsc`` of the DTS subscription SDK, namespace
``com.alibaba.dts.formats.avro``.  A message is one record in plain Avro binary, without
container, registry or schema; its fields have this order:

    version int · id long · sourceTimestamp long · sourcePosition string ·
    safeSourcePosition string · sourceTxid string · source {sourceType enum, version string} ·
    operation enum · objectName null|string · processTimestamps null|array<long> ·
    tags map<string> · fields null|string|array<{name string, dataTypeNumber int}> ·
    beforeImages, afterImages null|string|array<value> · bornTimestamp long

Only newer producers write ``bornTimestamp``.  An image's values are in the order of
``fields``; the branches of a value are numbered below.
"""

from __future__ import annotations

from typing import Final, Literal

from cdcfmt_core.events import Op

SOURCE_TYPES: Final = (
    "MySQL",
    "Oracle",
    "SQLServer",
    "PostgreSQL",
    "MongoDB",
    "Redis",
    "DB2",
    "PPAS",
    "DRDS",
    "HBASE",
    "HDFS",
    "FILE",
    "OTHER",
)

DEFAULT_SOURCE: Final = "MySQL"
"""Source type of events without one; DTS uses MySQL's type numbers."""

OPERATIONS: Final = (
    "INSERT",
    "UPDATE",
    "DELETE",
    "DDL",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "ABORT",
    "HEARTBEAT",
    "CHECKPOINT",
    "COMMAND",
    "FILL",
    "FINISH",
    "CONTROL",
    "RDB",
    "NOOP",
    "INIT",
)

OP_OF_OPERATION: Final[dict[str, Op]] = {
    "INSERT": "insert",
    "UPDATE": "update",
    "DELETE": "delete",
    "INIT": "read",
}
"""Any other operation with images is an upsert or delete."""

STATUS_OF_OPERATION: Final[dict[str, Literal["begin", "commit", "rollback"]]] = {
    "BEGIN": "begin",
    "COMMIT": "commit",
    "ROLLBACK": "rollback",
    "ABORT": "rollback",
}

(
    NULL,
    INTEGER,
    CHARACTER,
    DECIMAL,
    FLOAT,
    TIMESTAMP,
    DATETIME,
    ZONED_TIMESTAMP,
    BINARY_GEOMETRY,
    TEXT_GEOMETRY,
    BINARY_OBJECT,
    TEXT_OBJECT,
    EMPTY_OBJECT,
) = range(13)
"""Branches of a value: their numbers in the union."""

SQL_NULL, ABSENT = range(2)
"""The symbols of EmptyObject: ``NULL`` is SQL NULL, ``NONE`` an absent column."""

SECONDS_LIMIT: Final = 100_000_000_000
"""10^11 milliseconds is March 1973 and 10^11 seconds is the year 5138: one limit distinguishes the
units of ``sourceTimestamp`` for every real source."""

EARLIEST_BORN: Final = 100_000_000
"""March 1973 in seconds: a smaller ``bornTimestamp`` is taken for unrelated trailing bytes."""
