"""Value encodings: the kernel's reader equals Python's, or refuses the value."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC
from decimal import Decimal
from typing import Any, get_args

import attrs
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.test_canal_json import TEXT
from pyspark.sql.types import StringType
from support.encoding_ways import DETECTED, WAYS
from support.examples import examples

from cdcfmt_core import DecoderContext
from cdcfmt_core import types as logical
from cdcfmt_core.events import Column, TableSchema
from cdcfmt_core.schemas.store import SchemaStore
from cdcfmt_mysql import InexactNumber, resolve_type
from cdcfmt_toolkit.encodings import Encoding, EncodingName
from cdcfmt_toolkit.go_quote import quote
from cdcfmt_toolkit.intervals import interval_text
from cdcfmt_toolkit.layout import Layout, Zoned
from cdcfmt_toolkit.plans import encoded_plan
from cdcfmt_toolkit.value_readers import value_reader
from cdcfmt_toolkit.wire_json import loads_exact
from cdcfmt_toolkit.zone_offsets import describe_zone
from pyspark_cdcfmt.kernel.plans import _encoding
from pyspark_cdcfmt.kernel.settings import _target, describe_layout
from pyspark_cdcfmt.rows.json_values import json_of
from pyspark_cdcfmt.rows.policy import ValuePolicy
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type
from pyspark_cdcfmt.rows.values import converter

pytestmark = pytest.mark.kernel

LAYOUT = Layout(
    members={"table": "table", "op": "op", "ts": "source_time", "row": "after"},
    ops={"I": "insert"},
    encodings=lambda value, table: {},
)
BYTES = st.binary(max_size=20)
NUMBERS = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=4).map(str).map(json.loads),
)
BASE64 = st.binary(max_size=34).map(lambda data: base64.b64encode(data).decode())
TIMES = st.integers(-(10**14), 10**14).map(lambda number: number * 1000) | st.integers(
    -(2**63), 2**63
)
PARTS = st.lists(
    st.none() | st.integers(-2, 62) | st.sampled_from([1970, 2024, 9999, 838, 10**6, 2**63, 0.5]),
    min_size=6,
    max_size=8,
)
JSON = st.recursive(
    st.none() | NUMBERS | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
TEXTS = {
    "calendar-parts": PARTS,
    "charset-text": BYTES.map(lambda data: data.decode("latin-1")),
    "epoch-pair": st.lists(TIMES | st.integers(-1, 10**6), min_size=1, max_size=3),
    "base64": BYTES.map(lambda data: base64.b64encode(data).decode()),
    "base64-text": st.text(max_size=20).map(lambda text: base64.b64encode(text.encode()).decode()),
    "hex": BYTES.map(bytes.hex),
    **dict.fromkeys(("connect-decimal", "little-endian-bits", "big-endian-bits"), BASE64),
    "variable-scale-decimal": st.fixed_dictionaries(
        {"scale": st.integers(-2, 40) | st.sampled_from(["2", 1.0, True]), "value": BASE64},
        optional={"other": st.none()},
    ),
    "iso-text": TEXT.map(lambda text: text + "Z"),
    "iso-instant": st.tuples(
        TEXT, st.sampled_from(["Z", "+00", "-03:30", "+23:59", "+24", "-1:00", "+0000", ""])
    ).map("".join),
    **dict.fromkeys(("epoch-millis", "epoch-micros", "epoch-nanos"), TIMES),
    "iso-duration": st.from_regex(
        r"P-?[0-9]{1,3}Y-?[0-9]{1,2}M-?[0-9]DT-?[0-9]{1,3}H-?[0-9]{1,2}M-?[0-9]{1,2}(\.[0-9]{1,8})?S",
        fullmatch=True,
    ),
    "go-quoted": BYTES.map(quote) | st.from_regex(r'(\\[abfnrtvxuU"\\]|[0-9a-fé]){0,12}'),
    "detected-bytes": BYTES.map(bytes.hex)
    | BYTES.map(lambda data: base64.b64encode(data).decode())
    | BYTES.map(lambda data: data.decode("latin-1"))
    | st.from_regex(r"(0x)?[0-9a-fA-F]{0,8}", fullmatch=True),
}


@attrs.define
class OneColumn:
    """A kernel that reads rows of one column."""

    encoding: Encoding
    type: logical.LogicalType
    kernel: Any = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        import cdcfmt_kernel

        target = _target(spark_type(self.type, TypeOptions()))
        assert target is not None
        described_settings = {
            "layouts": [describe_layout(LAYOUT)],
            "outputs": [{"name": "c", "content": "value", "nullable": True, **target}],
            "zone": describe_zone(UTC),
            "low_watermark": 0,
            "before_updates": True,
            "splits_keys": False,
            "max_message_bytes": 1 << 20,
            "max_rows": 1000,
            "max_bytes": 1 << 20,
            "row_bytes": 8,
            "shown": {"place": False, "headers": False},
            "images": None,
        }
        self.kernel = cdcfmt_kernel.Kernel(json.dumps(described_settings))
        column = Column("c", "", self.type)
        described = {
            "name": "c",
            "use": {"output": 0},
            "key": False,
            **_encoding(column, self.encoding, Zoned("zone", "text", ())),
        }
        rows = {"columns": [described], "absent": [], "keyed": False, "event": None}
        plan = {"rows": rows, "repeats": 0, "members": 0, "shown": None}
        self.kernel.add_plan(message(None), None, json.dumps(plan))

    def read(self, value: Any) -> list[Any]:
        """The value, or nothing where it is refused."""
        self.kernel.read([message(value)], [], [None], 0)
        rows = pa.record_batch(self.kernel.finish())
        rows.validate(full=True)
        found: list[Any] = rows.column("c").to_pylist()
        return found

    def reference(self, value: Any) -> list[Any]:
        """The same in Python; nothing where it is bad or cannot be held."""
        counts: Counter[str] = Counter()
        read = value_reader(self.encoding, self.type, time_zone=UTC, counts=counts)
        try:
            try:
                found = read(orjson.loads(message(value))["row"]["c"])
            except InexactNumber:
                found = read(loads_exact(message(value))["row"]["c"])
        except ValueError:
            return []
        return [] if isinstance(found, logical.InvalidValue) else [found]


def message(value: Any) -> bytes:
    wire = {"table": "t", "op": "I", "ts": 1, "row": {"c": value}}
    return json.dumps(wire, ensure_ascii=False).encode("utf-8", "surrogatepass")


@pytest.mark.parametrize(("encoding", "type_", "usual"), WAYS)
def test_usual_values_are_read(encoding: Encoding, type_: logical.LogicalType, usual: Any) -> None:
    column = OneColumn(encoding, type_)
    (found,) = column.read(usual)
    assert found is not None
    assert column.read(None) == [None]


@pytest.mark.parametrize(("encoding", "type_", "wire", "value"), DETECTED)
def test_detected_values_are_read(
    encoding: Encoding, type_: logical.LogicalType, wire: Any, value: Any
) -> None:
    assert OneColumn(encoding, type_).read(wire) == [value]


def test_examples_cover_every_encoding() -> None:
    known = {encoding.name for encoding, *_ in (*WAYS, *DETECTED)}
    assert known | {"other", "dialect-text"} == set(get_args(EncodingName))


def alike(type_: logical.LogicalType, found: Any, expected: Any) -> bool:
    """Whether a value of Arrow's is one of Python's; Spark's types are others for some."""
    if expected is None:
        return found is None
    if isinstance(type_, logical.Unknown) and type(expected) is not str:
        is_number = isinstance(expected, Decimal)
        return bool(found == (format(expected, "f") if is_number else json_of(expected)))
    if isinstance(type_, logical.Array):
        return all(alike(type_.element, *each) for each in zip(found, expected, strict=True))
    if isinstance(type_, logical.Vector):
        return all(alike(logical.Float(32), *each) for each in zip(found, expected, strict=True))
    if isinstance(type_, logical.Struct):
        return all(alike(of, found[name], expected[name]) for name, of in type_.fields)
    if isinstance(type_, logical.Map):
        return bool(dict(found) == expected)
    if isinstance(type_, logical.Geometry):
        return bool(found == expected._asdict())
    if isinstance(type_, logical.Interval):
        return bool(found == interval_text(expected))
    if isinstance(type_, logical.Time):
        total = abs(expected).total_seconds()
        text = f"{int(total // 3600):02}:{int(total // 60) % 60:02}:{int(total) % 60:02}"
        return found.removeprefix("-").startswith(text)
    if isinstance(type_, logical.Float):
        exact = pa.float32() if type_.bits == 32 else pa.float64()
        return repr(found) == repr(pa.scalar(expected, exact).as_py())
    if isinstance(type_, logical.Decimal) and isinstance(found, str):
        return bool(found == converter(type_, StringType(), "c", ValuePolicy())(expected))
    if isinstance(type_, logical.Bit) and isinstance(found, bool):
        return found == bool(expected)
    return bool(found == expected)


