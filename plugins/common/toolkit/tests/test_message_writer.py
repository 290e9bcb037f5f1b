"""Rows are written in the order of the table's columns; errors name the column."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdcfmt_core import EncoderContext, types
from cdcfmt_core.errors import EncodeError
from cdcfmt_core.events import Column, Image, RowChange, TableSchema
from cdcfmt_toolkit.encodings import Encoding
from cdcfmt_toolkit.large_message_output import LargeMessageOutput
from cdcfmt_toolkit.message_writer import MessageWriter, RowWriter
from cdcfmt_toolkit.row_messages import (
    ColumnTemplate,
    ExtraValue,
    ImageTemplate,
    Number,
    RowMessage,
    RowMessages,
    RowNumber,
)

A, B = "a'\"\\\n{0}", "b"


def _dumps(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("rows_before", [0, 100])
def test_rows_follow_column_order_and_errors_name_the_column(rows_before: int) -> None:
    columns = (Column(A, "text", types.Text()), Column(B, "tinyint", types.Int(8)))
    table = TableSchema("shop", "orders", columns, ())
    writer = MessageWriter(
        "orjson", EncoderContext(LargeMessageOutput()), dumps=_dumps, table=table
    )
    image = ImageTemplate(
        "after", {name: ColumnTemplate(writer.name(name) + ":") for name in (A, B)}
    )
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


MISSPELT: dict[str, Any] = {
    "Number: name is 'millis', not one of .*; did you mean emit_millis": lambda: Number("millis"),  # type: ignore[arg-type]
    "ImageTemplate: image is 'old', not one of before, after": lambda: ImageTemplate("old", {}),  # type: ignore[arg-type]
    "ExtraValue: type is 'int', .* did you mean": lambda: ExtraValue("n", "int", ""),  # type: ignore[arg-type]
    "RowMessage: wire is 'JSON'": lambda: RowMessage((), wire="JSON"),  # type: ignore[arg-type]
    "Encoding: name is 'mysql_text', .* mean mysql-text": lambda: Encoding("mysql_text"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("reason", MISSPELT)
def test_unknown_names_are_reported(reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        MISSPELT[reason]()


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (5, "5 is not a part of a message"),
        (RowNumber("n"), "a RowNumber needs a MessageWriter with numbers"),
        (
            ImageTemplate("after", {"c": ColumnTemplate("c")}),
            "column c: the table's schema has no such column",
        ),
        (
            ImageTemplate("after", {"b": ColumnTemplate("b", Encoding("json-value"))}),
            r"values of Int\(bits=8, signed=True\) cannot be written as json-value",
        ),
    ],
)
def test_invalid_parts_are_reported(part: Any, reason: str) -> None:
    table = TableSchema("shop", "orders", (Column(B, "tinyint", types.Int(8)),), ())
    context = EncoderContext(LargeMessageOutput())
    writer = MessageWriter("orjson", context, dumps=_dumps, table=table)
    with pytest.raises((TypeError, ValueError), match=reason):
        writer.open((part,))


def test_json_needs_a_writer_of_bytes() -> None:
    context = EncoderContext(LargeMessageOutput())
    for more in ({}, {"dumps": json.dumps}):
        with pytest.raises(TypeError, match="JSON needs dumps, a function that returns bytes"):
            MessageWriter("orjson", context, **more)  # type: ignore[arg-type]
