"""Debezium by the compiled kernel: the same rows as the reference, value by value."""

from __future__ import annotations

import base64
import json
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import ArrayType, StringType, StructType
from support.damaged_messages import ODD
from support.examples import examples
from support.golden_data import scan_schemas

from cdcfmt_core.events import Message
from cdcfmt_core.schemas.store import SchemaStore
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

SOURCE = {
    "version": "3.5.0.Final",
    "connector": "mysql",
    "name": "p",
    "ts_ms": 1_700_000_000_123,
    "db": "shop",
    "table": "orders",
    "file": "binlog.1",
    "pos": 100,
}
TICDC = {"connector": "TiCDC", "commit_ts": 446_000_000_000_000_000, "file": "", "pos": 0}
TIME, DATA, KAFKA = "io.debezium.time.", "io.debezium.data.", "org.apache.kafka.connect.data."
Field = dict[str, Any]


def named(kind: str, name: str, **parameters: str) -> Field:
    return {"type": kind, "name": name, "parameters": parameters}


# A field of each kind and a usual value, of which the kernel makes a plan.
FIELDS: dict[str, tuple[Field, Any]] = {
    "int16": ({"type": "int16"}, -7),
    "int32": ({"type": "int32"}, 2**31 - 1),
    "int64": ({"type": "int64"}, -(2**63)),
    "bigint unsigned": ({"type": "int64", "tidb_type": "bigint unsigned"}, -1),
    "unsigned as decimal": (
        {**named("bytes", KAFKA + "Decimal", scale="0"), "tidb_type": "bigint unsigned"},
        "AP//////////",
    ),
    "boolean": ({"type": "boolean"}, True),
    "bit(1)": ({"type": "boolean", "tidb_type": "bit(1)"}, False),
    "float": ({"type": "float"}, 1.5),
    "double": ({"type": "double"}, -2.5e-300),
    "string": ({"type": "string"}, "na\u00efve \U0001f600"),
    "bytes": ({"type": "bytes"}, "/+8="),
    "bytes as text": ({"type": "string", "tidb_type": "varbinary(20)"}, "/+8="),
    "uuid as text": ({"type": "string", "tidb_type": "binary(16)"}, "00" * 16),
    "decimal": (
        named("bytes", KAFKA + "Decimal", **{"scale": "2", "connect.decimal.precision": "20"}),
        "MDk=",
    ),
    "long decimal": (
        named("bytes", KAFKA + "Decimal", **{"scale": "30", "connect.decimal.precision": "65"}),
        base64.b64encode((-(10**60) - 7).to_bytes(27, "big", signed=True)).decode(),
    ),
    "decimal as double": ({"type": "double", "tidb_type": "decimal(20,4)"}, 22540.56),
    "decimal as text": ({"type": "string", "tidb_type": "decimal(20,4)"}, "-1.5000"),
    "date": (named("int32", TIME + "Date"), 19_000),
    "kafka date": (named("int32", KAFKA + "Date"), -719_162),
    "time": (named("int32", TIME + "Time"), 86_399_999),
    "micro time": (named("int64", TIME + "MicroTime"), -3_020_399_999_999),
    "nano time": (named("int64", TIME + "NanoTime"), 1_000_000),
    "timestamp": (named("int64", TIME + "Timestamp"), -1),
    "kafka timestamp": (named("int64", KAFKA + "Timestamp"), 1_704_096_000_081),
    "micro timestamp": (named("int64", TIME + "MicroTimestamp"), 253_402_300_799_999_999),
    "nano timestamp": (named("int64", TIME + "NanoTimestamp"), 1_704_096_000_081_000_000),
    "datetime(3)": (
        {**named("int64", TIME + "Timestamp"), "tidb_type": "datetime(3)"},
        1_704_096_000_081,
    ),
    "zoned timestamp": (named("string", TIME + "ZonedTimestamp"), "2024-01-01T00:00:17.5Z"),
    "iso date": (named("string", TIME + "IsoDate"), "2024-02-29Z"),
    "iso time": (named("string", TIME + "IsoTime"), "10:00:00.5Z"),
    "iso timestamp": (named("string", TIME + "IsoTimestamp"), "2024-02-29T10:00:00Z"),
    "year": (named("int32", TIME + "Year"), 1900),
    "json": (named("string", DATA + "Json"), '{"b": [1, 2.50, null], "a": {"\u00e9": true}}'),
    "enum": (named("string", DATA + "Enum", allowed="new,a\\,b,7"), "a\\,b"),
    "set": (named("string", DATA + "EnumSet", allowed="x,y"), "x,y"),
    "bits": (named("bytes", DATA + "Bits", length="10"), "/wM="),
    "64 bits": (named("bytes", DATA + "Bits", length="64"), "//////////8="),
    "128 bits": (named("bytes", DATA + "Bits", length="128"), "AQAAAAAAAAAAAAAAAAAAgA=="),
    "default number": ({"type": "int32", "optional": True, "default": 7}, 8),
    "default text": ({"type": "string", "optional": True, "default": "d\u00e9f"}, "x"),
    "default boolean": ({"type": "boolean", "optional": True, "default": True}, False),
    "default double": ({"type": "double", "optional": True, "default": 0.5}, 1.5),
}

