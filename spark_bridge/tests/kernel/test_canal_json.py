"""The compiled kernel: the same rows as the reference, value by value."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    NumericType,
    StructField,
    StructType,
)
from support.damaged_messages import ODD
from support.examples import examples

from cdcfmt_core.events import Message
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

# One usual value of each type, of which the kernel makes a plan.
USUAL = {
    "tinyint": "-7",
    "int unsigned": "4294967295",
    "bigint": "-9223372036854775808",
    "bigint unsigned": "18446744073709551615",
    "decimal(20,4)": "-1234567890.1200",
    "decimal(65,30)": "1.000000000000000000000000000000",
    "float": "1.5",
    "double": "-2.5e-300",
    "varchar(20)": "naïve \U0001f600",
    "char(3)": "a\nb",
    "text": '"quoted" \\ and \u0001',
    "binary(4)": "\u0000\u00ff",
    "varbinary(20)": "\u00e9",
    "blob": "",
    "bit(1)": "1",
    "bit(10)": "1023",
    "bit(64)": "18446744073709551615",
    "date": "2024-02-29",
    "datetime(6)": "2024-01-01 10:00:00.123456",
    "timestamp": "2024-07-01 10:00:00",
    "timestamp(3)": "1970-01-01 08:00:01.001",
    "time(3)": "-838:59:59.001",
    "year": "2155",
    "enum('a','b','3')": "2",
    "set('a','b','c')": "5",
    "json": '{"b": [1, 2.50, -0.0, 0.0000000, 12345678901234567890], "a": {"\u00e9": "", "": {}}}',
}

TEXT = st.one_of(
    st.text(max_size=40),
    st.sampled_from([value for value in ODD if isinstance(value, str)]),
    st.sampled_from(list(USUAL.values())),
    st.from_regex(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(
        r"[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]([ T][0-2][0-9]:[0-5][0-9]:[0-6][0-9](\.[0-9]{0,7})?)?",
        fullmatch=True,
    ),
    st.from_regex(r"-?[0-9]{1,3}:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,7})?", fullmatch=True),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
        ),
        max_leaves=8,
    ).map(json.dumps),
)
EVENTS = (
    {"imageFormat": "json", "sourceTimeZone": "Europe/Berlin"},
    {"splitKeyUpdates": "true", "sourceTimeZone": "+05:30"},
    {"images": "after"},
    {"imageFormat": "json", "images": "after", "keyColumns": "c3"},
)
OPTIONS = (
    {"sourceTimeZone": "Europe/Berlin"},
    {"jsonAs": "string", "timeAs": "interval", "sourceTimeZone": "+05:30", "images": "after"},
    {"timeAs": "micros", "splitKeyUpdates": "true", "includeSource": "true"},
)


def update(offset: int, types: dict[str, str], new: dict[str, Any], old: Any) -> Message:
    document = {
        "id": 0,
        "database": "shop",
        "table": "orders",
        "pkNames": ["id"],
        "isDdl": False,
        "type": "UPDATE",
        "es": 1_700_000_000_000,
        "ts": 1_700_000_000_001,
        "sql": "",
        "sqlType": dict.fromkeys(types, 4),
        "mysqlType": types,
        "old": [old],
        "data": [new],
    }
    return Message(None, json.dumps(document, separators=(",", ":")).encode(), offset=offset)


def strange_updates(data: st.DataObject) -> list[Message]:
    types = {f"c{at}": type_ for at, type_ in enumerate(USUAL)} | {"id": "int"}
    usual = {f"c{at}": value for at, value in enumerate(USUAL.values())} | {"id": "1"}
    messages = [update(0, types, usual, {"c0": "1"})]
    columns = st.sampled_from(sorted(types))
    for offset in range(1, 20):
        some = data.draw(st.dictionaries(columns, TEXT | st.none(), max_size=2))
        old = data.draw(st.dictionaries(columns, TEXT | st.none(), max_size=2))
        messages.append(update(offset, types, usual | some, old))
    return messages


def as_floats(schema: StructType, type_: DataType) -> StructType:
    """The table's columns with numbers as floats."""
    own = [field for field in schema.fields if not field.name.startswith("_")]
    numbers = {field.name for field in own if isinstance(field.dataType, NumericType)}
    return StructType(
        [StructField(f.name, type_ if f.name in numbers else f.dataType) for f in own]
    )


def check_events(messages: list[Message], **given: str) -> Result:
    read = parsed({"protocol": "canal-json", **given})
    return check_equal(messages, events_schema(read), read)


