"""Statements that change rows without messages, compared with a real MariaDB and connector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
)
from support.alter_kinds import CONVERTED, DEFAULTS, HALTED, SAME, UNKNOWN_DEFAULTS, Kind
from support.debezium_connector import Connector
from support.kafka_broker import Broker
from support.mariadb_server import MariaDb

from pyspark_cdcfmt.sync import sync

ONE_TOPIC = {
    "transforms": "one",
    "transforms.one.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.one.replacement": "alter",
}
"""Rows and statements in one partition: offsets order them."""

STRICT = "SET sql_mode = 'STRICT_ALL_TABLES'"
LOOSE = "SET sql_mode = ''"
MODES = {"strict": STRICT, "loose": LOOSE}


def test_kinds_equal_the_docs_table() -> None:
    for kinds, effect in ((SAME, "same"), (CONVERTED, "convert"), (HALTED, "halt")):
        assert [kind for kind in kinds if kind.effect.kind != effect] == []


def create(table: str, kinds: Sequence[Kind]) -> str:
    columns = (f"c{number} {kind.old}" for number, kind in enumerate(kinds))
    return f"CREATE TABLE {table} (id INT PRIMARY KEY, {', '.join(columns)})"


def alter(table: str, kinds: Sequence[Kind]) -> str:
    changes = (f"MODIFY c{number} {kind.new}" for number, kind in enumerate(kinds))
    return f"ALTER TABLE {table} {', '.join(changes)}"


def inserts(
    table: str, kinds: Sequence[Kind], *, more: bool, begin: int, verb: str = "INSERT"
) -> Iterator[str]:
    """One row for each value; a column that has no more of them repeats its first."""
    values = [(*kind.fits, *(kind.more if more else ())) for kind in kinds]
    for row in range(max(map(len, values))):
        cells = (each[row] if row < len(each) else each[0] for each in values)
        yield f"{verb} INTO {table} VALUES ({begin + row}, {', '.join(cells)})"


@pytest.fixture
def lake(delta: SparkSession, kafka: Broker, tmp_path: Path) -> Lake:
    return Lake(delta, kafka, tmp_path)


class Lake:
    """Runs of one query over the topic."""

    def __init__(self, spark: SparkSession, kafka: Broker, folder: Path) -> None:
        self.spark, self.kafka, self.folder = spark, kafka, folder

    def run(self, **options: Any) -> None:
        topic = options.pop("topic", {"subscribe": "alter"})
        sync(
            self.spark,
            source={"kafka.bootstrap.servers": self.kafka.servers, "protocol": "debezium"} | topic,
            **{
                "tables": "alt.*",
                "into": f"{self.folder}/lake/{{table}}",
                "checkpoint": f"{self.folder}/checkpoint",
                "trigger": {"availableNow": True},
            }
            | options,
        ).awaitTermination()

    def halted(self) -> dict[str, str]:
        states = self.spark.read.format("delta").load(f"{self.folder}/checkpoint/sync/log")
        rows = states.where("action = 'halt'").select("source", "detail").collect()
        return {row.source.partition(".")[2]: row.detail for row in rows}

    def control(self, name: str) -> list[Any]:
        path = Path(self.folder, "checkpoint", "sync", name)
        if not path.exists():
            return []
        return self.spark.read.format("delta").load(str(path)).collect()

    def rows(self, table: str, server: MariaDb) -> tuple[list[Any], list[Any]]:
        """The rows of a target, and those of the server, in the types of the target."""
        frame = self.spark.read.format("delta").load(f"{self.folder}/lake/{table}")
        there = {row["Field"] for row in server.execute(f"SHOW COLUMNS FROM alt.{table}")}
        # Renamed columns stay in the target.
        fields = [field for field in frame.schema.fields if field.name in there]
        cells = ", ".join(_printed(field) for field in fields)
        truth = server.execute(f"SELECT {cells} FROM alt.{table} ORDER BY id")
        expected = [tuple(_parsed(row[f.name], f.dataType) for f in fields) for row in truth]
        found = frame.orderBy("id").select(*(field.name for field in fields)).collect()
        return [tuple(map(_comparable, row)) for row in found], expected


def _printed(field: StructField) -> str:
    name, type_ = f"`{field.name}`", field.dataType
    if isinstance(type_, BinaryType):
        name = f"HEX({name})"
    elif isinstance(type_, FloatType | DoubleType):
        name = f"CAST({name} AS DOUBLE)"
    elif field.metadata.get("comment", "").startswith("bit"):
        name = f"{name} + 0"
    return f"{name} AS `{field.name}`"


def _comparable(value: Any) -> Any:
    if isinstance(value, bytearray | bytes):
        return value.hex().upper()
    return f"{value:.14g}" if isinstance(value, float) else value


def _parsed(text: str | None, type_: DataType) -> Any:
    if text is None or isinstance(type_, StringType | BinaryType):
        return text
    kind = type_.typeName()
    parse: Callable[[str], Any] = {
        "decimal": Decimal,
        "date": date.fromisoformat,
        "timestamp_ntz": datetime.fromisoformat,
        "timestamp": datetime.fromisoformat,
        "double": lambda each: f"{float(each):.14g}",
        "float": lambda each: f"{float(each):.14g}",
    }.get(kind, int)
    return bool(int(text)) if isinstance(type_, BooleanType) else parse(text)


def test_target_equals_the_servers_table(
    lake: Lake, mariadb: MariaDb, debezium: Callable[..., Connector]
) -> None:
    mariadb.execute("CREATE DATABASE alt")
    connector = debezium(
        mariadb,
        "alt",
        **ONE_TOPIC,
        **{
            "transforms.one.regex": r"alt(\.alt\..*)?",
            "database.include.list": "alt,cdcfmt_marks",
        },
    )
    # Tables whose targets exist before the statement, and those that its batch makes.
    followed = {
        "same_before": (SAME, "loose"),
        "same_here": (SAME, "strict"),
        "converted_before": (CONVERTED, "loose"),
        "converted_here": (CONVERTED, "loose"),
        "converted_strict_before": (CONVERTED, "strict"),
    }
    for name, (kinds, mode) in followed.items():
        if name.endswith("before"):
            fill(mariadb, name, kinds, mode)
    mariadb.execute(
        "USE alt",
        "CREATE TABLE added (id INT PRIMARY KEY)",
        "INSERT INTO added VALUES (1)",
        "CREATE TABLE named (id INT PRIMARY KEY, price DECIMAL(12,4), name VARCHAR(20), n INT)",
        "INSERT INTO named VALUES (1, 1.2350, 'abc   ', 7), (2, -1.2350, '漢字xyz', NULL)",
    )
    connector.catch_up()
    lake.run()
    add_columns(mariadb)
    for name, (kinds, mode) in followed.items():
        if name.endswith("here"):
            fill(mariadb, name, kinds, mode)
        mariadb.execute("USE alt", MODES[mode], alter(name, kinds))
        more = inserts(name, kinds, more=mode == "loose", begin=1000, verb="INSERT IGNORE")
        mariadb.execute("USE alt", MODES[mode], *more)
    halting = {f"halt{number}": kind for number, kind in enumerate(HALTED)}
    for name, kind in halting.items():
        fill(mariadb, name, [kind], "loose")
        mariadb.execute("USE alt", LOOSE, alter(name, [kind]))
    unfilled = {f"unfilled{number}": text for number, text in enumerate(UNKNOWN_DEFAULTS)}
    for name, text in unfilled.items():
        mariadb.execute(
            "USE alt",
            f"CREATE TABLE {name} (id INT PRIMARY KEY)",
            f"INSERT INTO {name} VALUES (1)",
            f"ALTER TABLE {name} ADD c {text}",
            f"INSERT INTO {name} (id) VALUES (2)",
        )
    connector.catch_up()
    lake.run()
    halted = lake.halted()
    assert {name: halted[name] for name in followed if name in halted} == {}
    others = {}
    for name, kind in halting.items():
        if f"c0 {kind.new}: c0: {kind.old} to {kind.new}" not in halted.get(name, ""):
            others[name] = kind, halted.get(name)
    assert others == {}
    reasons = {name: halted.get(name, "") for name in unfilled}
    assert {name: why for name, why in reasons.items() if ": c: the text of its" not in why} == {}
    assert lake.control("dead_letters") == []
    wrong = {}
    for name, (kinds, _) in followed.items():
        found, expected = lake.rows(name, mariadb)
        assert [row[0] for row in found] == [row[0] for row in expected]
        for at, kind in enumerate(kinds, 1):
            pairs = zip(found, expected, strict=True)
            if different := [(a[at], b[at]) for a, b in pairs if a[at] != b[at]]:
                wrong[name, kind.old, kind.new] = different
    assert wrong == {}
    found, expected = lake.rows("named", mariadb)
    assert (len(found), found) == (3, expected)
    found, expected = lake.rows("added", mariadb)
    columns = ["id", *(text for _, text in ADDED), "renamed INT", "changed BIGINT", "again INT"]
    for row, wanted in zip(found, expected, strict=True):
        assert dict(zip(columns, row, strict=True)) == dict(zip(columns, wanted, strict=True))


ADDED = [(f"c{number}", text) for number, text in enumerate(DEFAULTS)]


def add_columns(server: MariaDb) -> None:
    """Columns that no row has before other statements rename or change them."""
    server.execute(
        "USE alt",
        LOOSE,
        "ALTER TABLE added " + ", ".join(f"ADD {name} {text}" for name, text in ADDED),
        "ALTER TABLE added ADD before_it INT DEFAULT 42, ADD other INT DEFAULT 43",
        "ALTER TABLE added RENAME COLUMN before_it TO renamed",
        "ALTER TABLE added CHANGE other changed BIGINT",
        "ALTER TABLE added ADD again INT DEFAULT 44",
        "ALTER TABLE added DROP again",
        "ALTER TABLE added ADD again INT DEFAULT 45",
        "ALTER TABLE added MODIFY changed BIGINT DEFAULT 46",
        "INSERT INTO added (id) VALUES (2)",
        "ALTER TABLE named CHANGE price cost DECIMAL(10,2), CHANGE name label VARCHAR(4), "
        "CHANGE n m BIGINT NOT NULL",
        "INSERT INTO named VALUES (3, 1.5, 'abcd', 8)",
    )


def fill(server: MariaDb, table: str, kinds: Sequence[Kind], mode: str) -> None:
    server.execute(
        "USE alt",
        MODES[mode],
        create(table, kinds),
        *inserts(table, kinds, more=mode == "loose", begin=0),
    )
