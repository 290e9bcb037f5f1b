"""Value encodings: the kernel's reader gives what Python's does, or refuses the value."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC
from decimal import Decimal
from typing import Any

import attrs
import orjson
import pyarrow as pa
import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from test_kernel import TEXT, USUAL

from cdcfmt_core import types as logical
from cdcfmt_core.events import Column
from cdcfmt_core.layout import Layout
from cdcfmt_core.mysql import InexactNumber, resolve_type
from cdcfmt_core.toolkit.encodings import Encoding
from cdcfmt_core.toolkit.go_quote import quote
from cdcfmt_core.toolkit.value_readers import value_reader
from cdcfmt_core.toolkit.wire_json import loads_exact
from cdcfmt_core.toolkit.zone_offsets import describe_zone
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.kernel.plans import _encoding
from pyspark_cdcfmt.kernel.settings import _layout, _target
from pyspark_cdcfmt.rows.json_values import json_of
from pyspark_cdcfmt.rows.types import TypeOptions, spark_type

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="the kernel was not built: it needs Rust"
)

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
    **dict.fromkeys(("connect-decimal", "little-endian-bits"), BASE64),
    "iso-text": TEXT.map(lambda text: text + "Z"),
    "iso-instant": st.tuples(
        TEXT, st.sampled_from(["Z", "+00", "-03:30", "+23:59", "+24", "-1:00", "+0000", ""])
    ).map("".join),
    **dict.fromkeys(("epoch-millis", "epoch-micros", "epoch-nanos"), TIMES),
    "go-quoted": BYTES.map(quote) | st.from_regex(r'(\\[abfnrtvxuU"\\]|[0-9a-fé]){0,12}'),
    "detected-bytes": BYTES.map(bytes.hex)
    | BYTES.map(lambda data: base64.b64encode(data).decode())
    | BYTES.map(lambda data: data.decode("latin-1"))
    | st.from_regex(r"(0x)?[0-9a-fA-F]{0,8}", fullmatch=True),
}
# The ways that a column of each type may be written, and a usual value.
OF_BYTES = [
    (Encoding("base64"), logical.Binary(), "AP8="),
    (Encoding("base64-text"), logical.Text(), "bmHDr3Zl"),
    (Encoding("hex"), logical.Binary(), "0x00ff"),
    (Encoding("go-quoted"), logical.Binary(), r"\x00\u00e9\"\\ é"),
    (Encoding("detected-bytes"), logical.Binary(), "é\u0000"),
    (Encoding("detected-bytes", longest=3), logical.Binary(), "AP8="),
    (Encoding("detected-bytes", exact=2, longest=2), logical.Binary(), "00ff"),
    (Encoding("mysql-text", padded=4), logical.Binary(), "é"),
]
OF_TYPES = [
    (Encoding(name), resolve_type(source_type), text)
    for name in ("mysql-text", "mysql-json")
    for source_type, text in USUAL.items()
    if source_type != "json"
]
OF_NUMBERS = [
    (Encoding("mysql-json"), resolve_type(source_type), value)
    for source_type, value in {
        "tinyint": -7, "bigint unsigned": 2**64 - 1, "decimal(20,4)": 1.5, "decimal(10,0)": 12,
        "double": -2.5e-300, "float": 3, "bit(10)": 1023, "year": 2024, "enum('a','b')": 2,
        "set('a','b')": 3, "boolean": 1,
    }.items()
]  # fmt: skip
OF_JSON = [
    (Encoding("text", aliases={"a\\,b": "a,b"}), logical.Enum(("a,b",)), "a\\,b"),
    (Encoding("json-value"), logical.Unknown(), "x"),
    (Encoding("json-value"), logical.Unknown(), 17520.25),
    (Encoding("json-value"), logical.Unknown(), {"a": [1, {"b": "x, y:é", "c": None}], "d": 2.5}),
    (Encoding("json-number"), logical.Int(16), -7),
    (Encoding("json-number", wraps=True), logical.Int(64, signed=False), -1),
    (Encoding("json-number"), logical.Float(32), 1.5),
    (Encoding("json-number"), logical.Float(64), -2.5e-300),
    (Encoding("json-number"), logical.Year(), 1900),
    (Encoding("json-number", doubles=True), logical.Decimal(20, 4), 22540.56),
    (Encoding("json-boolean"), logical.Bool(), True),
    (Encoding("iso-text"), logical.Date(), "2024-02-29Z"),
    (Encoding("iso-text"), logical.DateTime(3), "2024-02-29T10:00:00.123Z"),
    (Encoding("iso-text"), logical.Time(3), "10:00:00.123Z"),
    (Encoding("iso-instant"), logical.Timestamp(3), "2024-02-29T10:00:00.123Z"),
    (Encoding("iso-instant"), logical.Timestamp(3), "2024-02-29 10:00:00.123-03:30"),
    (Encoding("epoch-days"), logical.Date(), 19_000),
    *(
        (Encoding(name), type_, 36_000_000)
        for name in ("epoch-millis", "epoch-micros", "epoch-nanos")
        for type_ in (logical.DateTime(6), logical.Time(6), logical.Timestamp(6))
    ),
    (Encoding("connect-decimal", scale=2), logical.Decimal(20, 2), "MDk="),
    (Encoding("connect-decimal", scale=30), logical.Decimal(65, 30), "MDk="),
    (Encoding("connect-decimal"), logical.Int(64, signed=False), "AP//////////"),
    (Encoding("little-endian-bits"), logical.Bit(10), "/wM="),
    (Encoding("little-endian-bits"), logical.Bit(1), True),
    *((Encoding("charset-text", charset=c), logical.Text(), "abc") for c in ("gbk", "cp1252")),
    (Encoding("integer-text"), logical.Decimal(20, 0), "18446744073709551615"),
    (Encoding("integer-text"), logical.Decimal(scale=0), "-12"),
    (Encoding("calendar-parts"), logical.Date(), [2024, 2, 29, None, 0, None, None]),
    (Encoding("calendar-parts"), logical.DateTime(), [1, 1, 1, 23, 59, 59, 999_999]),
    (Encoding("calendar-parts"), logical.Time(), [None, None, None, -838, -59, -59, None]),
    (Encoding("calendar-parts"), logical.Year(), [2024, *[None] * 6]),
    (Encoding("calendar-parts"), logical.Year(), "2155"),
    (Encoding("epoch-pair"), logical.Timestamp(), [-1, 999_999]),
]
WAYS = OF_BYTES + OF_TYPES + OF_NUMBERS + OF_JSON


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
            "layouts": [_layout(LAYOUT)],
            "outputs": [{"name": "c", "content": "value", "nullable": True, **target}],
            "zone": describe_zone(UTC),
            "low_watermark": 0,
            "before_updates": True,
            "splits_keys": False,
            "max_message_bytes": 1 << 20,
            "max_rows": 1000,
            "max_bytes": 1 << 20,
            "row_bytes": 8,
            "images": None,
        }
        self.kernel = cdcfmt_kernel.Kernel(json.dumps(described_settings))
        column = Column("c", "", self.type)
        described = {
            "name": "c",
            "use": {"output": 0},
            "key": False,
            **_encoding(column, self.encoding, None, in_image=False),
        }
        rows = {"columns": [described], "absent": [], "keyed": False, "event": None}
        plan = {"rows": rows, "repeats": 0, "shown": None}
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


def alike(type_: logical.LogicalType, found: Any, expected: Any) -> bool:
    """Whether a value of Arrow's is one of Python's; Spark's types are others for some."""
    if expected is None:
        return found is None
    if isinstance(type_, logical.Unknown) and type(expected) is not str:
        is_number = isinstance(expected, Decimal)
        return bool(found == (format(expected, "f") if is_number else json_of(expected)))
    if isinstance(type_, logical.Time):
        total = abs(expected).total_seconds()
        text = f"{int(total // 3600):02}:{int(total // 60) % 60:02}:{int(total) % 60:02}"
        return found.removeprefix("-").startswith(text)
    if isinstance(type_, logical.Float):
        exact = pa.float32() if type_.bits == 32 else pa.float64()
        return repr(found) == repr(pa.scalar(expected, exact).as_py())
    if isinstance(type_, logical.Decimal) and isinstance(found, str):
        return found == format(expected, "f")
    if isinstance(type_, logical.Bit) and isinstance(found, bool):
        return found == bool(expected)
    return bool(found == expected)


@pytest.mark.parametrize(("encoding", "type_", "usual"), WAYS)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_values_are_those_of_python(
    encoding: Encoding, type_: logical.LogicalType, usual: Any, data: st.DataObject
) -> None:
    column = OneColumn(encoding, type_)
    values = TEXTS.get(encoding.name, TEXT) | TEXT | NUMBERS | st.just([]) | st.just({"a": 1})
    if encoding.name == "json-value":
        values |= JSON
    for _ in range(10):
        value = data.draw(values)
        found = column.read(value)
        if found:
            (expected,) = column.reference(value)
            assert alike(type_, found[0], expected), (value, found, expected)
