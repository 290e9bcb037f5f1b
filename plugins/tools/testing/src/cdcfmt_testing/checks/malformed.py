"""Damaged messages: each gives its good events or an error, and does not affect others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cdcfmt_core.events import (
    Corrupt,
    Event,
    Heartbeat,
    Message,
    SchemaChange,
    TableSchemaEvent,
    Watermark,
)
from cdcfmt_testing.damage import (
    JSON,
    OTHER_VALUES,
    PARTS,
    changed,
    cuts,
    flips,
    length_lies,
    patches,
    paths_of,
    with_part,
)
from cdcfmt_testing.limits import memory_limit, time_limit
from cdcfmt_testing.outcome import check_events, expect
from cdcfmt_testing.sameness import rendered
from cdcfmt_testing.subject import Sample, Subject

_Decode: TypeAlias = Callable[[Message], list[Event]]

# Limits, so that a format takes only seconds.
_MAX_CUTS: Final = 1_500
_MAX_FLIPS: Final = 1_500
_MAX_LIES: Final = 700
_MAX_JSON: Final = 1_500

_quiet = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=300,
    suppress_health_check=list(HealthCheck),
)


def check_cut_off(subject: Subject) -> None:
    """A message that is cut off anywhere is corrupt, unless nothing was lost."""
    for sample in subject.samples[:8]:
        whole = rendered(sample.events)
        decode = _decoder(subject, sample)
        for damaged in _each_part(sample.message, lambda data: cuts(data, _MAX_CUTS)):
            events = decode(damaged)
            expect(
                any(isinstance(event, Corrupt) for event in events) or rendered(events) == whole,
                f"a message that was cut off is taken for a whole one: {damaged!r:.500}; if "
                "nothing in the format shows its end, list this test in `known_failures`",
            )


def check_flipped(subject: Subject) -> None:
    """No flipped bit makes a decoder fail or a message vanish."""
    for sample in subject.samples[:6]:
        decode = _decoder(subject, sample)
        for damaged in _each_part(sample.message, lambda data: flips(data, _MAX_FLIPS)):
            _nothing_vanishes(decode(damaged), damaged)


def check_lengths(subject: Subject) -> None:
    """A decoder never allocates or loops by a false number in a message."""
    for sample in subject.samples[:4]:
        decode = _decoder(subject, sample)
        with memory_limit() as limit:
            for damaged in _each_part(sample.message, lambda d: length_lies(d, _MAX_LIES)):
                with limit(sample.size, "a message with a false length"):
                    events = decode(damaged)
                _nothing_vanishes(events, damaged)


def check_patched(subject: Subject) -> None:
    """Bytes that are lost or inserted anywhere are handled like flipped bits."""
    for sample in subject.samples[:8]:
        decode = _decoder(subject, sample)
        for damaged in _each_part(sample.message, lambda data: patches(data, 300)):
            _nothing_vanishes(decode(damaged), damaged)


def check_neighbours(subject: Subject) -> None:
    """After bad messages, a decoder still decodes good ones.

    Messages with schemas are not tested, as a damaged one may hold a valid new schema.
    """
    for sample in subject.samples[:8]:
        if any(isinstance(e, (SchemaChange, TableSchemaEvent)) for e in sample.events):
            continue
        decode = _decoder(subject, sample)
        for damage in (lambda d: patches(d, 100), lambda d: cuts(d, 100), lambda d: flips(d, 300)):
            for damaged in _each_part(sample.message, damage):
                decode(damaged)
            expect(
                rendered(decode(sample.message)) == rendered(sample.events),
                "after damaged messages a good one is decoded differently: "
                f"{sample.message!r:.500}",
            )


def check_any_bytes(subject: Subject) -> None:
    """Any bytes give events or an error with a reason."""
    decoder = subject.open(subject.cases[0].options)

    @_quiet
    @given(key=st.none() | st.binary(max_size=60), value=st.binary(max_size=300))
    def run(key: bytes | None, value: bytes) -> None:
        message = Message(key, value, topic="t", partition=3, offset=99)
        events = decoder.decode(message)
        check_events(events, message, subject.spec.name)
        _nothing_vanishes(events, message)

    run()


def check_tombstones(subject: Subject) -> None:
    """A message without value changes no row and no schema, and is not corrupt.

    It deletes a key from a compacted topic; its key alone may hold a watermark.
    """
    for sample in subject.samples:
        decoder = subject.open(sample.case.options)
        for key in (sample.message.key, None):
            message = attrs.evolve(sample.message, key=key, value=None)
            for event in decoder.decode(message):
                expect(
                    isinstance(event, (Watermark, Heartbeat)),
                    f"a message without value gives {event!r:.300}; if it is the only message of "
                    "a delete in this format, list this test in `known_failures`",
                )


def check_wrong_types(subject: Subject) -> None:
    """Any value in place of any part of a JSON message affects at most that message."""
    for sample, wire, decode in _json_samples(subject):
        places = [(path, value) for path in paths_of(wire) for value in (..., *OTHER_VALUES)]
        step = max(1, len(places) // _MAX_JSON)
        for path, value in places[::step]:
            if path or value is not ...:
                damaged = subject.with_content(sample, changed(wire, path, value))
                if damaged is not None:
                    events = decode(damaged)
                    # With null or a missing part a message may validly have no events.
                    if value is not None and value is not ...:
                        _nothing_vanishes(events, damaged)


def check_any_json(subject: Subject) -> None:
    """The same with any JSON, in up to three places at once."""
    found = list(_json_samples(subject))
    if not found:
        return

    @_quiet
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        sample, spoilt, decode = found[data.draw(st.integers(0, len(found) - 1))]
        for _ in range(data.draw(st.integers(1, 3))):
            path = data.draw(st.sampled_from(paths_of(spoilt)))
            spoilt = changed(spoilt, path, data.draw(st.just(...) | JSON if path else JSON))
        damaged = subject.with_content(sample, spoilt)
        if damaged is not None:
            decode(damaged)

    run()


def check_deep(subject: Subject) -> None:
    """Nesting of any depth in any place gives at most a corrupt message."""
    for data in (b"[" * 1_000_000, b'{"a":' * 200_000, b"[" * 50_000 + b"]" * 50_000):
        for sample in subject.samples[:1]:
            decode = _decoder(subject, sample)
            events = decode(attrs.evolve(sample.message, value=data))
            expect(isinstance(events[0], Corrupt), "endless nesting is not corrupt")
    for sample, wire, decode in _json_samples(subject, 4):
        for path in _shallow(wire):
            for depth in (900, 1_100, 100_000):
                for head, tail in (("[", "]"), ('{"a":', "}")):
                    nested = head * depth + "1" + tail * depth
                    damaged = subject.with_json(sample, wire, path, nested)
                    if damaged is not None:
                        _nothing_vanishes(decode(damaged), damaged)


def check_huge(subject: Subject) -> None:
    """Very long texts, numbers and lists take memory in proportion to their size."""
    with memory_limit() as limit:
        for sample in subject.samples[:1]:
            decode = _decoder(subject, sample)
            for filling in (b"\0", b"\xff", b" ", b"[]", b"1"):
                data = filling * ((4 << 20) // len(filling))
                for part in PARTS:
                    huge = with_part(sample.message, part, data)
                    with limit(len(data), "a message"):
                        events = decode(huge)
                    _nothing_vanishes(events, huge)
        for sample, wire, decode in _json_samples(subject, 3):
            for path in _shallow(wire):
                for value in ('"' + "x" * 300_000 + '"', "9" * 300_000, "[" + "0," * 20_000 + "0]",
                              "1e999999999", "1e-999999999"):  # fmt: skip
                    damaged = subject.with_json(sample, wire, path, value)
                    if damaged is not None:
                        with limit(len(damaged.value or b""), "a message"):
                            events = decode(damaged)
                        _nothing_vanishes(events, damaged)


# Shared


def _decoder(subject: Subject, sample: Sample) -> _Decode:
    decoder = subject.open_warm(sample.case)
    scan = subject.open_scan(sample.case.options)

    def decode(message: Message) -> list[Event]:
        with time_limit("a damaged message"):
            events = decoder.decode(message)
            # A scan for schemas gets it, too.
            list(scan(message))
        check_events(events, message, subject.spec.name)
        return events

    return decode


def _each_part(message: Message, damage: Callable[[bytes], Iterable[bytes]]) -> Iterator[Message]:
    for part in PARTS:
        data = getattr(message, part)
        if data:
            for damaged in damage(data):
                yield with_part(message, part, damaged)


def _nothing_vanishes(events: list[Event], message: Message) -> None:
    if message.value is not None and message.value.strip() == b"null":
        # Kafka Connect's form of a tombstone.
        return
    expect(
        events,
        "a message is lost, without event or error (if it is valid without rows, return a "
        f"Heartbeat): {message!r:.500}",
    )


def _json_samples(subject: Subject, most: int = 12) -> Iterator[tuple[Sample, Any, _Decode]]:
    for sample, wire in subject.apart(most):
        yield sample, wire, _decoder(subject, sample)


def _shallow(wire: Any) -> list[tuple[Any, ...]]:
    """Some paths at the top level, and the last three of all paths."""
    paths = paths_of(wire)[1:]
    return [path for path in paths if len(path) == 1][:12] + paths[-3:]
