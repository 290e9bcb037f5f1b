"""Simple's JSON by the kernel: read and refused messages."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from support.golden_data import read_jsonl

from cdcfmt_core.events import Message
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

VERSION = 470604474496319489
TS = 470604474498940934
BERLIN, LOCAL = "Europe/Berlin", "Local"


def message(**wire: Any) -> Message:
    return Message(None, json.dumps({"version": 1, "buildTs": 1795213666663, **wire}).encode())


def bootstrap(version: int = VERSION, *more: dict[str, Any]) -> Message:
    columns = [
        {"name": "id", "dataType": {"mysqlType": "int", "length": 11}, "nullable": False},
        {"name": "at", "dataType": {"mysqlType": "timestamp", "decimal": 0}, "nullable": True},
        *more,
    ]
    index = {"name": "primary", "unique": True, "primary": True, "columns": ["id"]}
    schema = {"schema": "shop", "table": "orders", "tableID": 1, "version": version}
    table_schema = {**schema, "columns": columns, "indexes": [index]}
    return message(type="BOOTSTRAP", commitTs=0, tableSchema=table_schema)


WATERMARK = message(type="WATERMARK", commitTs=TS)
ANOTHER = {"name": "more", "dataType": {"mysqlType": "int", "length": 11}, "nullable": True}


def at(location: str | None, text: str = "2024-03-04 05:06:07") -> Any:
    return text if location is None else {"location": location, "value": text}


def row(number: int, value: Any = None, op: str = "INSERT", **members: Any) -> Message:
    of_table = {"database": "shop", "table": "orders", "tableID": 1, "schemaVersion": VERSION}
    image = {"id": str(number), "at": value, **members.pop("more", {})}
    images: dict[str, Any] = {"data": image} if op != "DELETE" else {"old": image}
    if op == "UPDATE":
        images["old"] = {**image, "at": None}
    return message(**{**of_table, "type": op, "commitTs": TS + number, **members, **images})


def check(messages: list[Message], **given: str) -> list[Result]:
    """As changes and as events, with JSON and with variants."""
    results = []
    for extra in ({"table": "shop.orders"}, {"imageFormat": "json"}, {}):
        options = parsed({"protocol": "simple", **given, **extra})
        schema = events_schema(options)
        if "table" in extra:
            inferred = inferred_schema(messages, options)
            assert inferred is not None
            schema = inferred
        results.append(check_equal(messages, schema, options))
    return results


def test_kernel_reads_nearly_all_messages_of_ticdc() -> None:
    messages = [
        Message(None, base64.b64decode(line["value_b64"]), offset=line["seq"])
        for line in read_jsonl("bench/simple-json.jsonl.gz")
    ]
    for extra in ({"table": "bench.orders"}, {"imageFormat": "json"}, {}):
        options = parsed({"protocol": "simple", "sourceTimeZone": "Asia/Shanghai", **extra})
        schema = events_schema(options)
        if "table" in extra:
            inferred = inferred_schema(messages, options)
            assert inferred is not None
            schema = inferred
        result = check_equal(messages, schema, options)
        # DDL of the database and of the table, and the first row.
        assert (result.by_kernel, result.by_reference) == (len(messages) - 3, 3)


@pytest.mark.parametrize("location", [BERLIN, "Asia/Shanghai", "UTC", LOCAL, "", None])
def test_kernel_reads_every_operation_in_every_zone(location: str | None) -> None:
    words = ("INSERT", "UPDATE", "DELETE")
    rows = [row(number, at(location), words[number % 3]) for number in range(60)]
    for result in check([bootstrap(), *rows], sourceTimeZone="America/New_York"):
        assert result.by_reference == 2


def test_skipped_and_repeated_hours_equal_the_reference() -> None:
    texts = ("2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-10-27 09:00:00")
    rows = [row(number, at(BERLIN, texts[number % 3])) for number in range(30)]
    assert check([bootstrap(), row(99, at(BERLIN)), *rows])[0].by_kernel == 10


def test_zone_is_learned_from_the_first_value() -> None:
    rows = [row(number, at(BERLIN) if number > 30 else None) for number in range(60)]
    for result in check([bootstrap(), *rows]):
        # The first row, and the first one with a value.
        assert result.by_reference == 3


def test_each_zone_has_a_plan() -> None:
    zones = (BERLIN, "Asia/Tokyo", None)
    rows = [row(number, at(zones[number % 3])) for number in range(60)]
    for result in check([bootstrap(), *rows]):
        assert result.by_reference in (3, 4)


@pytest.mark.parametrize(
    "value",
    [
        {"location": "Nowhere/AtAll", "value": "2024-03-04 05:06:07"},
        {"location": BERLIN, "value": 7},
        {"location": BERLIN},
        {"location": BERLIN, "value": "2024-03-04 05:06:07", "more": 1},
        at(BERLIN, "0000-00-00 00:00:00"),
        at(BERLIN, "2024-03-04 05:06:07Z"),
        7,
    ],
)
def test_unsupported_value_affects_only_its_message(value: Any) -> None:
    rows = [row(number, at(BERLIN)) for number in range(60)]
    rows[30] = row(30, value)
    for result in check([bootstrap(), *rows]):
        assert result.by_kernel >= 58


def test_rows_use_exactly_their_schema_version() -> None:
    other = {"schemaVersion": VERSION + 1, "more": {"more": "7"}}
    rows = [row(1), row(2, **other), row(3), row(4, **other), row(5, schemaVersion=VERSION + 1)]
    bootstraps = [bootstrap(), bootstrap(VERSION + 1, ANOTHER)]
    for result in check([*bootstraps, *rows * 10]):
        assert result.by_reference == 2 + 3
    unknown = row(9, schemaVersion=VERSION + 2)
    assert check([*bootstraps, row(1), unknown, row(2)])[0].counts["corrupt messages and rows"] == 1


def test_two_schemas_of_one_version_fall_back() -> None:
    rows = [row(number) for number in range(20)]
    messages = [bootstrap(), *rows, bootstrap(VERSION, ANOTHER), *rows]
    for result in check(messages):
        assert result.by_kernel == 19


def test_watermarks_do_not_cut_batches() -> None:
    rows = [row(number, at(BERLIN)) for number in range(10)]
    messages = [bootstrap(), *[*rows, WATERMARK] * 30]
    options = parsed({"protocol": "simple"})
    engine = Engine(ReadTask(events_schema(options), options, inferred=True))
    assert list(engine.batches([bootstrap()]))
    assert engine.chunks is not None
    kinds = [made.batch.column("kind").to_pylist() for made in engine.chunks.batches(messages)]
    assert [kind for some in kinds for kind in some] == [
        "schema",
        *[*["row"] * 10, "watermark"] * 30,
    ]
    assert len(kinds) == 1


def test_repeated_schemas_keep_plans() -> None:
    rows = [row(number, at(BERLIN)) for number in range(10)]
    for result in check([bootstrap(), *[*rows, WATERMARK, bootstrap()] * 30]):
        assert result.by_kernel == 299


@pytest.mark.parametrize("members", [{"handleKeyOnly": True}, {"claimCheckLocation": "a.json"}])
def test_large_messages_fall_back(members: dict[str, Any]) -> None:
    rows = [row(number) for number in range(20)]
    rows[10] = row(10, **members)
    for result in check([bootstrap(), *rows], incompleteRows="emit"):
        assert result.by_kernel == 18


@pytest.mark.parametrize(
    ("option", "value"), [("verifyChecksum", "true"), ("largeMessageHandleCompression", "lz4")]
)
def test_options_that_disable_the_kernel(option: str, value: str) -> None:
    options = parsed({"protocol": "simple", option: value})
    assert Engine(ReadTask(events_schema(options), options, inferred=True)).chunks is None


def test_row_of_another_table_without_commit_ts_is_corrupt() -> None:
    rows: list[Message] = []
    for number in range(20):
        rows += [row(number), row(number, table="other")]
    for bad in (None, "7", -1):
        rows.append(row(7, table="other", commitTs=bad))
    result = check([bootstrap(), *rows])[0]
    assert result.counts["corrupt messages and rows"] == 3
    assert result.skipped == 20
