"""Rows are written in the order of their table's columns, and bad ones are named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdcfmt_core import EncoderContext, types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_core.toolkit.large_message_output import LargeMessageOutput
from cdcfmt_core.toolkit.message_writer import MessageWriter, RowWriter
from cdcfmt_core.toolkit.row_messages import Member, Members, RowMessage, RowMessages

A, B = "a'\"\\\n{0}", "b"


def _dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("rows_before", [0, 100])
def test_rows_keep_the_order_of_the_columns_and_name_bad_ones(rows_before: int) -> None:
    columns = (Column(A, "text", types.Text()), Column(B, "tinyint", types.Int(8)))
    table = TableSchema("shop", "orders", columns, ())
    writer = MessageWriter(
        "orjson", EncoderContext(LargeMessageOutput()), dumps=_dumps, table=table
    )
    image = Members("after", {name: Member(writer.name(name) + ":") for name in (A, B)})
    rows = RowWriter(table, RowMessages({"insert": RowMessage((image,), wire="orjson")}), writer)

    def written(values: dict[str, Any]) -> list[tuple[str, Any]]:
        _, value = rows.write(RowChange("insert", table, None, Image(values)))
        return list(json.loads(value).items())

    for _ in range(rows_before):
        written({A: "x", B: 1})
    assert written({B: 1, A: None}) == [(A, None), (B, "1")]
    assert written({B: None, A: "x"}) == [(A, "x"), (B, None)]
    assert written({B: 1}) == [(B, "1")]
    assert written({A: "\udcff", B: 1}) == [(A, "\ufffd"), (B, "1")]
    with pytest.raises(EncodeError, match=r"column b: .*not within -128 and 127.*got 200"):
        written({A: "x", B: 200})
    with pytest.raises(EncodeError, match="not a value of the column's type"):
        written({A: b"x", B: 1})
    with pytest.raises(EncodeError, match="column c: the table's schema has no such column"):
        written({A: "x", "c": 1})