BYTES = st.binary(max_size=34)
VALUES = st.one_of(
    st.sampled_from(ODD),
    st.sampled_from([usual for _, usual in FIELDS.values()]),
    st.sampled_from(["__debezium_unavailable_value", 7, 7.0, "d\u00e9f", True, 1, 0.5, -0.0]),
    st.integers(-(2**70), 2**70) | st.integers(-3_100_000, 3_100_000),
    st.integers(-(10**20), 10**20).map(lambda number: number * 1000),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(float),
    st.floats(-1e6, 1e6).map(lambda number: round(number, 3)),
    BYTES.map(lambda data: base64.b64encode(data).decode()),
    BYTES.map(bytes.hex),
    st.text(max_size=20),
    st.from_regex(r"-?[0-9]{1,40}(\.[0-9]{1,31})?", fullmatch=True),
    st.from_regex(
        r"[0-2][0-9]{3}-[01][0-9]-[0-3][0-9]([ T][0-2][0-9]:[0-5][0-9]:[0-6][0-9]"
        r"(\.[0-9]{0,10})?)?(Z|\+00:00|\+08:00)?",
        fullmatch=True,
    ),
    st.from_regex(r"-?[0-9]{1,3}:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,10})?Z?", fullmatch=True),
    st.from_regex(r"[+-]?[0-9]{4,6}-[01][0-9]-[0-3][0-9](T10:00:00(\.5)?)?Z?", fullmatch=True),
    st.sampled_from(["infinity", "-infinity"]),
)
OPTIONS: tuple[dict[str, str], ...] = (
    {"sourceTimeZone": "Europe/Berlin"},
    {"jsonAs": "string", "timeAs": "interval", "images": "after"},
    {"timeAs": "micros", "splitKeyUpdates": "true", "includeSource": "true", "enumAs": "index"},
)


