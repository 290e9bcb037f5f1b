"""Hostile messages of every format, without Spark: the small version of tests/soak/sweep.py."""

from __future__ import annotations

import subprocess
import sys

import pytest

READ = """
import logging, sys, tempfile
from pathlib import Path
sys.path[:0] = ["tests", "tests/soak"]
from hostile import WIRES, hostile
from support.memory import peak_mib
from formats.test_bounded_output import SHAPES as OPTIONS
from formats.test_bounded_output import opened, parsed
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.read.engine import Engine

logging.disable(logging.CRITICAL)
claims = tempfile.TemporaryDirectory()
size, most = map(int, sys.argv[1:3])
SHAPES, wires = list(OPTIONS), sys.argv[3:] or WIRES
for number, each in enumerate(hostile(size, tuple(wires))):
    given = dict(each.options)
    if each.files:
        given["claimCheckStorageUri"] = claims.name
    for name, data in each.files:
        Path(claims.name, name).write_bytes(data)
    shape = SHAPES[number % len(SHAPES)]
    options, schema = opened(shape)
    options = parsed({**given, "protocol": each.protocol, **OPTIONS[shape]})
    for batch in Engine(ReadTask(schema, options)).batches(each.messages):
        assert batch.num_rows
    assert peak_mib() < most, f"{each.name}: {peak_mib()} MiB"
    print(each.name)
"""


def read(*arguments: str) -> list[str]:
    """Names of the messages that were read: of a size, below a number of MiB, of some wires."""
    done = subprocess.run(
        [sys.executable, "-c", READ, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.slow
def test_hostile_messages_need_little_memory() -> None:
    """4 KB each; larger ones are the sweep's."""
    assert len(read("4000", "200")) > 100


@pytest.mark.slow
def test_repeated_parts_of_rows_need_little_memory() -> None:
    """A long topic in 12 000 rows made 1 GiB of 275 KiB."""
    assert len(read("300000", "300", "repeated")) == 8
