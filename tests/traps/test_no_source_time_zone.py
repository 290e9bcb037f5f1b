"""TIMESTAMP columns over a wire without time zones, read without `sourceTimeZone`.

Canal prints them in the zone of its source. The user left the option out, and every instant was
eight hours off; the one warning stood in the log of an executor.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import (
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)
from support.golden_data import native_messages

from cdcfmt_core import texts
from cdcfmt_files.sources import wrap_line
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.testing import parsed, read

MARK = StructType().add("_change_type", StringType())
SCHEMA = StructType([*MARK, StructField("id", LongType()), StructField("c_ts", TimestampType())])
SAID = r"shop\.wide: the messages have no time zone for .*c_ts\b.*.*sourceTimeZone"


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
    for planned, schema in ((source(topic), SCHEMA), (inferred, found), (source(topic), SCHEMA)):
        assert isinstance(schema, StructType)
        with pytest.warns(UserWarning, match=SAID) as caught:
            planned.reader(schema).partitions()
        assert len(caught) == 1


def test_a_stream_warns_once(topic: Path) -> None:
    reader: Any = source(topic).streamReader(SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.warns(UserWarning, match=SAID):
        reader.partitions(start, end)
    # Once is enough: a warning here would fail the test.
    reader.partitions(start, end)


def warnings_of(topic: Path, schema: StructType, **options: str) -> list[str]:
    given = {"path": str(topic), "protocol": "canal-json", **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CdcDataSource(given).reader(schema).partitions()
    return [str(warning.message) for warning in caught]


def test_a_string_is_an_instant_too(topic: Path) -> None:
    for type_ in (StringType(), VariantType()):
        (warning,) = warnings_of(
            topic, StructType([*MARK, StructField("C_TS", type_)]), table="shop.wide"
        )
        assert re.search(SAID, warning)


def test_wall_clock_declared_as_instant(topic: Path) -> None:
    schema = StructType([*MARK, StructField("c_dt", TimestampType())])
    (warning,) = warnings_of(topic, schema, table="shop.wide")
    assert "shop.wide: DATETIME columns (c_dt) are declared TIMESTAMP" in warning
    assert "set sourceTimeZone to the source's zone, or declare them TIMESTAMP_NTZ" in warning
    assert warnings_of(topic, schema, table="shop.wide", sourceTimeZone="UTC") == []


def test_events_warn_on_the_driver(topic: Path) -> None:
    schema = events_schema(parsed({"path": str(topic)}))
    (warning,) = warnings_of(topic, schema)
    assert re.search(SAID, warning)
    assert warnings_of(topic, schema, sourceTimeZone="Asia/Shanghai") == []
    assert warnings_of(topic, schema, excludeTables="shop.wide") == []
    assert warnings_of(topic, StructType().add("kind", StringType())) == []
    reader: Any = CdcDataSource({"path": str(topic), "protocol": "canal-json"}).streamReader(schema)
    start = reader.initialOffset()
    with pytest.warns(UserWarning, match=SAID):
        reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))


def test_a_task_notes_the_columns_that_are_read(
    topic: Path, caplog: pytest.LogCaptureFixture
) -> None:
    messages = list(native_messages("canal/canal_flat"))
    options = parsed({"protocol": "canal-json", "table": "shop.wide", "onTruncate": "ignore"})
    for name, type_, noted in (
        ("c_dt", TimestampNTZType(), 0),
        ("c_ts", TimestampNTZType(), 0),
        ("c_ts", StringType(), 1),
    ):
        texts.warn_zoneless.cache_clear()
        caplog.clear()
        assert read(
            messages, StructType().add(name, type_), options, by_kernel=True, inferred=False
        )
        lines = [record for record in caplog.records if "time zone" in record.getMessage()]
        assert len(lines) == noted, name


def test_a_warning_is_one_plain_line() -> None:
    """Neither module nor line of the user's program are known to the process that plans."""
    code = "from pyspark_cdcfmt.read.checks import warn; warn('shop.wide: so'); warn('again')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "UserWarning: cdc: shop.wide: so\nUserWarning: cdc: again\n"


def test_no_warning_without_cause(topic: Path) -> None:
    without = StructType([*MARK, StructField("c_ts", TimestampNTZType())])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source(topic, sourceTimeZone="Asia/Shanghai").reader(SCHEMA).partitions()
        source(topic).reader(without).partitions()
