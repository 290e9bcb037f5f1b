"""Changes without a commit_ts in several files.

`_sequence` goes by the offset in each file there: an update in the second file had a smaller one
than the insert in the first, and a merge left it out.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructType
from support.canal_messages import INSERT, row_message, write_lines

from pyspark_cdcfmt import SEQUENCE
from pyspark_cdcfmt.source import CdcDataSource

MARKED = StructType().add("_change_type", StringType())
SCHEMA = StructType([*MARKED]).add("_sequence", SEQUENCE)
SAID = r"shop\.orders: the messages have no commit_ts, so _sequence goes by the byte offset in each"


def alibaba(type_: str, number: int) -> dict[str, Any]:
    return row_message(type_, {"id": str(number)}, commit_ts=None) | {"sqlType": {"id": 4}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(tmp_path / "f1.json", *(alibaba("INSERT", number) for number in range(5)))
    write_lines(tmp_path / "f2.json", alibaba("UPDATE", 4), alibaba("DELETE", 3))
    return tmp_path


def warnings_of(path: Path, schema: StructType = SCHEMA, **options: str) -> list[str]:
    given = {"path": str(path), "table": "shop.orders", "dialect": "canal", **options}
    given["protocol"] = "canal-json"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CdcDataSource(given).reader(schema).partitions()
    return [str(warning.message) for warning in caught]


def test_several_files_have_no_order(folder: Path) -> None:
    import re

    (warning,) = warnings_of(folder)
    assert re.search(SAID, warning)
    assert warnings_of(folder, MARKED) == []
    assert warnings_of(folder / "f1.json") == []
    (warning,) = warnings_of(
        folder,
        StructType().add("m_change_type", StringType()).add("m_sequence", SEQUENCE),
        metadataPrefix="m_",
    )
    assert "so m_sequence goes by" in warning


def test_a_stream_gets_more_files(folder: Path) -> None:
    (folder / "f2.json").unlink()
    given = {"path": str(folder), "table": "shop.orders", "protocol": "canal-json"}
    reader: Any = CdcDataSource(given | {"dialect": "canal"}).streamReader(SCHEMA)
    start = reader.initialOffset()
    with pytest.warns(UserWarning, match=SAID):
        reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))


def test_a_commit_ts_orders_all_files(tmp_path: Path) -> None:
    for name in ("f1.json", "f2.json"):
        write_lines(tmp_path / name, INSERT)
    assert warnings_of(tmp_path, dialect="auto") == []