def encode(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def schema_of(fields: dict[str, Field]) -> dict[str, Any]:
    rows = [{"optional": True, **field, "field": name} for name, field in fields.items()]
    image = {"type": "struct", "fields": rows}
    members = [{**image, "field": "before"}, {**image, "field": "after"}]
    return {"type": "struct", "fields": [*members, {"type": "struct", "field": "source"}]}


def payload(op: str, before: Any, after: Any, **source: Any) -> dict[str, Any]:
    place = SOURCE | source
    return {"before": before, "after": after, "source": place, "op": op, "ts_ms": 1}


def message(offset: int, value: dict[str, Any], key: Any = None) -> Message:
    return Message(None if key is None else encode(key), encode(value), offset=offset)


def check(messages: list[Message], more: dict[str, str], like: int = 1) -> tuple[int, int]:
    """By the kernel and by the reference, once both are found to be equal."""
    read = parsed({"protocol": "debezium", "table": "shop.orders", **more})
    schema = inferred_schema(messages[:like], read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    assert result.by_kernel + result.by_reference == len(messages)
    check_events(messages, more)
    return result.by_kernel, result.by_reference


OF_CHANGES = ("jsonAs", "timeAs", "enumAs", "includeSource")


def check_events(messages: list[Message], more: dict[str, str]) -> int:
    """Messages that the kernel reads as events, which are the reference's in both forms."""
    found = set()
    for form in ("json", "variant"):
        given = {name: value for name, value in more.items() if name not in OF_CHANGES}
        read = parsed({"protocol": "debezium", "imageFormat": form, **given})
        found.add(check_equal(messages, events_schema(read), read).by_kernel)
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("schema_first", [True, False])
@settings(max_examples=examples(40))
@given(data=st.data())
def test_values_equal_the_reference(
    options: dict[str, str], schema_first: bool, data: st.DataObject
) -> None:
    fields = {f"c{at}": field for at, (field, _) in enumerate(FIELDS.values())}
    fields["id"] = {"type": "int32", "optional": False}
    usual = {f"c{at}": value for at, (_, value) in enumerate(FIELDS.values())} | {"id": 1}
    messages = []
    for offset in range(20):
        some = st.dictionaries(st.sampled_from(sorted(fields)), VALUES | st.none(), max_size=2)
        images = [usual | data.draw(some) if offset else usual for _ in range(2)]
        parts = {"schema": schema_of(fields), "payload": payload("u", *images)}
        wire = parts if schema_first else {name: parts[name] for name in ("payload", "schema")}
        messages.append(message(offset, wire, {"id": 1}))
    check(messages, options)


@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_ordinary_values_use_the_kernel(kind: str) -> None:
    field, usual = FIELDS[kind]
    fields = {"id": {"type": "int32"}, "c": field}
    messages = [
        message(
            at,
            {
                "schema": schema_of(fields),
                "payload": payload("c", None, {"id": at, "c": usual if at % 2 else None}),
            },
            {"id": at},
        )
        for at in range(10)
    ]
    assert check(messages, {}, like=10) == (9, 1)
    assert check_events(messages, {}) == (4 if kind == "int64" else 9)


# --- Without schema -----------------------------------------------------------------------

TYPES: dict[str, Any] = {
    "INT": 5,
    "BIGINT UNSIGNED": -5,
    "DOUBLE": 1.5,
    "VARCHAR(20)": "x",
    "VARBINARY(20)": "/+8=",
    "BINARY(16)": "6ba7b8109dad11d180b400c04fd430c8",
    "DECIMAL(20,4)": "MDk=",
    "DATE": 19_000,
    "DATETIME": 1_704_096_000_000,
    "DATETIME(6)": 1_704_096_000_000_001,
    "TIMESTAMP(3)": "2024-01-01T00:00:00.123Z",
    "TIME(3)": 36_000_123_000,
    "YEAR": 2024,
    "ENUM('a','b')": "b",
    "BIT(10)": "/wM=",
    "BIT(1)": True,
    "JSON": "{}",
}
MODES: tuple[dict[str, str], ...] = (
    {},
    {"timePrecisionMode": "connect", "decimalHandlingMode": "precise"},
    {"timePrecisionMode": "nanoseconds", "decimalHandlingMode": "double"},
    {"decimalHandlingMode": "string", "binaryHandlingMode": "hex"},
    {"timePrecisionMode": "microseconds", "binaryHandlingMode": "base64"},
)


def ddl(offset: int, types: list[str], **source: Any) -> Message:
    columns = [{"name": "id", "typeName": "INT", "typeExpression": "INT", "optional": False}]
    for at, type_ in enumerate(types):
        columns.append({"name": f"c{at}", "typeName": type_, "typeExpression": type_})
    table = {"columns": columns, "primaryKeyColumnNames": ["id"]}
    change = {"type": "ALTER", "id": '"shop"."orders"', "table": table}
    place = SOURCE | {"pos": 1} | source
    wire = {"source": place, "databaseName": "shop", "ddl": "alter", "tableChanges": [change]}
    return message(offset, wire)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("connector", [{}, TICDC, {"connector": "MySQL"}])
@settings(max_examples=examples(20))
@given(data=st.data())
def test_values_without_schema_equal_the_reference(
    mode: dict[str, str], connector: dict[str, Any], data: st.DataObject
) -> None:
    usual = {f"c{at}": value for at, value in enumerate(TYPES.values())} | {"id": 1}
    messages = [ddl(0, list(TYPES), **connector | {"commit_ts": 1} if connector else {})]
    for offset in range(1, 20):
        some = st.dictionaries(st.sampled_from(sorted(usual)), VALUES | st.none(), max_size=2)
        images = [usual | data.draw(some) if offset > 1 else usual for _ in range(2)]
        messages.append(message(offset, payload("u", *images, **connector), {"id": 1}))
    check(messages, mode, like=2)


def test_rows_have_the_schema_of_their_position() -> None:
    """Also where all schemas are known ahead, and rows come in any order."""
    types = ["DATETIME", "INT"], ["DATETIME(6)", "BIGINT UNSIGNED"]
    statements = [ddl(0, types[0], pos=100), ddl(0, types[1], pos=200)]
    rows = [
        message(at, payload("c", None, {"id": at, "c0": 10**12, "c1": -3}, pos=pos), {"id": at})
        for at, pos in enumerate([150, 250, 199, 200, 100, 1000, 99, 150] * 5)
    ]
    messages = [*statements, *rows]
    read = parsed({"protocol": "debezium", "table": "shop.orders", "timePrecisionMode": "adaptive"})
    schemas = scan_schemas(messages, protocol="debezium")
    schema = inferred_schema(rows[:5], read, schemas)
    assert schema is not None
    for some, known in ((messages, SchemaStore()), (rows, schemas), (messages[::-1], schemas)):
        result = check_equal(some, schema, read, schemas=known)
        assert result.by_kernel > result.by_reference


# --- Envelopes and keys -------------------------------------------------------------------


def orders(count: int = 6, *, key: Any = None, **source: Any) -> list[Message]:
    fields = {"id": {"type": "int32"}, "a": {"type": "int32"}}
    return [
        message(
            at,
            {
                "schema": schema_of(fields),
                "payload": payload("u", {"id": 1, "a": 4}, {"id": 1, "a": 5}, **source),
            },
            {"id": 1} if key is None else key,
        )
        for at in range(count)
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"field":"a"', '"field":"a" '),
        ('"field":"a"', '"field":"b"'),
        ('"type":"int32"', '"type":"int64"'),
        ('{"schema":{', '{"schema":[{'),
        ('{"schema":{', '{"schema":{"payload":{},'),
        ('{"schema":{', '{"schema":{"x":"\\",\\"payload\\":",'),
        ('{"schema":{', '{"more":1,"schema":{'),
        ('{"schema":{', ' {"schema":{'),
        ('"ts_ms":1}}', '"ts_ms":1}} '),
        ('"ts_ms":1}}', '"ts_ms":1},"schema":{}}'),
        ('"ts_ms":1}}', '"ts_ms":1}'),
        ('"ts_ms":1}}', '"ts_ms":1e400}}'),
        ('"ts_ms":1}}', '"ts_us":1}}'),
        ('"ts_ms":1}}', '"ts_ms":null}}'),
        ('"ts_ms":1700000000123', '"ts_ms":1700000000123,"ts_us":1700000000123456'),
        ('"ts_ms":1700000000123', '"ts_ms":"x","ts_us":1700000000123456'),
        ('"ts_ms":1700000000123', '"ts_ms":1.5'),
        ('"op":"u"', '"op":"c"'),
        ('"op":"u"', '"op":"d"'),
        ('"op":"u"', '"op":"r"'),
        ('"op":"u"', '"op":"t"'),
        ('"op":"u"', '"op":"x"'),
        ('"op":"u"', '"op":"\\u0075"'),
        ('"before":{"id":1,"a":4}', '"before":null'),
        ('"before":{"id":1,"a":4}', '"before":{}'),
        ('"before":{"id":1,"a":4}', '"before":[]'),
        ('"before":{"id":1,"a":4}', '"before":{"id":1}'),
        ('"before":{"id":1,"a":4}', '"before":{"id":2,"a":4}'),
        ('"after":{"id":1,"a":5}', '"after":null'),
        ('"after":{"id":1,"a":5}', '"after":{"id":1}'),
        ('"after":{"id":1,"a":5}', '"after":{"a":5,"id":1}'),
        ('"after":{"id":1,"a":5}', '"after":{"id":1,"a":5,"a":6}'),
        ('"after":{"id":1,"a":5}', '"after":{"id":1,"a":5,"b":6}'),
        ('"after":{"id":1,"a":5}', '"after":{"id":1,"a":"__debezium_unavailable_value"}'),
        ('"after":{"id":1,"a":5}', '"after":{"id":1,"a":["__debezium_unavailable_value"]}'),
        ('"db":"shop"', '"db":"shop","schema":"public"'),
        ('"db":"shop"', '"db":"other"'),
        ('"table":"orders"', '"table":"\\u006frders"'),
        ('"table":"orders"', '"table":null'),
        ('"connector":"mysql"', '"connector":"TiCDC"'),
        ('"connector":"mysql"', '"connector":"MySQL"'),
        ('"connector":"mysql"', '"connector":1'),
        ('"pos":100', '"pos":"100"'),
        ('"pos":100', '"pos":100,"commit_ts":5'),
        ('"pos":100', '"pos":100,"commit_ts":-5'),
        ('"pos":100', '"pos":100,"query":"__debezium_unavailable_value"'),
        ('"pos":100', '"pos":100,"snapshot":"false"'),
        ('"pos":100', '"pos":100,"snapshot":false'),
        ('"pos":100', '"pos":100,"snapshot":0'),
    ],
)
def test_unsupported_envelope_falls_back(old: str, new: str) -> None:
    messages = orders()
    text = (messages[3].value or b"").decode()
    assert old in text
    messages[3] = attrs.evolve(messages[3], value=text.replace(old, new, 1).encode())
    # Behind the unusual message, and before it.
    by_kernel, _ = check(messages, {"splitKeyUpdates": "true"})
    assert by_kernel >= 3


@pytest.mark.parametrize(
    ("name", "usual", "odd"),
    [
        ("ZonedTimestamp", "2024-01-01T00:00:17.5Z", "2024-01-01T00:00:17.123456789Z"),
        ("ZonedTimestamp", "2024-01-01T00:00:17.5Z", "2024-01-01T00:00:17.1234567+02:00"),
        ("ZonedTimestamp", "2024-01-01T00:00:17.5Z", "+10000-01-01T00:00:00Z"),
        ("ZonedTimestamp", "2024-01-01T00:00:17.5Z", "infinity"),
        ("IsoTimestamp", "2024-02-29T10:00:00Z", "2024-02-29T10:00:00.123456789Z"),
        ("IsoTimestamp", "2024-02-29T10:00:00Z", "-0043-03-15T00:00:00Z"),
        ("IsoTime", "10:00:00.5Z", "10:00:00.123456789Z"),
        ("IsoDate", "2024-02-29Z", "+10000-01-01Z"),
    ],
)
def test_times_beyond_the_kernels_range_fall_back(name: str, usual: str, odd: str) -> None:
    fields = {"id": {"type": "int32"}, "c": named("string", TIME + name)}
    messages = []
    for at in range(6):
        image = {"id": at, "c": odd if at == 3 else usual}
        wire = {"schema": schema_of(fields), "payload": payload("c", None, image)}
        messages.append(message(at, wire, {"id": at}))
    assert check(messages, {}) == (4, 2)


OF_BYTES = list(b"__debezium_unavailable_value")


@pytest.mark.parametrize(
    "value",
    [
        "__debezium_unavailable_value",
        ["__debezium_unavailable_value"],
        '{"__debezium_unavailable_value":"__debezium_unavailable_value"}',
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        "5f5f646562657a69756d5f756e617661696c61626c655f76616c7565",
        OF_BYTES,
        ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"],
    ],
)
def test_unavailable_value_falls_back(value: Any) -> None:
    fields: dict[str, Field] = {"id": {"type": "int32"}, "big": {"type": "string"}}
    messages = []
    for at in range(6):
        image = {"id": at, "big": value if at == 3 else "x"}
        wire = {"schema": schema_of(fields), "payload": payload("u", None, image)}
        messages.append(message(at, wire, {"id": at}))
    read = parsed({"protocol": "debezium", "table": "shop.orders", "incompleteRows": "emit"})
    schema = StructType().add("id", "integer").add("big", "string")
    schema = schema.add("_absent", ArrayType(StringType()))
    result = check_equal(messages, schema, read, inferred=False)
    found = [(row["id"], row["big"], row["_absent"]) for row in result.rows.to_pylist()]
    assert found == [(at, None, ["big"]) if at == 3 else (at, "x", []) for at in range(6)]
    # Of an unread column, too.
    result = check_equal(messages, StructType().add("id", "integer"), read, inferred=False)
    assert (result.by_kernel, result.by_reference) == (4, 2)
    check_events(messages, {})


@pytest.mark.parametrize(
    "key",
    [
        None,
        {"a": 1},
        {"id": 1, "a": 2},
        {"a": 2, "id": 1},
        {},
        [],
        "id",
        1,
        {"payload": {"id": 1}},
        {"payload": {"a": 1}},
        {"payload": 1},
        {"payload": "x"},
        {"payload": {"id": 1}, "schema": 5},
        {"payload": {"id": 1}, "schema": {"type": "struct"}},
        {"schema": {"type": "struct"}, "payload": {"id": 1}},
        {"schema": {"type": "struct"}, "payload": {"a": 1}},
        {"schema": {"type": "struct"}, "payload": {"id": 1}, "more": 1},
        {"schema": 1},
    ],
)
def test_other_key_columns_need_another_plan(key: Any) -> None:
    usual, unusual = orders(8), orders(8, key={})
    data = None if key is None else encode(key)
    mixed = [attrs.evolve(each, key=data) for each in unusual]
    check([message for pair in zip(usual, mixed, strict=True) for message in pair], {})
    broken = [
        attrs.evolve(each, key=(data or b"") + end) for each in usual for end in (b"}", b"\xff")
    ]
    check(usual + broken, {})


def test_kernel_reads_mixed_tables_and_schemas() -> None:
    messages = [
        attrs.evolve(each, value=(each.value or b"").replace(b'"int32"', kind))
        for pair in zip(orders(20), orders(20, table="other"), strict=True)
        for each, kind in ((pair[0], b'"int32"'), (pair[1], b'"int32"'), (pair[0], b'"int16"'))
    ]
    read = parsed({"protocol": "debezium", "table": "shop.orders"})
    schema = inferred_schema(messages, read)
    assert schema is not None
    result = check_equal(messages, schema, read)
    assert result.skipped == 20
    # The first message of each schema, of the unwanted table, too.
    assert (result.by_kernel, result.by_reference) == (38, 3)


def test_schema_of_an_excluded_message_is_checked() -> None:
    messages = [each for pair in zip(orders(), orders(table="other"), strict=True) for each in pair]
    for at in (5, 7):
        broken = (messages[at].value or b"").replace(b'"type":"struct"', b'"type":struct', 1)
        messages[at] = attrs.evolve(messages[at], value=broken)
    check_some = parsed({"protocol": "debezium", "table": "shop.orders"})
    schema = inferred_schema(messages[:1], check_some)
    assert schema is not None
    result = check_equal(messages, schema, check_some)
    assert result.counts["corrupt messages and rows"] == 2


def test_an_srid_of_32_bits_is_a_value_or_a_bad_row_with_a_reason() -> None:
    """Spark's integers have a sign, and the inferred ``srid`` is one of 32 bits."""
    fields = {"id": {"type": "int32"}, "g": named("struct", DATA + "geometry.Geometry")}
    messages = []
    for at, srid in enumerate((4326, 2**31, 2**32 - 1)):
        image = {"id": at, "g": {"wkb": "AQ==", "srid": srid}}
        wire = {"schema": schema_of(fields), "payload": payload("c", None, image)}
        messages.append(message(at, wire, {"id": at}))
    read = parsed({"protocol": "debezium", "table": "shop.orders"})
    inferred = inferred_schema(messages, read)
    assert inferred is not None
    result = check_equal(messages, inferred, read)
    assert result.counts["corrupt messages and rows"] == 2
    reason = result.rows.to_pylist()[-1]["_corrupt_record"]["reason"]
    assert "offset 2: shop.orders.g: the SRID 4294967295 does not fit in 32 bits" in reason
    assert "struct<srid:bigint,wkb:binary,wkt:string>" in reason
    wide = StructType().add("id", "integer").add("g", StructType().add("srid", "long"))
    result = check_equal(messages, wide, read, inferred=False)
    values = result.rows.column("g").to_pylist()
    assert values == [{"srid": srid} for srid in (4326, 2**31, 2**32 - 1)]