@pytest.mark.slow
@pytest.mark.parametrize(("encoding", "type_", "usual"), WAYS)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_values_equal_the_python_readers(
    encoding: Encoding, type_: logical.LogicalType, usual: Any, data: st.DataObject
) -> None:
    column = OneColumn(encoding, type_)
    values = TEXTS.get(encoding.name, TEXT) | TEXT | NUMBERS | st.just([]) | st.just({"a": 1})
    if encoding.name == "json-value":
        values |= JSON
    if type(usual) is dict:
        values |= st.fixed_dictionaries(
            {}, optional=dict.fromkeys((*usual, "other"), JSON | BASE64)
        )
    if encoding.items is not None:
        items = TEXTS.get(encoding.items.name, TEXT) | TEXT | NUMBERS | st.none()
        values |= st.lists(items, max_size=3) | st.lists(st.lists(items, max_size=2), max_size=2)
    for _ in range(10):
        value = data.draw(values)
        found = column.read(value)
        if found:
            (expected,) = column.reference(value)
            assert alike(type_, found[0], expected), (value, found, expected)


@pytest.mark.parametrize("value", ["0E64", "0E65", "-0.0e66", "0E-129", "0E-130", "0E999"])
@pytest.mark.parametrize("digits", [(65, 30), (20, 4)])
def test_zeros_with_an_exponent_equal_the_python_readers(
    digits: tuple[int, int], value: str
) -> None:
    type_ = logical.Decimal(*digits)
    column = OneColumn(Encoding("mysql-text"), type_)
    found, expected = column.read(value), column.reference(value)
    assert not found or alike(type_, found[0], expected[0])


def test_a_bytea_is_not_read_as_text_of_mysql() -> None:
    schema = TableSchema("d", "t", (Column("b", "bytea", logical.Binary()),))
    context = DecoderContext(resolve_type=resolve_type, schemas=SchemaStore())
    with pytest.raises(ValueError, match="use the value encoding hex"):
        encoded_plan(schema, context, {"b": Encoding("mysql-text")})
    plan = encoded_plan(schema, context, {"b": Encoding("hex")})
    assert plan.readers["b"](r"\x00ff") == b"\0\xff"
