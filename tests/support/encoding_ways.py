"""Values that the kernel reads: a value encoding, a logical type, and a usual value.

``test_value_encodings.py`` reads them all, and ``doc_tables.py`` makes a table of them.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from kernel.test_canal_json import USUAL

from cdcfmt_core import types as logical
from cdcfmt_mysql import resolve_type
from cdcfmt_toolkit.encodings import Encoding, EncodingName
from pyspark_cdcfmt.rows.json_values import parse_json_column
from pyspark_cdcfmt.rows.variant import encode_variant


def _list(name: EncodingName, **more: Any) -> Encoding:
    return Encoding("list", items=Encoding(name, **more))


_STRUCT = logical.Struct((("n", logical.Int(16)), ("tags", logical.Array(logical.Text()))))
_STRUCT_WAY = Encoding("struct", fields={"n": Encoding("json-number"), "tags": _list("text")})
_DURATION = logical.Interval(months=False, days=False)
# The ways that a column of each type may be written, and a usual value.
OF_BYTES = [
    (Encoding("base64"), logical.Binary(), "AP8="),
    (Encoding("base64-text"), logical.Text(), "bmHDr3Zl"),
    (Encoding("hex"), logical.Binary(), "0x00ff"),
    (Encoding("hex"), logical.Binary(), r"\x00ff"),
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
    (Encoding("json-number"), logical.Decimal(20, 4), 22540.56),
    (Encoding("json-number"), logical.Decimal(65, 30), 2**100),
    (Encoding("json-number"), logical.Decimal(), 1e-7),
    (Encoding("json-number"), logical.Int(32), 7.0),
    (Encoding("json-number", wraps=True), logical.Bit(64), -1),
    (Encoding("json-value"), logical.Unknown(), 2**64),
    (Encoding("json-value"), logical.Unknown(), 10**50),
    (Encoding("json-value"), logical.Unknown(), 1e300),
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
    (Encoding("connect-decimal", scale=2), logical.Decimal(20, 2), 1234),
    (Encoding("connect-decimal", scale=2), logical.Decimal(20, 2), -12.5),
    (Encoding("connect-decimal"), logical.Int(64, signed=False), "AP//////////"),
    (Encoding("variable-scale-decimal"), logical.Decimal(), {"scale": 2, "value": "MDk="}),
    (Encoding("variable-scale-decimal"), logical.Decimal(30, 4), {"value": "zx8=", "scale": 0}),
    (Encoding("little-endian-bits"), logical.Bit(10), "/wM="),
    (Encoding("little-endian-bits"), logical.Bit(1), True),
    (Encoding("big-endian-bits"), logical.Bit(10), "A/8="),
    (Encoding("big-endian-bits"), logical.Bit(64), "//////////8="),
    *((Encoding("charset-text", charset=c), logical.Text(), "abc") for c in ("gbk", "cp1252")),
    (Encoding("integer-text"), logical.Decimal(20, 0), "18446744073709551615"),
    (Encoding("integer-text"), logical.Decimal(scale=0), "-12"),
    (Encoding("calendar-parts"), logical.Date(), [2024, 2, 29, None, 0, None, None]),
    (Encoding("calendar-parts"), logical.DateTime(), [1, 1, 1, 23, 59, 59, 999_999]),
    (Encoding("calendar-parts"), logical.Time(), [None, None, None, -838, -59, -59, None]),
    (Encoding("calendar-parts"), logical.Year(), [2024, *[None] * 6]),
    (Encoding("calendar-parts"), logical.Year(), "2155"),
    (Encoding("epoch-pair"), logical.Timestamp(), [-1, 999_999]),
    (Encoding("epoch-micros"), _DURATION, -61_500_000),
    (Encoding("epoch-nanos"), _DURATION, 3_600_000_000_000),
    (Encoding("iso-duration"), logical.Interval(), "P0Y-1M2DT-3H0M0.50S"),
    (_list("json-number"), logical.Array(logical.Int(32)), [1, None, -7]),
    (_list("json-number"), logical.Array(logical.Int(64, signed=False)), [2**64 - 1]),
    (_list("json-number"), logical.Array(logical.Float(32)), []),
    (_list("json-number"), logical.Vector(), [1, -2.5e-3]),
    (_list("json-boolean"), logical.Array(logical.Bool()), [True, None]),
    (_list("text"), logical.Array(logical.Text()), ["", 'a\n"é', None]),
    (_list("base64"), logical.Array(logical.Binary()), ["AP8="]),
    (_list("epoch-days"), logical.Array(logical.Date()), [19_000, None]),
    (_list("connect-decimal", scale=2), logical.Array(logical.Decimal(20, 2)), ["MDk="]),
    (_list("iso-instant"), logical.Array(logical.Timestamp()), ["2024-02-29T10:00:00.5Z"]),
    (
        Encoding("list", items=_list("json-number")),
        logical.Array(logical.Array(logical.Int(32))),
        [[1, 2], None, [], [None]],
    ),
    (
        Encoding("map", items=Encoding("json-number")),
        logical.Map(logical.Text(), logical.Int(32)),
        {"b": 1, "a": None, "é\n": -7},
    ),
    (_STRUCT_WAY, _STRUCT, {"n": 1, "tags": ["a", None]}),
    (Encoding("list", items=_STRUCT_WAY), logical.Array(_STRUCT), [{"tags": [], "n": None}, None]),
    (Encoding("geometry"), logical.Geometry(), {"wkb": "AP8=", "srid": None}),
    (Encoding("geometry"), logical.Geometry(), {"x": 1.5, "y": 2, "wkb": "AP8=", "srid": 4326}),
]
WAYS = OF_BYTES + OF_TYPES + OF_NUMBERS + OF_JSON
# Values with the column that the kernel makes of them; decoders read some encodings themselves.
_DOCUMENT = '{"b": [1.50, 1e3, "x"], "a": null}'
_VARIANT = dict(
    zip(("value", "metadata"), encode_variant(parse_json_column(_DOCUMENT)), strict=True)
)
DETECTED: list[tuple[Encoding, logical.LogicalType, Any, Any]] = [
    (Encoding("bytes-text", form="base64"), logical.Binary(), "AP8=", b"\0\xff"),
    (Encoding("bytes-text", form="hex"), logical.Binary(), "00ff", b"\0\xff"),
    (Encoding("guessed-decimal", scale=2), logical.Decimal(20, 2), "MDk=", Decimal("123.45")),
    (Encoding("guessed-decimal", scale=2), logical.Decimal(20, 2), "123.45", Decimal("123.45")),
    (Encoding("epoch-guessed"), logical.DateTime(3), 86_400_000, datetime(1970, 1, 2)),
    *(
        (Encoding(name), logical.Json(), _DOCUMENT, _VARIANT)
        for name in ("text", "mysql-text", "mysql-json")
    ),
    (Encoding("text"), logical.Text(), "é", "é"),
    (Encoding("text"), logical.Set(("a", "b")), "a,b", "a,b"),
    (Encoding("text"), logical.Uuid(), *["2f8b1c3e-0d4a-4c5b-9e6f-7a8b9c0d1e2f"] * 2),
    (Encoding("text"), logical.TimeTz(), *["01:02:03.5+05:30"] * 2),
    (_list("text"), logical.Array(logical.Json()), [_DOCUMENT, None], [_VARIANT, None]),
    (
        Encoding("zoned-text"),
        logical.Timestamp(0),
        "2024-02-29 10:00:00",
        datetime(2024, 2, 29, 10, tzinfo=UTC),
    ),
]
