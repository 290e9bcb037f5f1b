"""ADD COLUMN at the source, while the user's schema stayed as it was.

The schema is a projection, and the new column is left out. Nothing said so.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_data import native_messages
from pyspark.sql.types import LongType, StringType, StructField, StructType

from cdcfmt_core.sources import wrap_line
from pyspark_cdcfmt.engine import Engine
from pyspark_cdcfmt.source import CdcDataSource
from pyspark_cdcfmt.testing import parsed

# Of shop.pair in Canal's golden messages: then come extra, and last, which becomes renamed.
NAMES = {"a": LongType(), "b": StringType(), "v": StringType(), "n": LongType()}
SCHEMA = StructType([StructField(name, type_) for name, type_ in NAMES.items()])
OPTIONS = {"protocol": "canal-json", "table": "shop.pair"}


def test_a_batch_warns_on_the_driver(tmp_path: Path) -> None:
    lines = [wrap_line(message) + b"\n" for message in native_messages("canal/canal_flat")]
    path = tmp_path / "topic.jsonl"
    path.write_bytes(b"".join(lines))
    reader = CdcDataSource(OPTIONS | {"path": str(path)}).reader(SCHEMA)
    said = r"shop\.pair: .*gained columns.*left out: extra, last, renamed;"
    with pytest.warns(UserWarning, match=said):
        reader.partitions()


@pytest.mark.parametrize("by_kernel", [False, True])
def test_a_task_counts_each_column_once(by_kernel: bool) -> None:
    engine = Engine(SCHEMA, parsed(OPTIONS), inferred=False, by_kernel=by_kernel)
    rows = sum(batch.num_rows for batch in engine.batches(native_messages("canal/canal_flat")))
    assert rows > 60
    said = {text: count for text, count in engine.counts.items() if "gained" in text}
    assert said == {
        f"{name}: column that the table gained, left out": 1
        for name in ("extra", "last", "renamed")
    }
