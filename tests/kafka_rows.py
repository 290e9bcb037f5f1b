"""Rows by value, without where they come from."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame


def comparable(frame: DataFrame) -> Counter[str]:
    """The rows of events as text, without positions; variants as JSON, which has their types."""
    columns = [
        f"to_json({field.name}) || schema_of_variant({field.name}) as {field.name}"
        if field.dataType.simpleString() == "variant"
        else field.name
        for field in frame.schema.fields
        if field.name not in ("_source", "_sequence")
    ]
    return Counter(str(row.asDict(recursive=True)) for row in frame.selectExpr(*columns).collect())
