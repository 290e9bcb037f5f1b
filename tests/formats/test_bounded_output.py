"""Output is bounded by bytes: of a batch, of what the rows of a message repeat, and of a list."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyspark.sql.types import IntegerType, StringType, StructField, StructType
from support.examples import examples

from cdcfmt_core.events import Message
from cdcfmt_files.sources import BadLine, Lines, wrap_line
from cdcfmt_files.sources.lines import line_parser
from cdcfmt_toolkit.repeats import REPEATED_BYTES, REPEATED_SHARE, value_bytes
from pyspark_cdcfmt.kernel import batches, feeding
from pyspark_cdcfmt.kernel import settings as kernel_settings
from pyspark_cdcfmt.kernel.batches import Item
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.read import decoding
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows import record_batches
from pyspark_cdcfmt.rows.message_batch import MessageBatch
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.rows.row_schemas import events_schema, metadata_fields
from pyspark_cdcfmt.testing import check_equal, parsed

SHAPES: dict[str, dict[str, str]] = {
    "changes": {"table": "d.t", "incompleteRows": "emit"},
    "json": {"imageFormat": "json"},
    "variant": {},
    "columns": {"includeColumns": "true"},
    "headers": {"includeHeaders": "true", "images": "after"},
    "no images": {"images": "none", "includeHeaders": "true"},
}


def canal(rows: list[Any], offset: int = 0, **envelope: Any) -> Message:
    wire = {
        "id": 0,
        "database": "d",
        "table": "t",
        "pkNames": ["a"],
        "isDdl": False,
        "type": "INSERT",
        "es": 1_700_000_000_000,
        "ts": 1_700_000_000_001,
        "sql": "",
        "sqlType": {"a": 4},
        "mysqlType": {"a": "varchar(99)"},
        "old": None,
        "data": rows,
    } | envelope
    data = json.dumps(wire, separators=(",", ":"), ensure_ascii=False).encode()
    return Message(None, data, topic="t", partition=0, offset=offset)


def beside(message: Message, **attributes: Any) -> Message:
    return attrs.evolve(message, **attributes)


def first_of(message: Message) -> Message:
    """A message with one row, from which the kernel learns the table."""
    wire = json.loads(message.value or b"")
    wire |= {name: wire[name][:1] for name in ("data", "old") if wire[name]}
    return Message(None, json.dumps(wire, separators=(",", ":")).encode())


def whole_lines(messages: Sequence[Message], path: str | None) -> Lines:
    data = b"".join(wrap_line(message) + b"\n" for message in messages)
    parse = line_parser("message", path)

    def cut() -> Iterator[Message | BadLine]:
        return (parse(line, 0) for line in data.splitlines())

    return Lines(data, 0, path or "p", False, parse, cut)


def ways_of(message: Message) -> Iterator[Iterable[Item]]:
    """A message behind one of its table: one by one, in columns, and as lines."""
    both = [first_of(message), message]
    yield both
    yield [MessageBatch.of(both)]
    yield [whole_lines(both, message.path)]


def opened(shape: str) -> tuple[ReadOptions, StructType]:
    options = parsed({"protocol": "canal-json", **SHAPES[shape]})
    if options.table is None:
        return options, events_schema(options)
    own = [StructField("a", IntegerType()), StructField("b", StringType())]
    return options, StructType([*own, *metadata_fields(options)])


MANY = [f"c{number}" for number in range(1700)]
LABELS = ",".join(f"'{number:04}{'n' * 996}'" for number in range(60))
REPRODUCTIONS = {
    "rows that do not fit": "canal([{'a': 'x' * 28}] * 8192)",
    "table": "canal([{'a': 'x' * 28}] * 900, table='n' * 200_000)",
    "gtid": "canal([{'a': 'x' * 28}] * 900, gtid='n' * 200_000)",
    "pkNames": "canal([{'a': 'x' * 28}] * 900, pkNames=['n' * 200_000])",
    "unknown member": "canal([{'a': '1'}] * 900, more=['n'] * 60_000)",
    "type": "canal([{'a': '1'}] * 900, mysqlType={'a': 'n' * 200_000})",
    "columns": "canal([dict.fromkeys(MANY, '1')], mysqlType=dict.fromkeys(MANY, 'int'))",
    "completed": "canal([{'a': 'n' * 50_000}], type='UPDATE', old=[{}])",
    "topic": "beside(canal([{'a': '1'}] * 1000), topic='n' * 200_000)",
    "path": "beside(canal([{'a': '1'}] * 1000), path='n' * 200_000)",
    "headers": "beside(canal([{'a': '1'}] * 1000), headers=(('n', b'n' * 200_000),))",
    "names of headers": "beside(canal([{'a': '1'}] * 1000), headers=(('n' * 200_000, None),))",
    "many headers": "beside(canal([{'a': '1'}] * 1000), headers=(('n', b'n'),) * 20_000)",
    "label": "canal([{'a': '1'}] * 1000, mysqlType={'a': f\"enum('{'n' * 65_000}')\"})",
    "labels": "canal([{'a': str(n)} for n in range(1000)], mysqlType={'a': f'set({LABELS})'})",
    "bad rows": "beside(canal([1] * 1000), topic='n' * 200_000)",
    "labels before": (
        "canal([{'a': '1'}] * 1000, type='UPDATE', old=[{'a': '2'}] * 1000,"
        "mysqlType={'a': f'set({LABELS})'})"
    ),
}
"""Messages of 50 to 330 KiB; some made hundreds of megabytes, or gigabytes, of output."""

READ = """
import sys
sys.path.insert(0, "tests")
from support.memory import peak_mib
from formats.test_bounded_output import *

