"""The same messages through Spark: both shapes against the truth, by value and type."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import attrs
import pytest
from golden_data import (
    GoldenMessage,
    Truth,
    Variant,
    load_variant,
    python_value,
    reading_options,
    variant_names,
)
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
    VariantVal,
)

from cdcfmt_core.sources import wrap_line
from cdcfmt_core.types import InvalidValue

VARIANTS = variant_names("canal-json")
EVERY_TABLE = ("content-compatible", "default", "tidb-extension")
SOME_TABLES = {"all_types", "bytes_t", "large_t", "no_key", "pk_change", "uk_change", "upd_cols"}
"""For the other variants: what differs between them shows in these tables."""

UNSIGNED_64 = DecimalType(20, 0)
TYPES: dict[str, tuple[DataType, DataType]] = {
    "tinyint(1)": (ByteType(), ByteType()),
    "tinyint(4)": (ByteType(), ByteType()),
    "tinyint(3) unsigned": (ShortType(), ShortType()),
    "smallint(6)": (ShortType(), ShortType()),
    "smallint(5) unsigned": (IntegerType(), IntegerType()),
    "mediumint(9)": (IntegerType(), IntegerType()),
    "mediumint(8) unsigned": (IntegerType(), IntegerType()),
    "int(11)": (IntegerType(), IntegerType()),
    "int(10) unsigned": (LongType(), LongType()),
    "int(10) unsigned zerofill": (LongType(), LongType()),
    "bigint(20)": (LongType(), LongType()),
    "bigint(20) unsigned": (UNSIGNED_64, UNSIGNED_64),
    "float": (FloatType(), FloatType()),
    "float unsigned": (FloatType(), FloatType()),
    "float(10,3)": (FloatType(), FloatType()),
    "double": (DoubleType(), DoubleType()),
    "double(16,4)": (DoubleType(), DoubleType()),
    "decimal(10,2)": (StringType(), DecimalType(10, 2)),
    "decimal(10,4)": (StringType(), DecimalType(10, 4)),
    "decimal(20,0) unsigned": (StringType(), DecimalType(20, 0)),
    "decimal(20,4)": (StringType(), DecimalType(20, 4)),
    "decimal(20,5)": (StringType(), DecimalType(20, 5)),
    "decimal(30,10)": (StringType(), DecimalType(30, 10)),
    "decimal(65,0)": (StringType(), StringType()),
    "decimal(65,30)": (StringType(), StringType()),
    "bit(1)": (UNSIGNED_64, BooleanType()),
    "bit(4)": (UNSIGNED_64, LongType()),
    "bit(8)": (UNSIGNED_64, LongType()),
    "bit(10)": (UNSIGNED_64, LongType()),
    "bit(64)": (UNSIGNED_64, UNSIGNED_64),
    "char(5)": (StringType(), StringType()),
    "char(10)": (StringType(), StringType()),
    "char(16)": (StringType(), StringType()),
    "varchar(5)": (StringType(), StringType()),
    "varchar(10)": (StringType(), StringType()),
    "varchar(20)": (StringType(), StringType()),
    "varchar(100)": (StringType(), StringType()),
    "varchar(255)": (StringType(), StringType()),
    "varchar(600)": (StringType(), StringType()),
    "tinytext": (StringType(), StringType()),
    "text": (StringType(), StringType()),
    "mediumtext": (StringType(), StringType()),
    "longtext": (StringType(), StringType()),
    "binary(4)": (BinaryType(), BinaryType()),
    "binary(16)": (BinaryType(), BinaryType()),
    "binary(255)": (BinaryType(), BinaryType()),
    "varbinary(20)": (BinaryType(), BinaryType()),
    "varbinary(255)": (BinaryType(), BinaryType()),
    "varbinary(300)": (BinaryType(), BinaryType()),
    "tinyblob": (BinaryType(), BinaryType()),
    "blob": (BinaryType(), BinaryType()),
    "mediumblob": (BinaryType(), BinaryType()),
    "longblob": (BinaryType(), BinaryType()),
    "date": (DateType(), DateType()),
    "datetime": (TimestampNTZType(), TimestampNTZType()),
    "datetime(3)": (TimestampNTZType(), TimestampNTZType()),
    "datetime(6)": (TimestampNTZType(), TimestampNTZType()),
    "timestamp": (TimestampType(), TimestampType()),
    "timestamp(3)": (TimestampType(), TimestampType()),
    "timestamp(6)": (TimestampType(), TimestampType()),
    "time": (StringType(), StringType()),
    "time(3)": (StringType(), StringType()),
    "time(6)": (StringType(), StringType()),
    "year(4)": (IntegerType(), IntegerType()),
    "enum('','x')": (IntegerType(), StringType()),
    "enum('a','b')": (IntegerType(), StringType()),
    "enum('a','b','c,d','e''f','中')": (IntegerType(), StringType()),
    "enum('x','y')": (IntegerType(), StringType()),
    "set('a','b')": (UNSIGNED_64, StringType()),
    "set('x','y')": (UNSIGNED_64, StringType()),
    "set('x','y','z','w','v')": (UNSIGNED_64, StringType()),
    "json": (VariantType(), VariantType()),
    "vector": (ArrayType(FloatType()), ArrayType(FloatType())),
    "vector(3)": (ArrayType(FloatType()), ArrayType(FloatType())),
}
"""The column's type → its Spark type where the wire has no parameters, and where it has."""

