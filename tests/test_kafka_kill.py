"""Nothing is lost and nothing double, however often the driver is killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from kafka_broker import Broker
from kafka_orders import orders
from pyspark.sql import SparkSession

KILLS = int(os.environ.get("CDCFMT_KILLS", "3"))
"""``make soak`` kills more often."""

APP = Path(__file__).with_name("kafka_stream_app.py")


def start(broker: Broker, topic: str, folder: Path, limit: int) -> subprocess.Popen[bytes]:
    (folder / "busy").unlink(missing_ok=True)
    paths = [str(APP.parent), str(APP.parents[1] / "spark_bridge" / "tests")]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(APP), broker.servers, topic, str(folder), str(limit)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Driver, JVM and workers at once, as if the machine had gone."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_driver_that_is_killed(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    topic = kafka.create_topic("killed", 3)
    dice = random.Random(6)
    total = 0
    died = 0
    for _ in range(KILLS):
        # More than it reads before it is killed.
        kafka.produce(topic, orders(total, total + 900, partitions=3))
        total += 900
        app = start(kafka, topic, tmp_path, 30)
        deadline = time.monotonic() + 120
        # Before its first batch now and then, but most often in the middle of some.
        early = dice.random() < 0.2
        while not (early or (tmp_path / "busy").exists()):
            assert app.poll() is None, (tmp_path / "log").read_text()[-3000:]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(dice.uniform(2, 8) if early else dice.uniform(0, 2.5))
        died += app.poll() is None
        kill(app)
    assert died == KILLS
    app = start(kafka, topic, tmp_path, 10_000)
    assert app.wait(300) == 0, (tmp_path / "log").read_text()[-3000:]
    batches = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    assert len(batches) > KILLS
    found = spark.read.parquet(str(tmp_path / "out"))
    ids = sorted(row[0] for row in found.select("id").collect())
    assert ids == list(range(total))
