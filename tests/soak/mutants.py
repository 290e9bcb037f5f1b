"""Mutants in the decode API, and the fast path against the reference: without Spark.

``python tests/soak/mutants.py FILE`` repeats a finding.
"""

from __future__ import annotations

import gc
import json
import logging
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import findings
from corpus import FORMATS, Corpus, corpora
from mutators import mutant
from paths import Queries, Query, comparable, difference, smallest
from processes import own_peak
from support.golden_data import open_decoder
from support.valid_mutants import valid_mutant
from table import MAX_CPU, Row, progress
from watching import Slot, Watched

from cdcfmt_core.decoding import MessageDecoder
from cdcfmt_core.errors import DecodeError
from cdcfmt_core.events import Corrupt, Message
from pyspark_cdcfmt.testing import parsed

CHUNK = 4_000
"""Mutants of one decoder; its seed makes the same ones again."""
ONE_IN = 16
"""So many mutants go through the bridge's two paths."""
MAX_RSS = 600.0
"""MB, beside the golden messages themselves."""
MAX_FINDINGS = 20


def opened(corpus: Corpus) -> MessageDecoder:
    """A new decoder that knows the messages of a corpus."""
    decoder = open_decoder(**corpus.options)
    for message in corpus.messages:
        decoder.decode(message)
    return decoder


def attempt(decoder: MessageDecoder, message: Message) -> tuple[str | None, bool, float]:
    """What is wrong with the decoder, whether the message is bad, and CPU seconds."""
    started = time.process_time()
    problem, bad = None, False
    try:
        for event in decoder.decode(message):
            if type(event) is Corrupt:
                bad = True
                text = str(event.error)
                if type(event.error).__mro__.count(DecodeError) == 0:
                    problem = f"{type(event.error).__name__}: {text}"
                elif "the decoder failed: " in text:
                    problem = text
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of compiled code is not an Exception
        problem = f"raised {type(error).__name__}: {error}"
    return problem, bad, time.process_time() - started


def decode_chunk(corpus: Corpus, seed: str, slot: Slot) -> list[Message]:
    """Mutants through a new decoder that knows the corpus; returns them."""
    decoder = opened(corpus)
    dice = random.Random(seed)
    made = []
    for _ in range(CHUNK):
        message = mutant(corpus.messages, corpus.wire, dice)
        slot.hold(message)
        problem, bad, spent = attempt(decoder, message)
        if spent > MAX_CPU:
            # The time of a process has what a virtual machine's host took from it, too.
            spent = min(spent, attempt(opened(corpus), message)[2])
        slot.bad.value += bad
        slot.mutants.value += 1
        if spent > slot.max_cpu.value:
            slot.max_cpu.value = spent
        if spent > MAX_CPU:
            slot.slow.value += 1
            problem = problem or f"took {spent:.2f} CPU seconds"
        elif problem:
            slot.failed.value += 1
        if problem and slot.failed.value + slot.slow.value <= MAX_FINDINGS:
            note(corpus, seed, [message], problem, corpus.options, None)
        made.append(message)
    return made