WIDENED: dict[tuple[str, str, str], tuple[DataType, DataType]] = {
    ("ddl_db", "t1", "c1"): (LongType(), LongType()),
    ("ddl_db", "t1", "d"): (StringType(), DecimalType(20, 4)),
}
"""Columns whose type changes on the way."""

DDL_TYPES = {
    "add foreign key": "CINDEX",
    "add index": "CINDEX",
    "add primary key": "CINDEX",
    "alter table cache": "QUERY",
    "alter table nocache": "QUERY",
    "create schema": "QUERY",
    "create table": "CREATE",
    "create view": "QUERY",
    "drop foreign key": "DINDEX",
    "drop index": "DINDEX",
    "drop primary key": "DINDEX",
    "drop schema": "QUERY",
    "drop table": "ERASE",
    "drop view": "QUERY",
    "exchange partition": "QUERY",
    "modify schema charset and collate": "QUERY",
    "recover table": "QUERY",
    "rename table": "RENAME",
    "truncate table": "TRUNCATE",
}
"""TiDB's name of an action → Canal's word; ALTER for all others."""

ADDED = StructType(
    [
        StructField("_change_type", StringType()),
        StructField("_commit_version", LongType()),
        StructField("_commit_timestamp", TimestampType()),
        StructField(
            "_sequence",
            StructType(
                [
                    StructField("commit", LongType()),
                    StructField("rank", IntegerType()),
                    StructField("offset", LongType()),
                    StructField("index", IntegerType()),
                    StructField("part", IntegerType()),
                ]
            ),
        ),
        StructField("_absent", ArrayType(StringType())),
        StructField(
            "_corrupt_record",
            StructType(
                [
                    StructField("reason", StringType()),
                    StructField("key", BinaryType()),
                    StructField("value", BinaryType()),
                ]
            ),
        ),
    ]
)


# --- Input -----------------------------------------------------------------------------


@attrs.frozen
class Place:
    """A true event and where its message stands."""

    truth: Truth
    path: str
    offset: int
    reduced: bool


@attrs.frozen
class Input:
    """A variant as files."""

    variant: Variant
    path: str
    places: tuple[Place, ...]

    @property
    def full(self) -> bool:
        """Whether column types have their parameters on the wire."""
        return bool(self.variant.config["content-compatible"])

    @property
    def has_commit_ts(self) -> bool:
        return bool(self.variant.config["enable-tidb-extension"])


