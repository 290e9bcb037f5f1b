"""``sync`` of PostgreSQL's numeric, whose digits ALTER TABLE changes without a message."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from support.sync_lake import Lake

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.sync import status

ID = {"type": "int32", "field": "id"}
LIMITED = {
    "type": "bytes",
    "name": "org.apache.kafka.connect.data.Decimal",
    "parameters": {"scale": "4", "connect.decimal.precision": "14"},
}
OPEN = {
    "type": "struct",
    "name": "io.debezium.data.VariableScaleDecimal",
    "fields": [{"type": "int32", "field": "scale"}, {"type": "bytes", "field": "value"}],
}
TEXT = {"type": "string"}


def line(at: int, id_: int, price: str | None, type_: dict[str, Any]) -> bytes:
    """An insert in the connector's JSON with schema, as a whole message."""
    row = [ID, {**type_, "optional": True, "field": "price"}]
    fields = [
        {"type": "struct", "optional": True, "field": "before", "fields": row},
        {"type": "struct", "optional": True, "field": "after", "fields": row},
        {"type": "struct", "field": "source", "fields": []},
        {"type": "string", "field": "op"},
    ]
    place = {"db": "shop", "schema": "public", "table": "orders", "lsn": at, "ts_ms": at}
    source = {"version": "3.6.1.Final", "connector": "postgresql", "name": "s", **place}
    after = {"id": id_, "price": price if price is None else _cell(price, type_)}
    value = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": at}
    key = {"schema": {"type": "struct", "fields": [ID]}, "payload": {"id": id_}}
    whole = {"schema": {"type": "struct", "fields": fields}, "payload": value}
    texts = (json.dumps(each).encode() for each in (key, whole))
    return wrap_line(Message(*texts, (), "s.public.orders", 0, at))


def _cell(price: str, type_: dict[str, Any]) -> Any:
    if type_ is TEXT:
        return price
    _, digits, scale = Decimal(price).as_tuple()
    places = 4 if type_ is LIMITED else -int(scale)
    number = int(Decimal(price).scaleb(places))
    assert len(digits) < 28, "more than the context of decimals keeps"
    data = number.to_bytes(16, "big", signed=True)
    text = base64.b64encode(data).decode()
    return text if type_ is LIMITED else {"scale": places, "value": text}


def prices(lake: Lake) -> dict[int, Any]:
    return {row.id: row.price for row in lake.table().collect()}


def test_numeric_loses_its_digits_and_becomes_text(delta: SparkSession, tmp_path: Path) -> None:
    source = {"protocol": "debezium"}
    first = Lake(delta, tmp_path, {"into": f"{tmp_path}/lake/{{database}}/{{table}}"}, source)
    first.run(line(1, 1, "1.5", LIMITED), line(2, 2, None, LIMITED))
    first.run(line(3, 3, "12.123456", OPEN), line(4, 4, "-1234567890123.5", OPEN))
    assert first.table().schema["price"].dataType.simpleString() == "decimal(38,18)"
    exact = {1: "1.5", 2: None, 3: "12.123456", 4: "-1234567890123.5"}
    assert prices(first) == {id_: text and Decimal(text) for id_, text in exact.items()}
    first.run(line(5, 5, "none", TEXT))
    (halted,) = (row.halted for row in status(delta, f"{tmp_path}/checkpoint").collect())
    assert "price from decimal(38,18) to string" in halted
    assert "start a new sync, into a new target, that reads all rows again" in halted
    again = Lake(
        delta,
        tmp_path / "again",
        {"into": f"{tmp_path}/again/lake/{{database}}/{{table}}"},
        source | {"path": str(tmp_path / "dump")},
    )
    again.folder.mkdir()
    again.run()
    # As PostgreSQL prints them: the first with the scale of its column then.
    assert prices(again) == {**exact, 1: "1.5000", 5: "none"}
