"""Finding the source, its options, files and modes, and SQL."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from support.canal_messages import DELETE, INSERT, UPDATE, row_message, write_lines

import pyspark_cdcfmt
from cdcfmt_core.errors import CdcfmtError, OptionError
from pyspark_cdcfmt.options import parse_options


@pytest.fixture
def orders(tmp_path: Path) -> str:
    return write_lines(tmp_path / "orders.json", INSERT, UPDATE, DELETE)


def ids(spark: SparkSession, *paths: str, **options: str) -> list[int]:
    """The ids of all inserts, sorted."""
    reader = spark.read.format("cdc").option("table", "shop.orders").options(**options)
    frame = reader.schema("id int, _change_type string").load(list(paths))
    return sorted(row[0] for row in frame.where("_change_type = 'insert'").collect())


def inserts(count: int, start: int = 0) -> list[dict[str, object]]:
    return [row_message("INSERT", {"id": str(i)}) for i in range(start, start + count)]


def test_import_is_light() -> None:
    code = (
        "import sys, pyspark_cdcfmt; heavy = ('pyarrow', 'fsspec', 'pluggy', 'cdcfmt_canal_json'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert output.stdout.strip() == "[]"


@pytest.mark.smoke
def test_registering_by_hand(spark: SparkSession, orders: str) -> None:
    pyspark_cdcfmt.register(spark)
    assert spark.read.format("cdc").load(orders).count() == 3
    assert spark.read.format("cdcfmt").load(orders).count() == 3


@pytest.mark.smoke
def test_sql(spark: SparkSession, orders: str) -> None:
    spark.sql(
        "CREATE TEMPORARY VIEW typed_orders USING cdc "
        f"OPTIONS (path '{orders}', table 'shop.orders')"
    )
    counted = spark.sql(
        "SELECT _change_type, count(*) FROM typed_orders GROUP BY ALL ORDER BY ALL"
    ).collect()
    assert counted == [
        ("delete", 1), ("insert", 1), ("update_postimage", 1), ("update_preimage", 1)
    ]  # fmt: skip
    for options in ("", f"OPTIONS (path '{orders}')", f"LOCATION '{orders}'"):
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
            spark.sql(f"CREATE TABLE refused USING cdc {options}")
    assert not spark.catalog.tableExists("refused")
    columns = spark.read.format("cdc").load(orders).schema.toDDL()
    spark.sql(f"CREATE TABLE catalogued ({columns}) USING cdc")
    try:
        with pytest.raises(PySparkException, match="CREATE TEMPORARY VIEW"):
            spark.sql("SELECT count(*) FROM catalogued").collect()
        assert spark.sql(f"SELECT count(*) FROM catalogued WITH (path '{orders}')").collect() == [
            (3,)
        ]
        copy = f"path '{orders}-copy', protocol 'canal-json'"
        spark.read.format("cdc").load(orders).createOrReplaceTempView("all_events")
        spark.sql(f"INSERT INTO catalogued WITH ({copy}) SELECT * FROM all_events LIMIT 0")
        assert ids(spark, f"{orders}-copy") == []
        with pytest.raises(PySparkException, match=r"INSERT INTO t WITH \(path"):
            spark.sql(f"CREATE TABLE copied USING cdc OPTIONS ({copy}) AS SELECT 'row' AS kind")
    finally:
        spark.sql("DROP TABLE catalogued")


def test_unknown_options_name_the_nearest(spark: SparkSession, orders: str) -> None:
    with pytest.raises(PySparkException, match="did you mean sourceTimeZone"):
        spark.read.format("cdc").option("sourceTimezne", "UTC").load(orders)
    with pytest.raises(OptionError, match="'inferschema': columns of a table are inferred"):
        parse_options({"path": orders, "inferschema": "true"})
    with pytest.raises(PySparkException, match="option mode: 'STRICT' is not one of PERMISSIVE"):
        spark.read.format("cdc").option("mode", "STRICT").load(orders)
    with pytest.raises(PySparkException, match="needs one of the options subscribe"):
        spark.read.format("cdc").option("kafka.bootstrap.servers", "x").load()
    with pytest.raises(PySparkException, match="has both a path and options of Kafka"):
        spark.read.format("cdc").option("kafka.bootstrap.servers", "x").load(orders)
    with pytest.raises(PySparkException, match="startingOffsets is for Kafka"):
        spark.read.format("cdc").option("startingOffsets", "latest").load(orders)
    with pytest.raises(PySparkException, match="unknown format 'maxwell'; installed: canal-json"):
        spark.read.format("cdc").option("protocol", "maxwell").load(orders)
    with pytest.raises(PySparkException, match="leave the option table out"):
        spark.read.format("cdc").option("table", "a.b").option("images", "none").load(orders)
    kafka = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "a"}
    with pytest.raises(OptionError, match="maxBytesPerTrigger is for files"):
        parse_options({**kafka, "maxBytesPerTrigger": "1m"})
    with pytest.raises(OptionError, match="subscribePattern is not for RabbitMQ"):
        parse_options({"rabbitmq.hosts": "127.0.0.1:1", "subscribePattern": "a.*"})


def test_options_never_show_secrets(spark: SparkSession, orders: str) -> None:
    with pytest.raises(PySparkException, match="storageOptions") as caught:
        spark.read.format("cdc").option("storageOptions", "s3cr3t").load(orders).count()
    assert "s3cr3t" not in str(caught.value)
    # docs/security.md: otherwise Spark's plan of a stream shows it.
    spark.conf.set("spark.sql.redaction.options.regex", "(?i)url|storageOptions|[.]pem")
    try:
        options = {"storageOptions": '{"account_key": "s3cr3t"}'}
        stream = spark.readStream.format("cdc").options(**options).load(orders)
        plan = stream._jdf.queryExecution().toString()
    finally:
        spark.conf.unset("spark.sql.redaction.options.regex")
    assert "storageOptions=***" in plan
    assert "s3cr3t" not in plan


def test_missing_and_empty_paths(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="no path and no topic"):
        spark.read.format("cdc").load()
    missing = [str(tmp_path), str(tmp_path / "nowhere")]
    with pytest.raises(PySparkException, match=r"does not exist: /.*nowhere"):
        spark.read.format("cdc").load(missing)
    with pytest.raises(PySparkException, match=r"does not exist: nowhere, relative to /"):
        spark.read.format("cdc").load("nowhere")
    # Spark opens the source of a declared schema only in a query.
    frame = spark.read.format("cdc").schema("kind string").load(missing)
    with pytest.raises(PySparkException, match=r"does not exist.*nowhere"):
        frame.count()
    (tmp_path / "empty").mkdir()
    assert spark.read.format("cdc").load(str(tmp_path / "empty")).collect() == []
    with pytest.raises(PySparkException, match="no messages at all"):
        spark.read.format("cdc").option("table", "a.b").load(str(tmp_path / "empty"))
    frame = spark.read.format("cdc").option("table", "a.b").schema("id int")
    assert frame.load(str(tmp_path / "empty")).collect() == []


def test_many_files_of_many_kinds(spark: SparkSession, tmp_path: Path) -> None:
    dump = tmp_path / "dump" / "2026" / "11"
    dump.mkdir(parents=True)
    write_lines(dump / "a.json", *inserts(3))
    data = b"\r\n".join(json.dumps(m).encode() for m in inserts(3, 3))
    (dump / "b.json.gz").write_bytes(gzip.compress(data))
    data = b"\n".join(json.dumps(m).encode() for m in inserts(3, 6))
    (dump / "c.json.zst").write_bytes(zstandard.compress(data))
    wrapped = [
        json.dumps(
            {
                "key": base64.b64encode(b"k").decode(),
                "value": base64.b64encode(json.dumps(m).encode()).decode(),
                "topic": "orders",
                "partition": 2,
                "offset": 40 + i,
                "timestamp": "2026-01-01T08:00:00.000+08:00",
                "timestampType": 0,
            }
        ).encode()
        for i, m in enumerate(inserts(3, 9))
    ]
    (tmp_path / "dump" / "d.jsonl").write_bytes(b"\n".join(wrapped))
    (tmp_path / "dump" / "_SUCCESS").write_bytes(b"not a message")
    root = str(tmp_path / "dump")
    assert ids(spark, root) == list(range(12))
    assert ids(spark, root, pathGlobFilter="*.json") == [0, 1, 2]
    assert ids(spark, f"{root}/2026/*/[ab].json*", f"{root}/d.jsonl") == [*range(6), 9, 10, 11]
    (row,) = (
        spark.read.format("cdc").load(root).where("_source.offset = 41").select("_source").collect()
    )
    assert row[0].topic == "orders"
    assert row[0].partition == 2
    assert str(row[0].timestamp) == "2026-01-01 00:00:00"


def test_a_large_file_is_split_at_lines(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "large.json", *inserts(500))
    frame = spark.read.format("cdc").option("maxPartitionBytes", "16k").load(path)
    assert frame.rdd.getNumPartitions() > 5
    assert ids(spark, path, maxPartitionBytes="16k") == list(range(500))
    assert ids(spark, path, minPartitions="3", maxPartitionBytes="7k") == list(range(500))


BAD_ROW = row_message("INSERT", [{"id": "7"}, {"id": "seven"}, {"id": "8"}])


@pytest.mark.smoke
def test_modes(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.json", INSERT, b'{"id":0,"data":', BAD_ROW)
    frame = spark.read.format("cdc").load(path)
    rows = frame.orderBy("_source.offset", "_source.index").collect()
    assert [r.kind for r in rows] == ["row", "corrupt", "row", "corrupt", "row"]
    reason = rows[3]._corrupt_record.reason
    for part in ("canal-json", path, "offset", "data[1].id", "'seven'"):
        assert part in reason
    assert rows[3]._corrupt_record.value == json.dumps(BAD_ROW).encode()
    assert spark.read.format("cdc").option("mode", "dropmalformed").load(path).count() == 3
    failfast = spark.read.format("cdc").option("mode", "FAILFAST").option("protocol", "canal-json")
    truncated = r"canal-json file .*bad\.json, offset \d+: JSON ends at byte 15"
    with pytest.raises(PySparkException, match=truncated):
        failfast.load(path).collect()


def test_unrecognised_lines(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "what.json", b'{"what": {}}', INSERT)
    rows = spark.read.format("cdc").load(path).orderBy("_source.offset").collect()
    assert "no installed format recognises this message" in rows[0]._corrupt_record.reason
    assert "installed: canal-json" in rows[0]._corrupt_record.reason
    assert rows[1].kind == "row"


def test_a_line_beyond_the_limit_is_one_bad_row(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "long.json", INSERT, b'{"x":"' + b"y" * 5000 + b'"}', DELETE)
    frame = spark.read.format("cdc").option("maxMessageBytes", "4k").load(path)
    rows = frame.orderBy("_source.offset").collect()
    assert [r.kind for r in rows] == ["row", "corrupt", "row"]
    assert "maxMessageBytes" in rows[1]._corrupt_record.reason


def test_other_filesystems_and_separators(spark: SparkSession, tmp_path: Path) -> None:
    lines = b"|".join(json.dumps(m).encode() for m in inserts(4))
    (tmp_path / "piped.json").write_bytes(lines)
    assert ids(spark, f"file://{tmp_path}/piped.json", lineSep="|") == [0, 1, 2, 3]


def test_limit_closes_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "limit.json", *inserts(200))
    assert len(spark.read.format("cdc").load(path).limit(5).collect()) == 5


def test_printed_options_hide_secrets() -> None:
    files = parse_options({"path": "x", "storageoptions": '{"secret": "s3cr3t"}'})
    topic = {"kafka.bootstrap.servers": "a:1", "subscribe": "t", "kafka.sasl.password": "s3cr3t"}
    topics = parse_options(topic)
    assert files["storageOptions"]
    assert "s3cr3t" not in f"{files!r} {files} {topics!r} {topics}"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"table": "a.b", "excludeTables": "a.*"}, "exclude table a.b"),
        ({"startingCommitTs": "5", "endingCommitTs": "4"}, "4 is before startingCommitTs, 5"),
        ({"startingSourceTime": "1 h ago", "endingSourceTime": "2h ago"}, "is not after starting"),
        ({"startingSourceTime": "5"}, "option startingSourceTime: '5' is not a time such as"),
        ({"typeMap": "mysqll"}, "unknown type map 'mysqll'"),
        ({"maxFileAge": "99999999999d"}, "option maxFileAge: '99999999999d' is not a duration"),
        ({"table": "a.b", "includeHeaders": "true"}, "includeHeaders is for events"),
        ({"table": "a.b", "imageFormat": "json"}, "imageFormat is for events"),
        ({"includeSource": "true"}, "includeSource is for the changes of a table"),
        ({"mode": "FAILFAST", "MODE": "PERMISSIVE"}, "options mode and MODE are the same"),
    ],
)
def test_contradictory_or_ineffective_options(given: dict[str, str], error: str) -> None:
    with pytest.raises(CdcfmtError, match=error):
        parse_options({"path": "x", **given})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bootstrap.servers", "as in kafka.bootstrap.servers"),
        ("header", "messages are lines of JSON, or binary, and not CSV"),
        ("readChangeFeed", "set table to read those of one table as rows"),
        ("modifiedAfter", "select events by startingSourceTime and endingSourceTime"),
    ],
)
def test_hints_are_in_the_spelling_of_spark(name: str, hint: str) -> None:
    with pytest.raises(OptionError, match=re.escape(hint)):
        parse_options({"path": "x", name: "y"})


def test_a_stream_takes_no_time_that_moves() -> None:
    options = parse_options({"path": "x", "startingsourcetime": "10 Minutes ago"})
    with pytest.raises(CdcfmtError, match=r"startingSourceTime: '10 Minutes ago' .*: set 20\d\d-"):
        options.in_stream()
    parse_options({"path": "x", "startingsourcetime": "2024-01-31"}).in_stream()


def test_defaults_may_be_given_in_either_shape() -> None:
    parse_options({"path": "x", "table": "a.b", "includeHeaders": "false"})
    parse_options({"path": "x", "metadataPrefix": "_", "onTruncate": "row"})