@pytest.fixture(scope="module", params=VARIANTS)
def given(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Input:
    return write_input(request.param, tmp_path_factory.mktemp(request.param))


def write_input(name: str, folder: Path) -> Input:
    variant = load_variant("canal-json", name)
    if name == "storage-txn":
        places = [
            place
            for message in variant.messages
            for place in _write_body(message, folder / f"CDC{message.seq:06}.json")
        ]
        return Input(variant, str(folder), tuple(places))
    path, offset = folder / "messages.json", 0
    places = []
    with path.open("wb") as file:
        for message in variant.messages:
            assert message.value is not None
            wrapped = variant.compression != "none"
            line = wrap_line(message.message) if wrapped else message.value
            file.write(line + b"\n")
            (truth,) = message.truth
            place = message.seq if wrapped else offset
            places.append(Place(truth, str(path), place, b'"onlyHandleKey":true' in line))
            offset += len(line) + 1
    return Input(variant, str(path), tuple(places))


def _write_body(message: GoldenMessage, path: Path) -> Iterator[Place]:
    """A file as the storage sink wrote it: documents joined by CRLF."""
    assert message.value is not None
    path.write_bytes(message.value)
    offset = 0
    for truth, line in zip(message.truth, message.value.split(b"\r\n"), strict=False):
        yield Place(truth, str(path), offset, False)
        offset += len(line) + 2
    assert offset == len(message.value)


def read(spark: SparkSession, given: Input, **options: str) -> DataFrame:
    reader = spark.read.format("cdc").options(**reading_options(given.variant))
    return reader.options(**{"mode": "FAILFAST"} | options).load(given.path)


# --- Values ----------------------------------------------------------------------------


def json_value(text: str) -> Any:
    """A JSON column's value with exact numbers; its text where decimal(38) is too narrow."""
    numbers: list[Decimal] = []

    def number(digits: str) -> Decimal:
        numbers.append(Decimal(digits))
        return numbers[-1]

    value = json.loads(text, parse_float=number, parse_int=number)
    return text if any(abs(n) >= 10**38 for n in numbers) else value


def same_json(expected: Any, actual: Any) -> bool:
    if isinstance(expected, Decimal):
        return type(actual) in (int, Decimal) and expected == actual
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, dict):
        return expected.keys() == actual.keys() and all(
            same_json(expected[name], actual[name]) for name in expected
        )
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(same_json, expected, actual))
    return bool(expected == actual)


def variant_value(variant: VariantVal) -> Any:
    # toPython computes decimals in the context's precision, which is 28 by default.
    with localcontext(prec=50):
        return variant.toPython()


def in_variant(true: Truth | None, type_: str, full: bool) -> Any:
    """A value as it stands in ``before`` and ``after``, as ``toPython`` gives it."""
    if true is None:
        return None
    kind = true["t"]
    if kind in ("enum", "set") and full:
        return true["v"]
    if kind == "set":
        return Decimal(true["n"])
    if kind == "enum":
        return int(true["n"])
    if kind == "bit":
        if not full or type_ == "bit(64)":
            return Decimal(true["n"])
        return bool(int(true["n"])) if type_ == "bit(1)" else int(true["n"])
    if kind in ("int", "uint", "year"):
        return Decimal(true["v"]) if type_ == "bigint(20) unsigned" else int(true["v"])
    if kind == "str":
        return true["v"]
    if kind == "time":
        whole, _, fraction = true["v"].partition(".")
        return f"{whole}.{fraction.ljust(6, '0')}"
    if kind == "decimal":
        unscaled = true["v"].replace(".", "").lstrip("-0")
        return Decimal(true["v"]) if len(unscaled) <= 38 else true["v"]
    value = python_value(true)
    return None if isinstance(value, InvalidValue) else value


