"""``sync`` over the golden messages of each format: Kafka in, Delta out, equal to the truth."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import TimestampType, VariantVal
from support.canal_messages import write_lines
from support.dumped_cells import cell, garbled_cell
from support.golden_data import (
    Truth,
    dumped_tables,
    load_variant,
    native_messages,
    reading_options,
)
from support.golden_spark_values import in_column, instant, same_value, variant_value
from support.kafka_broker import Broker
from support.turns import in_turn

from cdcfmt_core import open_decoder
from cdcfmt_core.events import Message, RowChange
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.sync import sync

Rows: TypeAlias = dict[tuple[Any, ...], Any]


def fill(kafka: Broker, prefix: str, messages: Iterable[Message]) -> str:
    """Topics with these messages; the pattern of their names."""
    by_topic: dict[str, list[Message]] = defaultdict(list)
    for message in messages:
        by_topic[f"{prefix}.{message.topic or 'all'}"].append(message)
    for topic, sent in by_topic.items():
        partitions = 1 + max(message.partition or 0 for message in sent)
        kafka.create_topic(topic, partitions)
        kafka.produce(topic, (attrs.evolve(m, timestamp=None) for m in sent))
    return f"{prefix}\\..*"


def run(
    spark: SparkSession, kafka: Broker, pattern: str, folder: Path, **options: Any
) -> dict[str, str]:
    """Sync all that is there; the reasons of the tables that halted."""
    source = {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribePattern": pattern,
        **options.pop("source", {}),
    }
    sync(
        spark,
        source=source,
        into=f"{folder}/lake/{{table}}",
        checkpoint=f"{folder}/checkpoint",
        trigger={"availableNow": True},
        **options,
    ).awaitTermination()
    log = read(spark, folder, "checkpoint/sync/log")
    return {row.source: row.detail for row in log.where("action = 'halt'").collect()}


def read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return spark.read.format("delta").load(f"{folder}/{name}")


def with_stores(names: Iterable[Any], of: int = 2) -> list[Any]:
    """Each with a store in turn, since wires become typed changes before they reach a store."""
    return in_turn(names, ("scd1", "scd2"), of=of)


@pytest.mark.parametrize(
    ("name", "store"), with_stores(["canal/canal_flat", "debezium/schema_default"])
)
def test_native_producers(
    delta: SparkSession, kafka: Broker, tmp_path: Path, name: str, store: str
) -> None:
    is_canal = name.startswith("canal")
    pattern = fill(kafka, f"{store}-{name.replace('/', '-')}", native_messages(name))
    options = {"tables": "shop.*", "keys": {"shop.uk": "u"}, "schema_changes": "evolve"}
    source = {"sourceTimeZone": "UTC"}
    halted = run(delta, kafka, pattern, tmp_path, store=store, source=source, **options)
    # NULLs of pair became '' with a new definition: a history keeps them, and Debezium's statements
    # have no order among the rows.
    unknown = set() if is_canal and store == "scd1" else {"pair"}
    others = {"shop.nopk", "shop.later", "shop.later2", "shop.tmp_drop"}
    assert others | {f"shop.{table}" for table in unknown} == set(halted)
    for table, target in NATIVE.items():
        if table in unknown:
            continue
        frame = read(delta, tmp_path, f"lake/{target}")
        if store == "scd2":
            check_no_overlap(frame, KEYS.get(table, (frame.columns[0],)))
            frame = frame.where("__END_AT IS NULL")
        check_dump(frame, table, is_canal=is_canal)


NATIVE = {"wide": "wide", "pair": "pair", "uk": "uk", "订 单": "____d27b2f"}
"""Source tables, with their targets."""
KEYS = {"pair": ("a", "b")}
"""Of the others it is the first column."""


def check_dump(frame: DataFrame, table: str, *, is_canal: bool) -> None:
    types = {field.name: field.dataType for field in frame.schema.fields}
    key = KEYS.get(table, (frame.columns[0],))
    actual = by_key(frame, key)
    true = {}
    expected = dumped_tables()[table]
    # Of pair one column was renamed, and another one dropped.
    own = [column for column in types if column not in ("_sequence", "__START_AT", "__END_AT")]
    assert sorted(own) == sorted(expected[0])
    for row in expected:
        cells = {
            column: (garbled_cell if is_canal else cell)(column, types[column], *value)
            for column, value in row.items()
        }
        true[tuple(cells[column] for column in key)] = cells
    if table == "uk" and not is_canal:
        # Its TRUNCATE is never reported.
        assert true.keys() < actual.keys()
    else:
        assert true.keys() == actual.keys()
    for key_of_row, cells in true.items():
        row = actual[key_of_row]
        assert {column: spark_value(row[column], types[column]) for column in cells} == cells


def check_no_overlap(frame: DataFrame, key: tuple[str, ...]) -> None:
    """Each version of a key ends where the next one begins, or before it; the last may be open."""
    spans = defaultdict(list)
    for row in frame.collect():
        spans[tuple(row[column] for column in key)].append((row["__START_AT"], row["__END_AT"]))
    for versions in spans.values():
        versions.sort(key=lambda span: tuple(span[0]))
        assert all(end is None or start < end for start, end in versions)
        pairs = pairwise(versions)
        assert all(end is not None and end <= start for (_, end), (start, _) in pairs)


def by_key(frame: DataFrame, key: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    rows = {tuple(row[column] for column in key): row for row in frame.collect()}
    assert len(rows) == frame.count()
    return rows


def spark_value(value: Any, type_: Any) -> Any:
    if isinstance(type_, TimestampType) and value is not None:
        return instant(value)
    return value


TICDC = (
    ("canal-json", "tidb-extension"),
    ("debezium", "tidb-extension"),
    ("simple-json", "default"),
    ("simple-avro", "default"),
    ("open", "default"),
)
"""Rows of the first and the last one have ENUM and SET as numbers; the statements have names."""
ROUNDED = {("debezium", "c_dec_u")}
"""TiCDC's Debezium sends DECIMAL as a double."""


