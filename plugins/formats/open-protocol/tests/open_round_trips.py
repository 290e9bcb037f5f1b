"""Expected round trips of arbitrary events and of TiCDC's messages."""

from __future__ import annotations

from typing import Any

import attrs
from support.bare_types import with_bare_types, without_signs_of_zeros

from cdcfmt_core.events import Column, Event, Image, RowChange, SchemaChange
from cdcfmt_core.types import Bit, Enum, Geometry, Int, Set, Text, Year
from cdcfmt_mysql.codes import (
    BINARY_FLAG,
    HANDLE_KEY_FLAG,
    NULLABLE_FLAG,
    PRIMARY_KEY_FLAG,
    UNSIGNED_FLAG,
    flag_names,
)
from cdcfmt_mysql.type_output import column_type
from cdcfmt_testing import Carries, RoundTrip, without

CARRIES = Carries(types=without(Geometry), times=frozenset({"commit_ts"}))


def normalise(event: Event, decoded: Any) -> Event:
    """Columns ordered by name, types without parameters, key and attributes from the flags."""
    if isinstance(event, SchemaChange):
        return attrs.evolve(event, extra={"ddl_type": "Add Column"})
    if not isinstance(event, RowChange):
        return event
    table = attrs.evolve(event.table, columns=tuple(map(_with_flags, event.table.columns)))
    bare = without_signs_of_zeros(with_bare_types(attrs.evolve(event, table=table)))
    columns = tuple(sorted(bare.table.columns, key=lambda column: column.name.encode()))
    keys = tuple(column.name for column in columns if column.key)
    event = attrs.evolve(
        bare,
        table=attrs.evolve(bare.table, columns=columns, key_columns=keys),
        extra=_extra(bare, keys),
    )
    if event.op == "delete" and event.before is not None and len(keys) == len(columns):
        event.before.complete = False
    if event.before is not None and (decoded.extra or {}).get("before_unknown"):
        # Where all of a row changed, nothing shows who wrote it: a NULL of the new
        # architecture may be a value that got lost, and is not given.
        assert None in event.before.values.values()
        return attrs.evolve(event, before=decoded.before, extra=decoded.extra)
    return event


def with_only_updated(event: Event, decoded: Any) -> Event:
    """The same; unchanged columns are completed."""
    event = normalise(event, decoded)
    if (
        not isinstance(event, RowChange)
        or event.op != "update"
        or "before_unknown" in (event.extra or {})
    ):
        return event
    before, after = event.before, event.after
    assert before is not None
    assert after is not None
    changed = {n for n, value in before.values.items() if str(value) != str(after.values[n])}
    sent = changed or set(event.table.key_columns) or set(before.values)
    completed = tuple(name for name in before.values if name not in sent)
    return attrs.evolve(event, before=Image(before.values, True, completed))


def _with_flags(column: Column) -> Column:
    flags = BINARY_FLAG * (not isinstance(column.type, (Text, Enum, Set)))
    flags |= HANDLE_KEY_FLAG | PRIMARY_KEY_FLAG if column.key else NULLABLE_FLAG
    if column_type(column).unsigned or isinstance(column.type, (Bit, Year)):
        flags |= UNSIGNED_FLAG
    return attrs.evolve(column, nullable=not column.key, flags=flag_names(flags))


def _extra(event: RowChange, keys: tuple[str, ...]) -> dict[str, Any] | None:
    """A single integer key is TiDB's row id, in 64 bits with a sign; 0 is left out."""
    if len(keys) != 1:
        return None
    (key,) = (column for column in event.table.columns if column.name == keys[0])
    image = event.after or event.before
    row_id = image.values[key.name] if image and isinstance(key.type, Int) else 0
    return {"row_id": row_id if row_id < 2**63 else row_id - 2**64} if row_id else None


ROUND_TRIPS = (
    RoundTrip(carries=CARRIES, normalise=normalise),
    RoundTrip(name="batches", carries=CARRIES, writing={"maxBatchSize": 3}, normalise=normalise),
    RoundTrip(
        name="only updated columns",
        carries=CARRIES,
        writing={"onlyOutputUpdatedColumns": True},
        normalise=with_only_updated,
    ),
)

DIGITS = "TIME, DATETIME and TIMESTAMP do not tell how many digits to print: six, or none"
WITH_DIGITS = [
    *(
        f"all_types: *.c_{kind}{fsp}"
        for kind in ("datetime", "timestamp", "time")
        for fsp in (3, 6)
    ),
    "defaults_nobin: *.dtm",
    "defaults_t: *.dtm",
    "pk_time: *.ts",
    "upd_cols: *.e",
]
REPLACED = r"TiCDC wrote \ufffd, which Go escapes only where it stands for a byte"
DIFFERENCES = {
    **{f"golden.{column}.v": DIGITS for column in WITH_DIGITS},
    "golden.bad_utf8: value": REPLACED,
    "golden.bad_latin1: value": REPLACED,
}
