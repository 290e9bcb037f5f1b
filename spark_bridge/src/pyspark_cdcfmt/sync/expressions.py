"""Tables, keys and positions of changes, as columns and in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as f

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.sync.names import TableName, quote

_KEY_FORMAT = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def is_of(name: TableName) -> Column:
    """Whether an event is of a table."""
    database, schema, table = name
    return (
        (f.col("database") == database)
        & f.col("schema").eqNullSafe(f.lit(schema))
        & (f.col("table") == table)
    )


def key_text(keys: Sequence[str]) -> Column:
    """The key of a row as text: one text for each key, whatever the session's settings."""
    return f.to_json(f.struct(*map(quote, keys)), _KEY_FORMAT)


def literal(sequence: Sequence[int]) -> str:
    """A ``_sequence`` in SQL."""
    cells = ", ".join(
        f"CAST({value} AS {field.dataType.simpleString()}) AS {quote(field.name)}"
        for value, field in zip(sequence, SEQUENCE.fields, strict=True)
    )
    return f"struct({cells})"