opened("variant")
before = peak_mib()
for number, (name, text) in enumerate(REPRODUCTIONS.items()):
    message = eval(text)
    for place, shape in enumerate(SHAPES):
        options, schema = opened(shape)
        items = list(ways_of(message))[(number + place) % 3]
        engine = Engine(ReadTask(schema, options))
        rows = sum(batch.num_rows for batch in engine.batches(items))
        engine = Engine(ReadTask(schema, options), by_kernel=False)
        assert rows == sum(len(array.values) for array in engine.lists(items)), name
print(peak_mib() - before)
"""


@pytest.mark.slow
def test_known_reproductions_need_little_memory() -> None:
    """Peak memory of a process: long names took 530 MiB, most of it for ``gtid`` as a variant."""
    done = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 60 to 80 MiB, as the allocator has it.
    assert int(done.stdout.splitlines()[-1]) < 110


values = st.one_of(
    st.none(),
    st.integers(-5, 5),
    st.text(max_size=30),
    st.just("\U0001f600" * 9),
    st.just("\1" * 9),
)
rows = st.one_of(st.dictionaries(st.sampled_from(["a", "b", "c"]), values), values)
long_text = st.builds(lambda text, times: text * times, st.text(max_size=5), st.integers(0, 3000))
envelopes = st.fixed_dictionaries(
    {},
    optional={
        "table": st.one_of(st.just("t"), long_text),
        "database": long_text,
        "gtid": long_text,
        "sql": long_text,
        "type": st.sampled_from(["INSERT", "UPDATE", "DELETE", "ALTER", "?"]),
        "pkNames": st.lists(long_text, max_size=3),
        "mysqlType": st.dictionaries(st.sampled_from(["a", "b", "c"]), long_text),
        "more": st.recursive(
            values, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
        ),
    },
)


members = st.one_of(
    st.just("varchar(99)"),
    st.builds("enum('{}')".format, long_text),
    st.builds("set('a','{}')".format, long_text),
)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "topic": long_text,
        "path": long_text,
        "headers": st.lists(
            st.tuples(long_text, st.one_of(st.none(), st.builds(str.encode, long_text))), max_size=3
        ).map(tuple),
    },
)


@given(
    rows=st.lists(rows, max_size=4),
    times=st.sampled_from([1, 40, 400]),
    envelope=envelopes,
    old=st.lists(rows, max_size=4),
    members=members,
    attributes=attributes,
    shape=st.sampled_from(sorted(SHAPES)),
)
@example(  # of characters with several bytes
    rows=[{}], times=40, envelope={"pkNames": ["0\u0800\U00010000\U00010000" * 1348]}, old=[],
    members="int", attributes={}, shape="columns",
)  # fmt: skip
@settings(max_examples=examples(150), deadline=None)
def test_output_is_a_small_multiple_of_input(
    rows: list[Any],
    times: int,
    envelope: dict[str, Any],
    old: list[Any],
    members: str,
    attributes: dict[str, Any],
    shape: str,
) -> None:
    """20 times the message, and 16 KiB a row.

    A row's repeated bytes are limited once, and names of columns stand in both images and in
    ``columns``: three times.  The rest is for reasons and NULLs of the schema.
    """
    envelope = {"old": old * times or None, "mysqlType": {"a": members}} | envelope
    message = attrs.evolve(canal(rows * times, **envelope), **attributes)
    size = sum(value_bytes(part) for part in (message.value, *attributes.values()))
    size += len(first_of(message).value or b"")
    options, schema = opened(shape)
    for items in ways_of(message):
        for by_kernel in (True, False):
            engine = Engine(ReadTask(schema, options), by_kernel=by_kernel)
            made = list(engine.batches(items))
            count = sum(batch.num_rows for batch in made)
            assert sum(batch.nbytes for batch in made) <= 20 * size + 4 * REPEATED_BYTES * count


@pytest.mark.parametrize("shape", ["changes", "json", "variant"])
def test_batches_are_cut_by_bytes_on_both_paths(
    shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the messages, within one and between those by the kernel and the others."""
    most = 20_000
    for room in (record_batches, batches, feeding, kernel_settings):
        monkeypatch.setattr(room, "MAX_BATCH_BYTES", most)
    monkeypatch.setattr(batches, "MAX_MESSAGE_BYTES", most)
    good = [{"a": "1", "b": "x" * 40}] * 4
    types = {"sqlType": {"a": 4, "b": 12}, "mysqlType": {"a": "int", "b": "varchar(40)"}}
    mixed = [{"a": "no number" * 9, "b": "y"}, *good] * 90
    messages = [
        canal(
            mixed if offset % 7 == 3 else good,
            offset,
            **types,
            **({"gtid": "g" * 9000} if offset % 10 == 5 else {}),
        )
        for offset in range(60)
    ]
    options, schema = opened(shape)
    for as_lists in (False, True):
        result = check_equal(messages, schema, options, inferred=False, as_lists=as_lists)
        if feeding.is_installed():
            assert result.by_kernel
            assert result.by_reference
    for by_kernel in (False, True):
        engine = Engine(ReadTask(schema, options), by_kernel=by_kernel)
        sizes = [batch.nbytes for batch in engine.batches(messages)]
        assert len(sizes) > 5
        assert max(sizes) < 20 * most


