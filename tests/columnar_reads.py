"""The same messages by columns and by the reference path."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cdcfmt_core.errors import DecodeError, SourceError
from cdcfmt_core.events import Message
from cdcfmt_core.sources import BadLine
from pyspark_cdcfmt.change_rows import changes_schema
from pyspark_cdcfmt.engine import Engine, open_decoder
from pyspark_cdcfmt.infer import infer_columns
from pyspark_cdcfmt.options import ReadOptions, parse_options
from pyspark_cdcfmt.types import TypeOptions


def table_option(database: str, table: str) -> str:
    quoted = (name.replace("`", "``") for name in (database, table))
    return ".".join(f"`{name}`" for name in quoted)


def parsed(options: dict[str, str]) -> ReadOptions:
    return parse_options({name.lower(): value for name, value in options.items()})


def inferred_schema(messages: Sequence[Message], options: ReadOptions) -> StructType | None:
    """The schema that a read without one would have; None where no row is to be found."""
    event_filter = attrs.evolve(options.event_filter(), kinds=None)
    table = options.table
    assert table is not None
    try:
        columns = infer_columns(
            lambda: messages,
            open_decoder(options, event_filter),
            table,
            options["inferSampleMessages"],
            TypeOptions.of(options.values),
            any_table=open_decoder(options, attrs.evolve(event_filter, table=None)),
        )
    except SourceError:
        return None
    return changes_schema(columns, options)


@attrs.define
class Result:
    """Rows, what was counted, messages with unwanted rows, and the error that ended the read."""

    rows: pa.Table
    counts: Counter[str]
    skipped: int
    error: str | None
    by_columns: int = 0
    by_reference: int = 0
    rows_of_messages: list[int] | None = None


def read(
    messages: Sequence[Message | BadLine],
    schema: StructType,
    options: ReadOptions,
    *,
    by_columns: bool,
    inferred: bool = True,
    as_lists: bool = False,
) -> Result:
    engine = Engine(schema, options, inferred=inferred, by_columns=by_columns)
    batches: list[pa.RecordBatch] = []
    counts: list[int] | None = [] if as_lists else None
    error = None
    try:
        for made in engine.lists(messages) if as_lists else engine.batches(messages):
            made.validate(full=True)
            if counts is not None:
                counts += made.value_lengths().to_pylist()
                made = pa.RecordBatch.from_struct_array(made.flatten())
            batches.append(made)
    except DecodeError as raised:
        error = str(raised)
        batches, counts = [], None  # how many came before it depends on the size of batches
    arrow = to_arrow_schema(schema, timezone="UTC")
    rows = pa.Table.from_batches(batches, schema=arrow).combine_chunks()
    result = Result(rows, engine.counts, engine.skipped, error, rows_of_messages=counts)
    if engine.chunks is not None:
        result.by_columns = engine.chunks.by_columns
        result.by_reference = engine.chunks.by_reference
    return result


def check_equal(
    messages: Sequence[Message | BadLine],
    schema: StructType,
    options: ReadOptions,
    *,
    inferred: bool = True,
    as_lists: bool = False,
) -> Result:
    """The result by columns, once it is found to be the reference's bit for bit."""
    how = {"inferred": inferred, "as_lists": as_lists}
    expected = read(messages, schema, options, by_columns=False, **how)
    actual = read(messages, schema, options, by_columns=True, **how)
    assert actual.error == expected.error
    assert actual.rows_of_messages == expected.rows_of_messages
    if not actual.rows.equals(expected.rows):
        assert actual.rows.num_rows == expected.rows.num_rows
        for name in expected.rows.column_names:
            assert actual.rows[name].to_pylist() == expected.rows[name].to_pylist(), name
        raise AssertionError("equal as Python values only")
    if expected.error is None:
        assert actual.counts == expected.counts
        assert actual.skipped == expected.skipped
    return actual


# --- Messages that nobody would send --------------------------------------------------

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 7, 1.5, 1e300, 2**63, 2**64, 10**30, "", " ", "0", "1", "-0", "+5",
    "007", "0x10", "1e3", "1.50", ".5", "5.", "nan", "Infinity", "1e400", "12345678901234567890",
    "2024-01-01", "2024-01-01 10:00:00", "2024-01-01T10:00:00.123456", "0000-00-00",
    "0000-00-00 00:00:00", "2024-02-30", "9999-12-31 23:59:59.999999", "24:00:00", "-838:59:59",
    "\u00e9\u00ff", "\u4e2d", "\x00", "\U0001f600", "\ud800", "a,b", "[1,2]", '{"a": 1}', "{",
    [], {}, ["x"], {"a": None}, "1_000", "\u0663", "1" * 70, "x" * 300,
)  # fmt: skip


_IMMENSE = re.compile(rb"[0-9][eE][+]?[0-9]{4}|[0-9]{1000}")


def mutated(value: bytes, chance: random.Random) -> bytes:
    """The message with one thing about it changed."""
    result = _mutated(value, chance)
    # In what nobody reads such a number is not seen (docs/decisions.md).
    return value if _IMMENSE.search(result) else result


def _mutated(value: bytes, chance: random.Random) -> bytes:
    if chance.random() < 0.3:
        return _with_other_bytes(value, chance)
    try:
        wire = json.loads(value)
    except ValueError:
        return _with_other_bytes(value, chance)
    path: list[Any] = []
    inner: Any = wire
    while isinstance(inner, dict | list) and inner:
        places = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        path.append(chance.choice(places))
        if chance.random() < 0.2:
            break
        inner = inner[path[-1]]
    parent: Any = wire
    if not path:
        return value
    for place in path[:-1]:
        parent = parent[place]
    what = chance.randrange(6)
    if what == 0:
        del parent[path[-1]]
    elif what == 1 and isinstance(parent, dict):
        parent[chance.choice(["unknown", "id", "a", "_tidb", "gtid"])] = chance.choice(ODD)
    elif what == 2 and isinstance(parent, dict):
        shuffled = list(parent.items())
        chance.shuffle(shuffled)
        parent.clear()
        parent.update(shuffled)
    elif what == 3 and isinstance(parent, list):
        parent.append(parent[path[-1]])
    else:
        parent[path[-1]] = chance.choice(ODD)
    text = json.dumps(wire, ensure_ascii=chance.random() < 0.5, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _with_other_bytes(value: bytes, chance: random.Random) -> bytes:
    data = bytearray(value)
    place = chance.randrange(len(data))
    what = chance.randrange(5)
    if what == 0:
        data[place] = chance.randrange(256)
    elif what == 1:
        del data[place]
    elif what == 2:
        del data[place:]
    elif what == 3:
        data.insert(place, chance.choice(b' ",{}[]:\\0eE.-\n\x00\xff'))
    else:
        end = min(place + chance.randrange(1, 60), len(data))
        data[end:end] = data[place:end]
    return bytes(data)
