"""The expressible events of a format, as limits for round-trip tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from cdcfmt_core.events import Column, Event, Kind, Op
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
from cdcfmt_mysql.type_output import column_type, type_text

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
"""All types, with the parameters of MySQL's full type texts."""


def without(*types: type[LogicalType]) -> tuple[LogicalType, ...]:
    """All types except these."""
    return tuple(logical for logical in ALL_TYPES if not isinstance(logical, types))


def mysql_column(name: str, logical: LogicalType, key: bool) -> Column:
    """A column of a MySQL table; without fraction its type is ``datetime``, not ``datetime(0)``.

    Text and binary columns have long types, except key columns, which cannot.
    """
    text = type_text(column_type(Column(name, "", logical)), full=True)
    if key and isinstance(logical, (Text, Binary)):
        text = "varchar(20)" if isinstance(logical, Text) else "varbinary(256)"
    if isinstance(logical, (DateTime, Timestamp, Time)) and logical.fsp == 0:
        logical = attrs.evolve(logical, fsp=None)
    return Column(name, text, logical, key=key)


_Time: TypeAlias = Literal["commit_ts", "source_time", "emit_time"]
_Status: TypeAlias = Literal["begin", "commit", "rollback"]


def _field(default: Any, help_: str) -> Any:
    return attrs.field(default=default, metadata={"help": help_})


@attrs.frozen(kw_only=True)
class Carries:
    """The limits of a format's events; by default, each field has none."""

    types: tuple[LogicalType, ...] = _field(ALL_TYPES, "Types of columns.")
    column: Callable[[str, LogicalType, bool], Column] = _field(  # noqa: RUF009 (a field)
        mysql_column,
        "Creates a column from its name, its type and whether it is a key column: for sources "
        "other than MySQL, and types that MySQL lacks, such as Unknown.",
    )
    kinds: frozenset[Kind] | None = _field(
        None, "Kinds of events; by default all that the encoder accepts and the codec emits."
    )
    ops: tuple[Op, ...] | None = _field(
        None, "Operations of rows; by default all that the encoder accepts."
    )
    times: frozenset[_Time] = _field(
        frozenset(get_args(_Time)),
        "The times that events have. If an event has both, its source time is the physical part "
        "of its commit_ts.",
    )
    time_unit: int = _field(1_000, "Unit of source and emit time, in microseconds.")
    invalid_dates: bool = _field(True, "Whether values include invalid dates, such as 2023-00-15.")
    earliest_year: int = _field(1, "The earliest year of dates and datetimes.")
    ddl_tables: Literal[0, 1, 2] = _field(
        0, "Number of table schemas in a DDL event: none, the new one, or both."
    )
    ddl_first: bool = _field(False, "Whether a DDL with the table's schema comes before the rows.")
    statuses: tuple[_Status, ...] = _field(get_args(_Status), "The statuses of transaction events.")
    transaction_ids: bool = _field(True, "Whether transaction events have an id.")

    def __attrs_post_init__(self) -> None:
        """:raises ValueError: for a type that is not a logical one, and for unknown times."""
        for logical in self.types:
            if type(logical) not in get_args(LogicalType):
                raise ValueError(f"carries: {logical!r} is not a type, such as Int(32)")
        if unknown := set(self.times) - set(get_args(_Time)):
            raise ValueError(f"carries: unknown times {unknown}: use {', '.join(get_args(_Time))}")


def _unchanged(event: Event, decoded: Event) -> Event:
    return event


@attrs.frozen(kw_only=True)
class RoundTrip:
    """A way to write events and read them again; the events must be equal.

    - ``writing``, ``reading``: options as users spell them; the default of ``sourceTimeZone`` is
      Asia/Shanghai on both sides.
    - ``normalise(event, decoded)``: the expected event after what the wire loses or adds.
      ``decoded`` is the event read back, of the same class, as a source of generated values such
      as a version; values copied from it are not tested.
    """

    name: str = "default"
    carries: Carries = Carries()
    writing: Mapping[str, Any] = attrs.field(factory=dict)
    reading: Mapping[str, Any] = attrs.field(factory=dict)
    normalise: Callable[[Any, Any], Event] = _unchanged
