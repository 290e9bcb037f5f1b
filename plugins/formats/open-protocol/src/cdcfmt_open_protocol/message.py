"""Numbers and names of the Open Protocol.

https://docs.pingcap.com/tidb/stable/ticdc-open-protocol, sections "Message format", "Event
format" and "DDL type code".  Written by TiCDC but not documented: ``rid``, ``ptn``, ``ohk``
and ``ccl`` in keys, and DDL codes above 36, which are TiDB's ``ActionType``.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1
ROW: Final = 1
DDL: Final = 2
RESOLVED: Final = 3

KEY_FIELDS: Final = frozenset({"ts", "scm", "tbl", "t", "ohk", "ccl"})
"""Fields of an event key that have a field in an event."""

NAME_IN_EXTRA: Final = {"rid": "row_id", "ptn": "partition_id"}

BASE64_CODES: Final = frozenset({249, 250, 251, 252})
"""Type codes of TEXT and BLOB, whose values are in base64."""

ROW_FIELDS: Final = frozenset({"u", "p", "d"})
DDL_FIELDS: Final = frozenset({"q", "t"})

DDL_NAMES: Final = {
    1: "Create Schema",
    2: "Drop Schema",
    3: "Create Table",
    4: "Drop Table",
    5: "Add Column",
    6: "Drop Column",
    7: "Add Index",
    8: "Drop Index",
    9: "Add Foreign Key",
    10: "Drop Foreign Key",
    11: "Truncate Table",
    12: "Modify Column",
    13: "Rebase Auto ID",
    14: "Rename Table",
    15: "Set Default Value",
    16: "Shard RowID",
    17: "Modify Table Comment",
    18: "Rename Index",
    19: "Add Table Partition",
    20: "Drop Table Partition",
    21: "Create View",
    22: "Modify Table Charset And Collate",
    23: "Truncate Table Partition",
    24: "Drop View",
    25: "Recover Table",
    26: "Modify Schema Charset And Collate",
    27: "Lock Table",
    28: "Unlock Table",
    29: "Repair Table",
    30: "Set TiFlash Replica",
    31: "Update TiFlash Replica Status",
    32: "Add Primary Key",
    33: "Drop Primary Key",
    34: "Create Sequence",
    35: "Alter Sequence",
    36: "Drop Sequence",
}
"""Names of DDL codes in the document."""

DDL_CODES: Final = {name.lower(): code for code, name in DDL_NAMES.items()}