def test_only_the_first_bad_row_holds_the_message() -> None:
    options, schema = opened("variant")
    message = canal([{"a": "1"}] * 500, gtid="g" * 50_000)
    (batch,) = Engine(ReadTask(schema, options)).batches([message])
    records = batch.column("_corrupt_record").to_pylist()
    assert [record["value"] for record in records] == [message.value, *[None] * 499]
    assert [record["source"]["index"] for record in records] == list(range(500))
    assert f"{REPEATED_SHARE} times the message" in records[7]["reason"]


def test_few_rows_may_repeat_without_limit() -> None:
    options, schema = opened("variant")
    for count in (1, 2, 8):
        message = canal([{"a": "1"}] * count, gtid="g" * 50_000)
        (batch,) = Engine(ReadTask(schema, options)).batches([message])
        assert batch.column("kind").to_pylist() == ["row"] * count


def test_a_list_that_is_too_large_is_one_bad_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_LIST_BYTES", 10_000)
    options, schema = opened("changes")
    large = canal([{"a": "1"}] * 2000, 1)
    messages = [canal([{"a": "1"}]), large, canal([{"a": "1"}], 2)]
    result = check_equal(messages, schema, options, inferred=False, as_lists=True)
    assert result.rows_of_messages == [1, 1, 1]
    record = result.rows["_corrupt_record"].to_pylist()[1]
    assert record["value"] == large.value
    assert 'format("cdc")' in record["reason"]
    assert check_equal(messages, schema, options, inferred=False).rows.num_rows == 2002


@pytest.mark.slow
def test_large_texts_in_lists_are_not_copied_as_text() -> None:
    lists = pa.list_(pa.field("element", pa.string()))
    # Python needs four bytes a character, and invalid Unicode cannot be encoded at once.
    texts = [f"{number}\ud800\U0001f600" + "a" * (1 << 17) for number in range(16)]
    tracemalloc.start()
    try:
        array = record_batches.to_array([texts, None, [], [None, "b"]], lists)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * sum(map(len, texts))
    array.validate(full=True)
    assert array.type == lists
    cleaned = [text.replace("\ud800", "\ufffd") for text in texts]
    assert array.to_pylist() == [cleaned, None, [], [None, "b"]]
    assert record_batches.to_array([], lists).type == lists
