"""Concurrent writers of the same targets, one process each.

``sync_races.py SEED [KIND ...]``: two syncs with one checkpoint (``one_checkpoint``); two syncs
with a checkpoint each, and the same targets (``one_target``); OPTIMIZE, VACUUM and another writer
during the batches of a sync (``others``).  At the end each target equals the source, or an error or
a halted table names what to do.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from support.brokers import start_broker
from support.kafka_broker import Broker
from support.killing import started
from support.spark_settings import CHEAP
from support.sync_app import delta_session
from support.sync_source import Source
from sync_racer import OTHERS_ID

RACER = Path(__file__).with_name("sync_racer.py")
TABLES = ("orders",)
CHANGES = 120


def race(folder: Path, *runs: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run processes at the same time; returns what each has found."""
    with ExitStack() as stack:
        apps = [stack.enter_context(started(RACER, folder, *run)) for run in runs]
        for app in apps:
            app.process.wait(1200)
    found = [json.loads(path.read_text()) for path in sorted(folder.glob("*-*.json"))]
    for path in folder.glob("*-*.json"):
        path.unlink()
    return found


def check(folder: Path, store: str, source: Source) -> None:
    """Each target equals the source."""
    spark = delta_session(CHEAP)
    for table in {key[0] for key in source.rows}:
        rows = spark.read.format("delta").load(f"{folder}/{store}/{table}")
        if store == "scd2":
            rows = rows.where("__END_AT IS NULL")
        found = sorted((row.id, row.name) for row in rows.collect() if row.id < OTHERS_ID)
        wanted = sorted((key[1], name) for key, name in source.rows.items() if key[0] == table)
        assert found == wanted, (store, table, found, wanted)


def one_checkpoint(folder: Path, place: tuple[str, str], source: Source) -> None:
    for store in ("scd1", "scd2"):
        run = (*place, f"same_{store}", store)
        for each in race(folder, run, run):
            print(store, "one checkpoint:", each["error"][:400], each["halted"], flush=True)
        # Afterwards, alone.
        (last,) = race(folder, run)
        print(store, "afterwards:", last["error"][:400], last["halted"], flush=True)
        check(folder, store, source)


def one_target(folder: Path, place: tuple[str, str], source: Source) -> None:
    for store in ("changelog", "scd1"):
        found = race(folder, (*place, f"first_{store}", store), (*place, f"second_{store}", store))
        for each in found:
            print(store, "one target:", each["error"][:400], each["halted"], flush=True)
        if store == "scd1":
            check(folder, store, source)
        else:
            spark = delta_session(CHEAP)
            for table in {key[0] for key in source.rows}:
                rows = spark.read.format("delta").load(f"{folder}/{store}/{table}")
                assert rows.count() == rows.distinct().count(), table


def others(folder: Path, place: tuple[str, str], source: Source) -> None:
    with started(RACER, folder, "others", "scd1") as app:
        (found,) = race(folder, (*place, "alone", "scd1"))
        (folder / "end").touch()
        app.process.wait(300)
    print("others:", found["error"][:400], found["halted"], app.log()[-200:], flush=True)
    assert not found["halted"]
    check(folder, "scd1", source)


KINDS = (one_checkpoint, one_target, others)


def main(seed: str, *wanted: str) -> None:
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = start_broker(Broker, folder)
        try:
            for number, kind in enumerate(KINDS):
                if wanted and kind.__name__ not in wanted:
                    continue
                source = Source(TABLES, 2, dice)
                topic = broker.create_topic(f"races-{number}", 2)
                broker.produce(topic, source.messages(CHANGES))
                own = folder / kind.__name__
                own.mkdir()
                kind(own, (broker.servers, topic), source)
        finally:
            broker.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
