"""``readStream.format("cdc").load(directory)``: every file exactly once."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from support.canal_messages import ddl_message, row_message, write_lines
from support.spark_marks import ON_SPARK_4_1, several_batches

from cdcfmt_core.errors import SourceError
from cdcfmt_files.sources import FileInfo, FileOffset
from cdcfmt_files.sources.input import Watch

SCHEMA = (
    "id int, _change_type string, _corrupt_record struct<reason:string,key:binary,value:binary>"
)
HOUR = 3600
THEN = 1_750_000_000


class Stream:
    """A directory, a checkpoint, and what every batch held, over any number of runs."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.input = folder / "input"
        self.input.mkdir()
        self.checkpoint = str(folder / "checkpoint")
        self.batches: dict[int, list[list[int]]] = defaultdict(list)
        self.fail_at: set[int] = set()
        self.meanwhile: Callable[[], None] = lambda: None
        self._next = 0

    def put(self, name: str, mtime: float = THEN, count: int = 1) -> list[int]:
        """A file with ``count`` inserts of new ids, moved into place; gives the ids."""
        ids = list(range(self._next, self._next + count))
        self._next += count
        path = self.input / name
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name("_" + path.name)
        write_lines(hidden, *(row_message("INSERT", {"id": str(id_)}) for id_ in ids))
        os.utime(hidden, (mtime, mtime))
        hidden.rename(path)
        return ids

    def frame(self, **options: Any) -> DataFrame:
        reader = self.spark.readStream.format("cdc").option("table", "shop.orders").schema(SCHEMA)
        return reader.options(**options).load(str(self.input))

    def start(self, *, once: bool = True, **options: Any) -> StreamingQuery:
        writer = self.frame(**options).writeStream.foreachBatch(self._batch)
        writer = writer.option("checkpointLocation", self.checkpoint)
        trigger = (
            writer.trigger(availableNow=True)
            if once
            else writer.trigger(processingTime="0 seconds")
        )
        return trigger.start()

    def run(self, **options: Any) -> list[list[int]]:
        """Everything there is; the ids of each batch of this run, in order."""
        self.batches.clear()
        query = self.start(**options)
        query.awaitTermination()
        return [ids for _, runs in sorted(self.batches.items()) for ids in runs]

    def _batch(self, frame: DataFrame, number: int) -> None:
        rows = frame.collect()
        assert all(row._corrupt_record is None for row in rows)
        self.batches[number].append([row.id for row in rows])
        self.meanwhile()
        if number in self.fail_at:
            self.fail_at.discard(number)
            raise RuntimeError("the sink failed")

    def log(self) -> dict[int, Any]:
        """The offsets of all batches, as the checkpoint has them."""
        folder = Path(self.checkpoint) / "offsets"
        return {
            int(path.name): json.loads(path.read_text().splitlines()[-1])
            for path in folder.iterdir()
            if path.name.isdecimal()
        }


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.mark.smoke
def test_new_files_in_every_run(stream: Stream) -> None:
    assert stream.run() == [[]]
    first = stream.put("b.json", THEN, 3) + stream.put("a.json", THEN + 1)
    assert stream.run() == [first]
    assert stream.run() == []
    second = stream.put("deeper/a.json", THEN + 2)
    stream.put("_hidden.json", THEN + 3)
    stream.put(".hidden.json", THEN + 3)
    (stream.input / "empty.json").touch()
    assert stream.run() == [second]
    third = stream.put("empty.json", THEN + 4)
    assert stream.run() == [third]


@several_batches
def test_max_files_per_trigger_and_equal_times(stream: Stream) -> None:
    ids = [stream.put(f"{name}.json")[0] for name in "edcba"]
    assert stream.run(maxFilesPerTrigger=2) == [[ids[4], ids[3]], [ids[2], ids[1]], [ids[0]]]
    late = [stream.put(name) for name in ("aa.json", "ab.json")]
    assert stream.run(maxFilesPerTrigger=2, maxBytesPerTrigger="1b") == late


