"""The effect of the native workload's statements on existing rows, which have no events."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]


def _add_columns(row: Row) -> None:
    row |= {"extra": Decimal("1.5"), "last": None}


def _rename_column(row: Row) -> None:
    row["renamed"] = row.pop("last") or ""


def _drop_column(row: Row) -> None:
    del row["extra"]


ALTERED: dict[str, Callable[[Row], None]] = {
    "ALTER TABLE pair ADD COLUMN extra DECIMAL(12,4) DEFAULT 1.5 AFTER v, "
    "ADD COLUMN last VARCHAR(10)": _add_columns,
    "ALTER TABLE pair CHANGE last renamed VARCHAR(30) NOT NULL DEFAULT ''": _rename_column,
    "ALTER TABLE pair MODIFY n BIGINT NOT NULL DEFAULT 7": lambda row: None,
    "ALTER TABLE later COMMENT='commented /* not */ -- here'": lambda row: None,
    "ALTER TABLE pair DROP COLUMN extra": _drop_column,
}