def in_column(true: Truth | None, type_: DataType, full: bool) -> Any:
    """A value as it stands in a column of the changes, as ``collect`` gives it."""
    if true is None:
        return None
    kind = true["t"]
    if kind in ("enum", "set"):
        number = int(true["n"])
        if full:
            return true["v"]
        return number if isinstance(type_, IntegerType) else Decimal(number)
    if kind == "bit":
        convert: Callable[[int], Any] = {BooleanType: bool, LongType: int}.get(type(type_), Decimal)
        return convert(int(true["n"]))
    if kind == "uint" and type_ == UNSIGNED_64:
        return Decimal(true["v"])
    if kind in ("int", "uint", "year"):
        return int(true["v"])
    if kind == "decimal":
        if isinstance(type_, StringType):
            return true["v"]
        return Decimal(true["v"]).quantize(Decimal(1).scaleb(-type_.scale))  # type: ignore[attr-defined]
    if kind == "str":
        return true["v"]
    if kind == "time":
        if full:
            return true["v"]
        # Without its precision the fraction is whole or left out.
        whole, _, fraction = true["v"].partition(".")
        return f"{whole}.{fraction.ljust(6, '0')}" if fraction.strip("0") else whole
    value = python_value(true)
    return None if isinstance(value, InvalidValue) else value


def same_value(true: Truth | None, expected: Any, actual: Any) -> bool:
    """Equal in type and value; floats by their bits, instants wherever they are."""
    if true is not None and true["t"] == "json":
        return same_json(json_value(true["v"]), actual)
    if true is not None and true["t"] in ("float", "double"):
        return type(actual) is float and expected.of(actual) == expected.hex
    if true is not None and true["t"] == "vector":
        return (
            isinstance(actual, list)
            and len(actual) == len(expected)
            and all(
                type(number) is float and bits.of(number) == bits.hex
                for bits, number in zip(expected, actual, strict=True)
            )
        )
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, Decimal):
        return str(expected) == str(actual)
    return bool(expected == actual)


def instant(value: datetime) -> datetime:
    """``collect`` gives instants in the local time of the process."""
    return value.astimezone(UTC)


# --- Events ----------------------------------------------------------------------------


def test_events(spark: SparkSession, given: Input) -> None:
    rows = read(spark, given, includeColumns="true").collect()
    assert len(rows) == len(given.places)
    for row, place in zip(rows, given.places, strict=True):
        truth = place.truth
        about = f"seq {truth['seq']} ({truth['kind']}, {truth['scenario']})"
        for check in (_check_event, _check_ddl, _check_row):
            check(row, place, given, about)


def _check_event(row: Row, place: Place, given: Input, about: str) -> None:
    truth = place.truth
    time = datetime.fromtimestamp((truth["commit_ts"] >> 18) / 1000, UTC)
    assert row.kind == truth["kind"], about
    assert row.op == (truth["op"] if truth["kind"] == "row" else None), about
    assert (row.database, row.schema, row.table) == (
        truth.get("schema"),
        None,
        truth.get("table"),
    ), about
    assert row.commit_ts == (truth["commit_ts"] if given.has_commit_ts else None), about
    assert (row.commit_time and instant(row.commit_time)) == (
        time if given.has_commit_ts else None
    ), about
    assert instant(row.source_time) == time, about
    assert instant(row.emit_time) >= time, about
    assert row._source == Row(
        protocol="canal-json",
        topic=None,
        path=place.path,
        partition=None,
        offset=place.offset,
        index=0,
        timestamp=None,
    ), about
    assert row._corrupt_record is None, about
    assert row.table_schema is None, about
    extra = row.extra.toPython() if row.extra is not None else {}
    assert extra.pop("only_handle_key", False) == place.reduced, about
    if given.variant.claims is not None:
        extra.pop("claim_check", None)
    assert extra == {}, about


def _check_ddl(row: Row, place: Place, given: Input, about: str) -> None:
    if place.truth["kind"] != "ddl":
        assert row.ddl is None, about
        return
    assert row.ddl.query == place.truth["query"], about
    assert row.ddl.type == DDL_TYPES.get(place.truth["ddl_type"], "ALTER"), about


