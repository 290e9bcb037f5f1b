"""Kills of the driver and its workers under ``sync`` of a real PostgreSQL.

``postgres_kills.py SECONDS [SEED]``: the server's tables change at random, and Debezium's connector
sends the changes to a real Kafka.  At the end each target equals the server's table.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

from postgres_workload import CONNECTOR, CREATE, Workload
from streams import workers_of
from support.brokers import Startable, start_broker
from support.debezium_connector import Connector
from support.kafka_broker import Broker
from support.killing import App, started
from support.maven import UnavailableError
from support.postgres_server import Postgres
from table import Row, progress

NAME = "kills under sync of PostgreSQL"
APP = Path(__file__).with_name("postgres_driver.py")
CATCH_UP = 0.4
"""The part of the time that is kept for the rest and the comparison."""
STATEMENTS = 80
LONGEST = 60
"""Seconds that a driver lives at most."""

_B = TypeVar("_B", bound=Startable)


def run(seconds: float, seed: int | None = None) -> list[Row]:
    seed = int(time.time()) if seed is None else seed
    progress(NAME, f"seed {seed}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-postgres-")))

        def start(kind: Callable[[Path], _B], name: str) -> _B:
            (folder / name).mkdir()
            broker = start_broker(kind, folder / name)
            stack.callback(broker.stop)
            return broker

        try:
            server, kafka = start(Postgres, "server"), start(Broker, "kafka")
            server.execute(*CREATE)
            (folder / "connect").mkdir()
            connector = Connector(folder / "connect", server, kafka.servers, "shop", CONNECTOR)
            stack.callback(connector.stop)
            workload = Workload(random.Random(seed))
            server.execute(*workload.statements(STATEMENTS))
            connector.start()
        except UnavailableError as reason:
            progress(NAME, f"NOT RUN: {reason}")
            return []
        app = (APP, folder, kafka.servers, str(server.port), str(server.home))
        begun, kills = time.monotonic(), 0
        while not kills or time.monotonic() < begun + seconds * (1 - CATCH_UP):
            server.execute(*workload.statements(STATEMENTS))
            connector.catch_up()
            with started(*app) as driver:
                if lives(driver, workload.dice.uniform(0, LONGEST)):
                    kills += 1
                    if workload.dice.random() < 0.5 and (workers := workers_of(driver)):
                        kills += 1
                        with suppress(ProcessLookupError):
                            os.kill(workload.dice.choice(workers), signal.SIGKILL)
                        lives(driver, workload.dice.uniform(0, 10))
            progress(NAME, f"{kills} kills, {workload.sent} statements")
        found = finish(app, folder)
    rows = []
    for place, (count, different) in found.items():
        store, _, table = place.partition(", ")
        row = Row(campaign=NAME, format="debezium", target=f"{store} of {table}", runs=kills)
        row.kills, row.events, row.different = kills, count, len(different)
        row.notes += [f"{place}, seed {seed}: {text}" for text in different[:3]]
        rows.append(row)
    return rows


def lives(driver: App, seconds: float) -> bool:
    """Whether the driver still runs after so many seconds."""
    end = time.monotonic() + seconds
    while driver.process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    return driver.process.poll() is None


def finish(app: tuple[Any, ...], folder: Path) -> dict[str, tuple[int, list[str]]]:
    """What a driver finds that is not killed: rows and differences of each target."""
    result = folder / "found.json"
    # Of a driver that ended before it was killed.
    result.unlink(missing_ok=True)
    for _ in range(3):
        with started(*app) as driver:
            driver.process.wait(3_600)
            if result.exists():
                found: dict[str, tuple[int, list[str]]] = json.loads(result.read_text())
                return found
            progress(NAME, f"a driver ended by itself: {driver.log()[-400:]!r}")
    raise RuntimeError(f"the rest was not read: {driver.log()}")


if __name__ == "__main__":
    for each in run(float(sys.argv[1]), *map(int, sys.argv[2:])):
        print(each)
