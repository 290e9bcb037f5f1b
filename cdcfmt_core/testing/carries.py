"""What a format can express: round trips are limited to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from cdcfmt_core.events import Column, Event, Kind, Op
from cdcfmt_core.mysql.type_output import column_type, type_text
from cdcfmt_core.types import (
    Binary,
    Bit,
    Date,
    DateTime,
    Decimal,
    Enum,
    Float,
    Geometry,
    Int,
    Json,
    LogicalType,
    Set,
    Text,
    Time,
    Timestamp,
    Vector,
    Year,
)

ALL_TYPES: Final[tuple[LogicalType, ...]] = (
    *(Int(bits, signed) for bits in (8, 16, 24, 32, 64) for signed in (True, False)),
    Float(32),
    Float(64),
    Decimal(10, 2),
    Decimal(65, 30),
    Decimal(20, 0),
    Text(),
    Binary(),
    Bit(1),
    Bit(10),
    Bit(64),
    Date(),
    *(kind(fsp) for kind in (DateTime, Timestamp, Time) for fsp in (0, 1, 3, 6)),
    Year(),
    Enum(("a", "b", "c,d", "e'f", "中", "12", "\\", "")),
    Set(("x", "y y", "中", "0")),
    Json(),
    Vector(),
    Geometry(),
)
"""As in MySQL's full type texts."""


def without(*types: type[LogicalType]) -> tuple[LogicalType, ...]:
    """All types but these."""
    return tuple(logical for logical in ALL_TYPES if not isinstance(logical, types))


def mysql_column(name: str, logical: LogicalType, key: bool) -> Column:
    """A column of a table in MySQL, which says ``datetime`` where there is no fraction.

    Texts and bytes are long ones, apart from those of keys, which cannot be.
    """
    text = type_text(column_type(Column(name, "", logical)), full=True)
    if key and isinstance(logical, (Text, Binary)):
        text = "varchar(20)" if isinstance(logical, Text) else "varbinary(20)"
    if isinstance(logical, (DateTime, Timestamp, Time)) and logical.fsp == 0:
        logical = attrs.evolve(logical, fsp=None)
    return Column(name, text, logical, key=key)


_Time: TypeAlias = Literal["commit_ts", "source_time", "emit_time"]


@attrs.frozen(kw_only=True)
class Carries:
    """What a format's events may hold; what is left at its default is tried in full."""

    types: tuple[LogicalType, ...] = attrs.field(
        default=ALL_TYPES,
        metadata={"help": "Types of columns."},
    )
    column: Callable[[str, LogicalType, bool], Column] = attrs.field(
        default=mysql_column,
        metadata={
            "help": "Makes a column of its name, its type and whether it is of the key: for "
            "sources other than MySQL, and types that MySQL has not, such as Unknown."
        },
    )
    kinds: frozenset[Kind] | None = attrs.field(
        default=None,
        metadata={
            "help": "Kinds of events; by default all that the encoder takes and the codec emits."
        },
    )
    ops: tuple[Op, ...] | None = attrs.field(
        default=None,
        metadata={"help": "Operations of rows; by default all that the encoder takes."},
    )
    times: frozenset[_Time] = attrs.field(
        default=frozenset({"commit_ts", "source_time", "emit_time"}),
        metadata={
            "help": "The times that events have. A source time is the physical part of the "
            "commit_ts if there are both."
        },
    )
    time_unit: int = attrs.field(
        default=1_000,
        metadata={"help": "Unit of source and emit time, in microseconds."},
    )
    invalid_dates: bool = attrs.field(
        default=True,
        metadata={"help": "Whether there are days that no calendar has."},
    )
    earliest_year: int = attrs.field(
        default=1,
        metadata={"help": "The earliest year of dates and datetimes."},
    )
    ddl_tables: Literal[0, 1, 2] = attrs.field(
        default=0,
        metadata={"help": "How many table schemas a DDL carries: none, the one after it, or both."},
    )
    ddl_first: bool = attrs.field(
        default=False,
        metadata={"help": "Whether rows come behind a DDL that has their table's schema."},
    )
    statuses: tuple[Literal["begin", "commit", "rollback"], ...] = attrs.field(
        default=("begin", "commit", "rollback"),
        metadata={"help": "The borders of transactions."},
    )
    transaction_ids: bool = attrs.field(
        default=True,
        metadata={"help": "Whether these borders have an id."},
    )


def _unchanged(event: Event, decoded: Event) -> Event:
    return event


@attrs.frozen(kw_only=True)
class RoundTrip:
    """A way to write events and read them again: what is written must come back.

    ``writing`` and ``reading`` are options as users spell them; ``sourceTimeZone`` is
    Asia/Shanghai on both sides where they do not set it.
    ``normalise(event, decoded)`` is what the wire makes of an event: what it loses or adds.
    ``decoded`` is the event that came back, of the same class, for what only it has, such as a
    made-up version; whatever is copied from it is not tested.
    """

    name: str = "default"
    carries: Carries = Carries()
    writing: Mapping[str, Any] = attrs.field(factory=dict)
    reading: Mapping[str, Any] = attrs.field(factory=dict)
    normalise: Callable[[Any, Any], Event] = _unchanged
