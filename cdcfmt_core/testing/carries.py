"""What a format can say, so that round trips try nothing else, and how they are made."""

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
"""As full type texts of MySQL tell them."""


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
    """What a format's events may hold.  What is left at its default is tried in full.

    ``types``: of a table's columns.  ``column`` makes one: name, type, whether it is of the key.
    ``kinds``, ``ops``: of events and rows; None for all that the encoder takes and the codec
    emits.
    ``times``: those that events have; a source time is the physical part of the commit_ts if
    there are both.  ``time_unit``: of source and emit time, in microseconds.
    ``invalid_dates``: days that no calendar has.  ``earliest_year``: of dates and datetimes.
    ``ddl_tables``: how many table schemas a DDL carries: none, the one after it, or both.
    ``ddl_first``: rows come behind a DDL that tells their table.
    ``statuses``, ``transaction_ids``: of the borders of transactions.
    """

    types: tuple[LogicalType, ...] = ALL_TYPES
    column: Callable[[str, LogicalType, bool], Column] = mysql_column
    kinds: frozenset[Kind] | None = None
    ops: tuple[Op, ...] | None = None
    times: frozenset[_Time] = frozenset({"commit_ts", "source_time", "emit_time"})
    time_unit: int = 1_000
    invalid_dates: bool = True
    earliest_year: int = 1
    ddl_tables: Literal[0, 1, 2] = 0
    ddl_first: bool = False
    statuses: tuple[Literal["begin", "commit", "rollback"], ...] = ("begin", "commit", "rollback")
    transaction_ids: bool = True


def _unchanged(event: Event, decoded: Event) -> Event:
    return event


@attrs.frozen(kw_only=True)
class RoundTrip:
    """A way to write events and read them again: what is written must come back.

    ``writing`` and ``reading`` are options as users spell them; ``sourceTimeZone`` is
    Asia/Shanghai on both sides where they do not set it.
    ``normalise(event, decoded)`` is what the wire makes of an event: what it loses or adds.
    ``decoded`` is what did come back, of the same class, for what only it can tell, such as a
    made-up version; whatever is copied from it is not tested.
    """

    name: str = "default"
    carries: Carries = Carries()
    writing: Mapping[str, Any] = attrs.field(factory=dict)
    reading: Mapping[str, Any] = attrs.field(factory=dict)
    normalise: Callable[[Any, Any], Event] = _unchanged
