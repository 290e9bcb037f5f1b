"""The logical types in the table of Spark types."""

from __future__ import annotations

from cdcfmt_core import types as logical
from cdcfmt_core.types import LogicalType

DOCUMENTED: tuple[tuple[str, LogicalType], ...] = (
    ("Bool", logical.Bool()),
    ("Int(8)", logical.Int(8)),
    ("Int(8) unsigned", logical.Int(8, signed=False)),
    ("Int(16)", logical.Int(16)),
    ("Int(16) unsigned", logical.Int(16, signed=False)),
    ("Int(24)", logical.Int(24)),
    ("Int(24) unsigned", logical.Int(24, signed=False)),
    ("Int(32)", logical.Int(32)),
    ("Int(32) unsigned", logical.Int(32, signed=False)),
    ("Int(64)", logical.Int(64)),
    ("Int(64) unsigned", logical.Int(64, signed=False)),
    ("Float(32)", logical.Float(32)),
    ("Float(64)", logical.Float(64)),
    ("Decimal(10, 4)", logical.Decimal(10, 4)),
    ("Decimal(65, 30)", logical.Decimal(65, 30)),
    ("Decimal, digits unknown, values such as 93.51", logical.Decimal(scale=2)),
    ("Decimal, digits unknown, only NULLs", logical.Decimal()),
    ("Text", logical.Text()),
    ("Binary", logical.Binary()),
    ("Bit(1)", logical.Bit(1)),
    ("Bit(10)", logical.Bit(10)),
    ("Bit(64)", logical.Bit(64)),
    ("Bit, unknown", logical.Bit()),
    ("Date", logical.Date()),
    ("DateTime", logical.DateTime()),
    ("Timestamp", logical.Timestamp()),
    ("Time", logical.Time()),
    ("Year", logical.Year()),
    ("Enum, names known", logical.Enum(("a",))),
    ("Enum, unknown", logical.Enum()),
    ("Set, names known", logical.Set(("a",))),
    ("Set, unknown", logical.Set()),
    ("Json", logical.Json()),
    ("Vector(32)", logical.Vector()),
    ("Vector(64)", logical.Vector(64)),
    ("Geometry", logical.Geometry()),
    ("Array(Int(32))", logical.Array(logical.Int(32))),
    ("Map(Text, Text)", logical.Map(logical.Text(), logical.Text())),
    ("Struct(a Date, b Json)", logical.Struct((("a", logical.Date()), ("b", logical.Json())))),
    ("Unknown", logical.Unknown()),
)
"""The rows of the table of Spark types in docs/types.md."""
