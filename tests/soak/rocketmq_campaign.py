"""Kills of RocketMQ by the dozen: ``rocketmq_campaign.py KILLS [SEED]``.

It stands beside ``make soak``: its broker, with name server and proxy, takes 600 MB.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from support.brokers import start_broker
from support.rocketmq_broker import RocketBroker
from support.rocketmq_kills import kill_brokers_of_streams, kill_drains, kill_drivers

CAMPAIGNS = {
    "drivers": kill_drivers,
    "brokers of streams": kill_brokers_of_streams,
    "drains": kill_drains,
    "brokers of drains": partial(kill_drains, brokers=True),
}


def main(kills: str, seed: str = "1") -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = start_broker(RocketBroker, Path(folder))
        try:
            for name, campaign in CAMPAIGNS.items():
                started = time.monotonic()
                own = Path(folder, name.replace(" ", "-"))
                own.mkdir()
                campaign(broker, own, int(kills), random.Random(seed))
                print(f"{name}: {kills} kills, {time.monotonic() - started:.0f} s", flush=True)
        finally:
            broker.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
