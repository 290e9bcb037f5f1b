"""Type maps of another database than MySQL, whose text the messages have."""

from __future__ import annotations

from typing import Any

import pytest
from dialect_messages import corrupt_reason, decode_row, table

from cdcfmt_core.types import IntervalValue


@pytest.mark.parametrize(
    ("source_type", "wire", "value"),
    [
        ("integer[]", "{1,NULL}", [1, None]),
        ("interval", "1 mon", IntervalValue(1, 0, 0)),
        ("boolean", "t", True),
        ("text", "t", "t"),
    ],
)
def test_the_type_map_reads_its_texts(source_type: str, wire: str, value: Any) -> None:
    row = decode_row(table({"c": source_type}, {"c": wire}), typeMap="postgresql")
    assert row.after is not None
    assert row.after.values == {"c": value}


@pytest.mark.parametrize("form", ["auto", "latin1"])
def test_bytes_have_the_form_of_the_type_map(form: str) -> None:
    options = {"typeMap": "postgresql", "binaryEncoding": form}
    row = decode_row(table({"c": "bytea"}, {"c": "\\x00ff"}), **options)
    assert row.after is not None
    assert row.after.values == {"c": b"\0\xff"}
    reason = corrupt_reason(table({"c": "bytea"}, {"c": "\\x0"}), **options)
    assert "data[0].c: is not a bytea of PostgreSQL" in reason
    assert "binaryEncoding" not in reason


def test_a_given_form_of_bytes_is_the_producer_s() -> None:
    options = {"typeMap": "postgresql", "binaryEncoding": "base64"}
    row = decode_row(table({"c": "bytea"}, {"c": "AP8="}), **options)
    assert row.after is not None
    assert row.after.values == {"c": b"\0\xff"}
    assert "set binaryEncoding" in corrupt_reason(table({"c": "bytea"}, {"c": "x"}), **options)


def test_a_bad_value_names_its_column() -> None:
    reason = corrupt_reason(table({"c": "uuid"}, {"c": "x"}), typeMap="postgresql")
    assert "data[0].c: is not a uuid of PostgreSQL" in reason
