"""Every store equals its source, however often the driver is killed."""

from __future__ import annotations

import json
import random
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any

import attrs
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, IntegerType, StructType
from support.kafka_broker import Broker
from support.killing import started
from support.sync_app import STORES, DeltaLake, read, start
from support.sync_lake import Lake, put, remove
from support.sync_source import BANKS, MONEY, Source
from support.workspace import SUPPORT

from pyspark_cdcfmt.sync.delta import DeltaTarget

APP = SUPPORT / "sync_app.py"
KILLS = 1
"""tests/soak/sync_kills.py has many more."""
TABLES = ("orders",)


@pytest.mark.parametrize(
    "stores", [("scd1", "changelog"), pytest.param(("scd2",), marks=pytest.mark.thorough)], ids=str
)
def test_killed_driver(
    kafka: Broker, delta_jars: list[str], tmp_path: Path, stores: tuple[str, ...]
) -> None:
    topic = kafka.create_topic(f"sync-killed-{stores[0]}", 2)
    dice = random.Random(20)
    source = Source(TABLES, 2, dice)
    for _ in range(KILLS):
        kafka.produce(topic, source.messages(80))
        with started(APP, tmp_path, kafka.servers, topic, "100", *stores) as app:
            app.live_on(dice, early=False, longest=10)
    with started(APP, tmp_path, kafka.servers, topic, "100", *stores) as app:
        app.end()
    check(tmp_path, source, stores)


@attrs.define
class Crash:
    """Fails after so many writes to Delta, and at all later ones, as if the driver was killed."""

    left: int
    _lock: RLock = attrs.field(factory=RLock)

    def is_over(self) -> bool:
        return self.left <= 0

    def patch(self, patch: pytest.MonkeyPatch) -> None:
        for name in ("create", "set_properties", "add_columns", "append", "merge", "run"):
            patch.setattr(DeltaTarget, name, self._crashing(getattr(DeltaTarget, name)))

    def _crashing(self, write: Callable[..., Any]) -> Callable[..., Any]:
        def crashing(*args: Any, **how: Any) -> Any:
            with self._lock:
                if self.is_over():
                    raise InterruptedError("killed")
                # The writes of several threads are one after the other.
                result = write(*args, **how)
                self.left -= 1
                if self.is_over():
                    raise InterruptedError("killed")
                return result

        return crashing


@pytest.mark.parametrize(
    "store",
    ["scd1", *(pytest.param(each, marks=pytest.mark.thorough) for each in ("scd2", "changelog"))],
)
def test_batch_failing_after_each_write(delta: SparkSession, tmp_path: Path, store: str) -> None:
    """Each attempt gets one write further; the result of the last one equals a single run."""
    source = Source(TABLES, 2, random.Random(20))
    dump = tmp_path / "dump"
    dump.mkdir()
    lines = []
    for offset, message in enumerate(source.messages(40)):
        whole = {"topic": "t", "partition": message.partition, "offset": offset}
        lines.append(whole | {"value": b64encode(message.value or b"").decode()})
    (dump / "messages.json").write_text("\n".join(map(json.dumps, lines)) + "\n")
    lake = DeltaLake(tmp_path)
    writes, is_complete = 0, False
    while not is_complete:
        writes += 1
        crash = Crash(writes)
        with pytest.MonkeyPatch.context() as patch, suppress(StreamingQueryException):
            crash.patch(patch)
            start(delta, lake, store, path=str(dump)).awaitTermination()
            is_complete = True
        assert is_complete or crash.is_over()
    assert writes > 5
    (tmp_path / "found.json").write_text(json.dumps(read(delta, lake, [store])))
    check(tmp_path, source, [store], watermarks=1)


@pytest.mark.parametrize("store", ["scd1", "changelog"])
def test_a_crash_within_create_table(delta: SparkSession, tmp_path: Path, store: str) -> None:
    """Delta's logs of the target and of control tables exist then, without a version.

    CREATE TABLE IF NOT EXISTS does nothing then, and a write makes a table without properties.
    """
    control = [f"checkpoint/sync/{name}" for name in ("tables", "log", "schemas", "tombstones")]
    for table in ("lake/shop/orders", *control):
        log = tmp_path / table / "_delta_log"
        (log / "_staged_commits").mkdir(parents=True)
        (log / ".00000000000000000000.json.9ecd36b9-b996-46f2-bcbd-0b9ee96c6d7f.tmp").touch()
    lake = Lake(delta, tmp_path, {"store": store})
    lake.run(put(1, "a", 1), put(2, "b", 2))
    lake.run(remove(2, 3), put(3, "c", 4))
    # Without its properties, the second run would not know the target.
    assert [row.detail for row in lake.control("log") if row.level == "error"] == []
    assert lake.table().count() == (2 if store == "scd1" else 4)
    odd = StructType().add("a b", IntegerType()).add("day", DateType())
    (tmp_path / "odd/_delta_log/_staged_commits").mkdir(parents=True)
    target, table = DeltaTarget(delta), f"delta.`{tmp_path}/odd`"
    target.create(table, odd, properties={"cdcfmt.x": "y"}, partition_by="day")
    assert target.schema(table) == odd
    assert target.properties(table).items() >= {
        ("cdcfmt.x", "y"),
        ("delta.columnMapping.mode", "name"),
    }


def check(
    folder: Path, source: Source, stores: Iterable[str] = STORES, *, watermarks: int = 2
) -> None:
    """Every target equals the truth: no extra, missing or duplicate row.

    :param watermarks: so many at least have a state of all targets.
    """
    found = json.loads((folder / "found.json").read_text())
    # Of a row that is missing until its next change, these may be the only traces.
    assert found["letters"] == []
    assert found["halts"] == []
    for store in stores:
        rows = [tuple(row) for row in found[store]]
        if store == "scd1":
            wanted = {(*key, name) for key, name in source.rows.items()}
            different = {"missing": wanted - {*rows}, "unwanted": {*rows} - wanted}
            assert len(rows) == len(wanted), different
            assert not any(different.values()), different
            assert check_watermarks(found["progress"]) >= watermarks
        elif store == "scd2":
            assert sorted(rows, key=str) == sorted(source.whole_history(), key=str)
        else:
            assert len(rows) == source.changes


def check_watermarks(rows: Iterable[tuple[int, str, str]]) -> int:
    """At each watermark that sync names, the two banks have all the money together.

    :returns: the number of watermarks.
    """
    sums: Counter[int] = Counter()
    banks = set()
    for watermark, table, name in rows:
        if table.removeprefix("shop.") in BANKS:
            sums[watermark] += int(name)
            banks.add((watermark, table))
    assert len(banks) == len(BANKS) * len(sums)
    assert sums == dict.fromkeys(sums, MONEY)
    return len(sums)
