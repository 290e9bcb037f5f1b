"""A third party's transport: a wheel in an environment of its own.

It is the example of docs/write-a-transport.md, with Canal's own messages.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest
from support.doc_snippets import snippets
from support.fresh_venv import SHARED, Venv, build_wheels, make_venv
from support.golden_data import native_messages
from support.spark_settings import CHEAP, FEW_ROWS
from support.workspace import ROOT

from cdcfmt_core.events import Message
from cdcfmt_files.sources import wrap_line

pytestmark = pytest.mark.one_python

SPOOL = ROOT / "docs/example/cdcfmt-spool"
DOC = "docs/write-a-transport.md"
SNIPPETS = snippets(DOC)
RUNNABLE = [snippet for snippet in SNIPPETS if snippet.runs]
SEGMENT = 20


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Venv:
    """An environment with core, bridge, one format and the example."""
    projects = [
        *(ROOT, *SHARED, ROOT / "spark_bridge"),
        *(ROOT / "plugins/formats/canal-json", SPOOL),
    ]
    wheels = build_wheels(projects, tmp_path_factory.mktemp("wheels"))
    assert len(wheels) == len(projects)
    return make_venv(tmp_path_factory.mktemp("fresh") / "venv", wheels)


def golden() -> list[Message]:
    """Canal's messages, of three partitions."""
    return list(native_messages("canal/canal_flat_hash"))


def make_topic(folder: Path, name: str, partitions: int) -> Path:
    for partition in range(partitions):
        (folder / name / str(partition)).mkdir(parents=True)
    (folder / name / "lock").write_text(name)
    return folder / name


def fill(topic: Path, messages: list[Message], start: int = 0) -> None:
    """Put messages into the partitions that they have, from the offset ``start`` on."""
    for partition in {message.partition for message in messages}:
        mine = [message for message in messages if message.partition == partition]
        for at in range(0, len(mine), SEGMENT):
            some = mine[at : at + SEGMENT]
            lines = [wrap_line(Message(m.key, m.value, m.headers)) + b"\n" for m in some]
            begin, end = start + at, start + at + len(some)
            path = topic / str(partition) / f"{begin:020}-{end:020}.jsonl"
            path.write_bytes(b"".join(lines))


def test_the_example_passes_the_kit(venv: Venv, tmp_path: Path) -> None:
    """By the commands of the docs, which install it before."""
    commands = [line for s in SNIPPETS if s.language == "sh" for line in s.code.splitlines()]
    assert commands == ['pip install -e ".[test]"', "pytest tests", "python -m cdcfmt_core"]
    example = tmp_path / "cdcfmt-spool"
    shutil.copytree(SPOOL, example)
    done = venv.run("-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests", cwd=example)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\b5\d passed, 1 skipped", done.stdout), done.stdout
    assert "the harness has no restart" in done.stdout
    listing = venv.run("-m", "cdcfmt_core")
    assert listing.returncode == 0, listing.stderr
    assert "spool (cdcfmt-spool 0.1.0)" in listing.stdout


def test_command_line_reads_the_topic(venv: Venv, tmp_path: Path) -> None:
    messages = golden()
    fill(make_topic(tmp_path / "spool", "orders", 3), messages)
    (line,) = re.findall(r"`cdcfmt (stats spool://\S+)`", (ROOT / DOC).read_text(encoding="utf-8"))
    program = "from cdcfmt_cli import main; main()"
    stats = venv.run("-c", program, *line.split(), cwd=tmp_path)
    assert stats.returncode == 0, stats.stdout + stats.stderr
    assert re.search(rf"messages +{len(messages)},", stats.stdout), stats.stdout
    doctor = venv.run("-c", program, "doctor", "--spool", "spool", cwd=tmp_path)
    assert "Spool spool\n  ✓ 1 topics\n" in doctor.stdout, doctor.stdout + doctor.stderr


