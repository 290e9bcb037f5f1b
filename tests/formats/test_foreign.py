"""Files and values of other kinds: one bad row with the kind and a remedy."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import struct
import uuid
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest
import zstandard
from support.cli_tools import run, run_json
from support.golden_data import load_variant
from support.workspace import ROOT

from cdcfmt_core import open_decoder
from cdcfmt_core.events import Corrupt, Message, RowChange
from cdcfmt_files.sources import BadLine, FileSplit, read_lines, read_split
from cdcfmt_files.sources.reader import HEAD_BYTES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = ROOT / "tests/golden/cases"
VALUES = [
    golden.message.value
    for golden in load_variant("canal-json", "default").messages
    if golden.message.value is not None
][:60]
LINES = b"\n".join(VALUES) + b"\n"
TEXT = LINES.decode()
TABLE = pa.table({"a": list(range(100)), "b": ["x"] * 100})


def _parquet() -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(TABLE, sink)
    return sink.getvalue()


def _orc() -> bytes:
    sink = io.BytesIO()
    pyarrow.orc.write_table(TABLE, sink)
    return sink.getvalue()


def _arrow() -> bytes:
    sink = io.BytesIO()
    pyarrow.feather.write_feather(TABLE, sink, compression="uncompressed")
    return sink.getvalue()


def _avro() -> bytes:
    sink = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "long"}]}
    fastavro.writer(sink, schema, TABLE.select(["a"]).to_pylist())
    return sink.getvalue()


def _zip() -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.jsonl", LINES)
    return sink.getvalue()


def _kcat() -> bytes:
    """As kcat prints it: https://github.com/edenhill/kcat, ``-J``."""
    lines = (
        f'{{"topic":"t","partition":0,"offset":{offset},"tstype":"create","ts":1700000000000,'
        f'"broker":0,"key":null,"payload":{json.dumps(value.decode())}}}'
        for offset, value in enumerate(VALUES)
    )
    return "\n".join(lines).encode() + b"\n"


