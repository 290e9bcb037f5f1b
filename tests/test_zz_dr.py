import subprocess
import time

from kafka_orders import orders
from rocketmq_kills import *


def test_drain(rocketmq, tmp_path):
    c = rocketmq.client
    topic = c.create_topic(f"dr{time.time_ns()}", 2)
    group = c.create_group(topic)
    c.send(topic, orders(0, 1000, partitions=2))
    t = time.time()
    done = subprocess.run(
        drain_command(rocketmq, topic, group, tmp_path), capture_output=True, text=True, timeout=100
    )
    print(done.stdout, done.stderr, time.time() - t)
    assert done.returncode == 0
    ids = drained_ids(tmp_path)
    print(len(ids), ids[:40])
    m = next(iter(drained(tmp_path)))
    print(m)
    assert sorted(ids) == list(range(1000))
    assert 0
