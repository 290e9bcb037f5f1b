"""Lines of a file, in one piece and by the kernel: the rows of the same lines, one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from support.damaged_messages import mutated
from support.golden_data import load_variant, reading_options
from support.turns import in_turn

from cdcfmt_core.events import Message
from cdcfmt_files.sources import (
    FileSplit,
    LineFormat,
    Lines,
    ReadParameters,
    read_lines,
    read_split,
    wrap_line,
)
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, read, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

CASES = [
    ("canal-json", "default"),
    ("canal-json", "tidb-extension"),
    ("debezium", "default"),
    ("debezium", "disable-schema"),
]
OPTIONS: list[dict[str, str]] = [{}, {"images": "after", "mode": "DROPMALFORMED"}]


def lines_of(messages: list[Message], chance: random.Random, damage: float) -> bytes:
    """Unusual lines: damaged, with blanks, other line ends, whole messages in between."""
    pieces = []
    for message in messages:
        value = message.value or b""
        if chance.random() < damage:
            value = mutated(value, chance)
        if chance.random() < damage:
            value = chance.choice(
                [b"", b" ", b"\t", wrap_line(message), value + b" ", b" " + value]
            )
        pieces.append(value + (b"\r\n" if chance.random() < damage else b"\n"))
    return b"".join(pieces)


@pytest.mark.parametrize(("protocol", "name", "damage"), in_turn(CASES, [0.0, 0.01, 0.3], of=2))
def test_same_rows(protocol: str, name: str, damage: float, tmp_path: Path) -> None:
    variant = load_variant(protocol, name)
    messages = [message.message for message in variant.messages]
    chance = random.Random(damage)
    path = tmp_path / "lines.jsonl"
    # Schemas come first, so that the rest is rows of their tables.
    path.write_bytes(lines_of(messages, chance, 0) + lines_of(messages * 3, chance, damage))
    split = FileSplit(str(path), 0, None, None)
    by_kernel = 0
    for table in chance.sample(variant.tables, 2):
        for place, extra in enumerate(OPTIONS):
            how: ReadParameters = {"block_bytes": (3_000, 100_000)[place]}
            given = {**reading_options(variant), "table": table_option(*table), **extra}
            if place and damage < 0.1:
                given["protocol"] = "auto"
            options = parsed(given)
            schema = inferred_schema(messages, options)
            assert schema is not None
            some = list(read_split(split, **how))
            lines = read_lines(split, **how)
            by_kernel += check_equal(some, schema, options, lines=lines).by_kernel
    given = {**reading_options(variant), "imageFormat": "json"}
    options = parsed(given | ({"protocol": "auto"} if damage < 0.1 else {}))
    lines = read_lines(split, block_bytes=30_000)
    check_equal(list(read_split(split)), events_schema(options), options, lines=lines)
    assert by_kernel


WHOLE = [*CASES, ("open", "batched"), ("simple-avro", "default")]


def whole_lines(messages: list[Message], chance: random.Random, damage: float) -> bytes:
    """Messages as Spark's Kafka source gives them, some of them by another hand, or damaged."""
    times = ("2026-01-01T08:00:00.123+08:00", "2026-01-01 00:00:00Z", 1_767_225_600_123, None, "x")
    pieces = []
    for number, message in enumerate(messages):
        line = wrap_line(attrs.evolve(message, topic=f"t{number // 40}", partition=number % 3))
        if chance.random() < damage:
            wrapped = json.loads(line)
            wrapped |= chance.choice(
                [
                    {"timestamp": chance.choice(times), "timestampType": 0},
                    {"headers": chance.choice([[], None, [{"key": "a", "value": "YQ=="}]])},
                    {"offset": chance.choice([None, 2**63, -1, 1.0, "1"])},
                    {"partition": chance.choice([None, 2**31, True])},
                    {"topic": chance.choice([None, "é", 'a"b', "\ud800", 1])},
                    {"key": chance.choice([None, "", "YQ", "YR=="])},
                    {"more": 1},
                ]
            )
            line = json.dumps(wrapped, indent=chance.choice([None, None, 0])).encode()
            line = line.replace(b"\n", b" ")
        elif chance.random() < damage:
            line = chance.choice([message.value or b"", mutated(line, chance), b" " + line + b"\r"])
        pieces.append(line.replace(b"\n", b" ") + b"\n")
    return b"".join(pieces)