@pytest.mark.parametrize(("protocol", "name", "store"), with_stores(TICDC, of=4))
def test_ticdc(
    delta: SparkSession, kafka: Broker, tmp_path: Path, protocol: str, name: str, store: str
) -> None:
    golden = load_variant(protocol, name)
    messages = (Message(m.key, m.value) for m in golden.messages)
    pattern = fill(kafka, f"{store}-{protocol}-{name}", messages)
    tables = ["all_types", "pk_change", "uk_change"]
    run(
        delta,
        kafka,
        pattern,
        tmp_path,
        store=store,
        tables=[f"golden.{table}" for table in tables],
        keys={"golden.uk_change": "a"},
        source=reading_options(golden),
    )
    for table in tables:
        frame = read(delta, tmp_path, f"lake/{table}")
        events = [t for m in golden.messages for t in m.truth if t.get("table") == table]
        if store == "scd2":
            spans = frame.selectExpr("__START_AT.commit", "__END_AT.commit").collect()
            assert Counter(map(tuple, spans)) == Counter(true_spans(events)), table
            frame = frame.where("__END_AT IS NULL")
        check_rows(frame, protocol, final_rows(events))


def check_rows(frame: DataFrame, protocol: str, truth: dict[tuple[Any, ...], list[Truth]]) -> None:
    """The rows equal the last change of each key."""
    types = {field.name: field.dataType for field in frame.schema.fields}
    if not truth:
        assert frame.isEmpty()
        return
    key = tuple(c["name"] for c in next(iter(truth.values())) if "handle" in c["flags"])
    actual = by_key(frame, key)
    assert len(actual) == len(truth)
    for columns in truth.values():
        wanted = {c["name"]: in_column(c.get("new"), types[c["name"]], full=True) for c in columns}
        row = actual[tuple(wanted[column] for column in key)]
        for column in columns:
            if (protocol, column["name"]) in ROUNDED:
                continue
            cell_ = row[column["name"]]
            if isinstance(cell_, VariantVal):
                cell_ = variant_value(cell_)
            cell_ = spark_value(cell_, types[column["name"]])
            assert same_value(column.get("new"), wanted[column["name"]], cell_), (column, cell_)


