"""Spark writes Avro to a real broker, with a real schema registry and one that fails."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from support.apicurio import Apicurio
from support.golden_data import load_variant
from support.kafka_broker import Broker
from support.schema_registry import OfflineRegistry, offline_registry

from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt import decode, encode

ZONE = {"sourceTimeZone": "Asia/Shanghai"}
STRATEGIES = {
    f"schema.registry.{part}.subject.name.strategy": "TopicRecordNameStrategy"
    for part in ("key", "value")
}
AVRO = {"protocol": "debezium", "encodingFormat": "avro", "enableTidbExtension": True}
SHOWN = ["op", "database", "table", "commit_ts", "to_json(before) b", "to_json(after) a"]
TSO = 450_000_000_000_000_000


@pytest.fixture
def server() -> Iterator[OfflineRegistry]:
    with offline_registry() as found:
        yield found


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    folder = tmp_path_factory.mktemp("events")
    messages = load_variant("canal-json", "tidb-extension").messages
    (folder / "a.jsonl").write_bytes(b"\n".join(wrap_line(each.message) for each in messages))
    read = spark.read.format("cdc").options(includeColumns=True, **ZONE).load(str(folder))
    # Types and names that are written otherwise have tests of their own.
    return read.where("kind = 'row' AND table IN ('txn_a', 'txn_b')")


def to_topic(
    df: DataFrame,
    kafka: Broker,
    topic: str,
    url: str,
    form: Mapping[str, Any] = AVRO,
    **options: Any,
) -> None:
    given = {
        **form,
        **ZONE,
        "kafka.bootstrap.servers": kafka.servers,
        "topic": topic,
        "schema.registry.url": url,
        "schema.registry.max.retries": 0,
        **options,
    }
    df.write.format("cdc").mode("append").options(**given).save()


def in_topic(spark: SparkSession, kafka: Broker, topic: str, url: str) -> DataFrame:
    given = {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic, **ZONE}
    given["schema.registry.url"] = url
    return spark.read.format("cdc").options(**given).load()


def changes(spark: SparkSession, columns: str, *rows: tuple[Any, ...]) -> DataFrame:
    """Inserted rows of a table with these columns."""
    return spark.createDataFrame(
        [("insert", TSO + number, *row) for number, row in enumerate(rows)],
        f"_change_type string, _commit_version long, {columns}",
    )


OF_TABLE = {"table": "shop.orders", "keyColumns": "id"}


FORMATS = {
    "debezium": AVRO,
    "ticdc-avro": {
        "protocol": "ticdc-avro",
        "enableTidbExtension": True,
        "avroIncludeBeforeValue": True,
    },
}


@pytest.mark.parametrize("protocol", FORMATS)
def test_events_of_several_tables(
    spark: SparkSession, kafka: Broker, apicurio: Apicurio, events: DataFrame, protocol: str
) -> None:
    topic = kafka.create_topic(f"avro-{protocol}", 3)
    to_topic(events, kafka, topic, apicurio.url, FORMATS[protocol], **STRATEGIES)
    found = in_topic(spark, kafka, topic, apicurio.url)
    assert found.where("kind <> 'row'").count() == 0
    rows = sorted(events.selectExpr(*SHOWN).collect())
    assert len(rows) > 20
    assert sorted(found.selectExpr(*SHOWN).collect()) == rows
    subjects = apicurio.request("GET", "/apis/ccompat/v7/subjects")
    records = {each.rpartition(".")[2] for each in subjects if each.startswith(f"{topic}-")}
    tables = [row.table for row in events.select("table").distinct().collect()]
    ends = ("Key", "Envelope") if protocol == "debezium" else ("",)
    assert records == {table + end for table in tables for end in ends}


def test_a_table_is_registered_once_by_the_driver(
    spark: SparkSession, kafka: Broker, server: OfflineRegistry
) -> None:
    topic = kafka.create_topic("avro-table", 2)
    rows = changes(spark, "id int, name string", *((number, "x") for number in range(40)))
    to_topic(rows.repartition(8), kafka, topic, server.url, **OF_TABLE, ordered=False)
    assert sorted(server.subjects) == [f"{topic}-key", f"{topic}-value"]
    assert len([each for each in server.requests if "/subjects/" in each]) == 2
    found = in_topic(spark, kafka, topic, server.url)
    assert sorted(row.id for row in found.selectExpr("after:id::int id").collect()) == [*range(40)]


def test_events_are_registered_once_per_process(
    spark: SparkSession, kafka: Broker, server: OfflineRegistry, events: DataFrame
) -> None:
    topic = kafka.create_topic("avro-processes", 2)
    some = events.where("table = 'txn_a'")
    to_topic(some.repartition(8), kafka, topic, server.url, ordered=False)
    asked = [each for each in server.requests if "/subjects/" in each]
    assert some.count() > 16
    # Spark has two workers; each may be a new one.
    assert len(asked) <= 2 * 4


def test_an_incompatible_schema_is_an_error_before_the_first_byte(
    spark: SparkSession, kafka: Broker, apicurio: Apicurio
) -> None:
    topic = kafka.create_topic("avro-strict", 1)
    to_topic(
        changes(spark, "id int, name string", (1, "x")), kafka, topic, apicurio.url, **OF_TABLE
    )
    config = f"/apis/ccompat/v7/config/{topic}-value"
    apicurio.request("PUT", config, {"compatibility": "BACKWARD"})
    other = changes(spark, "id int, name int", (2, 3))
    with pytest.raises(
        Exception,
        match=rf"schema registry {apicurio.url}, subject {topic}-value: the schema is incompatible "
        r"with an earlier version, and no row with it was written: change the table",
    ):
        to_topic(other, kafka, topic, apicurio.url, **OF_TABLE)
    # A new column may be null.
    more = changes(spark, "id int, name string, added string", (4, "x", "y"))
    to_topic(more, kafka, topic, apicurio.url, **OF_TABLE)
    found = in_topic(spark, kafka, topic, apicurio.url).selectExpr("to_json(after) a").collect()
    assert [json.loads(row.a) for row in found] == [
        {"id": 1, "name": "x"},
        {"id": 4, "name": "x", "added": "y"},
    ]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (503, r"does not answer \(HTTP 503.*start the write again"),
        (401, r"refuses the login \(HTTP 401\): check schema\.registry\.basic"),
    ],
)
@pytest.mark.parametrize("kind", ["events", "changes"])
def test_a_registry_that_fails(
    spark: SparkSession,
    kafka: Broker,
    server: OfflineRegistry,
    events: DataFrame,
    status: int,
    text: str,
    kind: str,
) -> None:
    topic = kafka.create_topic(f"avro-fails-{status}-{kind}", 1)
    server.status = status
    df, more = events.where("table = 'txn_a'").coalesce(1), {}
    if kind == "changes":
        df, more = changes(spark, "id int", (1,)), OF_TABLE
    with pytest.raises(Exception, match=text):
        to_topic(df, kafka, topic, server.url, **more)
    server.status = None
    assert in_topic(spark, kafka, topic, server.url).count() == 0


def test_messages_in_a_dataframe(
    spark: SparkSession, server: OfflineRegistry, events: DataFrame
) -> None:
    address = {"schema.registry.url": server.url}
    messages = encode(events.coalesce(1), topic="shop", **AVRO, **ZONE, **STRATEGIES, **address)
    read = decode(messages, protocol="debezium", **ZONE, **address)
    assert sorted(read.selectExpr(*SHOWN).collect()) == sorted(events.selectExpr(*SHOWN).collect())
    assert {each.partition("-")[0] for each in server.subjects} == {"shop"}


def test_a_stream_whose_table_changes(
    spark: SparkSession, kafka: Broker, apicurio: Apicurio, tmp_path: Path
) -> None:
    topic = kafka.create_topic("avro-stream", 2)
    source = tmp_path / "source"
    source.mkdir()
    columns = ({"id": "int"}, {"id": "int", "added": "varchar(20)"})
    for number, types in enumerate(columns):
        row = {"id": str(number), **({"added": "x"} if "added" in types else {})}
        line = {
            "id": 0,
            "database": "shop",
            "table": "t",
            "pkNames": ["id"],
            "isDdl": False,
            "type": "INSERT",
            "es": 1_700_000_000_000,
            "ts": 1_700_000_000_000,
            "sql": "",
            "sqlType": {name: 4 if name == "id" else 12 for name in types},
            "mysqlType": types,
            "old": None,
            "data": [row],
            "_tidb": {"commitTs": TSO + number},
        }
        (source / f"{number}.jsonl").write_text(json.dumps(line) + "\n")
    read = spark.readStream.format("cdc").options(includeColumns=True, maxFilesPerTrigger=1, **ZONE)
    given = {**AVRO, "kafka.bootstrap.servers": kafka.servers, "topic": topic, **ZONE}
    given |= {"schema.registry.url": apicurio.url, "checkpointLocation": str(tmp_path / "state")}
    query = (
        read.load(str(source))
        .writeStream.format("cdc")
        .options(**given)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = in_topic(spark, kafka, topic, apicurio.url)
    rows = [json.loads(row.a) for row in found.selectExpr("to_json(after) a").collect()]
    assert sorted(rows, key=itemgetter("id")) == [{"id": 0}, {"id": 1, "added": "x"}]
    versions = apicurio.request("GET", f"/apis/ccompat/v7/subjects/{topic}-value/versions")
    assert versions == [1, 2]