@pytest.mark.parametrize(("protocol", "name", "damage"), in_turn(WHOLE, [0.0, 0.02, 0.5], of=3))
def test_same_rows_of_whole_messages(
    protocol: str, name: str, damage: float, tmp_path: Path
) -> None:
    variant = load_variant(protocol, name)
    messages = [message.message for message in variant.messages]
    chance = random.Random(damage)
    path = tmp_path / "lines.jsonl"
    path.write_bytes(whole_lines(messages, chance, 0) + whole_lines(messages * 2, chance, damage))
    split = FileSplit(str(path), 0, None, None)
    some = list(read_split(split))
    table = {"table": table_option(*chance.choice(variant.tables))}
    by_kernel = 0
    for more in ({"imageFormat": "json", "includeHeaders": "true"}, table):
        options = parsed({**reading_options(variant), **more})
        schema = events_schema(options) if "table" not in more else None
        schema = schema or inferred_schema(messages, options)
        assert schema is not None
        lines = read_lines(split, block_bytes=30_000)
        by_kernel += check_equal(some, schema, options, lines=lines).by_kernel
    assert by_kernel > len(messages) // 4


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\x0b\n \r\n"])
def test_lines_may_be_cut_again(start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(start + b"".join(ROWS[:50]))
    split = FileSplit(str(path), 0, None, None)
    (lines,) = read_lines(split)
    assert isinstance(lines, Lines)
    assert list(lines.cut()) == list(lines.cut()) == list(read_split(split))
    for table in ({"table": "shop.orders"}, {}):
        options = parsed({"protocol": "auto", **table})
        schema = events_schema(options)
        if table:
            schema = inferred_schema(list(read_split(split)), options) or schema
        check_equal(list(read_split(split)), schema, options, lines=iter([lines]))


ROW = (
    b'{"id":0,"database":"shop","table":"orders","pkNames":["id"],"isDdl":false,"type":"INSERT",'
    b'"es":1700000000000,"ts":1700000000001,"sql":"","sqlType":{"id":4},"mysqlType":{"id":"int"},'
    b'"old":null,"data":[{"id":"%d"}]}\n'
)
ROWS = [ROW % number for number in range(400)]


@pytest.mark.parametrize(
    ("unusual", "rows"),
    [
        (b"", 400),
        (b"\n", 400),
        (ROW.replace(b"%d", b"x"), 401),
        # One document on two lines, and two documents in one line, are none.
        (ROWS[0].replace(b",", b",\n", 1), 402),
        (ROWS[0].rstrip() + ROWS[1], 401),
        (b"\n" + ROWS[0].replace(b",", b",\n", 1) + b"\n\n", 402),
    ],
)
def test_lines_that_are_not_documents(unusual: bytes, rows: int, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"".join((*ROWS[:200], unusual, *ROWS[200:])))
    split = FileSplit(str(path), 0, None, None)
    messages = list(read_split(split))
    options = parsed({"protocol": "canal-json", "table": "shop.orders"})
    schema = inferred_schema(messages[:9], options)
    assert schema is not None
    lines = read_lines(split, block_bytes=2_000)
    result = check_equal(messages, schema, options, lines=lines)
    assert result.rows.num_rows == rows
    assert result.by_kernel >= 399


def test_unsplit_lines_create_no_messages(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"".join(ROWS))
    split = FileSplit(str(path), 0, None, None)
    options = parsed({"protocol": "canal-json", "table": "shop.orders"})
    schema = inferred_schema(list(read_split(split)), options)
    assert schema is not None

    def cut() -> Iterator[Message]:
        raise AssertionError

    first, *others = read_lines(split, block_bytes=1_500)
    pieces = [attrs.evolve(each, cut=cut) for each in others if isinstance(each, Lines)]
    assert len(pieces) > 40
    result = read([first, *pieces], schema, options, by_kernel=True)
    assert (result.by_kernel, result.by_reference) == (399, 1)


@pytest.mark.parametrize("line_format", ["auto", "message"])
def test_lines_that_are_whole_messages(line_format: LineFormat, tmp_path: Path) -> None:
    """As a topic's dump has them, with one among them that is none."""
    rows = [
        Message(b"k", row.strip(), (("h", b"%d" % at),), "t", at % 2, at, 1_700_000_000_000 + at)
        for at, row in enumerate(ROWS[:100])
    ]
    lines = [wrap_line(row) for row in rows]
    lines[50] = b'{"key":null,"value":"no base64!"}'
    path = tmp_path / "dump.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    split = FileSplit(str(path), 0, None, None)
    how: ReadParameters = {"block_bytes": 5_000, "line_format": line_format}
    options = parsed({"protocol": "canal-json", "includeHeaders": "true"})
    result = check_equal(
        list(read_split(split, **how)),
        events_schema(options),
        options,
        lines=read_lines(split, **how),
    )
    assert (result.by_kernel, result.by_reference) == (98, 2)


def test_a_bad_line_has_the_format_of_the_message_before_it(tmp_path: Path) -> None:
    rows = [wrap_line(Message(b"k", row.strip(), (), "t", 0, 5)) for row in ROWS[:20]]
    rows[10] = wrap_line(Message(b"k", b"{}", (), "t", 0, 5))
    rows[15] = b'{"key":null,"value":"no base64!"}'
    path = tmp_path / "dump.jsonl"
    path.write_bytes(b"\n".join(rows) + b"\n")
    split = FileSplit(str(path), 0, None, None)
    options = parsed({"protocol": "auto"})
    schema = events_schema(options)
    result = check_equal(list(read_split(split)), schema, options, lines=read_lines(split))
    assert result.by_kernel == 17
    formats = [source["protocol"] for source in result.rows.column("_source").to_pylist()]
    assert formats == ["canal-json"] * 10 + [None] + ["canal-json"] * 9
