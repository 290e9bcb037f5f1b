"""Mutants right into the compiled kernel, and one in a hundred against the reference.

``python tests/soak/kernel_mutants.py --mutants 10000000`` is a campaign of so many.
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import attrs
import pyarrow as pa
from corpus import FORMATS, Corpus, corpora
from mutants import compare, note, watch
from mutators import mutant
from paths import Queries, Query, comparable
from processes import own_peak
from support.golden_data import open_decoder
from support.valid_mutants import valid_mutant
from table import MAX_CPU, Row, as_text, progress
from watching import Slot

from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Message, RowChange
from cdcfmt_files.sources.lines import line_parser
from cdcfmt_files.sources.whole_messages import wrap_line
from pyspark_cdcfmt.kernel.formats import is_installed
from pyspark_cdcfmt.read.engine import Engine
from pyspark_cdcfmt.rows.read_task import ReadTask
from pyspark_cdcfmt.testing import table_option

if is_installed():
    from cdcfmt_kernel import Kernel

NAME = "mutants into the kernel"
CHUNK = 25_000
"""Mutants of one kernel; its seed makes the same ones again."""
LIST = 500
"""Messages of one call."""
ONE_IN = 100
"""So many mutants are held against the reference."""
MAX_RSS = 600.0
"""MB, beside the golden messages themselves."""
ALL = ""
"""In place of a table's name: all tables."""
PANIC = "PANIC"
"""The name of the reason of a message at which the kernel panicked."""


class Target:
    """A corpus with its messages of rows, which mutants are made of: by tables, and all."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._queries = Queries(corpus)
        self._rows: dict[str, list[Message]] = {ALL: []}
        decode = open_decoder(**corpus.options).decode
        for message in corpus.messages:
            changes = [event for event in decode(message) if isinstance(event, RowChange)]
            tables = {table_option(each.table.database, each.table.table) for each in changes}
            for table in tables | {ALL} if tables else ():
                self._rows.setdefault(table, []).append(message)

    def any(self, dice: random.Random) -> Query:
        """A read that no message ends."""
        while True:
            query = self._queries.any(dice)
            if query is not None and not {"fail", "FAILFAST"} & {*query.texts.values()}:
                return query

    def rows(self, query: Query) -> list[Message]:
        """The messages with rows that a read wants."""
        return self._rows[query.texts.get("table", ALL)] or list(self.corpus.messages)

    def schemas_and_rows(self, query: Query) -> list[Message]:
        """After these the kernel has the plans of all rows: schemas behind a plan remove it."""
        return [*self.corpus.messages, *self.rows(query)]


def open_kernel(target: Target, query: Query) -> Kernel | None:
    """The kernel behind a read, with its plans; None where it does not read these messages."""
    engine = Engine(ReadTask(query.schema, query.options, inferred=query.inferred))
    # Golden rows of DTS are incomplete: without a place for bad rows they end the read.
    with suppress(DecodeError):
        for _ in engine.batches(target.schemas_and_rows(query)):
            pass
    found = getattr(engine.chunks, "_kernel", None)
    return found if isinstance(found, Kernel) else None


@attrs.frozen
class Feed:
    """A kernel that is fed; ``slot`` counts its rows."""

    kernel: Kernel
    slot: Slot
    dice: random.Random

    def messages(self, some: Sequence[Message]) -> None:
        """Messages as from a topic.

        :raises AssertionError: for a panic.
        """
        values, keys = [m.value for m in some], [m.key for m in some]
        offsets: list[int | None] = list(range(len(some)))
        at = 0
        while (at := self.kernel.read(values, keys, offsets, at)) < len(some):
            at += self._stopped(values[at] or b"", keys[at])
        self._finish()

    def lines(self, some: Sequence[Message], *, are_whole: bool) -> None:
        """Their values as lines of a file, or whole messages, a few of them damaged.

        :raises AssertionError: for a panic.
        """
        lines = [self._whole(m) if are_whole else m.value or b"" for m in some]
        data = b"".join(line + b"\n" for line in lines)
        parse = line_parser("auto" if are_whole else "value", None)
        at = 0
        while (at := self.kernel.read_lines(data, 0, at, are_whole)) < len(data):
            end = data.index(b"\n", at)
            message = parse(data[at:end], at)
            if self._stopped(message.value or b"", getattr(message, "key", None)):
                at = end + 1
        self.kernel.take_origins()
        self._finish()

    def _whole(self, message: Message) -> bytes:
        line = bytearray(wrap_line(attrs.evolve(message, topic="t", timestamp=7)))
        if not self.dice.getrandbits(4):
            line[self.dice.randrange(len(line))] = self.dice.getrandbits(8)
        return bytes(line)

    def _stopped(self, value: bytes, key: bytes | None) -> bool:
        """Goes on where the kernel stopped; whether that is behind the message."""
        from cdcfmt_kernel import Reason

        stop = self.kernel.stop
        assert stop is not None
        assert stop.reason != getattr(Reason, PANIC), stop.text
        if stop.reason == Reason.FULL:
            self._finish()
            return False
        if stop.reason == Reason.UNKNOWN_SCHEMA:
            self._ask(value, key, stop.event)
        self.kernel.pass_over()
        return True

    def _ask(self, value: bytes, key: bytes | None, event: int) -> None:
        """The bridge's query about a message without a plan."""
        with suppress(ValueError):
            value, key = self.kernel.event(value, key, event)
        with suppress(ValueError):
            self.kernel.names(value, key)
            if not self.dice.getrandbits(10):
                self.kernel.skip(value, key, all=bool(self.dice.getrandbits(1)))

    def _finish(self) -> None:
        if self.kernel.messages:
            rows = pa.record_batch(self.kernel.finish())
            rows.validate(full=True)
            self.slot.events.value += rows.num_rows


