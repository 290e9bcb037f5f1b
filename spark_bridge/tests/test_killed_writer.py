"""A driver that is killed in a commit, and two attempts of one task that both end."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType
from support.canal_messages import COMMIT_TS, row_message, write_lines
from test_stream_writing import run

from cdcfmt_files.sinks import FileSink
from pyspark_cdcfmt import DefaultSource
from pyspark_cdcfmt.local import environment

pytestmark = pytest.mark.one_python

APP = Path(__file__).with_name("killed_writer_app.py")
POINTS = ("before", "moved")
"""Where the driver dies in the commit of the second batch; test_stream_writing.py has the
others."""


def ids(spark: SparkSession, out: Path) -> list[int]:
    rows = spark.read.format("cdc").load(str(out)).selectExpr("after:id::int id")
    return sorted(row.id for row in rows.collect())


def kill_driver(folder: Path) -> None:
    """Once all of its streams are stuck."""
    with (folder / "log").open("wb") as log:
        app = subprocess.Popen(
            [sys.executable, str(APP), str(folder), *POINTS],
            env={**os.environ, **environment()},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 300
        while not all((folder / f"{point}.stuck").exists() for point in POINTS):
            assert app.poll() is None, (folder / "log").read_text()[-3000:]
            assert time.monotonic() < deadline, (folder / "log").read_text()[-3000:]
            time.sleep(0.1)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(app.pid, signal.SIGKILL)
        app.wait()
        (folder / "killed").touch()


def test_driver_killed_during_a_commit(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    for number in range(2):
        changes = [row_message("INSERT", {"id": str(10 * number + row)}) for row in range(10)]
        write_lines(tmp_path / "dump" / "a.jsonl", *changes)
        events = spark.read.format("cdc").option("includeColumns", True)
        frame = events.load(str(tmp_path / "dump"))
        frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "events"))
    kill_driver(tmp_path)
    for point in POINTS:
        out = tmp_path / point
        assert ids(spark, out) == list(range(10))
        run(spark, frame.schema, tmp_path / "events", out, tmp_path / f"{point}.checkpoint")
        assert ids(spark, out) == list(range(20))
        assert len(list((out / "_cdcfmt/commits").iterdir())) == 2
        # Leftovers of the killed writer are removed by age.
        FileSink(str(out)).sweep(older_than=time.time() + 1)
        assert ids(spark, out) == list(range(20))
        assert len(list(out.glob("part-*"))) == 2
        assert list((out / "_cdcfmt/staged").iterdir()) == []


ATTEMPT = """
import pickle, sys, time
from pathlib import Path
import pyarrow as pa
from pyspark import TaskContext

folder, attempt = Path(sys.argv[1]), int(sys.argv[2])
writer, batches = pickle.loads((folder / "task").read_bytes())
context = TaskContext._getOrCreate()
context._partitionId, context._attemptNumber = 3, attempt

def slowly():
    yield batches[0]
    (folder / f"half-{attempt}").touch()
    while not (folder / f"half-{1 - attempt}").exists():
        time.sleep(0.01)
    yield batches[1]

(folder / f"message-{attempt}").write_bytes(pickle.dumps(writer.write(slowly())))
"""


def test_two_completed_attempts_of_a_task(tmp_path: Path) -> None:
    """Speculative tasks, which local Spark lacks: Spark commits the message of one of them."""
    out = tmp_path / "out"
    schema = StructType(
        [
            StructField("id", IntegerType()),
            StructField("_change_type", StringType()),
            StructField("_commit_version", LongType()),
        ]
    )
    options = {"protocol": "canal-json", "table": "shop.orders", "keyColumns": "id"}
    source = DefaultSource({**options, "path": str(out)})
    writer = source.writer(schema, overwrite=False)
    batches = [
        pa.RecordBatch.from_pydict(
            {"id": [number], "_change_type": ["insert"], "_commit_version": [COMMIT_TS]}
        )
        for number in range(2)
    ]
    (tmp_path / "task").write_bytes(cloudpickle.dumps((writer, batches)))
    attempts = [
        subprocess.Popen([sys.executable, "-c", ATTEMPT, str(tmp_path), str(attempt)])
        for attempt in range(2)
    ]
    assert [attempt.wait(120) for attempt in attempts] == [0, 0]
    staged = out / "_cdcfmt/staged"
    assert len(list(staged.iterdir())) == 2
    writer.commit([pickle.loads((tmp_path / "message-1").read_bytes())])
    (committed,) = out.glob("part-*")
    assert len(committed.read_bytes().splitlines()) == 2
    (left,) = staged.iterdir()
    # The next write finds it when it is old, and nothing else.
    for write, is_there in ((1, True), (2, False)):
        again = source.writer(schema, overwrite=False)
        again.commit([again.write(iter(batches[:1]))])
        assert left.exists() == is_there
        assert len(list(out.glob("part-*"))) == 1 + write
        a_week_ago = time.time() - 8 * 24 * 3600
        os.utime(committed, (a_week_ago, a_week_ago))
        if is_there:
            os.utime(left, (a_week_ago, a_week_ago))
