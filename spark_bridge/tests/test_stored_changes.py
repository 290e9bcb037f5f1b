"""``changes(events, table)`` through Spark: typed changes out of stored events.

That every golden row is the same is spark_bridge/tests/test_changes_from_events.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from support.canal_messages import (
    DELETE,
    INSERT,
    KEY_UPDATE,
    UPDATE,
    ddl_message,
    row_message,
    watermark_message,
    write_lines,
)

from cdcfmt_core.errors import OptionError
from pyspark_cdcfmt import changes
from pyspark_cdcfmt.rows.stored_events import StoredEvents, StoredMessage

PARTIAL = row_message("INSERT", {"id": "5"}, onlyHandleKey=True)
LATER = row_message("INSERT", {"id": "7", "name": "t", "price": "2.50"}, commit_ts=None)
MESSAGES = (
    INSERT,
    UPDATE,
    KEY_UPDATE,
    DELETE,
    b"{",
    PARTIAL,
    LATER,
    row_message("INSERT", {"id": "9"}, table="customers"),
    ddl_message("truncate table orders", "TRUNCATE"),
    ddl_message("alter table orders comment ''", "ALTER"),
    watermark_message(9),
)


@pytest.fixture
def dump(tmp_path: Path) -> str:
    return write_lines(tmp_path / "dump.json", *MESSAGES)


def stored(spark: SparkSession, dump: str, folder: Path) -> DataFrame:
    """The events as a table of its own, as a bronze layer would have them."""
    events = spark.read.format("cdc").option("includeColumns", "true").load(dump)
    events.write.parquet(str(folder / "events"))
    return spark.read.parquet(str(folder / "events"))


def shown(frame: DataFrame) -> list[str]:
    return sorted(map(str, frame.collect()))


@pytest.mark.smoke
def test_the_same_rows_as_from_the_messages(spark: SparkSession, dump: str, tmp_path: Path) -> None:
    events = stored(spark, dump, tmp_path)
    cases: list[dict[str, Any]] = [
        {"onTruncate": "row", "incompleteRows": "emit"},
        {"onTruncate": "row", "incompleteRows": "emit", "images": "after", "keyColumns": "id"},
    ]
    for options in cases:
        direct = spark.read.format("cdc").options(table="shop.orders", **options).load(dump)
        again = changes(events, "shop.orders", schema=direct.schema, **options)
        assert shown(again) == shown(direct)
    given = "name string, id bigint, `m_change_type` string"
    ways = {"metadataPrefix": "m_", "mode": "DROPMALFORMED"} | cases[0]
    direct = spark.read.format("cdc").options(table="shop.orders", **ways).schema(given).load(dump)
    assert shown(changes(events, "shop.orders", schema=given, **ways)) == shown(direct)


def test_bad_rows_have_a_reason_without_the_message(
    spark: SparkSession, dump: str, tmp_path: Path
) -> None:
    events = stored(spark, dump, tmp_path)
    policies = {"onTruncate": "corrupt", "incompleteRows": "corrupt"}
    direct = spark.read.format("cdc").options(table="shop.orders", **policies).load(dump)
    reasons = "_corrupt_record.reason"
    typed = changes(events, "shop.orders", schema=direct.schema, **policies)
    bad = typed.where("_change_type is null")
    assert shown(bad.select(reasons)) == shown(direct.where("_change_type is null").select(reasons))
    values = {row.value for row in bad.select("_corrupt_record.value").collect()}
    assert values == {b"{", None}
    for mode, text in (("FAILFAST", ""), ("PERMISSIVE", "add _corrupt_record")):
        with pytest.raises(PySparkException, match=rf"dump\.json, offset.*{text}"):
            changes(
                events, "shop.orders", schema="id int, _change_type string", mode=mode, **policies
            ).collect()
    with pytest.raises(PySparkException, match=r"dump\.json, offset.*shop\.orders.*set emit"):
        changes(events, "shop.orders", schema=direct.schema).collect()


def test_json_as_text_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    types = {"doc": "json"}
    message = row_message("INSERT", {"id": "1", "doc": '{"a": [1, "b"]}'}, types=types)
    events = stored(spark, write_lines(tmp_path / "dump.json", message), tmp_path)
    (row,) = changes(
        events, "shop.orders", schema="id int, doc variant, _change_type string"
    ).collect()
    assert row.doc.toPython() == {"a": [1, "b"]}
    schema = "doc string, _change_type string, _corrupt_record struct<reason:string>"
    with pytest.raises(PySparkException, match=r"shop\.orders\.doc: .*declare the column as var"):
        changes(events, "shop.orders", schema=schema).collect()


def test_a_stream_of_events(spark: SparkSession, dump: str, tmp_path: Path) -> None:
    stored(spark, dump, tmp_path)
    path = str(tmp_path / "events")
    stream = spark.readStream.schema(spark.read.parquet(path).schema).parquet(path)
    schema = "id int, _change_type string"
    policies = {"onTruncate": "ignore", "incompleteRows": "corrupt"}
    typed = changes(stream, "shop.orders", schema=schema, mode="DROPMALFORMED", **policies)
    writer = typed.writeStream.format("memory").queryName("typed").trigger(availableNow=True)
    writer.start().awaitTermination()
    inserted = spark.table("typed").where("_change_type = 'insert'").select("id").collect()
    assert sorted(inserted) == [(1,), (5,), (7,)]


def test_options_and_columns_are_checked(spark: SparkSession, dump: str, tmp_path: Path) -> None:
    events = spark.read.format("cdc").load(dump)
    with pytest.raises(OptionError, match=r"changes has no option 'protocol'"):
        changes(events, "shop.orders", schema="id int, _change_type string", protocol="canal-json")
    with pytest.raises(OptionError, match=r"'a\.b\.c\.d' is not database\.table"):
        changes(events, "a.b.c.d", schema="id int, _change_type string")
    with pytest.raises(PySparkException, match=r"UNRESOLVED_COLUMN.*`columns`"):
        changes(events, "shop.orders", schema="id int, _change_type string").collect()


def test_unconvertible_event_is_corrupt() -> None:
    broken = {"kind": "row", "_source": {"protocol": "canal-json", "index": 3}}
    (event,) = StoredEvents(None).decode(StoredMessage(None, None, event=broken))
    assert "canal-json: the event cannot be restored: KeyError" in str(event.error)  # type: ignore[union-attr]
    assert event.index == 3
