"""Kills of the driver and of its workers, and restarts of the broker, under ``sync``.

``sync_kills.py SEED DRIVERS WORKERS BROKERS [REGISTRIES FORMAT]``: so many of each, while the
tables of a source change at random.  At the end every store equals the source.  With a format
(debezium or ticdc-avro), rows are in Avro, beside statements and watermarks in Canal-JSON, and the
schema registry goes away so many times.  ``CDCFMT_TESTS_LAKE=iceberg`` syncs into Iceberg tables
(Spark 4.1).
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
from contextlib import suppress
from pathlib import Path

import attrs
from streams import workers_of
from support.brokers import start_broker
from support.framed_encoding import STRATEGIES
from support.kafka_broker import Broker
from support.killing import App, started
from support.schema_registry import OfflineRegistry, offline_registry
from support.sync_app import SOURCE
from support.sync_source import Source
from sync.test_kill import APP, check

from cdcfmt_core.events import Message
from cdcfmt_core.opening import open_decoder, open_encoder

TABLES = tuple(f"t{number:02}" for number in range(6))
CHANGES = 300
LAST_BATCHES = "5000"
"""Messages a batch of what is left at the end: small batches would take hours."""
AVRO = {
    "debezium": {"encodingFormat": "avro"},
    "ticdc-avro": {"enableTidbExtension": True, "avroIncludeBeforeValue": True},
}
LONGEST_AWAY = 20
"""Seconds; schema.registry.max.retries lasts longer."""
IN_FIRST = 0.3
"""The part of the drivers that are killed before they have completed a batch."""


def in_avro(format_: str, registry: OfflineRegistry) -> Callable[[Message], list[Message]]:
    """Writes rows of Canal-JSON in Avro."""
    given = {
        "schema.registry.url": registry.url,
        "schema.registry.topic": "sync-kills",
        **STRATEGIES,
        **AVRO[format_],
    }
    decoder, encoder = open_decoder("canal-json"), open_encoder(format_, given)

    def write(message: Message) -> list[Message]:
        return [
            attrs.evolve(each, partition=message.partition)
            for event in decoder.decode(message)
            for each in encoder.encode(event)
        ]

    return write


def complete_a_batch(app: App, folder: Path) -> None:
    """Wait until any store has completed one more batch."""

    def completed() -> int:
        return len([*folder.glob("checkpoints/*/commits/[0-9]*")])

    before = completed()
    app.wait(lambda: completed() > before)


def main(
    seed: int, drivers: int, workers: int, brokers: int, registries: int = 0, format_: str = ""
) -> None:
    dice = random.Random(seed)
    source = Source(TABLES, 3, dice)
    victims = ["driver"] * drivers + ["worker"] * workers + ["broker"] * brokers
    victims += ["registry"] * registries
    dice.shuffle(victims)
    with tempfile.TemporaryDirectory() as name, offline_registry() as registry:
        folder = Path(name)
        if format_:
            source.in_wire = in_avro(format_, registry)
            options = {"protocol": "auto", "schema.registry.url": registry.url}
            (folder / SOURCE).write_text(json.dumps(options))
        broker = start_broker(Broker, folder)
        try:
            topic = broker.create_topic("sync-kills", 3)
            while victims:
                broker.produce(topic, source.messages(CHANGES))
                with started(APP, folder, broker.servers, topic) as app:
                    if dice.random() > IN_FIRST:
                        complete_a_batch(app, folder)
                    app.live_on(dice, early=dice.random() < 0.2, longest=20)
                    while victims and victims[-1] != "driver":
                        victim = victims.pop()
                        if victim == "broker":
                            broker.kill()
                            broker.start()
                        elif victim == "registry":
                            # With new columns, whose schemas are registered here.
                            messages = source.messages(CHANGES)
                            registry.away = True
                            broker.produce(topic, messages)
                            time.sleep(dice.uniform(1, LONGEST_AWAY))
                            registry.away = False
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
    main(*map(int, sys.argv[1:6]), *sys.argv[6:])