FILES: dict[str, tuple[bytes, str, str]] = {
    "parquet": (_parquet(), "Parquet", "decode(df)"),
    "orc": (_orc(), "ORC", "decode(df)"),
    "arrow": (_arrow(), "Arrow", "decode(df)"),
    "avro": (_avro(), "an Avro container", "decode(df)"),
    "gzip": (gzip.compress(LINES), "gzip", "its name must end in .gz"),
    "zstd": (zstandard.compress(LINES), "zstd", "its name must end in .zst"),
    "bzip2": (bz2.compress(LINES), "bzip2", "its name must end in .bz2"),
    "xz": (lzma.compress(LINES), "xz", "decompress it"),
    "zip": (_zip(), "a zip archive", "extract its files"),
    "utf16": (TEXT.encode("utf-16"), "UTF-16", "iconv -f UTF-16 -t UTF-8"),
    "utf16be": (b"\xfe\xff" + TEXT.encode("utf-16-be"), "UTF-16", "iconv"),
    "utf16le without mark": (TEXT.encode("utf-16-le"), "UTF-16LE", "iconv -f UTF-16LE"),
    "utf16be without mark": (TEXT.encode("utf-16-be"), "UTF-16BE", "iconv -f UTF-16BE"),
    "utf32": (TEXT.encode("utf-32"), "UTF-32", "iconv -f UTF-32"),
    "array": (b"[\n" + b",\n".join(VALUES) + b"\n]\n", "a JSON array", "jq -c '.[]'"),
    "array on the first line": (b"[" + b",\n".join(VALUES) + b"]\n", "a JSON array", "jq -c '.[]'"),
    "pretty": (
        b"\n".join(json.dumps(json.loads(value), indent=2).encode() for value in VALUES),
        "JSON over several lines",
        "jq -c .",
    ),
    "pretty with tabs, after a mark": (
        b"\xef\xbb\xbf" + json.dumps(json.loads(VALUES[0]), indent="\t").encode(),
        "JSON over several lines",
        "jq -c .",
    ),
    "csv": (b"id,name,note\n" + b'1,x,"a, b"\n' * 2000, "CSV", "spark.read.csv"),
    "tsv": (b"1\tx\t2024-01-01\r\n" * 50, "CSV", "spark.read.csv"),
    "kcat": (_kcat(), "output of kcat -J", "@base64"),
    "xml": (b"<?xml version='1.0'?>\n<Error>\n</Error>\n", "XML", "an object store"),
}
"""Kind → its bytes, its name and what to do."""


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("protocol", ["auto", "canal-json", "debezium"])
def test_a_file_of_another_kind_is_one_bad_line(kind: str, protocol: str, tmp_path: Path) -> None:
    data, name, remedy = FILES[kind]
    path = tmp_path / "file.jsonl"
    path.write_bytes(data)
    size = len(data)
    third = max(size // 3, 1)
    splits = [FileSplit(str(path), start, start + third, size) for start in range(0, size, third)]
    for read in (read_split, read_lines):
        found = [item for split in splits for item in read(split, protocol=protocol)]
        (bad,) = found
        assert isinstance(bad, BadLine)
        assert (bad.path, bad.offset) == (str(path), 0)
        assert f"the file is {name}" in str(bad.error)
        assert remedy in str(bad.error)


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_compressed_file_of_another_kind_is_one_bad_line(ending: str, tmp_path: Path) -> None:
    compress = {".gz": gzip.compress, ".zst": zstandard.compress}[ending]
    path = tmp_path / f"file.csv{ending}"
    path.write_bytes(compress(FILES["csv"][0]))
    (bad,) = read_split(FileSplit(str(path), 0, None, None))
    assert isinstance(bad, BadLine)
    assert "the file is CSV" in str(bad.error)


@pytest.mark.parametrize(
    "data",
    [
        LINES,
        b"\xef\xbb\xbf" + LINES,
        b"one line, with a comma\n",
        b"a, b\nno mark here\n",
        b"[1]\n[2]\n",
        b'{"a": 1,\n{"b": 2}\n',
        b"\0\0\0\0\0\0\0\1" * 3,
        b"\x10\0" * 40,
        b"",
    ],
    ids=lambda data: repr(data[:20]),
)
def test_everything_else_is_read_line_by_line(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    found = list(read_split(FileSplit(str(path), 0, None, None)))
    assert all(isinstance(item, Message) for item in found)
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    assert [item.value for item in found] == lines


def test_custom_separator_allows_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = FILES["pretty"][0].replace(b"\n}\n{", b"\n}\x1e{")
    path.write_bytes(data)
    split = FileSplit(str(path), 0, None, None)
    found = list(read_split(split, line_separator=b"\x1e"))
    decode = open_decoder("canal-json").decode
    for item, value in zip(found, VALUES, strict=True):
        assert isinstance(item, Message)
        assert [type(event) for event in decode(item)] == [
            type(event) for event in decode(Message(None, value))
        ]


@pytest.mark.parametrize("kind", ["parquet", "utf16", "pretty", "csv", "kcat"])
def test_the_command_line_has_one_line_for_the_file(kind: str, tmp_path: Path) -> None:
    data, name, remedy = FILES[kind]
    (tmp_path / "file.jsonl").write_bytes(data)
    (tmp_path / "good.jsonl").write_bytes(LINES)
    for protocol in ("auto", "canal-json"):
        options = ("--protocol", protocol, tmp_path)
        rows = [json.loads(line) for line in run("cat", *options).stdout.split("\n")[:-1]]
        (reason,) = (row["_corrupt_record"]["reason"] for row in rows if row["kind"] == "corrupt")
        assert f"the file is {name}" in reason
        assert remedy in reason
        assert len(rows) == len(VALUES) + 1
        result = run("validate", *options)
        assert result.exit_code == 1
        assert f"1 corrupt, 1 changed: {len(VALUES) + 1} messages" in " ".join(
            result.stdout.split()
        )
        assert run_json("stats", *options, "--json")["messages"] == len(VALUES) + 1
    found = json.loads(run("sniff", "--json", tmp_path / "file.jsonl").stdout)
    assert name in found["not recognised"]["first_problem"]
    assert f"the file is {name}" in " ".join(run("inspect", tmp_path / "file.jsonl").stdout.split())
    piped = run("cat", "-", stdin=data)
    assert piped.stdout.count('"corrupt"') == 1
    assert name in piped.stdout


def test_spark_has_one_bad_row_for_each_file(spark: SparkSession, tmp_path: Path) -> None:
    for number, (data, _, _) in enumerate(FILES.values()):
        (tmp_path / f"{number}.jsonl").write_bytes(data)
    (tmp_path / "good.jsonl").write_bytes(LINES)
    for protocol in ("auto", "canal-json"):
        reader = spark.read.format("cdc").option("protocol", protocol)
        # Files in several splits have one bad row, too.
        events = reader.option("maxPartitionBytes", 30_000).load(str(tmp_path))
        rows = events.select("kind", "_source.path", "_corrupt_record.reason").collect()
        bad = {Path(row.path).stem: row.reason for row in rows if row.kind == "corrupt"}
        assert sum(row.kind == "corrupt" for row in rows) == len(FILES)
        assert len(rows) == len(FILES) + len(VALUES)
        for number, (_, name, _) in enumerate(FILES.values()):
            assert f"the file is {name}" in bad[str(number)]
        with pytest.raises(Exception, match="the file is Parquet"):
            reader.option("mode", "FAILFAST").load(str(tmp_path / "0.jsonl")).collect()


def test_lines_of_one_kind_are_listed_once(tmp_path: Path) -> None:
    lines = [b'{"id": %d, "name": "x"}' % number for number in range(300)]
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    (tmp_path / "b.jsonl").write_bytes(b"\n".join([*lines[:2], *VALUES]))
    result = run("validate", tmp_path)
    text = " ".join(result.stdout.split())
    assert text.count("a row without an envelope") == 2
    assert "a.jsonl @ 0, and 299 more" in text
    assert "b.jsonl @ 0, and 1 more" in text
    assert "302 corrupt" in text
    listed = run("validate", "--json", tmp_path / "a.jsonl").stdout.split("\n")[:-1]
    assert sum('"found":"corrupt"' in line for line in listed) == 300


# Values


def _framed(number: int, body: bytes) -> bytes:
    return b"\0" + struct.pack(">I", number) + body


UUID = uuid.UUID("b7b4a7f0-9c96-4e4a-a687-fb5de9ef0c63")
FOREIGN: dict[str, tuple[bytes, str]] = {
    "json schema": (_framed(100_001, VALUES[0]), "(0x00 and the schema id 100001; JSON)"),
    "avro": (_framed(7, b"\0\2\x02a"), "(0x00 and the schema id 7; Avro or Protobuf)"),
    "glue": (b"\3\0" + UUID.bytes + b"\2\2a", f"Glue's schema registry (schema version {UUID})"),
    "glue, compressed": (b"\3\5" + UUID.bytes + b"x\x9c", f"(schema version {UUID})"),
    "cloud event": (
        json.dumps(
            {
                "id": "name:mysql;lsn:1",
                "source": "/debezium/mysql/dbserver",
                "specversion": "1.0",
                "type": "io.debezium.connector.mysql.datachangeevent",
                "datacontenttype": "application/json",
                "data": {"before": None, "after": {"id": 1}, "op": "c"},
            }
        ).encode(),
        "a CloudEvent: write messages without that envelope",
    ),
    "flat avro json": (
        b'{"id":{"int":1},"name":{"string":"x"},"_tidb_op":{"string":"c"}}',
        "Avro's JSON, as console consumers print it",
    ),
    "array": (b"[%b]" % VALUES[0], "a JSON array"),
    "kcat": (_kcat().partition(b"\n")[0], "output of kcat -J"),
    "utf16": (VALUES[0].decode().encode("utf-16-le"), "UTF-16LE"),
}


@pytest.mark.parametrize("kind", FOREIGN)
@pytest.mark.parametrize("protocol", ["auto", "canal-json", "simple", "cloudcanal-json"])
def test_error_names_the_kind_of_a_foreign_value(kind: str, protocol: str) -> None:
    value, name = FOREIGN[kind]
    (event,) = open_decoder(protocol).decode(Message(None, value))
    assert isinstance(event, Corrupt)
    assert name in event.error.reason


def test_a_row_without_an_envelope() -> None:
    value = b'{"id": 1, "name": "x", "price": 1.5, "at": null}'
    (event,) = open_decoder("auto").decode(Message(None, value))
    assert isinstance(event, Corrupt)
    assert "a row without an envelope" in event.error.reason
    assert "protocol=debezium" in event.error.reason


def _case(name: str) -> list[Message]:
    path = str(CASES / f"{name}.jsonl")
    found = list(read_split(FileSplit(path, 0, None, None)))
    assert all(isinstance(item, Message) for item in found)
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("protocol", ["auto", "debezium"])
@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("19_confluent_wire", "framed by a schema registry (0x00 and the schema id 7; JSON)"),
        ("52_avro_console_json", "Avro's JSON, as console consumers print it"),
    ],
)
def test_cases(case: str, name: str, protocol: str) -> None:
    messages = _case(case)
    for message in messages:
        (event,) = open_decoder(protocol).decode(message)
        assert isinstance(event, Corrupt)
        assert name in event.error.reason


@pytest.mark.parametrize(
    "after", [{"id": 1, "year": {"int": 2020}}, {"id": 1, "name": {"string": "X"}}]
)
def test_avro_json_of_single_columns(after: dict[str, Any]) -> None:
    source = {"connector": "postgresql", "db": "d", "table": "t", "name": "n", "schema": "s"}
    wire = {"before": None, "after": after, "source": source, "op": "c", "ts_ms": 1}
    (event,) = open_decoder("debezium").decode(Message(None, json.dumps(wire).encode()))
    assert isinstance(event, Corrupt)
    assert "Avro's JSON" in event.error.reason
    plain = wire | {"after": {"id": 1, "point": {"x": 1, "y": 2}}}
    (event,) = open_decoder("debezium").decode(Message(None, json.dumps(plain).encode()))
    assert isinstance(event, RowChange)


def test_each_kind_is_recognised_by_its_head() -> None:
    assert any(len(data) > HEAD_BYTES for data, _, _ in FILES.values())
