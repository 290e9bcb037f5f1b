"""Hostile messages of every format, without Spark: the small version of tests/soak/sweep.py."""

from __future__ import annotations

import subprocess
import sys

READ = """
import logging, sys, tempfile
from pathlib import Path
sys.path[:0] = ["tests", "tests/soak"]
from hostile import WIRES, hostile
from memory import peak_mib
from test_bounded_output import SHAPES, opened, parsed
from cdcfmt_core.events import Message
from pyspark_cdcfmt.read.engine import Engine

logging.disable(logging.CRITICAL)
claims = tempfile.TemporaryDirectory()
size, most = map(int, sys.argv[1:])
for number, each in enumerate(hostile(size, WIRES)):
    given = dict(each.options)
    if each.files:
        given["claimCheckStorageUri"] = claims.name
    for name, data in each.files:
        Path(claims.name, name).write_bytes(data)
    messages = [*each.before, Message(each.key, each.value, topic="t", partition=0, offset=1)]
    shape = ("changes", "variant")[number % 2]
    options, schema = opened(shape)
    options = parsed({**given, "protocol": each.protocol, **SHAPES[shape]})
    for batch in Engine(schema, options, inferred=False).batches(messages):
        assert batch.num_rows
    assert peak_mib() < most, f"{each.name}: {peak_mib()} MiB"
    print(each.name)
"""


def test_hostile_messages_take_little_memory() -> None:
    """4 KB each; larger ones are the sweep's."""
    done = subprocess.run(
        [sys.executable, "-c", READ, "4000", "200"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) > 100