@several_batches
def test_failed_batch_is_repeated_with_the_same_files(stream: Stream) -> None:
    """Whatever has come since, and with another maxFilesPerTrigger."""
    for number in range(3):
        stream.put(f"{number}.json", THEN + number)
    stream.fail_at = {0}
    with pytest.raises(PySparkException, match="the sink failed"):
        stream.run(maxFilesPerTrigger=1)
    assert stream.batches == {0: [[0]]}
    stream.put("older.json", THEN - 1)
    stream.fail_at = {1}
    with pytest.raises(PySparkException, match="the sink failed"):
        stream.run(maxFilesPerTrigger=2)
    assert stream.batches == {0: [[0]], 1: [[3, 1]]}
    stream.put("newer.json", THEN + 9)
    assert stream.run(maxFilesPerTrigger=10) == [[3, 1], [2, 4]]


@several_batches
def test_available_now_reads_existing_files(stream: Stream) -> None:
    stream.put("a.json", THEN)
    stream.put("b.json", THEN + 1)

    def add() -> None:
        stream.put(f"later-{stream._next}.json", THEN + 2)

    stream.meanwhile = add
    assert stream.run(maxFilesPerTrigger=1) == [[0], [1]]
    stream.meanwhile = lambda: None
    assert stream.run() == [[2, 3]]


def test_late_files(stream: Stream) -> None:
    """One within the window is read; one before it ends the query, or is counted."""
    stream.put("a.json", THEN + 10 * HOUR)
    query = stream.start(once=False, maxFileAge="2h", failOnDataLoss=False)
    try:
        query.processAllAvailable()
        stream.put("late.json", THEN + 9 * HOUR)
        query.processAllAvailable()
        stream.put("too-late.json", THEN + 8 * HOUR)
        (stream.input / "a.json").write_text("{}")
        stream.put("b.json", THEN + 11 * HOUR)
        query.processAllAvailable()
        progress = [json.loads(p.json) for p in query.recentProgress if p.numInputRows]
    finally:
        query.stop()
    assert [ids for _, runs in sorted(stream.batches.items()) for ids in runs] == [[0], [1], [3]]
    if not ON_SPARK_4_1:
        latest = progress[-1]["sources"][0]["latestOffset"]
        assert latest == {"waiting": 0, "tooLate": 1, "changed": 1}
    assert stream.run(maxFileAge="2h") == []
    late = stream.put("late-at-night.json", THEN + 8 * HOUR)
    for _ in range(2):
        with pytest.raises(PySparkException, match=r"1 files arrived too late.*was not running"):
            stream.run(maxFileAge="2h")
    os.utime(stream.input / "late-at-night.json")
    assert stream.run(maxFileAge="2h") == [late]


def test_failing_watch() -> None:
    there = [FileInfo("/in/old", 1, 10), FileInfo("/in/a", 1, 100), FileInfo("/in/empty", 0, 1)]
    offset = FileOffset(1, 50_000_000, 1, {"/in/a": 100_000_000}, {})
    watch = Watch(fail=True)
    watch.compare(there, offset)
    for file, text in (
        (FileInfo("/in/late", 1, 20), r"1 files arrived too late, /in/late: .*failOnDataLoss"),
        (FileInfo("/in/a", 2, 99), "1 files were changed after they were read: /in/a; "),
    ):
        with pytest.raises(SourceError, match=text):
            watch.compare([*there[:1], file], offset)


def test_unread_files_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    there = [FileInfo("/in/old", 1, 10), FileInfo("/in/a", 1, 100)]
    offset = FileOffset(1, 50_000_000, 1, {"/in/a": 100_000_000}, {})
    watch = Watch(fail=False)
    watch.compare(there, offset)
    watch.compare(there, offset)
    assert caplog.messages == []
    there += [FileInfo(f"/in/late{n}", 1, 20) for n in range(7)]
    there[1] = FileInfo("/in/a", 2, 101)
    for _ in range(2):
        watch.compare([*there, FileInfo("/in/new", 1, 60)], offset)
    late, changed = caplog.messages
    assert "7 files arrived too late" in late
    assert "/in/late0, /in/late1, /in/late2, /in/late3, /in/late4 and 2 more: " in late
    assert "1 files were changed after they were read: /in/a; to read" in changed
    assert (watch.too_late, watch.changed) == (7, 1)