def _check_row(row: Row, place: Place, given: Input, about: str) -> None:
    truth = place.truth
    if truth["kind"] != "row":
        assert (row.before, row.after, row.key_columns, row.columns) == (None,) * 4, about
        return
    assert row.key_columns == truth["pk_names"], about
    columns = _sent(place, given)
    assert [column.name for column in row.columns] == [column["name"] for column in columns], about
    for column, true in zip(row.columns, columns, strict=True):
        without_parameters = re.sub(r"\(.*\)", "", true["type"])
        assert column.source_type == (true["type"] if given.full else without_parameters), about
        assert column.nullable is None, about
        assert column.key == (column.name in truth["pk_names"]), about
    for side, image in (("old", row.before), ("new", row.after)):
        if not any(side in column for column in truth["columns"]):
            assert image is None, about
            continue
        assert isinstance(image, VariantVal), about
        values = variant_value(image)
        assert sorted(values) == sorted(column["name"] for column in columns), about
        for column in columns:
            true, actual = column[side], values[column["name"]]
            expected = in_variant(true, column["type"], given.full)
            assert same_value(true, expected, actual), (about, side, column, actual)


def _sent(place: Place, given: Input) -> list[Truth]:
    """The true columns that the message holds."""
    deleted = place.truth["op"] == "delete" and given.variant.name == "delete-only-handle-key"
    return [
        column
        for column in place.truth["columns"]
        if "handle" in column["flags"] or not (place.reduced or deleted)
    ]


# --- Changes ---------------------------------------------------------------------------


def test_changes(spark: SparkSession, given: Input) -> None:
    tables = _tables(given)
    assert tables
    for table, (frame, rows) in zip(tables, _read_tables(spark, given, tables), strict=True):
        _check_changes(given, table, frame, rows)


@pytest.mark.parametrize("name", EVERY_TABLE)
def test_permissive_gives_the_same(spark: SparkSession, name: str, tmp_path: Path) -> None:
    given = write_input(name, tmp_path)
    tables = [table for table in given.variant.tables if table[1] in SOME_TABLES]
    strict = _read_tables(spark, given, tables)
    lenient = _read_tables(spark, given, tables, mode="PERMISSIVE")
    for (_, expected), (_, actual) in zip(strict, lenient, strict=True):
        assert [_comparable(row) for row in actual] == [_comparable(row) for row in expected]


def _comparable(row: Row) -> list[Any]:
    return [str(value) if isinstance(value, VariantVal) else value for value in row]


def _tables(given: Input) -> list[tuple[str, str]]:
    if given.variant.name in EVERY_TABLE:
        return given.variant.tables
    return [table for table in given.variant.tables if table[1] in SOME_TABLES]


def _read_tables(
    spark: SparkSession, given: Input, tables: list[tuple[str, str]], **options: str
) -> list[tuple[DataFrame, list[Row]]]:
    def read_table(table: tuple[str, str]) -> tuple[DataFrame, list[Row]]:
        name = ".".join(f"`{part}`" for part in table)
        frame = read(spark, given, table=name, incompleteRows="emit", onTruncate="row", **options)
        return frame, frame.collect()

    # Planning and starting a job take longer than these few rows.
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(read_table, tables))


