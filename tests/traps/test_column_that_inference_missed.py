"""A column that came after inference had looked, under a schema without the user's own.

Its values were NULL or ended the read; now they are in ``_rescued``, and a count says so.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType, VariantVal
from support.canal_messages import INSERT, row_message

from cdcfmt_core.events import Message
from pyspark_cdcfmt.options import parse_options
from pyspark_cdcfmt.testing import inferred_schema, read

LATER = {"id": "2", "name": "b", "price": "2.00", "added": "7"}
ADDED = row_message("INSERT", LATER)
MESSAGES = [
    Message(None, json.dumps(message).encode(), offset=place)
    for place, message in enumerate(
        [
            INSERT,
            row_message("INSERT", LATER),
            INSERT,
            row_message("INSERT", LATER | {"added": None}),
        ]
    )
]


def rescued(rows: pa.Table) -> list[str | None]:
    return [
        cell and VariantVal(cell["value"], cell["metadata"]).toJson()
        for cell in rows["_rescued"].to_pylist()
    ]


@pytest.mark.parametrize("by_kernel", [True, False])
def test_missed_column_is_rescued_and_counted(by_kernel: bool) -> None:
    options = parse_options({"table": "shop.orders", "mode": "FAILFAST"})
    schema = inferred_schema(MESSAGES[:1], options)
    assert schema is not None
    result = read(MESSAGES, schema, options, by_kernel=by_kernel)
    assert result.error is None
    assert rescued(result.rows) == [None, '{"added":7}', None, None]
    assert result.counts["added: column that the schema lacks, in _rescued"] == 1
    # A value that does not fit would be NULL in a column that is there: that fails.
    wide = row_message("INSERT", LATER | {"id": str(1 << 40)}, types={"id": "bigint"})
    beyond = [*MESSAGES, Message(None, json.dumps(wide).encode())]
    failed = read(beyond, schema, options, by_kernel=by_kernel)
    assert "shop.orders.id: 1099511627776 does not fit in 32 bits" in (failed.error or "")


def test_missed_column_fails_on_request() -> None:
    options = parse_options({"table": "shop.orders", "onSchemaChange": "fail"})
    schema = inferred_schema(MESSAGES[:1], options)
    assert schema is not None
    assert "_rescued" not in schema.names
    failed = read(MESSAGES, schema, options, by_kernel=False)
    assert "orders.added: the schema has no such column" in (failed.error or "")


def test_missed_column_is_ignored_under_a_users_schema() -> None:
    options = parse_options({"table": "shop.orders"})
    inferred = inferred_schema(MESSAGES[:1], options)
    assert inferred is not None
    schema = StructType([inferred["id"], inferred["_rescued"], inferred["_corrupt_record"]])
    rows = read(MESSAGES, schema, options, by_kernel=True, inferred=False).rows
    assert rows["id"].to_pylist() == [1, 2, 1, 2]
    assert rescued(rows) == [None] * 4