SPARK = """
import json, pathlib, sys
from pyspark.sql import SparkSession

settings, batch, stream, writing = sys.argv[1:]
spark = SparkSession.builder.master("local[2]").config(map=json.loads(settings)).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")

def rows(frame):
    columns = ("kind", "op", "`table`", "source_time", "to_json(before)", "to_json(after)",
            "_source.partition", "_source.offset", "_source.index", "_corrupt_record.reason")
    found = frame.selectExpr(*columns).collect()
    return sorted(json.dumps([str(cell) for cell in row]) for row in found)

scope = {"spark": spark}
exec(batch, scope)
result = {"batch": rows(scope["batch"]), "files": rows(spark.read.format("cdc").load("dump"))}
exec(stream, scope)
scope["query"].awaitTermination()
first = spark.read.parquet("lake/events")
result["first"], result["batches"] = rows(first), scope["query"].lastProgress["batchId"]
for path in pathlib.Path("later").glob("*/*"):
    path.rename(pathlib.Path("spool/orders", path.parent.name, path.name))
exec(stream, scope)
scope["query"].awaitTermination()
result["stream"] = rows(spark.read.parquet("lake/events"))
exec(writing, scope)
copied = spark.read.format("cdc").option("spool.path", "spool").option("subscribe", "copy").load()
of_pair = "`table` = 'pair'"
changed = ("op", "`table`", "to_json(before)", "to_json(after)")
for name, frame in {"sent": scope["rows"], "copied": copied}.items():
    found = frame.where(of_pair).selectExpr(*changed).collect()
    result[name] = sorted(str(row) for row in found)
try:
    misspelt = spark.read.format("cdc").option("spool.path", "spool").option("subscribe", "odrers")
    misspelt.load().count()
except Exception as error:
    result["error"] = str(error)
result["counts"] = [scope["rows"].count(), copied.count()]
print("RESULT" + json.dumps(result))
spark.stop()
"""


def test_spark_reads_and_writes_it(venv: Venv, tmp_path: Path) -> None:
    """Batch, stream with a restart, and write: the events equal those of files.

    Nothing but the wheel makes Spark know the transport.
    """
    messages = golden()
    counts: dict[int | None, int] = {}
    placed = []
    for message in messages:
        offset = counts.get(message.partition, 0)
        counts[message.partition] = offset + 1
        placed.append(attrs.evolve(message, offset=offset))
    old = [message for message in placed if (message.offset or 0) < 100]
    new = [message for message in placed if (message.offset or 0) >= 100]
    assert len(old) == 300
    fill(make_topic(tmp_path / "spool", "orders", 3), old)
    fill(make_topic(tmp_path, "later", 3), new, start=100)
    make_topic(tmp_path / "spool", "copy", 1)
    (tmp_path / "dump").mkdir()
    lines = b"\n".join(wrap_line(message) for message in old)
    (tmp_path / "dump/old.jsonl").write_bytes(lines)
    done = venv.run(
        "-c",
        SPARK,
        json.dumps(FEW_ROWS | CHEAP),
        *(snippet.code for snippet in RUNNABLE),
        cwd=tmp_path,
        **venv.spark_environment(),
    )
    assert "RESULT" in done.stdout, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout.partition("RESULT")[2])
    assert len(result["batch"]) >= len(old)
    assert result["batch"] == result["files"] == result["first"]
    assert not any('"corrupt"' in row for row in result["batch"])
    # By maxOffsetsPerTrigger.
    assert result["batches"] >= 5
    assert len(result["stream"]) > len(result["first"])
    assert len(set(result["stream"])) == len(result["stream"])
    assert set(result["first"]) < set(result["stream"])
    sent, copied = result["counts"]
    assert sent == copied > 400
    assert len(result["sent"]) > 50
    assert result["copied"] == result["sent"]
    assert "topic odrers does not exist on spool; similar topics: orders" in result["error"]


# What the docs show


def test_quoted_code_equals_the_example() -> None:
    quoted = 0
    for snippet in SNIPPETS:
        first, _, code = snippet.code.partition("\n")
        if snippet.language in ("python", "toml") and not snippet.runs:
            file = SPOOL / first.removeprefix("# ")
            assert code in file.read_text(encoding="utf-8"), snippet.id
            quoted += 1
    assert quoted == 11
    assert len(RUNNABLE) == 3


def test_the_example_is_short() -> None:
    for name in ("folder", "source", "sink"):
        code = (SPOOL / f"src/cdcfmt_spool/{name}.py").read_text(encoding="utf-8")
        assert len([line for line in code.splitlines() if line.strip()]) <= 95, name
