"""Rows by value, without where they come from."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame


def comparable(frame: DataFrame, *, places: bool = False) -> Counter[str]:
    """The rows of events as text; variants as JSON, which has their types.

    Without their ``places``, unless they must be the same, too.
    """
    columns = [
        f"to_json({field.name}) || schema_of_variant({field.name}) as {field.name}"
        if field.dataType.simpleString() == "variant"
        else field.name
        for field in frame.schema.fields
        if places or field.name not in ("_source", "_sequence")
    ]
    return Counter(str(row.asDict(recursive=True)) for row in frame.selectExpr(*columns).collect())


def differences(found: Counter[str], wanted: Counter[str]) -> list[str]:
    """The rows that only one of them has: at hundreds of rows pytest shows the last ones only."""
    sides = (("only found", found - wanted), ("only wanted", wanted - found))
    return [f"{count} {side}: {row}" for side, rows in sides for row, count in rows.items()]
