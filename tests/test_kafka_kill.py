"""Nothing is lost and nothing double, however often the driver is killed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen

import pyarrow.dataset as ds
from java import environment
from kafka_broker import Broker
from kafka_orders import orders

KILLS = int(os.environ.get("CDCFMT_KILLS", "3"))
"""``make soak`` kills more often."""

APP = Path(__file__).with_name("kafka_stream_app.py")


@contextmanager
def started(broker: Broker, topic: str, folder: Path, limit: int) -> Iterator[Popen[bytes]]:
    """The stream as a process; at the end driver, JVM and workers are killed at once."""
    (folder / "busy").unlink(missing_ok=True)
    paths = [str(APP.parent), str(APP.parents[1] / "spark_bridge" / "tests")]
    with (folder / "log").open("ab") as log:
        process = Popen(
            [sys.executable, str(APP), broker.servers, topic, str(folder), str(limit)],
            env={**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(paths)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_driver_that_is_killed(kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.create_topic("killed", 3)
    dice = random.Random(6)
    total = 0
    for _ in range(KILLS):
        # More than it reads before it is killed.
        kafka.produce(topic, orders(total, total + 900, partitions=3))
        total += 900
        with started(kafka, topic, tmp_path, 30) as app:
            deadline = time.monotonic() + 300
            # Before its first batch now and then, but most often in the middle of some.
            early = dice.random() < 0.2
            while not (early or (tmp_path / "busy").exists()):
                assert app.poll() is None, (tmp_path / "log").read_text()[-3000:]
                assert time.monotonic() < deadline
                time.sleep(0.1)
            time.sleep(dice.uniform(2, 8) if early else dice.uniform(0, 2.5))
            assert app.poll() is None
    with started(kafka, topic, tmp_path, 10_000) as app:
        assert app.wait(600) == 0, (tmp_path / "log").read_text()[-3000:]
    assert len(list((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))) > KILLS // 2
    ids = ds.dataset(tmp_path / "out", format="parquet").to_table(columns=["id"])["id"]
    assert sorted(ids.to_pylist()) == list(range(total))
