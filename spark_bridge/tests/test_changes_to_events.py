"""Rows of the changes shape back to events."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from cdcfmt_core import default_registry
from cdcfmt_core.errors import EncodeError, OptionError
from cdcfmt_core.events import Corrupt, Event, RowChange
from cdcfmt_core.types import GeometryValue, Int, InvalidValue, Time
from pyspark_cdcfmt.rows.changes_to_events import ChangeInput, check_changes
from pyspark_cdcfmt.rows.record_batches import BatchBuilder
from pyspark_cdcfmt.rows.row_schemas import SEQUENCE
from pyspark_cdcfmt.rows.variant import encode_variant
from pyspark_cdcfmt.spark_api import arrow_schema
from pyspark_cdcfmt.write.encoding import OrderCheck
from pyspark_cdcfmt.write_options import WriteOptions, parse_write_options

# Only to parse DDL.
pytestmark = pytest.mark.usefixtures("spark")

MYSQL = default_registry().get_type_map("mysql")
TSO = 429918007904436226
BASE = "id BIGINT, name STRING, _change_type STRING, _commit_version BIGINT"


def options(**given: str) -> WriteOptions:
    return parse_write_options(
        {"protocol": "canal-json", "table": "shop.orders", "keyColumns": "id", **given}
    )


def schema(ddl: str = BASE, *, sequence: bool = False) -> StructType:
    made = StructType.fromDDL(ddl)
    return made.add("_sequence", SEQUENCE) if sequence else made


def events(of: StructType, *batches: list[tuple[Any, ...]], **given: str) -> list[Event]:
    """The events of rows, each list of which is a batch."""
    parsed = options(**given)
    check_changes(of, parsed)
    made = ChangeInput(of, parsed, MYSQL)
    arrow = []
    for rows in batches:
        builder = BatchBuilder(of)
        arrow += [*builder.add(rows, 0), *builder.flush()]
    return [read.event for read in [*made.events(arrow), *made.flush()]]


def at(offset: int, part: int = 1, commit: int = 0) -> dict[str, int | None]:
    cells = {"commit": commit, "offset": offset, "part": part}
    return dict.fromkeys(SEQUENCE.names) | dict.fromkeys(SEQUENCE.names[:7], 0) | cells


def test_inserts_and_deletes() -> None:
    insert, delete = events(schema(), [(1, "a", "insert", TSO), (1, None, "delete", TSO)])
    assert isinstance(insert, RowChange)
    assert isinstance(delete, RowChange)
    assert (insert.op, insert.before, insert.commit_ts) == ("insert", None, TSO)
    assert insert.after is not None
    assert insert.after.values == {"id": 1, "name": "a"}
    assert delete.before is not None
    assert (delete.op, delete.after) == ("delete", None)
    assert delete.before.values == {"id": 1, "name": None}
    table = insert.table
    assert (table.database, table.table, table.key_columns) == ("shop", "orders", ("id",))
    assert delete.table is table
    assert table.columns[0].type == Int(64)
    assert table.columns[0].key


def test_the_rows_of_an_update_are_one_event_across_batches() -> None:
    pre = (1, "a", "update_preimage", TSO, at(7, 0))
    other = (2, "x", "insert", TSO, at(8))
    post = (1, "b", "update_postimage", TSO, at(7, 1))
    insert, update = events(schema(sequence=True), [pre], [other, post])
    assert isinstance(insert, RowChange)
    assert isinstance(update, RowChange)
    assert (insert.op, update.op) == ("insert", "update")
    assert update.before is not None
    assert update.after is not None
    assert (update.before.values["name"], update.after.values["name"]) == ("a", "b")


def test_without_sequence_pairs_follow_each_other() -> None:
    pair = [(1, "a", "update_preimage", TSO), (1, "b", "update_postimage", TSO)]
    (update,) = events(schema(), pair)
    assert isinstance(update, RowChange)
    assert update.op == "update"
    with pytest.raises(EncodeError, match="no update_postimage after it"):
        events(schema(), [pair[0], (2, "x", "insert", TSO), pair[1]])


@pytest.mark.parametrize("sequence", [False, True])
def test_preimage_without_postimage_is_an_error_with_remedy(sequence: bool) -> None:
    row: tuple[Any, ...] = (1, "a", "update_preimage", TSO)
    with pytest.raises(EncodeError, match="splitKeyUpdates=true") as caught:
        events(schema(sequence=sequence), [(*row, at(7, 0)) if sequence else row])
    assert "shop.orders" in str(caught.value)


def test_a_string_declared_as_json_is_its_text() -> None:
    declared = {"columnTypes": '{"name": "json"}'}
    text = '{"b": 1, "a": [1e400, "x"]}'
    (insert,) = events(schema(), [(1, text, "insert", TSO)], **declared)
    assert isinstance(insert, RowChange)
    assert insert.after is not None
    assert insert.after.values["name"] == text
    with pytest.raises(EncodeError, match=r"\{'a': 1\}.*is not JSON") as caught:
        events(schema(), [(1, "{'a': 1}", "insert", TSO)], **declared)
    assert caught.value.column == "name"


def test_json_null_is_not_null() -> None:
    of = schema("id BIGINT, x VARIANT, _change_type STRING")
    cells = [None, encode_variant(None), encode_variant("null"), encode_variant([None])]
    rows = [(number, cell, "insert") for number, cell in enumerate(cells)]
    found = [event.after.values["x"] for event in events(of, rows)]  # type: ignore[union-attr]
    assert found == [None, "null", '"null"', "[null]"]
    for value in (math.inf, {"a": [None, -math.nan]}):
        with pytest.raises(EncodeError, match="JSON has no infinity") as caught:
            events(of, [(1, encode_variant(value), "insert")])
        assert caught.value.column == "x"


def test_a_postimage_alone_is_an_upsert() -> None:
    (upsert,) = events(schema(), [(1, "b", "update_postimage", TSO)])
    assert isinstance(upsert, RowChange)
    assert (upsert.op, upsert.before) == ("upsert", None)


@pytest.mark.parametrize("name", ["name", "NAME"])
def test_absent_columns_are_absent_and_not_null(name: str) -> None:
    of = schema(BASE + ", _absent ARRAY<STRING>")
    (delete,) = events(of, [(1, None, "delete", TSO, [name])])
    assert isinstance(delete, RowChange)
    assert delete.before is not None
    assert delete.before.values == {"id": 1}
    assert not delete.before.complete


def test_unwritten_absent_column_keeps_the_row_complete() -> None:
    of = schema(BASE + ", _absent ARRAY<STRING>")
    (insert,) = events(of, [(1, "a", "insert", TSO, ["dropped", None])])
    assert isinstance(insert, RowChange)
    assert insert.after is not None
    assert insert.after.complete


def test_rows_with_only_a_sequence() -> None:
    of = schema("id BIGINT, _change_type STRING, _commit_timestamp TIMESTAMP", sequence=True)
    (insert,) = events(of, [(1, "insert", 1_700_000_000_000_000, at(3, commit=17 << 18))])
    assert isinstance(insert, RowChange)
    assert (insert.commit_ts, insert.sequence_commit) == (None, 17 << 18)
    assert insert.source_time == 1_700_000_000_000_000


def test_versions_of_delta_are_not_taken_for_a_commit_ts() -> None:
    with pytest.raises(EncodeError, match="not a commit_ts of TiDB") as caught:
        events(schema(), [(1, "a", "insert", 5)])
    assert caught.value.column == "_commit_version"


def test_bad_rows_and_unknown_words() -> None:
    record = "STRUCT<reason: STRING, key: BINARY, value: BINARY>"
    of = schema(BASE + f", _corrupt_record {record}")
    (corrupt,) = events(
        of, [(None, None, None, None, {"reason": "why", "key": None, "value": b""})]
    )
    assert isinstance(corrupt, Corrupt)
    assert "why" in str(corrupt.error)
    with pytest.raises(EncodeError, match="'merge' is not one of"):
        events(schema(), [(1, "a", "merge", TSO)])
    of = schema(BASE).add("_rescued", "variant")
    with pytest.raises(EncodeError, match="rescued values"):
        events(of, [(1, "a", "insert", TSO, encode_variant({"x": 1}))])


def test_every_type_of_column() -> None:
    of = schema(
        "id INT, t TINYINT, f FLOAT, d DOUBLE, n DECIMAL(10,2), s STRING, b BINARY, o BOOLEAN,"
        " day DATE, wall TIMESTAMP_NTZ, instant TIMESTAMP, length INTERVAL DAY TO SECOND,"
        " j VARIANT, v ARRAY<FLOAT>, g STRUCT<srid: INT, wkb: BINARY, wkt: STRING>,"
        " _change_type STRING"
    )
    instant = datetime(2024, 1, 1, tzinfo=UTC)
    row = (
        1, 2, 1.1, 0.1, Decimal("1.50"), "s", b"\xff", True, date(2024, 1, 1),
        datetime(2024, 1, 1, 12), instant, timedelta(hours=-1),
        encode_variant({"a": [1, Decimal("2.50"), None, "x"]}), [1.5],
        {"srid": 1, "wkb": b"w", "wkt": None},
        "insert",
    )  # fmt: skip
    (insert,) = events(of, [row, (*[None] * 15, "insert")])[:1]
    assert isinstance(insert, RowChange)
    assert insert.after is not None
    assert insert.after.values == {
        "id": 1, "t": 2, "f": 1.1, "d": 0.1, "n": Decimal("1.50"), "s": "s", "b": b"\xff",
        "o": True, "day": date(2024, 1, 1), "wall": datetime(2024, 1, 1, 12), "instant": instant,
        "length": timedelta(hours=-1), "j": '{"a":[1,2.50,null,"x"]}', "v": [1.5],
        "g": GeometryValue(1, b"w", None),
    }  # fmt: skip


def test_column_types_refine_the_dataframe() -> None:
    of = schema("id DECIMAL(20,0), t STRING, _change_type STRING")
    types = '{"id": "bigint unsigned", "t": "time(3)"}'
    (insert,) = events(of, [(Decimal(2**64 - 1), "-01:00:00.500", "insert")], columnTypes=types)
    assert isinstance(insert, RowChange)
    assert insert.after is not None
    assert insert.after.values == {
        "id": 2**64 - 1,
        "t": -timedelta(hours=1, milliseconds=500),
    }
    assert [column.type for column in insert.table.columns] == [Int(64, False), Time(3)]
    mend = "out of range, and its type is 'bigint unsigned': cast it, or set columnTypes"
    with pytest.raises(EncodeError, match=mend) as caught:
        events(of, [(Decimal(2**64), None, "insert")], columnTypes=types)
    assert caught.value.column == "id"


def test_texts_of_dates_are_dates() -> None:
    """Readers with ``invalidValues=text`` give all dates of a column as texts."""
    of = schema("d STRING, t STRING, i STRING, _change_type STRING")
    declared = {"columnTypes": '{"d": "date", "t": "datetime(6)", "i": "timestamp"}'}
    given = {"keyColumns": "d", **declared}
    valid = ("2024-02-01", "2024-02-01 10:00:00.500000", "2024-02-01 10:00:00Z", "insert")
    zeros = ("2024-02-30", "0000-00-00 00:00:00", "0000-00-00 00:00:00", "insert")
    made = events(of, [valid, zeros], **given)
    images = [each.after.values for each in made if isinstance(each, RowChange) and each.after]
    at = datetime(2024, 2, 1, 10)
    times = (date(2024, 2, 1), at.replace(microsecond=500_000), at.replace(tzinfo=UTC))
    assert [tuple(values.values()) for values in images] == [
        times,
        tuple(map(InvalidValue, zeros[:3])),
    ]
    for wrong, reason in {
        ("1.2.2024", None, None): "is not a date",
        (None, None, "2024-02-01 10:00:00"): "has no time zone: end it with Z",
    }.items():
        with pytest.raises(EncodeError, match=reason):
            events(of, [(*wrong, "insert")], **given)


def test_a_decimal_has_at_most_65_digits() -> None:
    of = schema("id STRING, _change_type STRING")
    with pytest.raises(EncodeError, match=r"column id: .* is a decimal of more than 65 digits"):
        events(of, [("1" * 66, "insert")], columnTypes='{"id": "decimal(65,30)"}')


@pytest.mark.parametrize("type_", ["float", "double"])
def test_floats_are_exact_or_rejected(type_: str) -> None:
    of = schema("id BIGINT, x DECIMAL(38, 18), _change_type STRING")
    given = {"columnTypes": f'{{"x": "{type_}"}}'}
    (insert,) = events(of, [(1, Decimal("1.5"), "insert")], **given)
    assert isinstance(insert, RowChange)
    assert insert.after is not None
    assert insert.after.values == {"id": 1, "x": 1.5}
    with pytest.raises(EncodeError, match=r"does not fit in a (double|float of 32 bits)") as caught:
        events(of, [(1, Decimal("12345678.123456789012345678"), "insert")], **given)
    assert caught.value.column == "x"


@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "TIMESTAMP_NTZ"])
def test_dates_outside_the_source_range(type_: str) -> None:
    of = schema(f"id BIGINT, x {type_}, _change_type STRING")
    arrow = arrow_schema(of)
    far = pa.array([1 << (30 if type_ == "DATE" else 60)]).cast(
        pa.int32() if type_ == "DATE" else pa.int64()
    )
    columns = [pa.array([1]), far.cast(arrow.field("x").type), pa.array(["insert"])]
    rows = ChangeInput(of, options(), MYSQL)
    with pytest.raises(EncodeError, match=r"shop\.orders, column x: a date is outside of the"):
        list(rows.events([pa.RecordBatch.from_arrays(columns, schema=arrow)]))


@pytest.mark.parametrize(
    ("ddl", "given", "reason"),
    [
        ("id INT", {}, "column _change_type is missing"),
        ("id INT, _change_type INT", {}, "column _change_type is int; it must be string"),
        ("id INT, i INTERVAL YEAR, _change_type STRING", {}, "column i: interval year"),
        ("id INT, _change_type STRING", {"keyColumns": "key"}, "option keyColumns: .* column key"),
        ("id INT, _change_type STRING", {"columnTypes": '{"x": "int"}'}, "no column x"),
        ("id INT, _change_type STRING", {"columnTypes": "int"}, "not a JSON object"),
        ("id INT, _change_type STRING, _Source INT", {}, "_Source differs from _source only in"),
    ],
)
def test_wrong_columns(ddl: str, given: dict[str, str], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        events(schema(ddl), [], **given)


def test_changes_of_a_key_out_of_order() -> None:
    of = schema(sequence=True)
    parsed = options()
    rows = [(1, "b", "insert", TSO, at(8)), (2, "x", "insert", TSO, at(1))]
    late = (1, "a", "delete", TSO, at(7))
    made = ChangeInput(of, parsed, MYSQL)
    builder = BatchBuilder(of)
    batches = [*builder.add([*rows, late], 0), *builder.flush()]
    check = OrderCheck()
    read = list(made.events(batches))
    check.check(read[0])
    check.check(read[1])
    check.check(read[1])
    with pytest.raises(EncodeError, match=r"ordered=false") as caught:
        check.check(read[2])
    assert "(0, 0, 0, 0, 7, 0, 1) comes after" in str(caught.value)


def test_a_change_of_the_key_counts_for_both_keys() -> None:
    of = schema(sequence=True)
    moved = [(1, "a", "update_preimage", TSO, at(5, 0)), (2, "a", "update_postimage", TSO, at(5))]
    late = [(1, "z", "delete", TSO, at(4))], [(2, "z", "delete", TSO, at(4))]
    again = [(1, "b", "insert", TSO, at(6)), (2, "a", "delete", TSO, at(7))]
    for rows, falls in ((late[0], True), (late[1], True), (again, False)):
        made = ChangeInput(of, options(), MYSQL)
        builder = BatchBuilder(of)
        read = list(made.events([*builder.add([*moved, *rows], 0), *builder.flush()]))
        check = OrderCheck()
        check.check(read[0])
        if falls:
            with pytest.raises(EncodeError, match="comes after one of the same key"):
                check.check(read[1])
        else:
            for one in read[1:]:
                check.check(one)


def test_the_order_check_is_bounded() -> None:
    of = schema(sequence=True)
    made = ChangeInput(of, options(), MYSQL)
    builder = BatchBuilder(of)
    rows = [(key, "x", "insert", TSO, at(key)) for key in range(100)]
    check = OrderCheck(max_keys=20)
    for read in made.events([*builder.add(rows, 0), *builder.flush()]):
        check.check(read)
    assert len(check) <= 20
