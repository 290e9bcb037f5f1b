"""Kills of the driver and of its workers, and restarts of the broker, under ``sync``.

``sync_kills.py SEED DRIVERS WORKERS BROKERS``: so many of each, while the tables of a source change
at random.  At the end every store equals the source.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from streams import workers_of
from support.brokers import start_broker
from support.kafka_broker import Broker
from support.killing import started
from support.sync_source import Source
from sync.test_kill import APP, check

TABLES = tuple(f"t{number:02}" for number in range(20))
CHANGES = 300
LAST_BATCHES = "5000"
"""Messages a batch of what is left at the end: small batches of 20 tables would take hours."""


def main(seed: int, drivers: int, workers: int, brokers: int) -> None:
    dice = random.Random(seed)
    source = Source(TABLES, 3, dice)
    victims = ["driver"] * drivers + ["worker"] * workers + ["broker"] * brokers
    dice.shuffle(victims)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        broker = start_broker(Broker, folder)
        try:
            topic = broker.create_topic("sync-kills", 3)
            while victims:
                broker.produce(topic, source.messages(CHANGES))
                with started(APP, folder, broker.servers, topic) as app:
                    app.live_on(dice, early=dice.random() < 0.2, longest=60)
                    while victims and victims[-1] != "driver":
                        victim = victims.pop()
                        if victim == "broker":
                            broker.kill()
                            broker.start()
                        elif found := workers_of(app):
                            with suppress(ProcessLookupError):
                                os.kill(dice.choice(found), signal.SIGKILL)
                        time.sleep(dice.uniform(0, 20))
                    if victims:
                        victims.pop()
                print(f"{len(victims)} kills left, {source.changes} changes", flush=True)
            with started(APP, folder, broker.servers, topic, LAST_BATCHES) as app:
                app.end(3_600)
            check(folder, source)
            print("every store equals the source", flush=True)
        finally:
            broker.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