def damaged(corpus: Corpus, rows: Sequence[Message], dice: random.Random) -> Message:
    """Half are valid mutants of rows, others damaged; one in 64 is any bytes."""
    choice = dice.getrandbits(6)
    if choice == 0:
        return Message(dice.randbytes(dice.getrandbits(5)), dice.randbytes(dice.getrandbits(9)))
    if choice >= 32:
        return valid_mutant(dice.choice(rows), dice, wire=corpus.wire)
    return mutant(corpus.messages if choice < 5 else rows, corpus.wire, dice)


def feed_chunk(target: Target, seed: str, query: Query, slot: Slot) -> list[Message] | None:
    """Mutants into a new kernel; returns some, None where the kernel does not read these."""
    opened = open_kernel(target, query)
    if opened is None:
        return None
    corpus, dice = target.corpus, random.Random(seed)
    feed = Feed(opened, slot, dice)
    rows, kept = target.rows(query), []
    # Values of Open Protocol are not lines.
    ways = [feed.messages, partial(feed.lines, are_whole=True)]
    ways += [] if corpus.wire == "open" else [partial(feed.lines, are_whole=False)]
    for _ in range(CHUNK // LIST):
        some = [damaged(corpus, rows, dice) for _ in range(LIST)]
        kept += dice.sample(some, LIST // ONE_IN)
        started = time.process_time()
        problem = None
        try:
            dice.choice(ways)(some)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # an escaped panic is not an Exception
            problem = f"{type(error).__name__}: {error}"
            slot.failed.value += 1
        spent = time.process_time() - started
        slot.max_cpu.value = max(slot.max_cpu.value, spent)
        slot.mutants.value += LIST
        if spent > MAX_CPU and problem is None:
            slot.slow.value += 1
            problem = f"{LIST} messages took {spent:.2f} CPU seconds"
        if problem is not None:
            note(corpus, seed, some, problem, query.texts, query)
            break
    return kept


class Panics:
    """The kernel's logs of panics, which the bridge treats as refused messages."""

    def __init__(self) -> None:
        sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (for the life of the process)
        os.dup2(self._file.fileno(), 2)

    def take(self) -> str:
        """The text written since the last call."""
        self._file.seek(0)
        text = self._file.read().decode("utf-8", "replace")
        self._file.seek(0)
        self._file.truncate()
        return text


def work(protocol: str, seed: str, until: float, slot: Slot, most: float = math.inf) -> None:
    """A worker: chunks of each corpus of a format in turns, until the time or number is over."""
    logging.disable(logging.CRITICAL)
    every, panics = [Target(corpus) for corpus in corpora(protocol)], Panics()
    gc.collect()
    gc.freeze()
    with own_peak() as peak:
        loaded, number = peak(), 0
        while every and (number == 0 or (time.time() < until and slot.mutants.value < most)):
            target = every[number % len(every)]
            name = f"{seed}/{target.corpus.name}/{number}"
            slot.chunk.value = name.encode()
            number += 1
            dice = random.Random(name)
            query = target.any(dice)
            kept = feed_chunk(target, name, query, slot)
            if kept is None:
                every.remove(target)
                continue
            slot.comparing.value = 1
            started = time.process_time()
            slot.compared.value += len(kept)
            among = [*kept, *dice.choices(target.rows(query), k=len(kept))]
            dice.shuffle(among)
            among = [*target.schemas_and_rows(query), *comparable(among)]
            compare(target.corpus, name, among, query, slot)
            slot.comparing_seconds.value += time.process_time() - started
            if "panicked" in (text := panics.take()):
                slot.failed.value += 1
                note(target.corpus, name, among, text[:2_000], query.texts, query)
            slot.comparing.value = 0
            slot.max_rss.value = peak() - loaded


def of_format(protocol: str, seconds: float, seed: str, most: float = math.inf) -> list[Row]:
    """A format's share of the campaign; no rows where the kernel does not read it."""
    fed = Row(campaign=NAME, format=protocol, target="kernel", rss_bound=MAX_RSS)
    both = Row(campaign=f"{NAME} = reference", format=protocol, target="Arrow")
    watch(partial(work, most=most), seed, seconds, fed, both)
    return [fed, both] if fed.runs or fed.failures() != ["nothing was run"] else []


def run(seconds: float, most: float = math.inf) -> list[Row]:
    """Every format for an equal part of the time, or of the mutants."""
    if not is_installed():
        progress(NAME, "left out: the kernel is not installed")
        return []
    seed = f"{time.time():.0f}"
    progress(NAME, f"seed {seed}")
    rows: list[list[Row]] = []
    until = time.monotonic() + seconds
    for left, protocol in zip(range(len(FORMATS), 0, -1), FORMATS, strict=True):
        share = (until - time.monotonic()) / left
        rows.append(of_format(protocol, share, seed, most / len(FORMATS)))
    return [row for some in rows for row in some]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mutants", type=int, default=10_000_000)
    given = parser.parse_args()
    # The guard against a worker that never comes to an end.
    rows = run(86_400, given.mutants)
    print(as_text(rows))
    for note_ in (note_ for row in rows for note_ in row.notes):
        print(note_)
    sys.exit(any(row.failures() for row in rows))


if __name__ == "__main__":
    main()
