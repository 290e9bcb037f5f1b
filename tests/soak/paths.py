"""The fast path of the bridge against the reference path, bit for bit.

:func:`read_fast` is the one place that names the fast path.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import attrs
from corpus import Corpus
from kernel.test_golden import OF_EVENTS, OPTIONS
from pyspark.sql.types import StructType
from support.damaged_messages import IMMENSE
from support.golden_data import open_decoder

from cdcfmt_core.events import Message, RowChange
from pyspark_cdcfmt.options import ReadOptions
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import Result, inferred_schema, parsed, read, table_option

LEFT_OUT = (": column that the table gained, left out",)


def read_reference(messages: Sequence[Message], query: Query) -> Result:
    """Plain Python, message by message: the truth."""
    return _read(messages, query, by_kernel=False)


def read_fast(messages: Sequence[Message], query: Query) -> Result:
    """By the kernel, and the reference for what it refuses."""
    return _read(messages, query, by_kernel=True)


@attrs.frozen
class Query:
    """A read: its schema and options; ``texts`` are the options as users write them."""

    schema: StructType
    options: ReadOptions
    texts: dict[str, str]
    inferred: bool
    as_lists: bool


def _read(messages: Sequence[Message], query: Query, *, by_kernel: bool) -> Result:
    return read(
        messages,
        query.schema,
        query.options,
        by_kernel=by_kernel,
        inferred=query.inferred,
        as_lists=query.as_lists,
    )


def difference(messages: Sequence[Message], query: Query) -> tuple[str | None, int]:
    """How the two paths differ, if they do, and the number of rows that were compared."""
    expected = read_reference(messages, query)
    try:
        actual = read_fast(messages, query)
    except Exception as error:
        return f"the fast path raised {type(error).__name__}: {error}", 0
    rows = expected.rows.num_rows
    if actual.error != expected.error:
        return f"error {actual.error!r}, the reference's is {expected.error!r}", rows
    if actual.rows_of_messages != expected.rows_of_messages:
        return "other numbers of rows for messages", rows
    if not actual.rows.equals(expected.rows):
        if actual.rows.num_rows != rows:
            return f"{actual.rows.num_rows} rows, the reference has {rows}", rows
        for name in expected.rows.column_names:
            pairs = zip(actual.rows[name].to_pylist(), expected.rows[name].to_pylist(), strict=True)
            for number, (mine, its) in enumerate(pairs):
                # repr: NaN is NaN, and -0.0 is not 0.0.
                if repr(mine) != repr(its):
                    text = (
                        f"row {number}, column {name}: {mine!r:.300}, the reference: {its!r:.300}"
                    )
                    return text, rows
    if expected.error is None and seen(actual, query) != seen(expected, query):
        return f"counts {dict(actual.counts)}, the reference has {dict(expected.counts)}", rows
    if expected.error is None and actual.skipped != expected.skipped:
        return f"{actual.skipped} messages skipped, the reference {expected.skipped}", rows
    return None, rows


def seen(result: Result, query: Query) -> dict[str, int]:
    """The counts that both paths promise.

    A value without a type, of a column that the user's schema leaves out, is not looked at by
    columns (docs/decisions/076-filters-in-the-kernel.md), so that the reference alone counts it.
    """
    left_out = () if query.inferred else LEFT_OUT
    return {name: count for name, count in result.counts.items() if not name.endswith(left_out)}


class Queries:
    """Reads of one corpus: changes of its tables and events, under many options."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        decode = open_decoder(**corpus.options).decode
        self._tables = sorted(
            {
                (event.table.database, event.table.table)
                for message in corpus.messages
                for event in decode(message)
                if isinstance(event, RowChange)
            }
        )

    def any(self, dice: random.Random) -> Query | None:
        """One of them; None where the table has no schema under its options."""
        given = self._corpus.options
        if dice.random() < 0.2:
            given = {**given, "protocol": "auto"}
        as_lists = dice.random() < 0.3
        if dice.random() < 0.4 or not self._tables:
            form = dice.choice(["json", "variant"])
            texts = {**given, "imageFormat": form, **dice.choice(OF_EVENTS)}
            options = parsed(texts)
            return Query(events_schema(options), options, texts, True, as_lists)
        table = table_option(*dice.choice(self._tables))
        texts = {**given, "table": table, **dice.choice(OPTIONS)}
        options = parsed(texts)
        schema = inferred_schema(self._corpus.messages, options)
        if schema is None:
            return None
        inferred = dice.random() < 0.7
        if not inferred:
            schema = StructType(dice.sample(schema.fields, dice.randrange(1, len(schema.fields))))
        return Query(schema, options, texts, inferred, as_lists)


def comparable(messages: Sequence[Message]) -> list[Message]:
    """Those whose numbers both paths see (docs/decisions/076-filters-in-the-kernel.md)."""
    return [m for m in messages if not IMMENSE.search(m.value or b"")]


def smallest(messages: list[Message], query: Query, runs: int = 40) -> list[Message]:
    """Fewer of the messages that still differ, by halving."""
    size = len(messages) // 2
    while size and runs:
        for start in range(0, len(messages), size):
            fewer = messages[:start] + messages[start + size :]
            runs -= 1
            if fewer and difference(fewer, query)[0]:
                messages = fewer
                break
            if not runs:
                break
        else:
            size //= 2
    return messages