@pytest.mark.parametrize("options", OPTIONS)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_values_equal_the_reference(options: dict[str, str], data: st.DataObject) -> None:
    messages = strange_updates(data)
    read = parsed({"protocol": "canal-json", "table": "shop.orders", **options})
    schema = inferred_schema(messages[:1], read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    assert result.by_kernel + result.by_reference == len(messages)


@pytest.mark.parametrize("type_", [FloatType(), DoubleType()])
@settings(max_examples=examples(60))
@given(data=st.data())
def test_float_numbers_equal_the_reference(type_: DataType, data: st.DataObject) -> None:
    messages = strange_updates(data)
    read = parsed({"protocol": "canal-json", "table": "shop.orders"})
    schema = inferred_schema(messages[:1], read)
    assert schema is not None
    floats = as_floats(schema, type_)
    check_equal(messages, floats, read)
    # Of a few digits the kernel reads all.
    few = {"c0": "7", "c1": "0", "c2": "-9999", "c3": "9", "c4": "-0.0100", "c7": "-2.5"}
    document = json.loads(messages[0].value or b"")
    usual = update(1, document["mysqlType"], document["data"][0] | few, {})
    fields = [field for field in floats.fields if field.name in few]
    assert check_equal([usual] * 4, StructType(fields), read, inferred=False).by_kernel == 3


@pytest.mark.parametrize("options", EVENTS)
@settings(max_examples=examples(60))
@given(data=st.data())
def test_images_equal_the_reference(options: dict[str, str], data: st.DataObject) -> None:
    messages = strange_updates(data)
    result = check_events(messages, **options)
    assert result.by_kernel + result.by_reference == len(messages)


@pytest.mark.parametrize("form", ["json", "variant"])
@pytest.mark.parametrize("type_", sorted(USUAL))
def test_ordinary_images_use_the_kernel(type_: str, form: str) -> None:
    types = {"id": "int", "c": type_, "json": "json", "a": "json"}
    usual = {"json": '{"x": 1}', "a": '{"json": {"y": 2}}'}
    messages = [
        update(
            at,
            types,
            usual | {"id": str(at), "c": USUAL[type_] if at % 2 else None},
            {"c": None} if at % 3 else {"json": '{"y": 1}'},
        )
        for at in range(10)
    ]
    result = check_events(messages, imageFormat=form)
    assert (result.by_kernel, result.by_reference) == (9, 1)


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(width=16) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(100))
@given(data=st.data())
def test_remaining_fields_are_in_extra(data: st.DataObject) -> None:
    messages = []
    for at in range(20):
        message = update(at, {"id": "int"}, {"id": str(at)}, {})
        document = json.loads(message.value or b"")
        names = st.sampled_from(["id", "gtid", "sql", "rowkey", "_tidb"])
        for name, value in data.draw(st.dictionaries(names, VALUE, max_size=2)).items():
            if name == "rowkey":
                document["_tidb"] = {"commitTs": at, "rowkey": value}
            else:
                document[name] = value
        messages.append(Message(None, json.dumps(document).encode(), offset=at))
    check_events(messages, dialect=data.draw(st.sampled_from(["auto", "canal", "ticdc"])))


def test_numbers_of_statements_are_in_extra() -> None:
    messages = [
        attrs.evolve(message, value=(message.value or b"").replace(b'"id":0', b'"id":%d' % at))
        for at in range(1, 11)
        for message in [update(at, {"id": "int"}, {"id": "1"}, {})]
    ]
    result = check_events(messages, dialect="canal")
    assert (result.by_kernel, result.by_reference) == (9, 1)


def test_kernel_reads_events_of_mixed_tables() -> None:
    messages = []
    for at in range(60):
        types = {"id": "int", f"c{at % 3}": "varchar(9)"}
        message = update(at, types, dict.fromkeys(types, str(at)), {"id": "7"})
        value = (message.value or b"").replace(b'"orders"', b'"orders%d"' % (at % 2))
        messages.append(attrs.evolve(message, value=value))
    for form in ("json", "variant"):
        result = check_events(messages, imageFormat=form)
        assert (result.by_kernel, result.by_reference) == (54, 6)