def compare_chunk(
    corpus: Corpus, seed: str, mutants: Sequence[Message], queries: Queries, slot: Slot
) -> None:
    """Some of the mutants among good messages, through both paths."""
    dice = random.Random(seed)
    query = queries.any(dice)
    if query is None:
        return
    some = dice.sample(mutants, CHUNK // ONE_IN)
    good = dice.choices(corpus.messages, k=len(some))
    some += [valid_mutant(m, dice, wire=corpus.wire) if dice.getrandbits(1) else m for m in good]
    dice.shuffle(some)
    slot.compared.value += len(some)
    # Schemas and plans come first in a topic, too.
    compare(corpus, seed, [*corpus.messages, *comparable(some)], query, slot)


def compare(
    corpus: Corpus, seed: str, messages: Sequence[Message], query: Query, slot: Slot
) -> None:
    """Decode messages by both paths, and record differences."""
    messages = [attrs.evolve(m, offset=at) for at, m in enumerate(messages)]
    try:
        problem, rows = difference(messages, query)
    except Exception as error:
        problem, rows = f"the reference raised {type(error).__name__}: {error}", 0
    slot.rows.value += rows
    if problem:
        slot.different.value += 1
        if slot.different.value <= MAX_FINDINGS:
            fewest = messages if "the reference raised" in problem else smallest(messages, query)
            note(corpus, seed, fewest, problem, query.texts, query)


def note(
    corpus: Corpus,
    seed: str,
    messages: Sequence[Message],
    problem: str,
    options: dict[str, str],
    query: Query | None,
) -> None:
    about: dict[str, Any] = {"problem": problem, "seed": seed, "options": options}
    if query is not None:
        about |= {
            "schema": query.schema.jsonValue(),
            "inferred": query.inferred,
            "as_lists": query.as_lists,
        }
    path = findings.save(corpus.name, messages, {"corpus": corpus.name, **about})
    print(f"FINDING {corpus.name}: {problem[:400]!r} in {path}", file=sys.stderr, flush=True)


def work(protocol: str, seed: str, until: float, slot: Slot) -> None:
    """A worker: chunks of each corpus of a format in turns, until the time is over."""
    # A mutant of a schema is warned of once each.
    logging.disable(logging.CRITICAL)
    every = list(corpora(protocol))
    queries: dict[str, Queries] = {}
    gc.collect()
    gc.freeze()
    with own_peak() as peak:
        loaded, number = peak(), 0
        # In the shortest run, too.
        while number == 0 or time.time() < until:
            corpus = every[number % len(every)]
            name = f"{seed}/{corpus.name}/{number}"
            slot.chunk.value = name.encode()
            made = decode_chunk(corpus, name, slot)
            slot.comparing.value = 1
            started = time.process_time()
            if corpus.name not in queries:
                queries[corpus.name] = Queries(corpus)
            compare_chunk(corpus, name, made, queries[corpus.name], slot)
            slot.comparing_seconds.value += time.process_time() - started
            slot.comparing.value = 0
            slot.max_rss.value = peak() - loaded
            number += 1


def of_format(protocol: str, seconds: float, seed: str) -> list[Row]:
    """A format's share of the campaign: its mutants, and its two paths."""
    mutants = Row(campaign="mutants", format=protocol, target="decode", rss_bound=MAX_RSS)
    both = Row(campaign="fast path = reference", format=protocol, target="Arrow")
    watch(work, seed, seconds, mutants, both)
    mutants.events = mutants.runs
    return [mutants, both]


def watch(
    work: Callable[[str, str, float, Slot], None], seed: str, seconds: float, fed: Row, both: Row
) -> None:
    """Workers for some seconds, the next one where one hangs or dies; fills the two rows."""
    started = reported = time.monotonic()
    until = time.time() + seconds
    slots: list[Slot] = []
    exitcode = None
    while exitcode is None or (exitcode and time.time() < until):
        slots.append(Slot())
        watched = Watched.start(work, (fed.format, f"{seed}.{len(slots)}", until, slots[-1]))
        while watched.process.is_alive():
            watched.process.join(1)
            if watched.is_stuck():
                hung(slots[-1], both if slots[-1].comparing.value else fed)
                watched.process.kill()
                watched.process.join()
            if time.monotonic() - reported > 15:
                reported = time.monotonic()
                report(fed, slots)
        exitcode = watched.process.exitcode
        if exitcode not in (0, -9):
            fed.different += 1
            fed.notes.append(f"a worker ended with {exitcode}")
    report(fed, slots)
    fed.runs = sum(s.mutants.value for s in slots)
    fed.events = sum(s.events.value for s in slots)
    fed.different += sum(s.failed.value for s in slots)
    fed.hangs += sum(s.slow.value for s in slots)
    fed.max_cpu = max(s.max_cpu.value for s in slots)
    fed.max_rss = max(s.max_rss.value for s in slots)
    both.runs = sum(s.compared.value for s in slots)
    both.events = sum(s.rows.value for s in slots)
    both.different = sum(s.different.value for s in slots)
    both.seconds = sum(s.comparing_seconds.value for s in slots)
    fed.seconds = time.monotonic() - started - both.seconds
    for row in (fed, both):
        if row.failures():
            row.notes.append(f"{row.format}: the messages are in {findings.FOLDER}")


def hung(slot: Slot, row: Row) -> None:
    row.hangs += 1
    where = slot.chunk.value.decode()
    path = findings.save("hang", [slot.held()], {"problem": "hang", "seed": where})
    row.notes.append(f"hang in {where}: {path}")


def report(row: Row, slots: Sequence[Slot]) -> None:
    def total(name: str) -> int:
        return sum(getattr(slot, name).value for slot in slots)

    progress(
        row.campaign,
        f"{row.format}: {total('mutants'):,} mutants, {total('failed')} raised, "
        f"{total('slow')} slow; {total('compared'):,} compared, {total('different')} differ",
    )


def run(seconds: float) -> list[Row]:
    """Every format for an equal part of the time."""
    seed = f"{time.time():.0f}"
    progress("mutants", f"seed {seed}")
    rows: list[list[Row]] = []
    until = time.monotonic() + seconds
    for left, protocol in zip(range(len(FORMATS), 0, -1), FORMATS, strict=True):
        rows.append(of_format(protocol, (until - time.monotonic()) / left, seed))
    return [row for kind in zip(*rows, strict=True) for row in kind]


def repeat(path: Path) -> None:
    """Decode the messages of a finding again, and print the result."""
    from pyspark.sql.types import StructType

    messages, about = findings.load(path)
    print(json.dumps({k: v for k, v in about.items() if k != "schema"}, indent=1))
    if "schema" in about:
        query = Query(
            StructType.fromJson(about["schema"]),
            parsed(about["options"]),
            about["options"],
            about["inferred"],
            about["as_lists"],
        )
        print(difference(messages, query))
        return
    every = {corpus.name: corpus for name in FORMATS for corpus in corpora(name)}
    decoder = open_decoder(**about["options"])
    for message in every[about["corpus"]].messages:
        decoder.decode(message)
    for message in messages:
        print(message)
        started = time.process_time()
        print(decoder.decode(message))
        print(f"{time.process_time() - started:.3f} CPU seconds")


if __name__ == "__main__":
    repeat(Path(sys.argv[1]))
