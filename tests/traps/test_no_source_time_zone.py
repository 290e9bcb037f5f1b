"""TIMESTAMP columns over a wire without time zones, read without `sourceTimeZone`.

Canal prints them in the zone of its source. The user left the option out, and every instant was
eight hours off; the one warning stood in the log of an executor.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from golden_data import native_messages
from pyspark.sql.types import (
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from cdcfmt_core.sources import wrap_line
from pyspark_cdcfmt.source import CdcDataSource

SCHEMA = StructType([StructField("id", LongType()), StructField("c_ts", TimestampType())])
SAID = r"shop\.wide: the messages do not tell the time zone of .*c_ts\b.*.*sourceTimeZone"


@pytest.fixture(scope="module")
def topic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("topic")
    lines = [wrap_line(message) + b"\n" for message in native_messages("canal/canal_flat")]
    (folder / "topic.jsonl").write_bytes(b"".join(lines))
    return folder


def source(topic: Path, **options: str) -> CdcDataSource:
    given = {"path": str(topic), "protocol": "canal-json", "table": "shop.wide"}
    return CdcDataSource(given | options)


def test_each_batch_warns_on_the_driver(topic: Path) -> None:
    inferred = source(topic)
    found = inferred.schema()
    for read, schema in ((source(topic), SCHEMA), (inferred, found), (source(topic), SCHEMA)):
        assert isinstance(schema, StructType)
        with pytest.warns(UserWarning, match=SAID) as caught:
            read.reader(schema).partitions()
        assert len(caught) == 1


def test_a_stream_warns_once(topic: Path) -> None:
    reader: Any = source(topic).streamReader(SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.warns(UserWarning, match=SAID):
        reader.partitions(start, end)
    # Once is enough: a warning here would fail the test.
    reader.partitions(start, end)


def test_nothing_is_said_where_nothing_is_amiss(topic: Path) -> None:
    without = StructType([StructField("id", LongType()), StructField("c_ts", StringType())])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source(topic, sourceTimeZone="Asia/Shanghai").reader(SCHEMA).partitions()
        source(topic).reader(without).partitions()