def changed_keys(event: Truth) -> Iterator[tuple[str, tuple[str, ...]]]:
    """``old`` and ``new`` of a change, each with the text of its key."""
    for side in ("old", "new"):
        if any(side in column for column in event["columns"]):
            yield (
                side,
                tuple(str(c.get(side)) for c in event["columns"] if "handle" in c["flags"]),
            )


def empties(event: Truth) -> bool:
    return event["kind"] == "ddl" and event["ddl_type"] in ("truncate table", "drop table")


def final_rows(events: Iterable[Truth]) -> dict[tuple[Any, ...], list[Truth]]:
    """The rows that are left, by the text of their key: the columns of the last change."""
    rows: dict[tuple[Any, ...], list[Truth]] = {}
    for event in events:
        if empties(event):
            rows.clear()
        elif event["kind"] == "row":
            for side, key in changed_keys(event):
                rows.pop(key, None)
                if side == "new":
                    rows[key] = event["columns"]
    return rows


def true_spans(events: Iterable[Truth]) -> Iterator[tuple[int, int | None]]:
    """The range of commit_ts for each version of each row."""
    starts: dict[tuple[Any, ...], int] = {}
    for event in events:
        if empties(event):
            for start in starts.values():
                yield start, event["commit_ts"]
            starts.clear()
        elif event["kind"] == "row":
            for side, key in changed_keys(event):
                if key in starts:
                    yield starts.pop(key), event["commit_ts"]
                if side == "new":
                    starts[key] = event["commit_ts"]
    for start in starts.values():
        yield start, None