@pytest.mark.parametrize("type_", sorted(USUAL))
def test_ordinary_values_use_the_kernel(type_: str) -> None:
    types = {"id": "int", "c": type_}
    messages = [
        update(at, types, {"id": str(at), "c": USUAL[type_] if at % 2 else None}, {"c": None})
        for at in range(10)
    ]
    read = parsed({"protocol": "canal-json", "table": "shop.orders"})
    schema = inferred_schema(messages[1:], read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    assert (result.by_kernel, result.by_reference) == (9, 1)


def test_kernel_reads_any_column_order_and_mixed_tables() -> None:
    types = {"id": "int", "a": "int", "b": "varchar(9)"}
    wider = types | {"a": "bigint", "c": "date"}
    messages = []
    for at in range(40):
        of_row = wider if at % 3 == 2 else types
        shuffled = dict(sorted(of_row.items(), key=lambda item: hash((item, at))))
        row = {name: "2024-01-01" if name == "c" else str(at) for name in of_row}
        messages.append(update(at, shuffled, row, {"a": "7"}))
    read = parsed({"protocol": "canal-json", "table": "shop.orders"})
    schema = inferred_schema(messages, read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    assert (result.by_kernel, result.by_reference) == (38, 2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"mysqlType":{"id":"int","a":"int"}', '"mysqlType":{"id":"int","id":"int"}'),
        ('"mysqlType":{"id":"int","a":"int"}', '"mysqlType":{"id":"int"}'),
        ('"mysqlType":{"id":"int","a":"int"}', '"mysqlType":{"id":"int","a":"bigint"}'),
        ('"pkNames":["id"]', '"pkNames":null'),
        ('"pkNames":["id"]', '"pkNames":"id"'),
        ('"a":"5"}]', '"a":"5","a":"6"}]'),
        ('"a":"5"}]', '"a":"5"}],"data":[]'),
        ('"a":"5"}]', '"a":"5"},{"id":"2","a":"6"}]'),
        ('"isDdl":false', '"isDdl":true'),
        ('"old":[{"a":"4"}]', '"old":[]'),
        ('"old":[{"a":"4"}]', '"old":[null]'),
        ('"old":[{"a":"4"}]', '"old":[{"b":"4"}]'),
        ('"old":[{"a":"4"}]', '"old":{"a":"4"}'),
        ('"type":"UPDATE"', '"type":"DELETE"'),
        ('"type":"UPDATE"', '"type":"TRUNCATE"'),
        ('"id":0,', '"id":1,'),
        ('{"id":0,', ' {"id":0,'),
        ('"table":"orders"', '"table":"\\u006frders"'),
        ('"table":"orders"', '"table":null'),
        ('"es":1700000000000', '"es":1700000000000.0'),
        ('"es":1700000000000', '"es":1700000000'),
        ('"sqlType":{"id":4,"a":4}', '"sqlType":[]'),
        ('"sqlType":{"id":4,"a":4}', '"sqlType":{"id":1e9999}'),
        ('"sqlType":{"id":4,"a":4}', '"sqlType":{"id":[%s]}' % ("9" * 1001)),
    ],
)
def test_unsupported_envelope_falls_back(old: str, new: str) -> None:
    types = {"id": "int", "a": "int"}
    messages = [update(at, types, {"id": "1", "a": "5"}, {"a": "4"}) for at in range(5)]
    text = (messages[3].value or b"").decode()
    assert old in text
    messages[3] = Message(None, text.replace(old, new).encode(), offset=3)
    read = parsed({"protocol": "canal-json", "table": "shop.orders"})
    schema = inferred_schema(messages[:1], read)
    assert schema is not None
    check_equal(messages, schema, read)
    for form in ("json", "variant"):
        check_events(messages, imageFormat=form)


def test_each_of_many_tables_has_its_plan() -> None:
    messages = [
        attrs.evolve(message, value=(message.value or b"").replace(b'"orders"', b'"t%d"' % table))
        for at in range(3)
        for table in range(1, 301)
        for message in [update(at, {"id": "int"}, {"id": str(table)}, {})]
    ]
    result = check_events(messages, imageFormat="json")
    assert (result.by_kernel, result.by_reference) == (600, 300)


def test_plans_are_bounded_for_endless_new_columns() -> None:
    messages = []
    for at in range(60):
        types = {"id": "int", f"c{at % 30}": "int"}
        messages.append(update(at, types, dict.fromkeys(types, "1"), {}))
    result = check_events(messages, imageFormat="json")
    assert (result.by_kernel, result.by_reference) == (16, 44)


@pytest.mark.parametrize("mistake", [KeyError, ValueError])
def test_wrong_plan_loses_no_row(mistake: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise mistake("c0")

    monkeypatch.setattr("pyspark_cdcfmt.kernel.learning.describe_plan", fail)
    messages = [update(at, {"c0": "int"}, {"c0": str(at)}, {"c0": "0"}) for at in range(20)]
    assert check_events(messages).by_kernel == 0