@several_batches
def test_the_offset_stays_small(stream: Stream) -> None:
    for number in range(20):
        stream.put(f"{number:02}.json", THEN + number * HOUR)
    stream.run(maxFilesPerTrigger=4, maxFileAge="3h")
    offsets = stream.log()
    assert sorted(offsets) == list(range(5))
    assert [len(offset["read"]) for offset in offsets.values()] == [3] * 5
    assert offsets[4]["batch"].keys() == {f"/{number}.json" for number in range(16, 20)}
    assert offsets[4]["folder"] == str(stream.input)


def test_a_running_query_sees_new_files(stream: Stream) -> None:
    query = stream.start(once=False)
    try:
        for number in range(3):
            stream.put(f"{number}.json", time.time())
            query.processAllAvailable()
    finally:
        query.stop()
    assert sorted(id_ for runs in stream.batches.values() for ids in runs for id_ in ids) == [
        0,
        1,
        2,
    ]


def test_deleted_file_fails_the_query(stream: Stream) -> None:
    stream.put("a.json")
    stream.fail_at = {0}
    with pytest.raises(PySparkException, match="the sink failed"):
        stream.run()
    gone = stream.input / "a.json"
    size = gone.stat().st_size
    gone.unlink()
    later = stream.put("b.json", THEN + 1)
    with pytest.raises(PySparkException, match=r"a\.json"):
        stream.run()
    # The documented behaviour for a lost file.
    ((path, listed),) = stream.log()[0]["batch"].items()
    assert (path, listed) == ("/a.json", size)
    gone.write_text("\n" * size)
    found = stream.run(failOnDataLoss=False)
    if ON_SPARK_4_1:
        found += stream.run(failOnDataLoss=False)
    assert found == [[], later]


def test_unreadable_file_is_in_no_batch(stream: Stream) -> None:
    """Options leave it out then, which they could not in a batch of the checkpoint."""
    first = stream.put("a.json")
    stream.put("b.json.xz")
    with pytest.raises(PySparkException, match=r"\.xz files cannot be read.*pathGlobFilter"):
        stream.run()
    assert stream.run(pathGlobFilter="*.json") == [first]


def test_events_need_no_schema_and_changes_do(stream: Stream) -> None:
    stream.put("a.json")
    write_lines(stream.input / "ddl.json", ddl_message("create table t (id int)", "CREATE"))
    reader = stream.spark.readStream.format("cdc")
    query = (
        reader.load(str(stream.input))
        .groupBy("kind")
        .count()
        .writeStream.format("memory")
        .queryName("kinds")
        .outputMode("complete")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(stream.spark.table("kinds").collect()) == [("ddl", 1), ("row", 1)]
    frame = reader.option("table", "shop.orders").load(str(stream.input))
    with pytest.raises(PySparkException, match=r"a stream of changes needs a schema"):
        frame.writeStream.format("noop").start().awaitTermination()


def test_a_glob_that_matches_nothing_yet(stream: Stream, tmp_path: Path) -> None:
    glob = str(stream.input / "*" / "*.json")
    frame = stream.spark.readStream.format("cdc").load(glob).select("_source.path")

    def run() -> None:
        writer = frame.writeStream.option("checkpointLocation", stream.checkpoint)
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination()

    run()
    stream.put("x/a.json")
    stream.put("not-matched.json")
    run()
    assert [row.path for row in stream.spark.read.parquet(str(tmp_path / "out")).collect()] == [
        str(stream.input / "x" / "a.json")
    ]
    with pytest.raises(PySparkException, match="does not exist"):
        stream.spark.readStream.format("cdc").load(str(tmp_path / "nowhere"))


def test_options(stream: Stream) -> None:
    for name, value in (("maxFilesPerTrigger", "0"), ("maxFileAge", "7")):
        with pytest.raises(PySparkException, match=f"option {name}: "):
            stream.run(**{name: value})
