"""Every store ends equal to its source, however often the driver is killed."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.kafka_broker import Broker
from support.killing import started
from support.sync_app import STORES
from support.sync_source import BANKS, MONEY, Source
from support.workspace import SUPPORT

APP = SUPPORT / "sync_app.py"
KILLS = 1
"""tests/soak/sync_kills.py has many more."""
TABLES = ("orders",)


@pytest.mark.parametrize(
    "stores", [("scd1", "changelog"), pytest.param(("scd2",), marks=pytest.mark.soak)], ids=str
)
def test_a_driver_that_is_killed(
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


def check(folder: Path, source: Source, stores: Iterable[str] = STORES) -> None:
    """Every target equals the truth: no row more, none less, none twice."""
    found = json.loads((folder / "found.json").read_text())
    for store in stores:
        rows = [tuple(row) for row in found[store]]
        if store == "scd1":
            assert sorted(rows) == sorted((*key, name) for key, name in source.rows.items())
            check_watermarks(found["progress"])
        elif store == "scd2":
            assert sorted(rows, key=str) == sorted(source.whole_history(), key=str)
        else:
            assert len(rows) == source.changes


def check_watermarks(rows: Iterable[tuple[int, str, str]]) -> None:
    """At each watermark that sync names, the two banks have all the money together."""
    sums: Counter[int] = Counter()
    banks = set()
    for watermark, table, name in rows:
        if table.removeprefix("shop.") in BANKS:
            sums[watermark] += int(name)
            banks.add((watermark, table))
    assert len(banks) == len(BANKS) * len(sums)
    assert len(sums) > 1
    assert sums == dict.fromkeys(sums, MONEY)
