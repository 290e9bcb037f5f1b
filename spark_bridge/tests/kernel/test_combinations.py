"""Kernel and reference agree on golden messages as they are, in each shape and form of images."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from itertools import product

import pytest
from corpus import FORMATS, Corpus, corpora
from support.golden_data import about, open_decoder
from support.turns import in_turn
from support.valid_mutants import valid_mutant

from cdcfmt_core.events import Message, RowChange
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.rows.row_schemas import events_schema
from pyspark_cdcfmt.testing import check_equal, inferred_schema, parsed, table_option

pytestmark = [pytest.mark.kernel, pytest.mark.one_python]

CORPORA = [corpus.name for protocol in FORMATS for corpus in corpora(protocol)]
SIMILAR = 2
"""Messages of one table and operation that are read; a golden file has many more."""

LEAST_SHARE = {"dts/dts": 0.1}
USUAL_SHARE = 0.4

OF_EVENTS = [
    {"images": images, "imageFormat": form, "includeColumns": more, "includeHeaders": more}
    for images, form, more in product(
        ("both", "after", "none"), ("variant", "json"), ("false", "true")
    )
]
OF_CHANGES = [
    {"images": images, "incompleteRows": "emit", "splitKeyUpdates": split}
    for images, split in product(("both", "after"), ("false", "true"))
]


@cache
def some_of(name: str) -> tuple[Corpus, list[Message], list[tuple[str, ...]]]:
    """A corpus; messages of each table and operation, twice, and all other ones; the tables.

    The first message of a table, which shows its schema to the kernel, is the reference's.
    """
    corpus = next(c for protocol in FORMATS for c in corpora(protocol) if c.name == name)
    decode = open_decoder(**corpus.options).decode
    seen: Counter[tuple[str, ...]] = Counter()
    chosen: list[Message] = []
    tables: dict[tuple[str, ...], None] = {}
    for message in corpus.messages:
        events = decode(message)
        rows = [event for event in events if isinstance(event, RowChange)]
        tables |= dict.fromkeys(event.table.name for event in rows)
        kinds = {(event.table.name, event.op, *(event.extra or ())) for event in rows}
        kind = tuple(sorted(map(str, kinds)))
        seen[kind] += 1
        if not rows or seen[kind] <= SIMILAR:
            chosen.append(message)
    return corpus, chosen * 2, [*tables]


@pytest.mark.parametrize(("name", "combination"), in_turn(CORPORA, range(len(OF_EVENTS)), of=8))
def test_events(name: str, combination: int) -> None:
    corpus, messages, _ = some_of(name)
    options = parsed({**corpus.options, **OF_EVENTS[combination]})
    result = check_equal(messages, events_schema(options), options)
    # With `columns` of deleted rows, which may be a part of the table's.
    is_of_reference = OF_EVENTS[combination]["includeColumns"] == "true"
    assert result.by_kernel or is_of_reference or not is_read(corpus), result.refusal


@pytest.mark.parametrize(("name", "combination"), in_turn(CORPORA, range(len(OF_CHANGES)), of=16))
def test_changes(name: str, combination: int) -> None:
    corpus, messages, tables = some_of(name)
    by_kernel = 0
    for table in tables:
        named = table_option(*filter(None, table))
        options = parsed({**corpus.options, "table": named, **OF_CHANGES[combination]})
        some = about(messages, table[-1], corpus.options)
        schema = inferred_schema(some, options)
        if schema is not None:
            by_kernel += check_equal(some, schema, options).by_kernel
    assert by_kernel or not is_read(corpus)


def rows_of(corpus: Corpus, messages: list[Message]) -> list[Message]:
    """The messages with rows."""
    decode = open_decoder(**corpus.options).decode
    return [m for m in messages if any(isinstance(event, RowChange) for event in decode(m))]


def is_read(corpus: Corpus) -> bool:
    """Whether the kernel reads some of the messages: neither compressed nor flattened ones."""
    is_open = "largeMessageHandleCompression" not in corpus.options and "unwrap" not in corpus.name
    return is_installed() and is_open


@pytest.mark.parametrize("name", in_turn(CORPORA, of=4))
def test_valid_mutants(name: str) -> None:
    """Most are read by the kernel: messages read only by the reference do not test it."""
    corpus, messages, _ = some_of(name)
    if not is_read(corpus):
        return
    chance = random.Random(name)
    combination = chance.choice([each for each in OF_EVENTS if each["includeColumns"] == "false"])
    options = parsed({**corpus.options, **combination})
    schema = events_schema(options)
    rows = [message for message in rows_of(corpus, messages) if message.value]
    mutants = [valid_mutant(message, chance, wire=corpus.wire) for message in rows * 2]
    known = check_equal(messages, schema, options)
    result = check_equal([*messages, *mutants], schema, options)
    share = (result.by_kernel - known.by_kernel) / len(mutants)
    print(f"{name}: {share:.0%} of {len(mutants)} mutants are read by the kernel")
    assert share > LEAST_SHARE.get(name, USUAL_SHARE)