def _check_changes(given: Input, table: tuple[str, str], frame: DataFrame, rows: list[Row]) -> None:
    places = [place for place in given.places if _concerns(place.truth, table)]
    types = _expected_types(given, table, places)
    expected_schema = [(name, type_) for name, type_ in types.items()]
    added = len(ADDED.fields)
    fields = frame.schema.fields
    assert [(field.name, field.dataType) for field in fields[:-added]] == expected_schema, table
    assert StructType(fields[-added:]) == ADDED, table
    assert all(field.nullable for field in fields)

    expected = [
        (place, change_type, side) for place in places for change_type, side in _parts(place.truth)
    ]
    assert [row._change_type for row in rows] == [change_type for _, change_type, _ in expected]
    sequences = defaultdict(list)
    for row, (place, change_type, side) in zip(rows, expected, strict=True):
        about = f"seq {place.truth['seq']}, {'.'.join(table)}, {change_type}"
        _check_position(given, row, place, change_type, about)
        columns = {c["name"]: c for c in _sent(place, given)} if side else {}
        if side:
            assert row._absent == [name for name in types if name not in columns], about
        for name, type_ in types.items():
            true = columns[name][side] if name in columns else None
            actual = row[name]
            if true is not None and true["t"] == "json":
                # A JSON null is a variant; SQL's NULL is none.
                assert isinstance(actual, VariantVal), about
                actual = variant_value(actual)
            elif isinstance(actual, datetime) and isinstance(type_, TimestampType):
                actual = instant(actual)
            wanted = in_column(true, type_, given.full)
            assert same_value(true, wanted, actual), (about, name, type_, true, actual)
        if side:
            keys = place.truth["pk_names"]
            sequences[tuple(str(columns[name][side]) for name in keys)].append(row._sequence)
    for key, positions in sequences.items():
        assert positions == sorted(positions), (table, key)
        assert len(set(positions)) == len(positions), (table, key)


def _concerns(truth: Truth, table: tuple[str, str]) -> bool:
    if truth["kind"] == "watermark" or (truth["schema"], truth["table"]) != table:
        return False
    return truth["kind"] == "row" or truth["ddl_type"] in ("truncate table", "drop table")


def _parts(truth: Truth) -> list[tuple[str, str]]:
    if truth["kind"] == "ddl":
        return [("truncate", "")]
    return {
        "insert": [("insert", "new")],
        "update": [("update_preimage", "old"), ("update_postimage", "new")],
        "delete": [("delete", "old")],
    }[truth["op"]]


def _expected_types(
    given: Input, table: tuple[str, str], places: list[Place]
) -> dict[str, DataType]:
    """By the types in the truth: columns in the order in which they first come."""
    types: dict[str, DataType] = {}
    for place in places:
        if place.truth["kind"] == "row":
            for column in _sent(place, given):
                name = column["name"]
                of_type = WIDENED.get((*table, name)) or TYPES[column["type"]]
                assert types.setdefault(name, of_type[given.full]) == of_type[given.full]
    return types


def _check_position(given: Input, row: Row, place: Place, change_type: str, about: str) -> None:
    commit_ts = place.truth["commit_ts"]
    physical = commit_ts >> 18
    assert row._commit_version == (commit_ts if given.has_commit_ts else None), about
    assert instant(row._commit_timestamp) == datetime.fromtimestamp(physical / 1000, UTC), about
    assert row._sequence == Row(
        commit=commit_ts if given.has_commit_ts else physical << 18,
        rank=1 if given.has_commit_ts and change_type != "delete" else 0,
        offset=place.offset,
        index=0,
        part=0 if change_type in ("delete", "update_preimage") else 1,
    ), about
    assert row._corrupt_record is None, about


# --- What the options ask for ------------------------------------------------------------


def test_incomplete_rows_fail(spark: SparkSession, tmp_path: Path) -> None:
    given = write_input("handle-key-only", tmp_path)
    with pytest.raises(PySparkException, match="only part of the row"):
        read(spark, given, table="golden.bytes_t").collect()
    rows = read(spark, given, table="golden.bytes_t", mode="PERMISSIVE").collect()
    places = [p for p in given.places if p.truth.get("table") == "bytes_t" and "op" in p.truth]
    expected = []
    for place in places:
        if place.truth["kind"] == "row":
            bad = place.reduced and place.truth["op"] != "delete"
            parts = [(None, "")] if bad else _parts(place.truth)
            expected += [change_type for change_type, _ in parts]
    assert [row._change_type for row in rows] == expected
    for row in rows:
        assert (row._corrupt_record is None) == (row._change_type is not None)


def test_types_are_complete() -> None:
    """Every type of the truth has its line above, and no line is for nothing."""
    truth = load_variant("canal-json", "tidb-extension").truth.values()
    assert TYPES.keys() == {c["type"] for t in truth if t["kind"] == "row" for c in t["columns"]}