def test_dts(delta: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    """Types and values as a typed read has them, which the tests of DTS hold to the truth."""
    messages = [*native_messages("dts/dts")]
    source = {"protocol": "dts-avro"}
    pattern = fill(kafka, "dts", messages)
    assert run(delta, kafka, pattern, tmp_path, tables="shop.wide", source=source) == {}
    frame = read(delta, tmp_path, "lake/wide")
    columns = [name for name in frame.columns if name != "_sequence"]

    (tmp_path / "dump.jsonl").write_bytes(b"".join(wrap_line(m) + b"\n" for m in messages))
    types = ", ".join(f"`{n}` {frame.schema[n].dataType.simpleString()}" for n in columns)
    reader = delta.read.format("cdc").options(table="shop.wide", incompleteRows="emit")
    changes = reader.schema(f"{types}, _change_type string, _absent array<string>")
    rows: dict[Any, dict[str, Any]] = {}
    moved: dict[str, Any] = {}
    decode = open_decoder("dts-avro").decode
    inserts = (event for message in messages for event in decode(message) if is_insert(event))
    lacking = 0
    for change in changes.load(str(tmp_path / "dump.jsonl")).collect():
        cells = {name: change[name] for name in columns if name not in change["_absent"]}
        if "id" not in cells:
            continue
        if change["_change_type"] == "insert":
            insert = next(inserts)
            if insert.after.values.keys() < {*insert.table.column_names}:
                # No earlier row has the other values: they are the columns' defaults at the source.
                lacking += 1
                continue
        old = rows.pop(cells["id"], {})
        if change["_change_type"] == "update_preimage":
            moved = old
        elif change["_change_type"] != "delete":
            kept = moved | old if change["_change_type"] == "update_postimage" else {}
            rows[cells["id"]] = dict.fromkeys(columns) | kept | cells
            moved = {}
    actual = by_key(frame, ("id",))
    assert len(rows) > 90
    letters = read(delta, tmp_path, "checkpoint/sync/dead_letters").collect()
    new = [letter for letter in letters if letter.op == "insert"]
    assert len(new) == lacking > 40
    assert all("binlog_row_image=FULL" in letter.letter for letter in new)
    # A delete without the key.
    (other,) = (letter for letter in letters if letter.op != "insert")
    assert other.op == "delete"
    assert other.letter == "shop.wide: the row lacks its key (id)"
    log = read(delta, tmp_path, "checkpoint/sync/log").where("action = 'dead letters'")
    (reason,) = (row.detail for row in log.collect())
    first = min((letter._source for letter in letters), key=lambda source: source.offset)
    place = f"topic {first.topic}, partition 0, offset {first.offset}"
    assert reason == f"{len(letters)} rows cannot be read, first {place}: see dead_letters"
    assert actual.keys() == {(id_,) for id_ in rows}
    for id_, cells in rows.items():
        for name, cell_ in cells.items():
            both = [comparable(name, each) for each in (cell_, actual[(id_,)][name])]
            assert both[0] == both[1], (id_, name)


def is_insert(event: Any) -> bool:
    return isinstance(event, RowChange) and event.op == "insert" and event.table.table == "wide"


def comparable(name: str, cell_: Any) -> Any:
    if isinstance(cell_, VariantVal):
        # Of events the null of JSON and SQL's NULL are one value.
        cell_ = variant_value(cell_)
    if name == "c_dec":
        # Its digits are not in the type of its name, which is all that events tell.
        return cell_ and Decimal(cell_)
    return str(cell_)  # also of NaN


def test_cloudcanal(delta: SparkSession, tmp_path: Path) -> None:
    """Rows at random, in the order of a file."""
    dump = tmp_path / "dump"
    dump.mkdir()
    messages, truth = cloudcanal_workload(random.Random(20))
    write_lines(dump / "cloudcanal.json", *messages)
    sync(
        delta,
        source={"path": str(dump)},
        tables="shop.*",
        into=f"{tmp_path}/lake/{{table}}",
        checkpoint=f"{tmp_path}/checkpoint",
        trigger={"availableNow": True},
    ).awaitTermination()
    rows = read(delta, tmp_path, "lake/orders").select("id", "name", "price").collect()
    assert {row.id: (row.name, str(row.price)) for row in rows} == truth
    assert len(rows) == len(truth)


def cloudcanal_workload(
    dice: random.Random,
) -> tuple[list[dict[str, Any]], dict[int, tuple[str, str]]]:
    """Changes of rows, also of their keys and several in a message; what is left of them."""
    rows: dict[int, dict[str, str]] = {}
    messages = []
    types = {"id": "bigint(20)", "name": "varchar(20)", "price": "decimal(10,2)"}
    for number in range(200):
        id_ = dice.randrange(12)
        new = {"id": str(id_), "name": f"v{number}", "price": f"{number}.50"}
        old = rows.pop(id_, None)
        if old is None:
            before, after, action = [], [new], "INSERT"
            if (other := dice.randrange(12)) not in (*rows, id_):
                after.append(new | {"id": str(other)})
        elif dice.random() < 0.3:
            before, after, action = [], [old], "DELETE"
        else:
            if (other := dice.randrange(12)) not in rows:
                new["id"] = str(other)
            before, after, action = [old], [new], "UPDATE"
        if action != "DELETE":
            rows |= {int(row["id"]): row for row in after}
        messages.append(
            {"action": action, "before": before, "data": after, "bid": number, "db": "shop"}
            | {"schema": "shop", "table": "orders", "pks": ["id"], "dbValType": types}
            | {"jdbcType": {"id": -5, "name": 12, "price": 3}, "isDdl": False, "sql": ""}
            | {"entryType": "ROWDATA", "execTs": 1669789152000 + number, "sendTs": 1669789153377}
        )
    return messages, {id_: (row["name"], row["price"]) for id_, row in rows.items()}
